//! Replies from an ephemeral port of the host that was asked.

use crate::codec::tftp::is_file_request;
use inhost_base::Endpoint;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// The guest's end and the other end.
pub(crate) type Pair = (Endpoint, Endpoint);

/// The end that a guest asked, by the guest's end and the end that replied.
pub(crate) type ReplyPorts = Rc<RefCell<BTreeMap<Pair, Endpoint>>>;

/// The other end of a flow, whose port is that of its first reply.
pub(crate) struct ReplyPort {
    address: IpAddr,
    asked_port: u16,
    port: Cell<Option<u16>>,
    /// Its key in `all`, once a reply has come.
    pair: Cell<Option<Pair>>,
    all: ReplyPorts,
}

impl ReplyPort {
    pub(crate) fn new(asked: SocketAddr, all: &ReplyPorts) -> Rc<ReplyPort> {
        Rc::new(ReplyPort {
            address: asked.ip(),
            asked_port: asked.port(),
            port: Cell::new(None),
            pair: Cell::new(None),
            all: all.clone(),
        })
    }
    /// The address that was asked.
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }
    /// Destination of a datagram: a request to the port that takes requests, others to the port that replied.
    pub(crate) fn destination(&self, bytes: &[u8]) -> SocketAddr {
        let port = self.port.get().filter(|_| !is_file_request(bytes));
        SocketAddr::new(self.address, port.unwrap_or(self.asked_port))
    }
    /// A reply to what `from` asked of `to` came from `port`.
    pub(crate) fn set(&self, from: Endpoint, to: Endpoint, port: u16) {
        if self.port.replace(Some(port)) == Some(port) {
            return;
        }
        self.forget();
        let pair = (from, Endpoint { port, ..to });
        self.pair.set(Some(pair));
        self.all.borrow_mut().insert(pair, to);
    }
    fn forget(&self) {
        if let Some(pair) = self.pair.take() {
            self.all.borrow_mut().remove(&pair);
        }
    }
}

impl Drop for ReplyPort {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_goes_to_the_port_that_replied_and_requests_to_the_one_that_was_asked() {
        let all = ReplyPorts::default();
        let end = |port| Endpoint::new([192, 0, 2, 1], port);
        let (from, asked) = (Endpoint::new([10, 0, 2, 15], 5000), end(69));
        let flow = ReplyPort::new("192.0.2.1:69".parse().unwrap(), &all);
        assert_eq!(flow.destination(b"\0\x04\0\x01").port(), 69);
        flow.set(from, asked, 3000);
        flow.set(from, asked, 4000);
        assert_eq!(flow.destination(b"\0\x04\0\x01").port(), 4000);
        assert_eq!(flow.destination(b"\0\x01boot\0octet\0").port(), 69);
        assert_eq!(*all.borrow(), BTreeMap::from([((from, end(4000)), asked)]));
        drop(flow);
        assert!(all.borrow().is_empty());
    }
}
