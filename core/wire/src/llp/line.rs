//! One end of an LLP line: a state machine of octets in, octets out, events, and two timers.

use super::{ACK, AddressReply, AddressRequest, END, ESC, Packet, REQ, displaced, is_special, restored};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use inhost_base::{Duration, Instant};

/// Configuration of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// How long a REQ waits for its ACK. Default two seconds (MIT §5.3).
    pub request_timeout: Duration,
    /// REQs sent for one packet, each with its own wait, before the packet is given up. Default 3: a line that
    /// spoils single octets now and then costs a wait, seldom a packet. At least one is sent.
    pub requests: u32,
    /// Longest wait between two octets of a packet that is being received. Default two seconds.
    pub character_timeout: Duration,
    /// Longest payload taken, in bytes. Default 1,006, as on SLIP lines.
    pub payload_limit_bytes: usize,
    /// Packets received and not yet polled; while there are so many, a REQ is not answered. It is when one was
    /// polled, unless its sender has stopped waiting by then. Default 32 (MIT §5.4).
    pub packet_buffers: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            request_timeout: Duration::from_secs(2),
            requests: 3,
            character_timeout: Duration::from_secs(2),
            payload_limit_bytes: 1006,
            packet_buffers: 32,
        }
    }
}

/// An event of the line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// An IP packet came.
    Data(Vec<u8>),
    /// The other end asks for its address.
    AddressRequest(AddressRequest),
    /// The other end assigned an address to this one.
    AddressReply(AddressReply),
    /// The last octet of the packet given to [`Line::send`] was pulled.
    Sent,
    /// No ACK came for any of its REQs in time, and it was given up.
    NotAcknowledged,
}

/// A packet is still being sent, or its [`Event::Sent`] or [`Event::NotAcknowledged`] was not polled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy;

impl core::fmt::Display for Busy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the line is still sending the packet before")
    }
}
impl core::error::Error for Busy {}

/// Counters of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets sent to their END.
    pub packets_sent: u64,
    /// Good packets received.
    pub packets_received: u64,
    /// Packets given up because no ACK came for any of their REQs.
    pub requests_unanswered: u64,
    /// REQs sent again because no ACK came.
    pub requests_repeated: u64,
    /// REQs of the other end that found no buffer when they came.
    pub requests_refused: u64,
    /// Packets dropped: a wrong CRC, length or escape, or an unknown type.
    pub packets_damaged: u64,
    /// Packets dropped because they were longer than a buffer.
    pub packets_too_long: u64,
    /// Packets dropped because a REQ came before their END.
    pub ends_lost: u64,
    /// Packets dropped because the next octet did not come in time.
    pub character_timeouts: u64,
    /// Octets dropped that belonged to no packet, unexpected ACKs among them.
    pub unexpected_octets: u64,
}

/// The sending state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sending {
    Idle,
    /// REQ is to be pulled.
    Requesting {
        /// REQs that may follow it.
        left: u32,
    },
    /// REQ was pulled.
    AwaitingAcknowledgment {
        deadline: Instant,
        left: u32,
    },
    /// The octet at this place of the packet is to be pulled; END behind the last.
    Data {
        at: usize,
    },
    /// Its ESC was pulled, and the octet that stands for it is to be.
    Displaced {
        at: usize,
    },
    /// How it ended is to be polled.
    Done {
        acknowledged: bool,
    },
}

/// The receiving state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Receiving {
    Idle,
    /// ACK was granted; octets of a packet come.
    Packet,
    /// The octet before was an ESC.
    Escaped,
    /// The packet is spoiled; nothing counts up to its END, or to the next REQ.
    Discarding,
}

