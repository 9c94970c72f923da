//! What is lent to a device for the length of one call.

/// Most pieces that one frame's payload may lie in.
const PIECES: usize = 8;

/// A payload in up to eight pieces that lie where their owner keeps them.
#[derive(Clone, Copy, Debug)]
pub struct Slices<'a> {
    pieces: [&'a [u8]; PIECES],
    count: usize,
}

impl<'a> Slices<'a> {
    /// No payload.
    pub const EMPTY: Slices<'static> = Slices { pieces: [&[]; PIECES], count: 0 };

    /// A payload in one piece.
    pub fn one(piece: &'a [u8]) -> Self {
        let mut slices: Slices<'a> = Slices { pieces: [&[]; PIECES], count: 0 };
        slices.push(piece);
        slices
    }
    /// Adds a piece at the end; false when there is no place for it. Empty pieces are left out.
    pub fn push(&mut self, piece: &'a [u8]) -> bool {
        if piece.is_empty() {
            return true;
        }
        match self.pieces.get_mut(self.count) {
            Some(place) => {
                *place = piece;
                self.count += 1;
                true
            }
            None => false,
        }
    }
    /// The pieces in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.pieces[..self.count].iter().copied()
    }
    /// Bytes in all pieces.
    pub fn len(&self) -> usize {
        self.iter().map(<[u8]>::len).sum()
    }
    /// Whether there is no payload.
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
    /// The frame is to be cut into segments of `segment_bytes` payload each, with checksums.
    Segment {
        /// Payload bytes of each segment but the last.
        segment_bytes: u16,
        /// Where the transport header starts in the frame.
        transport_offset: u16,
    },
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
    /// Copies the frame into `into` and gives its length, or `None` when it does not fit.
    pub fn write_to(&self, into: &mut [u8]) -> Option<usize> {
        let mut at = 0;
        for piece in core::iter::once(self.header).chain(self.payload.iter()) {
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
}
