//! Command-line arguments of `inhost lab`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// What `inhost lab` does.
#[derive(Subcommand, Debug)]
pub enum Lab {
    /// List the experiments, and how much of each was measured
    #[command(after_help = LIST_EXAMPLES)]
    List {
        #[command(flatten)]
        results: LabResults,
    },
    /// Run experiments; what was measured before is not measured again
    #[command(after_help = RUN_EXAMPLES)]
    Run(LabRun),
    /// Show results beside what their sources print; fails where a judged figure is missed
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare {
        /// Experiments, by name or file [default: all that were measured]
        #[arg(value_name = "EXPERIMENT")]
        experiments: Vec<String>,
        #[command(flatten)]
        results: LabResults,
    },
    /// Print all runs of an experiment as CSV
    #[command(after_help = EXPORT_EXAMPLES)]
    Export {
        /// The experiment, by name or file
        #[arg(value_name = "EXPERIMENT")]
        experiment: String,
        #[arg(long, value_name = "FILE", default_value = "lab.sqlite")]
        /// The file of results
        results: PathBuf,
    },
    /// Write a page in HTML and one in Markdown, with curves as SVG and PNG
    #[command(after_help = REPORT_EXAMPLES)]
    Report {
        /// Experiments, by name or file [default: all that were measured]
        #[arg(value_name = "EXPERIMENT")]
        experiments: Vec<String>,
        /// The folder for them
        #[arg(long, short, value_name = "FOLDER", default_value = "lab-report")]
        out: PathBuf,
        #[arg(long, value_name = "FILE", default_value = "lab.sqlite")]
        /// The file of results
        results: PathBuf,
    },
    /// Bring the results of several machines together
    #[command(after_help = GATHER_EXAMPLES)]
    Gather {
        /// Files of results, such as those of --part
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        #[arg(long, value_name = "FILE", default_value = "lab.sqlite")]
        /// The file that takes them
        results: PathBuf,
    },
    /// Print an experiment's file, to begin one's own with
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        /// The experiment, by name or file
        #[arg(value_name = "EXPERIMENT")]
        experiment: String,
    },
}

/// Where results are.
#[derive(Args, Debug)]
pub struct LabResults {
    /// The file of results
    #[arg(long, value_name = "FILE", default_value = "lab.sqlite")]
    pub results: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `inhost lab run`.
#[derive(Args, Debug)]
pub struct LabRun {
    /// Experiments, by name or file, or sets: papers, today, classic
    #[arg(value_name = "EXPERIMENT", required = true)]
    pub experiments: Vec<String>,
    /// The file of results
    #[arg(long, value_name = "FILE", default_value = "lab.sqlite")]
    pub results: PathBuf,
    /// Runs at a time, of those in virtual time [default: one a core]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: Option<u16>,
    /// Measure again what was measured before
    #[arg(long)]
    pub again: bool,
    /// Only this part of the runs, such as 0/4, for several machines
    #[arg(long, value_name = "PART/PARTS", value_parser = part)]
    pub part: Option<(usize, usize)>,
    /// Where to run: here, or at a cluster with Slurm, as an array of jobs
    #[arg(long, value_name = "WHERE", default_value = "here", conflicts_with = "part")]
    pub on: LabPlace,
    /// Jobs at the cluster
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub jobs: u16,
    /// Say less
    #[arg(long, short)]
    pub quiet: bool,
}

/// Where experiments run.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum LabPlace {
    /// This machine
    Here,
    /// A cluster with Slurm
    Slurm,
}

fn part(text: &str) -> Result<(usize, usize), String> {
    let found =
        text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
    found.filter(|(part, parts)| part < parts).ok_or_else(|| "give PART/PARTS, such as 0/4".to_owned())
}

/// Commands that work as they stand.
pub const LAB_EXAMPLES: &str = "\
Examples:
  inhost lab list
  inhost lab run mit-6-4
  inhost lab run papers
      all that the four papers measured, on the machines of then, in virtual time
  inhost lab compare
  inhost lab report --out lab-report
  inhost lab show mit-6-4
      its file, to begin one of your own with
Results are kept in lab.sqlite of the current folder. docs/lab.md tells how an experiment is written.";
const LIST_EXAMPLES: &str = "\
Examples:
  inhost lab list
  inhost lab list --json";
const RUN_EXAMPLES: &str = "\
Examples:
  inhost lab run mit-6-4
  inhost lab run papers today
  inhost lab run mine.toml --workers 2
  inhost lab run mine.toml --on slurm --jobs 8
      as an array of jobs, whose results are gathered
  inhost lab run mine.toml --part 0/2 --results half.sqlite
      the half of it; inhost lab gather brings such files together";
const COMPARE_EXAMPLES: &str = "\
Examples:
  inhost lab compare mit-6-4
  inhost lab compare --json";
const EXPORT_EXAMPLES: &str = "\
Examples:
  inhost lab export mit-6-4";
const REPORT_EXAMPLES: &str = "\
Examples:
  inhost lab report
  inhost lab report mit-6-4 --out mit";
const GATHER_EXAMPLES: &str = "\
Examples:
  inhost lab gather half.sqlite other.sqlite";
const SHOW_EXAMPLES: &str = "\
Examples:
  inhost lab show mit-6-4";
