//! The server's side of a control connection.
//!
//! [`Session`] is pure: octets, time and the outcomes of its actions in; octets and [`Action`]s out.
//! [`crate::driver::serve_session`] carries them.

mod action;
mod config;
mod data;
mod files;
mod login;
mod machine;
mod output;
mod state;
mod transfer;

pub use action::{
    Action, Channel, Closing, Digest, FileReply, FileRequest, ListStyle, LogIn, Rights, Task, TransferError,
    TransferEvent, TransferRequest,
};
pub use config::{ServerConfig, TlsPolicy};
pub(crate) use login::FACTS as FACT_NAMES;
pub use machine::Session;
pub(crate) use transfer::restarts_by_file;

#[cfg(test)]
mod tests;
