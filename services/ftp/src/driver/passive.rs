//! Ports for passive data connections: a range that all sessions share.
//!
//! A port may wait for several clients at once, as long as they come from different addresses; so a few ports serve
//! many sessions. Only the client that received the port gets in.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use inhost_base::{Endpoint, IpAddr};
use inhost_common::{Callers, Transport};

use super::{Accept, Network};

/// Callers that one poll takes from a port, wanted or not.
const ACCEPTS: usize = 16;

/// The caller: the address that somebody has outside, and whether a gateway forwards the connection. All forwarded
/// connections come from the gateway's own address, which tells nobody from anybody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The address outside; of who is not forwarded the address that we see.
    pub address: IpAddr,
    /// Whether a gateway forwards the connection.
    pub is_forwarded: bool,
}

impl Caller {
    /// Whose connection from `peer` is.
    pub fn of(callers: &Callers, peer: Endpoint) -> Caller {
        let outer = callers.forwarded(Transport::Tcp, peer);
        let address = outer.unwrap_or(peer).address.to_canonical();
        Caller { address, is_forwarded: outer.is_some() }
    }
}

type Ports<L> = RefCell<BTreeMap<Endpoint, Rc<Port<L>>>>;

/// The ports. A clone is the same ones.
pub struct PassivePorts<N: Network> {
    inner: Rc<Inner<N>>,
}

impl<N: Network> Clone for PassivePorts<N> {
    fn clone(&self) -> Self {
        PassivePorts { inner: self.inner.clone() }
    }
}

struct Inner<N: Network> {
    network: Rc<N>,
    callers: Callers,
    range: Option<RangeInclusive<u16>>,
    next: Cell<u16>,
    open: Ports<N::Listener>,
}

struct Port<L: Accept> {
    listener: L,
    callers: Callers,
    waiting: RefCell<BTreeMap<u64, Waiting<L::Stream>>>,
    numbers: Cell<u64>,
}

struct Waiting<S> {
    /// The permitted peer; any, where third-party transfers are allowed.
    peer: Option<Caller>,
    stream: Option<S>,
    waker: Option<Waker>,
}

/// A place at a port; dropped, it is given back.
pub struct Lease<N: Network> {
    ports: Rc<Inner<N>>,
    port: Rc<Port<N::Listener>>,
    number: u64,
}

impl<N: Network> PassivePorts<N> {
    /// The ports of `range`, or whichever the system gives; `callers` tells who is forwarded.
    pub fn new(network: Rc<N>, range: Option<RangeInclusive<u16>>, callers: Callers) -> PassivePorts<N> {
        let next = Cell::new(range.as_ref().map_or(0, |range| *range.start()));
        PassivePorts { inner: Rc::new(Inner { network, callers, range, next, open: RefCell::default() }) }
    }

    /// A port of our address `local` at which `peer` will come in; anybody, when that is `None`.
    pub fn lease(&self, local: IpAddr, peer: Option<Caller>) -> io::Result<Lease<N>> {
        let Some(range) = self.inner.range.clone() else { return self.open(Endpoint::new(local, 0), peer) };
        let mut failure = io::Error::from(io::ErrorKind::AddrInUse);
        // First one that nobody has, from the one behind the last; a port is used again as late as can be.
        for _ in range.clone() {
            let port = self.inner.next.get();
            let after = if port >= *range.end() { *range.start() } else { port + 1 };
            self.inner.next.set(after);
            let at = Endpoint::new(local, port);
            if self.inner.open.borrow().contains_key(&at) {
                continue;
            }
            match self.open(at, peer) {
                Ok(lease) => return Ok(lease),
                Err(error) => failure = error,
            }
        }
        let shared =
            self.inner.open.borrow().iter().find_map(|(at, port)| {
                (at.address == local && port.has_room_for(peer)).then(|| port.clone())
            });
        shared.map(|port| self.wait_at(port, peer)).ok_or(failure)
    }

    fn open(&self, at: Endpoint, peer: Option<Caller>) -> io::Result<Lease<N>> {
        let listener = self.inner.network.listen(at)?;
        let (callers, waiting) = (self.inner.callers.clone(), RefCell::default());
        let port = Rc::new(Port { listener, callers, waiting, numbers: Cell::new(0) });
        self.inner.open.borrow_mut().insert(port.listener.local(), port.clone());
        Ok(self.wait_at(port, peer))
    }

    fn wait_at(&self, port: Rc<Port<N::Listener>>, peer: Option<Caller>) -> Lease<N> {
        let number = port.numbers.get();
        port.numbers.set(number + 1);
        port.waiting.borrow_mut().insert(number, Waiting { peer, stream: None, waker: None });
        Lease { ports: self.inner.clone(), port, number }
    }
}

impl<L: Accept> Port<L> {
    /// Whether `peer` differs from all expected peers.
    fn has_room_for(&self, peer: Option<Caller>) -> bool {
        peer.is_some()
            && self.waiting.borrow().values().all(|other| other.peer.is_some() && other.peer != peer)
    }
    /// Takes callers in, each for whom it was meant.
    fn accept(&self, cx: &mut Context<'_>) -> io::Result<()> {
        for _ in 0..ACCEPTS {
            let Poll::Ready(accepted) = self.listener.poll_accept(cx) else { return Ok(()) };
            let (stream, remote) = accepted?;
            let from = Caller::of(&self.callers, remote);
            let mut waiting = self.waiting.borrow_mut();
            let is_for =
                |w: &&mut Waiting<L::Stream>| w.stream.is_none() && w.peer.is_none_or(|peer| peer == from);
            // An unexpected connection is dropped, which resets it.
            let Some(found) = waiting.values_mut().find(is_for) else { continue };
            found.stream = Some(stream);
            if let Some(waker) = found.waker.take() {
                waker.wake();
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }
}

impl<N: Network> Lease<N> {
    /// Endpoint for the client to connect to.
    pub fn local(&self) -> Endpoint {
        self.port.listener.local()
    }
    /// The client's connection.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<N::Stream>> {
        if let Err(error) = self.port.accept(cx) {
            return Poll::Ready(Err(error));
        }
        let mut waiting = self.port.waiting.borrow_mut();
        let Some(own) = waiting.get_mut(&self.number) else { return Poll::Pending };
        match own.stream.take() {
            Some(stream) => Poll::Ready(Ok(stream)),
            None => {
                own.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<N: Network> Drop for Lease<N> {
    fn drop(&mut self) {
        let mut waiting = self.port.waiting.borrow_mut();
        waiting.remove(&self.number);
        if waiting.is_empty() {
            self.ports.open.borrow_mut().remove(&self.port.listener.local());
        }
        // The listener may have known our waker only.
        let wakers: Vec<Waker> = waiting.values_mut().filter_map(|other| other.waker.take()).collect();
        drop(waiting);
        wakers.into_iter().for_each(Waker::wake);
    }
}
