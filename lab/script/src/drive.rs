//! The wire and the calls of one connection's script: what the peer sends in, what the host sends out, what came of calls.

use crate::datagram;
use crate::flow::{Flow, Seen};
use crate::language::call_words;
use crate::language::{About, CallKind, Datagram, Icmp, Presence, Segment, SocketCall, Step, line_of};
use crate::mail::{Mail, SeenDatagram, SeenFragment, SeenIcmpError};
use crate::packet::{self, Ends};
use crate::side::{Came, PEER_PORTS, Side};
use crate::stream::{self, From};
use crate::trace::{self, Trace};
use inhost_base::Instant;
use inhost_wire::{Ecn, tcp};
use std::collections::BTreeMap;

/// A side, the numbers of the connections to it, and the packets so far.
pub struct Driver<'a> {
    /// The driven host.
    pub side: &'a mut dyn Side,
    ends: Ends,
    flows: BTreeMap<u8, Flow>,
    /// For each socket, how much it has written and read.
    streams: BTreeMap<String, (u64, u64)>,
    mail: Mail,
    /// The time by which the peer stamps its segments, where it is not that of the side.
    pub peer_clock: Option<Instant>,
    /// The packets so far.
    pub trace: Trace,
}

/// A packet that the host sent.
pub struct Arrived {
    /// When.
    pub at: Instant,
    /// In a script's words and numbers.
    pub what: What,
    /// As a line of a script.
    pub text: String,
    /// As it came.
    pub packet: Vec<u8>,
}

/// A packet of the host.
#[derive(Clone, Debug)]
pub enum What {
    /// A segment.
    Segment(Seen),
    /// A datagram.
    Datagram(SeenDatagram),
    /// A part of one.
    Fragment(SeenFragment),
    /// An ICMP error.
    IcmpError(SeenIcmpError),
}

