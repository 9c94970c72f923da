//! TUN and TAP: frames to and from the kernel of the machine, through `/dev/net/tun`.

mod batching;
mod handover;
mod request;
mod vnet;

use crate::{Discard, Driver, FrameFormat, Handover, NotBack, OpenError, Statistics};
use batching::BatchingHint;
use handover::{Diversion, Whose};
pub use handover::{Kept, KeptFlow};
use inhost_base::{Cidr, HardwareAddress, Instant, SipKey};
use inhost_buf::{Batch, Device, Frame, Full, Offers, Offload, Packet, Pool, Slices};
use request::Kernel;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Configuration of a TUN or TAP device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunnelConfig {
    /// The interface's name in the kernel, at most 15 octets. Made when it is not there, else attached to.
    pub name: String,
    /// TAP (Ethernet frames) rather than TUN (IP datagrams).
    pub ethernet: bool,
    /// The longest IP datagram; the kernel's end is set to the same. Default of the kind: 1500.
    pub mtu_bytes: usize,
    /// Addresses of the kernel's end. Without any, the interface's addresses are left as they are.
    pub host_addresses: Vec<Cidr>,
    /// Whether checksums and segmentation are offloaded in both directions: frames of up to 64 KiB then pass. Default
    /// of the kind: yes. Cost: memory for large frames, which captures in the kernel show.
    pub offload: bool,
    /// Whether the interface has several queues, each opened by its own [`Tunnel`] of the same name. The kernel keeps
    /// every flow on the queue that it last came in by. Default: no.
    pub multi_queue: bool,
}

impl TunnelConfig {
    /// An interface of this name with MTU 1500 and the defaults above, and no address for the kernel's end.
    pub fn new(name: &str, ethernet: bool) -> Self {
        TunnelConfig {
            name: name.to_owned(),
            ethernet,
            mtu_bytes: 1500,
            host_addresses: Vec::new(),
            offload: true,
            multi_queue: false,
        }
    }
}

/// The longest IP packet, and so the longest GSO frame.
const LARGEST_PACKET_BYTES: usize = 65_535;
/// A frame up to this share of a buffer for large ones is copied to one of its size.
const COPIED_SHARE: usize = 2;
/// Bytes of large frames that one batch brings, about: as many as a core's own cache holds until they are read.
const BATCH_BYTES: usize = 512 << 10;
/// Frames up to this length are copied and written by one `write`, which costs less than a scatter-gather `writev`.
const GATHERED_HERE_BYTES: usize = 2048;
/// The kernel's header, ours, and the pieces of a payload.
const PIECES: usize = 2 + Slices::MOST;

/// A TUN or TAP device. It disappears with its last user unless it is persistent.
///
/// ```no_run
/// use inhost_link::{Driver, Tunnel, TunnelConfig};
///
/// // Needs CAP_NET_ADMIN.
/// let mut config = TunnelConfig::new("in0", false);
/// config.host_addresses.push("10.9.0.1/24".parse().unwrap());
/// let tunnel = Tunnel::open(config)?;
/// assert_eq!(tunnel.mtu_bytes(), 1500);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Tunnel {
    descriptor: OwnedFd,
    /// Whether we created the interface. An interface of another owner is not recreated when it is gone.
    made: bool,
    config: TunnelConfig,
    format: FrameFormat,
    /// The kernel's queue was full; the descriptor becomes writable when it is not.
    blocked: bool,
    /// Short frames are put together in this, and those that find no memory are read into it.
    scratch: Vec<u8>,
    batching: BatchingHint,
    /// Offloads of the kernel.
    offers: Offers,
    statistics: Statistics,
    /// The device, while another process has it and `descriptor` is the channel to that process.
    given: Option<OwnedFd>,
    /// The channel to the process that gave the device to this one, while that still lives.
    diversion: Option<Diversion>,
    /// Readable when the device or that channel is.
    either: Option<OwnedFd>,
}

/// What a read brought.
enum Read {
    Packet(Packet),
    NoMemory,
    /// A frame for the process that gave the device away.
    Diverted,
}

/// A device that was opened.
struct Opened {
    descriptor: OwnedFd,
    offers: Offers,
    /// The interface was not there before.
    made: bool,
}

