//! One line of what happens.

use super::words::{Words, Wrong, expected, split};
use super::{Step, When, call, datagram, segment};

const ROLES: &str =
    "in, out, call, assert, wait, skip, after, also, or a heading (profile, network, host, include, kernel:)";

/// The steps of one line: more than one when `each` cuts the data of a segment.
pub(super) fn steps(text: &str) -> Result<Vec<(When, Step)>, Wrong> {
    let words = split(text);
    let mut words = Words::new(&words);
    let mut when = When::AtOnce;
    if words.take("after") {
        when = segment::when(&mut words)?;
    } else if words.take("also") {
        when = When::InOneBurst;
    }
    let role = words.word(ROLES)?;
    let steps = match role {
        "in" if words.take("icmp") => vec![Step::InIcmp(segment::icmp(&mut words)?)],
        "in" if words.take("datagram") => vec![Step::InDatagram(datagram::datagram(&mut words, true)?)],
        "out" if words.take("icmp") => vec![Step::OutIcmp(datagram::icmp_error(&mut words)?)],
        "out" if words.take("datagram") => vec![Step::OutDatagram(datagram::datagram(&mut words, false)?)],
        "out" if words.take("fragment") => vec![Step::OutFragment(datagram::fragment(&mut words)?)],
        "in" => segment::segments(&mut words, true)?.into_iter().map(Step::In).collect(),
        "out" => segment::segments(&mut words, false)?.into_iter().map(Step::Out).collect(),
        "call" => vec![Step::SocketCall(call::call(&mut words)?)],
        "assert" => vec![Step::Assert(call::assertion(&mut words)?)],
        "wait" | "skip" => {
            if when != When::AtOnce {
                return Err(format!("`{role}` says its own time; `after` cannot stand before it"));
            }
            // What is to be skipped may be there already.
            let at_once = role == "skip" && words.peek().is_none();
            if !at_once {
                when = segment::when(&mut words)?;
            }
            words.end("a time")?;
            vec![if role == "wait" { Step::Wait } else { Step::Skip }]
        }
        other => return expected(ROLES, Some(other)),
    };
    if matches!(when, When::Between(..)) && !steps.first().is_some_and(Step::is_out) {
        return Err("only an `out` can have a range of times".into());
    }
    if when == When::InOneBurst
        && !matches!(
            steps.first(),
            Some(Step::In(_) | Step::InIcmp(_) | Step::InDatagram(_) | Step::SocketCall(_))
        )
    {
        return Err("`also` stands before an `in` or a `call`".into());
    }
    // The rest of a cut segment goes with its first piece.
    let rest = if role == "in" { When::InOneBurst } else { When::AtOnce };
    let times = std::iter::once(when).chain(std::iter::repeat(rest));
    Ok(times.zip(steps).collect())
}
