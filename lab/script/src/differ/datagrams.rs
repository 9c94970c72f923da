//! Exchanges of datagrams: one socket, two peers, and what routers say of what was sent.

use super::draw::Drawing;
use super::sent::Sent;
use super::steps;
use crate::language::{
    About, Assertion, CallKind, Datagram, Expect, Icmp, IcmpKind, Must, SocketCall, Step, call_words,
};
use crate::side::DATAGRAM_PORT;
use inhost_base::Duration;

/// A port of the host's at which nobody is.
const EMPTY_PORT: u16 = 9001;
/// The MTU of the wire.
const MTU_BYTES: usize = 1500;
/// Datagrams that make a burst: more than a host that counts its answers gives at once.
const BURST: u32 = 9;

/// A datagram socket, seen from the wire and from its application.
#[derive(Clone, Debug, Default)]
pub struct DatagramView {
    is_open: bool,
    was_open: bool,
    is_met: bool,
    /// Every error is asked for.
    reports: bool,
    /// Routers may fragment, over IPv4.
    may_be_cut: bool,
    /// The peer that it is connected to.
    pub connected: Option<u8>,
    /// Of each datagram that the host sent: the peer, and the length of its packet where it left whole.
    pub sent: Vec<(Option<u8>, Option<usize>)>,
}

impl DatagramView {
    /// The state, where there is any.
    pub fn state(&self) -> Option<String> {
        let name = match (self.is_open, self.connected) {
            (false, _) if self.was_open => "UDP closed",
            (false, _) if self.is_met => "UDP nobody",
            (false, _) => return None,
            (true, Some(_)) => "UDP connected",
            (true, None) => "UDP bound",
        };
        Some(if self.reports { format!("{name} reporting") } else { name.to_owned() })
    }
    /// Takes note of a packet of the host's that is not a segment.
    pub fn sent(&mut self, sent: &Sent) {
        let field = |name: &str| sent.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value);
        let number = |name: &str| field(name).and_then(|value| value.parse::<usize>().ok());
        match sent.other.as_deref() {
            Some("datagram") => {
                let peer = number("peer").and_then(|peer| u8::try_from(peer).ok());
                self.sent.push((peer, number("length").map(|bytes| bytes + 8)));
            }
            Some("fragment") if field("part").is_some_and(|part| part.starts_with("0..")) => {
                self.sent.push((None, None));
            }
            _ => {}
        }
    }
    /// Takes note of a step.
    pub fn happened(&mut self, step: &Step, came: Option<&str>) {
        if matches!(step, Step::InDatagram(_)) {
            self.is_met = true;
        }
        let Step::SocketCall(call) = step else { return };
        match &call.what {
            CallKind::Datagrams { .. } if came == Some("ok") => (self.is_open, self.was_open) = (true, true),
            CallKind::Close if call.on == "datagrams" => (self.is_open, self.connected) = (false, None),
            CallKind::Connect { peer, .. } if call.on == "datagrams" && came == Some("ok") => {
                self.connected = Some(*peer);
            }
            CallKind::Set { option, value } if option == "report-errors" => self.reports |= value == "on",
            CallKind::Set { option, value } if option == "dont-fragment" => self.may_be_cut |= value == "off",
            _ => {}
        }
    }
    /// Classification of the peer's datagram.
    pub fn describe(&self, datagram: &Datagram) -> String {
        let mut text = "in datagram".to_owned();
        let right = datagram.bytes + 8;
        let length = datagram.length.map(usize::from);
        for (is_so, word) in [
            (datagram.bytes == 0, " empty"),
            (datagram.port != DATAGRAM_PORT, " elsewhere"),
            (self.connected.is_some_and(|peer| peer != datagram.peer), " of a stranger"),
            (datagram.no_checksum, " nosum"),
            (datagram.bad_checksum, " badsum"),
            (length.is_some_and(|length| length < 8), " without length"),
            (length.is_some_and(|length| (8..right).contains(&length)), " shorter"),
            (length.is_some_and(|length| length > right), " longer"),
        ] {
            if is_so {
                text.push_str(word);
            }
        }
        text
    }
    /// What a sent datagram that a message quotes is.
    pub fn describe_sent(&self, which: u32) -> String {
        let (peer, whole) = match self.sent.get(which.wrapping_sub(1) as usize) {
            Some(&(peer, whole)) => (peer, whole.is_some()),
            None => return "nothing".into(),
        };
        let mut text = if whole { "a datagram" } else { "fragments" }.to_owned();
        if let (Some(peer), Some(connected)) = (peer, self.connected)
            && peer != connected
        {
            text.push_str(" to another");
        }
        text
    }
    /// A call that sends, with lengths by their kind.
    pub fn describe_call(&self, what: &CallKind) -> String {
        let words = call_words(what);
        let plain: Vec<&str> = words.split(' ').filter(|word| word.parse::<u64>().is_err()).collect();
        let length = match what {
            CallKind::Send { bytes: 0, .. } => " empty",
            CallKind::Send { bytes, .. } if *bytes > 65_507 => " beyond all",
            CallKind::Send { bytes, .. } if bytes + 28 > MTU_BYTES => " long",
            _ => "",
        };
        format!("call {}{length}", plain.join(" "))
    }
}

