//! A grid of plans, measured point by point; another run goes on where this one ended.

use crate::args::Inett;
use crate::failure::Failure;
use crate::output::{counted, show};
use inhost_base::Endpoint;
use inhost_common::Cleaner;
use inhost_inett::driver::{Stop, Swept, run_sweep};
use inhost_inett::face::Face;
use inhost_inett::result::Outcome;
use inhost_inett::sweep::{Log, Record, Sweep};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A grid, and where its points are written down.
pub struct Grid {
    sweep: Sweep,
    log: PathBuf,
}

impl Grid {
    /// Reads the grid's file.
    pub fn read(path: &Path, log: Option<&Path>) -> Result<Grid, Failure> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::operation(format!("cannot read {shown}: {e}")))?;
        let sweep = Sweep::from_toml(&text).map_err(|e| Failure::usage(format!("{shown}: {e}")))?;
        let log = log.map_or_else(|| path.with_added_extension("jsonl"), Path::to_owned);
        Ok(Grid { sweep, log })
    }
}

/// Measures what is missing, and shows all.
pub async fn run<F: Face>(
    arguments: &Inett,
    face: &F,
    server: Endpoint,
    grid: &Grid,
    stop: &Stop,
) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::operation(format!("{}: {e}", grid.log.display()));
    let mut log = Log::open(&grid.log).map_err(failed)?;
    let is_quiet = arguments.json || arguments.csv;
    let mut told = |swept: Swept<'_>| match swept {
        Swept::Begins { number, of, point } => {
            eprintln!("{number} of {of}: {}", point.name);
        }
        Swept::Done(record) if !is_quiet => show(&line(record, "")),
        Swept::WasDone(record) if !is_quiet => show(&line(record, ", was measured before")),
        _ => {}
    };
    let done = run_sweep(face, server, &grid.sweep, &mut log, stop, &mut told).await;
    drop(log);
    let text = std::fs::read_to_string(&grid.log).map_err(failed)?;
    let records: BTreeMap<String, Record> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Record>(line).ok())
        .map(|record| (record.point.clone(), record))
        .collect();
    let of_grid = || grid.sweep.points().iter().filter_map(|point| records.get(&point.name));
    if arguments.json {
        show(&format!("{}\n", serde_json::json!(of_grid().collect::<Vec<_>>())));
    }
    if arguments.csv {
        show(&format!("point,{}\n", Outcome::CSV_HEAD));
        for record in of_grid() {
            let name = record.point.replace('"', "\"\"");
            let lines = record.outcome.as_ref().map(Outcome::csv).unwrap_or_default();
            show(&lines.lines().map(|line| format!("\"{name}\",{line}\n")).collect::<String>());
        }
    }
    done.map_err(|e| Failure::operation(format!("{server}: {e}")))?;
    match grid.sweep.points().len() - of_grid().count() {
        0 => Ok(()),
        left => {
            let left = counted(left as u64, "point");
            Err(Failure::operation(format!("{left} left to measure; the same command goes on")))
        }
    }
}

/// A point for people; `when` stands behind its figure.
fn line(record: &Record, when: &str) -> String {
    match &record.outcome {
        Some(outcome) => {
            let figure = outcome.figure_text().unwrap_or_else(|| "nothing was measured".into());
            let mut limits = outcome.repetitions.iter().filter_map(|repetition| repetition.limit.as_ref());
            let why = limits.next_back().map_or_else(String::new, |limit| format!(". {}", limit.why));
            format!("{}: {figure}{when}{why}\n", record.point)
        }
        None => {
            let why = record.error.as_deref().unwrap_or_default();
            format!("{}: failed: {}\n", record.point, Cleaner::line(why.as_bytes()))
        }
    }
}
