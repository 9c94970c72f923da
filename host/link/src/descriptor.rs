//! A link on a descriptor that somebody else opened, which reads and writes whole IP packets.

use crate::{Discard, Driver, FrameFormat, Statistics, offload};
use inhost_base::Instant;
use inhost_buf::{Batch, Device, Frame, Full, Packet, Pool};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A TUN device that was opened elsewhere (Android's `VpnService`, a parent process, another namespace), or one end of a
/// socketpair of datagrams. Each read and write is one IP packet, with no header before it (`IFF_NO_PI`).
///
/// ```
/// use inhost_buf::{Batch, Pool};
/// use inhost_link::{Descriptor, Driver};
/// use std::os::unix::net::UnixDatagram;
///
/// let (near, far) = UnixDatagram::pair()?;
/// let mut link = Descriptor::new(near.into(), 1500)?;
/// far.send(b"an IP packet")?;
/// let (mut pool, mut batch) = (Pool::new(1 << 20), Batch::new());
/// assert_eq!(link.receive(&mut pool, &mut batch)?, 1);
/// assert_eq!(batch.pop().unwrap().bytes(), b"an IP packet");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Descriptor {
    descriptor: OwnedFd,
    mtu_bytes: usize,
    /// The system's queue was full; the descriptor becomes writable when it is not.
    blocked: bool,
    /// A packet as it is written.
    whole: Vec<u8>,
    statistics: Statistics,
}

impl Descriptor {
    /// A link on `descriptor`, which is set not to block.
    ///
    /// # Errors
    /// When the system refuses that.
    pub fn new(descriptor: OwnedFd, mtu_bytes: usize) -> io::Result<Descriptor> {
        let flags = rustix::fs::fcntl_getfl(&descriptor)?;
        rustix::fs::fcntl_setfl(&descriptor, flags | OFlags::NONBLOCK)?;
        let whole = vec![0; mtu_bytes];
        Ok(Descriptor { descriptor, mtu_bytes, blocked: false, whole, statistics: Statistics::default() })
    }
    /// Reads one packet into one of the pool's; `None` when the pool has no memory and the packet is lost.
    fn read(&mut self, pool: &mut Pool) -> Result<Option<Packet>, Errno> {
        let Some(mut packet) = pool.take(self.mtu_bytes) else {
            rustix::io::read(&self.descriptor, &mut self.whole)?;
            return Ok(None);
        };
        let read = match packet.extend(self.mtu_bytes) {
            Some(place) => rustix::io::read(&self.descriptor, place),
            None => Ok(0),
        };
        match read {
            Ok(length) => {
                packet.truncate(length);
                Ok(Some(packet))
            }
            Err(error) => {
                pool.give(packet);
                Err(error)
            }
        }
    }
}

impl Device for Descriptor {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let length = frame.len();
        if length > self.mtu_bytes || offload::complete(frame, &mut self.whole).is_none() {
            self.statistics = self.statistics.with_discarded(Discard::TooLong);
            return Ok(());
        }
        match rustix::io::write(&self.descriptor, &self.whole[..length]) {
            Ok(_) => {
                self.blocked = false;
                self.statistics = self.statistics.with_transmitted(length);
                Ok(())
            }
            Err(Errno::AGAIN | Errno::NOBUFS) => {
                self.blocked = true;
                self.statistics.full += 1;
                Err(Full)
            }
            Err(_) => {
                self.statistics = self.statistics.with_discarded(Discard::System);
                Ok(())
            }
        }
    }
}

impl Driver for Descriptor {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<usize> {
        let (mut received, mut lost) = (0, 0);
        while batch.has_room() && lost < Batch::LIMIT {
            match self.read(pool) {
                Ok(Some(packet)) if packet.is_empty() => {
                    // The other end of a socketpair is closed, or nothing was in the packet.
                    pool.give(packet);
                    break;
                }
                Ok(Some(packet)) => {
                    self.statistics = self.statistics.with_received(packet.len());
                    received += 1;
                    if let Err(packet) = batch.push(packet) {
                        pool.give(packet);
                    }
                }
                Ok(None) => {
                    self.statistics = self.statistics.with_discarded(Discard::NoMemory);
                    lost += 1;
                }
                Err(Errno::AGAIN | Errno::INTR | Errno::IO) => break,
                Err(gone) => return Err(gone.into()),
            }
        }
        Ok(received)
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.descriptor.as_fd())
    }
    fn wants_write(&self) -> bool {
        self.blocked
    }
    fn can_transmit(&self) -> bool {
        true
    }
    fn deadline(&self, _: Instant) -> Option<Instant> {
        None
    }
    fn advance(&mut self, _: Instant) {}
    fn frame_format(&self) -> FrameFormat {
        FrameFormat::Ip
    }
    fn mtu_bytes(&self) -> usize {
        self.mtu_bytes
    }
    fn describe(&self) -> String {
        format!("packets of a descriptor, MTU {}", self.mtu_bytes)
    }
    fn statistics(&self) -> Statistics {
        self.statistics
    }
}
