//! The transport endpoint: a state of the table, and the sockets behind it.

mod calls;
mod datagrams;
mod look;
mod release;
mod transfer;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;

use inhost_base::{Endpoint, Ipv4Addr};
use inhost_socket::{ConnectError, Held, Host, Listener, Stream};
use inhost_stack::{ListenOptions, UdpOptions};

use crate::error::Error;
use crate::options::{Negotiated, OptionRequest, OptionStatus, TransportOption};
use crate::provider::{Info, Provider};
use crate::state::{Event, Position, State};

pub use calls::{Indication, Sequence};
pub use datagrams::{Datagram, DatagramFault};
pub use release::Disconnection;
pub use transfer::{Received, SendFlags};

/// A transport endpoint: what `t_open` gives.
///
/// Its calls take `&self`, so that one task may send while another receives. Which call is allowed when is the state
/// table's; [`Position`] has it. Dropping an endpoint is [`close`](TransportEndpoint::close).
pub struct TransportEndpoint {
    host: Host,
    provider: Provider,
    position: Cell<Position>,
    /// A `t_connect` that waits is about to change the state.
    is_changing: Cell<bool>,
    /// A send found no room, and was not told of room since.
    is_held_up: Cell<bool>,
    parts: RefCell<Parts>,
}

/// What an endpoint has, by state.
#[derive(Default)]
struct Parts {
    bound: Option<Endpoint>,
    queue_length: usize,
    listener: Option<Rc<Listener>>,
    /// A caller whom the listener gave out while the endpoint was looked at.
    arrived: Option<Held>,
    /// Connections by the numbers of their indications.
    outstanding: BTreeMap<Sequence, Stream>,
    last_sequence: u32,
    call: Option<Call>,
    connection: Option<Rc<Stream>>,
    datagrams: Option<datagrams::Datagrams>,
    options: Negotiated,
}

/// A call to another end.
enum Call {
    Waiting(Pin<Box<dyn Future<Output = Result<Stream, ConnectError>>>>),
    Done(Result<Stream, ConnectError>),
}

/// What `t_bind` gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Bound {
    /// The address. A part that is unspecified is chosen with the connection.
    pub address: Endpoint,
    /// How many connect indications may be outstanding.
    pub queue_length: usize,
}

/// What `t_getprotaddr` gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Addresses {
    /// The address that the endpoint is bound to.
    pub local: Option<Endpoint>,
    /// The other end of its connection.
    pub remote: Option<Endpoint>,
}

impl TransportEndpoint {
    /// `t_open`: an endpoint of this provider.
    pub fn open(host: &Host, provider: Provider) -> TransportEndpoint {
        let endpoint = TransportEndpoint {
            host: host.clone(),
            provider,
            position: Cell::default(),
            is_changing: Cell::new(false),
            is_held_up: Cell::new(false),
            parts: RefCell::default(),
        };
        endpoint.took(Event::Opened);
        endpoint
    }
    /// `t_bind`: gives the endpoint an address, and lets `queue_length` connect indications be outstanding. Without an
    /// address, or with port 0, the host chooses: for a queue or datagrams at once, otherwise with the connection.
    ///
    /// # Errors
    /// [`Error::AddressBusy`], [`Error::BadAddress`] where the address is not the host's, [`Error::NoAddress`],
    /// [`Error::System`].
    pub fn bind(&self, address: Option<Endpoint>, queue_length: usize) -> Result<Bound, Error> {
        let next = self.allowed(Event::Bind)?;
        let address = address.unwrap_or(Endpoint::new(Ipv4Addr::UNSPECIFIED, 0));
        let mut parts = self.parts.borrow_mut();
        let bound = match self.provider {
            Provider::Udp => {
                let mut options = UdpOptions::default();
                options.report_unconnected_errors = true;
                let socket = self.host.udp(address, options)?;
                for option in parts.options.of_sockets() {
                    let _ = socket.set_option(option);
                }
                let address = socket.local();
                parts.datagrams = Some(datagrams::Datagrams::new(socket));
                Bound { address, queue_length: 0 }
            }
            Provider::Tcp => {
                let mut options = ListenOptions::default();
                options.backlog = queue_length.max(1);
                options.gives_out_reset = true;
                // Without a queue nothing listens, but the listener says whether the address can be had.
                let is_wholly_open = address.address.is_unspecified() && address.port == 0;
                match queue_length {
                    0 if is_wholly_open => Bound { address, queue_length },
                    0 => {
                        self.host.listen(address, options)?;
                        Bound { address, queue_length }
                    }
                    _ => {
                        let listener = self.host.listen(address, options)?;
                        let address = listener.local();
                        parts.listener = Some(Rc::new(listener));
                        Bound { address, queue_length }
                    }
                }
            }
        };
        (parts.bound, parts.queue_length) = (Some(bound.address), bound.queue_length);
        self.position.set(next);
        Ok(bound)
    }
    /// `t_unbind`: takes the address back.
    ///
    /// # Errors
    /// [`Error::Look`] where a caller or a datagram waits.
    pub fn unbind(&self) -> Result<(), Error> {
        let next = self.allowed(Event::Unbind)?;
        if let Some(event) = self.look()? {
            return Err(Error::Look(event));
        }
        self.clear(false);
        self.position.set(next);
        Ok(())
    }
    /// `t_close`: ends everything. The host still delivers what was sent, as long as [`TransportOption::Linger`] lets it;
    /// the other end gets a reset where it is zero or where received data was not read. A task that waits in a call of the
    /// endpoint is told [`Error::BadEndpoint`] when it looks again.
    ///
    /// # Errors
    /// [`Error::BadEndpoint`] where the endpoint was closed before.
    pub fn close(&self) -> Result<(), Error> {
        let next = self.position.get().after(Event::Closed).ok_or(Error::BadEndpoint)?;
        self.clear(true);
        self.position.set(next);
        Ok(())
    }
    /// Drops what a state has; the options stay with the endpoint.
    fn clear(&self, is_closing: bool) {
        let mut parts = self.parts.borrow_mut();
        let options = if is_closing { Negotiated::default() } else { std::mem::take(&mut parts.options) };
        let last_sequence = parts.last_sequence;
        *parts = Parts { options, last_sequence, ..Parts::default() };
        self.is_held_up.set(false);
    }

