//! Opening of an exchange: listen or connect, options of both sides, and disturbances of the handshake.

use super::draw::Drawing;
use super::exchange::Exchange;
use super::steps;
use crate::language::{CallKind, Options, Presence, Segment, Step};
use crate::side::DATAGRAM_PORT;
use inhost_base::{Duration, Random};
use inhost_wire::tcp::Flags;

/// One exchange of so many is one of datagrams.
const OF_DATAGRAMS: u64 = 8;
/// One of so many begins with windows that change, and which of them.
const OF_WINDOWS: (u64, u64) = (64, 6);

/// What the beginning of an exchange was drawn to be.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Its windows change before anything else happens.
    pub windows: bool,
    /// There is no connection, but a datagram socket.
    pub datagrams: bool,
    /// The host calls; else it listens.
    pub calls: bool,
    /// The peer offers timestamps.
    pub stamps: bool,
    /// The peer offers SACK.
    pub sack: bool,
    ecn: bool,
}

/// The headings of an exchange.
pub fn headings(seed: u64, random: &mut Random) -> (Exchange, Opening) {
    let mut chance = |percent| random.public_below(100) < percent;
    let mut host = Vec::new();
    if chance(15) {
        host.push(("timestamps", "off"));
    }
    if chance(10) {
        host.push(("sack", "off"));
    }
    if chance(10) {
        host.push(("scaling", "off"));
    }
    let ecn = chance(15);
    if chance(10) {
        host.push(("ecn", "request"));
    }
    if chance(20) {
        host.push(("congestion", "newreno"));
    }
    let opening = Opening {
        datagrams: seed % OF_DATAGRAMS == OF_DATAGRAMS - 1,
        windows: seed % OF_WINDOWS.0 == OF_WINDOWS.1,
        calls: chance(40),
        stamps: chance(50),
        sack: chance(60),
        ecn,
    };
    let exchange = Exchange { seed, is_ipv6: chance(15), host, steps: Vec::new(), tail: Duration::ZERO };
    (exchange, opening)
}

/// Opens a connection, or tries.
pub fn open(drawing: &mut Drawing<'_>, opening: Opening) -> Result<(), String> {
    if drawing.percent(5) {
        drawing.call(Duration::ZERO, CallKind::Datagrams { port: DATAGRAM_PORT })?;
        drawing.datagrams = true;
    }
    if opening.calls { call(drawing, opening) } else { listen(drawing, opening) }
}

fn syn(drawing: &mut Drawing<'_>, opening: Opening) -> Segment {
    let mss = drawing.pick(&[Some(1000), Some(1000), Some(1460), Some(536), Some(100), Some(9000), None]);
    // Few segments, so that what the congestion window allows is the same in bytes and in segments.
    drawing.most_written = 3 * usize::from(mss.unwrap_or(536));
    let scale = drawing.pick(&[None, Some(0), Some(2), Some(7)]);
    let said = |is_said: bool| if is_said { Presence::Is(()) } else { Presence::Unsaid };
    let window = drawing.pick(&[65_535, 65_535, 65_535, 30_000, 2000]);
    let flags = if opening.ecn { Flags::SYN | Flags::ECE | Flags::CWR } else { Flags::SYN };
    Segment {
        peer: 1,
        flags,
        window: Some(window..=window),
        options: Options {
            mss: mss.map_or(Presence::Unsaid, Presence::Is),
            scale: scale.map_or(Presence::Unsaid, Presence::Is),
            sack_permitted: said(opening.sack),
            timestamps: said(opening.stamps),
            ..Options::default()
        },
        ..Segment::default()
    }
}

fn listen(drawing: &mut Drawing<'_>, opening: Opening) -> Result<(), String> {
    drawing.call(Duration::ZERO, CallKind::Listen { backlog: None })?;
    let syn = syn(drawing, opening);
    drawing.put(Duration::ZERO, Step::In(syn.clone()))?;
    if drawing.percent(12) {
        let gap = drawing.gap();
        if drawing.percent(30) {
            drawing.put(gap, Step::In(syn))?;
        } else {
            steps::disturb(drawing, gap)?;
        }
    }
    let mut answer = drawing.segment();
    if drawing.percent(20) {
        let bytes = drawing.pick(&[1, 100, 1000]);
        answer.sequence = None;
        answer.data = Some((1, 1 + bytes));
    } else if drawing.percent(5) {
        answer.flags = answer.flags.union(Flags::FIN);
    }
    if drawing.percent(10) {
        let window = drawing.pick(&[0, 500, 8000]);
        answer.window = Some(window..=window);
    }
    let gap = drawing.gap().min(Duration::from_millis(130));
    drawing.put(gap, Step::In(answer))?;
    if drawing.percent(8) {
        let gap = drawing.gap();
        steps::disturb(drawing, gap)?;
    }
    accept(drawing)
}
/// The application takes the connection, where there is one.
fn accept(drawing: &mut Drawing<'_>) -> Result<(), String> {
    drawing.call(Duration::ZERO, CallKind::Accept)?;
    drawing.held = true;
    Ok(())
}

fn call(drawing: &mut Drawing<'_>, opening: Opening) -> Result<(), String> {
    if drawing.percent(35) {
        drawing.call(Duration::ZERO, CallKind::Socket { port: None })?;
        let (option, value) = steps::option(drawing, true);
        drawing.call(Duration::ZERO, CallKind::Set { option: option.into(), value: value.into() })?;
    }
    drawing.call(Duration::ZERO, CallKind::Connect { peer: 1, data: None })?;
    drawing.held = true;
    if drawing.percent(15) {
        let gap = drawing.gap();
        steps::disturb(drawing, gap)?;
    }
    let mut answer = syn(drawing, opening);
    if drawing.percent(96) {
        answer.flags = answer.flags.difference(Flags::CWR).union(Flags::ACK);
        answer.acknowledgment = Some(drawing.pick(&[1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 2]));
    }
    let gap = drawing.gap().min(Duration::from_millis(130));
    drawing.put(gap, Step::In(answer))
}
