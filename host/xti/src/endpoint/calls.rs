//! Connections made: `t_connect`, `t_rcvconnect`, `t_listen`, `t_accept`.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use inhost_base::Endpoint;
use inhost_socket::{ConnectError, Stream};
use inhost_stack::ConnectOptions;

use super::{Call, TransportEndpoint};
use crate::error::{Error, Look};
use crate::state::{Event, State};

/// The number of a connect indication, by which it is accepted or rejected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sequence(pub u32);

/// A connect indication: what `t_listen` gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Indication {
    /// Its number.
    pub sequence: Sequence,
    /// The caller.
    pub from: Endpoint,
}

impl TransportEndpoint {
    /// `t_connect`: calls `to`, and waits for the answer; gives the address that answered. Meanwhile the state is changing,
    /// and a future that is dropped leaves a call that [`rcvconnect`](TransportEndpoint::rcvconnect) waits for.
    ///
    /// # Errors
    /// [`Error::BadAddress`], [`Error::AddressBusy`], [`Error::NoAddress`], [`Error::System`]; [`Error::Look`] with
    /// [`Look::Disconnect`] where the call failed, or with [`Look::Listen`] where a caller waits here.
    pub async fn connect(&self, to: Endpoint) -> Result<Endpoint, Error> {
        self.begin(to)?;
        self.is_changing.set(true);
        let mut changing = Changing { endpoint: self, is_over: false };
        poll_fn(|context| self.poll_call(context)).await;
        changing.is_over = true;
        self.is_changing.set(false);
        self.answered(Event::Connect1)
    }
    /// `t_connect` that does not wait.
    ///
    /// # Errors
    /// [`Error::NoData`] where the call has begun, and [`rcvconnect`](TransportEndpoint::rcvconnect) gets the answer; those
    /// of [`TransportEndpoint::connect`].
    pub fn try_connect(&self, to: Endpoint) -> Result<Endpoint, Error> {
        self.begin(to)?;
        match self.poll_call(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(()) => self.answered(Event::Connect1),
            Poll::Pending => {
                self.took(Event::Connect2);
                Err(Error::NoData)
            }
        }
    }
    /// `t_rcvconnect`: waits for the answer to a call; gives the address that answered.
    ///
    /// # Errors
    /// [`Error::Look`] with [`Look::Disconnect`] where the call failed.
    pub async fn rcvconnect(&self) -> Result<Endpoint, Error> {
        self.allowed(Event::Rcvconnect)?;
        poll_fn(|context| self.poll_call(context)).await;
        self.allowed(Event::Rcvconnect)?;
        self.answered(Event::Rcvconnect)
    }
    /// `t_rcvconnect` that does not wait.
    ///
    /// # Errors
    /// [`Error::NoData`] where there is no answer yet; those of [`TransportEndpoint::rcvconnect`].
    pub fn try_rcvconnect(&self) -> Result<Endpoint, Error> {
        self.allowed(Event::Rcvconnect)?;
        match self.poll_call(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(()) => self.answered(Event::Rcvconnect),
            Poll::Pending => Err(Error::NoData),
        }
    }
    fn begin(&self, to: Endpoint) -> Result<(), Error> {
        self.allowed(Event::Connect2)?;
        if self.look()? == Some(Look::Listen) {
            return Err(Error::Look(Look::Listen));
        }
        let mut parts = self.parts.borrow_mut();
        let mut options = ConnectOptions::default();
        if let Some(bound) = parts.bound {
            options.local.address = (!bound.address.is_unspecified()).then_some(bound.address);
            // With a queue the port is the listener's own.
            options.local.port = if parts.queue_length == 0 { bound.port } else { 0 };
        }
        let (host, settings) = (self.host.clone(), parts.options.of_sockets());
        parts.call =
            Some(Call::Waiting(Box::pin(async move { host.connect_set(to, options, &settings).await })));
        Ok(())
    }
    /// Ready once the call was answered, or is no more.
    pub(super) fn poll_call(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut parts = self.parts.borrow_mut();
        let Some(Call::Waiting(future)) = &mut parts.call else { return Poll::Ready(()) };
        let done = std::task::ready!(future.as_mut().poll(context));
        parts.call = Some(Call::Done(done));
        Poll::Ready(())
    }
    /// Takes the answer of a call.
    fn answered(&self, event: Event) -> Result<Endpoint, Error> {
        let mut parts = self.parts.borrow_mut();
        match parts.call.take() {
            Some(Call::Done(Ok(stream))) => {
                let from = stream.remote();
                parts.connection = Some(Rc::new(stream));
                self.took(event);
                Ok(from)
            }
            Some(Call::Done(Err(why @ ConnectError::Connection(_)))) => {
                parts.call = Some(Call::Done(Err(why)));
                if event == Event::Connect1 {
                    self.took(Event::Connect2);
                }
                Err(Error::Look(Look::Disconnect))
            }
            Some(Call::Done(Err(why))) => {
                if event == Event::Rcvconnect {
                    // The host has begun to stop: the call is over.
                    self.took(Event::Snddis1);
                }
                Err(Error::of_call(&why))
            }
            // The endpoint was closed meanwhile.
            other => {
                parts.call = other;
                drop(parts);
                self.is_open().and(Err(Error::OutState))
            }
        }
    }

