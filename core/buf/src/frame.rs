//! A frame lent to a device for one call, and what a device offers.

use crate::{Checksum, Packet, Shareable, Slices};

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
        head.set_pieces(self.payload.count() as u8);
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
