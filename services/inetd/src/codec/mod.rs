//! What the services say: the characters of chargen, the line of daytime.

mod chargen;
mod daytime;

pub use chargen::{LINE_BYTES, LINE_CHARACTERS, Pattern};
pub use daytime::Daytime;
