//! Connection state as seen from the wire, and the classification of arrivals.

use super::datagrams::DatagramView;
use super::sent::{Sent, flag_words};
use crate::language::{About, CallKind, IcmpKind, Presence, Segment, Step, call_words, icmp_word};
use inhost_wire::Ecn;
use inhost_wire::tcp::Flags;

/// A connection of the host under test, seen from the wire.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The datagram socket, in an exchange of datagrams or beside a connection.
    pub datagrams: DatagramView,
    listens: bool,
    calls: bool,
    accepted: bool,
    let_go: bool,
    over: bool,
    /// A message came about a datagram that never was.
    blind: bool,
    /// A hint of a router's ended the call, on Linux.
    given_up: bool,
    /// A reset behind all that came, holes or not, ended the connection, on Linux.
    reset_ahead: bool,
    host_syn: bool,
    peer_syn: bool,
    /// After the last number that the host has sent.
    pub host_next: i64,
    /// After the last byte that the application has written, counted as numbers are.
    pub written: i64,
    /// After the last that the peer has acknowledged.
    pub host_acknowledged: i64,
    /// The first number that the peer has not sent without a gap.
    pub peer_next: i64,
    /// Pieces beyond a gap.
    ahead: Vec<(i64, i64)>,
    host_fin: Option<i64>,
    peer_fin: Option<i64>,
    /// The peer's FIN was taken before the host's was sent.
    peer_fin_first: bool,
    window_closed: bool,
    /// Both sides sent timestamps.
    stamps: bool,
    peer_stamps: bool,
    /// Data was sent again.
    repaired: bool,
    /// No round trip was measured since data was last sent again.
    unmeasured: bool,
    /// From here on nothing was sent again.
    once_from: i64,
    /// A segment with a timestamp had an acknowledgment out of range.
    doubtful_stamp: bool,
}

impl View {
    fn is_synchronized(&self) -> bool {
        self.host_syn && self.peer_syn && self.host_acknowledged > 0
    }
    /// Whether the peer's FIN has been taken.
    pub fn peer_has_ended(&self) -> bool {
        self.peer_fin.is_some_and(|fin| self.peer_next > fin)
    }
    /// Whether data was sent again, and no round trip was measured since.
    pub fn is_unmeasured(&self) -> bool {
        self.unmeasured
    }
    /// Whether data was sent again.
    pub fn has_repaired(&self) -> bool {
        self.repaired
    }
    /// The state, as RFC 9293 names it, and whether no application holds the connection (any more).
    pub fn state(&self) -> String {
        if !self.listens
            && !self.calls
            && let Some(state) = self.datagrams.state()
        {
            return state;
        }
        let fin_sent = self.host_fin.is_some();
        let fin_acknowledged = self.host_fin.is_some_and(|fin| self.host_acknowledged > fin);
        let name = match (fin_sent, self.peer_has_ended()) {
            _ if self.given_up => "GIVEN-UP",
            _ if self.reset_ahead => "RESET-AHEAD",
            _ if self.over => "CLOSED",
            _ if !self.host_syn && !self.calls => {
                if self.listens {
                    "LISTEN"
                } else {
                    "CLOSED"
                }
            }
            _ if !self.peer_syn => "SYN-SENT",
            _ if !self.is_synchronized() => "SYN-RECEIVED",
            (false, false) => "ESTABLISHED",
            (false, true) => "CLOSE-WAIT",
            (true, false) if fin_acknowledged => "FIN-WAIT-2",
            (true, false) => "FIN-WAIT-1",
            (true, true) => match (self.peer_fin_first, fin_acknowledged) {
                (true, true) => "CLOSED",
                (true, false) => "LAST-ACK",
                (false, true) => "TIME-WAIT",
                (false, false) => "CLOSING",
            },
        };
        let name = if self.blind { format!("{name} blind") } else { name.to_owned() };
        match (self.let_go, self.accepted || self.calls || !self.host_syn) {
            (true, _) => format!("{name} let-go"),
            (_, false) => format!("{name} waiting"),
            _ => name,
        }
    }

