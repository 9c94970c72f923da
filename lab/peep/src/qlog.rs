//! Frames and events in qlog's manner: JSON text sequences (RFC 7464) of draft-ietf-quic-qlog-main-schema, with TCP events.
//!
//! The first record is the log's head ([`Log`]), each further one an [`Entry`]. A connection's entries have its group: the
//! ends, those of the host first where the source tells which they are.

use inhost_explain::capture::{Frame, Segment, dissect};
use inhost_wire::tcp::Flags;
use serde::Serialize;

use crate::events::Event;

/// What a record of a JSON text sequence begins with.
const RECORD: char = '\u{1e}';
/// The events of this log: the names that begin with `tcp:`, `ip:` and `host:`.
const EVENT_SCHEMA: &str = "urn:inhost:qlog:tcp-events-00";

/// A record of a log.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Record {
    /// The first one.
    Log(Log),
    /// All others.
    Entry(Entry),
}

/// The head of a log.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Log {
    /// The form of the whole.
    pub file_schema: &'static str,
    /// How it is written.
    pub serialization_format: &'static str,
    /// What made it.
    pub title: &'static str,
    /// The one trace of this log.
    pub trace: TraceHead,
}

/// What all entries have in common.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceHead {
    /// See there.
    pub common_fields: CommonFields,
    /// Where the events were seen.
    pub vantage_point: VantagePoint,
    /// What names and data of entries mean.
    pub event_schemas: [&'static str; 1],
}

/// How times are meant.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommonFields {
    /// `relative_to_epoch`.
    pub time_format: &'static str,
    /// The epoch.
    pub reference_time: ReferenceTime,
}

/// Where times begin.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReferenceTime {
    /// `system`.
    pub clock_type: &'static str,
    /// 1970.
    pub epoch: &'static str,
}

/// Where events were seen.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VantagePoint {
    /// `unknown`: a host is client of one connection and server of another, and a capture may be of neither.
    #[serde(rename = "type")]
    pub kind: &'static str,
}

/// Something that happened.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// Milliseconds since 1970.
    pub time: f64,
    /// What, with its name.
    #[serde(flatten)]
    pub what: What,
    /// The connection: `LOCAL-REMOTE`, or `SOURCE-DESTINATION` of its first segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_id: Option<String>,
    /// The host whose event it is, or the file that has the frame, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// The events. Numbers of sequences are those of the wire.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "name", content = "data")]
pub enum What {
    /// A segment left.
    #[serde(rename = "tcp:segment_sent")]
    Sent(Box<Fields>),
    /// A segment came in.
    #[serde(rename = "tcp:segment_received")]
    Received(Box<Fields>),
    /// A segment passed; the source does not tell in which direction.
    #[serde(rename = "tcp:segment_seen")]
    Seen(Box<Fields>),
    /// A connection opened.
    #[serde(rename = "tcp:connection_started")]
    Started {
        /// Who called: `local` or `remote`.
        initiator: &'static str,
    },
    /// A connection is over.
    #[serde(rename = "tcp:connection_closed")]
    Closed {
        /// Bytes that were sent and acknowledged.
        sent_bytes: u64,
        /// Bytes that came in order.
        received_bytes: u64,
    },
    /// The state of RFC 9293 §3.3.2 changed.
    #[serde(rename = "tcp:state_updated")]
    State {
        /// Before.
        old: String,
        /// From now on.
        new: String,
    },
    /// Data was sent again.
    #[serde(rename = "tcp:segment_retransmitted")]
    Retransmitted {
        /// Its first number.
        sequence_number: u32,
        /// Bytes.
        payload_bytes: u32,
        /// Why, in words.
        trigger: String,
    },
    /// Windows and round trip changed.
    #[serde(rename = "tcp:metrics_updated")]
    Metrics(Metrics),
    /// What is waited for changed.
    #[serde(rename = "tcp:wait_updated")]
    Wait {
        /// By the sending side.
        sending: String,
        /// By the receiving side.
        receiving: String,
    },
    /// A packet went no further.
    #[serde(rename = "ip:packet_dropped")]
    Dropped {
        /// Number of the link where it came in.
        link: u32,
        /// Why, in words.
        trigger: String,
    },
    /// Something else, in words.
    #[serde(rename = "host:message")]
    Message {
        /// See above.
        message: String,
    },
}

