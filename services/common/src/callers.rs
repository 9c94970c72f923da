//! The callers behind a gateway: a forwarded connection reaches its service from the gateway's address, and this table
//! tells the address that it came from outside.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use inhost_base::Endpoint;

/// The protocol of a forwarded port. A TCP and a UDP flow may have the same inner endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Transport {
    /// A connection.
    Tcp,
    /// Datagrams of one outer endpoint.
    Udp,
}

/// Outer callers by the endpoint that the service sees. A clone is the same table: the gateway enters, services ask.
///
/// ```
/// use inhost_base::Endpoint;
/// use inhost_common::{Callers, Transport};
/// let (inner, outer) = (Endpoint::new([10, 0, 2, 2], 4000), Endpoint::new([192, 0, 2, 9], 50_000));
/// let callers = Callers::default();
/// let entry = callers.enter(Transport::Tcp, inner, outer);
/// assert_eq!(callers.of(Transport::Tcp, inner), outer);
/// drop(entry);
/// assert_eq!(callers.of(Transport::Tcp, inner), inner);
/// ```
#[derive(Clone, Default, Debug)]
pub struct Callers {
    outer: Rc<RefCell<BTreeMap<(Transport, Endpoint), Endpoint>>>,
}

/// One entry of [`Callers`]; dropped, it is gone.
#[derive(Debug)]
#[must_use = "dropping it forgets the caller"]
pub struct Forwarded {
    table: Callers,
    inner: (Transport, Endpoint),
}

impl Callers {
    /// Enters that what comes from `inner` is sent by `outer`. It must be called before the first packet of the flow
    /// reaches the service, and its result kept for as long as the flow exists.
    pub fn enter(&self, transport: Transport, inner: Endpoint, outer: Endpoint) -> Forwarded {
        self.outer.borrow_mut().insert((transport, inner), outer);
        Forwarded { table: self.clone(), inner: (transport, inner) }
    }
    /// The outer caller of a forwarded flow whose source is `peer`, or `None` if no gateway forwards it.
    pub fn forwarded(&self, transport: Transport, peer: Endpoint) -> Option<Endpoint> {
        self.outer.borrow().get(&(transport, peer)).copied()
    }
    /// The endpoint by which limits count, and which logs show: the outer caller if there is one, else `peer` itself.
    pub fn of(&self, transport: Transport, peer: Endpoint) -> Endpoint {
        self.forwarded(transport, peer).unwrap_or(peer)
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        self.table.outer.borrow_mut().remove(&self.inner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forwarded_flow_has_its_outer_caller_for_as_long_as_it_exists() {
        let callers = Callers::default();
        let inner = Endpoint::new([10, 0, 2, 2], 50000);
        let outer = Endpoint::new([192, 0, 2, 9], 40000);
        let entry = callers.enter(Transport::Tcp, inner, outer);
        assert_eq!(callers.of(Transport::Tcp, inner), outer);
        assert_eq!(callers.of(Transport::Udp, inner), inner, "another protocol is another flow");
        drop(entry);
        assert_eq!(callers.of(Transport::Tcp, inner), inner);
        assert_eq!(callers.forwarded(Transport::Tcp, inner), None);
    }
}
