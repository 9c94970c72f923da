//! The steps after the opening: segments that fit and segments that do not, router's messages, and calls.

use super::draw::Drawing;
use crate::language::{About, Assertion, CallKind, Icmp, IcmpKind, Must, Presence, Segment, Step};
use crate::side::DATAGRAM_PORT;
use inhost_base::Duration;
use inhost_wire::Ecn;
use inhost_wire::tcp::Flags;

/// How much of what is drawn, of a hundred.
const CALLS: u32 = 42;
const ICMP: u32 = 4;

/// A step, `gap` after the one before.
pub fn draw(drawing: &mut Drawing<'_>, gap: Duration) -> Result<(), String> {
    let kind = drawing.below(100);
    if kind < CALLS && drawing.held {
        call(drawing, gap)
    } else if kind < CALLS + ICMP || (drawing.datagrams && drawing.percent(40)) {
        let step = icmp(drawing);
        drawing.put(gap, step)
    } else {
        let segment = segment(drawing);
        drawing.put(gap, Step::In(segment))
    }
}

/// A router's message about a datagram that never was, and a segment as long as one may be.
pub fn blind(drawing: &mut Drawing<'_>) -> Result<(), String> {
    let kind = IcmpKind::TooBig(drawing.pick(&[600, 1000]));
    let message = Icmp { kind, about: About::Datagram(DATAGRAM_PORT), peer: 1 };
    drawing.put(Duration::ZERO, Step::InIcmp(message))?;
    drawing.call(Duration::ZERO, CallKind::Write { bytes: 1400, urgent: false, more: false })
}

/// Windows that change while nothing is acknowledged, in segments with newer numbers and with older ones, and what is
/// written then: which of them counts.
pub fn windows(drawing: &mut Drawing<'_>) -> Result<(), String> {
    for _ in 0..2 {
        let mut segment = drawing.segment();
        let bytes = drawing.pick(&[0, 100, 500, 2000, 8000, 30_000]);
        segment.window = Some(bytes..=bytes);
        match drawing.below(4) {
            0 => {}
            1 => segment.sequence = Some(drawing.view.peer_next - 1),
            _ => {
                segment.sequence = None;
                segment.data = Some((drawing.view.peer_next, drawing.view.peer_next + 100));
            }
        }
        drawing.put(Duration::ZERO, Step::In(segment))?;
    }
    let bytes = drawing.pick(&[300, 1000, 3000]).min(drawing.most_written);
    drawing.call(Duration::ZERO, CallKind::Write { bytes, urgent: false, more: false })
}

/// Something that does not belong into a handshake.
pub fn disturb(drawing: &mut Drawing<'_>, gap: Duration) -> Result<(), String> {
    if drawing.percent(30) {
        let step = icmp(drawing);
        return drawing.put(gap, step);
    }
    let mut segment = segment(drawing);
    if drawing.percent(30) {
        segment.flags = drawing.pick(&[
            Flags::RST,
            Flags::RST | Flags::ACK,
            Flags::SYN,
            Flags::SYN | Flags::ACK,
            Flags::FIN | Flags::ACK,
            Flags::empty(),
        ]);
        segment.acknowledgment = segment.flags.ack().then(|| drawing.below(3).into());
    }
    drawing.put(gap, Step::In(segment))
}

fn segment(drawing: &mut Drawing<'_>) -> Segment {
    let mut segment = drawing.segment();
    match drawing.below(100) {
        0..26 => data(drawing, &mut segment),
        26..50 => acknowledge(drawing, &mut segment),
        50..64 => end(drawing, &mut segment),
        64..73 => reset(drawing, &mut segment),
        73..78 => synchronize(drawing, &mut segment),
        78..84 => {
            data(drawing, &mut segment);
            segment.flags |= Flags::URG;
            segment.urgent_pointer = Some(drawing.pick(&[0, 1, 1, 2, 10, 100, 1000]));
        }
        84..89 => {
            // What asks whether a connection lives (RFC 9293 §3.8.4).
            segment.sequence = Some(drawing.view.peer_next - 1);
            if drawing.percent(40) {
                segment.data = Some((drawing.view.peer_next - 1, drawing.view.peer_next));
                segment.sequence = None;
            }
        }
        89..94 => {
            data(drawing, &mut segment);
            segment.ecn = Some(drawing.pick(&[Ecn::CongestionExperienced, Ecn::Capable0]));
            segment.flags |= drawing.pick(&[Flags::empty(), Flags::CWR, Flags::ECE]);
        }
        _ => odd(drawing, &mut segment),
    }
    if drawing.percent(12) {
        window(drawing, &mut segment);
    }
    if drawing.percent(10) && segment.flags.ack() {
        segment.acknowledgment = Some(number(drawing));
    }
    segment
}

