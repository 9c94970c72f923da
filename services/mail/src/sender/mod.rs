//! The sender: takes what is due from the queue, finds its servers, and notes what came of it.

mod report;
mod route;
mod run;

pub use report::{Report, ReportKind, Reported};
pub use route::{Exchanger, Route, RouteError, exchangers};
pub use run::{Mailboxes, Sender, SenderConfig, Sign};
