//! TCP connections in the stack: outcomes, life cycle, options.

mod errors;
mod lifecycle;
mod optional;
mod options;
mod orphans;
mod outcome;
mod segment;
mod source_route;
mod source_routes;

pub(crate) use optional::OptionalState;
pub(crate) use segment::{can_talk, segment_limit};
pub(crate) use source_routes::SourceRoutes;
