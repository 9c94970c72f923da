//! A device during a pass, and the results of a pass and of a socket's turn.

use alloc::vec::Vec;
use inhost_base::IpAddr;
use inhost_buf::{Device, Frame, Full, Offers, Shareable};

/// The result of one [`crate::Stack::transmit`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Transmitted {
    /// Frames that the device accepted.
    pub frames: usize,
    /// Whether more could be sent: the budget was spent, or the device was full.
    pub more: bool,
    /// Whether the device was full.
    pub device_full: bool,
}

/// The result of a socket's turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// The socket has nothing more to send.
    Done,
    /// The socket has more to send.
    More,
    /// The device is full.
    Full,
    /// This neighbour, to which its next packet goes first, is being asked for.
    Pending(IpAddr),
    /// Its neighbour does not answer, or its route is gone.
    Unreachable,
}

/// A device that counts what it accepts.
pub(crate) struct Counting<'a> {
    device: &'a mut dyn Device,
    frames: usize,
    bytes: u64,
    full: bool,
    offers: Offers,
    /// Lengths of the accepted frames, when the sink wants them.
    lengths: Option<Vec<u32>>,
}

impl Device for Counting<'_> {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let done = self.device.transmit(frame);
        self.count(frame, done)
    }
    fn transmit_shared(&mut self, frame: &Frame<'_>, payload: Shareable<'_>) -> Result<(), Full> {
        let done = self.device.transmit_shared(frame, payload);
        self.count(frame, done)
    }
    #[inline]
    fn offers(&self) -> Offers {
        self.offers
    }
}

impl<'a> Counting<'a> {
    /// Counts what `device` accepts; `lengths` takes the lengths of the frames.
    pub(crate) fn new(device: &'a mut dyn Device, lengths: Option<Vec<u32>>) -> Counting<'a> {
        let offers = device.offers();
        Counting { device, frames: 0, bytes: 0, full: false, offers, lengths }
    }
    /// Frames accepted.
    #[inline]
    pub(crate) fn frames(&self) -> usize {
        self.frames
    }
    /// Bytes accepted.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
    /// The lengths of the frames accepted, if they are wanted.
    pub(crate) fn into_lengths(self) -> Option<Vec<u32>> {
        self.lengths
    }
    /// Whether the device was full.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }
    #[inline]
    fn count(&mut self, frame: &Frame<'_>, done: Result<(), Full>) -> Result<(), Full> {
        match done {
            Ok(()) => {
                self.frames += 1;
                let length = frame.len();
                self.bytes += length as u64;
                if let Some(lengths) = &mut self.lengths {
                    lengths.push(length as u32);
                }
            }
            Err(Full) => self.full = true,
        }
        done
    }
}
