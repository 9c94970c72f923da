//! UDP, echo and probe sockets among the others: the limit on their number, closing, and what waits to be sent.

use crate::environment::Environment;
use crate::error::BindError;
use crate::resources::Resources;
use crate::socket::{SocketId, UdpSocketId};
use crate::sockets::{Socket, Sockets};
use inhost_base::{Duration, Instant};
use inhost_buf::Packet;
use inhost_datagram::{DatagramError, Datagrams, Outgoing, SocketError};

/// How long the datagrams of a closed socket wait for a neighbour or for a full device. An unanswered neighbour is given
/// up before that.
const CLOSING_LIMIT: Duration = Duration::from_secs(10);

impl Sockets {
    /// Whether there may be one more datagram socket. At the limit the oldest that is closing gives way.
    pub(crate) fn make_room_for_datagrams(&mut self, resources: &mut Resources) -> Result<(), BindError> {
        if self.datagram_sockets >= self.datagram_limit
            && let Some(oldest) = self.schedule.oldest_closing_udp().and_then(|place| self.at_place(place))
        {
            self.remove_datagrams(oldest, resources);
        }
        if self.datagram_sockets < self.datagram_limit { Ok(()) } else { Err(BindError::TooManySockets) }
    }
    /// Removes a UDP, echo or probe socket with all that it holds.
    pub(crate) fn remove_datagrams(&mut self, socket: SocketId, resources: &mut Resources) {
        self.delist_datagrams(socket);
        if let Some(datagrams) = self.remove(socket).as_mut().and_then(Socket::datagrams_mut) {
            datagrams.clear(resources.pool_mut());
        }
    }
    /// Takes a datagram socket out of everything that refers to it.
    fn delist_datagrams(&mut self, socket: SocketId) {
        self.unbind(socket);
        self.unlist_udp(socket);
        self.schedule.forget(socket.0.index());
    }
    /// Queues what leaves in the next pass, in a packet with room for so many bytes, which `write` fills. Without memory
    /// the socket waits for it.
    pub(crate) fn queue_datagram(
        &mut self,
        id: SocketId,
        (bytes, datagram): (usize, Outgoing),
        env: &mut Environment<'_>,
        write: impl FnOnce(&Socket, &mut Packet),
    ) -> Result<(), DatagramError> {
        let socket = self.slab.at_mut(id.0).ok_or(SocketError::NoSocket)?;
        let is_first = socket.datagrams().is_some_and(Datagrams::is_idle);
        let pool = env.pool();
        let taken = if is_first { pool.take_bare(bytes) } else { pool.take_to_send(bytes) };
        let Some(mut payload) = taken else {
            self.schedule.wait_for_memory(id.0.index(), env.now());
            return Err(DatagramError::WouldBlock);
        };
        write(socket, &mut payload);
        if let Some(datagrams) = socket.datagrams_mut() {
            datagrams.push(payload, datagram);
        }
        if is_first {
            self.schedule.queue_sender(datagram.path.link, id.0.index());
        }
        Ok(())
    }
    /// Closes a UDP socket. Its port is free and its identifier is dead at once. Its queued datagrams leave from an
    /// entry that no application holds.
    pub(crate) fn close_udp(&mut self, key: UdpSocketId, now: Instant, resources: &mut Resources) {
        let link = match self.udp(key) {
            Some(udp) if !udp.is_closed() => udp.datagrams().first().map(|(_, first)| first.path.link),
            _ => None,
        };
        let Some(link) = link else { return self.remove_datagrams(key.into(), resources) };
        self.delist_datagrams(key.into());
        if let Some(udp) = self.udp_mut(key) {
            udp.close(resources.pool_mut());
        }
        let Some(closing) = self.renew_udp(key) else { return };
        let place = closing.place();
        self.schedule.add_closing_udp(place);
        self.schedule.arm(place, now + CLOSING_LIMIT);
        self.schedule.queue_sender(link, place);
    }
}
