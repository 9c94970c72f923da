//! The peer's half of each connection: initial numbers, scales, timestamps, cookie.

use crate::language::{Cookie, Echo, Options, Presence, Segment};
use crate::side::SERVER_PORT;
use inhost_base::{Instant, Sequence};
use inhost_wire::tcp::{self, FastOpenCookie, Flags, SackBlocks, TcpHeader, TcpOptions};

/// The peer's first sequence number, where a script does not say another.
const PEER_INITIAL: u32 = 10_000;
/// The peer's timestamp when the script begins.
const PEER_TIMESTAMP: u32 = 1_000;
/// The cookie that the peer gives as a server.
const PEER_COOKIE: [u8; 8] = [0xfe, 0xed, 1, 2, 3, 4, 5, 6];

/// One connection as the peer sees it. Relative numbers count from the initial ones.
#[derive(Clone, Debug)]
pub struct Flow {
    peer_initial: u32,
    host_initial: Option<u32>,
    /// After the last that the peer has sent.
    peer_next: i64,
    last_acknowledgment: i64,
    window_bytes: u32,
    /// The host's port.
    pub host_port: u16,
    peer_scale: Option<u8>,
    host_scale: Option<u8>,
    peer_stamps: bool,
    host_stamps: bool,
    /// The host's latest timestamp, which the peer echoes.
    host_timestamp: u32,
    cookie: Option<Vec<u8>>,
}

impl Default for Flow {
    fn default() -> Self {
        Flow {
            peer_initial: PEER_INITIAL,
            host_initial: None,
            peer_next: 0,
            last_acknowledgment: 0,
            window_bytes: 65_535,
            host_port: SERVER_PORT,
            peer_scale: None,
            host_scale: None,
            peer_stamps: false,
            host_stamps: false,
            host_timestamp: 0,
            cookie: None,
        }
    }
}

/// A wire segment in a script's relative numbers.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The first number: of the SYN or FIN where there is no data.
    pub sequence: i64,
    /// The acknowledgment number, if any.
    pub acknowledgment: Option<i64>,
    /// The flags.
    pub flags: Flags,
    /// In bytes, after scaling.
    pub window_bytes: u32,
    /// SACK blocks.
    pub sack: Vec<(i64, i64)>,
}

impl Flow {
    /// The same peer after the old connection: what is known of the host is its cookie.
    pub fn renewed(&self) -> Flow {
        Flow { cookie: self.cookie.clone(), ..Flow::default() }
    }
    fn is_scaled(&self) -> bool {
        self.peer_scale.is_some() && self.host_scale.is_some()
    }
    /// The distance from an initial number; differences of half the space and more are taken as backwards.
    fn relative(number: u32, initial: u32) -> i64 {
        i64::from(number.wrapping_sub(initial) as i32)
    }
    fn absolute(relative: i64, initial: u32) -> Sequence {
        Sequence(initial.wrapping_add(relative as u32))
    }
    /// The number on the wire of the host's `relative` one.
    pub fn host_sequence(&self, relative: i64) -> Sequence {
        Flow::absolute(relative, self.host_initial.unwrap_or(0))
    }

