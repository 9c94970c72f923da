//! Storage of files: one small trait, and its implementation over a folder of the file system.
//!
//! Paths are those of TVFS (RFC 3659 §6): absolute, with slashes, resolved before they come here. All that may take its
//! time is a future; buffers go in and come back, so that a transfer has the same few from its beginning to its end.

mod access;
mod error;
mod facts;
mod folder;
mod name;
mod partial;
mod path;
mod plain;
mod quota;

pub use access::{LIST_BATCH, Listing, Names, Sink, Source, Storage, Store, Storing};
pub use error::{Contents, StorageError, StorageResult};
pub use facts::{Facts, Kind, Permissions, UnixTime};
pub use folder::Folder;
pub use name::{is_partial, name_octets, name_text};
pub use partial::fits_name;
pub use path::VirtualPath;
pub use quota::{Quota, Quotas};

pub use crate::future::LocalFuture;
