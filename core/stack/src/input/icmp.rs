//! Echo replies, answers to probes, and ICMP errors about either.

use crate::demux::Name;
use crate::error::DatagramError;
use crate::icmp::{ProbeAnswer, ProbeNews};
use crate::input::Reception;
use crate::input::frame::quoted_name;
use crate::socket::{AnySocketId, DatagramInfo, EchoSocketId, ProbeSocketId};
use inhost_base::{Endpoint, LinkId};
use inhost_buf::Packet;
use inhost_event::Drop;
use inhost_ip::{EchoReply, TransportError};
use inhost_tcp::Header;
use inhost_wire::Ecn;

impl Reception<'_> {
    /// Takes the answer to an echo request.
    pub(super) fn echo_input(&mut self, reply: &EchoReply, packet: &mut Packet) -> Result<(), Drop> {
        let EchoReply { link, source, destination, identifier, sequence, hop_limit } = *reply;
        match self.sockets.find_echo(identifier) {
            None => Err(Drop::NoSocket),
            Some(AnySocketId::Probe(id)) => {
                let news = ProbeNews::Answered;
                self.probe_answered(id, ProbeAnswer { number: sequence, to: source, from: source, news });
                Ok(())
            }
            Some(AnySocketId::Echo(id)) => {
                let from = Endpoint { address: source, port: sequence };
                let to = Endpoint { address: destination, port: identifier };
                let (length_bytes, ecn) = (packet.len(), Ecn::NotCapable);
                let info = DatagramInfo { length_bytes, from, to, link, hop_limit, ecn };
                let share = self.share_bytes();
                self.sockets.echo_mut(id).ok_or(Drop::QueueFull)?.deliver(packet, info, share)?;
                self.sockets.notify(id.into());
                Ok(())
            }
            Some(_) => Err(Drop::QueueFull),
        }
    }
    /// Takes an error about an echo request. A quoted request has its identifier in place of ports.
    pub(super) fn echo_error(&mut self, error: &TransportError, key: EchoSocketId) -> Result<(), Drop> {
        let Some(echo) = self.sockets.echo_mut(key) else { return Err(Drop::NoSocket) };
        let request = quoted_name(&error.quoted).remote;
        if !echo.datagrams().recent().has(request, self.env.now()) {
            return Err(Drop::NotCredible);
        }
        echo.datagrams_mut().set_error(DatagramError::Unreachable(error.kind));
        self.sockets.notify(key.into());
        Ok(())
    }

    /// Queues an answer on its probe socket. It is dropped when the queue is full.
    fn probe_answered(&mut self, id: ProbeSocketId, answer: ProbeAnswer) {
        if self.sockets.probe_mut(id).is_some_and(|prober| prober.deliver(answer)) {
            self.sockets.notify(id.into());
        }
    }
    /// Takes a datagram in answer to a probe; false when no socket sent one there.
    pub(super) fn probe_answered_by_udp(&mut self, link: LinkId, name: &Name) -> bool {
        let found = self.sockets.find_binding(self.env.paths(), link, name);
        let Some(AnySocketId::Probe(key)) = found else { return false };
        let Some(prober) = self.sockets.probe(key) else { return false };
        let Some(number) = prober.number_of(name.local.port, name.remote.port) else { return false };
        let (to, from) = (name.remote.address, name.remote.address);
        self.probe_answered(key, ProbeAnswer { number, to, from, news: ProbeNews::Answered });
        true
    }
    /// Takes the answer to a call that was a probe.
    pub(super) fn probe_answered_by_tcp(&mut self, id: ProbeSocketId, header: &Header, name: &Name) {
        let Some(prober) = self.sockets.probe(id) else { return };
        if let Some((number, news)) = prober.call_answer(header, name.local.port, name.remote.port) {
            let (to, from) = (name.remote.address, name.remote.address);
            self.probe_answered(id, ProbeAnswer { number, to, from, news });
        }
    }
    /// Takes an error about a probe.
    pub(super) fn probe_error(&mut self, error: &TransportError, key: ProbeSocketId) -> Result<(), Drop> {
        let quoted = &error.quoted;
        let prober = self.sockets.probe(key).ok_or(Drop::NoSocket)?;
        let number = prober.sent_number(quoted, self.env.now()).ok_or(Drop::NoSocket)?;
        let news = ProbeNews::Error { kind: error.kind, mtu_bytes: error.mtu_bytes };
        self.probe_answered(key, ProbeAnswer { number, to: quoted.destination, from: error.reporter, news });
        Ok(())
    }
}
