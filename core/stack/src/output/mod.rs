//! Output to a device: segments as frames, the loopback, replies that wait.

mod device;
mod loopback;
mod reply;
mod segments;

pub use device::Transmitted;
pub(crate) use device::{Counting, Turn};
pub(crate) use loopback::{Loopback, PASS_FRAMES};
pub(crate) use reply::{Replies, Reply};
pub(crate) use segments::{CommonHeader, Segments};
