//! The sender: takes what is due from the queue, finds its servers, and notes what came of it.

mod config;
mod handle;
mod outcome;
mod reach;
mod report;
mod route;
mod run;

pub use config::SenderConfig;
pub use handle::{Mailboxes, Sender, Sign};
pub use report::{Report, ReportKind, Reported};
pub(crate) use route::wish;
pub use route::{Exchanger, Route, RouteError, exchangers};
