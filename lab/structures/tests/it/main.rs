//! The structures against each other.

mod structures;
