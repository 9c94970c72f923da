//! The host's own streams and time, as the drivers want them.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use inhost_base::Instant;
use inhost_socket::errno::Errno;
use inhost_socket::{Host, Stream};
use inhost_stack::SendHow;

use super::{Clock, Urgent};

impl Urgent for Stream {
    fn poll_send_urgent(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        // TCP sets the mark only with the last byte of what it was given.
        self.poll_send(cx, bytes, SendHow { urgent: true, ..SendHow::default() }).map_err(Errno::into_io)
    }
    fn urgent_ahead(&self) -> Option<usize> {
        Stream::urgent_ahead(self)
    }
}

impl Clock for Host {
    fn now(&self) -> Instant {
        Host::now(self)
    }
    fn sleep_until(&self, at: Instant) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(Host::sleep_until(self, at))
    }
}