/// Opens the device, and brings the kernel's end up where it is given addresses; one that is to be made unless `attach`
/// says that it must be there.
fn open_device(config: &TunnelConfig, attach: bool) -> Result<Opened, OpenError> {
    let failed = |step: &'static str, error: io::Error| OpenError::device(&config.name, step, error);
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let descriptor = rustix::fs::open("/dev/net/tun", flags, Mode::empty())
        .map_err(|e| failed("cannot open /dev/net/tun", e.into()))?;
    let kernel = Kernel::new(&config.name).map_err(|e| failed("cannot ask the kernel", e))?;
    let made = !kernel.exists();
    if made && attach {
        let gone = io::Error::new(io::ErrorKind::NotFound, "there is no such interface");
        return Err(failed("cannot attach to the interface", gone));
    }
    kernel
        .attach(descriptor.as_fd(), config.ethernet, config.offload, config.multi_queue)
        .map_err(|e| failed("cannot make or attach to the interface", e))?;
    let mut offers = Offers::NONE;
    if config.offload {
        let udp =
            kernel.offload(descriptor.as_fd()).map_err(|e| failed("cannot offload; try offload=off", e))?;
        offers = Offers { udp, ..Offers::ALL };
    }
    if !config.host_addresses.is_empty() {
        kernel.set_mtu(config.mtu_bytes).map_err(|e| failed("cannot set the MTU", e))?;
        for address in &config.host_addresses {
            kernel.add_address(address).map_err(|e| failed("cannot set the kernel's address", e))?;
        }
        kernel.bring_up().map_err(|e| failed("cannot bring the interface up", e))?;
    }
    Ok(Opened { descriptor, offers, made })
}

