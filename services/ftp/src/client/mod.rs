//! The client's side of a control connection.
//!
//! [`Client`] is pure: octets, operations and the outcomes of its actions in; octets and [`Action`]s out.
//! [`crate::driver::Connection`] carries them.

mod listing;
mod machine;
mod operation;

pub use listing::{Listed, Listing, parse_listing};
pub use machine::Client;
pub use operation::{Action, Answer, ClientError, DataVia, Features, Operation, Passive, Transfer};

#[cfg(test)]
mod tests;
