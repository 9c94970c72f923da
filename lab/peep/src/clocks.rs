//! Clocks of several sources that disagree: data that is acknowledged before it was sent.
//!
//! On whichever side of a path frames are captured, data passes every place before its acknowledgment passes any. So an
//! acknowledgment in one source that is earlier than the data in another tells of clocks that disagree, by at least that
//! time.

use std::net::SocketAddr;

use inhost_explain::capture::{Frame, dissect};

use crate::recent::Recent;

/// Sources beyond this number are not compared.
const MAX_SOURCES: usize = 16;
/// An acknowledgment this long before its data is taken for one of other data: no clock is so wrong.
const MAX_SKEW_NS: u64 = 3600 * 1_000_000_000;

/// Two sources whose clocks disagree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Skew {
    /// The source in which the acknowledgment is.
    pub early: usize,
    /// The source in which the data is, later.
    pub late: usize,
    /// How much later, in nanoseconds: the clocks disagree at least by this.
    pub by_ns: u64,
    /// Sender and receiver of the data.
    pub ends: [SocketAddr; 2],
}

/// Compares sources. Give it each frame in the order of time.
#[derive(Debug, Default)]
pub struct Clocks {
    /// By sender and receiver of data.
    flows: Recent<(SocketAddr, SocketAddr), [Passed; MAX_SOURCES]>,
    /// The largest that was told, by source of the acknowledgment and of the data.
    told_ns: [[u64; MAX_SOURCES]; MAX_SOURCES],
}

/// What passed a source.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    /// The number behind the last byte.
    end: Option<u32>,
    /// An acknowledgment in another source of what is still to pass here: its number, time and source.
    awaited: Option<(u32, u64, usize)>,
}

impl Clocks {
    /// Takes a frame of a source; tells of a disagreement when it is new, or twice that known.
    pub fn take(&mut self, frame: &Frame<'_>, source: usize) -> Option<Skew> {
        let (flow, segment) = dissect(frame).ok()?;
        if source >= MAX_SOURCES {
            return None;
        }
        let is_ahead = |number: u32, end: u32| number.wrapping_sub(end) as i32 > 0;
        if segment.flags.ack() && !segment.flags.rst() {
            let acknowledged = self.flows.entry((flow.destination, flow.source), Default::default);
            for (_, passed) in acknowledged.iter_mut().enumerate().filter(|(place, _)| *place != source) {
                if passed.end.is_some_and(|end| is_ahead(segment.acknowledgment, end)) {
                    passed.awaited.get_or_insert((segment.acknowledgment, frame.at_ns, source));
                }
            }
        }
        let length = segment.payload_bytes + u32::from(segment.flags.syn()) + u32::from(segment.flags.fin());
        let passed = &mut self.flows.entry((flow.source, flow.destination), Default::default)[source];
        let end = segment.sequence.wrapping_add(length);
        if segment.flags.syn() {
            passed.awaited = None;
        } else if passed.end.is_some_and(|known| !is_ahead(end, known)) {
            return None;
        }
        passed.end = Some(end);
        let (number, acknowledged_ns, early) =
            passed.awaited.filter(|(number, ..)| !is_ahead(*number, end))?;
        passed.awaited = None;
        let by_ns = frame.at_ns.saturating_sub(acknowledged_ns);
        let told_ns = &mut self.told_ns[early][source];
        // A byte that another source never had would be awaited for ever: only data that is just new counts.
        let is_of_this = number.wrapping_sub(segment.sequence) <= length;
        if !is_of_this || by_ns > MAX_SKEW_NS || by_ns <= *told_ns * 2 {
            return None;
        }
        *told_ns = by_ns;
        Some(Skew { early, late: source, by_ns, ends: [flow.source, flow.destination] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_explain::capture::LinkType;

    fn segment(from: u16, sequence: u32, acknowledgment: u32, payload_bytes: u16) -> Vec<u8> {
        let mut bytes = vec![0x45, 0];
        bytes.extend((40 + payload_bytes).to_be_bytes());
        bytes.extend([0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, from as u8, 10, 0, 0, 3 - from as u8]);
        bytes.extend(from.to_be_bytes().iter().chain(&(3 - from).to_be_bytes()));
        bytes.extend(sequence.to_be_bytes().iter().chain(&acknowledgment.to_be_bytes()));
        bytes.extend([0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        bytes.resize(40 + usize::from(payload_bytes), 0);
        bytes
    }
    fn take(clocks: &mut Clocks, at_ns: u64, source: usize, bytes: &[u8]) -> Option<Skew> {
        let (number, interface, link, is_inbound, comment) = (1, 0, LinkType::Ip, None, None);
        let original_bytes = bytes.len() as u32;
        let frame = Frame { number, at_ns, interface, link, bytes, original_bytes, is_inbound, comment };
        clocks.take(&frame, source)
    }

    #[test]
    fn an_acknowledgment_before_its_data_tells_of_the_clocks() {
        let (data, more) = (segment(1, 1, 1, 100), segment(1, 101, 1, 100));
        let acknowledgment = segment(2, 1, 201, 0);
        let mut clocks = Clocks::default();
        // In good order, at both ends.
        assert_eq!(take(&mut clocks, 1, 0, &data), None);
        assert_eq!(take(&mut clocks, 2, 1, &data), None);
        assert_eq!(take(&mut clocks, 3, 0, &more), None);
        assert_eq!(take(&mut clocks, 4, 1, &more), None);
        assert_eq!(take(&mut clocks, 5, 1, &acknowledgment), None);
        assert_eq!(take(&mut clocks, 6, 0, &acknowledgment), None);
        // The clock of the receiver is behind.
        let (third, acknowledgment) = (segment(1, 201, 1, 100), segment(2, 1, 301, 0));
        assert_eq!(take(&mut clocks, 10, 1, &third), None);
        assert_eq!(take(&mut clocks, 10, 1, &acknowledgment), None);
        let skew = take(&mut clocks, 17, 0, &third).unwrap();
        assert_eq!((skew.early, skew.late, skew.by_ns), (1, 0, 7));
        // The same again is known.
        assert_eq!(take(&mut clocks, 20, 1, &segment(2, 1, 401, 0)), None);
        assert_eq!(take(&mut clocks, 27, 0, &segment(1, 301, 1, 100)), None);
    }
}
