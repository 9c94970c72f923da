//! The durable queue: SQLite on a thread of its own, and a folder for the files of each job.
//!
//! The queue is a folder: `jobs.sqlite` has submissions and states, `jobs/ID/ATTEMPT` the files of an attempt to run a
//! job, and `lock` is held by the host that runs them. A submission is in the queue once [`Store::submit`] is done,
//! whatever happens then.

mod records;
mod tables;
#[cfg(test)]
mod tests;
mod worker;

pub use records::{Change, End, Outcome, Plan, Quotas, Retention, Scope, StoreError, Submitted, Task};
pub(crate) use tables::Delivery;
pub(crate) use tables::LOCAL;
pub use tables::Selection;
pub use worker::{RunLock, Store};
