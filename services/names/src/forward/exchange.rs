//! A question and its reply, whichever way they go: decided by the machine, asked of the servers, given back.

use super::machine::{Decision, Forwarder, Settled, Visitor};
use super::owed::Owed;
use crate::asked::Question;
use crate::driver::DnsClient;
use inhost_base::{Endpoint, IpAddr};
use inhost_common::Callers;
use inhost_ip::InterfaceView;
use inhost_socket::{Ends, Host, UdpSocket};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// The way back to a client.
pub(super) enum Back {
    /// A datagram from where the question came to, to where it came from.
    Datagram(Endpoint, Endpoint),
    /// Over its connection.
    Connection(Owed),
}

/// What all tasks of a forwarder share.
pub(super) struct Shared {
    pub(super) asker: DnsClient,
    pub(super) machine: RefCell<Forwarder<Back>>,
    /// The socket by which datagrams come, while the door is open: the task that serves it owns it.
    pub(super) socket: RefCell<Weak<UdpSocket>>,
    pub(super) callers: Callers,
    /// Memory of the replies that connections have not taken.
    pub(super) waiting_bytes: Rc<Cell<usize>>,
}

/// Has the machine decide on one question, and does what it says. Who comes through a gateway is as near as that, and
/// has the limits of the outer `caller`.
pub(super) async fn decide(
    shared: &Rc<Shared>,
    bytes: &[u8],
    peer: IpAddr,
    caller: IpAddr,
    over_tcp: bool,
    back: Back,
) {
    let host = shared.asker.host();
    let is_near = peer.is_loopback() || is_near(host, peer);
    let visitor = Visitor { address: caller, is_near, over_tcp };
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
        let mut own = stack.ip().interfaces().flat_map(InterfaceView::addresses);
        own.any(|assigned| assigned.cidr().contains(address))
    })
}

async fn ask(shared: Rc<Shared>, number: u64, question: Question) {
    let servers = shared.machine.borrow().config().servers.clone();
    let report = shared.asker.ask_to_the_end(question, &servers, false).await;
    let replies = shared.machine.borrow_mut().settled(number, &report, shared.asker.host().now());
    for Settled { to, bytes } in replies {
        give(&shared, to, bytes).await;
    }
}

/// Sends a reply. A client that is gone, or does not read, loses it.
async fn give(shared: &Shared, back: Back, bytes: Vec<u8>) {
    match back {
        Back::Datagram(own, peer) => {
            let socket = shared.socket.borrow().upgrade();
            if let Some(socket) = socket {
                let _ = socket.send_between(&bytes, Ends { from: Some(own), to: Some(peer) }).await;
            }
        }
        Back::Connection(owed) => owed.give(bytes),
    }
}