    /// `t_getstate`: the state.
    ///
    /// # Errors
    /// [`Error::StateChanging`] while a [`connect`](TransportEndpoint::connect) waits; [`Error::BadEndpoint`].
    pub fn state(&self) -> Result<State, Error> {
        match self.position.get().state {
            State::Uninit => Err(Error::BadEndpoint),
            _ if self.is_changing.get() => Err(Error::StateChanging),
            state => Ok(state),
        }
    }
    /// `t_sync`: the state, as the provider has it. Endpoint and provider are one here, so it is `t_getstate`.
    ///
    /// # Errors
    /// As [`TransportEndpoint::state`].
    pub fn sync(&self) -> Result<State, Error> {
        self.state()
    }
    /// `t_getinfo`: what the provider offers.
    pub fn info(&self) -> Info {
        self.provider.info()
    }
    /// The provider that it was opened for.
    pub fn provider(&self) -> Provider {
        self.provider
    }
    /// `t_getprotaddr`: the addresses of both ends, as far as there are any.
    ///
    /// # Errors
    /// [`Error::BadEndpoint`].
    pub fn addresses(&self) -> Result<Addresses, Error> {
        self.is_open()?;
        let parts = self.parts.borrow();
        Ok(Addresses {
            local: parts.connection.as_ref().map(|stream| stream.local()).or(parts.bound),
            remote: parts.connection.as_ref().map(|stream| stream.remote()),
        })
    }
    /// Every figure of the connection, while there is one. The standard has nothing of the kind.
    pub fn figures(&self) -> Option<inhost_tcp::Info> {
        self.connection()?.info()
    }
    /// `t_optmgmt`: negotiates, checks or tells options; each comes back with its value and what became of it.
    ///
    /// # Errors
    /// [`Error::BadEndpoint`].
    pub fn optmgmt(
        &self,
        request: OptionRequest,
        options: &[TransportOption],
    ) -> Result<Vec<(TransportOption, OptionStatus)>, Error> {
        self.is_open()?;
        let managed = options.iter().map(|&option| match option.is_of(self.provider) {
            true => (self.manage(request, option), OptionStatus::Success),
            false => (option, OptionStatus::NotSupported),
        });
        Ok(managed.collect())
    }
    fn manage(&self, request: OptionRequest, option: TransportOption) -> TransportOption {
        let default = || self.host.with_stack(|stack, _| option.of_config(&stack.config().tcp));
        let mut parts = self.parts.borrow_mut();
        match request {
            OptionRequest::Check => option,
            OptionRequest::Default => default(),
            OptionRequest::Current => parts.options.value(option).unwrap_or_else(default),
            OptionRequest::Negotiate => {
                parts.options.set(option);
                // A connection that is over has no options, and the next one gets them.
                if let Some(stream) = &parts.connection {
                    let _ = stream.set_option(option.of_socket());
                }
                if let Some(datagrams) = &parts.datagrams {
                    let _ = datagrams.socket().set_option(option.of_socket());
                }
                option
            }
        }
    }

    fn is_open(&self) -> Result<(), Error> {
        match self.position.get().state {
            State::Uninit => Err(Error::BadEndpoint),
            _ => Ok(()),
        }
    }
    /// Where an event leads, if the table, the provider and other tasks let it happen.
    fn allowed(&self, event: Event) -> Result<Position, Error> {
        self.is_open()?;
        let is_of_provider = match event {
            Event::Opened | Event::Bind | Event::Optmgmt | Event::Unbind | Event::Closed => true,
            Event::Sndudata | Event::Rcvudata | Event::Rcvuderr => self.provider == Provider::Udp,
            _ => self.provider == Provider::Tcp,
        };
        if !is_of_provider {
            return Err(Error::NotSupported);
        }
        if self.is_changing.get() {
            return Err(Error::StateChanging);
        }
        self.position.get().after(event).ok_or(Error::OutState)
    }
    /// An event that was allowed has happened.
    fn took(&self, event: Event) {
        let next = self.position.get().after(event);
        debug_assert!(next.is_some(), "{event:?} in {:?}", self.position.get());
        self.position.set(next.unwrap_or(self.position.get()));
    }
    fn connection(&self) -> Option<Rc<Stream>> {
        self.parts.borrow().connection.clone()
    }
    fn outstanding(&self) -> usize {
        self.position.get().outstanding
    }
}

impl Drop for TransportEndpoint {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

impl core::fmt::Debug for TransportEndpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (provider, position) = (self.provider, self.position.get());
        f.debug_struct("TransportEndpoint").field("provider", &provider).field("position", &position).finish()
    }
}
