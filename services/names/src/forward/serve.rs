//! A forwarder on a host's UDP and TCP.

use super::machine::{Counters, Decision, ForwardConfig, Forwarder, Settled, Visitor};
use crate::ask::{Asker, read_message, write_message};
use crate::asked::Question;
use crate::exchange::Report;
use crate::hosts::Hosts;
use crate::records::{Looked, Source};
use futures_channel::mpsc;
use futures_lite::StreamExt;
use inhost_base::{Duration, Endpoint, IpAddr, Ipv6Addr};
use inhost_socket::{Ends, Host, Listener, Stream, Task, UdpSocket, both, yield_now};
use inhost_stack::{ListenOptions, UdpOptions};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

/// The longest question taken over UDP; a longer one is cut, and cannot be read then.
const QUESTION_BYTES: usize = 4096;
/// A connection on which no question comes for so long is closed (RFC 7766 §6.2.3: a few seconds).
pub const IDLE_LIMIT: Duration = Duration::from_secs(10);
/// A client that does not take a reply for so long is given up.
const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// Connections of one address.
pub const CONNECTIONS_EACH: usize = 8;
/// Replies that one connection is owed; with so many no further question of it is read.
const REPLIES_OWED: usize = 64;
/// How often a connection that is owed so many is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Why a forwarder cannot be had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServeError {
    /// Where it was to listen.
    pub at: Endpoint,
    /// What the host says.
    pub why: String,
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot answer questions about names at {}: {}", self.at, self.why)
    }
}
impl std::error::Error for ServeError {}

/// The way back to a client.
enum Back {
    /// A datagram from where the question came to, to where it came from.
    Datagram(Endpoint, Endpoint),
    /// Over its connection.
    Connection(mpsc::UnboundedSender<(Vec<u8>, Owed)>, Owed),
}

/// One reply that a connection is owed: counted until it is written, or will never be.
struct Owed(Rc<Cell<usize>>);

