//! rlogin: a terminal on another host (RFC 1282).

mod driver;
mod machine;
#[cfg(test)]
mod tests;

pub use driver::{End, run};
pub use machine::{Action, Login, Opening};

/// The port of rlogin.
pub const PORT: u16 = 513;
