//! The TCP segment in a frame, for watchers of frames.

use inhost_base::{Endpoint, IpAddr};
use inhost_wire::ethernet::{EtherType, EthernetView};
use inhost_wire::ipv4::Ipv4View;
use inhost_wire::ipv6::Ipv6View;
use inhost_wire::protocol;
use inhost_wire::tcp::{Segment, TcpView};

use crate::ecn::Ecn;
use crate::network::Seen;

/// A segment and whom it is from and for.
#[derive(Clone, Debug)]
pub struct SeenSegment<'a> {
    /// The sender.
    pub from: Endpoint,
    /// The receiver.
    pub to: Endpoint,
    /// Its content.
    pub segment: Segment<'a>,
}

impl<'a> SeenSegment<'a> {
    /// The whole TCP segment in a frame, when that is what the frame holds. Checksums are not looked at.
    pub fn of(seen: &Seen<'a>) -> Option<SeenSegment<'a>> {
        let (source, destination, number, payload) = ip_of(seen)?;
        if number != protocol::TCP {
            return None;
        }
        let segment = Segment::parse(&TcpView::new(payload).ok()?);
        Some(SeenSegment {
            from: Endpoint { address: source, port: segment.source_port },
            to: Endpoint { address: destination, port: segment.destination_port },
            segment,
        })
    }
}

/// Sender, receiver, protocol and payload of the whole IP datagram in a frame.
pub(crate) fn ip_of<'a>(seen: &Seen<'a>) -> Option<(IpAddr, IpAddr, u8, &'a [u8])> {
    let bytes = if seen.is_ethernet {
        let view = EthernetView::new(seen.bytes).ok()?;
        if !matches!(view.ethertype(), EtherType::IPV4 | EtherType::IPV6) {
            return None;
        }
        view.payload()
    } else {
        seen.bytes
    };
    if bytes.first()? >> 4 == 4 {
        let view = Ipv4View::new(bytes).ok().filter(|view| !view.is_fragment())?;
        Some((view.source().into(), view.destination().into(), view.protocol(), view.payload()))
    } else {
        let view = Ipv6View::new(bytes).ok()?;
        Some((view.source().into(), view.destination().into(), view.next_header(), view.payload()))
    }
}

/// A frame in one line, as `replay` prints it.
pub fn describe(seen: &Seen<'_>) -> String {
    match (SeenSegment::of(seen), ip_of(seen)) {
        (Some(SeenSegment { from, to, segment }), _) => {
            let end = segment.sequence.0.wrapping_add(segment.payload.len() as u32);
            let mark = match Ecn::of(seen.bytes, seen.is_ethernet) {
                None | Some(Ecn::NotCapable) => "",
                Some(Ecn::Capable0 | Ecn::Capable1) => " capable",
                Some(Ecn::Congested) => " marked",
            };
            let times = segment.options.timestamps.map_or(String::new(), |(a, b)| format!(" ts {a}/{b}"));
            format!(
                "{from} > {to} {:?} {}..{end} ack {} win {}{times}{mark}",
                segment.flags, segment.sequence.0, segment.acknowledgment.0, segment.window
            )
        }
        (None, Some((from, to, number, payload))) => {
            format!("{from} > {to} protocol {number}, {} bytes", payload.len())
        }
        (None, None) => {
            format!("{} bytes: {:02x?}", seen.bytes.len(), &seen.bytes[..seen.bytes.len().min(42)])
        }
    }
}