/// An acknowledgment number, of what was sent or of what was not.
fn number(drawing: &mut Drawing<'_>) -> i64 {
    let (from, to) = (drawing.view.host_acknowledged, drawing.view.host_next);
    let within = from + i64::from(drawing.below((to - from).clamp(0, 100_000) as u32 + 1));
    drawing.pick(&[to, to, within, within, from, from, from - 1, from - 100, to + 1, to + 1000, to + 100_000])
}
fn window(drawing: &mut Drawing<'_>, segment: &mut Segment) {
    let bytes = drawing.pick(&[0, 0, 100, 500, 1000, 2000, 8000, 65_535]);
    segment.window = Some(bytes..=bytes);
}
fn data(drawing: &mut Drawing<'_>, segment: &mut Segment) {
    let next = drawing.view.peer_next;
    let bytes = drawing.pick(&[1, 1, 10, 100, 100, 536, 1000, 1000, 1400]);
    let start = match drawing.below(100) {
        0..60 => next,
        60..78 => next + drawing.pick(&[1, 10, 100, 1000]),
        78..90 => next - drawing.pick(&[1, 5, 50, 100, 1000]),
        90..96 => next - bytes,
        // Beyond any window: where its edge is, is not compared.
        _ => next + drawing.pick(&[200_000, 1_000_000]),
    };
    let start = start.max(1);
    segment.sequence = None;
    segment.data = Some((start, start + bytes));
    if drawing.percent(40) {
        segment.push = Some(true);
    }
}
fn acknowledge(drawing: &mut Drawing<'_>, segment: &mut Segment) {
    segment.acknowledgment = Some(number(drawing));
    if drawing.percent(25) {
        window(drawing, segment);
    }
    let (from, to) = (drawing.view.host_acknowledged, drawing.view.host_next);
    if drawing.sack && to - from > 1 && drawing.percent(40) {
        let cut = from + 1 + i64::from(drawing.below((to - from - 1).min(100_000) as u32));
        segment.acknowledgment = Some(from);
        segment.options.sack = Presence::Is(vec![(cut, to)]);
    }
}
fn end(drawing: &mut Drawing<'_>, segment: &mut Segment) {
    segment.flags |= Flags::FIN;
    match drawing.below(10) {
        0..6 => {}
        6..9 => data(drawing, segment),
        _ => segment.sequence = Some(drawing.view.peer_next + drawing.pick(&[1, 100, -1])),
    }
}
fn reset(drawing: &mut Drawing<'_>, segment: &mut Segment) {
    let next = drawing.view.peer_next;
    segment.flags = drawing.pick(&[Flags::RST, Flags::RST | Flags::ACK]);
    segment.acknowledgment = segment.flags.ack().then(|| number(drawing));
    segment.sequence =
        Some(drawing.pick(&[next, next, next, next + 1, next + 1000, next - 1, next + 100_000]));
}
fn synchronize(drawing: &mut Drawing<'_>, segment: &mut Segment) {
    let next = drawing.view.peer_next;
    segment.flags = drawing.pick(&[Flags::SYN, Flags::SYN, Flags::SYN | Flags::ACK]);
    segment.acknowledgment = segment.flags.ack().then(|| number(drawing));
    segment.sequence = Some(drawing.pick(&[0, 0, next, next + 1, next + 1000, -1000, 1_000_000]));
    segment.options.mss = Presence::Is(1000);
}
/// What no peer of good sense sends.
fn odd(drawing: &mut Drawing<'_>, segment: &mut Segment) {
    data(drawing, segment);
    match drawing.below(6) {
        0 => segment.bad_checksum = true,
        1 => {
            segment.flags = Flags::empty();
            segment.acknowledgment = None;
        }
        2 if drawing.stamps => segment.options.timestamps = Presence::Absent,
        3 if drawing.stamps => {
            segment.options.timestamps = Presence::Is(());
            segment.options.timestamp_value = Some(drawing.pick(&[1, 500, 999]));
        }
        4 => segment.options.sack = Presence::Is(vec![(1, 101)]),
        _ => {
            segment.data = None;
            segment.sequence = Some(drawing.view.peer_next);
            segment.flags = drawing.pick(&[
                Flags::empty(),
                Flags::FIN,
                Flags::FIN | Flags::SYN,
                Flags::RST | Flags::FIN,
                Flags::URG,
                Flags::FIN | Flags::URG,
            ]);
            segment.acknowledgment = None;
        }
    }
}

