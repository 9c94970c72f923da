//! Datagrams: `t_sndudata`, `t_rcvudata`, `t_rcvuderr`.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use inhost_base::Endpoint;
use inhost_socket::errno::Errno;
use inhost_socket::{DatagramError, Ends, UdpSocket};
use inhost_stack as stack;

use super::TransportEndpoint;
use crate::error::{Error, Look};
use crate::provider::DATAGRAM_MAX_BYTES;
use crate::state::Event;

/// Errors of datagrams that wait to be received; the oldest is forgotten beyond.
const FAULTS_MAX: usize = 16;

/// What `t_rcvudata` gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Datagram {
    /// Bytes that were put into the place.
    pub length_bytes: usize,
    /// The sender.
    pub from: Endpoint,
    /// `T_MORE`: the rest of the datagram comes with the next call.
    pub more: bool,
}

/// What a datagram met: what `t_rcvuderr` gives. The host does not say which datagram it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DatagramFault {
    /// The provider's number: `ECONNREFUSED` and so on, as Linux numbers them.
    pub number: i32,
}

/// The socket, and what was taken from it before it was asked for.
pub(super) struct Datagrams {
    socket: Rc<UdpSocket>,
    /// A datagram, or its rest.
    waiting: Option<(Vec<u8>, Endpoint)>,
    faults: VecDeque<DatagramFault>,
}

impl Datagrams {
    pub(super) fn new(socket: UdpSocket) -> Datagrams {
        Datagrams { socket: Rc::new(socket), waiting: None, faults: VecDeque::new() }
    }
    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }
    /// Keeps an error of an earlier datagram; gives any other back.
    fn keep(&mut self, why: &DatagramError) -> Error {
        match why {
            DatagramError::Stack(
                stack::DatagramError::Unreachable(_) | stack::DatagramError::NoNeighbour,
            ) => {
                if self.faults.len() >= FAULTS_MAX {
                    self.faults.pop_front();
                }
                self.faults.push_back(DatagramFault { number: why.errno() });
                Error::Look(Look::DatagramError)
            }
            why => Error::of_datagram(why),
        }
    }
    /// Ready once a datagram or an error waits.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if self.waiting.is_some() {
            return Poll::Ready(Ok(()));
        }
        let mut place = vec![0; DATAGRAM_MAX_BYTES];
        Poll::Ready(match std::task::ready!(self.socket.poll_receive(context, &mut place)) {
            Ok(info) => {
                place.truncate(info.length_bytes);
                self.waiting = Some((place, info.from));
                Ok(())
            }
            Err(why) => Err(self.keep(&why)),
        })
    }
    /// Puts what waits, or as much as fits, into `into`.
    fn give(&mut self, into: &mut [u8]) -> Option<Datagram> {
        let (bytes, from) = self.waiting.take()?;
        let length_bytes = bytes.len().min(into.len());
        into[..length_bytes].copy_from_slice(&bytes[..length_bytes]);
        let more = bytes.len() > length_bytes;
        if more {
            self.waiting = Some((bytes[length_bytes..].to_vec(), from));
        }
        Some(Datagram { length_bytes, from, more })
    }
}