/// A segment.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fields {
    /// Number of its frame in the source, from 1.
    pub frame: u64,
    /// Sender, as `ADDRESS:PORT`.
    pub source: String,
    /// Receiver.
    pub destination: String,
    /// Number of its first byte.
    pub sequence_number: u32,
    /// The number that is expected next, where ACK is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledgment_number: Option<u32>,
    /// Control bits that are set: `syn`, `ack`, `fin`, `rst`, `psh`, `urg`, `ece`, `cwr`.
    pub flags: Vec<&'static str>,
    /// The window field; it is not scaled.
    pub window: u16,
    /// Bytes of payload.
    pub payload_bytes: u32,
    /// Largest segment that is taken, of a SYN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u16>,
    /// Bits by which windows are shifted, of a SYN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_scale: Option<u8>,
    /// Own timestamp and the peer's that it echoes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<[u32; 2]>,
    /// Blocks of selective acknowledgments: first number, and the one behind the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack: Option<Vec<[u32; 2]>>,
}

/// What a host tells of its sender; none where it tells nothing.
#[derive(Clone, Default, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metrics {
    /// Congestion window in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_window_bytes: Option<u64>,
    /// The peer's window in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_window_bytes: Option<u64>,
    /// Slow-start threshold in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_start_threshold_bytes: Option<u64>,
    /// Smoothed round trip in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothed_round_trip_ms: Option<f64>,
}

/// The head of a log, as text.
pub fn head() -> String {
    record(&Record::Log(Log {
        file_schema: "urn:ietf:params:qlog:file:sequential",
        serialization_format: "application/qlog+json-seq",
        title: "inhost",
        trace: TraceHead {
            common_fields: CommonFields {
                time_format: "relative_to_epoch",
                reference_time: ReferenceTime { clock_type: "system", epoch: "1970-01-01T00:00:00.000Z" },
            },
            vantage_point: VantagePoint { kind: "unknown" },
            event_schemas: [EVENT_SCHEMA],
        },
    }))
}

/// A frame as text; none where it is not a TCP segment. `host` is its source, where there are several.
pub fn frame(frame: &Frame<'_>, host: Option<&str>) -> Option<String> {
    let (flow, segment) = dissect(frame).ok()?;
    let (source, destination) = (flow.source.to_string(), flow.destination.to_string());
    let is_inbound = frame.is_inbound;
    let (near, far) = match is_inbound {
        Some(true) => (&destination, &source),
        Some(false) => (&source, &destination),
        // Both directions are one group.
        None if flow.source <= flow.destination => (&source, &destination),
        None => (&destination, &source),
    };
    let group_id = Some(format!("{near}-{far}"));
    let fields = Box::new(Fields { source, destination, ..fields(&segment) });
    let what = match is_inbound {
        Some(true) => What::Received(fields),
        Some(false) => What::Sent(fields),
        None => What::Seen(fields),
    };
    Some(record(&Record::Entry(Entry {
        time: ms(frame.at_ns),
        what,
        group_id,
        host: host.map(str::to_owned),
    })))
}

/// An event as text.
pub fn event(event: &Event) -> String {
    let group_id = event.ends.as_ref().map(|[local, remote]| format!("{local}-{remote}"));
    let host = (!event.host.is_empty() && event.host != "-").then(|| event.host.clone());
    let what = what(&event.words).unwrap_or_else(|| What::Message { message: event.words.clone() });
    record(&Record::Entry(Entry { time: ms(event.at_ns), what, group_id, host }))
}

fn record(record: &Record) -> String {
    // Nothing in a record fails to be written.
    format!("{RECORD}{}\n", serde_json::to_string(record).unwrap_or_default())
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn fields(segment: &Segment) -> Fields {
    let (flags, options) = (segment.flags, &segment.options);
    let named = [
        (Flags::SYN, "syn"),
        (Flags::ACK, "ack"),
        (Flags::FIN, "fin"),
        (Flags::RST, "rst"),
        (Flags::PSH, "psh"),
        (Flags::URG, "urg"),
        (Flags::ECE, "ece"),
        (Flags::CWR, "cwr"),
    ];
    let sack: Vec<_> = options.sack.iter().map(|(from, to)| [from.0, to.0]).collect();
    Fields {
        frame: segment.frame,
        source: String::new(),
        destination: String::new(),
        sequence_number: segment.sequence,
        acknowledgment_number: flags.ack().then_some(segment.acknowledgment),
        flags: named.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, name)| *name).collect(),
        window: segment.window,
        payload_bytes: segment.payload_bytes,
        mss_bytes: options.mss,
        window_scale: options.window_scale,
        timestamps: options.timestamps.map(|(value, echo)| [value, echo]),
        sack: (!sack.is_empty()).then_some(sack),
    }
}

