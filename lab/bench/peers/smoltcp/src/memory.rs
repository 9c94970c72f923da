//! Bytes of one connection.

use crate::Answer;
use smoltcp::socket::tcp::Socket;

/// What smoltcp keeps for a socket, without the buffers that its owner brings and that stay there while it is idle.
pub fn socket() -> Answer {
    let bytes = size_of::<Socket<'static>>() as f64;
    let settings =
        "size of a socket, and two buffers of any size beside it that stay allocated; look-up is by search";
    Answer { settings: settings.into(), figures: vec![("bytes", bytes)] }
}