    /// Whether a segment came that had to be discarded, and that Linux takes a timestamp from.
    pub fn has_doubtful_stamp(&self) -> bool {
        self.doubtful_stamp
    }
    /// Takes note of what the host sent.
    pub fn sent(&mut self, sent: &Sent) {
        if sent.other.is_some() {
            return self.datagrams.sent(sent);
        }
        if sent.flags.contains(Flags::RST) {
            self.over |= sent.flags.ack() || sent.sequence == self.host_next;
            return;
        }
        self.host_syn |= sent.flags.syn();
        if sent.flags.fin() && self.host_fin.is_none() {
            self.host_fin = Some(sent.end - 1);
            self.peer_fin_first = self.peer_has_ended();
        }
        if sent.data_bytes > 0 && sent.sequence < self.host_next {
            (self.repaired, self.unmeasured) = (true, true);
            self.once_from = self.once_from.max(sent.end.min(self.host_next));
        }
        if sent.flags.syn() {
            self.stamps = sent.fields.iter().any(|(name, value)| *name == "timestamps" && value == "true");
        }
        self.host_next = self.host_next.max(sent.end);
    }
    /// Takes note of what a call has written.
    pub fn wrote(&mut self, step: &Step, came: Option<&str>) {
        let bytes: Option<i64> =
            came.and_then(|came| came.strip_suffix(" bytes taken")).and_then(|n| n.parse().ok());
        if let (Step::SocketCall(_), Some(bytes)) = (step, bytes) {
            self.written = self.written.max(1) + bytes;
        }
    }
    /// Takes note of a step.
    pub fn happened(&mut self, step: &Step, came: Option<&str>) {
        self.datagrams.happened(step, came);
        match step {
            Step::In(segment) => self.arrived(segment),
            // The kernel is not sent it.
            Step::Wait => self.blind = true,
            Step::InIcmp(icmp) => {
                let About::Segment(about) = icmp.about else {
                    self.blind |= matches!(icmp.about, About::Datagram(_));
                    return;
                };
                let opens = self.calls && !self.is_synchronized() && self.host_fin.is_none();
                let calls = opens && self.host_syn && (0..=self.host_next).contains(&about);
                match icmp.kind {
                    IcmpKind::TooBig(_) | IcmpKind::SourceQuench => {}
                    IcmpKind::PortUnreachable | IcmpKind::ProtocolUnreachable => self.over |= calls,
                    // Linux gives a call up for any of these (RFC 5461 §4.1).
                    _ => self.given_up |= calls,
                }
            }
            // That is for the view of datagrams.
            Step::SocketCall(call) if call.on == "datagrams" => {}
            Step::SocketCall(call) => {
                let went = came == Some("ok");
                match call.what {
                    CallKind::Listen { .. } => self.listens = true,
                    CallKind::Connect { .. } => self.calls = true,
                    CallKind::Accept => self.accepted |= went,
                    CallKind::Close | CallKind::Abort if call.on != "listener" => self.let_go = true,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    fn arrived(&mut self, segment: &Segment) {
        if segment.bad_checksum {
            return;
        }
        let answers = segment.flags.ack() && segment.acknowledgment == Some(1);
        if segment.flags.contains(Flags::RST) {
            self.over |= if self.peer_syn { self.start(segment) == self.peer_next } else { answers };
            self.reset_ahead |= self.peer_syn && !self.over && self.is_at_sack_edge(segment);
            return;
        }
        if self.calls && !self.peer_syn && !(segment.flags.syn() && (answers || !segment.flags.ack())) {
            return;
        }
        let is_again = segment.flags.syn() && self.peer_syn;
        if segment.flags.syn() && !self.peer_syn {
            self.peer_stamps = segment.options.timestamps == Presence::Is(());
            self.peer_syn = true;
            self.peer_next = 1;
        }
        if self.is_beside_handshake(segment) {
            return;
        }
        if let Some(number) = segment.acknowledgment.filter(|_| segment.flags.ack()) {
            self.doubtful_stamp |= number < self.host_acknowledged || number > self.host_next;
        }
        if let Some(number) = segment.acknowledgment.filter(|_| segment.flags.ack())
            && number <= self.host_next
        {
            let is_new = number > self.host_acknowledged;
            if is_new && (number > self.once_from || (self.stamps && self.peer_stamps)) {
                self.unmeasured = false;
            }
            self.host_acknowledged = self.host_acknowledged.max(number);
        }
        if let Some(window) = &segment.window {
            self.window_closed = *window.start() == 0;
        }
        let (start, end) = self.span(segment);
        if segment.flags.fin() && self.peer_fin.is_none() && end > self.peer_next {
            self.peer_fin = Some(end - 1);
        }
        let is_believed = segment.acknowledgment.is_none_or(|number| (0..=self.host_next).contains(&number));
        if end > start && segment.flags.ack() && is_believed && !is_again {
            self.ahead.push((start, end));
            self.ahead.sort_unstable();
            for &(start, end) in &self.ahead {
                if start <= self.peer_next {
                    self.peer_next = self.peer_next.max(end);
                }
            }
            let next = self.peer_next;
            self.ahead.retain(|&(_, end)| end > next);
        }
    }
    /// Whether a segment is not a part of the handshake, for it lies before that, or beyond any first window.
    fn is_beside_handshake(&self, segment: &Segment) -> bool {
        let is_old = self.span(segment).1 < self.peer_next;
        let is_beyond = self.start(segment) > self.peer_next + i64::from(u16::MAX);
        !segment.flags.syn() && !self.is_synchronized() && (is_old || is_beyond)
    }
    fn start(&self, segment: &Segment) -> i64 {
        let usual = if segment.flags.syn() { 0 } else { self.peer_next };
        segment.sequence.or(segment.data.map(|(from, _)| from)).unwrap_or(usual)
    }
    /// The numbers that a segment of the peer's takes.
    fn span(&self, segment: &Segment) -> (i64, i64) {
        let start = self.start(segment);
        let data = segment.data.map_or(0, |(from, to)| to - from);
        (start, start + data + i64::from(segment.flags.syn()) + i64::from(segment.flags.fin()))
    }

    /// What a step is to the connection as it stands, without numbers.
    pub fn describe(&self, step: &Step) -> String {
        match step {
            Step::In(segment) => self.describe_segment(segment),
            Step::InIcmp(icmp) => {
                let about = match icmp.about {
                    About::Segment(about) => about,
                    About::Datagram(_) => return format!("icmp {} of a datagram", icmp_word(icmp.kind)),
                    About::Sent(which) => {
                        let of = self.datagrams.describe_sent(which);
                        return format!("icmp {} of {of}", icmp_word(icmp.kind));
                    }
                };
                let is_out = self.host_acknowledged <= about && about < self.host_next;
                format!("icmp {}{}", icmp_word(icmp.kind), if is_out { "" } else { " of nothing in flight" })
            }
            Step::InDatagram(datagram) => self.datagrams.describe(datagram),
            Step::SocketCall(call) if matches!(call.what, CallKind::Send { .. }) => {
                self.datagrams.describe_call(&call.what)
            }
            Step::SocketCall(call) => {
                let words = call_words(&call.what);
                // Numbers of bytes make no class of their own; values of options do.
                let is_counted = matches!(
                    call.what,
                    CallKind::Write { .. } | CallKind::Read { .. } | CallKind::Receive { .. }
                );
                let plain = words.split(' ').filter(|word| !is_counted || word.parse::<u64>().is_err());
                format!("call {}", plain.collect::<Vec<_>>().join(" "))
            }
            Step::Assert(said) => format!("poll {}", said.field),
            _ => "nothing".into(),
        }
    }
    /// Whether it is a reset with the number behind all that has come, holes or not.
    fn is_at_sack_edge(&self, segment: &Segment) -> bool {
        let most = self.ahead.iter().map(|&(_, end)| end).max();
        segment.flags.contains(Flags::RST) && most == Some(self.start(segment))
    }
    fn describe_segment(&self, segment: &Segment) -> String {
        let mut text = format!("in {}", flag_words(segment.flags));
        let (start, end) = self.span(segment);
        let place = match start.cmp(&self.peer_next) {
            std::cmp::Ordering::Equal => "",
            std::cmp::Ordering::Greater => " ahead",
            std::cmp::Ordering::Less if end > self.peer_next => " overlapping",
            std::cmp::Ordering::Less => " old",
        };
        if segment.data.is_some() {
            text.push_str(" data");
        }
        text.push_str(place);
        if let Some(number) = segment.acknowledgment {
            text.push_str(match number {
                _ if number > self.host_next => " ack-beyond",
                _ if number > self.host_acknowledged => " ack-new",
                _ if number < self.host_acknowledged => " ack-old",
                _ => "",
            });
        }
        if let Some(window) = &segment.window {
            match (*window.start() == 0, self.window_closed) {
                (true, false) => text.push_str(" closes-window"),
                (false, true) => text.push_str(" opens-window"),
                _ => {}
            }
        }
        let options = &segment.options;
        let ecn = segment.ecn == Some(Ecn::CongestionExperienced);
        for (is_said, words) in [
            (ecn, " marked"),
            (options.sack != Presence::Unsaid, " sack"),
            (options.timestamps == Presence::Absent, " no-timestamp"),
            (options.timestamp_value.is_some() && !segment.flags.syn(), " other-timestamp"),
            (segment.bad_checksum, " bad-checksum"),
            (self.is_at_sack_edge(segment), " at-sack-edge"),
        ] {
            if is_said {
                text.push_str(words);
            }
        }
        text
    }
}
