//! Echo requests to others than the gateway, through the system's unprivileged echo sockets where it allows them.

use crate::codec::{self, EchoRequest, Unreachable};
use crate::machine::Flows;
use crate::state::State;
use inhost_base::{Duration, IpAddr};
use inhost_runtime::{AsyncFd, Interest};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};
use std::cell::RefCell;
use std::future::poll_fn;
use std::net::UdpSocket;
use std::rc::Rc;

/// Requests whose answers are awaited; the oldest gives way.
const REQUESTS: usize = 256;
/// Timeout of a reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// Requests on their way, by the number under which the system sent them.
struct Echoes {
    state: Rc<State>,
    socket: Option<AsyncFd<UdpSocket>>,
    under_way: RefCell<Flows<u16, EchoRequest>>,
}

/// Passes echo requests on, and their answers back.
pub(crate) async fn run(state: Rc<State>) {
    let of_family = |family, protocol| {
        Rc::new(Echoes {
            state: state.clone(),
            socket: open(&state, family, protocol),
            under_way: RefCell::new(Flows::new(REQUESTS)),
        })
    };
    let four = of_family(AddressFamily::INET, ipproto::ICMP);
    let six = of_family(AddressFamily::INET6, ipproto::ICMPV6);
    let _answers =
        [state.host.spawn(four.clone().answers(false)), state.host.spawn(six.clone().answers(true))];
    loop {
        let request = poll_fn(|context| state.aside.borrow_mut().poll_request(context)).await;
        match request.to {
            IpAddr::V4(_) => four.ask(request),
            IpAddr::V6(_) => six.ask(request),
        }
    }
}

/// The system's echo socket, read and written as a UDP socket is: what is sent is an ICMP message, and the system
/// puts its own identifier in it. `None` where the system does not allow it (`net.ipv4.ping_group_range`).
fn open(state: &State, family: AddressFamily, protocol: rustix::net::Protocol) -> Option<AsyncFd<UdpSocket>> {
    let socket =
        rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(protocol)).ok()?;
    AsyncFd::new(&state.reactor, UdpSocket::from(socket)).ok()
}

impl Echoes {
    fn ask(&self, request: EchoRequest) {
        if let Some(why) = self.state.config.closed(request.to) {
            return self.tell(&request, why.into());
        }
        // The system lets us have no echo socket.
        let Some(socket) = &self.socket else { return self.tell(&request, Unreachable::Prohibited) };
        let now = self.state.host.now();
        let mut under_way = self.under_way.borrow_mut();
        let number = under_way.next_number() as u16;
        let message = codec::echo_message(&request, number);
        let to = (request.to, 0);
        match socket.try_io(Interest::Write, |socket| socket.send_to(&message, to)) {
            Ok(_) => {
                let _forgotten = under_way.insert(number, request, REPLY_TIMEOUT, now);
                self.state.count(|c| c.echoes += 1);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                self.tell(&request, Unreachable::Prohibited);
            }
            Err(_) => self.tell(&request, Unreachable::Host),
        }
    }

    async fn answers(self: Rc<Self>, is_v6: bool) {
        let Some(socket) = &self.socket else { return };
        loop {
            socket.readable().await;
            let mut place = self.state.scratch.borrow_mut();
            let received = socket.try_io(Interest::Read, |socket| socket.recv_from(&mut place));
            // An error is news of one of the requests; whose, it does not say.
            let Ok((length, from)) = received else { continue };
            let Some((number, data)) = codec::echo_reply_parts(&place[..length], is_v6) else { continue };
            let mut under_way = self.under_way.borrow_mut();
            let Some(request) = under_way.remove(number) else { continue };
            if request.to != from.ip() {
                let _forgotten = under_way.insert(number, request, REPLY_TIMEOUT, self.state.host.now());
                continue;
            }
            self.state.aside.borrow_mut().send(codec::echo_reply(&request, data));
        }
    }

    fn tell(&self, request: &EchoRequest, why: Unreachable) {
        let network = &self.state.config.network;
        let gateway = match request.from {
            IpAddr::V4(_) => IpAddr::V4(network.gateway_v4),
            IpAddr::V6(_) => IpAddr::V6(network.gateway_v6),
        };
        let quoted = codec::quoted_echo(request);
        self.state.aside.borrow_mut().send(codec::unreachable(gateway, request.from, why, &quoted));
    }
}
