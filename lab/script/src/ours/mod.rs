//! Our own stack: one host on a raw-IP link, driven by a clock that the script keeps.

mod datagrams;
mod device;
mod face;
mod figures;
mod options;

pub use device::Offloads;

use crate::choices::{Choice, Setup};
use crate::language::{CallKind, Failure, Script, SocketCall};
use crate::packet::Ends;
use crate::side::{Came, Figure, PEER_PORTS, SERVER_PORT, Side};
use device::Wire;
use face::Face;
use inhost_base::{Duration, Endpoint, Instant, IpAddr, Ipv4Addr, Ipv6Addr, LinkId};
use inhost_buf::Batch;
use inhost_event::Ignore;
use inhost_stack::{
    AnySocketId, ConnectOptions, DuplicateDetection, FastOpenCall, InterfaceConfig, ListenOptions, Local,
    Medium, Readiness, SendHow, SocketId, Stack, StackConfig, StreamError, TcpSocketId, UdpOptions,
};
use inhost_tcp::{Config, ConnectionError};
use std::collections::{BTreeMap, BTreeSet};

const LINK: LinkId = LinkId(1);
/// Rounds that the host may need at one instant.
const ROUND_LIMIT: usize = 10_000;
/// Frames that one round sends.
const BUDGET_FRAMES: usize = 64;

/// The stack under test and the wire.
pub struct Ours {
    stack: Stack,
    ends: Ends,
    now: Instant,
    origin: Instant,
    wire: Wire,
    sockets: BTreeMap<String, Slot>,
    config: Config,
    listen: ListenOptions,
    connect: ConnectOptions,
    face: Face,
    /// The names of datagram sockets.
    datagrams: BTreeSet<String>,
    datagram_options: UdpOptions,
}

/// Kind of a directory entry.
enum Slot {
    /// Not used yet.
    Fresh(Box<Fresh>),
    /// A listener or a connection.
    Live(AnySocketId),
}

#[derive(Clone)]
struct Fresh {
    port: u16,
    config: Config,
    /// Options that are set as soon as the socket is in use.
    later: Vec<(String, String)>,
}

