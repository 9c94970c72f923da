//! From the figures of all rounds to the rows of the table: medians, spread, ratios, and whether goals are met.

use super::plan::{Figure, Goal, Trial};
use crate::figures::statistics::{median, median_lower_bound};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one process said.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Answer {
    /// Figures by name.
    pub figures: BTreeMap<String, f64>,
    /// Under which settings.
    pub settings: String,
}

/// The answers of one stack in a trial, by round; a round that it did not take part in is missing.
#[derive(Default, Debug)]
pub struct Series {
    /// By round.
    pub answers: BTreeMap<usize, Answer>,
    /// Why there are none.
    pub left_out: Option<String>,
}

/// All of a trial: a series for each of its subjects, in their order.
pub struct Taken<'a> {
    /// The trial.
    pub trial: &'a Trial,
    /// Its subjects' answers.
    pub series: Vec<Series>,
}

/// One line of the table, and one object of the JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// What was measured.
    pub measurement: String,
    /// Of whom.
    pub stack: String,
    /// In what.
    pub unit: String,
    /// The middle of all rounds; none where the stack was left out.
    pub median: Option<f64>,
    /// The least.
    pub min: Option<f64>,
    /// The most.
    pub max: Option<f64>,
    /// In a row with a goal, ours to what the goal names; in a peer's row, ours to it. The median over the rounds that
    /// both took part in.
    pub ratio: Option<f64>,
    /// The goal in words.
    pub goal: Option<String>,
    /// Whether it was met.
    pub met: Option<bool>,
    /// Rounds.
    pub rounds: usize,
    /// From the least to the most, in parts of the median: the noise.
    pub spread: Option<f64>,
    /// Conditions common to all stacks.
    pub conditions: String,
    /// The stack's own settings, or why it was left out.
    pub settings: String,
}

impl Taken<'_> {
    /// The rows of every figure.
    pub fn rows(&self) -> Vec<Row> {
        self.trial.figures.iter().flat_map(|figure| self.rows_of(figure)).collect()
    }

    fn rows_of(&self, figure: &Figure) -> Vec<Row> {
        let subjects = self.trial.subjects.iter().zip(&self.series);
        subjects
            .filter_map(|(subject, series)| {
                let values: Vec<f64> = values(series, figure.key).into_values().collect();
                let is_left_out = series.left_out.is_some();
                if values.is_empty() && !is_left_out {
                    // A stack of the trial that does not have this figure.
                    return None;
                }
                let goal =
                    figure.goals.iter().find(|(stack, _)| *stack == subject.stack).map(|(_, goal)| *goal);
                let middle = median(&values);
                let min = values.iter().copied().reduce(f64::min);
                let max = values.iter().copied().reduce(f64::max);
                let reference = goal.and_then(Goal::reference);
                let ratios = match reference {
                    Some(reference) => self.ratios(figure.key, subject.stack, reference),
                    None if subject.is_ours() => Vec::new(),
                    None => self.ratios(figure.key, self.trial.subjects[0].stack, subject.stack),
                };
                let met = goal.and_then(|goal| is_met(goal, middle, &ratios));
                Some(Row {
                    measurement: figure.measurement.to_owned(),
                    stack: subject.stack.to_owned(),
                    unit: figure.unit.to_owned(),
                    median: middle,
                    min,
                    max,
                    ratio: median(&ratios),
                    goal: goal.map(Goal::words),
                    met,
                    rounds: values.len(),
                    spread: spread(middle, min, max),
                    conditions: self.trial.conditions.to_owned(),
                    settings: settings(series),
                })
            })
            .collect()
    }

    /// The figure of one stack to that of another, for each round in which both took part.
    fn ratios(&self, key: &str, upper: &str, lower: &str) -> Vec<f64> {
        let of = |stack: &str| {
            let place = self.trial.subjects.iter().position(|subject| subject.stack == stack);
            place.map(|place| values(&self.series[place], key)).unwrap_or_default()
        };
        let (upper, lower) = (of(upper), of(lower));
        let pair =
            |(round, value): (&usize, &f64)| lower.get(round).filter(|x| **x != 0.0).map(|x| value / x);
        upper.iter().filter_map(pair).collect()
    }
}

fn values(series: &Series, key: &str) -> BTreeMap<usize, f64> {
    series.answers.iter().filter_map(|(round, answer)| Some((*round, *answer.figures.get(key)?))).collect()
}

fn spread(middle: Option<f64>, min: Option<f64>, max: Option<f64>) -> Option<f64> {
    let middle = middle.filter(|middle| *middle != 0.0)?;
    Some((max? - min?) / middle)
}

fn settings(series: &Series) -> String {
    match &series.left_out {
        Some(why) => why.clone(),
        None => series.answers.values().next_back().map(|answer| answer.settings.clone()).unwrap_or_default(),
    }
}

