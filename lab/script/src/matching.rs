//! Whether a segment is the one that a script expects.

use crate::datagram::Summed;
use crate::flow::Seen;
use crate::language::{Cookie, Datagram, Echo, Fragment, IcmpError, Options, Presence, Segment};
use crate::mail::{SeenDatagram, SeenFragment, SeenIcmpError};
use crate::packet::HostSegment;
use crate::stream::{self, From};
use inhost_wire::tcp::Flags;
use std::fmt::Display;

/// Differences, one phrase each; empty on a match.
pub fn differences(expected: &Segment, got: &HostSegment<'_>, seen: &Seen) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut differ = |what: &str, expected: &dyn Display, got: &dyn Display| {
        wrong.push(format!("{what} {expected} expected, {got} found"));
    };
    let flags = seen.flags.difference(Flags::PSH);
    if flags != expected.flags {
        differ("flags", &format!("{:?}", expected.flags), &format!("{flags:?}"));
    }
    if let Some(push) = expected.push.filter(|&push| push != seen.flags.contains(Flags::PSH)) {
        differ("PSH", &if push { "set" } else { "not set" }, &if push { "not set" } else { "set" });
    }
    if expected.peer != got.peer {
        differ("peer", &expected.peer, &got.peer);
    }
    let start = seen.sequence + i64::from(flags.syn());
    let span = (start, start + got.segment.payload.len() as i64);
    match expected.data {
        Some(data) if data != span => {
            differ("data", &range(data), &range(span));
        }
        None if span.0 != span.1 => differ("no data", &"", &format!("data {}", range(span))),
        _ => {}
    }
    if let Some(sequence) = expected.sequence.filter(|&sequence| sequence != seen.sequence) {
        differ("seq", &sequence, &seen.sequence);
    }
    if let Some(number) = expected.acknowledgment.filter(|&number| Some(number) != seen.acknowledgment) {
        differ("ack", &number, &seen.acknowledgment.map_or("none".to_owned(), |n| n.to_string()));
    }
    if let Some(window) = expected.window.as_ref().filter(|window| !window.contains(&seen.window_bytes)) {
        let text = format!("{}..{}", window.start(), window.end());
        differ(
            "win",
            &if window.start() == window.end() { window.start().to_string() } else { text },
            &seen.window_bytes,
        );
    }
    if let Some(urgent) = expected.urgent_pointer.filter(|&urgent| urgent != got.segment.urgent_pointer) {
        differ("urgent", &urgent, &got.segment.urgent_pointer);
    }
    if let Some(ecn) = expected.ecn.filter(|&ecn| ecn != got.ecn) {
        differ("ecn", &format!("{ecn:?}"), &format!("{:?}", got.ecn));
    }
    wrong.extend(different_options(&expected.options, got, seen));
    if !got.checksum_ok {
        wrong.push("its checksum is wrong".into());
    }
    if let Some(at) = stream::first_wrong(From::Host, (start - 1).max(0) as u64, got.segment.payload) {
        wrong.push(format!("the byte numbered {} is not the one that was written", at + 1));
    }
    wrong
}

