//! A TUN or TAP device for smoltcp, with virtio headers where segmentation is left to it. One buffer in each direction,
//! used again for every frame; reads and writes are the plain system calls.

use smoltcp::phy::{
    Checksum, ChecksumCapabilities, Device, DeviceCapabilities, Medium, PacketMeta, RxToken,
    SegmentationCapabilities, TxToken,
};
use smoltcp::time::{Duration, Instant};
use std::fs::File;
use std::io::{Error, Read, Write};
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd;

/// Room for a frame that the kernel has put together from segments.
const LARGEST_BYTES: usize = 65_536 + 64;
/// The largest frame that is left to the kernel to cut.
const LARGEST_SENT_BYTES: usize = 65_000;
/// The header before each frame: flags, kind, lengths and places.
const VIRTIO_BYTES: usize = 10;
/// The checksum is to be finished.
const NEEDS_CHECKSUM: u8 = 1;
/// TCP over IPv4, to be cut.
const TCP_V4: u8 = 1;
const ETHERNET_BYTES: usize = 14;

pub struct Tun {
    file: File,
    ethernet: bool,
    offload: bool,
    received: Vec<u8>,
    sent: Vec<u8>,
}

impl Tun {
    pub fn open(name: &str, ethernet: bool, offload: bool) -> Result<Tun, String> {
        let path = "/dev/net/tun";
        let file = File::options().read(true).write(true).open(path).map_err(|e| format!("{path}: {e}"))?;
        // SAFETY: all zeros are a value of this plain structure.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as libc::c_char);
        let kind = if ethernet { libc::IFF_TAP } else { libc::IFF_TUN };
        let header = if offload { libc::IFF_VNET_HDR } else { 0 };
        request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI | header) as libc::c_short;
        // SAFETY: the structure that the request reads and writes outlives the call.
        check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request) }, name)?;
        if offload {
            let what = libc::TUN_F_CSUM | libc::TUN_F_TSO4;
            // SAFETY: this request takes a number.
            check(
                unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(what)) },
                name,
            )?;
        }
        // SAFETY: the descriptor is open.
        check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) }, name)?;
        Ok(Tun { file, ethernet, offload, received: vec![0; LARGEST_BYTES], sent: vec![0; LARGEST_BYTES] })
    }
    /// Waits until there is something to read, or for `limit`.
    pub fn wait(&self, limit: Option<Duration>) {
        // Longer than there is no reason for, rather than spinning for what is left of a millisecond.
        let millis = limit.map_or(100, |limit| limit.total_micros().div_ceil(1000).min(100)) as i32;
        let mut one = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure, which outlives the call.
        unsafe { libc::poll(&mut one, 1, millis) };
    }
    fn virtio_bytes(&self) -> usize {
        if self.offload { VIRTIO_BYTES } else { 0 }
    }
}

fn check(result: i32, name: &str) -> Result<(), String> {
    if result < 0 { Err(format!("{name}: {}", Error::last_os_error())) } else { Ok(()) }
}

pub struct Received<'a>(&'a [u8]);

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

pub struct Room<'a> {
    file: &'a File,
    sent: &'a mut [u8],
    offload: bool,
    ip_offset: usize,
    meta: PacketMeta,
}

impl TxToken for Room<'_> {
    fn set_meta(&mut self, meta: PacketMeta) {
        self.meta = meta;
    }
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let before = if self.offload { VIRTIO_BYTES } else { 0 };
        let whole = &mut self.sent[..before + length];
        let (header, frame) = whole.split_at_mut(before);
        let result = f(frame);
        if self.offload {
            describe(header, frame, self.ip_offset, self.meta);
        }
        // A frame that the kernel has no room for is lost, as on any wire.
        let _ = (&*self.file).write(whole);
        result
    }
}

/// Fills in the header for a TCP segment over IPv4, and the sum of its pseudo-header; other frames are complete.
fn describe(header: &mut [u8], frame: &mut [u8], ip_offset: usize, meta: PacketMeta) {
    header.fill(0);
    let is_ip = ip_offset == 0 || frame[12..14] == [8, 0];
    if !is_ip || frame[ip_offset + 9] != 6 {
        return;
    }
    let ip_bytes = usize::from(frame[ip_offset] & 15) * 4;
    let tcp_offset = ip_offset + ip_bytes;
    let header_bytes = tcp_offset + usize::from(frame[tcp_offset + 12] >> 4) * 4;
    header[0] = NEEDS_CHECKSUM;
    if let Some(size) = meta.segmentation_offload_size {
        header[1] = TCP_V4;
        header[2..4].copy_from_slice(&(header_bytes as u16).to_ne_bytes());
        header[4..6].copy_from_slice(&size.get().to_ne_bytes());
    }
    header[6..8].copy_from_slice(&(tcp_offset as u16).to_ne_bytes());
    header[8..10].copy_from_slice(&16u16.to_ne_bytes());
    let addresses = frame[ip_offset + 12..ip_offset + 20].chunks_exact(2);
    let sum = addresses.map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum::<u32>();
    let mut sum = sum + 6 + (frame.len() - tcp_offset) as u32;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    frame[tcp_offset + 16..tcp_offset + 18].copy_from_slice(&(sum as u16).to_be_bytes());
}

impl Device for Tun {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Room<'a>;
    fn receive(&mut self, now: Instant) -> Option<(Received<'_>, Room<'_>)> {
        let length = self.file.read(&mut self.received).ok()?;
        let before = self.virtio_bytes();
        let Tun { file, received, sent, offload, ethernet } = self;
        let ip_offset = if *ethernet { ETHERNET_BYTES } else { 0 };
        let room = Room { file, sent, offload: *offload, ip_offset, meta: PacketMeta::default() };
        let _ = now;
        Some((Received(received.get(before..length)?), room))
    }
    fn transmit(&mut self, _: Instant) -> Option<Room<'_>> {
        let ip_offset = if self.ethernet { ETHERNET_BYTES } else { 0 };
        let Tun { file, sent, offload, .. } = self;
        Some(Room { file, sent, offload: *offload, ip_offset, meta: PacketMeta::default() })
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = if self.ethernet { Medium::Ethernet } else { Medium::Ip };
        capabilities.max_transmission_unit = 1500 + if self.ethernet { ETHERNET_BYTES } else { 0 };
        if self.offload {
            let mut checksum = ChecksumCapabilities::default();
            checksum.tcp = Checksum::None;
            capabilities.checksum = checksum;
            let mut segmentation = SegmentationCapabilities::default();
            segmentation.tcpv4 = NonZeroUsize::new(LARGEST_SENT_BYTES);
            capabilities.segmentation = segmentation;
        }
        capabilities
    }
}
