//! The GRO candidate: consecutive segments of a stream differ only in sequence number, checksum and data. Comparing
//! header words shows this without parsing the headers again.

use super::{PlainPacket, covered_is_valid};
use crate::tcp::PlainHeader;
use crate::{ethernet, ipv4, ipv6, tcp};
use inhost_base::Sequence;

/// Words that hold the longest headers, from the beginning of the frame.
const WORDS: usize = (ethernet::LENGTH + ipv6::LENGTH + tcp::LENGTH + tcp::TIMESTAMPS_BYTES).div_ceil(8);
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
    fn of(ip: &[u8; ipv4::LENGTH]) -> IpSum {
        IpSum { identification: [ip[4], ip[5]], checksum: [ip[10], ip[11]] }
    }
}

impl NextSegment {
    /// The candidate after `packet`, which is in `frame` from `network` on; `None` if the frame is too short to
    /// compare.
    pub fn new(frame: &[u8], network: usize, packet: &PlainPacket<'_>) -> Option<NextSegment> {
        let front = frame.first_chunk::<FRONT_BYTES>()?;
        let transport = network + packet.ip.ip_bytes;
        let payload = network + packet.header_bytes;
        let mut same = [0u8; FRONT_BYTES];
        same.get_mut(..payload)?.fill(0xff);
        let mut may_differ =
            |at: usize, bytes: usize| same.get_mut(at..at + bytes).map(|place| place.fill(0));
        // The sequence number and the checksum.
        may_differ(transport + 4, 4)?;
        may_differ(transport + 16, 2)?;
        let ip_sum = if packet.ip.ip_bytes == ipv4::LENGTH {
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
            addresses: transport - packet.ip.addresses.len(),
            transport,
            payload,
            end: network + packet.ip.total_bytes,
            header: packet.header,
        })
    }
    /// Whether `frame` is the next segment. The TCP checksum is not checked.
    #[inline(always)]
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
    #[inline(always)]
    fn ip_is_right(&self, frame: &[u8], before: IpSum) -> bool {
        let Some(ip) = frame.get(self.network..).and_then(<[u8]>::first_chunk::<{ ipv4::LENGTH }>) else {
            return false;
        };
        IpSum::of(ip) == before || ipv4::sum_of(ip).is_valid()
    }
    /// Whether its checksum is right.
    // spec: RFC9293 MUST-3
    #[inline]
    pub fn checksum_ok(&self, frame: &[u8]) -> bool {
        covered_is_valid(frame, self.addresses, self.transport, self.end)
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