impl<'a> Driver<'a> {
    pub fn new(side: &'a mut dyn Side, ends: Ends) -> Driver<'a> {
        Driver {
            side,
            ends,
            flows: BTreeMap::new(),
            streams: BTreeMap::new(),
            mail: Mail::new(ends),
            peer_clock: None,
            trace: Trace::default(),
        }
    }
    /// The addresses of both ends.
    pub fn ends(&self) -> Ends {
        self.ends
    }
    /// The host's next packet for the peer that comes by `until`.
    pub fn next_arrived(&mut self, until: Instant) -> Result<Option<Arrived>, String> {
        while let Some((at, packet)) = self.side.next_packet(until)? {
            let (what, text) = if let Some(host) = packet::read(&packet, self.ends) {
                let seen = self.flows.entry(host.peer).or_default().incoming(&host.segment);
                let text = trace::describe("out", host.peer, &host.segment, &seen);
                (What::Segment(seen), text)
            } else if let Some(host) = datagram::read(&packet, self.ends) {
                let what = self.mail.sent(host, &packet);
                let text = what.text();
                (what, text)
            } else {
                continue;
            };
            self.trace.add(at, &text);
            return Ok(Some(Arrived { at, what, text, packet }));
        }
        Ok(None)
    }
    /// The peer's segment arrives.
    pub fn send(&mut self, segment: &Segment) -> Result<(), String> {
        let flow = self.flows.entry(segment.peer).or_default();
        let (mut header, offset) = flow.outgoing(segment, self.peer_clock.unwrap_or(self.side.now()));
        header.source_port = PEER_PORTS + u16::from(segment.peer);
        let length = segment.data.map_or(0, |(from, to)| (to - from) as usize);
        let mut payload = stream::bytes(From::Peer, offset, length);
        if segment.forged {
            payload.iter_mut().for_each(|byte| *byte = !*byte);
        }
        let ecn = segment.ecn.unwrap_or(Ecn::NotCapable);
        let mut packet = packet::segment(self.ends, &header, &payload, &segment.options.raw, ecn);
        if segment.bad_checksum {
            packet::spoil_checksum(&mut packet);
        }
        let seen = seen_of(segment, &header.with_payload(&payload), offset);
        self.trace.add(
            self.side.now(),
            &trace::describe("in ", segment.peer, &header.with_payload(&payload), &seen),
        );
        self.inject(packet)
    }
    /// The peer's datagram arrives.
    pub fn send_datagram(&mut self, said: &Datagram) -> Result<(), String> {
        let packet = self.mail.of_the_peer(said);
        self.trace.add(self.side.now(), &line_of(&Step::InDatagram(said.clone())));
        self.inject(packet)
    }
    /// A router's message arrives; false where there is nothing for it to quote.
    pub fn send_icmp(&mut self, icmp: &Icmp) -> Result<bool, String> {
        let flow = self.flows.entry(icmp.peer).or_default();
        let packet = match icmp.about {
            About::Sent(which) => {
                let Some(sent) = self.mail.packet(which) else { return Ok(false) };
                datagram::icmp_about(self.ends, icmp.kind, sent)
            }
            About::Segment(about) => packet::icmp(self.ends, icmp, flow.host_sequence(about), flow.host_port),
            About::Datagram(_) => packet::icmp(self.ends, icmp, flow.host_sequence(0), flow.host_port),
        };
        self.trace.add(self.side.now(), &line_of(&Step::InIcmp(icmp.clone())));
        self.inject(packet).map(|()| true)
    }
    fn inject(&mut self, packet: Vec<u8>) -> Result<(), String> {
        let done = self.side.inject(&packet);
        self.mail.injected(packet);
        done
    }

    /// Does what an application does; an error where bytes that were read are not the peer's.
    pub fn call(&mut self, call: &SocketCall) -> Result<Came, String> {
        if let CallKind::Datagrams { .. } | CallKind::Send { .. } | CallKind::Receive { .. } = &call.what {
            return self.call_datagrams(call);
        }
        if self.mail.has(&call.on) {
            return self.make(call, &[]);
        }
        if let CallKind::Socket { .. } | CallKind::Connect { .. } = &call.what {
            self.begin_streams(call.names.as_ref().unwrap_or(&call.on).clone());
        }
        let (written, read) = self.streams.get(&call.on).copied().unwrap_or_default();
        let length = given_bytes(call);
        if let CallKind::Connect { peer, .. } = call.what {
            // A call after an earlier connection begins with new numbers on both sides.
            let flow = self.flows.entry(peer).or_default();
            *flow = flow.renewed();
        }
        let came = self.make(call, &stream::bytes(From::Host, written, length))?;
        if let (Some(name), CallKind::Accept) = (&call.names, &call.what) {
            self.begin_streams(name.clone());
        }
        let name = call.names.as_ref().unwrap_or(&call.on);
        let streams = self.streams.entry(name.clone()).or_default();
        match &came {
            Came::Taken(bytes) => streams.0 += *bytes as u64,
            Came::Read(bytes) => streams.1 += bytes.len() as u64,
            _ => {}
        }
        if let Came::Read(bytes) = &came
            && let Some(at) = stream::first_wrong(From::Peer, read, bytes)
        {
            return Err(format!("the byte read at number {} is not the one that the peer sent", at + 1));
        }
        Ok(came)
    }
    /// Calls on a datagram socket.
    fn call_datagrams(&mut self, call: &SocketCall) -> Result<Came, String> {
        let data = match call.what {
            CallKind::Send { bytes, .. } => self.mail.next_of_the_host(bytes),
            _ => Vec::new(),
        };
        let came = self.make(call, &data)?;
        match (&call.what, &came) {
            (CallKind::Datagrams { .. }, Came::Done) => self.mail.opened(&call.on),
            (CallKind::Send { .. }, Came::Taken(_)) => self.mail.taken(data),
            (_, Came::Received { bytes, whole, from }) => self.mail.received(bytes, *whole, *from)?,
            _ => {}
        }
        Ok(came)
    }
    fn make(&mut self, call: &SocketCall, data: &[u8]) -> Result<Came, String> {
        let came = self.side.call(call, data)?;
        let words = call_words(&call.what);
        self.trace.add(self.side.now(), &format!("call {words} -> {}", came_text(&came)));
        Ok(came)
    }
    fn begin_streams(&mut self, name: String) {
        self.streams.insert(name, (0, 0));
    }
}

/// The bytes that a call gives to the host.
pub fn given_bytes(call: &SocketCall) -> usize {
    match call.what {
        CallKind::Write { bytes, .. } | CallKind::Send { bytes, .. } => bytes,
        CallKind::Connect { data, .. } => data.unwrap_or(0),
        _ => 0,
    }
}

/// The peer's own segment in its script's numbers, for the trace.
fn seen_of(said: &Segment, segment: &tcp::Segment<'_>, offset: u64) -> Seen {
    Seen {
        sequence: said.sequence.unwrap_or(offset as i64 + i64::from(!segment.flags.syn())),
        acknowledgment: said.acknowledgment,
        flags: segment.flags,
        window_bytes: said.window.as_ref().map_or(u32::from(segment.window), |window| *window.start()),
        sack: match &said.options.sack {
            Presence::Is(blocks) => blocks.clone(),
            _ => Vec::new(),
        },
    }
}

/// Result of a call in script syntax.
pub fn came_text(came: &Came) -> String {
    match came {
        Came::Done => "ok".into(),
        Came::Taken(bytes) => format!("{bytes} bytes taken"),
        Came::Read(bytes) if bytes.is_empty() => "end".into(),
        Came::Read(bytes) => format!("{} bytes read", bytes.len()),
        Came::Received { bytes, whole, .. } if bytes.len() == *whole => format!("{whole} bytes read"),
        Came::Received { bytes, whole, .. } => format!("{} of {whole} bytes read", bytes.len()),
        Came::Failed(failure) => failure.text().into(),
    }
}
