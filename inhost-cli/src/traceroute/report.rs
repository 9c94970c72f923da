//! What a trace found: as JSON, and as text.

use inhost_base::IpAddr;
use inhost_stack::ErrorKind;
use inhost_traceroute::{Hop, TraceOutcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One hop.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HopReport {
    /// Its number.
    pub hop: u8,
    /// The reply to each probe; none where nothing came.
    pub replies: Vec<Option<ReplyReport>>,
    /// The path MTU up to there, where it was measured.
    pub mtu: Option<MtuReport>,
}

/// The answer to one probe.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReplyReport {
    from: String,
    name: Option<String>,
    round_trip_ns: u64,
    error: Option<String>,
}

/// The largest packet that came so far.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MtuReport {
    bytes: u16,
    told_by: Option<String>,
    is_black_hole: bool,
}

/// The end.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct OutcomeReport {
    /// Whether the destination answered.
    pub reached: bool,
    /// The hop where it did, or where somebody said that there is no way on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop: Option<u8>,
    /// Who said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// And why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

fn error(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NetworkUnreachable => "no route to the network",
        ErrorKind::HostUnreachable => "host unreachable",
        ErrorKind::ProtocolUnreachable => "protocol unreachable",
        ErrorKind::PortUnreachable => "port unreachable",
        ErrorKind::Prohibited => "prohibited",
        ErrorKind::PacketTooBig => "packet too big",
        ErrorKind::TimeExceeded => "too many hops",
        ErrorKind::ReassemblyTimeExceeded => "fragments missing",
        ErrorKind::ParameterProblem => "header not understood",
    }
}

impl HopReport {
    /// Of a hop, and the names of those who answered, as far as they have any.
    pub fn of(hop: &Hop, known: &BTreeMap<IpAddr, Option<String>>) -> HopReport {
        let replies = hop.replies.iter().map(|reply| {
            reply.map(|reply| ReplyReport {
                from: reply.from.to_string(),
                name: known.get(&reply.from).cloned().flatten(),
                round_trip_ns: reply.round_trip.as_nanos(),
                error: reply.error.map(|kind| error(kind).to_owned()),
            })
        });
        let mtu = hop.mtu.map(|mtu| MtuReport {
            bytes: mtu.bytes,
            told_by: mtu.told_by.map(|router| router.to_string()),
            is_black_hole: mtu.is_black_hole,
        });
        HopReport { hop: hop.number, replies: replies.collect(), mtu }
    }
    /// One line: who answered, how fast, and the path MTU where it becomes another than `last_mtu_bytes`.
    pub fn line(&self, last_mtu_bytes: &mut Option<u16>) -> String {
        let mut line = format!("{:2}", self.hop);
        let mut who = None;
        for reply in &self.replies {
            let Some(reply) = reply else {
                line.push_str("  *");
                continue;
            };
            if who != Some(&reply.from) {
                who = Some(&reply.from);
                let _ = match &reply.name {
                    Some(name) => write!(line, "  {name} ({})", reply.from),
                    None => write!(line, "  {}", reply.from),
                };
            }
            let _ = write!(line, "  {:.3} ms", reply.round_trip_ns as f64 / 1e6);
            if let Some(error) = &reply.error {
                let _ = write!(line, " ({error})");
            }
        }
        if let Some(mtu) = self.mtu.as_ref().filter(|mtu| *last_mtu_bytes != Some(mtu.bytes)) {
            let _ = write!(line, "  MTU {}", mtu.bytes);
            let _ = match &mtu.told_by {
                Some(router) => write!(line, ", says {router}"),
                None if mtu.is_black_hole => write!(line, ", larger packets vanish"),
                None => Ok(()),
            };
            *last_mtu_bytes = Some(mtu.bytes);
        }
        line
    }
}

impl OutcomeReport {
    /// Of an outcome.
    pub fn of(outcome: TraceOutcome) -> OutcomeReport {
        match outcome {
            TraceOutcome::Reached { hop } => {
                OutcomeReport { reached: true, hop: Some(hop), ..OutcomeReport::default() }
            }
            TraceOutcome::Stopped { hop, by, why } => OutcomeReport {
                reached: false,
                hop: Some(hop),
                by: Some(by.to_string()),
                why: Some(error(why).to_owned()),
            },
            TraceOutcome::TooFar => OutcomeReport::default(),
        }
    }
    /// One line.
    pub fn line(&self, to: IpAddr) -> String {
        match self {
            OutcomeReport { reached: true, hop: Some(hop), .. } => format!("{to} reached at hop {hop}"),
            OutcomeReport { hop: Some(hop), by: Some(by), why: Some(why), .. } => {
                format!("stopped at hop {hop} by {by}: {why}")
            }
            _ => format!("{to} not reached"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Duration;
    use inhost_traceroute::{Mtu, Reply};

    #[test]
    fn a_line_names_who_answers_once_and_the_mtu_where_it_changes() {
        let from: IpAddr = "10.9.0.1".parse().unwrap();
        let reply = |micros, error| Some(Reply { from, round_trip: Duration::from_micros(micros), error });
        let mtu = Some(Mtu { bytes: 1400, told_by: Some(from), is_black_hole: false });
        let replies = vec![reply(1500, None), None, reply(250, Some(ErrorKind::HostUnreachable))];
        let known = BTreeMap::from([(from, Some("gate.example".to_owned()))]);
        let mut last = None;
        assert_eq!(
            HopReport::of(&Hop { number: 3, replies, mtu }, &known).line(&mut last),
            " 3  gate.example (10.9.0.1)  1.500 ms  *  0.250 ms (host unreachable)  MTU 1400, says 10.9.0.1"
        );
        let silent = Hop { number: 4, replies: vec![None], mtu };
        assert_eq!(HopReport::of(&silent, &BTreeMap::new()).line(&mut last), " 4  *");
    }
}