/// What the words of a flight recorder mean; none for others.
fn what(words: &str) -> Option<What> {
    if let Some(caller) = words.strip_prefix("connected; ") {
        let initiator = if caller == "we called" { "local" } else { "remote" };
        Some(What::Started { initiator })
    } else if let Some(rest) = words.strip_prefix("over after ") {
        let (_, bytes) = rest.split_once("; ")?;
        let (sent, received) = bytes.split_once(" bytes sent, ")?;
        let received = received.strip_suffix(" received")?;
        Some(What::Closed { sent_bytes: sent.parse().ok()?, received_bytes: received.parse().ok()? })
    } else if let Some(change) = words.strip_prefix("state ") {
        let (old, new) = change.split_once(" to ")?;
        Some(What::State { old: old.to_owned(), new: new.to_owned() })
    } else if let Some(rest) = words.strip_prefix("retransmitted ") {
        let (data, trigger) = rest.split_once(": ")?;
        let (payload, sequence) = data.split_once(" bytes from ")?;
        Some(What::Retransmitted {
            sequence_number: sequence.parse().ok()?,
            payload_bytes: payload.parse().ok()?,
            trigger: trigger.to_owned(),
        })
    } else if let Some(figures) = words.strip_prefix("figures ") {
        Some(What::Metrics(metrics(figures)))
    } else if let Some(rest) = words.strip_prefix("waits: sending ") {
        let (sending, receiving) = rest.split_once(", receiving ")?;
        Some(What::Wait { sending: sending.to_owned(), receiving: receiving.to_owned() })
    } else if let Some(rest) = words.strip_prefix("dropped on link ") {
        let (link, trigger) = rest.split_once(": ")?;
        Some(What::Dropped { link: link.parse().ok()?, trigger: trigger.to_owned() })
    } else {
        None
    }
}

