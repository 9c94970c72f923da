//! A packet that a host sent, as the fields that are compared.

use crate::drive::{Arrived, What};
use crate::flow::Seen;
use crate::language::{ecn_word, icmp_word};
use crate::mail::SeenDatagram;
use crate::packet::{self, Ends};
use crate::stream::{self, From};
use inhost_base::{Instant, Sequence};
use inhost_wire::ipv4::Ipv4View;
use inhost_wire::ipv6::Ipv6View;
use inhost_wire::tcp::Flags;

/// A packet of the host's.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// When.
    pub at: Instant,
    /// What it is, where it is not a segment: `datagram`, `icmp port-unreachable`.
    pub other: Option<String>,
    /// The first number.
    pub sequence: i64,
    /// After the last number, SYN and FIN counted.
    pub end: i64,
    /// Bytes of data.
    pub data_bytes: usize,
    /// The acknowledgment number.
    pub acknowledgment: Option<i64>,
    /// Its flags, PSH too.
    pub flags: Flags,
    /// Whether the window is closed.
    pub closed: bool,
    /// Compared fields: names and values.
    pub fields: Vec<(&'static str, String)>,
    /// As a line of a script, for a person.
    pub text: String,
}

impl Sent {
    /// The packet that `arrived` between these ends.
    pub fn new(arrived: &Arrived, ends: Ends) -> Sent {
        match &arrived.what {
            What::Segment(seen) => Sent::segment(arrived, seen, ends),
            other => Sent::other(arrived, other, ends),
        }
    }
    /// A datagram, a part of one, or an ICMP error.
    fn other(arrived: &Arrived, what: &What, ends: Ends) -> Sent {
        let (shape, mut fields) = match what {
            What::Datagram(seen) => ("datagram".to_owned(), datagram_fields(seen)),
            What::Fragment(seen) => {
                let mut fields = vec![
                    ("part", format!("{}..{}", seen.said.from, seen.said.to)),
                    ("more", seen.said.more.to_string()),
                    ("fits", seen.fits.to_string()),
                ];
                fields.extend(seen.whole.iter().flat_map(datagram_fields));
                ("fragment".to_owned(), fields)
            }
            What::IcmpError(seen) => {
                let fields = vec![
                    ("quotes", seen.quotes.to_string()),
                    ("quoted", seen.is_quoted.to_string()),
                    ("checksum", seen.checksum_ok.to_string()),
                ];
                (format!("icmp {}", icmp_word(seen.kind)), fields)
            }
            What::Segment(_) => Default::default(),
        };
        let (lifetime, fragments) = ip_fields(&arrived.packet, ends);
        fields.extend([("lifetime", lifetime), ("fragments", fragments)]);
        fields.push(("service", service(&arrived.packet, ends)));
        Sent {
            at: arrived.at,
            other: Some(shape),
            sequence: 0,
            end: 0,
            data_bytes: 0,
            acknowledgment: None,
            flags: Flags::empty(),
            closed: false,
            fields,
            text: arrived.text.clone(),
        }
    }
    fn segment(arrived: &Arrived, seen: &Seen, ends: Ends) -> Sent {
        let mut sent = Sent {
            at: arrived.at,
            other: None,
            sequence: seen.sequence,
            end: seen.sequence,
            data_bytes: 0,
            acknowledgment: seen.acknowledgment,
            flags: seen.flags,
            closed: seen.window_bytes == 0,
            fields: Vec::new(),
            text: arrived.text.clone(),
        };
        let Some(host) = packet::read(&arrived.packet, ends) else { return sent };
        let flags = seen.flags;
        let segment = &host.segment;
        sent.data_bytes = segment.payload.len();
        sent.end += (sent.data_bytes as i64) + i64::from(flags.syn()) + i64::from(flags.fin());
        let start = seen.sequence + i64::from(flags.syn());
        let is_stream = flags.rst()
            || stream::first_wrong(From::Host, (start - 1).max(0) as u64, segment.payload).is_none();
        let options = &segment.options;
        // How many bytes a kernel offers follows from how it counts the memory of packets.
        let window = match (flags.rst(), sent.closed) {
            (true, _) => "any",
            (_, true) => "closed",
            (_, false) => "open",
        };
        let (lifetime, fragments) = ip_fields(&arrived.packet, ends);
        // What no connection sends has no number that is counted from a first one.
        let counts = !flags.contains(Flags::RST | Flags::ACK) || segment.sequence != Sequence(0);
        sent.fields = vec![
            ("flags", flag_words(flags.difference(Flags::PSH))),
            ("push", flags.contains(Flags::PSH).to_string()),
            ("seq", if counts { seen.sequence.to_string() } else { "none".to_owned() }),
            ("length", sent.data_bytes.to_string()),
            ("ack", text(seen.acknowledgment)),
            ("window", window.to_owned()),
            ("urgent", if flags.urg() { segment.urgent_pointer } else { 0 }.to_string()),
            ("mss", text(options.mss)),
            ("scale", text(options.window_scale)),
            ("sackok", options.sack_permitted.to_string()),
            ("timestamps", options.timestamps.is_some().to_string()),
            ("echo", text(options.timestamps.map(|(_, echo)| echo))),
            // A connection that is over has nothing more to report.
            ("sack", if flags.rst() { String::new() } else { format!("{:?}", seen.sack) }),
            ("fast-open", format!("{:?}", options.fast_open.map(|cookie| cookie.len()))),
            ("ecn", ecn_word(host.ecn).to_owned()),
            ("lifetime", lifetime),
            ("fragments", fragments),
            ("checksum", host.checksum_ok.to_string()),
            ("stream", is_stream.to_string()),
        ];
        sent
    }
    /// Its kind, without numbers: `ACK data`, `RST`, `FIN ACK`.
    pub fn shape(&self) -> String {
        if let Some(other) = &self.other {
            return other.clone();
        }
        let mut text = flag_words(self.flags.difference(Flags::PSH));
        if self.data_bytes > 0 {
            text.push_str(" data");
        }
        text
    }
    /// The names of the fields in which the two are different. Where PSH stands in what is sent again, from before
    /// `host_next`, or in the middle of what was written, up to `written`, follows from how a host keeps its data, and is
    /// not compared.
    pub fn different_fields(&self, other: &Sent, host_next: i64, written: i64) -> Vec<&'static str> {
        let end = self.end - i64::from(self.flags.fin());
        let again = self.sequence < host_next || end != written;
        let pairs = self.fields.iter().zip(&other.fields);
        let compared = pairs.filter(|(one, _)| !(again && one.0 == "push"));
        compared.filter(|(one, two)| one.1 != two.1).map(|(one, _)| one.0).collect()
    }
}

