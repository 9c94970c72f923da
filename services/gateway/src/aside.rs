//! What passes the gateway beside its stack: echo requests to others, and packets that it makes whole.

use crate::codec::EchoRequest;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Packets that the gateway makes itself and that wait for the link; more are dropped.
const OWN_PACKETS: usize = 64;

/// State shared by the gateway's tasks and its link end: packets that its stack neither gets nor makes.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    /// Echo requests to others than the gateway.
    requests: VecDeque<EchoRequest>,
    waiting: Option<Waker>,
    /// Whole packets for the guest.
    packets: VecDeque<Vec<u8>>,
}

pub(crate) type SharedAside = Rc<RefCell<Aside>>;

impl Aside {
    /// An echo request to another than the gateway; it is dropped when too many wait.
    pub(crate) fn ask(&mut self, request: EchoRequest) {
        if self.requests.len() < OWN_PACKETS {
            self.requests.push_back(request);
        }
    }
    /// Whom to wake since a request waits.
    pub(crate) fn take_waiting(&mut self) -> Option<Waker> {
        self.waiting.take_if(|_| !self.requests.is_empty())
    }
    /// The next whole packet for the guest.
    pub(crate) fn take_packet(&mut self) -> Option<Vec<u8>> {
        self.packets.pop_front()
    }
    /// There was no room for it.
    pub(crate) fn return_packet(&mut self, packet: Vec<u8>) {
        self.packets.push_front(packet);
    }
    /// The next echo request that is not for the gateway itself.
    pub(crate) fn poll_request(&mut self, context: &Context<'_>) -> Poll<EchoRequest> {
        match self.requests.pop_front() {
            Some(request) => Poll::Ready(request),
            None => {
                self.waiting = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
    /// Sends a whole packet to the guest; it is dropped when too many wait.
    pub(crate) fn send(&mut self, packet: Vec<u8>) {
        if self.packets.len() < OWN_PACKETS && !packet.is_empty() {
            self.packets.push_back(packet);
        }
    }
}
