//! Datagrams: the guest's outward, each conversation through a socket of the system's own, and inward through
//! forwarded ports.

use crate::codec::tftp::is_file_request;
use crate::codec::{self, Unreachable};
use crate::config::RouteDecision;
use crate::machine::{Flows, Pair, ReplyPort, ReplyPorts};
use crate::state::{Counted, State};
use inhost_base::{Duration, Endpoint, Instant, IpAddr};
use inhost_common::{Forwarded, Transport};
use inhost_runtime::{AsyncFd, Interest};
use inhost_socket::{Ends, Task, UdpSocket};
use inhost_stack::UdpOptions;
use nix::sys::socket::{MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::net::{self, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::rc::Rc;

/// The longest datagram.
const DATAGRAM_BYTES: usize = 65_535;
/// Datagrams carried in one direction before others have their turn.
const DATAGRAMS_A_TURN: usize = 32;
/// Timeout of a DNS query before the next server is asked.
const RESOLVER_TIMEOUT: Duration = Duration::from_millis(1_500);

/// One conversation of the guest's.
struct Flow {
    system: Rc<AsyncFd<net::UdpSocket>>,
    /// The other end, whose replies may come from another port than was asked.
    reply_port: Option<Rc<ReplyPort>>,
    /// To which name server it goes, if it does, and since when that owes an answer.
    resolver: Option<(usize, Rc<Cell<Option<Instant>>>)>,
    _task: Task<()>,
    _counted: Counted,
}

/// The conversations that go outward over one any-address socket.
pub(crate) struct Outward {
    state: Rc<State>,
    guest: Rc<UdpSocket>,
    flows: RefCell<Flows<Pair, Flow>>,
    /// One a flow at most.
    reply_ports: ReplyPorts,
}

/// A conversation's socket, and its other end where that is not fixed.
type Known = (Rc<AsyncFd<net::UdpSocket>>, Option<Rc<ReplyPort>>);

/// What an answer is news for.
struct News {
    answered: Option<Rc<Cell<Option<Instant>>>>,
    reply_port: Option<Rc<ReplyPort>>,
}

impl Outward {
    pub(crate) fn new(state: &Rc<State>, guest: UdpSocket) -> Rc<Outward> {
        let flows = RefCell::new(Flows::new(state.config.udp_flows_limit));
        let reply_ports = Rc::default();
        Rc::new(Outward { state: state.clone(), guest: Rc::new(guest), flows, reply_ports })
    }

    /// Takes every datagram that the guest sends, to whomever.
    pub(crate) async fn run(self: Rc<Self>) {
        let mut place = vec![0; DATAGRAM_BYTES];
        let mut turn = 0;
        loop {
            // An error is news of an answer that the guest did not take.
            let Ok(received) = self.guest.receive_from(&mut place).await else { continue };
            let bytes = &place[..received.length_bytes.min(place.len())];
            self.datagram(received.from, received.to, bytes);
            turn += 1;
            if turn % DATAGRAMS_A_TURN == 0 {
                futures_lite::future::yield_now().await;
            }
        }
    }

    fn datagram(self: &Rc<Self>, from: Endpoint, to: Endpoint, bytes: &[u8]) {
        let now = self.state.host.now();
        let known = self.known(from, to, now).or_else(|| self.begin(from, to, bytes, now));
        let Some((system, reply_port)) = known else { return };
        let send = |socket: &net::UdpSocket| match &reply_port {
            Some(reply_port) => socket.send_to(bytes, reply_port.destination(bytes)),
            None => socket.send(bytes),
        };
        let mut sent = system.try_io(Interest::Write, send);
        if sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            // That is news of an earlier datagram; this one was not tried yet.
            self.failed(from, to, &system, reply_port.is_none(), Unreachable::Port);
            sent = system.try_io(Interest::Write, send);
        }
        match sent {
            Ok(_) => self.state.count(|c| c.datagrams_outward += 1),
            Err(_) => self.state.count(|c| c.datagrams_dropped += 1),
        }
    }

    /// The socket of a conversation that goes on. One whose name server is silent begins anew, with another.
    fn known(&self, from: Endpoint, to: Endpoint, now: Instant) -> Option<Known> {
        let mut flows = self.flows.borrow_mut();
        let asked = self.reply_ports.borrow().get(&(from, to)).copied().unwrap_or(to);
        let flow = flows.touch((from, asked), now)?;
        if let Some((number, asked)) = &flow.resolver {
            match asked.get() {
                None => asked.set(Some(now)),
                Some(since) if now.since(since) >= RESOLVER_TIMEOUT => {
                    self.state.resolver_failed(*number);
                    let silent = flows.remove((from, to));
                    drop((flows, silent));
                    return None;
                }
                Some(_) => {}
            }
        }
        Some((flow.system.clone(), flow.reply_port.clone()))
    }

    fn begin(self: &Rc<Self>, from: Endpoint, to: Endpoint, bytes: &[u8], now: Instant) -> Option<Known> {
        let state = &self.state;
        let (outside, resolver, idle) = match state.config.route(to) {
            RouteDecision::Closed(why) => {
                state.count(|c| c.datagrams_dropped += 1);
                self.tell(from, to, why.into());
                return None;
            }
            RouteDecision::Outside(outside) => (outside, None, state.config.udp_idle),
            RouteDecision::Names => {
                let (number, resolver) = state.resolver()?;
                (resolver.into(), Some(number), state.config.names_idle)
            }
        };
        let reply_port = (is_file_request(bytes) && resolver.is_none())
            .then(|| ReplyPort::new(outside, &self.reply_ports));
        let system = match open(state, outside, reply_port.is_none()) {
            Ok(system) => Rc::new(system),
            Err(error) => {
                state.count(|c| c.datagrams_dropped += 1);
                if !state.is_exhausted(&error) {
                    self.tell(from, to, Unreachable::Host);
                }
                return None;
            }
        };
        let resolver = resolver.map(|number| (number, Rc::new(Cell::new(Some(now)))));
        let number = self.flows.borrow().next_number();
        let answered = resolver.as_ref().map(|(_, asked)| asked.clone());
        let news = News { answered, reply_port: reply_port.clone() };
        let task = state.host.spawn(self.clone().answers(from, to, number, system.clone(), news));
        let counted = Counted::new(state);
        let flow = Flow {
            system: system.clone(),
            reply_port: reply_port.clone(),
            resolver,
            _task: task,
            _counted: counted,
        };
        let removed = self.flows.borrow_mut().insert((from, to), flow, idle, now);
        drop(removed);
        Some((system, reply_port))
    }

    /// Carries answers back until the conversation has been silent for its time.
    async fn answers(
        self: Rc<Self>,
        from: Endpoint,
        to: Endpoint,
        number: u64,
        system: Rc<AsyncFd<net::UdpSocket>>,
        news: News,
    ) {
        let host = &self.state.host;
        let mut turn = 0;
        loop {
            let expires = self.flows.borrow().expires((from, to), number);
            let Some(expires) = expires.filter(|&at| at > host.now()) else { break };
            let next = async { Some(self.answer(from, to, &system, news.reply_port.as_deref()).await) };
            let silence = async {
                host.sleep_until(expires).await;
                None
            };
            if futures_lite::future::or(next, silence).await == Some(true) {
                self.flows.borrow_mut().touch((from, to), host.now());
                if let Some(asked) = &news.answered {
                    asked.set(None);
                }
            }
            turn += 1;
            if turn % DATAGRAMS_A_TURN == 0 {
                futures_lite::future::yield_now().await;
            }
        }
        let over = self.flows.borrow_mut().remove_numbered((from, to), number);
        drop(over);
    }

    /// Carries one answer; false when it was bad news instead.
    async fn answer(
        &self,
        from: Endpoint,
        mut to: Endpoint,
        system: &AsyncFd<net::UdpSocket>,
        reply_port: Option<&ReplyPort>,
    ) -> bool {
        system.readable().await;
        let mut place = self.state.scratch.borrow_mut();
        let length = match system.try_io(Interest::Read, |socket| socket.recv_from(&mut place)) {
            Ok((length, source)) => {
                if let Some(reply_port) = reply_port {
                    if source.ip().to_canonical() != reply_port.address().to_canonical() {
                        return false;
                    }
                    reply_port.set(from, to, source.port());
                    to.port = source.port();
                }
                length
            }
            Err(error) => {
                drop(place);
                let is_fixed = reply_port.is_none();
                match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
                    io::ErrorKind::ConnectionRefused => {
                        self.failed(from, to, system, is_fixed, Unreachable::Port);
                    }
                    _ => self.failed(from, to, system, is_fixed, Unreachable::Host),
                }
                return false;
            }
        };
        let context = std::task::Context::from_waker(std::task::Waker::noop());
        // A guest that takes nothing loses datagrams, as it would from a full queue anywhere.
        let sent = self.guest.poll_send(&context, &place[..length], Ends { from: Some(to), to: Some(from) });
        let carried = matches!(sent, std::task::Poll::Ready(Ok(())));
        self.state.count(|c| if carried { c.datagrams_inward += 1 } else { c.datagrams_dropped += 1 });
        true
    }

    /// The system's socket has news that what the guest sent did not arrive. One that talks to several ports says to which.
    fn failed(
        &self,
        from: Endpoint,
        to: Endpoint,
        system: &AsyncFd<net::UdpSocket>,
        is_fixed: bool,
        why: Unreachable,
    ) {
        if is_fixed {
            return self.tell(from, to, why);
        }
        for _ in 0..DATAGRAMS_A_TURN {
            let Some(port) = failed_port(system) else { break };
            self.tell(from, Endpoint { port, ..to }, why);
        }
    }
    /// Tells the guest that what it sent did not arrive.
    fn tell(&self, from: Endpoint, to: Endpoint, why: Unreachable) {
        let network = &self.state.config.network;
        let gateway = match from.address {
            IpAddr::V4(_) => IpAddr::V4(network.gateway_v4),
            IpAddr::V6(_) => IpAddr::V6(network.gateway_v6),
        };
        let quoted = codec::quoted_datagram(from, to);
        let news = codec::unreachable(gateway, from.address, why, &quoted);
        self.state.aside.borrow_mut().send(news);
    }
}

