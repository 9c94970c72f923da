//! What the fuzz targets call. Each body takes any bytes and asserts what must hold of them; the ordinary tests of
//! the crates under test run the same bodies over `corpus/`.
#![forbid(unsafe_code)]

pub mod thaw;
pub mod wire;
