//! Ours beside the source's.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use inhost_inett::statistics::Estimate;

use crate::experiment::{Compare, Experiment, Figures, Going, Point, Shape};
use crate::store::{Store, StoreError};

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
    /// What was measured has another name.
    Unknown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Holds => "holds",
            Verdict::Missed => "missed",
            Verdict::Shown => "shown",
            Verdict::Missing => "not measured",
            Verdict::Unknown => "unknown",
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

/// A curve beside what it has to be like.
#[derive(Clone, PartialEq, Debug)]
pub struct Shaped {
    /// What it has to be like, as a sentence.
    pub text: String,
    /// The values, in the order of the points.
    pub values: Vec<f64>,
    /// How it stands.
    pub verdict: Verdict,
}

/// Curves beside what they have to be like.
pub fn shapes(experiment: &Experiment, results: &[Results]) -> Vec<Shaped> {
    experiment.shape.iter().map(|shape| shaped(shape, results)).collect()
}

fn shaped(shape: &Shape, results: &[Results]) -> Shaped {
    let chosen: Vec<&Results> = results.iter().filter(|of| shape.at.has(&of.point)).collect();
    let values: Vec<f64> =
        chosen.iter().filter_map(|of| of.measures.get(&shape.measure)).map(|of| of.mean).collect();
    let slack = 1.0 + shape.slack_percent / 100.0;
    let pairs = || values.windows(2).map(|pair| (pair[0], pair[1]));
    let (is_so, going) = match shape.is {
        Going::Rises => (pairs().all(|(before, after)| after * slack >= before), "rises".to_owned()),
        Going::Falls => (pairs().all(|(before, after)| after <= before * slack), "falls".to_owned()),
        Going::Between => {
            // A file without these two numbers was refused.
            let (least, most) = (shape.range[0], shape.range[1]);
            let is_within = values.iter().all(|value| (least..=most).contains(value));
            (is_within, format!("is between {least} and {most}"))
        }
    };
    let at = shape.at.text();
    let place = if at.is_empty() { String::new() } else { format!(" at {at}") };
    let law = if shape.law.is_empty() { String::new() } else { format!(": {}", shape.law) };
    let verdict = match (values.len() == chosen.len() && !values.is_empty(), is_so) {
        (false, _) => missing(chosen.into_iter().filter(|of| !of.measures.contains_key(&shape.measure))),
        (true, true) => Verdict::Holds,
        (true, false) => Verdict::Missed,
    };
    Shaped { text: format!("{} {going}{place}{law}", shape.measure), values, verdict }
}

/// Why these points do not have a measure.
fn missing<'a>(mut points: impl Iterator<Item = &'a Results>) -> Verdict {
    if points.all(|of| of.measures.is_empty()) { Verdict::Missing } else { Verdict::Unknown }
}

fn of(experiment: &Experiment, compare: &Compare, results: &[Results]) -> Vec<Compared> {
    let Ok(paper) = compare.numbers() else { return Vec::new() };
    let chosen: Vec<&Results> = results.iter().filter(|of| compare.at.has(&of.point)).collect();
    let along = compare.along.as_ref().map(Figures::numbers).and_then(Result::ok);
    let first = experiment.keys().next().unwrap_or_default().to_owned();
    let pairs: Vec<(&Results, f64)> = match along {
        // Each value of the source has a value of what varies.
        Some(along) => {
            let value = |of: &Results| {
                let at = of.point.number_of(&first)?;
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
    let is_shown = compare
        .shown_at
        .iter()
        .any(|(key, values)| of.point.values.get(key).is_some_and(|value| values.contains(value)));
    let verdict = match (ours, compare.tolerance_percent, compare.tolerance) {
        (None, ..) => missing(std::iter::once(of)),
        _ if is_shown => Verdict::Shown,
        (Some(_), None, None) => Verdict::Shown,
        (Some(ours), percent, absolute) => {
            let allowed =
                percent.map_or(0.0, |percent| paper.abs() * percent / 100.0).max(absolute.unwrap_or(0.0));
            if (ours.mean - paper).abs() <= allowed { Verdict::Holds } else { Verdict::Missed }
        }
    };
    let tolerance = match (compare.tolerance_percent, compare.tolerance) {
        _ if is_shown => "-".to_owned(),
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
        note: if compare.shown_at.is_empty() || is_shown { compare.note.clone() } else { String::new() },
    }
}
