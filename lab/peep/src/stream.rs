//! One connection as text.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use inhost_common::Cleaner;
use inhost_explain::capture::{Frame, dissect};
use inhost_telnet::codec::{DO, DONT, IAC, SB, SE, WILL, WONT};

/// What waits for a hole before it to be filled, at most, in bytes and pieces; then the hole is said.
const MAX_WAITING_BYTES: usize = 1 << 20;
const MAX_WAITING: usize = 4096;
/// A segment this far from the others is of another connection, or forged.
const MAX_DISTANCE: i64 = 1 << 30;
const TELNET: u16 = 23;

/// The stream of a connection, both directions, in the order in which it arrives: each byte once.
#[derive(Clone, Debug)]
pub struct Conversation {
    ends: [SocketAddr; 2],
    halves: [Half; 2],
    /// Who spoke last.
    speaker: Option<usize>,
}

/// One direction. Numbers are relative to the first that was seen.
#[derive(Clone, Debug, Default)]
struct Half {
    /// A number on the wire, and the same as a relative one.
    known: Option<(u32, i64)>,
    /// The next byte that is to be said.
    next: i64,
    /// By the number of their first byte.
    waiting: BTreeMap<i64, Piece>,
    waiting_bytes: usize,
    /// Behind the last byte, where a FIN was seen.
    end: Option<i64>,
    cleaner: Cleaner,
    telnet: Option<Telnet>,
}

/// Part of a stream.
#[derive(Clone, Debug)]
enum Piece {
    Bytes(Vec<u8>),
    /// So many bytes that the capture left out.
    Cut(i64),
}

/// Where in Telnet's commands a stream is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Telnet {
    Text,
    /// Behind IAC.
    Command,
    /// Behind WILL and its like.
    Option,
    Subnegotiation,
    /// Behind IAC in a subnegotiation.
    SubnegotiationCommand,
}

impl Conversation {
    /// That between these ends. `is_raw` leaves Telnet's commands in.
    pub fn new(ends: [SocketAddr; 2], is_raw: bool) -> Conversation {
        let is_telnet = !is_raw && ends.iter().any(|end| end.port() == TELNET);
        let telnet = is_telnet.then_some(Telnet::Text);
        let half = Half { telnet, ..Half::default() };
        Conversation { ends, halves: [half.clone(), half], speaker: None }
    }
    /// Takes a frame with the payload of its transport; gives what the connection says by it. A line in angle brackets
    /// tells who speaks, and what is missing.
    pub fn take(&mut self, frame: &Frame<'_>, payload: &[u8]) -> String {
        let mut text = String::new();
        let Ok((flow, segment)) = dissect(frame) else { return text };
        let side = match [flow.source, flow.destination] {
            ends if ends == self.ends => 0,
            [source, destination] if [destination, source] == self.ends => 1,
            _ => return text,
        };
        if segment.flags.syn() && self.halves[side].is_another(segment.sequence) {
            // A new connection between the same ends.
            self.finish_into(&mut text);
            for half in &mut self.halves {
                *half = Half { telnet: half.telnet.map(|_| Telnet::Text), ..Half::default() };
            }
        }
        let half = &mut self.halves[side];
        let Some(at) = half.see(segment.sequence) else { return text };
        let at = at + i64::from(segment.flags.syn());
        if segment.flags.syn() {
            half.next = at;
        }
        let wire_bytes = segment.payload_bytes as usize;
        let payload = &payload[..payload.len().min(wire_bytes)];
        half.add(at, Piece::Bytes(payload.to_vec()));
        half.add(at + payload.len() as i64, Piece::Cut((wire_bytes - payload.len()) as i64));
        if segment.flags.fin() {
            half.end = Some(at + wire_bytes as i64);
        }
        self.say(side, None, &mut text);
        if segment.flags.ack() {
            // What is acknowledged and was not seen is missing here, and does not come.
            let acknowledged = self.halves[1 - side].known.is_some().then_some(segment.acknowledgment);
            let acknowledged = acknowledged.and_then(|number| self.halves[1 - side].see(number));
            self.say(1 - side, acknowledged, &mut text);
        }
        if segment.flags.rst() {
            self.finish_into(&mut text);
            self.note(&format!("{} resets", self.ends[side]), &mut text);
        }
        text
    }
    /// Whether any segment was of this connection.
    pub fn was_seen(&self) -> bool {
        self.halves.iter().any(|half| half.known.is_some())
    }
    /// What still waits at the end of a capture.
    pub fn finish(&mut self) -> String {
        let mut text = String::new();
        self.finish_into(&mut text);
        text
    }
    fn finish_into(&mut self, text: &mut String) {
        for side in [0, 1] {
            self.say(side, Some(i64::MAX), text);
            self.halves[side].cleaner.end(text);
        }
    }
    /// Says what one side has in order; holes before `until` are named and stepped over.
    fn say(&mut self, side: usize, until: Option<i64>, text: &mut String) {
        while let Some(part) = self.halves[side].release(until) {
            if self.speaker.replace(side) != Some(side) {
                let who = self.ends[side];
                text.push_str(&format!("\n<{who} says>\n"));
            }
            let half = &mut self.halves[side];
            match part {
                Part::Bytes(bytes) => match &mut half.telnet {
                    Some(telnet) => half.cleaner.take(&telnet.strip(&bytes), text),
                    None => half.cleaner.take(&bytes, text),
                },
                Part::Missing(bytes) => {
                    half.cleaner.end(text);
                    text.push_str(&format!("<{bytes} bytes are missing>"));
                }
                Part::Cut(bytes) => {
                    half.cleaner.end(text);
                    text.push_str(&format!("<{bytes} bytes were not captured>"));
                }
            }
        }
        let half = &mut self.halves[side];
        if half.end == Some(half.next) {
            half.end = None;
            self.note(&format!("{} ends", self.ends[side]), text);
        }
    }
    fn note(&mut self, what: &str, text: &mut String) {
        text.push_str(&format!("\n<{what}>\n"));
        self.speaker = None;
    }
}

