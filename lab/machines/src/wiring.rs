//! Links of then: which medium, how hosts are joined to it, and how their TCP was set.

use inhost_base::{Cidr, Duration, Endpoint, HardwareAddress, IpAddr, Ipv4Addr};
use inhost_ip::DuplicateDetection;
use inhost_sim::{
    Concentrator, ConcentratorConfig, Ethernet, Fddi, FullDuplexFddi, Imps, LinkConfig, LlpLine, Network,
    SlipLine, TokenRing,
};
use inhost_stack::{InterfaceConfig, Medium};

use crate::setup::Link;
use crate::world::{MEASURED, PORT};
use inhost_sim::setup::{SetupError, within};

/// Speeds of a serial line.
const LINE_SPEEDS: std::ops::RangeInclusive<u64> = 300..=1_000_000;
/// The default of TTRT (DEC §3).
const TARGET_ROTATION: Duration = Duration::from_millis(8);
/// From a station of a private ring to the next one, through a concentrator: some 60 bits in each and short fibres.
const FDDI_HOP: Duration = Duration::from_micros(2);
/// Between the host's memory and the ring, each way: the adapter moves whole frames by DMA, and interrupts. Fitted on
/// 72.6 Mbit/s with a window of 32 KB in half-duplex; the other TCP figures of DEC are judged.
const ADAPTER_LATENCY: Duration = Duration::from_micros(260);
/// A quarter of the adapter's megabyte is for frames to send (DEC §2).
const FDDI_TRANSMIT_FRAMES: usize = 60;

/// Both hosts are on one IMP, which takes the time of a few instructions for a message.
const IMP_TRANSIT: Duration = Duration::from_millis(1);
/// Messages that wait in the ACP for the interface.
const IMP_QUEUE_FRAMES: usize = 64;

/// A cable of some hundred metres with a repeater.
const ETHERNET_PROPAGATION: Duration = Duration::from_micros(3);
/// From a station of a token ring to the next one: some bits in each, and a cable.
const RING_HOP: Duration = Duration::from_micros(1);
/// Frames in the card's buffer for what is sent.
const ETHERNET_QUEUE_FRAMES: usize = 2;

/// How hosts on a link spoke TCP.
pub(crate) struct Habits {
    /// The window.
    pub(crate) window_bytes: u32,
    /// The send buffer; none for one of the window's size.
    pub(crate) send_buffer_bytes: Option<u32>,
    /// The window is a multiple of this.
    pub(crate) window_unit_bytes: u32,
    /// The largest segment.
    pub(crate) mss_bytes: u16,
    /// Least margin of the retransmission timeout above the round trip.
    pub(crate) timeout_margin: Duration,
    /// Whether the part of a segment that the window has room for is sent behind full ones.
    pub(crate) fills_window: bool,
    /// How long an acknowledgment is delayed; none for the delay of today.
    pub(crate) acknowledgment_delay: Option<Duration>,
}

/// The habits on a link.
pub(crate) fn habits(link: Link) -> Habits {
    match link {
        // MIT §6.2.2: a window of 4,000 bytes, packets of 500; a window takes more than six seconds.
        Link::Llp { .. } => Habits {
            window_bytes: 4000,
            send_buffer_bytes: None,
            window_unit_bytes: 1,
            mss_bytes: 500,
            timeout_margin: Duration::from_secs(10),
            fills_window: false,
            acknowledgment_delay: None,
        },
        // As on the line itself; a retransmission takes about four seconds (MIT §6.3.1).
        Link::Concentrator { .. } => {
            Habits { timeout_margin: Duration::from_secs(4), ..habits(Link::Llp { bits_per_second: 0 }) }
        }
        Link::Slip { bits_per_second } => habits(Link::Llp { bits_per_second }),
        Link::TokenRing { .. } => habits(Link::Ethernet {}),
        // UCLA §2.4 and §3.2: the ACP acknowledges each segment, and a message has 964 bytes of data at most. The paper
        // does not give its window.
        Link::Imp { .. } => Habits {
            window_bytes: 16_384,
            send_buffer_bytes: None,
            window_unit_bytes: 1,
            mss_bytes: 964,
            timeout_margin: Duration::from_secs(10),
            fills_window: false,
            acknowledgment_delay: Some(Duration::ZERO),
        },
        // VPI §3.2 and §4.2: a window of 2 KB. MD-DOS/IP acknowledges what has come when there is nothing else to do.
        Link::Ethernet {} | Link::None {} => Habits {
            window_bytes: 2048,
            send_buffer_bytes: Some(4096),
            window_unit_bytes: 1,
            mss_bytes: 1460,
            timeout_margin: Duration::from_secs(1),
            // A window of 2,048 bytes is segments of 1,460 and 588 (VPI figure 13).
            fills_window: true,
            acknowledgment_delay: Some(Duration::ZERO),
        },
        // DEC §2 and §3: an MTU of 4,352, a window of 32 KB, which is rounded up to a multiple of the segment.
        Link::Fddi { .. } => Habits {
            window_bytes: 32_768,
            send_buffer_bytes: None,
            window_unit_bytes: 4312,
            mss_bytes: 4312,
            timeout_margin: Duration::from_secs(1),
            fills_window: false,
            acknowledgment_delay: None,
        },
    }
}

/// How many peers the measured machine has on a link.
pub(crate) fn peers(link: Link) -> usize {
    match link {
        Link::Fddi { rings, .. } => usize::from(rings.clamp(1, 2)),
        Link::Llp { .. }
        | Link::Slip { .. }
        | Link::TokenRing { .. }
        | Link::Concentrator { .. }
        | Link::Imp { .. }
        | Link::Ethernet {}
        | Link::None {} => 1,
    }
}

