//! TCP connections: what follows from what they say, how they begin and end, and their options.

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
