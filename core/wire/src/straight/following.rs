//! The next segment of a run: one of a stream's segments differs from the one before in its sequence number, its
//! checksum and its data, and in nothing else. That is seen by comparing words, without reading the headers again.

use super::{IPV4_BYTES, Straight};
use crate::checksum::Sum;
use crate::tcp::PlainHeader;
use crate::{ethernet, ipv6, protocol, tcp};
use inhost_base::Sequence;

/// Words that hold the longest headers, from the beginning of the frame.
const WORDS: usize = (ethernet::LENGTH + ipv6::LENGTH + tcp::LENGTH + super::TIMESTAMPS_BYTES).div_ceil(8);
const FRONT_BYTES: usize = WORDS * 8;

/// What the next segment of a run looks like.
#[derive(Clone, Copy, Debug)]
pub struct Following {
    /// The front of the segment before, and ones where the next has to be the same.
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

/// What may change in an IPv4 header: the sum of all shows whether it did so rightly.
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

impl Following {
    /// What follows `straight`, which lies in `frame` from `network` on; `None` where it is too short for a look.
    pub fn new(frame: &[u8], network: usize, straight: &Straight<'_>) -> Option<Following> {
        let front = frame.first_chunk::<FRONT_BYTES>()?;
        let transport = network + straight.ip_bytes;
        let payload = network + straight.header_bytes;
        let mut same = [0u8; FRONT_BYTES];
        same.get_mut(..payload)?.fill(0xff);
        let mut may_differ =
            |at: usize, bytes: usize| same.get_mut(at..at + bytes).map(|place| place.fill(0));
        // The sequence number and the checksum.
        may_differ(transport + 4, 4)?;
        may_differ(transport + 16, 2)?;
        let ip_sum = if straight.ip_bytes == IPV4_BYTES {
            may_differ(network + 4, 2)?;
            may_differ(network + 10, 2)?;
            Some(IpSum::of(frame.get(network..)?.first_chunk()?))
        } else {
            None
        };
        Some(Following {
            words: words_of(front),
            masks: words_of(&same),
            ip_sum,
            network,
            addresses: transport - straight.addresses.len(),
            transport,
            payload,
            end: network + straight.total_bytes,
            header: straight.header,
        })
    }
    /// Whether `frame` is the next segment, TCP's checksum apart.
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
    /// It was taken: the next one follows it.
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
