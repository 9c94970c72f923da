//! The server.

pub mod access;
pub mod duplicates;
pub mod folder;
pub mod handles;
pub mod tree;
