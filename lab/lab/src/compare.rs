//! Ours beside the source's.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use inhost_inett::statistics::Estimate;

use crate::experiment::{Compare, Experiment, Point, number};
use crate::store::{Store, StoreError};
use crate::tables;

/// The results of a point over its seeds.
#[derive(Clone, PartialEq, Debug)]
pub struct Results {
    /// The point.
    pub point: Point,
    /// Each measure, over all seeds.
    pub measures: BTreeMap<String, Estimate>,
    /// Why runs failed.
    pub failures: BTreeSet<String>,
}

/// The results of an experiment, point by point.
///
/// # Errors
/// The store cannot be read.
pub fn results(experiment: &Experiment, store: &Store) -> Result<Vec<Results>, StoreError> {
    (0..experiment.points())
        .map(|number| {
            let point = experiment.point(number);
            let (mut values, mut failures) = (BTreeMap::<String, Vec<f64>>::new(), BTreeSet::new());
            for row in store.rows(experiment, &point)? {
                match row.result {
                    Ok(measured) => {
                        measured
                            .into_iter()
                            .for_each(|(name, value)| values.entry(name).or_default().push(value));
                    }
                    Err(why) => {
                        failures.insert(why);
                    }
                }
            }
            let estimate = |(name, values): (String, Vec<f64>)| Some((name, Estimate::of(&values)?));
            let measures = values.into_iter().filter_map(estimate).collect();
            Ok(Results { point, measures, failures })
        })
        .collect()
}

/// How a figure stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Within its tolerance.
    Holds,
    /// Not within it.
    Missed,
    /// It is shown, and not judged.
    Shown,
    /// It was not measured.
    Missing,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Holds => "holds",
            Verdict::Missed => "missed",
            Verdict::Shown => "shown",
            Verdict::Missing => "not measured",
        })
    }
}

/// A figure beside the source's.
#[derive(Clone, PartialEq, Debug)]
pub struct Compared {
    /// The measure.
    pub measure: String,
    /// What it is, such as "predicted".
    pub what: String,
    /// The point's label.
    pub at: String,
    /// The point's number.
    pub point: usize,
    /// Ours.
    pub ours: Option<Estimate>,
    /// The source's, in our unit.
    pub paper: f64,
    /// By how much ours is more, in percent of the source's.
    pub error_percent: Option<f64>,
    /// What is allowed, as text.
    pub tolerance: String,
    /// How it stands.
    pub verdict: Verdict,
    /// Why it is missed, or not judged.
    pub note: String,
}

/// All figures that the source prints, beside ours.
pub fn compare(experiment: &Experiment, results: &[Results]) -> Vec<Compared> {
    experiment.compare.iter().flat_map(|compare| of(experiment, compare, results)).collect()
}

fn of(experiment: &Experiment, compare: &Compare, results: &[Results]) -> Vec<Compared> {
    let Ok(paper) = tables::numbers(&compare.paper) else { return Vec::new() };
    let is_at = |point: &Point| compare.at.iter().all(|(key, value)| point.values.get(key) == Some(value));
    let chosen: Vec<&Results> = results.iter().filter(|of| is_at(&of.point)).collect();
    let along = compare.along.as_deref().and_then(|path| tables::numbers(path).ok());
    let first = experiment.keys().next().unwrap_or_default().to_owned();
    let pairs: Vec<(&Results, f64)> = match along {
        // Each value of the source has a value of what varies.
        Some(along) => {
            let value = |of: &Results| {
                let at = of.point.values.get(&first).and_then(number)?;
                along.iter().position(|&other| other == at).and_then(|at| paper.get(at).copied())
            };
            chosen.into_iter().filter_map(|of| Some((of, value(of)?))).collect()
        }
        None if paper.len() == 1 => chosen.into_iter().map(|of| (of, paper[0])).collect(),
        None => chosen.into_iter().zip(paper).collect(),
    };
    pairs.into_iter().map(|(of, paper)| judge(compare, of, paper * compare.scale)).collect()
}

fn judge(compare: &Compare, of: &Results, paper: f64) -> Compared {
    let ours = of.measures.get(&compare.measure).copied();
    let error_percent = ours.filter(|_| paper != 0.0).map(|ours| (ours.mean / paper - 1.0) * 100.0);
    let verdict = match (ours, compare.tolerance_percent, compare.tolerance) {
        (None, ..) => Verdict::Missing,
        (Some(_), None, None) => Verdict::Shown,
        (Some(ours), percent, absolute) => {
            let allowed =
                percent.map_or(0.0, |percent| paper.abs() * percent / 100.0).max(absolute.unwrap_or(0.0));
            if (ours.mean - paper).abs() <= allowed { Verdict::Holds } else { Verdict::Missed }
        }
    };
    let tolerance = match (compare.tolerance_percent, compare.tolerance) {
        (Some(percent), _) => format!("{percent} %"),
        (None, Some(absolute)) => format!("{absolute}"),
        (None, None) => "-".to_owned(),
    };
    Compared {
        measure: compare.measure.clone(),
        what: compare.what.clone(),
        at: of.point.label.clone(),
        point: of.point.number,
        ours,
        paper,
        error_percent,
        tolerance,
        verdict,
        note: compare.note.clone(),
    }
}
