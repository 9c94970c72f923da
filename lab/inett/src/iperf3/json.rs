//! The JSON of the control connection: parameters and results.

use serde::{Deserialize, Deserializer, Serialize};

use super::{ProtocolError, code};
use crate::distribution::Distribution;
use crate::face::Counts;
use crate::plan::{self, Direction, Kind, Plan, Protocol};

/// iperf3 writes numbers as doubles; large ones have an exponent.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    // The conversion saturates.
    f64::deserialize(from).map(|value| value as i64)
}

/// Flags are `true`, or 1.
fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Flag {
        Bool(bool),
        Number(f64),
    }
    Ok(match Flag::deserialize(from)? {
        Flag::Bool(is_set) => is_set,
        Flag::Number(value) => value != 0.0,
    })
}

fn is_false(flag: &bool) -> bool {
    !flag
}
fn is_zero(value: &i64) -> bool {
    *value == 0
}
/// iperf3 wants the number 1 for some flags.
fn one<S: serde::Serializer>(flag: &bool, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u8(u8::from(*flag))
}

/// What the client asks for. Names are those of iperf3.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Parameters {
    /// TCP.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub tcp: bool,
    /// UDP.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub udp: bool,
    /// SCTP, which we do not have.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub sctp: bool,
    /// Warm-up, in seconds.
    #[serde(deserialize_with = "number")]
    pub omit: i64,
    /// Duration in seconds; 0 where bytes or blocks end it.
    #[serde(deserialize_with = "number")]
    pub time: i64,
    /// Bytes that end it; 0 for none.
    #[serde(deserialize_with = "number")]
    pub num: i64,
    /// Writes that end it; 0 for none.
    #[serde(deserialize_with = "number")]
    pub blockcount: i64,
    /// Streams each way.
    #[serde(deserialize_with = "number")]
    pub parallel: i64,
    /// No Nagle.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub nodelay: bool,
    /// The server sends.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub reverse: bool,
    /// Both send.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub bidirectional: bool,
    /// Socket buffers, in bytes.
    #[serde(deserialize_with = "number", skip_serializing_if = "is_zero")]
    pub window: i64,
    /// Bytes of a write or datagram.
    #[serde(deserialize_with = "number", skip_serializing_if = "is_zero")]
    pub len: i64,
    /// Rate of a stream, in bits a second.
    #[serde(deserialize_with = "number", skip_serializing_if = "is_zero")]
    pub bandwidth: i64,
    /// Congestion control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Datagrams are counted with 64 bits.
    #[serde(deserialize_with = "flag", serialize_with = "one", skip_serializing_if = "is_false")]
    pub udp_counters_64bit: bool,
    /// A user name and password, encrypted; we have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authtoken: Option<String>,
    /// The version of the client's program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_version: Option<String>,
    /// Ours: transactions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inett: Option<InettParameters>,
}

/// What transactions are to be like: all that the server must know. Sizes are drawn at both ends from the same seed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InettParameters {
    /// Of this protocol.
    pub version: u32,
    /// What is measured.
    pub kind: Kind,
    /// Bytes of a request.
    pub request_bytes: Distribution,
    /// Bytes of a response.
    pub response_bytes: Distribution,
    /// Seed of both.
    pub seed: u64,
}

impl InettParameters {
    /// The version that this program speaks.
    pub const VERSION: u32 = 1;
}