fn datagram_fields(seen: &SeenDatagram) -> Vec<(&'static str, String)> {
    let said = &seen.said;
    vec![
        ("length", said.bytes.to_string()),
        ("peer", said.peer.to_string()),
        ("port", said.port.to_string()),
        ("which", text(seen.which)),
        ("checksum", seen.checksum.text().to_owned()),
    ]
}

/// The differentiated services and the mark of an IP header.
fn service(packet: &[u8], ends: Ends) -> String {
    let bits = match ends.host.is_ipv4() {
        true => Ipv4View::new(packet).map(|view| view.dscp_ecn()),
        false => Ipv6View::new(packet).map(|view| view.dscp_ecn()),
    };
    bits.map_or_else(|_| String::new(), |bits| format!("{bits:#04x}"))
}

/// The time to live, and whether routers may cut the packet.
fn ip_fields(packet: &[u8], ends: Ends) -> (String, String) {
    if ends.host.is_ipv4() {
        match Ipv4View::new(packet) {
            Ok(view) => (view.time_to_live().to_string(), (!view.dont_fragment()).to_string()),
            Err(_) => Default::default(),
        }
    } else {
        let limit = Ipv6View::new(packet).map(|view| view.hop_limit().to_string());
        (limit.unwrap_or_default(), String::new())
    }
}

fn text<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

/// The flags in the order of scripts.
pub(super) fn flag_words(flags: Flags) -> String {
    let names = [
        (Flags::SYN, "SYN"),
        (Flags::FIN, "FIN"),
        (Flags::RST, "RST"),
        (Flags::PSH, "PSH"),
        (Flags::ACK, "ACK"),
        (Flags::URG, "URG"),
        (Flags::ECE, "ECE"),
        (Flags::CWR, "CWR"),
    ];
    let words: Vec<&str> =
        names.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, name)| *name).collect();
    if words.is_empty() { "no flags".into() } else { words.join(" ") }
}