impl Owed {
    fn new(count: &Rc<Cell<usize>>) -> Owed {
        count.set(count.get() + 1);
        Owed(count.clone())
    }
}
impl Drop for Owed {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

struct Shared {
    asker: Asker,
    machine: RefCell<Forwarder<Back>>,
    socket: UdpSocket,
    open: Cell<usize>,
    open_each: RefCell<BTreeMap<IpAddr, usize>>,
}

/// A running forwarder. Dropping it ends its listeners.
#[must_use = "dropping it ends the forwarder"]
pub struct Forwarding {
    shared: Rc<Shared>,
    _tasks: Vec<Task<()>>,
}

impl Forwarding {
    /// What was done so far.
    pub fn counters(&self) -> Counters {
        self.shared.machine.borrow().counters()
    }
    /// Answers kept, memory that they take, and questions that are being asked.
    pub fn kept(&self) -> (usize, usize, usize) {
        self.shared.machine.borrow().kept()
    }
    /// What the host's own look-ups use.
    pub fn home(&self) -> Home {
        Home(self.shared.clone())
    }
    /// Takes another configuration and table of hosts.
    pub fn change(&self, config: ForwardConfig, hosts: Hosts) {
        self.shared.machine.borrow_mut().change(config, hosts);
    }
}

/// What a forwarder knows and keeps, for the host that it runs on. A clone is the same.
#[derive(Clone)]
pub struct Home(Rc<Shared>);

impl Home {
    /// Answers `question` by the table, by what was kept, or by asking the forwarder's servers, and keeps that.
    pub(crate) async fn record(&self, question: Question, over_tcp: bool) -> Looked {
        let Home(shared) = self;
        let began = shared.asker.host().now();
        let known = shared.machine.borrow_mut().known(&question, began);
        // Who wants a way to be tried wants somebody to be asked.
        if let Some((answer, source)) = known.filter(|(_, source)| !over_tcp || *source == Source::Table) {
            return Looked {
                question,
                source,
                result: Ok(answer),
                attempts: Vec::new(),
                took: Duration::ZERO,
            };
        }
        let servers = shared.machine.borrow().config().servers.clone();
        let report = shared.asker.ask_to_the_end(question, &servers, over_tcp).await;
        let now = shared.asker.host().now();
        if let Ok(answer) = &report.result {
            shared.machine.borrow_mut().keep(&report.question, answer, now);
        }
        let Report { question, result, attempts } = report;
        Looked { question, source: Source::Servers, result, attempts, took: now.since(began) }
    }
    /// Hands out the table of hosts.
    pub(crate) fn with_hosts<R>(&self, ask: impl FnOnce(&Hosts) -> R) -> R {
        ask(self.0.machine.borrow().hosts())
    }
}

/// Starts a forwarder at `port` of all addresses of `host`, which are of both families. `seed` is entropy that nobody
/// else knows.
pub fn serve(
    host: &Host,
    port: u16,
    config: ForwardConfig,
    hosts: Hosts,
    seed: [u8; 32],
) -> Result<Forwarding, ServeError> {
    let at = Endpoint::new(Ipv6Addr::UNSPECIFIED, port);
    let refused = |why: String| ServeError { at, why };
    let listener = host.listen(at, ListenOptions::default()).map_err(|why| refused(why.to_string()))?;
    let socket = host.udp(at, UdpOptions::default()).map_err(|why| refused(why.to_string()))?;
    let shared = Rc::new(Shared {
        asker: Asker::new(host, seed),
        machine: RefCell::new(Forwarder::new(config, hosts)),
        socket,
        open: Cell::new(0),
        open_each: RefCell::default(),
    });
    let tasks = vec![host.spawn(datagrams(shared.clone())), host.spawn(accept(shared.clone(), listener))];
    Ok(Forwarding { shared, _tasks: tasks })
}

async fn datagrams(shared: Rc<Shared>) {
    let mut buffer = vec![0; QUESTION_BYTES];
    loop {
        // An error is news of an earlier reply that nobody took.
        let Ok(received) = shared.socket.receive_from(&mut buffer).await else {
            yield_now().await;
            continue;
        };
        if received.to.address.is_multicast() || received.from.port == 0 {
            continue;
        }
        let bytes = buffer.get(..received.length_bytes).unwrap_or(&buffer);
        let back = Back::Datagram(received.to, received.from);
        decide(&shared, bytes, received.from.address, false, back).await;
    }
}

/// Has the machine decide on one question, and does what it says.
async fn decide(shared: &Rc<Shared>, bytes: &[u8], address: IpAddr, over_tcp: bool, back: Back) {
    let host = shared.asker.host();
    let visitor = Visitor { address, is_near: is_near(host, address), over_tcp };
    let decision = shared.machine.borrow_mut().question(bytes, visitor, back, host.now());
    match decision {
        Decision::Answer(Settled { to, bytes }) => give(shared, to, bytes).await,
        Decision::Ask(number, question) => {
            let asking = ask(shared.clone(), number, question);
            host.spawn(asking).detach();
        }
        Decision::Wait | Decision::Ignore => {}
    }
}

/// Whether an address is in a network of one of the host's links.
fn is_near(host: &Host, address: IpAddr) -> bool {
    host.with_stack(|stack, _| {
        let ip = stack.ip();
        ip.links().any(|link| ip.addresses(link).iter().any(|assigned| assigned.cidr.contains(address)))
    })
}

async fn ask(shared: Rc<Shared>, number: u64, question: Question) {
    let servers = shared.machine.borrow().config().servers.clone();
    let report = shared.asker.ask_to_the_end(question, &servers, false).await;
    let told = shared.machine.borrow_mut().settled(number, &report, shared.asker.host().now());
    for Settled { to, bytes } in told {
        give(&shared, to, bytes).await;
    }
}

/// Sends a reply. A client that is gone, or does not read, loses it.
async fn give(shared: &Shared, back: Back, bytes: Vec<u8>) {
    match back {
        Back::Datagram(own, peer) => {
            let _ = shared.socket.send_between(&bytes, Ends { from: Some(own), to: Some(peer) }).await;
        }
        Back::Connection(replies, owed) => {
            let _ = replies.unbounded_send((bytes, owed));
        }
    }
}

async fn accept(shared: Rc<Shared>, listener: Listener) {
    // Accepting fails only when the listener is closed, as the host goes down.
    while let Ok(stream) = listener.accept().await {
        match Place::take(&shared, stream.remote().address) {
            Some(place) => {
                let connection = connection(shared.clone(), stream, place);
                shared.asker.host().spawn(connection).detach();
            }
            None => stream.abort(),
        }
    }
}

/// One of the places for connections, given back however the connection ends.
struct Place(Rc<Shared>, IpAddr);

impl Place {
    fn take(shared: &Rc<Shared>, address: IpAddr) -> Option<Place> {
        let limit = shared.machine.borrow().config().connections;
        let mut each = shared.open_each.borrow_mut();
        let own = each.get(&address).copied().unwrap_or(0);
        if shared.open.get() >= limit || own >= CONNECTIONS_EACH {
            return None;
        }
        each.insert(address, own + 1);
        shared.open.set(shared.open.get() + 1);
        Some(Place(shared.clone(), address))
    }
}
impl Drop for Place {
    fn drop(&mut self) {
        let Place(shared, address) = self;
        shared.open.set(shared.open.get().saturating_sub(1));
        let mut each = shared.open_each.borrow_mut();
        match each.get(address).copied() {
            Some(own) if own > 1 => drop(each.insert(*address, own - 1)),
            _ => drop(each.remove(address)),
        }
    }
}

/// Reads questions and writes replies, in whatever order they come (RFC 7766 §6.2.1.1), until the client ends or is
/// silent and nothing is owed to it.
async fn connection(shared: Rc<Shared>, stream: Stream, _place: Place) {
    let address = stream.remote().address;
    let host = shared.asker.host().clone();
    let (mut input, mut output) = tokio::io::split(stream);
    // What waits in it is bounded by what is owed.
    let (replies, mut to_write) = mpsc::unbounded();
    let owed = Rc::new(Cell::new(0));
    let reading = async {
        while let Ok(Ok(Some(question))) = host.timeout(IDLE_LIMIT, read_message(&mut input)).await {
            let back = Back::Connection(replies.clone(), Owed::new(&owed));
            decide(&shared, &question, address, true, back).await;
            // Whoever asks faster than he reads waits, which the peer feels by TCP's window.
            while owed.get() >= REPLIES_OWED && !replies.is_closed() {
                host.sleep(LOOK_AGAIN).await;
            }
        }
        drop(replies);
    };
    let writing = async {
        // It ends when nobody who could write to it is left.
        while let Some((reply, _owed)) = to_write.next().await {
            if !matches!(host.timeout(WRITE_LIMIT, write_message(&mut output, &reply)).await, Ok(Ok(()))) {
                return;
            }
        }
    };
    both(reading, writing).await;
}
