//! Steps as they are written: what a program made, for a person to read and to keep as a script.

use super::{
    About, Assertion, CallKind, Cookie, Datagram, Echo, Expect, Fragment, Icmp, IcmpError, IcmpKind, Must,
    SocketCall,
};
use super::{Options, Presence, Segment, Step, words};
use crate::side::DATAGRAM_PORT;
use inhost_wire::Ecn;
use inhost_wire::tcp::Flags;
use std::fmt::{Display, Write};

/// A step as a line of a script, without a time before it.
pub fn line(step: &Step) -> String {
    match step {
        Step::In(said) => format!("in  {}", segment(said)),
        Step::InIcmp(said) => format!("in  icmp {}", icmp(said)),
        Step::InDatagram(said) => format!("in  datagram {}", datagram(said)),
        Step::Out(said) => format!("out {}", segment(said)),
        Step::OutDatagram(said) => format!("out datagram {}", datagram(said)),
        Step::OutFragment(said) => format!("out fragment {}", fragment(said)),
        Step::OutIcmp(said) => format!("out icmp {}", icmp_error(said)),
        Step::Wait => "wait".into(),
        Step::Skip => "skip".into(),
        Step::SocketCall(said) => format!("call {}", call(said)),
        Step::Assert(said) => format!("assert {}", assertion(said)),
    }
}

/// Words with a space between them.
#[derive(Default)]
struct Line(String);

impl Line {
    fn word(&mut self, word: impl Display) {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        let _ = write!(self.0, "{word}");
    }
    fn field(&mut self, name: &str, value: impl Display) {
        self.word(name);
        self.word(value);
    }
    fn span(&mut self, name: &str, (from, to): (i64, i64)) {
        self.field(name, format_args!("{from}..{to}"));
    }
}

fn segment(said: &Segment) -> String {
    let mut line = Line::default();
    for (flag, name) in words::FLAGS {
        if said.flags.contains(flag) {
            line.word(name);
        }
    }
    match said.push {
        Some(true) => line.word("PSH"),
        Some(false) => line.word("no PSH"),
        None => {}
    }
    let is_usual = !said.flags.syn() && !said.flags.rst();
    match (said.flags.contains(Flags::ACK), is_usual) {
        (true, false) => line.word("ACK"),
        (false, true) => line.word("no ACK"),
        _ => {}
    }
    if let Some(sequence) = said.sequence.filter(|_| said.data.is_none() || said.flags.syn()) {
        line.field("seq", sequence);
    }
    if let Some(data) = said.data {
        line.span("data", data);
    }
    if let Some(number) = said.acknowledgment {
        line.field("ack", number);
    }
    if let Some(window) = &said.window {
        match (*window.start(), *window.end()) {
            (0, u32::MAX) => line.field("win", "any"),
            (least, most) if least == most => line.field("win", least),
            (least, most) => line.field("win", format_args!("{least}..{most}")),
        }
    }
    if let Some(urgent) = said.urgent_pointer {
        line.field("urgent", urgent);
    }
    if let Some(ecn) = said.ecn {
        line.field("ecn", ecn_word(ecn));
    }
    options(&mut line, &said.options);
    if let Some(number) = said.initial_sequence {
        line.field("isn", number);
    }
    if said.bad_checksum {
        line.word("badsum");
    }
    if said.forged {
        line.word("forged");
    }
    if said.peer != 1 {
        line.field("peer", said.peer);
    }
    line.0
}

/// The mark of an IP header.
pub(crate) fn ecn_word(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotCapable => "none",
        Ecn::Capable0 => "ect0",
        Ecn::Capable1 => "ect1",
        Ecn::CongestionExperienced => "ce",
    }
}

fn options(line: &mut Line, said: &Options) {
    option(line, "mss", &said.mss, |mss| mss.to_string());
    option(line, "scale", &said.scale, |scale| scale.to_string());
    if !matches!(said.sack_permitted, Presence::Unsaid) {
        line.word(if said.sack_permitted == Presence::Absent { "no sackok" } else { "sackok" });
    }
    match (&said.timestamps, said.timestamp_value) {
        (Presence::Unsaid, _) => {}
        (Presence::Absent, _) => line.word("no ts"),
        (_, Some(value)) => line.field("ts", value),
        _ => line.word("ts"),
    }
    match said.timestamp_echo {
        Some(Echo::Value(value)) => line.field("ecr", value),
        Some(Echo::Earlier(millis)) => line.field("ecr", format_args!("last-{millis}")),
        None => {}
    }
    option(line, "sack", &said.sack, |blocks| {
        blocks.iter().map(|(from, to)| format!("{from}..{to}")).collect::<Vec<_>>().join(" ")
    });
    option(line, "fo", &said.fast_open, |cookie| match cookie {
        Cookie::Request => "request".into(),
        Cookie::Known => "cookie".into(),
        Cookie::Bytes(bytes) => hexadecimal(bytes),
    });
    if !said.raw.is_empty() {
        line.field("raw", hexadecimal(&said.raw));
    }
}
fn option<T>(line: &mut Line, name: &str, said: &Presence<T>, value: impl Fn(&T) -> String) {
    match said {
        Presence::Unsaid => {}
        Presence::Absent => line.field("no", name),
        Presence::Any => line.field(name, "any"),
        Presence::Is(said) => line.field(name, value(said)),
    }
}
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn datagram(said: &Datagram) -> String {
    let mut line = Line::default();
    line.word(said.bytes);
    if said.port != DATAGRAM_PORT {
        line.field("port", said.port);
    }
    if let Some(length) = said.length {
        line.field("length", length);
    }
    for (is_said, word) in [(said.no_checksum, "nosum"), (said.bad_checksum, "badsum")] {
        if is_said {
            line.word(word);
        }
    }
    if said.peer != 1 {
        line.field("peer", said.peer);
    }
    line.0
}
fn fragment(said: &Fragment) -> String {
    let mut line = Line::default();
    line.word(format_args!("{}..{}", said.from, said.to));
    if said.more {
        line.word("more");
    }
    line.0
}
fn icmp_error(said: &IcmpError) -> String {
    let mut line = Line::default();
    icmp_kind(&mut line, said.kind);
    if let Some(bytes) = said.quotes {
        line.field("quotes", bytes);
    }
    line.0
}

