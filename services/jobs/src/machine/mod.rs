//! The states of a job, and which job runs next. Pure: `now` is an argument.

mod schedule;
mod state;

pub use schedule::{Candidate, Group, Need, Running, Shares, choose, dependency, retry_delay_s};
pub use state::{Event, State};
