//! The verdict of each cell, as a table, as JSON and as pictures.

use super::cell::{Cell, Loss};
use super::rows::Rows;
use super::run::Row;
use crate::figures::chart::{self, Mark, Panel};
use crate::figures::statistics::{Histogram, median, median_lower_bound};
use serde::Serialize;
use std::fmt::Write;

/// The median ratio of the rates may lie so low, with 95 % confidence.
const LEAST_RATIO: f64 = 0.9;
/// The 99th percentile of the gaps may be so many times the kernel's.
const MOST_GAP_RATIO: f64 = 1.2;

/// What a cell shows.
#[derive(Clone, Serialize)]
pub struct Verdict {
    cell: String,
    #[serde(skip)]
    of: Cell,
    pairs: usize,
    kernel_mbit: f64,
    ours_mbit: f64,
    /// The median, and its bound, of ours / the kernel's with what was lost the same.
    ratio: f64,
    ratio_lower_bound: f64,
    kernel_gap_ms: f64,
    ours_gap_ms: f64,
    gap_ratio: f64,
    /// The kernel's BBR, as information: its median rate.
    bbr_mbit: Option<f64>,
    incomplete: usize,
    met: bool,
}

/// Those of all cells that have rows.
pub struct Verdicts(Vec<Verdict>);

impl Verdicts {
    /// Compares what there is.
    pub fn of(cells: &[Cell], kernel: &Rows, ours: &Rows) -> Verdicts {
        Verdicts(cells.iter().filter_map(|cell| verdict(cell, kernel, ours)).collect())
    }
    /// For a person.
    pub fn to_table(&self) -> String {
        let mut table = String::new();
        let _ = writeln!(
            table,
            "{:<15} {:>5} {:>9} {:>9} {:>6} {:>6}  {:>8} {:>8} {:>6}  {:>7}  met",
            "cell", "pairs", "kernel", "inhost", "ratio", "bound", "gap k.", "gap i.", "ratio", "BBR"
        );
        let _ = writeln!(
            table,
            "{:<15} {:>5} {:>9} {:>9} {:>6} {:>6}  {:>8} {:>8} {:>6}  {:>7}",
            "", "", "Mbit/s", "Mbit/s", "", "95 %", "p99 ms", "p99 ms", "", "Mbit/s"
        );
        for v in &self.0 {
            let bbr = v.bbr_mbit.map_or_else(|| "-".into(), |mbit| format!("{mbit:.2}"));
            let met = if v.met { "yes" } else { "NO" };
            let _ = writeln!(
                table,
                "{:<15} {:>5} {:>9.2} {:>9.2} {:>6.2} {:>6.2}  {:>8.2} {:>8.2} {:>6.2}  {bbr:>7}  {met}{}",
                v.cell,
                v.pairs,
                v.kernel_mbit,
                v.ours_mbit,
                v.ratio,
                v.ratio_lower_bound,
                v.kernel_gap_ms,
                v.ours_gap_ms,
                v.gap_ratio,
                if v.incomplete > 0 { format!(", {} not finished", v.incomplete) } else { String::new() }
            );
        }
        let met = self.0.iter().filter(|v| v.met).count();
        let _ = writeln!(
            table,
            "{met} of {} cells met: ratio's bound at least {LEAST_RATIO}, gaps at most {MOST_GAP_RATIO} times",
            self.0.len()
        );
        table
    }
    /// For a program.
    pub fn to_json(&self) -> Result<String, String> {
        serde_json::to_string_pretty(&self.0).map_err(|e| e.to_string())
    }
    /// Draws both pictures, where all cells are there.
    pub fn draw(&self) -> Result<(), String> {
        if self.0.is_empty() {
            return Ok(());
        }
        let ratio = |v: &Verdict| (v.ratio, Some(v.ratio_lower_bound));
        chart::categories(
            "docs/figures/kernel-rate.svg",
            "Rate of inhost / rate of Linux CUBIC (median; whisker: 95 % lower bound)",
            &self.panels(ratio),
            &[LEAST_RATIO],
        )?;
        chart::categories(
            "docs/figures/kernel-gaps.svg",
            "99th percentile of gaps in delivery, inhost / Linux CUBIC",
            &self.panels(|v| (v.gap_ratio, None)),
            &[MOST_GAP_RATIO],
        )
    }
    fn panels(&self, value: impl Fn(&Verdict) -> (f64, Option<f64>)) -> Vec<Panel> {
        let mut panels: Vec<Panel> = Vec::new();
        for v in &self.0 {
            let title = format!("{} Mbit/s", v.of.rate_mbit);
            if panels.last().is_none_or(|panel| panel.title != title) {
                panels.push(Panel { title, marks: Vec::new() });
            }
            let (value, lower) = value(v);
            let series = match v.of.loss {
                Loss::None => "no loss".into(),
                Loss::Random(_) => format!("{} % random", v.of.loss.probability() * 100.0),
                Loss::Bursty(_) => format!("{} % in bursts", v.of.loss.probability() * 100.0),
            };
            let group = format!("{} ms", v.of.round_trip.as_millis());
            if let Some(panel) = panels.last_mut() {
                panel.marks.push(Mark { group, series, value, lower });
            }
        }
        panels
    }
}

fn verdict(cell: &Cell, kernel: &Rows, ours: &Rows) -> Option<Verdict> {
    let name = cell.name();
    let pairs: Vec<(&Row, &Row)> = ours
        .of(&name, "inhost-cubic")
        .filter_map(|row| Some((kernel.find(&name, "linux-cubic", row.pair)?, row)))
        .collect();
    let mbit = |row: &Row| row.bits_per_second() / 1e6;
    let ratios: Vec<f64> = pairs.iter().map(|(kernel, ours)| mbit(ours) / mbit(kernel)).collect();
    let gap_ms = |rows: &mut dyn Iterator<Item = &Row>| {
        let mut all = Histogram::default();
        rows.for_each(|row| all.merge(&row.gaps));
        Some(all.quantile(0.99)? / 1e6)
    };
    let kernel_gap_ms = gap_ms(&mut pairs.iter().map(|pair| pair.0))?;
    let ours_gap_ms = gap_ms(&mut pairs.iter().map(|pair| pair.1))?;
    let bbr: Vec<f64> = kernel.of(&name, "linux-bbr").map(mbit).collect();
    let ratio_lower_bound = median_lower_bound(&ratios)?;
    let gap_ratio = ours_gap_ms / kernel_gap_ms;
    Some(Verdict {
        cell: cell.name(),
        of: *cell,
        pairs: pairs.len(),
        kernel_mbit: median(&pairs.iter().map(|pair| mbit(pair.0)).collect::<Vec<_>>())?,
        ours_mbit: median(&pairs.iter().map(|pair| mbit(pair.1)).collect::<Vec<_>>())?,
        ratio: median(&ratios)?,
        ratio_lower_bound,
        kernel_gap_ms,
        ours_gap_ms,
        gap_ratio,
        bbr_mbit: median(&bbr),
        incomplete: pairs.iter().filter(|(kernel, ours)| !kernel.complete || !ours.complete).count(),
        met: ratio_lower_bound >= LEAST_RATIO && gap_ratio <= MOST_GAP_RATIO,
    })
}
