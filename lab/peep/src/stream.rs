//! One connection as text.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use inhost_common::Cleaner;
use inhost_explain::capture::{Frame, dissect};

/// Bytes that wait for a hole before them to be filled, at most; then the hole is said.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// The stream of a connection, both directions, in the order in which it arrives: each byte once.
#[derive(Clone, Debug)]
pub struct Conversation {
    ends: [SocketAddr; 2],
    halves: [Half; 2],
    /// Who spoke last.
    speaker: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct Half {
    /// The next number, on the wire.
    next: Option<u32>,
    /// By distance from the next number when it came, which stays right while holes are small.
    waiting: BTreeMap<u32, Vec<u8>>,
    waiting_bytes: usize,
    cleaner: Cleaner,
}

impl Conversation {
    /// That between these ends.
    pub fn new(ends: [SocketAddr; 2]) -> Conversation {
        Conversation { ends, halves: Default::default(), speaker: None }
    }
    /// Takes a frame; gives what the connection says by it. A line in angle brackets tells who speaks.
    pub fn take(&mut self, frame: &Frame<'_>, payload: &[u8]) -> String {
        let Ok((flow, segment)) = dissect(frame) else { return String::new() };
        let side = match [flow.source, flow.destination] {
            ends if ends == self.ends => 0,
            [source, destination] if [destination, source] == self.ends => 1,
            _ => return String::new(),
        };
        let half = &mut self.halves[side];
        let syn = u32::from(segment.flags.syn());
        if segment.flags.syn() {
            half.next = Some(segment.sequence.wrapping_add(1));
        }
        let start = segment.sequence.wrapping_add(syn);
        let next = *half.next.get_or_insert(start);
        let mut said = Vec::new();
        let cut_bytes = segment.payload_bytes as usize - payload.len().min(segment.payload_bytes as usize);
        if !payload.is_empty() {
            half.waiting_bytes += payload.len();
            let place = half.waiting.entry(start).or_default();
            if place.len() < payload.len() {
                half.waiting_bytes -= place.len();
                *place = payload.to_vec();
            }
        }
        half.next = Some(next);
        half.release(&mut said, false);
        if half.waiting_bytes > MAX_WAITING_BYTES {
            half.release(&mut said, true);
        }
        if cut_bytes > 0 && !payload.is_empty() || segment.payload_bytes > 0 && payload.is_empty() {
            said.extend(format!("<{cut_bytes} bytes were not captured>").bytes());
            half.next = Some(start.wrapping_add(segment.payload_bytes));
        }
        let mut text = String::new();
        if !said.is_empty() {
            if self.speaker.replace(side) != Some(side) {
                text.push_str(&format!("\n<{} says>\n", self.ends[side]));
            }
            half.cleaner.take(&said, &mut text);
        }
        if segment.flags.fin() || segment.flags.rst() {
            let how = if segment.flags.rst() { "resets" } else { "ends" };
            text.push_str(&format!("\n<{} {how}>\n", self.ends[side]));
            self.speaker = None;
        }
        text
    }
}

impl Half {
    /// Gives out what is in order; with `gap`, behind the first hole, too.
    fn release(&mut self, said: &mut Vec<u8>, mut gap: bool) {
        let Some(mut next) = self.next else { return };
        loop {
            // The nearest in the order of numbers, which wrap.
            let nearest = self.waiting.keys().copied().min_by_key(|&start| start.wrapping_sub(next) as i32);
            let Some(start) = nearest else { break };
            let ahead = start.wrapping_sub(next) as i32;
            if ahead > 0 && !std::mem::take(&mut gap) {
                break;
            }
            let bytes = self.waiting.remove(&start).unwrap_or_default();
            self.waiting_bytes -= bytes.len();
            if ahead > 0 {
                said.extend(format!("<{ahead} bytes are missing>").bytes());
                next = start;
            }
            let known = (next.wrapping_sub(start) as usize).min(bytes.len());
            said.extend(&bytes[known..]);
            next = next.wrapping_add((bytes.len() - known) as u32);
        }
        self.next = Some(next);
    }
}
