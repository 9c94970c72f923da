//! quinn's runtime: timers and tasks of tokio, and no socket of the system.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime};
use tokio::time::Sleep;

/// Timers and tasks of the tokio runtime in which quinn runs.
#[derive(Clone, Copy, Debug)]
pub struct TokioTimers;

impl Runtime for TokioTimers {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(Timer(Box::pin(tokio::time::sleep_until(at.into()))))
    }
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        drop(tokio::spawn(task));
    }
    fn wrap_udp_socket(&self, _: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "sockets are those of a host of inhost"))
    }
}

struct Timer(Pin<Box<Sleep>>);

impl AsyncTimer for Timer {
    fn reset(mut self: Pin<&mut Self>, at: Instant) {
        self.0.as_mut().reset(at.into());
    }
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Timer")
    }
}
