//! The device under our stack: what it finishes for the host, and what the host then does by itself.

use inhost_base::{Instant, IpAddr};
use inhost_buf::{Checksum, Device, Frame, Full, Offers, Packet};
use inhost_stack::InterfaceConfig;
use inhost_wire::offload::complete;
use inhost_wire::tcp::TcpView;
use inhost_wire::{ipv4, ipv6, protocol};
use std::collections::VecDeque;

/// Offloads of the device: segmentation, checksums, and receive coalescing. The packets on the wire are the same in
/// each case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Offloads {
    /// Nobody: every segment is decided on, summed and acted on alone.
    Off,
    /// The host itself, as it does above a device that offers nothing.
    #[default]
    Software,
    /// The device, which also checks what comes in.
    On,
}

impl Offloads {
    /// All of them.
    pub const ALL: [Offloads; 3] = [Offloads::Off, Offloads::Software, Offloads::On];

    /// As the word of a command line, and of a failure.
    pub fn text(self) -> &'static str {
        match self {
            Offloads::Off => "off",
            Offloads::Software => "software",
            Offloads::On => "on",
        }
    }
    /// Sets what the host does by itself.
    pub(super) fn fit(self, interface: &mut InterfaceConfig) {
        let by_host = self != Offloads::Off;
        (interface.gso, interface.gro) = (by_host, by_host);
    }
}

/// The wire, and the device that the host sends to.
pub(super) struct Wire {
    /// Packets as they left, and when.
    pub sent: VecDeque<(Instant, Vec<u8>)>,
    /// The time of this round.
    pub now: Instant,
    offloads: Offloads,
}

impl Wire {
    pub fn new(now: Instant, offloads: Offloads) -> Wire {
        Wire { sent: VecDeque::new(), now, offloads }
    }
    fn put(&mut self, frame: &Frame<'_>) {
        let mut bytes = vec![0; frame.len()];
        if frame.write_to(&mut bytes).is_some() {
            self.sent.push_back((self.now, bytes));
        }
    }
    /// Tells the host what the device found when it looked at the checksum.
    pub fn check(&self, packet: &mut Packet, host: IpAddr, peer: IpAddr) {
        if self.offloads == Offloads::On && is_sound(packet.bytes(), host, peer) {
            packet.set_checksum(Checksum::Verified);
        }
    }
}

/// Whether it is a TCP segment with the right checksum; a device passes on whatever else comes as it is.
fn is_sound(packet: &[u8], host: IpAddr, peer: IpAddr) -> bool {
    let payload = if host.is_ipv4() {
        ipv4::Ipv4View::new(packet)
            .ok()
            .filter(|view| view.protocol() == protocol::TCP && !view.is_fragment())
            .map(|view| view.payload())
    } else {
        ipv6::Ipv6View::new(packet)
            .ok()
            .filter(|view| view.next_header() == protocol::TCP)
            .map(|view| view.payload())
    };
    payload.and_then(|payload| TcpView::new(payload).ok()).is_some_and(|tcp| tcp.checksum_ok(peer, host))
}

impl Device for Wire {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        complete(frame, 0, |frame| self.put(frame));
        Ok(())
    }
    fn offers(&self) -> Offers {
        if self.offloads == Offloads::On { Offers::ALL } else { Offers::NONE }
    }
}
