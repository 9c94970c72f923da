//! Events: `t_look`, and waiting for one.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use inhost_socket::Stream;
use inhost_stack::Readiness;

use super::{Call, TransportEndpoint};
use crate::error::{Error, Look};
use crate::state::{Event, State};

impl TransportEndpoint {
    /// `t_look`: the event that has to be received next. A disconnect comes before everything else of its connection.
    ///
    /// # Errors
    /// [`Error::BadEndpoint`].
    pub fn look(&self) -> Result<Option<Look>, Error> {
        self.is_open()?;
        match self.poll_event(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(event) => Ok(Some(event)),
            Poll::Pending => Ok(None),
        }
    }
    /// Waits for the next event, as `poll` of a descriptor does.
    ///
    /// # Errors
    /// [`Error::BadEndpoint`], also where the endpoint is closed meanwhile.
    pub async fn event(&self) -> Result<Look, Error> {
        poll_fn(|context| {
            if let Err(why) = self.is_open() {
                return Poll::Ready(Err(why));
            }
            self.poll_event(context).map(Ok)
        })
        .await
    }
    fn poll_event(&self, context: &mut Context<'_>) -> Poll<Look> {
        match self.position.get().state {
            State::Uninit | State::Unbnd => Poll::Pending,
            State::Outcon => self.poll_answer(context),
            State::Idle | State::Incon => {
                if self.is_indication_gone() {
                    return Poll::Ready(Look::Disconnect);
                }
                if self.parts.borrow().datagrams.is_some() {
                    return self.poll_datagram_event(context);
                }
                let has_room = self.outstanding() < self.parts.borrow().queue_length;
                match has_room && self.poll_arrival(context) == Poll::Ready(true) {
                    true => Poll::Ready(Look::Listen),
                    false => Poll::Pending,
                }
            }
            State::Dataxfer | State::Outrel | State::Inrel => match self.connection() {
                Some(stream) => self.poll_connection_event(&stream, context),
                None => Poll::Pending,
            },
        }
    }
    fn poll_answer(&self, context: &mut Context<'_>) -> Poll<Look> {
        std::task::ready!(self.poll_call(context));
        match &self.parts.borrow().call {
            Some(Call::Done(Ok(_))) => Poll::Ready(Look::Connect),
            Some(_) => Poll::Ready(Look::Disconnect),
            None => Poll::Pending,
        }
    }
    fn poll_connection_event(&self, stream: &Rc<Stream>, context: &mut Context<'_>) -> Poll<Look> {
        if stream.error().is_some() {
            return Poll::Ready(Look::Disconnect);
        }
        if self.is_receiving() {
            if stream.urgent_ahead().is_some() {
                return Poll::Ready(Look::ExpeditedData);
            }
            if self.has_data(stream) {
                return Poll::Ready(Look::Data);
            }
            if self.is_released(stream) {
                return Poll::Ready(Look::OrderlyRelease);
            }
            let _ = stream.poll_urgent(context);
        }
        let _ = stream.poll_readable(context);
        if self.is_held_up.get() && stream.poll_writable(context).is_ready() {
            self.is_held_up.set(false);
            return Poll::Ready(Look::GoData);
        }
        Poll::Pending
    }
    fn is_receiving(&self) -> bool {
        self.position.get().after(Event::Rcvrel).is_some()
    }
    fn has_data(&self, stream: &Stream) -> bool {
        stream.queued().is_some_and(|queued| queued.readable_bytes > 0)
    }
    /// Whether the other end has released, and all of its data was read.
    pub(super) fn is_released(&self, stream: &Stream) -> bool {
        let over = Readiness::PEER_CLOSED.union(Readiness::CLOSED);
        let socket = stream.socket();
        let readiness = self.host.with_stack(|stack, _| stack.readiness(socket));
        readiness.intersects(over) && !self.has_data(stream)
    }
}
