//! The framer of a serial line: packets to octets and back, by SLIP or LLP. It does no I/O.

use crate::{AddressOffer, Discard, Framing, Statistics};
use inhost_base::{Cidr, Duration, Instant, IpAddr};
use inhost_wire::{llp, slip};
use std::collections::VecDeque;

/// Packets received that wait for the host, as many as MIT §5.4 has buffers.
pub(super) const PACKET_BUFFERS: usize = 32;
/// First wait for an answer to the address request; doubled with each.
const ASK_AGAIN: Duration = Duration::from_secs(3);
/// The longest that it gets.
const ASK_AGAIN_MOST: Duration = Duration::from_secs(60);

/// The role of an LLP end in address assignment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Role {
    /// It has an address of its own.
    #[default]
    Addressed,
    /// It asks until it has an answer.
    Asks,
    /// The packet concentrator, which answers with this address.
    Offers(llp::AddressReply),
}

/// One end of a framed line.
#[derive(Debug)]
pub(super) struct Framer {
    format: Format,
    received: VecDeque<Vec<u8>>,
    /// Packets lost because `received` was full.
    overruns: u64,
}

#[derive(Debug)]
enum Format {
    Slip { decoder: slip::Decoder, line: VecDeque<u8> },
    Llp(Box<Llp>),
}

#[derive(Debug)]
struct Llp {
    line: llp::Line,
    role: Role,
    /// When to ask for an address, and how long to wait for the answer then.
    ask: Option<(Instant, Duration)>,
    /// A question came that is not answered yet.
    asked: bool,
    told: Option<AddressOffer>,
}

