//! Thin drivers that carry messages between the machines and the world. They need no runtime: each is a future that any
//! executor may poll, and time, streams and datagrams come through traits.

mod client;
mod datagrams;
mod server;

use std::sync::Arc;

use inhost_base::Instant;

use crate::server::{Answer, Caller, Programs, Server};

pub use client::{Connect, Peer, carry_datagrams, carry_stream, drive};
pub use datagrams::{DatagramLimits, Datagrams, serve_datagrams};
pub use server::{SessionEnd, SessionLimits, serve_stream};

/// Does one call, where it may wait for the disk, once it is its turn.
async fn perform(
    server: &Arc<Server>,
    message: Arc<Vec<u8>>,
    caller: Caller,
    programs: Programs,
    now: Instant,
) -> Answer {
    let slot = server.slots().take().await;
    let server = server.clone();
    blocking::unblock(move || {
        // Kept until the call is done, also if nobody waits for it any more.
        let _slot = slot;
        server.answer(&message, caller, programs, now)
    })
    .await
}
