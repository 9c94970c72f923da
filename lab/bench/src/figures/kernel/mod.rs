//! Against the kernel: the same transfers through the same emulated links, sent by ours and by the kernel's TCP, and
//! received by the kernel in another namespace.

mod capacity;
mod capture;
pub mod cell;
pub mod drops;
pub mod emulator;
pub mod place;
mod report;
mod rows;
pub mod run;
mod schedule;
pub mod subject;
pub mod wire;

use super::machine;
use super::page;
use cell::Cell;
use emulator::Emulator;
use report::Verdicts;
use rows::Rows;
use schedule::{Job, Share};
use std::io::Write;
use std::path::PathBuf;
use subject::Subject;

/// Where the committed rows are.
const ROWS: &str = "lab/bench/figures";
/// Pairs of a cell.
const PAIRS: u32 = 20;
/// What all runs at a time may carry: two paths of the faster rate.
const SHARE_MBIT: f64 = 200.0;
/// Runs at a time.
const RUNS: usize = 20;

/// The real-time priority of senders and receivers, ours and the kernel's.
pub const PRIORITY: u32 = 10;

/// What the command is asked for.
struct Plan {
    cells: Vec<Cell>,
    pairs: u32,
    share: Share,
    subjects: Vec<Subject>,
    again: bool,
    captures: Option<PathBuf>,
    table_only: bool,
    json: bool,
}

/// Arguments of `inhost-bench figures kernel`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Only these cells, between commas, such as 10M-20ms-1r; a * stands for any part [default: all]
    #[arg(long, value_name = "CELL", value_delimiter = ',')]
    cells: Vec<String>,
    /// Pairs of a cell
    #[arg(long, value_name = "COUNT", default_value_t = PAIRS)]
    pairs: u32,
    /// Only ours, or the kernel with this congestion control, such as cubic or bbr [default: ours and cubic]
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// Measure anew what is in the rows
    #[arg(long)]
    again: bool,
    /// Measure nothing: the table of what was measured
    #[arg(long)]
    table: bool,
    /// What all runs at a time may carry
    #[arg(long, value_name = "MBIT", default_value_t = SHARE_MBIT)]
    share: f64,
    /// Runs at a time
    #[arg(long, value_name = "COUNT", default_value_t = RUNS)]
    runs: usize,
    /// Keep a capture of each run in this folder
    #[arg(long, value_name = "FOLDER")]
    capture: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `inhost-bench figures kernel …`
pub fn command(options: Options) -> Result<(), String> {
    let subjects = match options.subject.as_deref() {
        None => vec![Subject::Kernel("cubic".into()), Subject::Ours],
        Some("ours") => vec![Subject::Ours],
        Some(congestion) => vec![Subject::Kernel(congestion.into())],
    };
    let plan = Plan {
        cells: cell::all().into_iter().filter(|cell| cell.is_chosen(&options.cells)).collect(),
        pairs: options.pairs,
        share: Share { bits_per_second: options.share * 1e6, runs: options.runs },
        subjects,
        captures: options.capture,
        again: options.again,
        table_only: options.table,
        json: options.json,
    };
    if plan.cells.is_empty() {
        return Err(format!("no cell is called that; there are {}", names(&cell::all())));
    }
    let mut files = Files::open()?;
    if !plan.table_only {
        measure(&plan, &mut files)?;
    }
    let verdicts = Verdicts::of(&plan.cells, &files.kernel, &files.ours);
    match plan.json {
        true => println!("{}", verdicts.to_json()?),
        false => print!("{}", verdicts.to_table()),
    }
    // The page shows all that there is, whatever was chosen now.
    let all = Verdicts::of(&cell::all(), &files.kernel, &files.ours);
    page::put("kernel", &all.to_table())?;
    all.draw()
}

fn names(cells: &[Cell]) -> String {
    cells.iter().map(Cell::name).collect::<Vec<_>>().join(" ")
}

/// The kernel's rows, which are kept, and ours, which are taken anew when we change.
struct Files {
    kernel: Rows,
    ours: Rows,
}

impl Files {
    fn open() -> Result<Files, String> {
        let folder = PathBuf::from(ROWS);
        if !folder.parent().is_some_and(|bench| bench.is_dir()) {
            return Err("run from the root of the workspace".into());
        }
        let open = |name: &str| Rows::open(folder.join(name));
        Ok(Files { kernel: open("kernel.jsonl")?, ours: open("inhost.jsonl")? })
    }
    fn for_subject(&mut self, subject: &Subject) -> &mut Rows {
        match subject {
            Subject::Kernel(_) => &mut self.kernel,
            Subject::Ours => &mut self.ours,
        }
    }
}

/// Runs what is missing, after the emulator has shown what it carries.
fn measure(plan: &Plan, files: &mut Files) -> Result<(), String> {
    if plan.again {
        for subject in &plan.subjects {
            let (name, cells) = (subject.name(), plan.cells.iter().map(Cell::name).collect::<Vec<_>>());
            files.for_subject(subject).forget(|row| row.subject == name && cells.contains(&row.cell))?;
        }
    }
    let mut jobs = Vec::new();
    for cell in &plan.cells {
        for pair in 0..plan.pairs {
            for subject in &plan.subjects {
                if files.for_subject(subject).find(&cell.name(), &subject.name(), pair).is_none() {
                    jobs.push(Job { cell: *cell, pair, subject: subject.clone() });
                }
            }
        }
    }
    if jobs.is_empty() {
        return Ok(());
    }
    machine::run_in_real_time(rustix::thread::gettid(), PRIORITY);
    eprintln!("{}, {}", machine::describe(), machine::today());
    let emulator = Emulator::start().map_err(|e| e.to_string())?;
    let mut rates: Vec<u64> = jobs.iter().map(|job| job.cell.rate_mbit).collect();
    rates.dedup();
    let shown = rates.iter().map(|rate| capacity::prove(&emulator, *rate, plan.share));
    let table = capacity::to_table(&shown.collect::<Result<Vec<_>, String>>()?)?;
    eprint!("{table}");
    page::put("capacity", &table)?;
    let (all, mut ended) = (jobs.len(), 0);
    schedule::run_all(&emulator, jobs, plan.share, plan.captures.as_deref(), |row| {
        ended += 1;
        eprint!(
            "\r{ended} of {all}: {} {} {:.2} Mbit/s\x1b[K",
            row.cell,
            row.subject,
            row.bits_per_second() / 1e6
        );
        let _ = std::io::stderr().flush();
        let rows = if row.subject.starts_with("linux") { &mut files.kernel } else { &mut files.ours };
        rows.add(row)
    })?;
    eprintln!();
    Ok(())
}