/// One end of a line.
///
/// The driver hands over each octet that arrives ([`Line::receive`]), pulls an octet whenever the line can take one
/// ([`Line::next_octet`]) so that an ACK goes between two octets of a packet, calls [`Line::timeout`] at
/// [`Line::deadline`], and after any of these polls events until there are none. Calls in any order, and calls
/// when nothing is due, are harmless. It keeps at most [`Config::packet_buffers`] packets received, the one that is
/// being received, and the one that is being sent.
///
/// ```
/// use inhost_base::Instant;
/// use inhost_wire::llp::{Config, Event, Line, Packet};
/// let now = Instant::ZERO;
/// let (mut host, mut concentrator) = (Line::new(Config::default()), Line::new(Config::default()));
/// host.send(Packet::Data(b"an IP packet"), now)?;
/// loop {
///     let (there, back) = (host.next_octet(now), concentrator.next_octet(now));
///     there.inspect(|octet| concentrator.receive(*octet, now));
///     back.inspect(|octet| host.receive(*octet, now));
///     if there.or(back).is_none() {
///         break;
///     }
/// }
/// assert_eq!(concentrator.poll_event(), Some(Event::Data(b"an IP packet".to_vec())));
/// assert_eq!(host.poll_event(), Some(Event::Sent));
/// # Ok::<(), inhost_wire::llp::Busy>(())
/// ```
#[derive(Clone, Debug)]
pub struct Line {
    config: Config,
    sending: Sending,
    /// The packet being sent, with its local header.
    outgoing: Vec<u8>,
    /// An ACK is to be pulled before anything else.
    acknowledge: bool,
    receiving: Receiving,
    /// The packet being received, with its local header.
    incoming: Vec<u8>,
    /// When the next octet of the packet being received is overdue.
    octet_due: Instant,
    received: VecDeque<Event>,
    /// Until when the other end waits for the ACK of a REQ that found no buffer.
    unanswered_until: Option<Instant>,
    counters: Counters,
}

impl Line {
    /// A line on which nothing has happened.
    pub fn new(config: Config) -> Self {
        Line {
            config,
            sending: Sending::Idle,
            outgoing: Vec::new(),
            acknowledge: false,
            receiving: Receiving::Idle,
            incoming: Vec::new(),
            octet_due: Instant::FAR_FUTURE,
            received: VecDeque::new(),
            unanswered_until: None,
            counters: Counters::default(),
        }
    }

    /// Begins to send `packet`: its REQ is the next octet to pull, or nearly.
    pub fn send(&mut self, packet: Packet<'_>, now: Instant) -> Result<(), Busy> {
        self.timeout(now);
        if self.sending != Sending::Idle {
            return Err(Busy);
        }
        self.outgoing.clear();
        self.outgoing.resize(packet.length(), 0);
        packet.emit(&mut self.outgoing);
        self.sending = Sending::Requesting { left: self.config.requests.saturating_sub(1) };
        Ok(())
    }

    /// Whether [`Line::send`] would take a packet.
    pub fn is_idle(&self) -> bool {
        self.sending == Sending::Idle
    }

    /// The next octet to put on the line; `None` while there is nothing to send or an ACK is awaited.
    pub fn next_octet(&mut self, now: Instant) -> Option<u8> {
        self.timeout(now);
        if core::mem::take(&mut self.acknowledge) {
            return Some(ACK);
        }
        match self.sending {
            Sending::Requesting { left } => {
                let deadline = now + self.config.request_timeout;
                self.sending = Sending::AwaitingAcknowledgment { deadline, left };
                Some(REQ)
            }
            Sending::Data { at } => Some(match self.outgoing.get(at) {
                Some(octet) if is_special(*octet) => {
                    self.sending = Sending::Displaced { at };
                    ESC
                }
                Some(octet) => {
                    self.sending = Sending::Data { at: at + 1 };
                    *octet
                }
                None => {
                    self.counters.packets_sent += 1;
                    self.sending = Sending::Done { acknowledged: true };
                    END
                }
            }),
            Sending::Displaced { at } => {
                self.sending = Sending::Data { at: at + 1 };
                self.outgoing.get(at).map(|octet| displaced(*octet))
            }
            Sending::Idle | Sending::AwaitingAcknowledgment { .. } | Sending::Done { .. } => None,
        }
    }

    /// Takes an octet that arrived.
    pub fn receive(&mut self, octet: u8, now: Instant) {
        self.timeout(now);
        if octet == ACK {
            // It may arrive within a packet of the other direction, which it does not affect.
            match self.sending {
                Sending::AwaitingAcknowledgment { .. } => self.sending = Sending::Data { at: 0 },
                _ => self.counters.unexpected_octets += 1,
            }
            return;
        }
        self.octet_due = now + self.config.character_timeout;
        match (self.receiving, octet) {
            (_, REQ) => self.request(now),
            (Receiving::Idle, _) => self.counters.unexpected_octets += 1,
            (Receiving::Packet, END) => self.deliver(),
            (Receiving::Packet, ESC) => self.receiving = Receiving::Escaped,
            (Receiving::Packet, data) => self.append(data),
            (Receiving::Escaped, END) => {
                self.counters.packets_damaged += 1;
                self.incoming.clear();
                self.receiving = Receiving::Idle;
            }
            (Receiving::Escaped, code) => match restored(code) {
                Some(data) => self.append(data),
                None => {
                    self.counters.packets_damaged += 1;
                    self.spoil();
                }
            },
            (Receiving::Discarding, END) => self.receiving = Receiving::Idle,
            (Receiving::Discarding, _) => {}
        }
    }