/// Draws an exchange of datagrams.
pub fn draw(drawing: &mut Drawing<'_>, steps: u32) -> Result<(), String> {
    if drawing.percent(92) {
        drawing.call(Duration::ZERO, CallKind::Datagrams { port: DATAGRAM_PORT })?;
        if drawing.percent(15) {
            set(drawing, Duration::ZERO)?;
        }
        if drawing.percent(50) {
            connect(drawing, Duration::ZERO)?;
        }
    }
    if drawing.percent(6) {
        for _ in 0..BURST {
            let step = Step::InDatagram(Datagram { port: EMPTY_PORT, ..plain(drawing) });
            drawing.put(Duration::ZERO, step)?;
        }
    }
    for _ in 0..=steps {
        if drawing.has_time() {
            let gap = drawing.gap();
            step(drawing, gap)?;
        }
    }
    Ok(())
}

fn step(drawing: &mut Drawing<'_>, gap: Duration) -> Result<(), String> {
    let is_open = drawing.view.datagrams.is_open;
    match drawing.below(100) {
        0..30 if is_open => send(drawing, gap),
        30..46 if is_open => {
            let bytes = drawing.pick(&[1, 50, 100, 1000, 100_000, 100_000]);
            drawing.call(gap, CallKind::Receive { bytes })
        }
        46..62 if is_open => router(drawing, gap),
        62..68 if is_open => set(drawing, gap),
        68..73 if is_open => on(drawing, gap, CallKind::Error),
        // On Linux a reported error stays in the error queue, and the socket ready, until that is read.
        73..81 if is_open && !drawing.view.datagrams.reports => {
            let field = drawing.pick(&["readable", "error", "writable"]);
            let must = Must::Word("yes".into());
            let look = Assertion { on: "datagrams".into(), ready: true, field: field.into(), must };
            drawing.put(gap, Step::Assert(look))
        }
        81..85 if is_open => connect(drawing, gap),
        85..87 if is_open => on(drawing, gap, CallKind::Close),
        87..88 => drawing.call(gap, CallKind::Datagrams { port: DATAGRAM_PORT }),
        _ => {
            let datagram = datagram(drawing);
            drawing.put(gap, Step::InDatagram(datagram))
        }
    }
}