fn icmp(said: &Icmp) -> String {
    let mut line = Line::default();
    icmp_kind(&mut line, said.kind);
    match said.about {
        About::Segment(number) => line.field("about", number),
        About::Datagram(port) => line.field("about datagram", port),
        About::Sent(which) => line.field("about sent", which),
    }
    if said.peer != 1 {
        line.field("peer", said.peer);
    }
    line.0
}
fn icmp_kind(line: &mut Line, kind: IcmpKind) {
    line.word(icmp_word(kind));
    if let IcmpKind::TooBig(mtu) = kind {
        line.field("mtu", mtu);
    }
}
/// The kind of a router's message.
pub(crate) fn icmp_word(kind: IcmpKind) -> &'static str {
    match kind {
        IcmpKind::NetworkUnreachable => "network-unreachable",
        IcmpKind::HostUnreachable => "host-unreachable",
        IcmpKind::ProtocolUnreachable => "protocol-unreachable",
        IcmpKind::PortUnreachable => "port-unreachable",
        IcmpKind::Prohibited => "prohibited",
        IcmpKind::TimeExceeded => "time-exceeded",
        IcmpKind::ParameterProblem => "parameter-problem",
        IcmpKind::SourceQuench => "source-quench",
        IcmpKind::TooBig(_) => "too-big",
    }
}

/// A socket call, without its socket and result.
pub(crate) fn call_words(what: &CallKind) -> String {
    let mut line = Line::default();
    match what {
        CallKind::Socket { port } => {
            line.word("socket");
            if let Some(port) = port {
                line.field("port", port);
            }
        }
        CallKind::Datagrams { port } => line.field("datagrams port", port),
        CallKind::Send { bytes, to } => {
            line.field("send", bytes);
            if let Some(peer) = to {
                line.field("to", peer);
            }
        }
        CallKind::Receive { bytes } => line.field("receive", bytes),
        CallKind::Connect { peer, data } => {
            line.word("connect");
            if *peer != 1 {
                line.field("peer", peer);
            }
            if let Some(bytes) = data {
                line.field("data", bytes);
            }
        }
        CallKind::Listen { backlog: None } => line.word("listen"),
        CallKind::Listen { backlog: Some(backlog) } => line.field("listen backlog", backlog),
        CallKind::Accept => line.word("accept"),
        CallKind::Write { bytes, urgent, more } => {
            line.field("write", bytes);
            for (is_said, word) in [(*urgent, "urgent"), (*more, "more")] {
                if is_said {
                    line.word(word);
                }
            }
        }
        CallKind::Read { bytes } => line.field("read", bytes),
        CallKind::Shutdown => line.word("shutdown"),
        CallKind::Close => line.word("close"),
        CallKind::Abort => line.word("abort"),
        CallKind::Set { option, value } => line.field("set", format_args!("{option} {value}")),
        CallKind::Error => line.word("error"),
    }
    line.0
}
fn call(said: &SocketCall) -> String {
    let mut line = Line(call_words(&said.what));
    let (on, names) = super::call::usual_names(&said.what);
    if said.on != on {
        line.field("on", &said.on);
    }
    if said.names.as_deref() != names
        && let Some(name) = &said.names
    {
        line.field("as", name);
    }
    match (&said.expect, &said.what) {
        (Expect::Done, CallKind::Read { .. } | CallKind::Receive { .. }) => line.word("expect ok"),
        (Expect::Bytes(bytes), CallKind::Read { bytes: wanted } | CallKind::Receive { bytes: wanted })
            if bytes == wanted => {}
        (Expect::Done, _) => {}
        (Expect::Cut(bytes, whole), _) => line.field("expect", format_args!("{bytes} of {whole}")),
        (Expect::Bytes(bytes), _) => line.field("expect", bytes),
        (Expect::Any, _) => line.word("expect any"),
        (Expect::End, _) => line.word("expect end"),
        (Expect::Fails(failure), _) => line.field("expect", failure.text()),
    }
    line.0
}

fn assertion(said: &Assertion) -> String {
    let mut line = Line::default();
    line.word(format_args!("{}.{}", if said.ready { "ready" } else { "info" }, said.field));
    match &said.must {
        Must::Word(word) => line.field("==", word),
        Must::NotWord(word) => line.field("!=", word),
        Must::Between(least, most) if least == most => line.field("==", least),
        Must::Between(least, most) => line.field("in", format_args!("{least}..{most}")),
        Must::Not(number) => line.field("!=", number),
    }
    if said.on != super::call::MAIN {
        line.field("on", &said.on);
    }
    line.0
}
