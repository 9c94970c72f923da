//! Data of a connection: `t_snd`, `t_rcv`.

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use inhost_socket::StreamError;
use inhost_tcp::SendHow;

use super::TransportEndpoint;
use crate::error::{Error, Look};
use crate::state::Event;

/// Flags of `t_snd`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendFlags {
    /// `T_MORE`: more follows at once, so what does not fill a segment may wait for it, up to 200 ms. TCP keeps no
    /// boundaries, so the other end is not told.
    pub more: bool,
    /// `T_EXPEDITED`: the last byte is urgent.
    pub expedited: bool,
    /// `T_PUSH`: everything that waits leaves, whatever `more` says.
    pub push: bool,
}

impl SendFlags {
    /// With `T_MORE`.
    pub const MORE: SendFlags = SendFlags { more: true, expedited: false, push: false };
    /// With `T_EXPEDITED`.
    pub const EXPEDITED: SendFlags = SendFlags { more: false, expedited: true, push: false };
    /// With `T_PUSH`.
    pub const PUSH: SendFlags = SendFlags { more: false, expedited: false, push: true };

    fn how(self) -> SendHow {
        let push = self.push || !self.more;
        SendHow { push, more: !push, urgent: self.expedited, ..SendHow::default() }
    }
}

/// What `t_rcv` gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Received {
    /// Bytes that were put into the place.
    pub length_bytes: usize,
    /// `T_EXPEDITED`: they are at or before the urgent mark.
    pub expedited: bool,
    /// `T_MORE`: more bytes of the same expedited unit follow.
    pub more: bool,
}

impl TransportEndpoint {
    /// `t_snd`: sends all of `bytes`, and waits for room. A future that is dropped may have sent a part.
    ///
    /// # Errors
    /// [`Error::BadData`] for no bytes; [`Error::Look`] with [`Look::Disconnect`].
    pub async fn snd(&self, bytes: &[u8], flags: SendFlags) -> Result<usize, Error> {
        let mut sent = 0;
        loop {
            sent += poll_fn(|context| self.poll_snd(context, &bytes[sent..], flags)).await?;
            if sent >= bytes.len() {
                return Ok(sent);
            }
        }
    }
    /// `t_snd` that does not wait: sends as much as there is room for.
    ///
    /// # Errors
    /// [`Error::Flow`] where there is no room; [`Look::GoData`] comes when there is. Those of [`TransportEndpoint::snd`].
    pub fn try_snd(&self, bytes: &[u8], flags: SendFlags) -> Result<usize, Error> {
        match self.poll_snd(&mut Context::from_waker(Waker::noop()), bytes, flags) {
            Poll::Ready(done) => done,
            Poll::Pending => {
                self.is_held_up.set(true);
                Err(Error::Flow)
            }
        }
    }
    /// One step of [`TransportEndpoint::snd`]: as much as there is room for.
    pub fn poll_snd(
        &self,
        context: &mut Context<'_>,
        bytes: &[u8],
        flags: SendFlags,
    ) -> Poll<Result<usize, Error>> {
        if let Err(why) = self.allowed(Event::Snd) {
            return Poll::Ready(Err(why));
        }
        if bytes.is_empty() {
            return Poll::Ready(Err(Error::BadData));
        }
        let Some(stream) = self.connection() else { return Poll::Ready(Err(Error::OutState)) };
        let sent = std::task::ready!(stream.poll_send(context, bytes, flags.how()));
        Poll::Ready(match sent {
            Ok(count) => {
                self.is_held_up.set(false);
                Ok(count)
            }
            Err(why) => Err(ended(&why)),
        })
    }
    /// `t_rcv`: receives available data into `into`, and waits while there is none. Data up to an urgent mark is
    /// expedited, and never comes together with what follows it.
    ///
    /// # Errors
    /// [`Error::Look`] with [`Look::OrderlyRelease`] once all data was read, or with [`Look::Disconnect`].
    pub async fn rcv(&self, into: &mut [u8]) -> Result<Received, Error> {
        poll_fn(|context| self.poll_rcv(context, into)).await
    }
    /// `t_rcv` that does not wait.
    ///
    /// # Errors
    /// [`Error::NoData`] where there is no data; those of [`TransportEndpoint::rcv`].
    pub fn try_rcv(&self, into: &mut [u8]) -> Result<Received, Error> {
        match self.poll_rcv(&mut Context::from_waker(Waker::noop()), into) {
            Poll::Ready(done) => done,
            Poll::Pending => Err(Error::NoData),
        }
    }
    /// One step of [`TransportEndpoint::rcv`].
    pub fn poll_rcv(&self, context: &mut Context<'_>, into: &mut [u8]) -> Poll<Result<Received, Error>> {
        if let Err(why) = self.allowed(Event::Rcv) {
            return Poll::Ready(Err(why));
        }
        let Some(stream) = self.connection() else { return Poll::Ready(Err(Error::OutState)) };
        if into.is_empty() {
            return Poll::Ready(Ok(Received::default()));
        }
        let urgent = stream.urgent_ahead();
        let room = urgent.map_or(into.len(), |ahead| ahead.min(into.len()));
        let received = std::task::ready!(stream.poll_receive(context, &mut into[..room]));
        Poll::Ready(match received {
            Ok(0) => Err(Error::Look(Look::OrderlyRelease)),
            Ok(length_bytes) => Ok(Received {
                length_bytes,
                expedited: urgent.is_some(),
                more: urgent.is_some_and(|ahead| ahead > length_bytes),
            }),
            Err(why) => Err(ended(&why)),
        })
    }
}

/// A stream fails for good only by what aborted it.
fn ended(why: &StreamError) -> Error {
    match why {
        StreamError::Stopped => Error::System(inhost_socket::errno::ENETDOWN),
        _ => Error::Look(Look::Disconnect),
    }
}
