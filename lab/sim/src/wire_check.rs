//! What must hold of the frames themselves, whoever made them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use inhost_base::{Endpoint, Sequence};

use crate::network::{Seen, Watcher};
use crate::segment::{SeenSegment, checksum_ok};

/// Complaints that are kept; the first one is what matters.
const COMPLAINTS_KEPT: usize = 16;

/// Watches TCP on the wire: nothing is acknowledged that was not received, and no window shrinks (RFC 9293 §3.8.6),
/// but by a rounding to its unit (RFC 7323 §2.4). Streams are to be shorter than 4 GiB. Clones are the same checker.
#[derive(Clone, Debug, Default)]
pub struct WireCheck(Rc<RefCell<State>>);

#[derive(Debug, Default)]
struct State {
    flows: BTreeMap<(usize, Endpoint, Endpoint), Flow>,
    complaints: Vec<String>,
    segments: u64,
}

/// One end of a connection: what came to it, and what it said.
#[derive(Debug, Default)]
struct Flow {
    /// One for each SYN that came; an old one may come again after another connection.
    heard: Vec<Heard>,
    scale: u8,
    /// The number of its own SYN.
    own_initial: Option<Sequence>,
    edge: Option<Sequence>,
}

/// What came after one SYN.
#[derive(Debug)]
struct Heard {
    /// The number of the SYN.
    initial: Sequence,
    scales: bool,
    /// Counted from there: start to end, without gaps or overlaps between entries.
    received: BTreeMap<u32, u32>,
}

impl WireCheck {
    /// What is wrong so far, in words.
    pub fn complaints(&self) -> Vec<String> {
        self.0.borrow().complaints.clone()
    }
    /// Whether something is wrong.
    pub fn has_complaints(&self) -> bool {
        !self.0.borrow().complaints.is_empty()
    }
    /// Segments looked at.
    pub fn segments(&self) -> u64 {
        self.0.borrow().segments
    }
}

impl Watcher for WireCheck {
    fn sent(&mut self, host: usize, frame: &Seen<'_>) {
        let Some(seen) = SeenSegment::of(frame) else { return };
        let state = &mut *self.0.borrow_mut();
        state.segments += 1;
        let flow = state.flows.entry((host, seen.from, seen.to)).or_default();
        if let Err(why) = flow.says(&seen)
            && state.complaints.len() < COMPLAINTS_KEPT
        {
            let at = frame.at;
            state.complaints.push(format!("{at:?} host {host}: {why}: {}", crate::segment::describe(frame)));
        }
    }
    fn delivered(&mut self, host: usize, frame: &Seen<'_>) {
        // What no checksum covers (IPv6's class, label and hop limit) may be spoilt, and the segment is whole.
        if !frame.is_intact && !checksum_ok(frame) {
            return;
        }
        let Some(seen) = SeenSegment::of(frame) else { return };
        let state = &mut *self.0.borrow_mut();
        state.flows.entry((host, seen.to, seen.from)).or_default().hears(&seen);
    }
}