impl Tunnel {
    /// Opens the device, and brings the kernel's end up where it is given addresses.
    pub fn open(config: TunnelConfig) -> Result<Tunnel, OpenError> {
        let opened = open_device(&config, false)?;
        Ok(Tunnel::with(config, opened))
    }
    /// Takes over the device that another process gave away with the same configuration, and keeps it connected with what
    /// it has begun.
    ///
    /// # Errors
    /// When the system refuses a step.
    pub fn take_over(config: TunnelConfig, handover: Handover, kept: Kept) -> Result<Tunnel, OpenError> {
        let failed = |step: &'static str, error: io::Error| OpenError::device(&config.name, step, error);
        let Handover { device, channel } = handover;
        let mut offers = Offers::NONE;
        if config.offload {
            let udp = Kernel::new(&config.name)
                .and_then(|kernel| kernel.offload(device.as_fd()))
                .map_err(|e| failed("cannot offload on the device that was handed over", e))?;
            offers = Offers { udp, ..Offers::ALL };
        }
        let either = handover::either(device.as_fd(), channel.as_fd())
            .map_err(|e| failed("cannot wait for the device that was handed over", e))?;
        let mut tunnel = Tunnel::with(config, Opened { descriptor: device, offers, made: true });
        tunnel.diversion = Some(Diversion::new(channel, kept));
        tunnel.either = Some(either);
        Ok(tunnel)
    }
    fn with(config: TunnelConfig, opened: Opened) -> Tunnel {
        let Opened { descriptor, offers, made } = opened;
        let format = if config.ethernet {
            FrameFormat::Ethernet(hardware_address(&config.name))
        } else {
            FrameFormat::Ip
        };
        let statistics = Statistics::default();
        let (scratch, batching) = (Vec::new(), BatchingHint::default());
        let mut tunnel = Tunnel {
            descriptor,
            made,
            config,
            format,
            blocked: false,
            scratch,
            batching,
            offers,
            statistics,
            given: None,
            diversion: None,
            either: None,
        };
        tunnel.scratch = vec![0; tunnel.front_bytes() + tunnel.longest_bytes()];
        tunnel
    }
    /// Writes what comes from the process that gave the device away, and notes that it has ended.
    fn relay(&mut self) {
        let form = (self.front_bytes(), self.format);
        if let Some(diversion) = &mut self.diversion
            && !diversion.relay(self.descriptor.as_fd(), &mut self.scratch, form)
        {
            self.diversion = None;
        }
    }
    /// Whether a frame, as it was read, is for the other process alone; it gets its frames.
    fn is_diverted(
        diversion: &mut Option<Diversion>,
        read: &[u8],
        front: usize,
        format: FrameFormat,
    ) -> bool {
        let Some(diversion) = diversion else { return false };
        let whose = diversion.whose(read.get(front..).unwrap_or(&[]), format);
        if whose != Whose::Ours {
            diversion.divert(read);
        }
        whose == Whose::Theirs
    }
    /// The longest frame that may come in.
    fn longest_bytes(&self) -> usize {
        let packet = if self.config.offload { LARGEST_PACKET_BYTES } else { self.config.mtu_bytes };
        packet + self.format.header_bytes()
    }
    /// Bytes of the kernel's header before each frame.
    fn front_bytes(&self) -> usize {
        if self.config.offload { vnet::LENGTH } else { 0 }
    }
    /// Reads one frame into a packet of about its size. `spare` is a packet that takes any frame, and may be empty.
    fn read_packet(&mut self, pool: &mut Pool, spare: &mut Packet) -> Result<Read, Errno> {
        let front = self.front_bytes();
        if spare.capacity() == 0
            && let Some(mut packet) = pool.take(self.longest_bytes())
        {
            // The kernel's header goes where headroom is.
            packet.prepend(front);
            packet.truncate(0);
            *spare = packet;
        }
        if spare.capacity() == 0 {
            // Read all the same: what stays in the kernel would be announced again and again.
            let read = self.read_frame(|descriptor, scratch| rustix::io::read(descriptor, scratch))?;
            let bytes = self.scratch.get(..read).unwrap_or(&[]);
            if Tunnel::is_diverted(&mut self.diversion, bytes, front, self.format) {
                return Ok(Read::Diverted);
            }
            let packet = pool.take(read.saturating_sub(front));
            return Ok(packet.map_or(Read::NoMemory, |packet| Read::Packet(self.copied(bytes, packet))));
        }
        let read = self.read_frame(|descriptor, _| rustix::io::read(descriptor, spare.spare_mut()))?;
        let bytes = spare.spare_mut().get(..read).unwrap_or(&[]);
        if Tunnel::is_diverted(&mut self.diversion, bytes, front, self.format) {
            return Ok(Read::Diverted);
        }
        let length = read.saturating_sub(front);
        let is_small = self.config.offload && length <= spare.capacity() / COPIED_SHARE;
        if is_small && let Some(packet) = pool.take(length) {
            let bytes = spare.spare_mut().get(..read).unwrap_or(&[]);
            return Ok(Read::Packet(self.copied(bytes, packet)));
        }
        let mut packet = spare.take();
        packet.extend(read);
        if self.config.offload {
            let header = packet.bytes().first_chunk().copied().unwrap_or_default();
            vnet::describe(&header, &mut packet);
        }
        packet.trim_front(front);
        Ok(Read::Packet(packet))
    }
    /// Reads one frame by `read`. A channel ends with its other end; a device has no end.
    fn read_frame(
        &mut self,
        read: impl FnOnce(&OwnedFd, &mut [u8]) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        match read(&self.descriptor, &mut self.scratch)? {
            0 if self.given.is_some() => Err(Errno::PIPE),
            length => Ok(length),
        }
    }
    /// Appends the bytes that were read to `packet`.
    fn copied(&self, read: &[u8], mut packet: Packet) -> Packet {
        packet.append(read.get(self.front_bytes()..).unwrap_or(&[]));
        if self.config.offload {
            vnet::describe(read.first_chunk().unwrap_or(&[0; vnet::LENGTH]), &mut packet);
        }
        packet
    }
    /// Writes a frame behind the kernel's header for it.
    fn write(&mut self, frame: &Frame<'_>, length: usize) -> Result<usize, Errno> {
        let header = vnet::of(frame);
        let front = if self.config.offload { &header[..] } else { &[] };
        if length <= GATHERED_HERE_BYTES
            && let Some((place, rest)) = self.scratch.split_at_mut_checked(front.len())
        {
            place.copy_from_slice(front);
            if let Some(whole) = frame.write_to(rest) {
                let bytes = self.scratch.get(..front.len() + whole).unwrap_or(&[]);
                return rustix::io::write(&self.descriptor, bytes);
            }
        }
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let mut count = 0;
        for piece in [front, frame.header].into_iter().chain(frame.payload.iter()).filter(|p| !p.is_empty()) {
            if let Some(place) = pieces.get_mut(count) {
                *place = IoSlice::new(piece);
                count += 1;
            }
        }
        rustix::io::writev(&self.descriptor, pieces.get(..count).unwrap_or(&[]))
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
        let large = matches!(frame.offload, Offload::Segment { .. });
        let length = frame.len();
        let most =
            if large { self.longest_bytes() } else { self.config.mtu_bytes + self.format.header_bytes() };
        if length > most || (frame.offload != Offload::None && !self.config.offload) {
            self.statistics = self.statistics.with_discarded(Discard::TooLong);
            return Ok(());
        }
        if let Some(diversion) = &mut self.diversion {
            diversion.sends(frame.header, self.format);
        }
        match self.write(frame, length) {
            Ok(_) => {
                self.blocked = false;
                self.statistics = self.statistics.with_transmitted(length);
                Ok(())
            }
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => {
                self.blocked = true;
                self.statistics.full += 1;
                Err(Full)
            }
            // The kernel's end is down, or it refuses this frame: as lost as on any wire.
            Err(_) => {
                self.statistics = self.statistics.with_discarded(Discard::System);
                Ok(())
            }
        }
    }
    fn offers(&self) -> Offers {
        self.offers
    }
}

