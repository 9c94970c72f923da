//! Repetitions of all structures in turn, and the table of what they showed.

use crate::{Load, SEGMENT_BYTES, Structure, cpu_ns};
use inhost_inett::statistics::Estimate;
use inhost_runtime::Clock;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Plan {
    /// Repetitions of everything.
    pub repetitions: u32,
    /// Bare dispatches of one repetition.
    pub dispatches: u64,
    /// Characters typed in one repetition.
    pub echoes: u64,
    /// Writes of the bulk transfer in one repetition, 16 full segments each.
    pub writes: u64,
}

impl Plan {
    /// What `make structures-bench` measures: some seconds a repetition.
    pub const FULL: Plan = Plan { repetitions: 20, dispatches: 100_000, echoes: 20_000, writes: 5_000 };
    /// As little as shows that it works.
    pub const QUICK: Plan = Plan { repetitions: 3, dispatches: 2_000, echoes: 500, writes: 200 };
}

/// A line of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)] // The title says it.
pub enum Figure {
    Dispatch,
    DispatchCpu,
    EchoMedian,
    EchoTail,
    EchoCpu,
    EchoDispatches,
    Rate,
    SegmentCpu,
    SegmentDispatches,
    Acknowledgments,
    Resident,
    EchoInstructions,
    SegmentInstructions,
}

impl Figure {
    /// All of them, in the order of the table.
    pub const ALL: [Figure; 13] = [
        Figure::Dispatch,
        Figure::DispatchCpu,
        Figure::EchoMedian,
        Figure::EchoTail,
        Figure::EchoCpu,
        Figure::EchoDispatches,
        Figure::Rate,
        Figure::SegmentCpu,
        Figure::SegmentDispatches,
        Figure::Acknowledgments,
        Figure::Resident,
        Figure::EchoInstructions,
        Figure::SegmentInstructions,
    ];
    /// Its key in JSON, its title in the table, and how many decimals it is shown with.
    fn words(self) -> (&'static str, &'static str, usize) {
        match self {
            Figure::Dispatch => ("dispatch_ns", "bare dispatch, ns", 1),
            Figure::DispatchCpu => ("dispatch_cpu_ns", "bare dispatch, processor ns", 1),
            Figure::EchoMedian => ("echo_median_us", "echo, median, µs", 2),
            Figure::EchoTail => ("echo_p99_us", "echo, 99th percentile, µs", 2),
            Figure::EchoCpu => ("echo_cpu_us", "echo, processor µs", 2),
            Figure::EchoDispatches => ("echo_dispatches", "echo, dispatches", 2),
            Figure::Rate => ("bulk_gbit_s", "bulk, Gbit/s", 2),
            Figure::SegmentCpu => ("segment_cpu_ns", "bulk segment, processor ns", 0),
            Figure::SegmentDispatches => ("segment_dispatches", "bulk segment, dispatches", 3),
            Figure::Acknowledgments => ("acks_per_100_segments", "bulk, bare ACKs for 100 segments", 1),
            Figure::Resident => ("resident_kib", "resident, KiB a host", 0),
            Figure::EchoInstructions => ("echo_instructions", "echo, instructions", 0),
            Figure::SegmentInstructions => ("segment_instructions", "bulk segment, instructions", 0),
        }
    }
    /// Its key in JSON.
    pub fn key(self) -> &'static str {
        self.words().0
    }
}

/// Values of each figure under each structure, one for each repetition.
#[derive(Clone, Default, Debug)]
pub struct Samples(BTreeMap<(Figure, Structure), Vec<f64>>);

/// Estimates by structure and figure, as they are written as JSON.
#[derive(Serialize)]
struct Report {
    plan: Plan,
    structures: BTreeMap<&'static str, BTreeMap<&'static str, Estimate>>,
}