impl Ours {
    /// A host as `script` wants it, on a device that does what `offloads` says. An error names a setting that is not
    /// known.
    pub fn new(script: &Script, offloads: Offloads) -> Result<Ours, String> {
        let mut config = StackConfig::default();
        let mut listen = ListenOptions::default();
        let mut connect = ConnectOptions::default();
        options::profile(script.profile, &mut config, &mut listen);
        let ends = Ends::new(script.is_ipv6);
        let mut interface = InterfaceConfig::new("wire", Medium::Ip)
            .with_address("10.0.0.1/24".parse().map_err(|_| "10.0.0.1/24 is not an address")?)
            .with_address("fd00::1/64".parse().map_err(|_| "fd00::1/64 is not an address")?);
        interface.duplicate_detection = DuplicateDetection::Off;
        interface.accept_router_advertisements = false;
        offloads.fit(&mut interface);
        let mut datagram_options = options::datagrams(script.profile);
        for setting in &script.host {
            if setting.name == "without" {
                let choice = Choice::named(&setting.value)
                    .ok_or_else(|| format!("{}: no choice is called {}", setting.place, setting.value))?;
                let (config, listen) = (&mut config, &mut listen);
                choice.undo(Setup { config, listen, datagrams: &mut datagram_options });
                continue;
            }
            options::host(setting, &mut config, &mut interface, &mut listen, &mut connect)
                .map_err(|wrong| format!("{}: {wrong}", setting.place))?;
        }
        let origin = Instant::from_millis(1_000_000);
        let tcp = config.tcp.clone();
        let mut stack = Stack::new(config, [42; 32], origin);
        stack.add_link(interface, origin).map_err(|error| format!("{error:?}"))?;
        let wire = Wire::new(origin, offloads);
        let mut ours = Ours {
            stack,
            ends,
            now: origin,
            origin,
            wire,
            sockets: BTreeMap::new(),
            config: tcp,
            listen,
            connect,
            face: Face::new(script.profile),
            datagrams: BTreeSet::new(),
            datagram_options,
        };
        ours.settle()?;
        Ok(ours)
    }
    /// Rounds until the host has nothing more to do in this instant.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..ROUND_LIMIT {
            if self.stack.deadline().is_some_and(|deadline| deadline <= self.now) {
                self.stack.timeout(self.now, &mut Ignore);
            }
            while self.stack.ready().is_some() {}
            self.wire.now = self.now;
            let wants = self.stack.wants_transmit(LINK);
            self.stack.transmit(LINK, self.now, BUDGET_FRAMES, &mut self.wire, &mut Ignore);
            let due = self.stack.deadline().is_some_and(|deadline| deadline <= self.now);
            if !wants && !due {
                return Ok(());
            }
        }
        Err(format!("the stack has work without end at {:?}", self.now))
    }
    fn since_start(&self, at: Instant) -> Instant {
        Instant::ZERO + at.since(self.origin)
    }
    /// The sockets whose connections ended by an error.
    fn failed(&self) -> BTreeSet<SocketId> {
        let live = self.sockets.values().filter_map(|slot| match slot {
            Slot::Live(socket) => socket.tcp(),
            Slot::Fresh(_) => None,
        });
        live.filter(|&socket| {
            self.stack.instruments().connection(socket).and_then(|connection| connection.error()).is_some()
        })
        .map(SocketId::from)
        .collect()
    }
    fn connection(&self, name: &str) -> Result<TcpSocketId, String> {
        self.socket(name)?.tcp().ok_or_else(|| format!("the socket {name} is not a connection"))
    }
    fn socket(&self, name: &str) -> Result<AnySocketId, String> {
        match self.sockets.get(name) {
            Some(Slot::Live(socket)) => Ok(*socket),
            Some(Slot::Fresh(_)) => Err(format!("the socket {name} is not connected and does not listen")),
            None => Err(format!("there is no socket {name}")),
        }
    }
    fn fresh(&self, name: &str) -> Fresh {
        match self.sockets.get(name) {
            Some(Slot::Fresh(fresh)) => (**fresh).clone(),
            _ => Fresh { port: 0, config: self.config.clone(), later: Vec::new() },
        }
    }
    fn connect(&mut self, call: &SocketCall, peer: u8, data: &[u8]) -> Result<Came, String> {
        let name = call.names.as_ref().unwrap_or(&call.on);
        let fresh = self.fresh(name);
        let mut options = self.connect.clone();
        options.local = Local { address: Some(self.ends.host), port: fresh.port };
        options.tcp = Some(fresh.config);
        options.fast_open = if data.is_empty() { FastOpenCall::Off } else { self.connect.fast_open };
        let remote = Endpoint::new(self.ends.peer, PEER_PORTS + u16::from(peer));
        let mut sink = Ignore;
        let mut calls = self.stack.tcp(self.now, &mut sink);
        match calls.connect(remote, options) {
            Ok(socket) => {
                let taken = calls.send(socket, data).unwrap_or(0);
                self.sockets.insert(name.clone(), Slot::Live(AnySocketId::Tcp(socket)));
                self.set_later(socket.into(), &fresh.later)?;
                Ok(if data.is_empty() { Came::Done } else { Came::Taken(taken) })
            }
            Err(inhost_stack::ConnectError::InUse) => Ok(Came::Failed(Failure::InUse)),
            Err(inhost_stack::ConnectError::Route(_)) => Ok(Came::Failed(Failure::Unreachable)),
            Err(error) => Err(error.to_string()),
        }
    }
    fn listen(&mut self, call: &SocketCall, backlog: Option<u32>) -> Result<Came, String> {
        let fresh = self.fresh(&call.on);
        let any = self.any();
        let mut options = self.listen.clone();
        options.tcp = Some(fresh.config);
        if let Some(backlog) = backlog {
            options.backlog = backlog as usize;
        }
        match self.stack.tcp(self.now, &mut Ignore).listen(Endpoint::new(any, SERVER_PORT), options) {
            Ok(socket) => {
                self.sockets.insert(call.on.clone(), Slot::Live(AnySocketId::Listener(socket)));
                self.set_later(socket.into(), &fresh.later)?;
                Ok(Came::Done)
            }
            Err(inhost_stack::BindError::InUse) => Ok(Came::Failed(Failure::InUse)),
            Err(error) => Err(error.to_string()),
        }
    }
    /// Any address of the host's family.
    fn any(&self) -> IpAddr {
        match self.ends.host {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        }
    }
    fn accept(&mut self, call: &SocketCall) -> Result<Came, String> {
        let AnySocketId::Listener(listener) = self.socket(&call.on)? else {
            return Err(format!("the socket {} is not a listener", call.on));
        };
        match self.stack.tcp(self.now, &mut Ignore).accept(listener).map_err(|error| error.to_string())? {
            Some(accepted) => {
                let name = call.names.clone().unwrap_or_default();
                self.sockets.insert(name, Slot::Live(AnySocketId::Tcp(accepted.socket)));
                Ok(Came::Done)
            }
            None => Ok(Came::Failed(Failure::WouldBlock)),
        }
    }
    fn write(&mut self, socket: TcpSocketId, data: &[u8], how: SendHow) -> Result<Came, String> {
        let mut taken = 0;
        while taken < data.len() {
            match self.stack.tcp(self.now, &mut Ignore).send_with(socket, &data[taken..], how) {
                Ok(bytes) => taken += bytes,
                Err(_) if taken > 0 => break,
                Err(error) => return failed(error),
            }
        }
        Ok(Came::Taken(taken))
    }
    fn read(&mut self, socket: TcpSocketId, bytes: usize) -> Result<Came, String> {
        let mut place = vec![0; bytes];
        let mut count = 0;
        while count < bytes {
            match self.stack.tcp(self.now, &mut Ignore).read(socket, &mut place[count..]) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(error) if count > 0 => {
                    // The error was reported by the second call; the kernel is asked in the same way.
                    self.face.read(socket.into(), failed(error)?);
                    break;
                }
                Err(error) => return failed(error),
            }
        }
        place.truncate(count);
        Ok(Came::Read(place))
    }
    fn close(&mut self, call: &SocketCall, abort: bool) -> Result<Came, String> {
        let socket = self.socket(&call.on)?;
        let done = match socket {
            AnySocketId::Tcp(id) if abort => self.stack.tcp(self.now, &mut Ignore).abort(id),
            _ => self.stack.close(socket, self.now, &mut Ignore),
        };
        done.map(|()| Came::Done).map_err(|error| error.to_string())
    }
    fn set(&mut self, call: &SocketCall, option: &str, value: &str) -> Result<Came, String> {
        match self.sockets.get_mut(&call.on) {
            Some(Slot::Fresh(fresh)) if options::is_for_later(option) => {
                fresh.later.push((option.to_owned(), value.to_owned()));
                Ok(Came::Done)
            }
            Some(Slot::Fresh(fresh)) => {
                options::before_use(option, value, &mut fresh.config)?;
                Ok(Came::Done)
            }
            Some(Slot::Live(socket)) => {
                let socket = *socket;
                options::in_use(option, value, socket.into(), &mut self.stack, self.now)
            }
            None => Err(format!("there is no socket {}", call.on)),
        }
    }
    fn set_later(&mut self, socket: SocketId, options: &[(String, String)]) -> Result<(), String> {
        for (option, value) in options {
            options::in_use(option, value, socket, &mut self.stack, self.now)?;
        }
        Ok(())
    }
    fn error(&mut self, connection: Option<TcpSocketId>) -> Came {
        match connection
            .and_then(|id| self.stack.instruments().connection(id).and_then(|connection| connection.error()))
        {
            None => Came::Done,
            Some(error) => Came::Failed(failure_of(error)),
        }
    }
}

