//! The client: calls under way, and operations on files made of them.

mod calls;
mod error;
mod files;
mod programs;
mod rpc;
mod transfer;

pub use calls::{CallError, CallSettings, Calls};
pub use error::ClientError;
pub use files::{Listed, Remote, RemoteFile};
pub use programs::{exports, mount, ping_mount, port_of, unmount};
pub use rpc::Rpc;
pub use transfer::{COMMIT_BYTES, Progress, WINDOW_BYTES, WINDOW_CALLS};
