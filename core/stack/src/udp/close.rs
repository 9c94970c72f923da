//! Closing a UDP socket. Queued datagrams are still sent.

use crate::sockets::UdpSocketId;
use crate::udp::UdpSockets;
use crate::udp::socket::Udp;
use inhost_base::{Duration, Instant};

/// How long the datagrams of a closed socket wait for a neighbour or for a full device. An unanswered neighbour is given
/// up before that.
const CLOSING_LIMIT: Duration = Duration::from_secs(10);

impl UdpSockets<'_> {
    /// Closes a UDP socket. Its port is free and its identifier is dead at once. Its queued datagrams leave from an
    /// entry that no application holds.
    pub(crate) fn close(self, key: UdpSocketId, now: Instant) {
        let link = match self.parts.sockets.udp(key) {
            Some(udp) if !udp.is_closed() => udp.first().map(|first| first.path.link),
            _ => None,
        };
        let Some(link) = link else { return self.parts.remove_datagram_socket(key.into()) };
        self.parts.delist_datagram_socket(key.into());
        if let Some(udp) = self.parts.sockets.udp_mut(key) {
            udp.close(self.parts.memory.pool_mut());
        }
        let Some(closing) = self.parts.sockets.renew_udp(key) else { return };
        let place = closing.place();
        self.parts.schedule.add_closing_udp(place);
        self.parts.schedule.arm(place, now + CLOSING_LIMIT);
        self.parts.schedule.queue_sender(link, place);
    }
    /// The time of a closed socket is over.
    pub(crate) fn closing_expired(self, key: UdpSocketId) {
        if self.parts.sockets.udp(key).is_some_and(Udp::is_closed) {
            self.parts.remove_datagram_socket(key.into());
        }
    }
}
