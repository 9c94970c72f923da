//! Echo replies, answers to probes, and ICMP errors about either.

use crate::demux::Name;
use crate::input::Reception;
use crate::socket::{AnySocketId, EchoSocketId, ProbeSocketId, SocketId};
use inhost_base::LinkId;
use inhost_buf::Packet;
use inhost_event::Drop;
use inhost_ip::{EchoReply, TransportError};
use inhost_tcp::Header;

impl Reception<'_, '_> {
    /// Takes the answer to an echo request.
    pub(super) fn echo_input(&mut self, reply: &EchoReply, packet: &mut Packet) -> Result<(), Drop> {
        match self.sockets.find_echo(reply.identifier) {
            None => Err(Drop::NoSocket),
            Some(AnySocketId::Probe(id)) => {
                let prober = self.sockets.probe_mut(id).ok_or(Drop::NoSocket)?;
                let has_news = prober.answered(reply.sequence, reply.source);
                self.tell(id, has_news);
                Ok(())
            }
            Some(AnySocketId::Echo(id)) => {
                let share = self.share_bytes();
                self.sockets.echo_mut(id).ok_or(Drop::QueueFull)?.deliver(reply, packet, share)?;
                self.tell(id, true);
                Ok(())
            }
            Some(_) => Err(Drop::QueueFull),
        }
    }
    /// Takes an error about an echo request.
    pub(super) fn echo_error(&mut self, error: &TransportError, key: EchoSocketId) -> Result<(), Drop> {
        self.sockets.echo_mut(key).ok_or(Drop::NoSocket)?.take_error(error, self.env.now())?;
        self.tell(key, true);
        Ok(())
    }
    /// Takes a datagram in answer to a probe; false when no socket sent one there.
    pub(super) fn probe_answered_by_udp(&mut self, link: LinkId, name: &Name) -> bool {
        let found = self.sockets.find_binding(self.env.paths(), link, name);
        let Some(AnySocketId::Probe(key)) = found else { return false };
        let prober = self.sockets.probe_mut(key);
        let answered = prober.and_then(|prober| prober.take_datagram(name.local, name.remote));
        self.tell(key, answered == Some(true));
        answered.is_some()
    }
    /// Takes the answer to a call that was a probe.
    pub(super) fn probe_answered_by_tcp(&mut self, id: ProbeSocketId, header: &Header, name: &Name) {
        let prober = self.sockets.probe_mut(id);
        let has_news = prober.is_some_and(|prober| prober.take_segment(header, name.local, name.remote));
        self.tell(id, has_news);
    }
    /// Takes an error about a probe.
    pub(super) fn probe_error(&mut self, error: &TransportError, key: ProbeSocketId) -> Result<(), Drop> {
        let prober = self.sockets.probe_mut(key).ok_or(Drop::NoSocket)?;
        let has_news = prober.take_error(error, self.env.now())?;
        self.tell(key, has_news);
        Ok(())
    }
    /// Tells the application of a socket, if it has news.
    pub(super) fn tell(&mut self, id: impl Into<SocketId>, has_news: bool) {
        if has_news {
            self.sockets.notify(id.into());
        }
    }
}
