//! The filter beside tcpdump's.

mod corpus;
mod filters;
