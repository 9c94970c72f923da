//! Text and JSON output of a trace.

use crate::args::{Method, Traceroute};
use inhost_base::IpAddr;
use inhost_stack::ErrorKind;
use inhost_traceroute::{Hop, Mtu, TraceOutcome};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

/// Names of those who answered, as far as they have any.
type Known = BTreeMap<IpAddr, Option<String>>;

/// A line on standard output; who closed it does not want it.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

pub fn begin(arguments: &Traceroute, to: IpAddr) {
    let Traceroute { host, max, size, .. } = arguments;
    let what = match arguments.method {
        Method::Udp => "UDP datagrams",
        Method::Icmp => "ICMP echo requests",
        Method::Tcp => "TCP calls",
    };
    say(&format!("{host} ({to}), {max} hops at most, {what} of {size} bytes"));
}

pub fn method(method: Method) -> &'static str {
    match method {
        Method::Udp => "udp",
        Method::Icmp => "icmp",
        Method::Tcp => "tcp",
    }
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

/// One line: who answered, how fast, and the path MTU where it becomes another.
pub fn hop(hop: &Hop, known: &Known, last_mtu: &mut Option<Mtu>) -> String {
    let mut line = format!("{:2}", hop.number);
    let mut who = None;
    for reply in &hop.replies {
        let Some(reply) = reply else {
            line.push_str("  *");
            continue;
        };
        if who != Some(reply.from) {
            who = Some(reply.from);
            let _ = match known.get(&reply.from) {
                Some(Some(name)) => write!(line, "  {name} ({})", reply.from),
                _ => write!(line, "  {}", reply.from),
            };
        }
        let _ = write!(line, "  {:.3} ms", reply.round_trip.as_nanos() as f64 / 1e6);
        if let Some(kind) = reply.error {
            let _ = write!(line, " ({})", error(kind));
        }
    }
    if let Some(mtu) = hop.mtu.filter(|mtu| last_mtu.is_none_or(|last| last.bytes != mtu.bytes)) {
        let _ = write!(line, "  MTU {}", mtu.bytes);
        let _ = match mtu.told_by {
            Some(router) => write!(line, ", says {router}"),
            None if mtu.is_black_hole => write!(line, ", larger packets vanish"),
            None => Ok(()),
        };
        *last_mtu = Some(mtu);
    }
    line
}

pub fn hop_json(hop: &Hop, known: &Known) -> Value {
    let replies = hop.replies.iter().map(|reply| {
        reply.map(|reply| {
            json!({
                "from": reply.from.to_string(),
                "name": known.get(&reply.from),
                "round_trip_ns": reply.round_trip.as_nanos(),
                "error": reply.error.map(error),
            })
        })
    });
    json!({
        "hop": hop.number,
        "replies": replies.collect::<Vec<_>>(),
        "mtu": hop.mtu.map(|mtu| json!({
            "bytes": mtu.bytes,
            "told_by": mtu.told_by.map(|router| router.to_string()),
            "is_black_hole": mtu.is_black_hole,
        })),
    })
}

pub fn outcome(to: IpAddr, outcome: TraceOutcome) -> String {
    match outcome {
        TraceOutcome::Reached { hop } => format!("{to} reached at hop {hop}"),
        TraceOutcome::Stopped { hop, by, why } => format!("stopped at hop {hop} by {by}: {}", error(why)),
        TraceOutcome::TooFar => format!("{to} not reached"),
    }
}

pub fn outcome_json(outcome: TraceOutcome) -> Value {
    match outcome {
        TraceOutcome::Reached { hop } => json!({ "reached": true, "hop": hop }),
        TraceOutcome::Stopped { hop, by, why } => {
            json!({ "reached": false, "hop": hop, "by": by.to_string(), "why": error(why) })
        }
        TraceOutcome::TooFar => json!({ "reached": false }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Duration;
    use inhost_traceroute::Reply;

    #[test]
    fn a_line_names_who_answers_once_and_the_mtu_where_it_changes() {
        let from: IpAddr = "10.9.0.1".parse().unwrap();
        let reply = |micros, error| Some(Reply { from, round_trip: Duration::from_micros(micros), error });
        let mtu = Some(Mtu { bytes: 1400, told_by: Some(from), is_black_hole: false });
        let replies = vec![reply(1500, None), None, reply(250, Some(ErrorKind::HostUnreachable))];
        let known = BTreeMap::from([(from, Some("gate.example".to_owned()))]);
        let mut last = None;
        assert_eq!(
            hop(&Hop { number: 3, replies, mtu }, &known, &mut last),
            " 3  gate.example (10.9.0.1)  1.500 ms  *  0.250 ms (host unreachable)  MTU 1400, says 10.9.0.1"
        );
        assert_eq!(hop(&Hop { number: 4, replies: vec![None], mtu }, &Known::new(), &mut last), " 4  *");
    }
}
