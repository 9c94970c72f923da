//! A page that shows a running host: why its connections are slow, its links and queues, histograms, packets and log; a
//! capture that is dropped on it is explained. `/metrics` has figures for Prometheus.
//!
//! [`Views`] has all of it as JSON, for the page and for programs of the host's user. [`Dashboard`] is a service. Without a token it answers the user who runs the host, and nobody else. Nothing of it holds the host's round up: connections
//! are listed some at a time, and sorted, filtered and explained on other threads.
//!
//! [`Filter`] chooses connections in the manner of `ss`:
//!
//! ```
//! use inhost_dashboard::Filter;
//! assert!("state established and ( dport = :443 or dst 10.0.0.0/8 )".parse::<Filter>().is_ok());
//! assert!("dport = :443 )".parse::<Filter>().is_err());
//! ```
#![forbid(unsafe_code)]

mod caller;
mod captures;
mod connection;
mod draw;
mod filter;
mod histograms;
mod list;
mod log;
mod metrics;
mod packets;
mod row;
mod section;
mod service;
mod site;
mod summary;
mod views;

pub use draw::draw_histograms;
pub use filter::{Filter, FilterError, Subject};
pub use log::{Level, Line, Log};
pub use section::Section;
pub use service::Dashboard;
pub use views::{Instruments, Views};