/// An ICMP error.
pub fn icmp_kind(drawing: &mut Drawing<'_>) -> IcmpKind {
    let kind = drawing.pick(&[
        IcmpKind::NetworkUnreachable,
        IcmpKind::HostUnreachable,
        IcmpKind::ProtocolUnreachable,
        IcmpKind::PortUnreachable,
        IcmpKind::Prohibited,
        IcmpKind::TimeExceeded,
        IcmpKind::ParameterProblem,
        IcmpKind::SourceQuench,
        IcmpKind::TooBig(1300),
        IcmpKind::TooBig(1300),
        IcmpKind::TooBig(600),
    ]);
    // There is no such message in ICMPv6.
    match kind {
        IcmpKind::SourceQuench if drawing.exchange.is_ipv6 => IcmpKind::HostUnreachable,
        kind => kind,
    }
}
fn icmp(drawing: &mut Drawing<'_>) -> Step {
    let kind = icmp_kind(drawing);
    if drawing.datagrams && drawing.percent(40) {
        let kind = IcmpKind::TooBig(drawing.pick(&[600, 1000, 1300]));
        return Step::InIcmp(Icmp { kind, about: About::Datagram(DATAGRAM_PORT), peer: 1 });
    }
    let (from, to) = (drawing.view.host_acknowledged, drawing.view.host_next);
    let about = drawing.pick(&[from, from, from, to - 1, to + 1000, from - 1]);
    Step::InIcmp(Icmp { kind, about: About::Segment(about.max(0)), peer: 1 })
}

fn call(drawing: &mut Drawing<'_>, gap: Duration) -> Result<(), String> {
    let what = match drawing.below(100) {
        0..36 => CallKind::Write {
            bytes: drawing.pick(&[1, 10, 100, 100, 500, 1000, 1000, 1460, 2000, 3000]).min(drawing.room()),
            urgent: drawing.percent(7),
            more: drawing.percent(7),
        },
        36..52 => CallKind::Read { bytes: drawing.pick(&[1, 50, 1000, 100_000, 100_000]) },
        52..62 => CallKind::Shutdown,
        62..72 => CallKind::Close,
        72..75 => CallKind::Abort,
        75..80 => CallKind::Error,
        80..90 => {
            let (option, value) = option(drawing, false);
            CallKind::Set { option: option.into(), value: value.into() }
        }
        _ => {
            let field = drawing.pick(&["readable", "peer_closed", "error", "urgent"]);
            let must = Must::Word("yes".into());
            let look = Assertion { on: "main".into(), ready: true, field: field.into(), must };
            return drawing.put(gap, Step::Assert(look));
        }
    };
    drawing.held &= !matches!(what, CallKind::Close | CallKind::Abort);
    drawing.call(gap, what)
}

/// An option and its value.
pub fn option(drawing: &mut Drawing<'_>, before_use: bool) -> (&'static str, &'static str) {
    const ANY: [(&str, &str); 9] = [
        ("nagle", "off"),
        ("nagle", "on"),
        ("cork", "on"),
        ("cork", "off"),
        ("linger", "0s"),
        ("quick-acknowledgment", "on"),
        ("quick-acknowledgment", "off"),
        ("user-timeout", "400ms"),
        ("keep-alive", "1s/1s/1"),
    ];
    if before_use && drawing.percent(30) { ("mss", "700") } else { drawing.pick(&ANY) }
}