/// What is next in a stream.
enum Part {
    Bytes(Vec<u8>),
    Missing(i64),
    Cut(i64),
}

impl Half {
    /// A number of this stream as a relative one; none where it cannot be of it.
    fn see(&mut self, number: u32) -> Option<i64> {
        let (known, relative) = *self.known.get_or_insert((number, 0));
        let now = relative + i64::from(number.wrapping_sub(known) as i32);
        if (now - self.next).abs() > MAX_DISTANCE {
            return None;
        }
        // Close to what is said, the distance to the next number is always known.
        let next = self.next - relative;
        self.known = Some((known.wrapping_add(next as u32), self.next));
        Some(now)
    }
    /// A SYN with this number begins another connection.
    fn is_another(&self, sequence: u32) -> bool {
        let first = self.known.map(|(number, relative)| number.wrapping_sub(relative as u32));
        first.is_some_and(|first| first != sequence)
    }
    fn add(&mut self, at: i64, piece: Piece) {
        let length = piece.length();
        if length == 0 || at + length <= self.next {
            return;
        }
        if self.waiting.get(&at).is_some_and(|known| known.length() >= length) {
            return;
        }
        if let Piece::Bytes(bytes) = &piece {
            self.waiting_bytes += bytes.len();
        }
        if let Some(Piece::Bytes(known)) = self.waiting.insert(at, piece) {
            self.waiting_bytes -= known.len();
        }
    }
    /// What is next. Before `until`, and where too much waits, a hole is next, too.
    fn release(&mut self, until: Option<i64>) -> Option<Part> {
        loop {
            let first = self.waiting.first_key_value().map(|(at, _)| *at);
            let is_full = self.waiting_bytes > MAX_WAITING_BYTES || self.waiting.len() > MAX_WAITING;
            let hole_end = match (first, until) {
                (Some(at), _) if at <= self.next => None,
                (Some(at), Some(until)) if at <= until => Some(at),
                (Some(at), _) if is_full => Some(at),
                // What is acknowledged up to here, and nothing of it waits.
                (_, Some(until)) if until != i64::MAX && until > self.next => {
                    // A FIN takes a number.
                    Some(self.end.map_or(until, |end| until.min(end)))
                }
                _ => return None,
            };
            if let Some(end) = hole_end {
                let missing = end - self.next;
                self.next = end.max(self.next);
                return (missing > 0).then_some(Part::Missing(missing));
            }
            let (at, piece) = self.waiting.pop_first()?;
            if let Piece::Bytes(bytes) = &piece {
                self.waiting_bytes -= bytes.len();
            }
            let (known, length) = (self.next - at, piece.length());
            if known >= length {
                continue;
            }
            self.next = at + length;
            return Some(match piece {
                Piece::Bytes(bytes) => Part::Bytes(bytes[known as usize..].to_vec()),
                Piece::Cut(bytes) => Part::Cut(bytes - known),
            });
        }
    }
}

impl Piece {
    fn length(&self) -> i64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as i64,
            Piece::Cut(bytes) => *bytes,
        }
    }
}

impl Telnet {
    /// The bytes without commands.
    fn strip(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            *self = match (*self, byte) {
                (Telnet::Text, IAC) => Telnet::Command,
                (Telnet::Text, _) => {
                    // A carriage return alone is sent with a zero behind it.
                    if byte != 0 {
                        text.push(byte);
                    }
                    Telnet::Text
                }
                (Telnet::Command, IAC) => {
                    text.push(IAC);
                    Telnet::Text
                }
                (Telnet::Command, DO | DONT | WILL | WONT) => Telnet::Option,
                (Telnet::Command, SB) => Telnet::Subnegotiation,
                (Telnet::Command | Telnet::Option, _) => Telnet::Text,
                (Telnet::Subnegotiation, IAC) => Telnet::SubnegotiationCommand,
                (Telnet::SubnegotiationCommand, SE) => Telnet::Text,
                (Telnet::Subnegotiation | Telnet::SubnegotiationCommand, _) => Telnet::Subnegotiation,
            };
        }
        text
    }
}
