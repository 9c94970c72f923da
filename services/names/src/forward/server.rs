//! A forwarder on a host's UDP and TCP.

use super::connection::connection;
use super::exchange::{Back, Shared, decide};
use super::machine::{Counters, ForwardConfig, Forwarder};
use crate::answer::Source;
use crate::asked::Question;
use crate::driver::DnsClient;
use crate::hosts::Hosts;
use crate::machine::Resolution;
use crate::records::RecordsResult;
use inhost_base::{Duration, Endpoint, Ipv6Addr};
use inhost_common::service::{Doors, Problem};
use inhost_common::{Admission, Callers, Transport, session_log};
use inhost_socket::{Host, UdpSocket, yield_now};
use inhost_stack::UdpOptions;
use std::cell::RefCell;
use std::rc::Rc;

/// The longest question taken over UDP; a longer one is cut, and cannot be read then.
const QUESTION_BYTES: usize = 4096;
/// Send buffer of a connection: the longest reply.
const SEND_BYTES: usize = 64 * 1024;

/// A running forwarder. Dropping it ends its listeners.
#[must_use = "dropping it ends the forwarder"]
pub struct Forwarding {
    shared: Rc<Shared>,
    doors: Doors,
}

impl Forwarding {
    /// Counters since start.
    pub fn counters(&self) -> Counters {
        self.shared.machine.borrow().counters()
    }
    /// Answers kept, memory that they take, and questions that are being asked.
    pub fn kept(&self) -> (usize, usize, usize) {
        self.shared.machine.borrow().kept()
    }
    /// What takes questions.
    pub fn doors(&self) -> &Doors {
        &self.doors
    }
    /// Memory of the replies that connections have not taken.
    pub fn waiting_bytes(&self) -> usize {
        self.shared.waiting_bytes.get()
    }
    /// Handle for the host's own queries.
    pub fn home(&self) -> Home {
        Home(self.shared.clone())
    }
    /// Takes another configuration and table of hosts.
    pub fn change(&self, config: ForwardConfig, hosts: Hosts) {
        self.doors.admission().set_limits(config.limits);
        self.shared.machine.borrow_mut().change(config, hosts);
    }
}

/// Shared state of a forwarder, for its host's resolver. A clone is the same.
#[derive(Clone)]
pub struct Home(Rc<Shared>);

impl Home {
    /// Answers `question` by the table, by what was kept, or by asking the forwarder's servers, and keeps that.
    pub(crate) async fn record(&self, question: Question, over_tcp: bool) -> RecordsResult {
        let Home(shared) = self;
        let began = shared.asker.host().now();
        let known = shared.machine.borrow_mut().known(&question, began);
        // With `--tcp` a server must be asked.
        if let Some((answer, source)) = known.filter(|(_, source)| !over_tcp || *source == Source::Table) {
            return RecordsResult {
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
        let Resolution { question, result, attempts } = report;
        RecordsResult { question, source: Source::Servers, result, attempts, took: now.since(began) }
    }
    /// The servers that are asked.
    pub(crate) fn servers(&self) -> Vec<Endpoint> {
        self.0.machine.borrow().config().servers.clone()
    }
    /// Hands out the table of hosts.
    pub(crate) fn with_hosts<R>(&self, ask: impl FnOnce(&Hosts) -> R) -> R {
        ask(self.0.machine.borrow().hosts())
    }
}

/// Starts a forwarder at `port` of all addresses of `host`, which are of both families. Limits count the outer callers of
/// `callers`. `seed` is entropy that nobody else knows.
pub fn serve(
    host: &Host,
    port: u16,
    config: ForwardConfig,
    hosts: Hosts,
    callers: Callers,
    seed: [u8; 32],
) -> Result<Forwarding, Problem> {
    let at = Endpoint::new(Ipv6Addr::UNSPECIFIED, port);
    let admission = Admission::new(config.limits);
    let doors = Doors::new("names", host, &callers, admission, session_log!("names"));
    let shared = Rc::new(Shared {
        asker: DnsClient::new(host, seed),
        machine: RefCell::new(Forwarder::new(config, hosts)),
        socket: RefCell::default(),
        callers,
        waiting_bytes: Rc::default(),
    });
    let served = shared.clone();
    doors.listen(port, move |stream, caller, permit| {
        // A reply does not wait until the client has acknowledged the one before it.
        stream.set_nagle(false);
        stream.set_send_buffer_limit(SEND_BYTES);
        connection(served.clone(), stream, caller.address, permit)
    })?;
    let served = shared.clone();
    doors.bind(at, UdpOptions::default(), move |socket| {
        let socket = Rc::new(socket);
        served.socket.replace(Rc::downgrade(&socket));
        datagrams(served.clone(), socket)
    })?;
    Ok(Forwarding { shared, doors })
}

async fn datagrams(shared: Rc<Shared>, socket: Rc<UdpSocket>) {
    let mut buffer = vec![0; QUESTION_BYTES];
    loop {
        // An error is news of an earlier reply that nobody took.
        let Ok(received) = socket.receive_from(&mut buffer).await else {
            yield_now().await;
            continue;
        };
        if received.to.address.is_multicast() || received.from.port == 0 {
            continue;
        }
        let bytes = buffer.get(..received.length_bytes).unwrap_or(&buffer);
        let back = Back::Datagram(received.to, received.from);
        let caller = shared.callers.of(Transport::Udp, received.from).address;
        decide(&shared, bytes, received.from.address, caller, false, back).await;
    }
}
