//! The services on a host: listeners, limits, and one local task for each socket and connection.

use crate::driver::{self, Progress};
use crate::{Daytime, LINE_BYTES, Pattern};
use futures_lite::future;
use inhost_base::{Duration, Endpoint, Instant, IpAddr, Ipv6Addr};
use inhost_common::service::{Doors, Problem};
use inhost_common::{
    Admission, AdmissionLimits, Callers, Guard, Over, Permit, Rate, SessionEvent, Transport, session_log,
};
use inhost_socket::{Ends, Host, Stream, UdpSocket};
use inhost_stack::UdpOptions;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The longest datagram taken; a longer one is cut.
const DATAGRAM_BYTES: usize = 65_507;
/// RFC 864: a datagram of characters has at most so many.
const CHARGEN_DATAGRAM_BYTES: usize = 512;

/// One of the services.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Service {
    /// RFC 862.
    Echo,
    /// RFC 863.
    Discard,
    /// RFC 867.
    Daytime,
    /// RFC 864.
    Chargen,
}

impl Service {
    /// All four.
    pub const ALL: [Service; 4] = [Service::Echo, Service::Discard, Service::Daytime, Service::Chargen];

    /// The port that the RFC gives it, for TCP and UDP.
    pub const fn port(self) -> u16 {
        match self {
            Service::Echo => 7,
            Service::Discard => 9,
            Service::Daytime => 13,
            Service::Chargen => 19,
        }
    }
    /// Its name, as in the list of assigned ports.
    pub const fn name(self) -> &'static str {
        match self {
            Service::Echo => "echo",
            Service::Discard => "discard",
            Service::Daytime => "daytime",
            Service::Chargen => "chargen",
        }
    }
}

/// Which services run, where, and how much of them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LittleConfig {
    /// Services with their ports. Default: all four at their own.
    pub services: Vec<(Service, u16)>,
    /// Our addresses to serve at. Default: `::`, which stands for all of both families.
    pub addresses: Vec<IpAddr>,
    /// Connections of all services together, and of one caller; beyond them callers are reset. Default: 64, of which one
    /// caller has 16, in any number a minute: a short connection costs little more than the handshake, which anyone may
    /// have. Cost: two tasks' memory and a chunk of 4 KiB each.
    pub limits: AdmissionLimits,
    /// A connection on which nothing has moved for so long is reset. Default: 5 minutes.
    pub idle_limit: Duration,
    /// Datagrams that one address is answered. Default: 20 at once and 10 in a second.
    pub answers_each: Rate,
    /// Datagrams that all addresses together are answered. Default: 200 at once and 100 in a second.
    pub answers_all: Rate,
}

impl Default for LittleConfig {
    fn default() -> Self {
        LittleConfig {
            services: Service::ALL.map(|service| (service, service.port())).to_vec(),
            addresses: vec![Ipv6Addr::UNSPECIFIED.into()],
            limits: AdmissionLimits::per_minute(64, 16, u32::MAX),
            idle_limit: Duration::from_secs(300),
            answers_each: Rate { burst: 20, per_second: 10 },
            answers_all: Rate { burst: 200, per_second: 100 },
        }
    }
}

/// Counters since start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Connections served.
    pub connections: u64,
    /// Connections reset because too many were open, of all callers or of one.
    pub connections_refused: u64,
    /// Connections reset because nothing moved.
    pub connections_idle: u64,
    /// Datagrams answered.
    pub answers: u64,
    /// Datagrams not answered because of their source, or of too many, or of no way back.
    pub unanswered: u64,
}

/// The running services. Dropping it ends their listeners; connections end when their callers or their limits say so.
#[must_use = "dropping it ends the services"]
pub struct Little {
    shared: Rc<Shared>,
    doors: Doors,
}

impl Little {
    /// Counters since start.
    pub fn counters(&self) -> Counters {
        self.shared.counters.get()
    }
    /// What takes callers.
    pub fn doors(&self) -> &Doors {
        &self.doors
    }
    /// Connections open now.
    pub fn connections(&self) -> usize {
        self.doors.admission().sessions()
    }
}

struct Shared {
    host: Host,
    config: LittleConfig,
    unix_seconds: Box<dyn Fn() -> u64>,
    callers: Callers,
    guard: RefCell<Guard>,
    counters: Cell<Counters>,
}

impl Shared {
    fn count(&self, change: impl FnOnce(&mut Counters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }
}

/// Starts the services of `config` on `host`. Limits count the outer callers of `callers`. `unix_seconds` is the wall
/// clock that daytime tells: seconds since the start of 1970, UTC.
pub fn serve(
    host: &Host,
    config: LittleConfig,
    callers: Callers,
    unix_seconds: impl Fn() -> u64 + 'static,
) -> Result<Little, Problem> {
    let shared = Rc::new(Shared {
        host: host.clone(),
        callers: callers.clone(),
        guard: RefCell::new(Guard::new(config.answers_each, config.answers_all)),
        config,
        unix_seconds: Box::new(unix_seconds),
        counters: Cell::default(),
    });
    let own = shared.clone();
    let log = move |event: SessionEvent<'_>| {
        if let SessionEvent::Refused { .. } = event {
            own.count(|c| c.connections_refused += 1);
        }
        session_log!("little")(event);
    };
    let doors = Doors::new("little", host, &callers, Admission::new(shared.config.limits), log);
    for &(service, port) in &shared.config.services {
        for &address in &shared.config.addresses {
            let (at, own) = (Endpoint::new(address, port), shared.clone());
            doors.listen_at(at, doors.admission(), move |stream, _, permit| {
                serve_connection(own.clone(), stream, service, permit)
            })?;
            let own = shared.clone();
            doors
                .bind(at, UdpOptions::default(), move |socket| answer(own.clone(), socket, service, port))?;
        }
    }
    Ok(Little { shared, doors })
}

