//! Local ends that are taken by sockets without a peer.

use crate::entry::{Socket, binding};
use crate::error::BindError;
use crate::stack::Stack;
use crate::table::Table;
use inhost_base::{Endpoint, IpAddr, Ipv4Addr, Ipv6Addr, Key, Slab};

impl Stack {
    /// Puts a socket that binds a local end into the tables.
    pub(crate) fn bind(&mut self, socket: Socket) -> Result<Key, BindError> {
        let any_address = socket.is_any_address();
        self.last_binding = None;
        let key = self.sockets.insert(socket).map_err(|_| BindError::TooManySockets)?;
        if self.bindings.insert(&self.sockets, key) {
            self.population.any_address |= any_address;
            return Ok(key);
        }
        self.sockets.remove(key);
        Err(BindError::InUse)
    }
    /// Frees the local end of a socket.
    pub(crate) fn unbind(&mut self, key: Key) {
        self.last_binding = None;
        self.bindings.remove(&self.sockets, key);
        self.queues.remove(key.index());
    }
}

/// Whether some socket is bound to `local`, to its port at any address of ours included.
pub(crate) fn is_bound(bindings: &Table, sockets: &Slab<Socket>, number: u8, local: Endpoint) -> bool {
    let Endpoint { address, port } = local;
    let any_v4 = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let any_v6 = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let candidates = match address {
        IpAddr::V4(_) => [address, any_v4, any_v6],
        IpAddr::V6(_) => [address, any_v6, any_v6],
    };
    candidates
        .into_iter()
        .any(|address| bindings.find(sockets, &binding(number, Endpoint { address, port }, false)).is_some())
}
