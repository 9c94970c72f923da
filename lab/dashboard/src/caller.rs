//! Whose connection of this machine it is.

use std::net::SocketAddr;

use inhost_base::Endpoint;
use procfs::net::{TcpNetEntry, TcpState, tcp, tcp6};
use rustix::process::geteuid;

/// Whether `peer`, an end on this machine's loopback, belongs to the user who runs the host, or to root. It asks the system
/// for all its connections, which takes time; where the system does not tell, nobody is let in.
pub(crate) fn is_own(peer: Endpoint) -> bool {
    let peer = canonical(peer.into());
    if !peer.ip().is_loopback() {
        return false;
    }
    let entries = [tcp(), tcp6()].into_iter().flatten().flatten();
    // Several connections may have this end: all of them count.
    let mut owners = entries.filter(|entry| is_of(entry, peer)).map(|entry| entry.uid).peekable();
    let own = geteuid().as_raw();
    owners.peek().is_some() && owners.all(|uid| uid == own || uid == 0)
}

fn is_of(entry: &TcpNetEntry, peer: SocketAddr) -> bool {
    // What nobody holds any more belongs to nobody.
    let is_held = !matches!(entry.state, TcpState::TimeWait | TcpState::Close);
    is_held && canonical(entry.local_address) == peer
}

fn canonical(end: SocketAddr) -> SocketAddr {
    SocketAddr::new(end.ip().to_canonical(), end.port())
}
