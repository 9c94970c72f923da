//! The GRO candidate: consecutive segments of a stream differ only in sequence number, checksum and data. Comparing
//! header words shows this without parsing the headers again.

use super::{FastSegment, IPV4_BYTES};
use crate::checksum::Sum;
use crate::tcp::PlainHeader;
use crate::{ethernet, ipv6, protocol, tcp};
use inhost_base::Sequence;

/// Words that hold the longest headers, from the beginning of the frame.
const WORDS: usize = (ethernet::LENGTH + ipv6::LENGTH + tcp::LENGTH + super::TIMESTAMPS_BYTES).div_ceil(8);
const FRONT_BYTES: usize = WORDS * 8;

/// The header words that the next segment of a stream must have.
#[derive(Clone, Copy, Debug)]
pub struct NextSegment {
    /// The front of the previous segment, and a mask of the bits that must be equal.
    words: [u64; WORDS],
    masks: [u64; WORDS],
    /// IPv4's identification and checksum in the segment before.
    ip_sum: Option<IpSum>,
    /// Where the IP header begins in the frame.
    network: usize,
    /// Where the addresses begin, which TCP's checksum covers, too.
    addresses: usize,
    /// Where the TCP header begins.
    transport: usize,
    /// Where the payload begins, and where it ends.
    payload: usize,
    end: usize,
    /// Of the segment before.
    header: PlainHeader,
}

/// The fields of an IPv4 header that may change; the header checksum shows whether they are right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct IpSum {
    identification: [u8; 2],
    checksum: [u8; 2],
}

impl IpSum {
    #[inline]
    fn of(ip: &[u8; IPV4_BYTES]) -> IpSum {
        IpSum { identification: [ip[4], ip[5]], checksum: [ip[10], ip[11]] }
    }
}

impl NextSegment {
    /// The candidate after `segment`, which lies in `frame` from `network` on; `None` if the frame is too short to compare.
    pub fn new(frame: &[u8], network: usize, segment: &FastSegment<'_>) -> Option<NextSegment> {
        let front = frame.first_chunk::<FRONT_BYTES>()?;
        let transport = network + segment.ip_bytes;
        let payload = network + segment.header_bytes;
        let mut same = [0u8; FRONT_BYTES];
        same.get_mut(..payload)?.fill(0xff);
        let mut may_differ =
            |at: usize, bytes: usize| same.get_mut(at..at + bytes).map(|place| place.fill(0));
        // The sequence number and the checksum.
        may_differ(transport + 4, 4)?;
        may_differ(transport + 16, 2)?;
        let ip_sum = if segment.ip_bytes == IPV4_BYTES {
            may_differ(network + 4, 2)?;
            may_differ(network + 10, 2)?;
            Some(IpSum::of(frame.get(network..)?.first_chunk()?))
        } else {
            None
        };
        Some(NextSegment {
            words: words_of(front),
            masks: words_of(&same),
            ip_sum,
            network,
            addresses: transport - segment.addresses.len(),
            transport,
            payload,
            end: network + segment.total_bytes,
            header: segment.header,
        })
    }
    /// Whether `frame` is the next segment. The TCP checksum is not checked.
    #[inline]
    pub fn is_next(&self, frame: &[u8]) -> bool {
        let (Some(front), true) = (frame.first_chunk::<FRONT_BYTES>(), self.end <= frame.len()) else {
            return false;
        };
        let words = front.as_chunks::<8>().0.iter().zip(&self.words).zip(&self.masks);
        let differs =
            words.fold(0, |all, ((word, same), mask)| all | ((u64::from_ne_bytes(*word) ^ same) & mask));
        let sequence = frame.get(self.transport + 4..).and_then(<[u8]>::first_chunk::<4>);
        differs == 0
            && sequence.is_some_and(|bytes| u32::from_be_bytes(*bytes) == self.next_sequence().0)
            && self.ip_sum.is_none_or(|before| self.ip_is_right(frame, before))
    }
    #[inline]
    fn ip_is_right(&self, frame: &[u8], before: IpSum) -> bool {
        let Some(ip) = frame.get(self.network..).and_then(<[u8]>::first_chunk::<IPV4_BYTES>) else {
            return false;
        };
        IpSum::of(ip) == before || super::sum_v4(ip).is_valid()
    }
    /// Whether its checksum is right.
    // spec: RFC9293 MUST-3
    #[inline]
    pub fn checksum_ok(&self, frame: &[u8]) -> bool {
        let Some(covered) = frame.get(self.addresses..self.end) else { return false };
        let segment_bytes = (self.end - self.transport) as u32;
        Sum::of(covered).add_u32(segment_bytes + u32::from(protocol::TCP)).is_valid()
    }
    /// Where its payload begins in the frame, and where it ends.
    #[inline]
    pub fn payload(&self) -> (usize, usize) {
        (self.payload, self.end)
    }
    /// Moves on to the segment after the one that was taken.
    #[inline]
    pub fn advance(&mut self) {
        self.header.sequence = self.next_sequence();
    }
    /// The header of the segment that was taken last.
    #[inline]
    pub fn header(&self) -> &PlainHeader {
        &self.header
    }
    #[inline]
    fn next_sequence(&self) -> Sequence {
        self.header.sequence + (self.end - self.payload) as u32
    }
}

fn words_of(bytes: &[u8; FRONT_BYTES]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    words
}
