//! The differential judge: short exchanges drawn from seeds, played on the kernel and on our stack in its `linux`
//! profile, compared, made small, and put into classes.

mod classes;
mod compare;
mod datagrams;
mod draw;
mod exchange;
mod judge;
mod opening;
mod reduce;
mod report;
mod sent;
mod steps;
mod view;
mod watch;

pub use classes::{Class, Classes, Verdict};
pub use compare::Difference;
pub use draw::draw;
pub use exchange::{Exchange, Timed};
pub use judge::{Found, Plan, Played, Report, judge, on_ours};
pub use report::script;
pub use sent::Sent;
pub use watch::{Moment, Watched};