impl Samples {
    /// Adds a value.
    pub fn add(&mut self, figure: Figure, structure: Structure, value: f64) {
        self.0.entry((figure, structure)).or_default().push(value);
    }
    /// Mean and interval of a figure; `None` where it was not measured.
    pub fn estimate(&self, figure: Figure, structure: Structure) -> Option<Estimate> {
        Estimate::of(self.0.get(&(figure, structure))?)
    }
    /// Measures each structure once, beginning with another one each `turn`.
    ///
    /// # Errors
    /// When a run fails, or did not carry what it should.
    pub fn repeat(&mut self, plan: &Plan, turn: usize) -> Result<(), String> {
        for place in 0..Structure::ALL.len() {
            let structure = Structure::ALL[(place + turn) % Structure::ALL.len()];
            let named = |why| format!("{}: {why}", structure.name());
            self.dispatch(structure, plan.dispatches).map_err(named)?;
            self.echo(structure, plan.echoes).map_err(named)?;
            self.bulk(structure, plan.writes).map_err(named)?;
        }
        Ok(())
    }
    fn dispatch(&mut self, structure: Structure, times: u64) -> Result<(), String> {
        let clock = Clock::start();
        let (began, began_cpu) = (clock.now(), cpu_ns());
        let count = structure.dispatch(times)? as f64;
        self.add(Figure::Dispatch, structure, clock.now().since(began).as_nanos() as f64 / count);
        self.add(Figure::DispatchCpu, structure, (cpu_ns() - began_cpu) as f64 / count);
        Ok(())
    }
    fn echo(&mut self, structure: Structure, count: u64) -> Result<(), String> {
        let outcome = structure.run(Load::Echo(count))?;
        outcome.check()?;
        let times = outcome.times.percentiles().ok_or("no character was typed")?;
        self.add(Figure::EchoMedian, structure, times.p50_us);
        self.add(Figure::EchoTail, structure, times.p99_us);
        self.add(Figure::EchoCpu, structure, outcome.span.cpu_ns as f64 / 1e3 / count as f64);
        self.add(Figure::EchoDispatches, structure, outcome.dispatches as f64 / count as f64);
        Ok(())
    }
    fn bulk(&mut self, structure: Structure, writes: u64) -> Result<(), String> {
        let load = Load::Bulk(writes);
        let outcome = structure.run(load)?;
        outcome.check()?;
        let segments = load.units() as f64;
        let bits = segments * SEGMENT_BYTES as f64 * 8.0;
        self.add(Figure::Rate, structure, bits / outcome.span.wall_ns as f64);
        self.add(Figure::SegmentCpu, structure, outcome.span.cpu_ns as f64 / segments);
        self.add(Figure::SegmentDispatches, structure, outcome.dispatches as f64 / segments);
        let bare = outcome.sent[1].bare_segments as f64;
        self.add(Figure::Acknowledgments, structure, 100.0 * bare / segments);
        Ok(())
    }
    /// The table, as Markdown: a row for each figure that was measured, means with the half width of their 95 % intervals.
    pub fn table(&self) -> String {
        let names = Structure::ALL.map(Structure::name);
        let mut text = format!("| | {} |\n|---|---|---|---|---|\n", names.join(" | "));
        for figure in Figure::ALL {
            let (_, title, decimals) = figure.words();
            let cells = Structure::ALL.map(|structure| self.cell(figure, structure, decimals));
            if cells.iter().any(|cell| cell != "-") {
                let _ = writeln!(text, "| {title} | {} |", cells.join(" | "));
            }
        }
        text
    }
    /// A figure as a multiple of the round's, repetition by repetition: what else the machine does weighs less in it.
    ///
    /// `None` where the two were not measured equally often.
    pub fn beside_round(&self, figure: Figure, structure: Structure) -> Option<Estimate> {
        let values = self.0.get(&(figure, structure))?;
        let rounds = self.0.get(&(figure, Structure::Round))?;
        let ratios: Vec<f64> = values.iter().zip(rounds).map(|(value, round)| value / round).collect();
        Estimate::of(&ratios).filter(|_| values.len() == rounds.len())
    }
    /// The table of [`Samples::beside_round`], as Markdown.
    pub fn ratios(&self) -> String {
        let mut text =
            String::from("| beside the round | processes | procedures | tasks |\n|---|---|---|---|\n");
        for figure in [Figure::EchoMedian, Figure::EchoCpu, Figure::Rate, Figure::SegmentCpu] {
            let cells = [Structure::Processes, Structure::Procedures, Structure::Tasks]
                .map(|structure| words_of(self.beside_round(figure, structure), 2));
            let _ = writeln!(text, "| {} | {} |", figure.words().1, cells.join(" | "));
        }
        text
    }
    fn cell(&self, figure: Figure, structure: Structure, decimals: usize) -> String {
        words_of(self.estimate(figure, structure), decimals)
    }
    /// The same as JSON, with counts and deviations.
    ///
    /// # Errors
    /// When a number has no JSON.
    pub fn json(&self, plan: Plan) -> Result<String, String> {
        let of = |structure| {
            let estimates = Figure::ALL.into_iter().filter_map(|figure| {
                let estimate = self.estimate(figure, structure)?;
                Some((figure.key(), estimate))
            });
            (structure.name(), estimates.collect())
        };
        let report = Report { plan, structures: Structure::ALL.map(of).into() };
        serde_json::to_string_pretty(&report).map_err(|e| e.to_string())
    }
}

fn words_of(estimate: Option<Estimate>, decimals: usize) -> String {
    match estimate {
        Some(Estimate { mean, half_width: Some(half), .. }) => {
            format!("{mean:.decimals$} ± {half:.decimals$}")
        }
        Some(Estimate { mean, .. }) => format!("{mean:.decimals$}"),
        None => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_taken_repetition_by_repetition() {
        let mut samples = Samples::default();
        for (tasks, round) in [(10.0, 5.0), (40.0, 20.0)] {
            samples.add(Figure::EchoCpu, Structure::Tasks, tasks);
            samples.add(Figure::EchoCpu, Structure::Round, round);
        }
        let ratio = samples.beside_round(Figure::EchoCpu, Structure::Tasks).unwrap();
        assert_eq!((ratio.mean, ratio.deviation), (2.0, 0.0));
        samples.add(Figure::EchoCpu, Structure::Tasks, 1.0);
        assert_eq!(samples.beside_round(Figure::EchoCpu, Structure::Tasks), None);
    }

    #[test]
    fn a_table_has_means_with_their_intervals() {
        let mut samples = Samples::default();
        [9.0, 10.0, 11.0].into_iter().for_each(|ns| samples.add(Figure::Dispatch, Structure::Tasks, ns));
        samples.add(Figure::Dispatch, Structure::Round, 5.0);
        let table = samples.table();
        assert!(table.ends_with("| bare dispatch, ns | - | - | 10.0 ± 2.5 | 5.0 |\n"), "{table}");
        let json: serde_json::Value = serde_json::from_str(&samples.json(Plan::QUICK).unwrap()).unwrap();
        assert_eq!(json["structures"]["tasks"]["dispatch_ns"]["mean"], 10.0);
        assert_eq!(json["plan"]["repetitions"], 3);
    }
}