impl Flow {
    fn hears(&mut self, seen: &SeenSegment<'_>) {
        let segment = &seen.segment;
        if segment.flags.rst() {
            return;
        }
        let initial = segment.sequence;
        if segment.flags.syn() && self.heard.iter().all(|heard| heard.initial != initial) {
            let scales = segment.options.window_scale.is_some();
            self.heard.push(Heard { initial, scales, received: BTreeMap::new() });
        }
        for heard in &mut self.heard {
            let start = segment.sequence.since(heard.initial);
            heard.add(start, start.saturating_add(segment.sequence_length()));
        }
    }
    fn says(&mut self, seen: &SeenSegment<'_>) -> Result<(), &'static str> {
        let segment = &seen.segment;
        if segment.flags.rst() {
            return Ok(());
        }
        if segment.flags.syn() {
            self.scale = segment.options.window_scale.unwrap_or(0).min(14);
            if self.own_initial != Some(segment.sequence) {
                // Another connection between the same ends.
                self.own_initial = Some(segment.sequence);
                self.edge = None;
            }
        }
        if !segment.flags.ack() {
            return Ok(());
        }
        if self.heard.is_empty() {
            return Err("acknowledges where nothing came");
        }
        let Some(heard) = self.heard.iter().rev().find(|heard| heard.has(None, segment.acknowledgment))
        else {
            return Err("acknowledges what was not received");
        };
        if !segment.options.sack.iter().all(|&(start, end)| heard.has(Some(start), end)) {
            return Err("reports by SACK what was not received");
        }
        if segment.flags.syn() && self.edge.is_some() {
            // A SYN that goes again, after more was offered than its window can say.
            return Ok(());
        }
        let scale = if segment.flags.syn() || !heard.scales { 0 } else { self.scale };
        let edge = segment.acknowledgment + (u32::from(segment.window) << scale);
        let before = self.edge.unwrap_or(edge);
        self.edge = Some(edge.later(before));
        if edge.precedes(before) && before.since(edge) >= 1 << scale {
            return Err("shrinks its window");
        }
        Ok(())
    }
}

impl Heard {
    fn add(&mut self, mut start: u32, mut end: u32) {
        if start >= end {
            return;
        }
        while let Some((&from, &to)) = self.received.range(..=end).next_back()
            && to >= start
        {
            (start, end) = (start.min(from), end.max(to));
            self.received.remove(&from);
        }
        self.received.insert(start, end);
    }
    /// Whether all from `start`, or from the SYN, to `end` was received.
    fn has(&self, start: Option<Sequence>, end: Sequence) -> bool {
        let start = start.map_or(0, |start| start.since(self.initial));
        let end = end.since(self.initial);
        self.received.range(..=start).next_back().is_some_and(|(_, &to)| to >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::{Instant, Ipv4Addr};
    use inhost_wire::ipv4::Ipv4Header;
    use inhost_wire::protocol;
    use inhost_wire::tcp::{Flags, Segment, TcpOptions};

    const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];

    /// A frame that host `from` sends to the other.
    fn frame(
        from: usize,
        flags: Flags,
        sequence: u32,
        acknowledgment: u32,
        window: u16,
        data: &[u8],
    ) -> Vec<u8> {
        let options = TcpOptions { window_scale: flags.syn().then_some(3), ..TcpOptions::NONE };
        let segment = Segment {
            source_port: 1,
            destination_port: 1,
            sequence: Sequence(sequence),
            acknowledgment: Sequence(acknowledgment),
            flags,
            window,
            urgent_pointer: 0,
            options,
            payload: data,
        };
        let (source, destination) = (HOSTS[from], HOSTS[1 - from]);
        let mut bytes = vec![0; 20 + segment.length()];
        let length = segment.length() as u16;
        Ipv4Header::new(source, destination, protocol::TCP, length).emit(&mut bytes);
        segment.emit(source.into(), destination.into(), &mut bytes[20..]);
        bytes
    }
    fn seen(bytes: &[u8]) -> Seen<'_> {
        Seen { at: Instant::ZERO, bytes, is_ethernet: false, is_intact: true }
    }
    /// Host 0, after it opened to host 1, whose numbers begin at 900.
    fn opened() -> WireCheck {
        let mut check = WireCheck::default();
        check.sent(0, &seen(&frame(0, Flags::SYN, 100, 0, 1000, &[])));
        check.delivered(0, &seen(&frame(1, Flags::SYN | Flags::ACK, 900, 101, 1000, &[])));
        check.sent(0, &seen(&frame(0, Flags::ACK, 101, 901, 1000, &[])));
        assert!(!check.has_complaints());
        check
    }

    #[test]
    fn only_what_came_may_be_acknowledged() {
        let mut check = opened();
        check.delivered(0, &seen(&frame(1, Flags::ACK, 911, 101, 1000, &[7; 10])));
        check.sent(0, &seen(&frame(0, Flags::ACK, 101, 901, 1000, &[])));
        assert!(!check.has_complaints());
        let mut hasty = opened();
        hasty.delivered(0, &seen(&frame(1, Flags::ACK, 911, 101, 1000, &[7; 10])));
        hasty.sent(0, &seen(&frame(0, Flags::ACK, 101, 921, 1000, &[])));
        assert_eq!(hasty.complaints().len(), 1);
        check.delivered(0, &seen(&frame(1, Flags::ACK, 901, 101, 1000, &[7; 10])));
        check.sent(0, &seen(&frame(0, Flags::ACK, 101, 921, 1000, &[])));
        assert!(!check.has_complaints());
    }

    #[test]
    fn what_was_spoilt_did_not_come() {
        let mut check = opened();
        let mut spoilt = frame(1, Flags::ACK, 901, 101, 1000, &[7; 10]);
        spoilt[45] ^= 4;
        check.delivered(0, &Seen { is_intact: false, ..seen(&spoilt) });
        check.sent(0, &seen(&frame(0, Flags::ACK, 101, 911, 1000, &[])));
        assert_eq!(check.complaints().len(), 1);
    }

    #[test]
    fn windows_do_not_shrink_by_more_than_their_unit() {
        let mut check = opened();
        check.sent(0, &seen(&frame(0, Flags::ACK, 101, 901, 1100, &[])));
        check.delivered(0, &seen(&frame(1, Flags::ACK, 901, 101, 1000, &[7; 15])));
        // 15 bytes are acknowledged, and the field is less by two units of eight.
        check.sent(0, &seen(&frame(0, Flags::ACK, 101, 916, 1098, &[])));
        assert!(!check.has_complaints());
        check.sent(0, &seen(&frame(0, Flags::ACK, 101, 916, 1097, &[])));
        assert_eq!(check.complaints().len(), 1);
    }
}