/// The same of a datagram.
pub fn datagram(expected: &Datagram, seen: &SeenDatagram) -> Vec<String> {
    let mut wrong = Vec::new();
    let said = &seen.said;
    for (what, expected, found) in [
        ("bytes", expected.bytes, said.bytes),
        ("peer", usize::from(expected.peer), usize::from(said.peer)),
        ("port", usize::from(expected.port), usize::from(said.port)),
    ] {
        if expected != found {
            wrong.push(format!("{what} {expected} expected, {found} found"));
        }
    }
    let summed = if expected.no_checksum { Summed::Not } else { Summed::Right };
    if seen.checksum != summed {
        wrong.push(format!("checksum {} expected, {} found", summed.text(), seen.checksum.text()));
    }
    if seen.which.is_none() {
        wrong.push("its data is not what was to be sent".into());
    }
    wrong
}
/// The same of a part of a datagram.
pub fn fragment(expected: &Fragment, seen: &SeenFragment) -> Vec<String> {
    let mut wrong = Vec::new();
    if *expected != seen.said {
        wrong.push("another part expected".to_owned());
    }
    if !seen.fits {
        wrong.push("it does not go on where the one before ended".to_owned());
    }
    if let Some(whole) = &seen.whole {
        wrong.extend(datagram(&whole.said, whole));
    }
    wrong
}
/// The same of an ICMP error.
pub fn icmp_error(expected: &IcmpError, seen: &SeenIcmpError) -> Vec<String> {
    let mut wrong = Vec::new();
    if expected.kind != seen.kind {
        wrong.push("another message expected".to_owned());
    }
    if let Some(bytes) = expected.quotes.filter(|&bytes| bytes != seen.quotes) {
        wrong.push(format!("{bytes} bytes quoted expected, {} found", seen.quotes));
    }
    if !seen.is_quoted {
        wrong.push("what it quotes never came".to_owned());
    }
    if !seen.checksum_ok {
        wrong.push("its checksum is wrong".to_owned());
    }
    wrong
}

fn range((from, to): (i64, i64)) -> String {
    format!("{from}..{to}")
}

fn different_options(said: &Options, got: &HostSegment<'_>, seen: &Seen) -> Vec<String> {
    let found = &got.segment.options;
    let stamps = found.timestamps.map(|_| ());
    let mut wrong = vec![
        differs("mss", &said.mss, found.mss),
        differs("scale", &said.scale, found.window_scale),
        differs("sackok", &said.sack_permitted, found.sack_permitted.then_some(())),
        differs("ts", &said.timestamps, stamps),
    ];
    if let Some(Echo::Value(echo)) = said.timestamp_echo
        && found.timestamps.map(|(_, echo)| echo) != Some(echo)
    {
        wrong.push(Some(format!("ecr {echo} expected, {:?} found", found.timestamps)));
    }
    let blocks = (!seen.sack.is_empty()).then(|| seen.sack.clone());
    let sack = match &said.sack {
        // Blocks that nobody spoke of are a surprise.
        Presence::Unsaid => &Presence::Absent,
        said => said,
    };
    wrong.push(differs("sack", sack, blocks));
    wrong.push(different_cookie(&said.fast_open, got));
    wrong.into_iter().flatten().collect()
}

fn different_cookie(said: &Presence<Cookie>, got: &HostSegment<'_>) -> Option<String> {
    let found = got.segment.options.fast_open.map(|cookie| cookie.to_vec());
    let fits = match (said, &found) {
        (Presence::Unsaid, _) | (Presence::Absent, None) | (Presence::Any, Some(_)) => true,
        (Presence::Is(Cookie::Request), Some(found)) => found.is_empty(),
        // The flow has already taken note of it: any cookie of the host's is the one known.
        (Presence::Is(Cookie::Known), Some(found)) => !found.is_empty(),
        (Presence::Is(Cookie::Bytes(bytes)), Some(found)) => found == bytes,
        _ => false,
    };
    (!fits).then(|| format!("fo {said:?} expected, {found:02x?} found"))
}

fn differs<T: PartialEq + std::fmt::Debug>(
    what: &str,
    said: &Presence<T>,
    found: Option<T>,
) -> Option<String> {
    match (said, &found) {
        (Presence::Unsaid, _) | (Presence::Absent, None) | (Presence::Any, Some(_)) => None,
        (Presence::Is(said), Some(found)) if said == found => None,
        (Presence::Absent, Some(found)) => Some(format!("no {what} expected, {found:?} found")),
        (Presence::Is(said), found) => Some(format!("{what} {said:?} expected, {found:?} found")),
        (Presence::Any, None) => Some(format!("{what} expected, none found")),
    }
}
