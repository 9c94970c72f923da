//! Datagrams of streams over UDP: their header, and what a receiver counts.

/// What a client sends to open a stream, since iperf 3.2.
pub const DATAGRAM_HELLO: [u8; 4] = 0x3637_3839_u32.to_le_bytes();
/// What a server answers.
pub const DATAGRAM_READY: [u8; 4] = 0x3938_3736_u32.to_le_bytes();
/// The same, before.
const HELLO_BEFORE: [u8; 4] = 123_456_789_u32.to_le_bytes();
const READY_BEFORE: [u8; 4] = 987_654_321_u32.to_le_bytes();

/// The words of today have the same bytes from every machine; those of before have the order of the sender's.
fn is_either(datagram: &[u8], today: [u8; 4], before: [u8; 4]) -> bool {
    datagram == today || datagram == before || datagram.iter().eq(before.iter().rev())
}

/// Whether it opens a stream.
pub fn is_hello(datagram: &[u8]) -> bool {
    is_either(datagram, DATAGRAM_HELLO, HELLO_BEFORE)
}

/// Whether it answers [`DATAGRAM_HELLO`].
pub fn is_ready(datagram: &[u8]) -> bool {
    is_either(datagram, DATAGRAM_READY, READY_BEFORE)
}

/// The header of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// When it was sent, by the sender's clock, in nanoseconds; microseconds go over the wire.
    pub sent_ns: u64,
    /// Its number, from 1.
    pub number: u64,
}

impl Header {
    /// Puts it in front of a datagram of at least 16 bytes.
    pub fn put(&self, datagram: &mut [u8], is_64_bit: bool) {
        let seconds = (self.sent_ns / 1_000_000_000) as u32;
        let micros = (self.sent_ns % 1_000_000_000 / 1000) as u32;
        let mut header = [0; 16];
        header[..4].copy_from_slice(&seconds.to_be_bytes());
        header[4..8].copy_from_slice(&micros.to_be_bytes());
        let length = match is_64_bit {
            true => {
                header[8..].copy_from_slice(&self.number.to_be_bytes());
                16
            }
            false => {
                header[8..12].copy_from_slice(&(self.number as u32).to_be_bytes());
                12
            }
        };
        if let Some(place) = datagram.get_mut(..length) {
            place.copy_from_slice(&header[..length]);
        }
    }
    /// From the front of a datagram; `None` where it is too short.
    pub fn read(datagram: &[u8], is_64_bit: bool) -> Option<Header> {
        let word = |at: usize| datagram.get(at..)?.first_chunk().copied().map(u32::from_be_bytes);
        let (seconds, micros) = (word(0)?, word(4)?);
        let number = match is_64_bit {
            true => u64::from_be_bytes(*datagram.get(8..)?.first_chunk()?),
            false => word(8)?.into(),
        };
        Some(Header { sent_ns: u64::from(seconds) * 1_000_000_000 + u64::from(micros) * 1000, number })
    }
}

/// What a receiver counts of a stream. A datagram that comes late takes one loss back, as in iperf3.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Arrivals {
    /// Datagrams that came.
    pub received: u64,
    /// The highest number that came.
    pub highest: u64,
    /// Numbers that were skipped and did not come later.
    pub lost: u64,
    /// Datagrams that came after a later one.
    pub out_of_order: u64,
    /// Jitter in seconds (RFC 3550 §6.4.1).
    pub jitter_s: f64,
    transit_s: Option<f64>,
}

impl Arrivals {
    /// Takes a datagram that came at `now_ns` of the receiver's clock.
    pub fn take(&mut self, header: Header, now_ns: u64) {
        self.received += 1;
        match header.number > self.highest {
            true => {
                self.lost = self.lost.saturating_add(header.number - self.highest - 1);
                self.highest = header.number;
            }
            false => {
                self.out_of_order += 1;
                self.lost = self.lost.saturating_sub(1);
            }
        }
        // The clocks differ by a constant, which falls out of the difference.
        let transit = (now_ns as f64 - header.sent_ns as f64) / 1e9;
        let before = self.transit_s.replace(transit).unwrap_or(transit);
        self.jitter_s += ((transit - before).abs() - self.jitter_s) / 16.0;
    }
}