/// Whether a goal is met; `None` where the stack that it names was left out, or ours was.
fn is_met(goal: Goal, middle: Option<f64>, ratios: &[f64]) -> Option<bool> {
    match goal {
        Goal::TimesOf(factor, _) => Some(median(ratios)? >= factor),
        Goal::AtMostTimesOf(factor, _) => Some(median(ratios)? <= factor),
        Goal::SurelyTimesOf(factor, _) => Some(median_lower_bound(ratios)? >= factor),
        Goal::AtLeast(value) => Some(middle? >= value),
        Goal::AtMost(value) => Some(middle? <= value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::plan::{Place, Program, Subject};

    const fn subject(stack: &'static str, program: Program) -> Subject {
        Subject { stack, program, word: "" }
    }
    const TRIAL: Trial = Trial {
        name: "t",
        conditions: "c",
        place: Place::Alone,
        subjects: &[
            subject("inhost", Program::Ours),
            subject("smoltcp", Program::Smoltcp),
            subject("lwIP", Program::Lwip),
            subject("inhost later", Program::OursWithoutLto),
        ],
        figures: &[
            Figure {
                key: "rate",
                measurement: "rate",
                unit: "Gbit/s",
                goals: &[("inhost", Goal::TimesOf(1.3, "smoltcp")), ("inhost later", Goal::AtLeast(1.0))],
            },
            Figure { key: "p99", measurement: "late", unit: "us", goals: &[("inhost", Goal::AtMost(3.0))] },
        ],
    };

    fn series(rates: &[(usize, f64)], late: bool) -> Series {
        let answer = |rate: f64| {
            let late = late.then_some(("p99".to_owned(), rate / 10.0));
            let figures = [("rate".to_owned(), rate)].into_iter().chain(late).collect();
            Answer { figures, settings: "s".into() }
        };
        Series {
            answers: rates.iter().map(|(round, rate)| (*round, answer(*rate))).collect(),
            left_out: None,
        }
    }
    fn taken() -> Taken<'static> {
        let left_out = |why: &str| Series { left_out: Some(why.into()), ..Series::default() };
        let ours = series(&[(0, 20.0), (1, 30.0), (2, 40.0)], true);
        let smoltcp = series(&[(0, 20.0), (1, 10.0), (2, 10.0)], false);
        Taken { trial: &TRIAL, series: vec![ours, smoltcp, left_out("by --without"), left_out("not built")] }
    }

    #[test]
    fn ratios_are_of_the_same_round_and_the_middle_one_counts() {
        let rows = taken().rows();
        let [ours, smoltcp, lwip, later, late, ..] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((ours.median, ours.min, ours.max, ours.rounds), (Some(30.0), Some(20.0), Some(40.0), 3));
        // 1, 3 and 4; the ratio of the medians, also 3, would hide a round that was slow for both.
        assert_eq!((ours.ratio, ours.met), (Some(3.0), Some(true)));
        assert_eq!(ours.goal.as_deref(), Some("≥ 1.3 × smoltcp"));
        assert_eq!(ours.spread, Some(20.0 / 30.0));
        assert_eq!((smoltcp.median, smoltcp.ratio, smoltcp.goal.clone()), (Some(10.0), Some(3.0), None));
        assert_eq!((lwip.median, lwip.ratio, lwip.met), (None, None, None));
        assert_eq!(lwip.settings, "by --without");
        assert_eq!(
            (later.met, later.goal.as_deref(), later.settings.as_str()),
            (None, Some("≥ 1"), "not built")
        );
        assert_eq!((late.measurement.as_str(), late.median, late.met), ("late", Some(3.0), Some(true)));
    }

    #[test]
    fn a_goal_beside_a_stack_that_was_left_out_is_neither_met_nor_missed() {
        let mut taken = taken();
        taken.series[1] = Series { left_out: Some("by --without".into()), ..Series::default() };
        let ours = &taken.rows()[0];
        assert_eq!((ours.median, ours.ratio, ours.met), (Some(30.0), None, None));
    }

    #[test]
    fn goals_are_missed_too() {
        assert_eq!(is_met(Goal::TimesOf(1.3, "x"), Some(1.0), &[1.2, 1.29, 9.0]), Some(false));
        assert_eq!(is_met(Goal::AtMostTimesOf(1.0, "x"), Some(1.0), &[0.9, 1.1, 1.2]), Some(false));
        assert_eq!(is_met(Goal::SurelyTimesOf(1.0, "x"), None, &[0.8, 0.9, 1.01, 1.02, 1.03]), Some(false));
        assert_eq!(is_met(Goal::SurelyTimesOf(1.0, "x"), None, &[1.01; 5]), Some(true));
        assert_eq!(is_met(Goal::AtLeast(2.0), Some(1.9), &[]), Some(false));
        assert_eq!(is_met(Goal::AtMost(2.0), Some(1.9), &[]), Some(true));
        assert_eq!(is_met(Goal::AtMost(2.0), None, &[]), None);
    }

    #[test]
    fn an_answer_is_read_and_a_row_is_written() {
        let text = r#"{"figures":{"rate":35.2},"settings":"as it comes"}"#;
        let answer: Answer = serde_json::from_str(text).unwrap();
        assert_eq!(answer.figures["rate"], 35.2);
        let row = serde_json::to_value(&taken().rows()[0]).unwrap();
        for key in ["measurement", "stack", "unit", "median", "min", "max", "ratio", "goal", "met"] {
            assert!(!row[key].is_null(), "{key}");
        }
        assert!(serde_json::to_value(&taken().rows()[2]).unwrap()["median"].is_null());
    }
}