    /// The header of the peer's `segment`, and where in its stream its data begins.
    pub fn outgoing(&mut self, segment: &Segment, now: Instant) -> (TcpHeader, u64) {
        let flags = segment.flags;
        if let Some(initial) = segment.initial_sequence {
            let old = self.clone();
            *self = Flow { peer_initial: initial, host_port: old.host_port, ..old.renewed() };
            if flags.ack() {
                // The answer to a call of the host's, whose numbers stand.
                self.host_initial = old.host_initial;
                (self.host_scale, self.host_stamps) = (old.host_scale, old.host_stamps);
                self.host_timestamp = old.host_timestamp;
            }
        }
        if flags.syn() {
            self.peer_scale = match segment.options.scale {
                Presence::Is(scale) => Some(scale),
                _ => None,
            };
            self.peer_stamps = matches!(segment.options.timestamps, Presence::Is(()));
        }
        let from_data = segment.data.map(|(from, _)| from - i64::from(flags.syn()));
        let usual = if flags.syn() { 0 } else { self.peer_next };
        let sequence = segment.sequence.or(from_data).unwrap_or(usual);
        let length = segment.data.map_or(0, |(from, to)| to - from);
        let end = sequence + length + i64::from(flags.syn()) + i64::from(flags.fin());
        if !segment.forged && !segment.bad_checksum && !flags.rst() {
            self.peer_next = self.peer_next.max(end);
        }
        let acknowledgment = segment.acknowledgment.unwrap_or(self.last_acknowledgment);
        if flags.ack() {
            self.last_acknowledgment = acknowledgment;
        }
        if let Some(window) = &segment.window {
            self.window_bytes = *window.start();
        }
        let shift = if self.is_scaled() && !flags.syn() { self.peer_scale.unwrap_or(0) } else { 0 };
        let header = TcpHeader {
            source_port: 0,
            destination_port: self.host_port,
            sequence: Flow::absolute(sequence, self.peer_initial),
            acknowledgment: if flags.ack() { self.host_sequence(acknowledgment) } else { Sequence(0) },
            flags: flags.union(if segment.push == Some(true) { Flags::PSH } else { Flags::empty() }),
            window: (self.window_bytes >> shift).min(0xffff) as u16,
            urgent_pointer: segment.urgent_pointer.unwrap_or(0),
            options: self.outgoing_options(&segment.options, flags, now),
        };
        (header, segment.data.map_or(0, |(from, _)| (from - 1).max(0) as u64))
    }
    fn outgoing_options(&self, said: &Options, flags: Flags, now: Instant) -> TcpOptions {
        let mut options = TcpOptions::NONE;
        if let Presence::Is(mss) = said.mss {
            options.mss = Some(mss);
        }
        if let Presence::Is(scale) = said.scale {
            options.window_scale = Some(scale);
        }
        options.sack_permitted = said.sack_permitted == Presence::Is(());
        let agreed = self.peer_stamps && (self.host_stamps || flags.syn()) && !flags.rst();
        let stamps = match said.timestamps {
            Presence::Absent => false,
            Presence::Unsaid => agreed && !flags.syn(),
            Presence::Any | Presence::Is(()) => true,
        };
        if stamps {
            let value = PEER_TIMESTAMP.wrapping_add(now.as_millis() as u32);
            let value = said.timestamp_value.unwrap_or(value);
            let echo = match said.timestamp_echo {
                Some(Echo::Value(echo)) => echo,
                Some(Echo::Earlier(millis)) => self.host_timestamp.wrapping_sub(millis),
                None => self.host_timestamp,
            };
            options.timestamps = Some((value, echo));
        }
        if let Presence::Is(blocks) = &said.sack {
            let mut sack = SackBlocks::new();
            for &(from, to) in blocks {
                sack.push((self.host_sequence(from), self.host_sequence(to)));
            }
            options.sack = sack;
        }
        options.fast_open = match &said.fast_open {
            Presence::Is(Cookie::Request) => Some(FastOpenCookie::new()),
            Presence::Is(Cookie::Known) => {
                FastOpenCookie::from_slice(self.cookie.as_deref().unwrap_or(&PEER_COOKIE))
            }
            Presence::Is(Cookie::Bytes(bytes)) => FastOpenCookie::from_slice(bytes),
            _ => None,
        };
        options
    }

    /// Takes note of the host's segment, and reads it in the script's numbers.
    pub fn incoming(&mut self, segment: &tcp::Segment<'_>) -> Seen {
        let flags = segment.flags;
        if flags.syn() {
            self.host_initial.get_or_insert(segment.sequence.0);
            self.host_scale = segment.options.window_scale;
            self.host_stamps = segment.options.timestamps.is_some();
        }
        self.host_port = segment.source_port;
        if let Some((value, _)) = segment.options.timestamps {
            self.host_timestamp = value;
        }
        if let Some(cookie) = segment.options.fast_open.filter(|cookie| !cookie.is_empty()) {
            self.cookie = Some(cookie.to_vec());
        }
        let shift = if self.is_scaled() && !flags.syn() { self.host_scale.unwrap_or(0).min(14) } else { 0 };
        let initial = self.host_initial.unwrap_or(0);
        let block = |&(from, to): &(Sequence, Sequence)| {
            (Flow::relative(from.0, self.peer_initial), Flow::relative(to.0, self.peer_initial))
        };
        Seen {
            sequence: Flow::relative(segment.sequence.0, initial),
            acknowledgment: flags.ack().then(|| Flow::relative(segment.acknowledgment.0, self.peer_initial)),
            flags,
            window_bytes: u32::from(segment.window) << shift,
            sack: segment.options.sack.iter().map(block).collect(),
        }
    }
}