    /// When [`Line::timeout`] wants to be called; `None` when nothing is awaited.
    pub fn deadline(&self) -> Option<Instant> {
        let request = match self.sending {
            Sending::AwaitingAcknowledgment { deadline, .. } => Some(deadline),
            _ => None,
        };
        let octet = (self.receiving != Receiving::Idle).then_some(self.octet_due);
        request.into_iter().chain(octet).min()
    }

    /// Runs timeouts at `now`: a request is repeated or given up, and a REQ that found no buffer is answered if there
    /// is one now.
    pub fn timeout(&mut self, now: Instant) {
        match self.sending {
            Sending::AwaitingAcknowledgment { deadline, left } if deadline <= now => {
                match left.checked_sub(1) {
                    Some(left) => {
                        self.counters.requests_repeated += 1;
                        self.sending = Sending::Requesting { left };
                    }
                    None => {
                        self.counters.requests_unanswered += 1;
                        self.sending = Sending::Done { acknowledged: false };
                    }
                }
            }
            _ => {}
        }
        if self.receiving != Receiving::Idle && self.octet_due <= now {
            self.counters.character_timeouts += 1;
            self.incoming.clear();
            self.receiving = Receiving::Idle;
        }
        if let Some(until) = self.unanswered_until
            && self.received.len() < self.config.packet_buffers
        {
            self.unanswered_until = None;
            if now < until {
                self.grant(now);
            }
        }
    }

    /// The next event. To poll a packet frees its buffer.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.poll_outcome().or_else(|| self.received.pop_front())
    }

    /// How the packet given to [`Line::send`] ended, [`Event::Sent`] or [`Event::NotAcknowledged`], when that was
    /// not polled yet. Packets received stay in their buffers.
    pub fn poll_outcome(&mut self) -> Option<Event> {
        match self.sending {
            Sending::Done { acknowledged } => {
                self.sending = Sending::Idle;
                Some(if acknowledged { Event::Sent } else { Event::NotAcknowledged })
            }
            _ => None,
        }
    }

    /// The counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// A REQ: the packet being received has lost its END, and the next one needs a buffer.
    fn request(&mut self, now: Instant) {
        if !self.incoming.is_empty() || self.receiving == Receiving::Escaped {
            self.counters.ends_lost += 1;
        }
        self.incoming.clear();
        if self.received.len() < self.config.packet_buffers {
            self.grant(now);
        } else {
            self.counters.requests_refused += 1;
            self.receiving = Receiving::Idle;
            self.unanswered_until = Some(now + self.config.request_timeout);
        }
    }

    fn grant(&mut self, now: Instant) {
        self.unanswered_until = None;
        self.acknowledge = true;
        self.receiving = Receiving::Packet;
        self.octet_due = now + self.config.character_timeout;
    }

    fn append(&mut self, octet: u8) {
        if self.incoming.len() < super::LENGTH + self.config.payload_limit_bytes {
            self.incoming.push(octet);
            self.receiving = Receiving::Packet;
        } else {
            self.counters.packets_too_long += 1;
            self.spoil();
        }
    }

    fn spoil(&mut self) {
        self.incoming.clear();
        self.receiving = Receiving::Discarding;
    }

    fn deliver(&mut self) {
        let event = match Packet::parse(&self.incoming) {
            Ok(Packet::Data(payload)) => Some(Event::Data(payload.to_vec())),
            Ok(Packet::AddressRequest(request)) => Some(Event::AddressRequest(request)),
            Ok(Packet::AddressReply(reply)) => Some(Event::AddressReply(reply)),
            Err(_) => None,
        };
        match event {
            Some(_) => self.counters.packets_received += 1,
            None => self.counters.packets_damaged += 1,
        }
        self.received.extend(event);
        self.incoming.clear();
        self.receiving = Receiving::Idle;
    }
}

#[cfg(test)]
mod tests;
