//! Experiments: small files of TOML that are run, resumed, compared with what their sources print, and reported.
//!
//! - [`experiment`]: what a file says: a setup, what varies, what the source prints, what is drawn;
//! - [`tables`]: the figures of the four papers, which files name by their path;
//! - [`kinds`]: what a setup is run on: machines of then and results of the field in virtual time, this machine by inett and by
//!   transactions of protocols, or this program's own code;
//! - [`store`]: results in SQLite; [`runner`]: points on all cores, each written down as it ends;
//! - [`compare`]: ours beside the paper's; [`fit`]: costs as sums; [`report`]: pages and curves.
//!
//! ```
//! use inhost_lab::experiment::Experiment;
//! let experiment = Experiment::from_toml("echo", r#"
//!     title = "A character echoed between two PCs"
//!     source = "MIT/LCS/TM-233, table 6-4"
//!     kind = "machines"
//!     [setup]
//!     machine = { kind = "ibm-pc" }
//!     link = { kind = "llp", bits_per_second = 9600 }
//!     program = { kind = "echo", count = 10 }
//!     [[vary]]
//!     "link.bits_per_second" = [9600, 19200]
//!     [[compare]]
//!     measure = "echo_ms"
//!     paper = "mit.table_6_4.measured"
//!     along = "mit.table_6_4.measured_bps"
//!     scale = 1000
//!     tolerance_percent = 10
//! "#)?;
//! assert_eq!(experiment.points(), 2);
//! assert_eq!(experiment.point(1).label, "bits per second 19200");
//! # Ok::<(), inhost_lab::experiment::ExperimentError>(())
//! ```
#![forbid(unsafe_code)]

mod code;
pub mod compare;
pub mod experiment;
pub mod fit;
pub mod kinds;
pub mod report;
pub mod runner;
pub mod store;
pub mod tables;

/// The experiments that come with the program: their names and texts, in the order in which they are listed.
pub const EXPERIMENTS: &[(&str, &str)] = &include!("../experiments/list.in");
