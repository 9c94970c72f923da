//! A frame lent to a device for one call, scatter-gather payloads, and what a device offers.

use crate::{Checksum, Packet, Shareable};

/// Most slices of one payload.
const PIECES: usize = 4;

/// A borrowed scatter-gather payload of up to four slices.
///
/// ```
/// use inhost_buf::Slices;
/// let mut payload = Slices::one(b"hello, ");
/// assert!(payload.push(b"world"));
/// assert_eq!(payload.len(), 12);
/// let part: Vec<u8> = payload.part(5, 4).iter().flatten().copied().collect();
/// assert_eq!(part, b", wo");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Slices<'a> {
    pieces: [&'a [u8]; PIECES],
    count: usize,
    /// The checksum of all bytes, where it is known.
    sum: Option<u16>,
}

impl<'a> Slices<'a> {
    /// Most slices.
    pub const MOST: usize = PIECES;
    /// No payload.
    pub const EMPTY: Slices<'static> = Slices { pieces: [&[]; PIECES], count: 0, sum: None };

    /// A contiguous payload.
    pub fn one(piece: &'a [u8]) -> Self {
        Slices::one_of(piece, None)
    }
    /// A contiguous payload with its [`crate::sum`], where it is known.
    #[inline]
    pub(crate) fn one_of(piece: &'a [u8], sum: Option<u16>) -> Self {
        let mut pieces: [&'a [u8]; PIECES] = [&[]; PIECES];
        pieces[0] = piece;
        Slices { pieces, count: usize::from(!piece.is_empty()), sum }
    }
    /// Appends a slice; false when there are [`Slices::MOST`] already. An empty slice is ignored.
    #[inline]
    pub fn push(&mut self, piece: &'a [u8]) -> bool {
        if piece.is_empty() {
            return true;
        }
        match self.pieces.get_mut(self.count) {
            Some(place) => {
                *place = piece;
                self.count += 1;
                self.sum = None;
                true
            }
            None => false,
        }
    }
    /// The same payload with its [`crate::sum`], where it is known.
    #[must_use]
    #[inline]
    pub fn with_sum(self, sum: Option<u16>) -> Self {
        Slices { sum, ..self }
    }
    /// The [`crate::sum`] of all bytes, where it is known.
    #[inline]
    pub fn known_sum(&self) -> Option<u16> {
        self.sum
    }
    /// Number of slices, none of which is empty.
    fn count(&self) -> usize {
        self.count
    }
    /// The slices in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.pieces[..self.count].iter().copied()
    }
    /// The whole payload, when it is contiguous.
    #[inline]
    pub fn as_one(&self) -> Option<&'a [u8]> {
        (self.count == 1).then_some(self.pieces[0])
    }
    /// Up to `length` bytes from `offset` on.
    #[inline]
    pub fn part(&self, offset: usize, length: usize) -> Slices<'a> {
        if let Some(piece) = self.pieces[0].get(offset..offset.saturating_add(length)) {
            return Slices::one_of(piece, None);
        }
        self.part_of_many(offset, length)
    }
    fn part_of_many(&self, offset: usize, length: usize) -> Slices<'a> {
        let mut part: Slices<'a> = Slices { pieces: [&[]; PIECES], count: 0, sum: None };
        let (mut skip, mut left) = (offset, length);
        for piece in self.iter() {
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            let piece = piece.get(skip..piece.len().min(skip.saturating_add(left))).unwrap_or(&[]);
            skip = 0;
            left -= piece.len();
            part.push(piece);
            if left == 0 {
                break;
            }
        }
        part
    }
    /// Length of the payload in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.iter().map(<[u8]>::len).sum()
    }
    /// Whether there is no payload.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The work on a frame that is left to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Offload {
    /// Nothing: the frame is complete.
    #[default]
    None,
    /// The transport checksum: the field holds the folded pseudo-header sum.
    Checksum {
        /// Where the transport header starts in the frame.
        transport_offset: u16,
        /// Offset of the checksum field from there.
        checksum_offset: u16,
    },
    /// GSO: the device splits the frame into segments of `segment_bytes` payload and computes their checksums. The length
    /// fields, and the pseudo-header sum in the checksum field, are those of one packet with the whole payload.
    Segment {
        /// The protocol of the frame.
        of: GsoType,
        /// GSO size: payload bytes of each segment but the last.
        segment_bytes: u16,
        /// Where the transport header starts in the frame.
        transport_offset: u16,
    },
}

/// The protocol of a GSO frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GsoType {
    /// One TCP segment in an IPv4 packet.
    TcpV4,
    /// One TCP segment in an IPv6 packet.
    TcpV6,
    /// UDP datagrams of one flow, behind one header.
    Udp,
}

/// The offloads of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offers {
    /// [`Offload::Checksum`].
    pub checksum: bool,
    /// [`Offload::Segment`] of [`GsoType::TcpV4`].
    pub tcp_v4: bool,
    /// [`Offload::Segment`] of [`GsoType::TcpV6`].
    pub tcp_v6: bool,
    /// [`Offload::Segment`] of [`GsoType::Udp`].
    pub udp: bool,
    /// Payloads by reference: the frame goes to another host of this program, and long payloads lie in memory that [may be
    /// shared](Frame::share).
    pub sharing: bool,
}

