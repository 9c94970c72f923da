//! TUN and TAP: frames to and from the kernel of the machine, through `/dev/net/tun`.

mod request;

use crate::{Discard, Driver, Medium, OpenError, Statistics};
use inhost_base::{Cidr, HardwareAddress, Instant, SipKey};
use inhost_buf::{Batch, Device, Frame, Full, Pool};
use request::Kernel;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What a TUN or TAP device is opened with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunnelConfig {
    /// The interface's name in the kernel, at most 15 octets. Made when it is not there, else attached to.
    pub name: String,
    /// TAP (Ethernet frames) rather than TUN (IP datagrams).
    pub ethernet: bool,
    /// The longest IP datagram; the kernel's end is set to the same. Default of the kind: 1500.
    pub mtu_bytes: usize,
    /// Addresses of the kernel's end. With none, the interface is left to whoever manages it.
    pub host_addresses: Vec<Cidr>,
}

/// A TUN or TAP device. It disappears with its last user unless somebody made it persistent.
#[derive(Debug)]
pub struct Tunnel {
    descriptor: OwnedFd,
    config: TunnelConfig,
    medium: Medium,
    /// The kernel's queue was full; its descriptor tells when it is not.
    blocked: bool,
    /// One frame, flattened for the write.
    scratch: Vec<u8>,
    statistics: Statistics,
}

impl Tunnel {
    /// Opens the device, and brings the kernel's end up where it is given addresses.
    pub fn open(config: TunnelConfig) -> Result<Tunnel, OpenError> {
        let failed = |step: &'static str, error: io::Error| OpenError::device(&config.name, step, error);
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open("/dev/net/tun", flags, Mode::empty())
            .map_err(|e| failed("cannot open /dev/net/tun", e.into()))?;
        let kernel = Kernel::new(&config.name).map_err(|e| failed("cannot ask the kernel", e))?;
        kernel
            .attach(descriptor.as_fd(), config.ethernet)
            .map_err(|e| failed("cannot make or attach to the interface", e))?;
        if !config.host_addresses.is_empty() {
            kernel.set_mtu(config.mtu_bytes).map_err(|e| failed("cannot set the MTU", e))?;
            for address in &config.host_addresses {
                kernel.add_address(address).map_err(|e| failed("cannot set the kernel's address", e))?;
            }
            kernel.bring_up().map_err(|e| failed("cannot bring the interface up", e))?;
        }
        let medium =
            if config.ethernet { Medium::Ethernet(hardware_address(&config.name)) } else { Medium::Ip };
        let scratch = vec![0; config.mtu_bytes + medium.header_bytes()];
        Ok(Tunnel { descriptor, config, medium, blocked: false, scratch, statistics: Statistics::default() })
    }
}

/// Our end's address: locally administered, and the same for the same name on the same machine, so that a restarted
/// host is still known to its neighbours, and hosts of two machines on one Ethernet are not taken for each other.
fn hardware_address(name: &str) -> HardwareAddress {
    // Where a system keeps no identity, the name alone has to do.
    let mut whose = std::fs::read("/etc/machine-id").unwrap_or_default();
    whose.extend_from_slice(name.as_bytes());
    let hash = SipKey::from_halves(0x696e_686f_7374, 0x0074_6170).hash(&whose).to_be_bytes();
    let [a, b, c, d, e, ..] = hash;
    HardwareAddress([0x02, a, b, c, d, e])
}

impl Device for Tunnel {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let Some(length) = crate::offload::complete(frame, &mut self.scratch) else {
            self.statistics.discard(Discard::TooLong);
            return Ok(());
        };
        match rustix::io::write(&self.descriptor, &self.scratch[..length]) {
            Ok(_) => {
                self.blocked = false;
                self.statistics.transmitted(length);
                Ok(())
            }
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => {
                self.blocked = true;
                self.statistics.full += 1;
                Err(Full)
            }
            // The kernel's end is down, or it refuses this frame: as lost as on any wire.
            Err(_) => {
                self.statistics.discard(Discard::System);
                Ok(())
            }
        }
    }
}

impl Driver for Tunnel {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<usize> {
        let (mut received, mut discarded) = (0, 0);
        while !batch.is_full() {
            let Some(mut packet) = pool.take(self.config.mtu_bytes + self.medium.header_bytes()) else {
                // Read all the same: what stays in the kernel would be announced again and again.
                match rustix::io::read(&self.descriptor, &mut self.scratch) {
                    Ok(_) => self.statistics.discard(Discard::NoMemory),
                    Err(_) => break,
                }
                discarded += 1;
                if discarded == Batch::LIMIT { break } else { continue }
            };
            match rustix::io::read(&self.descriptor, packet.spare_mut()) {
                Ok(length) => {
                    packet.extend(length);
                    self.statistics.received(length);
                    received += 1;
                    if let Err(packet) = batch.push(packet) {
                        pool.give(packet);
                    }
                }
                Err(error) => {
                    pool.give(packet);
                    match error {
                        Errno::AGAIN | Errno::INTR => break,
                        // The kernel's end is down: it may come up again. One that was deleted does not.
                        Errno::IO => break,
                        gone => return Err(gone.into()),
                    }
                }
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
    fn deadline(&self, _: Instant) -> Option<Instant> {
        None
    }
    fn advance(&mut self, _: Instant) {}
    fn medium(&self) -> Medium {
        self.medium
    }
    fn mtu_bytes(&self) -> usize {
        self.config.mtu_bytes
    }
    fn describe(&self) -> String {
        let kind = if self.config.ethernet { "tap" } else { "tun" };
        format!("{kind} {}, MTU {}", self.config.name, self.config.mtu_bytes)
    }
    fn statistics(&self) -> Statistics {
        self.statistics
    }
}
