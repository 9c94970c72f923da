//! What is lent to a device for the length of one call.

use crate::{Checksum, Packet, Shareable};

/// Most pieces that one frame's payload may lie in.
const PIECES: usize = 4;

/// A payload in up to four pieces that lie where their owner keeps them.
#[derive(Clone, Copy, Debug)]
pub struct Slices<'a> {
    pieces: [&'a [u8]; PIECES],
    count: usize,
    /// The sum of all bytes, where it is known.
    sum: Option<u16>,
}

impl<'a> Slices<'a> {
    /// Most pieces.
    pub const MOST: usize = PIECES;
    /// No payload.
    pub const EMPTY: Slices<'static> = Slices { pieces: [&[]; PIECES], count: 0, sum: None };

    /// A payload in one piece.
    pub fn one(piece: &'a [u8]) -> Self {
        Slices::one_of(piece, None)
    }
    /// The same, of which the [`crate::sum`] is `sum` where it is known.
    #[inline]
    pub(crate) fn one_of(piece: &'a [u8], sum: Option<u16>) -> Self {
        let mut pieces: [&'a [u8]; PIECES] = [&[]; PIECES];
        pieces[0] = piece;
        Slices { pieces, count: usize::from(!piece.is_empty()), sum }
    }
    /// Adds a piece at the end; false when there is no place for it. Empty pieces are left out.
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
    /// The same bytes, of which the [`crate::sum`] is known.
    #[must_use]
    #[inline]
    pub fn with_sum(self, sum: Option<u16>) -> Self {
        Slices { sum, ..self }
    }
    /// The [`crate::sum`] of all bytes, where it was known beforehand.
    #[inline]
    pub fn known_sum(&self) -> Option<u16> {
        self.sum
    }
    /// Pieces, none of which is empty.
    fn count(&self) -> usize {
        self.count
    }
    /// The pieces in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.pieces[..self.count].iter().copied()
    }
    /// All of it, where it lies in one piece.
    #[inline]
    pub fn as_one(&self) -> Option<&'a [u8]> {
        (self.count == 1).then_some(self.pieces[0])
    }
    /// `length` bytes from `offset` on, or what there is of them.
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
    /// Bytes in all pieces.
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

/// What the device is asked to finish.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Offload {
    /// Nothing: the frame is complete.
    #[default]
    None,
    /// The transport checksum: the field holds the folded pseudo-header sum.
    Checksum {
        /// Where the transport header starts in the frame.
        transport_offset: u16,
        /// Where the checksum field lies after that.
        checksum_offset: u16,
    },
    /// The frame is to be cut into segments of `segment_bytes` payload each, with checksums. As it is lent, the length
    /// fields and the pseudo-header sum in the checksum field are those of one packet that carries everything.
    Segment {
        /// What is cut.
        of: Large,
        /// Payload bytes of each segment but the last.
        segment_bytes: u16,
        /// Where the transport header starts in the frame.
        transport_offset: u16,
    },
}

/// What a large frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Large {
    /// One TCP segment in an IPv4 packet.
    TcpV4,
    /// One TCP segment in an IPv6 packet.
    TcpV6,
    /// UDP datagrams of one flow, behind one header.
    Udp,
}

/// What a device finishes for its host, so that the host need not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offers {
    /// [`Offload::Checksum`].
    pub checksum: bool,
    /// [`Offload::Segment`] of [`Large::TcpV4`].
    pub tcp_v4: bool,
    /// [`Offload::Segment`] of [`Large::TcpV6`].
    pub tcp_v6: bool,
    /// [`Offload::Segment`] of [`Large::Udp`].
    pub udp: bool,
    /// To keep payloads by reference: the frame goes to another host of this program, and long payloads come in memory
    /// that [may be shared](Frame::share).
    pub sharing: bool,
}

impl Offers {
    /// Nothing: every frame is to be complete.
    pub const NONE: Offers =
        Offers { checksum: false, tcp_v4: false, tcp_v6: false, udp: false, sharing: false };
    /// All that devices can do to frames.
    pub const ALL: Offers = Offers { checksum: true, tcp_v4: true, tcp_v6: true, udp: true, sharing: false };

    /// Whether large frames of this kind are cut by the device.
    pub const fn cuts(self, large: Large) -> bool {
        match large {
            Large::TcpV4 => self.tcp_v4,
            Large::TcpV6 => self.tcp_v6,
            Large::Udp => self.udp,
        }
    }
}

/// One frame, lent: `header` (link, network and transport headers in one piece) followed by `payload`.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// All headers.
    pub header: &'a [u8],
    /// What follows them.
    pub payload: Slices<'a>,
    /// What is left for the device to do.
    pub offload: Offload,
}

impl Frame<'_> {
    /// Length of the whole frame in bytes.
    pub fn len(&self) -> usize {
        self.header.len() + self.payload.len()
    }
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// What a receiver that trusts the way of this frame knows of its checksum, which nobody makes.
    pub fn vouched_checksum(&self) -> Checksum {
        match self.offload {
            Offload::Checksum { .. } => Checksum::Partial,
            Offload::None | Offload::Segment { .. } => Checksum::Verified,
        }
    }
    /// Hands the frame on within this program: its headers are copied into `head`, which is empty, and its payload, which is
    /// `payload`, follows in packets that share the memory where it lies, [`Packet::pieces`] of them; all go to `to`, one
    /// after another. Gives `head` back, as it was, when they do not fit.
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
    /// Copies the frame into `into` and gives its length, or `None` when it does not fit.
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

/// The device has no room now; it says when it has by becoming writable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// Where frames go. A device that finishes later copies what it needs before it returns.
pub trait Device {
    /// Takes one frame whole, or says [`Full`] and takes nothing of it.
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full>;
    /// As [`Device::transmit`], for a frame whose payload lies in memory that [may be shared](Frame::share). Asked of
    /// devices that [offer it](Offers::sharing).
    fn transmit_shared(&mut self, frame: &Frame<'_>, payload: Shareable<'_>) -> Result<(), Full> {
        let _ = payload;
        self.transmit(frame)
    }
    /// What frames may leave to the device; nothing unless it says so.
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