impl Offers {
    /// No offloads: every frame must be complete.
    pub const NONE: Offers =
        Offers { checksum: false, tcp_v4: false, tcp_v6: false, udp: false, sharing: false };
    /// Every offload of checksums and segmentation.
    pub const ALL: Offers = Offers { checksum: true, tcp_v4: true, tcp_v6: true, udp: true, sharing: false };

    /// Whether the device segments frames of this protocol.
    pub const fn cuts(self, large: GsoType) -> bool {
        match large {
            GsoType::TcpV4 => self.tcp_v4,
            GsoType::TcpV6 => self.tcp_v6,
            GsoType::Udp => self.udp,
        }
    }
}

/// A borrowed frame: contiguous link, network and transport headers, followed by the payload.
///
/// ```
/// use inhost_buf::{Frame, Offload, Slices};
/// let frame = Frame { header: b"header ", payload: Slices::one(b"payload"), offload: Offload::None };
/// let mut into = [0; 64];
/// let length = frame.write_to(&mut into).unwrap();
/// assert_eq!(&into[..length], b"header payload");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// All headers.
    pub header: &'a [u8],
    /// The payload after the headers.
    pub payload: Slices<'a>,
    /// The work left to the device.
    pub offload: Offload,
}

impl Frame<'_> {
    /// Length of the whole frame in bytes.
    pub fn len(&self) -> usize {
        self.header.len() + self.payload.len()
    }
    /// Whether the frame has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The checksum state for a receiver within this program, where no checksum is computed.
    pub fn verified_checksum(&self) -> Checksum {
        match self.offload {
            Offload::Checksum { .. } => Checksum::Partial,
            Offload::None | Offload::Segment { .. } => Checksum::Verified,
        }
    }
    /// Passes the frame to a receiver within this program. The headers are copied into `head`, which must be empty; the
    /// payload follows in [`Packet::pieces`] packets that share its memory. Each packet goes to `to`, in order. Returns
    /// `head` unchanged when the headers do not fit.
    pub fn share(
        &self,
        payload: Shareable<'_>,
        mut head: Packet,
        mut to: impl FnMut(Packet),
    ) -> Result<(), Packet> {
        if head.tailroom() < self.header.len() {
            return Err(head);
        }
        head.append(self.header);
        head.pieces = self.payload.count() as u8;
        to(head);
        payload.share(self.payload.len(), to);
        Ok(())
    }
    /// Copies the frame into `into`, and returns its length; `None` when it does not fit.
    #[inline]
    pub fn write_to(&self, into: &mut [u8]) -> Option<usize> {
        let mut at = self.header.len();
        into.get_mut(..at)?.copy_from_slice(self.header);
        for piece in self.payload.iter() {
            let to = into.get_mut(at..at + piece.len())?;
            crate::copy(to, piece);
            at += piece.len();
        }
        Some(at)
    }
}

/// The error of a device without room. It becomes writable when it has room again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// A sink for frames. A device that sends later copies the frame before it returns.
///
/// ```
/// use inhost_buf::{Device, Frame, Full, Offload, Slices};
///
/// /// A device that keeps the last frame.
/// struct Last(Vec<u8>);
/// impl Device for Last {
///     fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
///         self.0 = vec![0; frame.len()];
///         frame.write_to(&mut self.0);
///         Ok(())
///     }
/// }
///
/// let mut device = Last(Vec::new());
/// let frame = Frame { header: b"to ", payload: Slices::one(b"you"), offload: Offload::None };
/// device.transmit(&frame).unwrap();
/// assert_eq!(device.0, b"to you");
/// ```
pub trait Device {
    /// Takes the whole frame, or returns [`Full`] and takes nothing.
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full>;
    /// [`Device::transmit`] for a frame whose payload [may be shared](Frame::share). Called for devices that [offer
    /// it](Offers::sharing).
    fn transmit_shared(&mut self, frame: &Frame<'_>, payload: Shareable<'_>) -> Result<(), Full> {
        let _ = payload;
        self.transmit(frame)
    }
    /// The offloads of the device; none by default.
    fn offers(&self) -> Offers {
        Offers::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_what_the_flat_bytes_have_there() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut slices = Slices::EMPTY;
        for piece in [&bytes[..7], &bytes[7..60], &bytes[60..61], &bytes[61..]] {
            assert!(slices.push(piece));
        }
        for offset in 0..110 {
            for length in [0, 1, 6, 7, 8, 54, 100, 200] {
                let part: Vec<u8> = slices.part(offset, length).iter().flatten().copied().collect();
                let end = bytes.len().min(offset + length);
                assert_eq!(part, bytes.get(offset..end).unwrap_or(&[]), "{length} bytes from {offset}");
            }
        }
    }
}