/// A socket of the system's that talks to `outside`, and to nobody else when it `is_fixed`.
fn open(state: &State, outside: SocketAddr, is_fixed: bool) -> io::Result<AsyncFd<net::UdpSocket>> {
    let any: IpAddr = match outside {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = net::UdpSocket::bind((any, 0))?;
    match outside {
        _ if is_fixed => socket.connect(outside)?,
        // Otherwise the system tells of ports that are closed to connected sockets alone.
        SocketAddr::V4(_) => setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?,
        SocketAddr::V6(_) => setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?,
    }
    AsyncFd::new(&state.reactor, socket)
}

/// The port of the next destination that did not take what was sent to it (ip(7), `IP_RECVERR`).
fn failed_port(system: &AsyncFd<net::UdpSocket>) -> Option<u16> {
    let mut nothing = [IoSliceMut::new(&mut [])];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let fd = system.inner().as_raw_fd();
    let news = recvmsg::<SockaddrStorage>(fd, &mut nothing, None, flags).ok()?;
    let end = news.address?;
    end.as_sockaddr_in().map(|v4| v4.port()).or_else(|| end.as_sockaddr_in6().map(|v6| v6.port()))
}

/// The guest's side of a conversation, and where its answers come from when that is not fixed.
type Called = (Rc<UdpSocket>, Option<Rc<Cell<Option<u16>>>>);

/// One conversation that began outside.
struct Caller {
    guest: Rc<UdpSocket>,
    /// The guest's port that answered, for a request whose answer comes from another.
    reply_port: Option<Rc<Cell<Option<u16>>>>,
    _task: Task<()>,
    _counted: Counted,
    _forwarded: Forwarded,
}

/// Ends the conversations of a forwarded port when it is dropped: their answers leave by its socket, which each of them
/// keeps.
struct Port(Rc<Inward>);

impl Drop for Port {
    fn drop(&mut self) {
        let callers = self.0.callers.replace(Flows::new(0));
        drop(callers);
    }
}

/// One forwarded port.
pub(crate) struct Inward {
    state: Rc<State>,
    system: AsyncFd<net::UdpSocket>,
    guest_port: u16,
    callers: RefCell<Flows<SocketAddr, Caller>>,
}

impl Inward {
    pub(crate) fn new(state: &Rc<State>, system: AsyncFd<net::UdpSocket>, guest_port: u16) -> Rc<Inward> {
        let callers = RefCell::new(Flows::new(state.config.udp_flows_limit));
        Rc::new(Inward { state: state.clone(), system, guest_port, callers })
    }

    /// Takes the datagrams that come in. Once this is dropped, the port is free.
    pub(crate) async fn run(self: Rc<Self>) {
        let _port = Port(self.clone());
        let mut place = vec![0; DATAGRAM_BYTES];
        let mut turn = 0;
        loop {
            // An error is news of an answer that nobody took.
            let Ok((length, from)) = self.system.receive_from(&mut place).await else {
                self.state.host.sleep(Duration::from_millis(1)).await;
                continue;
            };
            let now = self.state.host.now();
            let is_request = is_file_request(&place[..length]);
            let known = {
                let mut callers = self.callers.borrow_mut();
                callers.touch(from, now).map(|caller| (caller.guest.clone(), caller.reply_port.clone()))
            };
            let Some((guest, reply_port)) = known.or_else(|| self.begin(from, is_request, now)) else {
                self.state.count(|c| c.datagrams_dropped += 1);
                continue;
            };
            let context = std::task::Context::from_waker(std::task::Waker::noop());
            let to = reply_port.map(|port| {
                let (_, address) = self.state.config.network.ends_for(from);
                let answered = port.get().filter(|_| !is_request);
                Endpoint { address, port: answered.unwrap_or(self.guest_port) }
            });
            let sent = guest.poll_send(&context, &place[..length], Ends { from: None, to });
            let carried = matches!(sent, std::task::Poll::Ready(Ok(())));
            self.state.count(|c| if carried { c.datagrams_inward += 1 } else { c.datagrams_dropped += 1 });
            turn += 1;
            if turn % DATAGRAMS_A_TURN == 0 {
                futures_lite::future::yield_now().await;
            }
        }
    }

    fn begin(self: &Rc<Self>, from: SocketAddr, is_request: bool, now: Instant) -> Option<Called> {
        let (gateway, address) = self.state.config.network.ends_for(from);
        let guest = self.state.host.udp(Endpoint::new(gateway, 0), UdpOptions::default()).ok()?;
        if !is_request {
            guest.connect(Endpoint { address, port: self.guest_port }).ok()?;
        }
        let reply_port = is_request.then(Rc::default);
        let guest = Rc::new(guest);
        let number = self.callers.borrow().next_number();
        let answers = self.clone().answers(from, number, guest.clone(), reply_port.clone());
        let task = self.state.host.spawn(answers);
        // Entered before the first datagram goes to the guest.
        let outer = Endpoint::new(from.ip().to_canonical(), from.port());
        let forwarded = self.state.config.callers.enter(Transport::Udp, guest.local(), outer);
        let caller = Caller {
            guest: guest.clone(),
            reply_port: reply_port.clone(),
            _task: task,
            _counted: Counted::new(&self.state),
            _forwarded: forwarded,
        };
        let idle = self.state.config.udp_idle;
        let removed = self.callers.borrow_mut().insert(from, caller, idle, now);
        drop(removed);
        Some((guest, reply_port))
    }

    async fn answers(
        self: Rc<Self>,
        to: SocketAddr,
        number: u64,
        guest: Rc<UdpSocket>,
        reply_port: Option<Rc<Cell<Option<u16>>>>,
    ) {
        let host = &self.state.host;
        let scratch = &self.state.scratch;
        loop {
            let expires = self.callers.borrow().expires(to, number);
            let Some(expires) = expires.filter(|&at| at > host.now()) else { break };
            let next = poll_fn(|context| {
                let received = guest.poll_receive(context, &mut scratch.borrow_mut());
                received.map(Result::ok)
            });
            let silence = async {
                host.sleep_until(expires).await;
                None
            };
            let Some(received) = futures_lite::future::or(next, silence).await else { continue };
            let length = received.length_bytes;
            if let Some(reply_port) = &reply_port {
                if received.from.address != self.state.config.network.ends_for(to).1 {
                    continue;
                }
                reply_port.set(Some(received.from.port));
            }
            self.callers.borrow_mut().touch(to, host.now());
            // Nothing else has run since the datagram was put there.
            let place = scratch.borrow();
            let bytes = &place[..length.min(place.len())];
            match self.system.try_io(Interest::Write, |socket| socket.send_to(bytes, to)) {
                Ok(_) => self.state.count(|c| c.datagrams_outward += 1),
                Err(_) => self.state.count(|c| c.datagrams_dropped += 1),
            }
        }
        let over = self.callers.borrow_mut().remove_numbered(to, number);
        drop(over);
    }
}
