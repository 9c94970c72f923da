//! Remote batch: a durable queue of jobs, and the host's own processes that run them.
//!
//! - [`codec`]: what a user submits, and what the queue says of a job, as values and JSON;
//! - [`machine`]: the states of a job as a table, scheduling, dependencies, retries; pure;
//! - [`store`]: SQLite on a thread, and the files of each job;
//! - [`backend`]: what runs jobs, as a trait; [`runner`]: processes of this host, which survive its death;
//! - [`queue`]: the calls of users and operators, and the loops that run and deliver;
//! - [`deliver`]: what becomes of output;
//! - [`server`]: the queue over HTTP; [`client`]: its requests over any byte stream; [`remote`] and [`slurm`]: another host, and a cluster, as back ends;
//! - [`service`]: the section `[jobs]` of `host.toml`.
//!
//! ```
//! use inhost_jobs::codec::Submission;
//! use inhost_jobs::machine::{Event, State};
//! let job = Submission::from_json(br#"{"name": "tides", "script": "echo high", "retries": 2}"#)?;
//! assert_eq!((job.name.as_str(), job.indices()), ("tides", vec![None]));
//! assert_eq!(State::Queued.after(Event::Start), Some(State::Running));
//! assert_eq!(State::Done.after(Event::Start), None, "nothing runs twice");
//! # Ok::<(), inhost_jobs::codec::Invalid>(())
//! ```
#![forbid(unsafe_code)]

mod attempt;
pub mod backend;
pub mod client;
pub mod codec;
pub mod deliver;
#[doc(hidden)]
pub mod fuzz;
pub mod machine;
pub mod queue;
pub mod remote;
pub mod runner;
pub mod server;
pub mod service;
pub mod slurm;
pub mod store;
