//! Both ends of rcp, pure: [`Sink`] receives files, [`Source`] sends them.

mod sink;
mod source;

pub use sink::{Event, Sink};
pub use source::{Progress, Source};