fn failed(error: StreamError) -> Result<Came, String> {
    Ok(Came::Failed(match error {
        StreamError::WouldBlock => Failure::WouldBlock,
        StreamError::Shutdown => Failure::Closed,
        StreamError::Connection(error) => failure_of(error),
        other => return Err(other.to_string()),
    }))
}
fn failure_of(error: ConnectionError) -> Failure {
    match error {
        ConnectionError::Refused => Failure::Refused,
        ConnectionError::Reset => Failure::Reset,
        ConnectionError::TimedOut | ConnectionError::KeepAliveTimedOut => Failure::TimedOut,
        ConnectionError::Unreachable
        | ConnectionError::NetworkUnreachable
        | ConnectionError::ProtocolUnreachable
        | ConnectionError::ParameterProblem => Failure::Unreachable,
        _ => Failure::Closed,
    }
}

/// Whether a packet is a router's message, or another of that protocol.
fn is_icmp(packet: &[u8]) -> bool {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => packet.get(9) == Some(&1),
        _ => packet.get(6) == Some(&58),
    }
}

impl Side for Ours {
    fn now(&self) -> Instant {
        self.since_start(self.now)
    }
    fn slack(&self, _due_in: Duration) -> Duration {
        // Timers may be kept in milliseconds.
        Duration::from_millis(1)
    }
    fn inject(&mut self, packet: &[u8]) -> Result<(), String> {
        let Some(mut place) = self.stack.pool().take(packet.len()) else {
            return Err("the stack has no memory for a packet".into());
        };
        place.append(packet);
        self.wire.check(&mut place, self.ends.host, self.ends.peer);
        let mut batch = Batch::new();
        if batch.push(place).is_err() {
            return Err("a batch holds no packet".into());
        }
        let before = self.failed();
        self.stack.receive(LINK, &mut batch, self.now, &mut Ignore);
        if is_icmp(packet) {
            let after = self.failed();
            self.face.ended(after.difference(&before).copied());
        }
        self.settle()
    }
    fn next_packet(&mut self, until: Instant) -> Result<Option<(Instant, Vec<u8>)>, String> {
        let until = self.origin + until.since(Instant::ZERO);
        loop {
            if let Some((at, packet)) = self.wire.sent.pop_front() {
                return Ok(Some((self.since_start(at), packet)));
            }
            match self.stack.deadline().filter(|&deadline| deadline <= until) {
                Some(deadline) => {
                    self.now = self.now.max(deadline);
                    self.settle()?;
                }
                None => {
                    self.now = self.now.max(until);
                    return Ok(None);
                }
            }
        }
    }
    fn call(&mut self, call: &SocketCall, data: &[u8]) -> Result<Came, String> {
        let came = match &call.what {
            CallKind::Socket { port } => {
                let fresh = Fresh { port: port.unwrap_or(0), config: self.config.clone(), later: Vec::new() };
                let name = call.names.as_ref().unwrap_or(&call.on).clone();
                self.sockets.insert(name, Slot::Fresh(Box::new(fresh)));
                Came::Done
            }
            CallKind::Datagrams { port } => self.open_datagrams(call, *port)?,
            CallKind::Send { to, .. } => self.send_datagram(call, *to, data)?,
            CallKind::Receive { bytes } => self.receive_datagram(call, *bytes)?,
            CallKind::Connect { peer, .. } if self.datagrams.contains(&call.on) => {
                self.connect_datagrams(call, *peer)?
            }
            CallKind::Error if self.datagrams.contains(&call.on) => self.datagram_error(call)?,
            CallKind::Connect { peer, .. } => self.connect(call, *peer, data)?,
            CallKind::Listen { backlog } => self.listen(call, *backlog)?,
            CallKind::Accept => self.accept(call)?,
            CallKind::Write { urgent, more, .. } => {
                let how = SendHow { urgent: *urgent, more: *more, ..SendHow::default() };
                let socket = self.connection(&call.on)?;
                match self.face.may_write(&self.stack, socket.into(), self.now) {
                    true => {
                        let came = self.write(socket, data, how)?;
                        let error = self
                            .stack
                            .instruments()
                            .connection(socket)
                            .and_then(|connection| connection.error())
                            .map(failure_of);
                        self.face.written(socket.into(), came, error)
                    }
                    false => Came::Failed(Failure::WouldBlock),
                }
            }
            CallKind::Read { bytes } => {
                let socket = self.connection(&call.on)?;
                let came = self.read(socket, *bytes)?;
                self.face.read(socket.into(), came)
            }
            CallKind::Shutdown => {
                let socket = self.connection(&call.on)?;
                let may = self.face.shuts_down(&self.stack, socket.into(), self.now);
                let done = self.stack.tcp(self.now, &mut Ignore).shutdown(socket);
                done.map_err(|error| error.to_string())?;
                if may { Came::Done } else { Came::Failed(Failure::NotConnected) }
            }
            CallKind::Close => self.close(call, false)?,
            CallKind::Abort => self.close(call, true)?,
            CallKind::Set { option, value } => self.set(call, option, value)?,
            CallKind::Error => {
                let socket = self.socket(&call.on)?;
                let connection = socket.tcp();
                let came = self.error(connection);
                let soft = connection.and_then(|id| {
                    self.stack.instruments().connection(id).and_then(|connection| connection.soft_error())
                });
                self.face.error(socket.into(), came, soft)
            }
        };
        self.settle()?;
        Ok(came)
    }
    fn figure(&mut self, on: &str, field: &str) -> Result<Option<Figure>, String> {
        let socket = self.socket(on)?;
        let info = self.stack.instruments().info(socket, self.now).and_then(|info| info.tcp);
        match info {
            Some(info) => figures::figure(&info, field).map(Some),
            // A connection that is over and forgotten.
            None if field == "state" => Ok(Some(Figure::Word("CLOSED".into()))),
            None => Err(format!("the socket {on} is not a connection")),
        }
    }
    fn is_ready(&mut self, on: &str, field: &str) -> Result<Option<bool>, String> {
        let wanted = match field {
            "readable" => Readiness::READABLE,
            "writable" => Readiness::WRITABLE,
            "acceptable" => Readiness::ACCEPTABLE,
            "connected" => Readiness::CONNECTED,
            "peer_closed" => Readiness::PEER_CLOSED,
            "urgent" => Readiness::URGENT,
            "error" => Readiness::ERROR,
            other => return Err(format!("no readiness is called {other}")),
        };
        let socket = self.socket(on)?;
        let is_ready = self.stack.readiness(socket).contains(wanted);
        let is_ready = is_ready && self.face.shows(&self.stack, socket.into(), field, self.now);
        Ok(Some(if field == "error" { self.face.has_error(socket.into(), is_ready) } else { is_ready }))
    }
}
