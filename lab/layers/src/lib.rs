//! Where the nanoseconds of a segment go: the time of a running host by layer, by direction and by segment size.
//!
//! VPI's thesis took a timestamp at every boundary between driver, IP, TCP, copy, checksum, timers and application
//! (figures 13 to 15, table 10). A [`Meter`] does the same to a host that runs: it is a watch of its runtime
//! ([`inhost_runtime::Runtime::watch_layers`]), which is told in the rounds that it chooses. The [`Account`] below it is
//! pure: each nanosecond of a round belongs to one layer. A [`Report`] is what it says, as JSON and as a table; [`draw`] has
//! the pictures.
//!
//! ```
//! use inhost_event::Layer;
//! use inhost_layers::{Account, Mode, Report};
//!
//! let mut account = Account::new(0);
//! account.begin(0);
//! account.enter(Layer::Idle, 100);
//! account.end(1_000);
//! let report = Report::of(Mode::Full, 1, &account);
//! assert_eq!((report.rounds, report.total_ns), (1, 1_000));
//! assert!(report.text().contains("90 % idle"));
//! ```
#![forbid(unsafe_code)]

mod account;
pub mod draw;
mod meter;
mod report;
mod ring;
mod size;

pub use account::{Account, Direction, Row, Times};
pub use meter::{MOST_TRANSITIONS, Meter, Mode, ONE_ROUND_IN};
pub use report::{LayerTime, Report, SegmentTime, StackTime, TransitionSeen};
pub use ring::{Ring, Transition};
pub use size::{Segment, Size};