fn metrics(figures: &str) -> Metrics {
    let value = |name: &str| -> Option<u64> {
        let mut all = figures.split(' ').filter_map(|figure| figure.split_once('='));
        all.find(|(of, _)| *of == name)?.1.parse().ok()
    };
    Metrics {
        congestion_window_bytes: value("cwnd"),
        send_window_bytes: value("window"),
        slow_start_threshold_bytes: value("ssthresh"),
        smoothed_round_trip_ms: value("rtt_us").map(|us| us as f64 / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr, Key, LinkId, Sequence};
    use inhost_event::{
        CauseChanged, Connected, Disconnected, Drop, Event as Happened, FrameDropped, ReceiveCause,
        Retransmitted, RetransmittedWhy, SendCause, Sink, StateChanged, TcpState, WindowChanged,
    };
    use inhost_explain::capture::{LinkType, Reader};
    use inhost_record::{Config, Recorder, Selection, Writer};

    fn ends() -> (Endpoint, Endpoint) {
        let end = |last, port| Endpoint::new(Ipv4Addr::new(10, 0, 0, last), port);
        (end(1, 23), end(2, 9))
    }

    /// What a flight recorder writes of `happened`, read again.
    fn written(happened: Happened) -> String {
        let mut recorder = Recorder::new(Config::default());
        recorder.add_link(LinkId(1), "memory", false);
        let ends = ends();
        recorder.record(Instant::ZERO, happened);
        let (mut pool, mut batch) = (inhost_buf::Pool::new(1 << 20), inhost_buf::Batch::new());
        let mut packet = pool.take(20).unwrap();
        packet.append(&[0x45; 20]);
        batch.push(packet).unwrap();
        recorder.received(LinkId(1), &batch, Instant::ZERO);
        let mut writer = Writer::new(Vec::new()).unwrap();
        recorder.write(&mut writer, &mut 0, &Selection::default(), &|_| Some(ends)).unwrap();
        let file = writer.into_inner();
        let mut reader = Reader::new(&file[..]).unwrap();
        let frame = reader.next_frame().unwrap().unwrap();
        crate::events(frame.comment.unwrap(), frame.at_ns).iter().map(event).collect()
    }

    #[test]
    fn each_event_of_a_recorder_has_its_name() {
        let socket = Key::from_bits(7);
        let (local, remote) = ends();
        let (from, to) = (TcpState::SynReceived, TcpState::Established);
        let tells = |happened: Happened, name: &str, data: serde_json::Value| {
            let text = written(happened);
            let value: serde_json::Value = serde_json::from_str(text.trim_start_matches(RECORD)).unwrap();
            assert_eq!((&value["name"], &value["data"]), (&name.into(), &data), "{text}");
        };
        tells(
            Happened::Connected(Connected { socket, local, remote, active: false }),
            "tcp:connection_started",
            serde_json::json!({"initiator": "remote"}),
        );
        tells(
            Happened::StateChanged(StateChanged { socket, from, to }),
            "tcp:state_updated",
            serde_json::json!({"old": "SYN-RECEIVED", "new": "ESTABLISHED"}),
        );
        tells(
            Happened::Retransmitted(Retransmitted {
                socket,
                sequence: Sequence(7),
                payload_bytes: 8,
                why: RetransmittedWhy::Timeout,
            }),
            "tcp:segment_retransmitted",
            serde_json::json!({"sequence_number": 7, "payload_bytes": 8, "trigger": "the timer expired"}),
        );
        tells(
            Happened::WindowChanged(WindowChanged {
                socket,
                congestion_window_bytes: 14_600,
                slow_start_threshold_bytes: 7300,
                send_window_bytes: 65_535,
                smoothed_round_trip: Duration::from_micros(1500),
            }),
            "tcp:metrics_updated",
            serde_json::json!({
                "congestion_window_bytes": 14_600, "send_window_bytes": 65_535,
                "slow_start_threshold_bytes": 7300, "smoothed_round_trip_ms": 1.5,
            }),
        );
        tells(
            Happened::CauseChanged(CauseChanged {
                socket,
                send: SendCause::CongestionWindow,
                receive: ReceiveCause::ALL[0],
            }),
            "tcp:wait_updated",
            serde_json::json!({
                "sending": SendCause::CongestionWindow.to_string(),
                "receiving": ReceiveCause::ALL[0].to_string(),
            }),
        );
        tells(
            Happened::FrameDropped(FrameDropped { link: LinkId(1), why: Drop::Checksum }),
            "ip:packet_dropped",
            serde_json::json!({"link": 1, "trigger": "bad checksum"}),
        );
        tells(
            Happened::Disconnected(Disconnected {
                socket,
                age: Duration::from_millis(10),
                sent_bytes: 1,
                received_bytes: 2,
            }),
            "tcp:connection_closed",
            serde_json::json!({"sent_bytes": 1, "received_bytes": 2}),
        );
    }

    #[test]
    fn a_segment_has_its_fields() {
        // 10.0.0.1:80 answers 10.0.0.2:9 with SYN+ACK, and says that it takes segments of 1,460 bytes.
        let mut packet = vec![0x45, 0, 0, 44, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0, 80, 0, 9, 0, 0, 0, 5, 0, 0, 0, 6, 0x60, 0x12, 0, 9, 0, 0, 0, 0, 2, 4, 5, 0xb4]);
        let seen = Frame {
            number: 3,
            at_ns: 2_500_000,
            interface: 0,
            link: LinkType::Ip,
            bytes: &packet,
            original_bytes: 44,
            is_inbound: Some(true),
            comment: None,
        };
        let text = frame(&seen, None).unwrap();
        let value: serde_json::Value = serde_json::from_str(text.trim_start_matches(RECORD)).unwrap();
        assert_eq!(
            value,
            serde_json::json!({
                "time": 2.5, "name": "tcp:segment_received", "group_id": "10.0.0.2:9-10.0.0.1:80",
                "data": {
                    "frame": 3, "source": "10.0.0.1:80", "destination": "10.0.0.2:9", "sequence_number": 5,
                    "acknowledgment_number": 6, "flags": ["syn", "ack"], "window": 9, "payload_bytes": 0,
                    "mss_bytes": 1460,
                },
            })
        );
    }
}