impl Driver for Tunnel {
    fn receive(&mut self, pool: &mut Pool, batch: &mut Batch) -> io::Result<usize> {
        self.relay();
        let (mut received, mut discarded) = (0, 0);
        let mut spare = Packet::default();
        let mut ended = Ok(());
        let mut bytes = 0;
        while !batch.is_full() && discarded < Batch::LIMIT && bytes < BATCH_BYTES {
            match self.read_packet(pool, &mut spare) {
                Ok(Read::Packet(packet)) => {
                    self.statistics = self.statistics.with_received(packet.len());
                    received += 1;
                    bytes += packet.len();
                    if let Err(packet) = batch.push(packet) {
                        pool.give(packet);
                    }
                    if self.batching.is_batch_over(received) {
                        break;
                    }
                }
                Ok(Read::NoMemory) => {
                    self.statistics = self.statistics.with_discarded(Discard::NoMemory);
                    discarded += 1;
                }
                Ok(Read::Diverted) => discarded += 1,
                // The kernel's end is down: it may come up again. One that was deleted does not.
                Err(Errno::AGAIN | Errno::INTR | Errno::IO) => {
                    self.batching.batch_ended(received);
                    break;
                }
                Err(gone) => {
                    ended = Err(gone.into());
                    break;
                }
            }
        }
        pool.give(spare);
        ended.map(|()| received)
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.either.as_ref().unwrap_or(&self.descriptor).as_fd())
    }
    fn wants_write(&self) -> bool {
        self.blocked && self.either.is_none()
    }
    fn deadline(&self, now: Instant) -> Option<Instant> {
        // Of two descriptors neither says when it becomes writable.
        let again = (self.blocked && self.either.is_some()).then(|| now + handover::TRY_AGAIN_AFTER);
        self.diversion.as_ref().and_then(Diversion::deadline).into_iter().chain(again).min()
    }
    fn advance(&mut self, now: Instant) {
        if let Some(diversion) = &mut self.diversion {
            diversion.advance(now);
            diversion.flush();
        }
    }
    fn frame_format(&self) -> FrameFormat {
        self.format
    }
    fn mtu_bytes(&self) -> usize {
        self.config.mtu_bytes
    }
    fn describe(&self) -> String {
        let kind = if self.config.ethernet { "tap" } else { "tun" };
        let offload = if self.config.offload { ", offload" } else { "" };
        format!("{kind} {}, MTU {}{offload}", self.config.name, self.config.mtu_bytes)
    }
    fn statistics(&self) -> Statistics {
        self.statistics
    }
    fn hand_over(&mut self) -> io::Result<Handover> {
        if self.given.is_some() || self.diversion.is_some() {
            return Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "the process before it still has connections from the last handover; try again when it has ended, at \
                 the latest handover_s after that",
            ));
        }
        let (ours, theirs) = handover::channel()?;
        let device = self.descriptor.try_clone()?;
        self.given = Some(std::mem::replace(&mut self.descriptor, ours));
        (self.blocked, self.either) = (false, None);
        Ok(Handover { device, channel: theirs })
    }
    fn reopen(&mut self) -> Result<(), NotBack> {
        if let Some(device) = self.given.take() {
            (self.descriptor, self.blocked) = (device, false);
            return Ok(());
        }
        let opened = open_device(&self.config, !self.made).map_err(|why| NotBack::Yet(why.to_string()))?;
        (self.descriptor, self.offers, self.blocked) = (opened.descriptor, opened.offers, false);
        (self.either, self.diversion) = (None, None);
        Ok(())
    }
}