fn on(drawing: &mut Drawing<'_>, gap: Duration, what: CallKind) -> Result<(), String> {
    let call = SocketCall { what, on: "datagrams".to_owned(), names: None, expect: Expect::Any };
    drawing.put(gap, Step::SocketCall(call))
}
fn connect(drawing: &mut Drawing<'_>, gap: Duration) -> Result<(), String> {
    let peer = drawing.pick(&[1, 1, 1, 2]);
    on(drawing, gap, CallKind::Connect { peer, data: None })
}
fn set(drawing: &mut Drawing<'_>, gap: Duration) -> Result<(), String> {
    let (option, mut value) = drawing.pick(&[
        ("report-errors", "on"),
        ("report-errors", "on"),
        ("report-errors", "off"),
        ("dont-fragment", "on"),
        ("dont-fragment", "on"),
        ("dont-fragment", "off"),
        ("hop-limit", "7"),
        ("differentiated-services", "10"),
    ]);
    if option == "report-errors" && !drawing.view.datagrams.sent.is_empty() {
        // What is sent before is not looked after.
        value = "off";
    }
    on(drawing, gap, CallKind::Set { option: option.into(), value: value.into() })
}
fn send(drawing: &mut Drawing<'_>, gap: Duration) -> Result<(), String> {
    let fitting = MTU_BYTES - if drawing.exchange.is_ipv6 { 48 } else { 28 };
    let sizes =
        [0, 1, 100, 100, 600, 1000, 1400, fitting, fitting + 1, 2000, 3000, 9000, 65_507, 65_508, 70_000];
    let bytes = drawing.pick(&sizes);
    let is_told = match drawing.view.datagrams.connected {
        Some(_) => drawing.percent(20),
        // Either of two errors may be reported.
        None => bytes > 65_507 || drawing.percent(90),
    };
    let to = is_told.then(|| drawing.pick(&[1, 1, 2]));
    drawing.call(gap, CallKind::Send { bytes, to })
}

fn plain(drawing: &mut Drawing<'_>) -> Datagram {
    Datagram {
        bytes: drawing.pick(&[0, 1, 100, 100, 500, 1000, 1400]),
        peer: drawing.pick(&[1, 1, 1, 2]),
        port: DATAGRAM_PORT,
        no_checksum: false,
        bad_checksum: false,
        length: None,
    }
}
fn datagram(drawing: &mut Drawing<'_>) -> Datagram {
    let mut datagram = plain(drawing);
    let right = datagram.bytes as u16 + 8;
    match drawing.below(100) {
        0..15 => datagram.port = EMPTY_PORT,
        15..24 => datagram.bad_checksum = true,
        24..34 => datagram.no_checksum = true,
        34..46 => {
            let lengths = [0, 4, 7, 8, right - right.min(9) + 8, right + 1, right + 100, right / 2 + 4];
            datagram.length = Some(drawing.pick(&lengths));
        }
        _ => {}
    }
    datagram
}

/// A router's message, mostly about something that was sent.
fn router(drawing: &mut Drawing<'_>, gap: Duration) -> Result<(), String> {
    let count = drawing.view.datagrams.sent.len() as u32;
    let is_ipv6 = drawing.exchange.is_ipv6;
    let is_met = drawing.view.datagrams.sent.iter().any(|(peer, _)| *peer != Some(2));
    if count == 0 || (!is_met && drawing.percent(20)) {
        let kind = steps::icmp_kind(drawing);
        let kind = if matches!(kind, IcmpKind::TooBig(_)) { IcmpKind::TooBig(1300) } else { kind };
        let message = Icmp { kind, about: About::Datagram(DATAGRAM_PORT), peer: 1 };
        return drawing.put(gap, Step::InIcmp(message));
    }
    let which = count - if drawing.percent(75) { 0 } else { drawing.below(count) };
    let kind = match steps::icmp_kind(drawing) {
        IcmpKind::TooBig(_) => {
            let header = if is_ipv6 { 40 } else { 20 };
            let limits: &[u32] = if is_ipv6 { &[1280, 1300, 1400] } else { &[600, 1000, 1300, 1400] };
            let mtu = drawing.pick(limits);
            let view = &drawing.view.datagrams;
            let (peer, bytes) = view.sent[which as usize - 1];
            // What would have passed was not refused, nor what routers may cut. A connected socket of Linux drops what
            // is about another than its peer; RFC 1191 §3 says that the estimate of that path must fall.
            let is_possible = bytes.is_some_and(|bytes| bytes + header > mtu as usize)
                && (is_ipv6 || !view.may_be_cut)
                && (view.connected.is_none() || view.connected == peer);
            if is_possible { IcmpKind::TooBig(mtu) } else { IcmpKind::PortUnreachable }
        }
        kind => kind,
    };
    drawing.put(gap, Step::InIcmp(Icmp { kind, about: About::Sent(which), peer: 1 }))
}