    /// `t_listen`: waits for a caller. The connection is made already; what is still to be said is where it goes.
    ///
    /// # Errors
    /// [`Error::BadQueueLength`] where the endpoint has no queue, [`Error::QueueFull`], and [`Error::Look`] with
    /// [`Look::Disconnect`] where an outstanding indication was aborted.
    pub async fn listen(&self) -> Result<Indication, Error> {
        poll_fn(|context| self.poll_listen(context)).await
    }
    /// `t_listen` that does not wait.
    ///
    /// # Errors
    /// [`Error::NoData`] where no caller waits; those of [`TransportEndpoint::listen`].
    pub fn try_listen(&self) -> Result<Indication, Error> {
        match self.poll_listen(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done,
            Poll::Pending => Err(Error::NoData),
        }
    }
    /// One step of [`TransportEndpoint::listen`].
    pub fn poll_listen(&self, context: &mut Context<'_>) -> Poll<Result<Indication, Error>> {
        if let Err(why) = self.allowed(Event::Listen) {
            return Poll::Ready(Err(why));
        }
        let queue_length = self.parts.borrow().queue_length;
        if queue_length == 0 {
            return Poll::Ready(Err(Error::BadQueueLength));
        }
        if self.is_indication_gone() {
            return Poll::Ready(Err(Error::Look(Look::Disconnect)));
        }
        if self.outstanding() >= queue_length {
            return Poll::Ready(Err(Error::QueueFull));
        }
        if !std::task::ready!(self.poll_arrival(context)) {
            return Poll::Ready(Err(Error::System(inhost_socket::errno::ENETDOWN)));
        }
        let mut parts = self.parts.borrow_mut();
        let Some(held) = parts.arrived.take() else { return Poll::Pending };
        parts.last_sequence = parts.last_sequence.wrapping_add(1);
        let sequence = Sequence(parts.last_sequence);
        let stream = held.proceed();
        let from = stream.remote();
        parts.outstanding.insert(sequence, stream);
        self.took(Event::Listen);
        Poll::Ready(Ok(Indication { sequence, from }))
    }
    /// Ready with true once a caller is there, and with false where none will come any more.
    pub(super) fn poll_arrival(&self, context: &mut Context<'_>) -> Poll<bool> {
        let mut parts = self.parts.borrow_mut();
        if parts.arrived.is_some() {
            return Poll::Ready(true);
        }
        // An outstanding indication that is aborted wakes the task, too.
        for stream in parts.outstanding.values() {
            let _ = stream.poll_readable(context);
        }
        let Some(listener) = parts.listener.clone() else { return Poll::Ready(false) };
        match std::task::ready!(listener.poll_accept(context)) {
            Ok(held) => {
                parts.arrived = Some(held);
                Poll::Ready(true)
            }
            Err(_) => Poll::Ready(false),
        }
    }
    pub(super) fn is_indication_gone(&self) -> bool {
        self.parts.borrow().outstanding.values().any(|stream| stream.error().is_some())
    }

    /// `t_accept`: puts the connection of an indication on `onto`, which may be this endpoint.
    ///
    /// # Errors
    /// [`Error::BadSequence`]; [`Error::ProviderMismatch`] where the endpoints are not of one provider and one host;
    /// [`Error::OutState`] of either endpoint; [`Error::ResponderQueueLength`];
    /// [`Error::IndicationsOutstanding`] where it goes on this endpoint and others are outstanding; [`Error::Look`] where
    /// another caller waits to be listened to, or an outstanding indication was aborted. While the queue is full no
    /// caller is waited for.
    pub fn accept(&self, onto: &TransportEndpoint, sequence: Sequence) -> Result<(), Error> {
        let is_same = std::ptr::eq(self, onto);
        self.is_open()?;
        onto.is_open()?;
        if self.provider != onto.provider || !self.host.is(&onto.host) {
            return Err(Error::ProviderMismatch);
        }
        if self.position.get().state != State::Incon {
            self.allowed(Event::Accept2)?;
            return Err(Error::OutState);
        }
        if is_same && self.outstanding() > 1 {
            return Err(Error::IndicationsOutstanding);
        }
        if !is_same {
            onto.allowed(Event::PassConn)?;
            if onto.parts.borrow().queue_length > 0 {
                return Err(Error::ResponderQueueLength);
            }
        }
        if !self.parts.borrow().outstanding.contains_key(&sequence) {
            return Err(Error::BadSequence);
        }
        if let Some(event) = self.look()? {
            return Err(Error::Look(event));
        }
        let event = Event::accept(self.outstanding(), is_same);
        let Some(stream) = self.parts.borrow_mut().outstanding.remove(&sequence) else {
            return Err(Error::BadSequence);
        };
        self.took(event);
        if !is_same {
            onto.took(Event::PassConn);
        }
        onto.carry(stream);
        Ok(())
    }
    fn carry(&self, stream: Stream) {
        let mut parts = self.parts.borrow_mut();
        for option in parts.options.of_sockets() {
            // A connection that was aborted in the meantime says so when it is used.
            let _ = stream.set_option(option);
        }
        parts.bound.get_or_insert(stream.local());
        parts.connection = Some(Rc::new(stream));
    }
}

/// A `t_connect` that waits. Where its future is dropped, the call goes on without it.
struct Changing<'a> {
    endpoint: &'a TransportEndpoint,
    is_over: bool,
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.endpoint.is_changing.set(false);
        if self.endpoint.position.get().after(Event::Connect2).is_some() {
            self.endpoint.took(Event::Connect2);
        }
    }
}