/// Where a peer serves.
pub(crate) fn address_of(peer: usize) -> Endpoint {
    Endpoint::new(address(peer, peer), PORT)
}

/// The address of a host in the network that it shares with a peer.
fn address(peer: usize, host: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, peer as u8, host as u8 + 1).into()
}

/// Joins the measured machine to each of its peers; gives the link of each peer.
pub(crate) fn join(network: &mut Network, link: Link, seed: u64) -> Result<Vec<usize>, SetupError> {
    let mss_bytes = habits(link).mss_bytes;
    let mut links = Vec::new();
    for peer in 1..=peers(link) {
        let (medium, queue_frames) = medium(network, link, seed)?;
        for host in [MEASURED, peer] {
            let is_ethernet = matches!(link, Link::Ethernet {} | Link::TokenRing { .. } | Link::Fddi { .. });
            let interface = interface(peer, host, is_ethernet, mss_bytes + 40);
            let joined = network.join_medium((host, interface), medium, queue_frames);
            let (link_number, _) = joined.map_err(|why| SetupError::Unsupported { why: why.to_string() })?;
            let delay = latency(link);
            for end in [0, 1] {
                network.set_link(link_number, end, LinkConfig { delay, ..LinkConfig::default() });
            }
            if host == peer {
                links.push(link_number);
            }
        }
    }
    Ok(links)
}

/// The medium of a link, and the frames that a host may have on it.
fn medium(network: &mut Network, link: Link, seed: u64) -> Result<(usize, usize), SetupError> {
    Ok(match link {
        Link::Llp { bits_per_second } => {
            within("bits_per_second", bits_per_second, LINE_SPEEDS)?;
            (network.add_medium(LlpLine::new(bits_per_second)), 1)
        }
        Link::Imp { bits_per_second } => {
            within("bits_per_second", bits_per_second, 1000..=10_000_000)?;
            (network.add_medium(Imps::new(bits_per_second, IMP_TRANSIT)), IMP_QUEUE_FRAMES)
        }
        Link::Slip { bits_per_second } => {
            within("bits_per_second", bits_per_second, LINE_SPEEDS)?;
            (network.add_medium(SlipLine::new(bits_per_second)), 1)
        }
        Link::TokenRing { bits_per_second } => {
            within("bits_per_second", bits_per_second, 1_000_000..=100_000_000)?;
            (network.add_medium(TokenRing::new(bits_per_second, RING_HOP)), ETHERNET_QUEUE_FRAMES)
        }
        Link::Concentrator { bits_per_second, packet_buffers, lost_percent } => {
            within("bits_per_second", bits_per_second, LINE_SPEEDS)?;
            within("packet_buffers", packet_buffers, 1..=1000)?;
            within("lost_percent", lost_percent, 0..=100)?;
            let config = ConcentratorConfig {
                line_bits_per_second: bits_per_second,
                packet_buffers: packet_buffers as usize,
                lost_percent,
                ..ConcentratorConfig::default()
            };
            (network.add_medium(Concentrator::new(config, seed)), 1)
        }
        Link::Ethernet {} => {
            (network.add_medium(Ethernet::new(ETHERNET_PROPAGATION, seed)), ETHERNET_QUEUE_FRAMES)
        }
        Link::None {} => {
            return Err(SetupError::Unsupported { why: "the program needs a link".to_owned() });
        }
        Link::Fddi { rings, full_duplex } => {
            within("rings", rings, 1..=2)?;
            let medium = match full_duplex {
                true => network.add_medium(FullDuplexFddi::new()),
                false => network.add_medium(Fddi::new(TARGET_ROTATION, FDDI_HOP)),
            };
            (medium, FDDI_TRANSMIT_FRAMES)
        }
    })
}

/// An error when a machine's interrupts for octets take longer than a serial link leaves: then it would lose octets (MIT
/// §6.2.3), which is not modelled.
pub(crate) fn keeps_up(link: Link, octet_interrupt: Duration) -> Result<(), SetupError> {
    let (Link::Llp { bits_per_second }
    | Link::Slip { bits_per_second }
    | Link::Concentrator { bits_per_second, .. }) = link
    else {
        return Ok(());
    };
    let octet_time = Duration::from_nanos(10_000_000_000 / bits_per_second.max(1));
    match octet_interrupt > octet_time {
        true => Err(SetupError::Unsupported {
            why: format!(
                "a machine that takes {octet_interrupt} for an octet loses them at {bits_per_second} bit/s"
            ),
        }),
        false => Ok(()),
    }
}

/// Between a host's memory and its link, each way.
fn latency(link: Link) -> Duration {
    match link {
        Link::Fddi { .. } => ADAPTER_LATENCY,
        _ => Duration::ZERO,
    }
}

fn interface(peer: usize, host: usize, is_ethernet: bool, mtu_bytes: u16) -> InterfaceConfig {
    let medium = match is_ethernet {
        true => Medium::Ethernet(HardwareAddress([2, 0, 0, 0, peer as u8, host as u8 + 1])),
        false => Medium::Ip,
    };
    let mut config = InterfaceConfig::new("wire", medium);
    config.mtu_bytes = mtu_bytes;
    config.ipv6 = false;
    config.link_local = false;
    config.accept_router_advertisements = false;
    config.duplicate_detection = DuplicateDetection::Off;
    config.addresses.extend(Cidr::new(address(peer, host), 24));
    // One frame after the other, as hardware of then.
    (config.gso, config.gro) = (false, false);
    config
}
