//! Formats of the services: chargen's characters, daytime's line.

mod chargen;
mod daytime;

pub use chargen::{LINE_BYTES, LINE_CHARACTERS, Pattern};
pub use daytime::Daytime;
