//! NFS version 3 (RFC 1813): its values, and what each procedure takes and gives.

mod arguments;
mod procedures;
mod results;
mod status;
mod values;

pub use arguments::*;
pub use procedures::*;
pub use results::*;
pub use status::Status;
pub use values::*;

/// Program number.
pub const PROGRAM: u32 = 100_003;
/// Its version.
pub const VERSION: u32 = 3;
/// The port where it is by custom.
pub const PORT: u16 = 2049;

#[cfg(test)]
mod tests;
