//! Thin drivers that carry octets between the pure machines and the world. They need no runtime: each is a
//! future that any executor may poll, and time, streams and terminals come through the traits here.

mod client;
mod passage;
mod server;
mod services;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

pub use inhost_common::{Clock, SessionEvent, Urgent};

pub use client::{ClientEnd, Connect, Connected, TerminalChange, TerminalUi, run_client};
pub use passage::Passage;
pub use server::{SessionEnd, serve_session};
pub use services::{HostServices, HostShell, Services, ShellSettings, TelnetEvent};

/// Polling interval for urgent data while input is not read.
const URGENT_LOOK_MS: u64 = 100;
/// Octets of one read.
const READ_BYTES: usize = 2048;

/// Sends what a machine has pending. `Ready(Ok(true))` when something was sent.
fn poll_send<S>(
    stream: &mut S,
    telnet: &mut crate::machine::Telnet,
    cx: &mut Context<'_>,
) -> Poll<io::Result<bool>>
where
    S: tokio::io::AsyncWrite + Urgent + Unpin,
{
    let mut any = false;
    while telnet.pending_bytes() > 0 {
        let (bytes, urgent) = telnet.pending();
        let result = match urgent {
            true => Pin::new(&mut *stream).poll_send_urgent(cx, bytes),
            false => Pin::new(&mut *stream).poll_write(cx, bytes),
        };
        match result {
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Poll::Ready(Ok(count)) => telnet.sent(count),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending if any => break,
            Poll::Pending => return Poll::Pending,
        }
        any = true;
    }
    if any && let Poll::Ready(Err(error)) = Pin::new(&mut *stream).poll_flush(cx) {
        return Poll::Ready(Err(error));
    }
    Poll::Ready(Ok(any))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "real shells need real time")]
mod client_tests;
#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "real shells need real time")]
mod line_mode_tests;
#[cfg(test)]
mod line_pause_tests;
#[cfg(test)]
mod log_on_tests;
#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "real shells need real time")]
pub(crate) mod testing;
#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "real shells need real time")]
mod tests;