/// When something last moved.
struct LastMoved<'a> {
    host: &'a Host,
    at: Cell<Instant>,
}

impl Progress for LastMoved<'_> {
    fn made(&self) {
        self.at.set(self.host.now());
    }
}

/// Why a connection ends.
enum Ended {
    Served,
    Idle,
    Dropped,
}

async fn serve_connection(shared: Rc<Shared>, mut stream: Stream, service: Service, permit: Permit) {
    shared.count(|c| c.connections += 1);
    if service != Service::Chargen {
        // An answer is all that there is to say until the caller goes on.
        stream.set_nagle(false);
    }
    let moved = LastMoved { host: &shared.host, at: Cell::new(shared.host.now()) };
    let work = async {
        // How the peer ended it is the peer's affair.
        let _ = match service {
            Service::Echo => driver::echo(&mut stream, &moved).await,
            Service::Discard => driver::discard(&mut stream, &moved).await,
            Service::Daytime => driver::daytime(&mut stream, Daytime::new((shared.unix_seconds)())).await,
            Service::Chargen => driver::chargen(&mut stream, &moved).await,
        };
        Ended::Served
    };
    let limit = match service {
        Service::Daytime => driver::DAYTIME_CLOSE.min(shared.config.idle_limit),
        _ => shared.config.idle_limit,
    };
    let idle = async {
        loop {
            let until = moved.at.get() + limit;
            if shared.host.now() >= until {
                return Ended::Idle;
            }
            shared.host.sleep_until(until).await;
        }
    };
    let over = async {
        match poll_fn(|cx| permit.poll_over(cx)).await {
            Over::Dropped => Ended::Dropped,
            // The connection may still end by itself.
            Over::HostEnds => std::future::pending().await,
        }
    };
    let ended = future::or(work, future::or(idle, over)).await;
    if matches!(ended, Ended::Idle) {
        shared.count(|c| c.connections_idle += 1);
    }
    if !matches!(ended, Ended::Served) {
        stream.abort();
    }
}

async fn answer(shared: Rc<Shared>, socket: UdpSocket, service: Service, port: u16) {
    let mut datagram = vec![0; if service == Service::Echo { DATAGRAM_BYTES } else { 2048 }];
    let mut pattern = Pattern::new();
    loop {
        // An error is news of an earlier answer that nobody took.
        let Ok(received) = socket.receive_from(&mut datagram).await else { continue };
        if service == Service::Discard {
            continue;
        }
        let caller = shared.callers.of(Transport::Udp, received.from);
        let admitted = shared.guard.borrow_mut().admit(caller, port, shared.host.now());
        if admitted.is_err() || !to_one_of_us(received.to.address) {
            shared.count(|c| c.unanswered += 1);
            continue;
        }
        let length = received.length_bytes.min(datagram.len());
        let reply: &[u8] = match service {
            Service::Echo => &datagram[..length],
            Service::Daytime => &Daytime::new((shared.unix_seconds)()).line().into_bytes(),
            Service::Chargen => &characters(&mut pattern, length),
            Service::Discard => &[],
        };
        // A caller that cannot be sent to at once gets no answer, so that nobody else waits.
        let context = Context::from_waker(Waker::noop());
        let sent = socket.poll_send(&context, reply, Ends::back(&received));
        shared.count(|c| match sent {
            Poll::Ready(Ok(())) => c.answers += 1,
            _ => c.unanswered += 1,
        });
    }
}

/// RFC 1122 §3.2.2 in spirit: what was sent to many is not answered by each of them.
fn to_one_of_us(address: IpAddr) -> bool {
    !address.is_multicast() && !matches!(address, IpAddr::V4(a) if a.is_broadcast())
}

/// The characters that answer a datagram of `question_bytes`: whole lines, and no more than the question had, but one
/// line at least, so that an answer is at most three and a half times as long on the wire.
fn characters(pattern: &mut Pattern, question_bytes: usize) -> Vec<u8> {
    let lines = (question_bytes.min(CHARGEN_DATAGRAM_BYTES) / LINE_BYTES).max(1);
    let mut reply = vec![0; lines * LINE_BYTES];
    pattern.fill(&mut reply);
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec: RFC864
    #[test]
    fn characters_are_bounded_by_the_question() {
        let mut pattern = Pattern::new();
        let mut length = |question| characters(&mut pattern, question).len();
        assert_eq!((length(0), length(1), length(74), length(147)), (74, 74, 74, 74));
        assert_eq!((length(148), length(512), length(60_000)), (148, 444, 444));
    }
}
