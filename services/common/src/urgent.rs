//! Streams with urgent data (RFC 9293 §3.8.5).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use inhost_socket::Stream;
use inhost_socket::errno::Errno;
use inhost_stack::SendHow;

/// A TCP stream with its urgent data.
pub trait Urgent {
    /// Sends octets of which the last is urgent; returns how many were taken. The mark is put on the last octet of
    /// `bytes` only once that octet is taken, so the caller comes again with the rest.
    fn poll_send_urgent(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;
    /// Octets still to be read up to and with the last urgent one: at least 1 while urgent data is pending, also when
    /// it is announced and not yet here; `None` when there is none.
    fn urgent_ahead(&self) -> Option<usize>;
}

impl Urgent for Stream {
    fn poll_send_urgent(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        // TCP sets the mark only with the last byte of what it was given.
        self.poll_send(cx, bytes, SendHow { urgent: true, ..SendHow::default() }).map_err(Errno::into_io)
    }
    fn urgent_ahead(&self) -> Option<usize> {
        Stream::urgent_ahead(self)
    }
}
