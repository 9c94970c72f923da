//! The interface of a link driver.

use crate::statistics::Statistics;
use inhost_base::{Cidr, HardwareAddress, Instant, IpAddr};
use inhost_buf::{Batch, Device, Pool};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// The link header of a driver's frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameFormat {
    /// An Ethernet header; the address is our end's.
    Ethernet(HardwareAddress),
    /// The IP header: TUN, serial lines, the `user` link.
    Ip,
}

impl FrameFormat {
    /// Bytes that a frame has before its IP header.
    pub const fn header_bytes(self) -> usize {
        match self {
            FrameFormat::Ethernet(_) => 14,
            FrameFormat::Ip => 0,
        }
    }
}

/// An address that the other end of a link has given us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressOffer {
    /// Ours, with the length of the network's prefix.
    pub address: Cidr,
    /// The other end's, which is our gateway.
    pub gateway: IpAddr,
}

/// A link as its host sees it.
///
/// One round of a host calls, in this order: [`advance`](Driver::advance) with the time; [`receive`](Driver::receive)
/// until it gives less than a full batch or the round's budget is spent; then, after the host has worked,
/// [`transmit`](Device::transmit) until nothing is left or the driver says [`Full`](inhost_buf::Full). Before it
/// waits it asks [`has_received`](Driver::has_received) (then it must not wait), [`deadline`](Driver::deadline),
/// and waits until the [`descriptor`](Driver::descriptor) is readable, or writable where
/// [`wants_write`](Driver::wants_write) says so. Any call may be made at any time: a spurious one does nothing.
///
/// After `Full`, try again in the next round in which [`can_transmit`](Driver::can_transmit) holds.
pub trait Driver: Device + Send {
    /// Moves received frames into `batch` while it has room, in packets from `pool`. Returns their number. Frames for
    /// which the pool has no memory are discarded and counted. Frames may be left, and the descriptor then stays
    /// readable. An error means that the link is down until [`reopen`](Driver::reopen) succeeds; frames sent meanwhile
    /// are lost.
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<usize>;
    /// The descriptor to wait for; `None` for an in-process link, which is polled in every round.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
    /// Whether the driver waits for its descriptor to become writable.
    fn wants_write(&self) -> bool;
    /// Whether frames are held that the descriptor does not tell of.
    fn has_received(&self) -> bool {
        false
    }
    /// Whether a frame would be taken now.
    fn can_transmit(&self) -> bool {
        true
    }
    /// When the driver wants [`advance`](Driver::advance) to be called; `None` when it waits for nothing but its
    /// descriptor. Never in the past unless there is work at `now`.
    fn deadline(&self, now: Instant) -> Option<Instant>;
    /// Advances the time and runs due work of the driver: pacing, timeouts, delayed frames.
    fn advance(&mut self, now: Instant);
    /// Gives the driver its host's clock, which goes on within a round: [`advance`](Driver::advance) tells the time once. A
    /// driver that measures nothing of its own needs none.
    fn set_clock(&mut self, clock: Box<dyn Fn() -> Instant + Send>) {
        let _ = clock;
    }
    /// The link header of frames.
    fn frame_format(&self) -> FrameFormat;
    /// The longest IP datagram that a frame carries.
    fn mtu_bytes(&self) -> usize;
    /// A description for people: `tap inhost0, MTU 1500`.
    fn describe(&self) -> String;
    /// The counters of the driver.
    fn statistics(&self) -> Statistics;
    /// Takes the address that the other end assigned to us: LLP's answer to our request.
    fn take_offer(&mut self) -> Option<AddressOffer> {
        None
    }
    /// Gives the device to another process: from then on this driver reaches it through a channel, for what it has begun
    /// ([`Kept`](crate::Kept)). The descriptor is a new one then. When the other process ends, `receive` fails, and `reopen` takes the
    /// device back.
    ///
    /// # Errors
    /// `Unsupported` for a kind of link that cannot be handed over.
    fn hand_over(&mut self) -> io::Result<Handover> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a link of this kind cannot be handed over"))
    }
    /// Reopens the device after [`receive`](Driver::receive) returned an error. The descriptor is a new one then. The
    /// owner of the link decides how often it retries.
    fn reopen(&mut self) -> Result<(), NotBack> {
        Err(NotBack::Ever("a link of this kind is not opened again".to_owned()))
    }
}

/// What the process that takes a device over is given, by `SCM_RIGHTS`.
#[derive(Debug)]
pub struct Handover {
    /// The device.
    pub device: OwnedFd,
    /// The channel to the process that gives it away.
    pub channel: OwnedFd,
}

/// Why a link that is down was not reopened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotBack {
    /// It may return; the error of the last try.
    Yet(String),
    /// It cannot return, and the reason.
    Ever(String),
}
