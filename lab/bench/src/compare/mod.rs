//! `make bench`: ours and every peer in turn, on the same links; medians, noise, ratios and goals as a table, a picture
//! and JSON.

mod arena;
mod counted;
mod fit;
mod peers;
mod picture;
mod plan;
mod result;
mod run;
mod table;

pub use arena::{KERNEL, Link, PROCESS, Place};

use crate::figures::chart::{self, Axis, Line};
use crate::figures::machine;
use plan::{TRIALS, Trial};
use result::{Row, Taken};
use run::Extent;
use std::path::Path;

/// Where the last results lie.
const LATEST: &str = "target/bench/latest.json";
const PICTURE: &str = "target/bench/latest.svg";
const OVERLOAD: &str = "target/bench/overload.svg";
/// Where `--publish` puts the pictures.
const PUBLISHED: &str = "docs/figures/bench.svg";
const PUBLISHED_OVERLOAD: &str = "docs/figures/bench-overload.svg";

/// Rounds, and seconds of each run; and both in a quick run.
const FULL: (usize, f64) = (9, 1.0);
const QUICK: (usize, f64) = (2, 0.3);

/// Arguments of `inhost-bench compare`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Only these trials, between commas [default: all]
    #[arg(long, value_name = "TRIAL", value_delimiter = ',')]
    only: Vec<String>,
    /// Rounds [default: 9; 2 with --quick]
    #[arg(long, value_name = "COUNT")]
    rounds: Option<usize>,
    /// Length of each run [default: 1; 0.3 with --quick]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Fewer and shorter rounds
    #[arg(long)]
    quick: bool,
    /// Leave these peers out, between commas
    #[arg(long, value_name = "PEER", value_delimiter = ',')]
    without: Vec<String>,
    /// Say how each stack was set
    #[arg(long)]
    settings: bool,
    /// Put the pictures into docs/figures
    #[arg(long)]
    publish: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// List the trials and measure nothing
    #[arg(long, exclusive = true)]
    list: bool,
}

/// `inhost-bench compare …`
pub fn command(options: Options) -> Result<(), String> {
    if options.list {
        TRIALS.iter().for_each(|trial| println!("{:<20} {}", trial.name, trial.conditions));
        return Ok(());
    }
    let Options { settings, publish, json, .. } = options;
    let (rounds, seconds) = if options.quick { QUICK } else { FULL };
    let extent = Extent {
        only: options.only,
        rounds: options.rounds.unwrap_or(rounds),
        seconds: options.seconds.unwrap_or(seconds),
        without: options.without,
    };
    let trials = chosen(&extent)?;
    let head = format!("{}; {}; commit {}", machine::describe(), machine::today(), machine::commit());
    eprintln!("{head}; {} rounds of {} s", extent.rounds, extent.seconds);
    let taken = run::all(&trials, &extent)?;
    let rows: Vec<Row> = taken.iter().flat_map(Taken::rows).collect();
    let objects = serde_json::to_string_pretty(&rows).map_err(|e| e.to_string())? + "\n";
    put(LATEST, &objects)?;
    let drawn = picture::draw(&rows, "Each stack beside inhost; further right is better");
    put(PICTURE, &drawn)?;
    draw_overload(&rows, OVERLOAD)?;
    if publish {
        put(PUBLISHED, &drawn)?;
        draw_overload(&rows, PUBLISHED_OVERLOAD)?;
    }
    if json {
        print!("{objects}");
    } else {
        print!("{}", table::render(&rows, settings));
        println!(
            "\n{head}; {} rounds of {} s\n{LATEST} and {PICTURE} are written",
            extent.rounds, extent.seconds
        );
    }
    Ok(())
}

/// The curve of goodput over load, where it was measured.
fn draw_overload(rows: &[Row], path: &str) -> Result<(), String> {
    let mut lines: Vec<Line> = Vec::new();
    for row in rows {
        let load = row.measurement.strip_prefix("overload-").and_then(|load| load.parse::<f64>().ok());
        let Some((load, percent)) = load.zip(row.median) else { continue };
        match lines.iter_mut().find(|line| line.name == row.stack) {
            Some(line) => line.points.push((load, percent)),
            None => lines.push(Line { name: row.stack.clone(), points: vec![(load, percent)], dots: false }),
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    let axis = |name: &str, range| Axis { name: name.into(), range, logarithmic: false };
    let axes = [
        axis("offered load, times the capacity", (1.0, 4.0)),
        axis("worked off, % of the capacity", (0.0, 120.0)),
    ];
    chart::lines(path, "Datagrams worked off under overload", axes, &lines, None)
}

fn chosen(extent: &Extent) -> Result<Vec<&'static Trial>, String> {
    for name in &extent.without {
        if !["smoltcp", "netstack", "gvisor", "lwip", "bare"].contains(&name.as_str()) {
            return Err(format!(
                "{name:?} is not a peer that can be left out; smoltcp, netstack, gvisor, lwip and bare can"
            ));
        }
    }
    for name in &extent.only {
        if !TRIALS.iter().any(|trial| trial.name == name) {
            let names: Vec<&str> = TRIALS.iter().map(|trial| trial.name).collect();
            return Err(format!("no trial is called {name:?}; there are {}", names.join(", ")));
        }
    }
    let is_chosen =
        |trial: &&Trial| extent.only.is_empty() || extent.only.iter().any(|name| name == trial.name);
    Ok(TRIALS.iter().filter(is_chosen).collect())
}

fn put(path: &str, text: &str) -> Result<(), String> {
    let folder = Path::new(path).parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    std::fs::write(path, text).map_err(|e| format!("{path}: {e}"))
}