impl Parameters {
    /// What a plan says to the server.
    pub fn from_plan(plan: &Plan) -> Parameters {
        let is_udp = plan.protocol == Protocol::Udp;
        let time_s = plan.time().map_or(0, |time| time.as_millis().div_ceil(1000));
        Parameters {
            tcp: !is_udp,
            udp: is_udp,
            omit: (plan.warm_up_ms / 1000) as i64,
            time: time_s as i64,
            num: plan.bytes.unwrap_or(0) as i64,
            blockcount: plan.count.filter(|_| !plan.kind.is_transaction()).unwrap_or(0) as i64,
            parallel: plan.streams.into(),
            nodelay: plan.no_delay,
            reverse: plan.direction == Direction::Receive,
            bidirectional: plan.direction == Direction::Both,
            window: plan.window_bytes.unwrap_or(0).into(),
            len: plan.write_bytes().into(),
            bandwidth: plan.rate() as i64,
            congestion: plan.congestion.clone(),
            udp_counters_64bit: is_udp,
            client_version: Some(concat!("inhost-inett ", env!("CARGO_PKG_VERSION")).to_owned()),
            inett: plan.kind.is_transaction().then(|| InettParameters {
                version: InettParameters::VERSION,
                kind: plan.kind,
                request_bytes: plan.request_bytes.clone(),
                response_bytes: plan.response_bytes.clone(),
                seed: plan.seed,
            }),
            ..Parameters::default()
        }
    }
    /// The plan that a client asks a server for, seen from the client.
    ///
    /// # Errors
    /// iperf3's number of what cannot be.
    pub fn to_plan(&self) -> Result<Plan, i32> {
        if self.sctp || self.authtoken.is_some() {
            return Err(code::PARAMETERS);
        }
        let positive = |value: i64| u64::try_from(value).map_err(|_| code::PARAMETERS);
        let some = |value: u64| (value != 0).then_some(value);
        let mut plan = Plan {
            protocol: if self.udp { Protocol::Udp } else { Protocol::Tcp },
            direction: match (self.reverse, self.bidirectional) {
                (_, true) => Direction::Both,
                (true, false) => Direction::Receive,
                (false, false) => Direction::Send,
            },
            no_delay: self.nodelay,
            warm_up_ms: positive(self.omit)?.saturating_mul(1000),
            streams: u16::try_from(self.parallel.max(1)).map_err(|_| code::STREAMS)?,
            window_bytes: some(positive(self.window)?).map(|w| u32::try_from(w).unwrap_or(u32::MAX)),
            write_bytes: some(positive(self.len)?).map(|len| u32::try_from(len).unwrap_or(u32::MAX)),
            rate_bits_per_second: Some(positive(self.bandwidth)?),
            congestion: self.congestion.clone(),
            bytes: some(positive(self.num)?),
            ..Plan::default()
        };
        plan.count = some(positive(self.blockcount)?).filter(|_| plan.bytes.is_none());
        let ends = plan.bytes.is_some() || plan.count.is_some();
        let time_ms = positive(self.time)?.saturating_mul(1000);
        plan.time_ms = (time_ms != 0 && !ends).then_some(time_ms);
        if let Some(inett) = &self.inett {
            if inett.version != InettParameters::VERSION {
                return Err(code::PARAMETERS);
            }
            (plan.kind, plan.seed) = (inett.kind, inett.seed);
            plan.request_bytes = inett.request_bytes.clone();
            plan.response_bytes = inett.response_bytes.clone();
        }
        plan.validate().map_err(|why| match why {
            plan::PlanError::OutOfRange { key: "time_ms", .. } => code::DURATION,
            plan::PlanError::OutOfRange { key: "streams", .. } => code::STREAMS,
            plan::PlanError::OutOfRange { key: "write_bytes", .. } => code::BLOCK_SIZE,
            plan::PlanError::OutOfRange { key: "window_bytes", .. } => code::WINDOW,
            _ => code::PARAMETERS,
        })?;
        Ok(plan)
    }
}

/// What one end found. Names are those of iperf3.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Results {
    /// Processor time, in per cent of the duration.
    pub cpu_util_total: f64,
    /// Of it, in user mode.
    pub cpu_util_user: f64,
    /// Of it, in the kernel.
    pub cpu_util_system: f64,
    /// Whether the sender knows its retransmissions: 1, 0, or -1 where this end does not send.
    #[serde(deserialize_with = "number")]
    pub sender_has_retransmits: i64,
    /// The congestion control that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_used: Option<String>,
    /// Each stream.
    pub streams: Vec<StreamResults>,
    /// Ours: what iperf3 has no name for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inett: Option<InettResults>,
}

/// What one end found of a stream.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamResults {
    /// Its number: 1, 3, 4, 5 …, as iperf3 counts.
    #[serde(deserialize_with = "number")]
    pub id: i64,
    /// Bytes sent or received, warm-up left out.
    #[serde(deserialize_with = "number")]
    pub bytes: i64,
    /// Retransmitted segments, -1 where unknown.
    #[serde(deserialize_with = "number")]
    pub retransmits: i64,
    /// Jitter in seconds (RFC 3550 §6.4.1).
    pub jitter: f64,
    /// Datagrams lost, warm-up included.
    #[serde(deserialize_with = "number")]
    pub errors: i64,
    /// Of them, during warm-up.
    #[serde(deserialize_with = "number")]
    pub omitted_errors: i64,
    /// Datagrams sent, or the highest number received, warm-up included.
    #[serde(deserialize_with = "number")]
    pub packets: i64,
    /// Of them, during warm-up.
    #[serde(deserialize_with = "number")]
    pub omitted_packets: i64,
    /// Begin, in seconds.
    pub start_time: f64,
    /// End, in seconds.
    pub end_time: f64,
}

/// What our own program adds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InettResults {
    /// Causes for which the sender waited, as shares of the time.
    pub causes: std::collections::BTreeMap<String, f64>,
    /// Datagrams that came after a later one.
    pub out_of_order: u64,
    /// Processor time of the process, in seconds.
    pub processor_s: Option<f64>,
    /// Cycles and instructions of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Seconds of its host by layer.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub layers_s: std::collections::BTreeMap<String, f64>,
}

/// The number of the stream that was opened as the `index`th, from 0.
pub fn stream_id(index: usize) -> i64 {
    match index {
        0 => 1,
        index => index as i64 + 2,
    }
}

/// Reads parameters that came as text of a file or a fuzzer.
///
/// # Errors
/// When they cannot be read.
pub fn parameters(text: &[u8]) -> Result<Parameters, ProtocolError> {
    serde_json::from_slice(text).map_err(|_| ProtocolError::Json { what: "parameters" })
}