impl TransportEndpoint {
    /// `t_sndudata`: sends a datagram to `to`, and waits for room.
    ///
    /// # Errors
    /// [`Error::BadData`] for more bytes than fit a datagram, [`Error::BadAddress`], [`Error::System`]; [`Error::Look`]
    /// with [`Look::DatagramError`] where an earlier one met an error.
    pub async fn sndudata(&self, bytes: &[u8], to: Endpoint) -> Result<(), Error> {
        poll_fn(|context| self.poll_sndudata(context, bytes, to)).await
    }
    /// `t_sndudata` that does not wait.
    ///
    /// # Errors
    /// [`Error::Flow`] where there is no room; those of [`TransportEndpoint::sndudata`].
    pub fn try_sndudata(&self, bytes: &[u8], to: Endpoint) -> Result<(), Error> {
        match self.poll_sndudata(&mut Context::from_waker(Waker::noop()), bytes, to) {
            Poll::Ready(done) => done,
            Poll::Pending => Err(Error::Flow),
        }
    }
    /// One step of [`TransportEndpoint::sndudata`].
    pub fn poll_sndudata(
        &self,
        context: &mut Context<'_>,
        bytes: &[u8],
        to: Endpoint,
    ) -> Poll<Result<(), Error>> {
        if let Err(why) = self.allowed(Event::Sndudata) {
            return Poll::Ready(Err(why));
        }
        let mut parts = self.parts.borrow_mut();
        let Some(datagrams) = &mut parts.datagrams else { return Poll::Ready(Err(Error::OutState)) };
        if !datagrams.faults.is_empty() {
            return Poll::Ready(Err(Error::Look(Look::DatagramError)));
        }
        let sent = std::task::ready!(datagrams.socket.poll_send(context, bytes, Ends::towards(to)));
        Poll::Ready(sent.map_err(|why| datagrams.keep(&why)))
    }
    /// `t_rcvudata`: waits for a datagram. What does not fit into `into` comes with the next call.
    ///
    /// # Errors
    /// [`Error::Look`] with [`Look::DatagramError`] where one that was sent met an error.
    pub async fn rcvudata(&self, into: &mut [u8]) -> Result<Datagram, Error> {
        poll_fn(|context| self.poll_rcvudata(context, into)).await
    }
    /// `t_rcvudata` that does not wait.
    ///
    /// # Errors
    /// [`Error::NoData`] where there is none; those of [`TransportEndpoint::rcvudata`].
    pub fn try_rcvudata(&self, into: &mut [u8]) -> Result<Datagram, Error> {
        match self.poll_rcvudata(&mut Context::from_waker(Waker::noop()), into) {
            Poll::Ready(done) => done,
            Poll::Pending => Err(Error::NoData),
        }
    }
    /// One step of [`TransportEndpoint::rcvudata`].
    pub fn poll_rcvudata(&self, context: &mut Context<'_>, into: &mut [u8]) -> Poll<Result<Datagram, Error>> {
        if let Err(why) = self.allowed(Event::Rcvudata) {
            return Poll::Ready(Err(why));
        }
        let mut parts = self.parts.borrow_mut();
        let Some(datagrams) = &mut parts.datagrams else { return Poll::Ready(Err(Error::OutState)) };
        if !datagrams.faults.is_empty() {
            return Poll::Ready(Err(Error::Look(Look::DatagramError)));
        }
        if datagrams.waiting.is_none() && into.len() >= DATAGRAM_MAX_BYTES {
            // Every datagram fits: it is put where it belongs at once.
            let received = std::task::ready!(datagrams.socket.poll_receive(context, into));
            return Poll::Ready(match received {
                Ok(info) => Ok(Datagram { length_bytes: info.length_bytes, from: info.from, more: false }),
                Err(why) => Err(datagrams.keep(&why)),
            });
        }
        std::task::ready!(datagrams.poll_fill(context))?;
        Poll::Ready(datagrams.give(into).ok_or(Error::NoData))
    }
    /// `t_rcvuderr`: what an earlier datagram met.
    ///
    /// # Errors
    /// [`Error::NoDatagramError`] where none met an error.
    pub fn rcvuderr(&self) -> Result<DatagramFault, Error> {
        self.allowed(Event::Rcvuderr)?;
        // An error that was not looked at yet is found here.
        self.look()?;
        let mut parts = self.parts.borrow_mut();
        let datagrams = parts.datagrams.as_mut().ok_or(Error::OutState)?;
        datagrams.faults.pop_front().ok_or(Error::NoDatagramError)
    }
    pub(super) fn poll_datagram_event(&self, context: &mut Context<'_>) -> Poll<Look> {
        let mut parts = self.parts.borrow_mut();
        let Some(datagrams) = &mut parts.datagrams else { return Poll::Pending };
        if !datagrams.faults.is_empty() {
            return Poll::Ready(Look::DatagramError);
        }
        match std::task::ready!(datagrams.poll_fill(context)) {
            Ok(()) => Poll::Ready(Look::Data),
            Err(Error::Look(event)) => Poll::Ready(event),
            Err(_) => Poll::Pending,
        }
    }
}