impl Framer {
    pub(super) fn new(framing: Framing, mtu_bytes: usize, role: Role) -> Self {
        let format = match framing {
            Framing::Slip => Format::Slip { decoder: slip::Decoder::new(mtu_bytes), line: VecDeque::new() },
            Framing::Llp => Format::Llp(Box::new(Llp {
                line: llp::Line::new(llp::Config {
                    payload_limit_bytes: mtu_bytes,
                    // The others are in `received`.
                    packet_buffers: 1,
                    ..llp::Config::default()
                }),
                role,
                ask: (role == Role::Asks).then_some((Instant::ZERO, ASK_AGAIN)),
                asked: false,
                told: None,
            })),
        };
        Framer { format, received: VecDeque::new(), overruns: 0 }
    }
    /// Whether the line is ready to begin a packet of the host. Control octets of the line go first.
    pub(super) fn is_ready(&mut self, now: Instant) -> bool {
        match &mut self.format {
            Format::Slip { line, .. } => line.is_empty(),
            Format::Llp(llp) => {
                llp.speak(now);
                llp.line.is_idle()
            }
        }
    }
    /// Begins a packet. It is lost if the line is not ready.
    pub(super) fn send(&mut self, packet: &[u8], now: Instant) {
        match &mut self.format {
            Format::Slip { line, .. } => slip::encode(packet, line),
            Format::Llp(llp) => {
                let _ = llp.line.send(llp::Packet::Data(packet), now);
            }
        }
    }
    /// The octet that is to go on the line next.
    pub(super) fn next_octet(&mut self, now: Instant) -> Option<u8> {
        match &mut self.format {
            Format::Slip { line, .. } => line.pop_front(),
            Format::Llp(llp) => {
                let octet = llp.line.next_octet(now);
                self.poll();
                octet
            }
        }
    }
    /// Octets that follow for certain, or as many as may be where that is not known.
    pub(super) fn following_octets(&self) -> usize {
        match &self.format {
            Format::Slip { line, .. } => line.len(),
            Format::Llp(llp) if llp.line.is_idle() => 0,
            Format::Llp(_) => usize::MAX,
        }
    }
    /// Takes an octet from the line.
    pub(super) fn receive(&mut self, octet: u8, now: Instant) {
        match &mut self.format {
            Format::Slip { decoder, .. } => {
                if let Some(packet) = decoder.push(octet) {
                    if self.received.len() < PACKET_BUFFERS {
                        self.received.push_back(packet.to_vec());
                    } else {
                        self.overruns += 1;
                    }
                }
            }
            Format::Llp(llp) => {
                llp.line.receive(octet, now);
                self.poll();
            }
        }
    }
    /// The oldest packet received.
    pub(super) fn front(&self) -> Option<&[u8]> {
        self.received.front().map(Vec::as_slice)
    }
    /// Frees its buffer.
    pub(super) fn pop(&mut self) {
        self.received.pop_front();
        self.poll();
    }
    /// When [`Framer::timeout`] wants to be called.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match &self.format {
            Format::Slip { .. } => None,
            Format::Llp(llp) => {
                let ask = llp.ask.map(|(at, _)| at).filter(|_| llp.line.is_idle());
                llp.line.deadline().into_iter().chain(ask).min()
            }
        }
    }
    /// Discards expired packets.
    pub(super) fn timeout(&mut self, now: Instant) {
        if let Format::Llp(llp) = &mut self.format {
            llp.line.timeout(now);
            self.poll();
        }
    }
    /// The address that the concentrator has given us, once.
    pub(super) fn take_offer(&mut self) -> Option<AddressOffer> {
        match &mut self.format {
            Format::Slip { .. } => None,
            Format::Llp(llp) => llp.told.take(),
        }
    }
    /// Adds the packets discarded by the framing.
    pub(super) fn count(&self, statistics: &mut Statistics) {
        let mut add = |why: Discard, count: u64| {
            if let Some(total) = statistics.discarded.get_mut(why as usize) {
                *total += count;
            }
        };
        add(Discard::NoMemory, self.overruns);
        match &self.format {
            Format::Slip { decoder, .. } => add(Discard::Framing, decoder.discarded_frames()),
            Format::Llp(llp) => {
                let counters = llp.line.counters();
                add(Discard::TooLong, counters.packets_too_long);
                add(Discard::Framing, counters.ends_lost);
                add(Discard::Check, counters.packets_damaged);
                add(Discard::Timeout, counters.requests_unanswered + counters.character_timeouts);
            }
        }
    }

    /// Moves packets into our buffers as long as one is free, and looks how sending ended even when none is: a line
    /// that has a packet which nobody polls leaves the next REQ unanswered, which is what a full host wants.
    fn poll(&mut self) {
        let Format::Llp(llp) = &mut self.format else { return };
        // How it ended, the line has counted.
        let _ = llp.line.poll_outcome();
        while self.received.len() + 1 < PACKET_BUFFERS {
            match llp.line.poll_event() {
                Some(llp::Event::Data(packet)) => self.received.push_back(packet),
                Some(other) => llp.note(other),
                None => return,
            }
        }
    }
}

impl Llp {
    fn note(&mut self, event: llp::Event) {
        match event {
            llp::Event::Data(_) | llp::Event::Sent | llp::Event::NotAcknowledged => {}
            llp::Event::AddressRequest(_) => self.asked = matches!(self.role, Role::Offers(_)),
            llp::Event::AddressReply(reply) => {
                // Only a solicited answer is accepted.
                if let Some(_) = self.ask
                    && let Ok(address) = Cidr::new(reply.address, reply.prefix_bits)
                    && !reply.address.is_unspecified()
                {
                    self.ask = None;
                    self.told = Some(AddressOffer { address, gateway: IpAddr::V4(reply.concentrator) });
                }
            }
        }
    }
    /// Sends due address requests and replies.
    fn speak(&mut self, now: Instant) {
        if !self.line.is_idle() {
            return;
        }
        if let (true, Role::Offers(reply)) = (self.asked, self.role) {
            self.asked = self.line.send(llp::Packet::AddressReply(reply), now).is_err();
        } else if let Some((at, wait)) = self.ask
            && at <= now
        {
            let request = llp::AddressRequest { wanted: core::net::Ipv4Addr::UNSPECIFIED };
            if self.line.send(llp::Packet::AddressRequest(request), now).is_ok() {
                let longer = wait.times(2).min(ASK_AGAIN_MOST);
                self.ask = Some((now + wait, longer));
            }
        }
    }
}
