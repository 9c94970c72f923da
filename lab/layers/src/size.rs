//! Sizes of segments, and the segment of a frame.

use inhost_runtime::FrameHead;
use inhost_wire::ipv4::Ipv4View;
use inhost_wire::ipv6::{self, Ipv6View};
use inhost_wire::protocol;
use inhost_wire::tcp::TcpView;

/// A class of payload sizes: VPI's (figures 14 and 15), acknowledgments alone, and large frames of devices with offloads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Size {
    /// No payload: an acknowledgment, or another segment without data.
    Empty,
    /// 1 to 10 bytes.
    To10,
    /// 11 to 100 bytes.
    To100,
    /// 101 to 512 bytes.
    To512,
    /// 513 to 1024 bytes.
    To1024,
    /// 1025 to 1460 bytes.
    To1460,
    /// More: segments that a device merges or cuts, or those of a link with large frames.
    Large,
}

impl Size {
    /// Every class, the smallest first.
    pub const ALL: [Size; 7] =
        [Size::Empty, Size::To10, Size::To100, Size::To512, Size::To1024, Size::To1460, Size::Large];

    /// The class of a payload.
    pub const fn of(payload_bytes: usize) -> Size {
        match payload_bytes {
            0 => Size::Empty,
            1..=10 => Size::To10,
            11..=100 => Size::To100,
            101..=512 => Size::To512,
            513..=1024 => Size::To1024,
            1025..=1460 => Size::To1460,
            _ => Size::Large,
        }
    }
    /// The class in a few words.
    pub const fn text(self) -> &'static str {
        match self {
            Size::Empty => "no data",
            Size::To10 => "to 10",
            Size::To100 => "to 100",
            Size::To512 => "to 512",
            Size::To1024 => "to 1024",
            Size::To1460 => "to 1460",
            Size::Large => "large",
        }
    }
}

/// A TCP segment, as its frame shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Whether it is sent.
    pub is_sent: bool,
    /// The port of the watched host.
    pub local_port: u16,
    /// The port of its peer.
    pub remote_port: u16,
    /// Bytes of payload; of all segments together where a device merges or cuts them.
    pub payload_bytes: u32,
}

impl Segment {
    /// The segment of a frame; none of another protocol, or of a fragment's.
    pub fn of(frame: &FrameHead<'_>) -> Option<Segment> {
        let packet = frame.head.get(frame.link_bytes..)?;
        let (ip_bytes, inner, total_bytes) = match packet.first()? >> 4 {
            4 => {
                let ip = Ipv4View::of_front(packet).ok()?;
                (ip.header_length(), ip.protocol(), ip.total_length())
            }
            6 => {
                let ip = Ipv6View::of_front(packet).ok()?;
                (ipv6::LENGTH, ip.next_header(), ip.total_length())
            }
            _ => return None,
        };
        if inner != protocol::TCP {
            return None;
        }
        let tcp = TcpView::new(packet.get(ip_bytes..)?).ok()?;
        // Behind a short packet stands the padding of its link.
        let packet_bytes = total_bytes.min(frame.length_bytes.saturating_sub(frame.link_bytes));
        let payload_bytes = packet_bytes.saturating_sub(ip_bytes + tcp.header_length()) as u32;
        let (source, destination) = (tcp.source_port(), tcp.destination_port());
        let (local_port, remote_port) =
            if frame.is_sent { (source, destination) } else { (destination, source) };
        Some(Segment { is_sent: frame.is_sent, local_port, remote_port, payload_bytes })
    }
}
