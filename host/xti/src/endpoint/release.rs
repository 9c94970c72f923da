//! Connections ended: `t_sndrel`, `t_rcvrel`, `t_snddis`, `t_rcvdis`.

use inhost_socket::errno::Errno;
use inhost_socket::{ConnectError, ConnectionError};

use super::{Call, Sequence, TransportEndpoint};
use crate::error::{Error, Look};
use crate::state::{Event, State};

/// A disconnect: what `t_rcvdis` gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Disconnection {
    /// Why.
    pub why: ConnectionError,
    /// The indication that was aborted, where it was one.
    pub sequence: Option<Sequence>,
}

impl Disconnection {
    /// The reason as the provider's number: `ECONNREFUSED` and so on, as Linux numbers them.
    pub fn reason(&self) -> i32 {
        self.why.errno()
    }
}

impl TransportEndpoint {
    /// `t_sndrel`: this end has sent everything; the other end is told behind the data.
    ///
    /// # Errors
    /// [`Error::Look`] with [`Look::Disconnect`].
    pub fn sndrel(&self) -> Result<(), Error> {
        self.allowed(Event::Sndrel)?;
        let Some(stream) = self.connection() else { return Err(Error::OutState) };
        if stream.error().is_some() {
            return Err(Error::Look(Look::Disconnect));
        }
        stream.shutdown();
        self.took(Event::Sndrel);
        self.let_go();
        Ok(())
    }
    /// `t_rcvrel`: receives the other end's release.
    ///
    /// # Errors
    /// [`Error::NoRelease`] where there is none, or where data before it was not read; [`Error::Look`] with
    /// [`Look::Disconnect`].
    pub fn rcvrel(&self) -> Result<(), Error> {
        self.allowed(Event::Rcvrel)?;
        let Some(stream) = self.connection() else { return Err(Error::OutState) };
        if stream.error().is_some() {
            return Err(Error::Look(Look::Disconnect));
        }
        if !self.is_released(&stream) {
            return Err(Error::NoRelease);
        }
        self.took(Event::Rcvrel);
        self.let_go();
        Ok(())
    }
    /// Both ends have released: the host brings what is left to the other end.
    fn let_go(&self) {
        if self.position.get().state == State::Idle {
            self.parts.borrow_mut().connection = None;
            self.is_held_up.set(false);
        }
    }
    /// `t_snddis`: aborts the connection or the call; with `sequence`, rejects an indication. The other end gets a reset.
    ///
    /// # Errors
    /// [`Error::BadSequence`] where an indication is meant and none has this number; [`Error::Look`] with
    /// [`Look::Disconnect`] where the other end was first.
    pub fn snddis(&self, sequence: Option<Sequence>) -> Result<(), Error> {
        let event = Event::snddis(self.outstanding());
        self.allowed(event)?;
        match self.position.get().state {
            State::Incon => {
                let mut parts = self.parts.borrow_mut();
                let sequence = sequence.ok_or(Error::BadSequence)?;
                let stream = parts.outstanding.get(&sequence).ok_or(Error::BadSequence)?;
                if stream.error().is_some() {
                    return Err(Error::Look(Look::Disconnect));
                }
                stream.abort();
                parts.outstanding.remove(&sequence);
            }
            State::Outcon => {
                if self.look()? == Some(Look::Disconnect) {
                    return Err(Error::Look(Look::Disconnect));
                }
                if let Some(Call::Done(Ok(stream))) = self.parts.borrow_mut().call.take() {
                    stream.abort();
                }
            }
            _ => {
                let Some(stream) = self.connection() else { return Err(Error::OutState) };
                if stream.error().is_some() {
                    return Err(Error::Look(Look::Disconnect));
                }
                stream.abort();
                self.parts.borrow_mut().connection = None;
                self.is_held_up.set(false);
            }
        }
        self.took(event);
        Ok(())
    }
    /// `t_rcvdis`: receives a disconnect. What the other end had sent before is lost.
    ///
    /// # Errors
    /// [`Error::NoDisconnect`] where there is none.
    pub fn rcvdis(&self) -> Result<Disconnection, Error> {
        let event = Event::rcvdis(self.outstanding());
        self.allowed(event)?;
        if self.look()? != Some(Look::Disconnect) {
            return Err(Error::NoDisconnect);
        }
        let mut parts = self.parts.borrow_mut();
        let disconnection = match self.position.get().state {
            State::Incon => {
                let gone = parts.outstanding.iter().find_map(|(sequence, stream)| {
                    stream.error().map(|why| Disconnection { why, sequence: Some(*sequence) })
                });
                let gone = gone.ok_or(Error::NoDisconnect)?;
                parts.outstanding.retain(|sequence, _| Some(*sequence) != gone.sequence);
                gone
            }
            State::Outcon => match parts.call.take() {
                Some(Call::Done(Err(ConnectError::Connection(why)))) => Disconnection { why, sequence: None },
                // The host went down before it had called.
                _ => Disconnection { why: ConnectionError::Aborted, sequence: None },
            },
            _ => {
                let why = parts.connection.take().and_then(|stream| stream.error());
                self.is_held_up.set(false);
                Disconnection { why: why.unwrap_or(ConnectionError::Aborted), sequence: None }
            }
        };
        self.took(event);
        Ok(disconnection)
    }
}
