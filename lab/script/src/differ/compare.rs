//! The first difference between what two hosts did in one exchange, and the class that it belongs to.

use super::exchange::{Exchange, Timed};
use super::sent::Sent;
use super::view::View;
use super::watch::{Moment, Watched};
use crate::language::{About, IcmpKind, Step};
use inhost_base::{Duration, Instant};

/// Less than this apart is at one time, as is an eighth of the time waited for: the kernel's timers are coarse.
const TOLERANCE: Duration = Duration::from_millis(20);
/// What comes so soon is an answer.
const ANSWER: Duration = Duration::from_millis(1);
/// What comes later than this after a step is a timer's doing.
const TIMER: Duration = Duration::from_millis(12);

/// Octets of a TCP header with all the options that it holds.
const LONGEST_HEADER: i64 = 60;

/// First difference between the kernel and our stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The step after which they part, counted from 0.
    pub step: usize,
    /// State, step and what is different, without numbers: what makes the class.
    pub signature: String,
    /// The difference, with numbers.
    pub detail: String,
}

/// The first difference, or `None` where both did the same.
pub fn first_difference(exchange: &Exchange, kernel: &Watched, ours: &Watched) -> Option<Difference> {
    let mut view = View::default();
    let mut latest = Latest::default();
    for (index, timed) in exchange.steps.iter().enumerate() {
        let (Some(theirs), Some(own)) = (kernel.moments.get(index), ours.moments.get(index)) else {
            return None;
        };
        let at = (time_of(kernel, index), time_of(ours, index));
        view.wrote(&timed.step, theirs.came.as_deref());
        if let Some((what, detail, same)) =
            different(theirs, own, at, &mut latest, (view.host_next, view.written))
        {
            let ends = (time_of(kernel, index + 1), time_of(ours, index + 1));
            if is_on_the_brink(theirs, own, at, ends, &latest) {
                return None;
            }
            let step = match same {
                None => view.describe(&timed.step),
                Some(same) => {
                    view.happened(&timed.step, theirs.came.as_deref());
                    theirs.sent[..same].iter().for_each(|sent| view.sent(sent));
                    "time".to_owned()
                }
            };
            let echoes = what.ends_with("differs in echo") && view.has_doubtful_stamp();
            let note = if echoes { " after-doubtful-ack" } else { "" };
            let why = circumstance(exchange, index, &view, &what);
            let signature = format!("{}{note}: {step}: {what}{why}", view.state());
            return Some(Difference { step: index, signature, detail });
        }
        view.happened(&timed.step, theirs.came.as_deref());
        theirs.sent.iter().for_each(|sent| view.sent(sent));
    }
    None
}

fn time_of(watched: &Watched, index: usize) -> Instant {
    watched.times.get(index).copied().unwrap_or(Instant::ZERO)
}
/// When each of the two sent the latest packet, and the latest that takes numbers, with which a timer begins.
#[derive(Clone, Copy, Default)]
struct Latest {
    any: (Instant, Instant),
    numbered: (Instant, Instant),
}

impl Latest {
    /// Both sent this.
    fn sent(&mut self, kernel: &Sent, ours: &Sent) {
        self.any = (kernel.at, ours.at);
        if kernel.sequence < kernel.end {
            self.numbered = self.any;
        }
    }
}

/// Whether only one side has sent a packet before the next step that a timer lets go about then: the kernel's timers are
/// coarse, by an eighth of the time that they take, and nothing that follows can be compared.
fn is_on_the_brink(
    theirs: &Moment,
    own: &Moment,
    at: (Instant, Instant),
    ends: (Instant, Instant),
    latest: &Latest,
) -> bool {
    let common = theirs.sent.len().min(own.sent.len());
    let odd = match (theirs.sent.get(common), own.sent.get(common)) {
        (Some(sent), None) => (sent.at, at.0, ends.0, latest.numbered.0),
        (None, Some(sent)) => (sent.at, at.1, ends.1, latest.numbered.1),
        _ => return false,
    };
    let (sent, at, end, begun) = odd;
    let coarse = if sent.since(at) > TIMER { TIMER + sent.since(begun).divided_by(8) } else { TIMER };
    theirs.came == own.came && sent.since(at) > ANSWER && end.since(sent) < coarse
}

/// Under what circumstance the two part: words that keep one cause apart from all others.
fn circumstance(exchange: &Exchange, step: usize, view: &View, what: &str) -> &'static str {
    let narrows = |step: &Step| matches!(step, Step::InIcmp(icmp) if matches!(icmp.kind, IcmpKind::TooBig(_)) && icmp.about == About::Segment(0));
    if exchange.is_ipv6 && exchange.steps[..step].iter().any(|timed| narrows(&timed.step)) {
        return ", after a call's path became narrower";
    }

    if what == "kernel yes, ours no" && has_urgent_octet_in_a_header(&exchange.steps[..step]) {
        return ", where a header is";
    }

    let sends_more = what.starts_with("kernel ")
        && (what.ends_with("data, ours nothing") || what.ends_with("data earlier"));
    let is_new_reno = exchange.host.contains(&("congestion", "newreno"));
    match () {
        () if !sends_more => "",
        () if view.is_unmeasured() => ", nothing measured since a repair",
        () if is_new_reno && view.has_repaired() => ", NewReno after a loss",
        () => "",
    }
}

/// Whether the octet that an urgent pointer names would lie in the header of a later segment, if the stream went on before
/// its data: Linux counts from the header's begin and shows what it finds there (`tcp_urg`).
fn has_urgent_octet_in_a_header(steps: &[Timed]) -> bool {
    let segments = || {
        steps.iter().enumerate().filter_map(|(index, timed)| match &timed.step {
            Step::In(segment) => Some((index, segment)),
            _ => None,
        })
    };
    let urgent_octets =
        segments().filter(|(_, segment)| segment.flags.urg()).filter_map(|(index, segment)| {
            let start = segment.data.map(|(start, _)| start).or(segment.sequence)?;
            Some((index, start + i64::from(segment.urgent_pointer?) - 1))
        });
    let starts = || {
        segments().filter_map(|(index, segment)| {
            Some((index, segment.data.map(|(start, _)| start).or(segment.sequence)?))
        })
    };
    urgent_octets.into_iter().any(|(named, octet)| {
        starts().any(|(index, start)| index > named && (start - LONGEST_HEADER..start).contains(&octet))
    })
}

/// What is different after one step, in words that make a class and with numbers; and where a timer did it, how many
/// packets were the same before.
fn different(
    theirs: &Moment,
    own: &Moment,
    at: (Instant, Instant),
    latest: &mut Latest,
    (mut host_next, written): (i64, i64),
) -> Option<(String, String, Option<usize>)> {
    if theirs.came != own.came {
        let text = |came: &Option<String>| came.clone().unwrap_or_default();
        let plain = |came: &Option<String>| {
            text(came).split(' ').filter(|word| word.parse::<u64>().is_err()).collect::<Vec<_>>().join(" ")
        };
        let (kernel, ours) = match (plain(&theirs.came), plain(&own.came)) {
            // Only the numbers are different.
            (kernel, ours) if kernel == ours => (format!("other {kernel}"), ours),
            pair => pair,
        };
        let detail = format!("the kernel: {}; ours: {}", text(&theirs.came), text(&own.came));
        return Some((format!("kernel {kernel}, ours {ours}"), detail, None));
    }
    for index in 0..theirs.sent.len().max(own.sent.len()) {
        let (kernel, ours) = (theirs.sent.get(index), own.sent.get(index));
        let Some(what) = between(kernel, ours, at, *latest, (host_next, written)) else {
            if let (Some(kernel), Some(ours)) = (kernel, ours) {
                latest.sent(kernel, ours);
                host_next = host_next.max(kernel.end);
            }
            continue;
        };
        let shown = |sent: Option<&Sent>, at| match sent {
            Some(sent) => format!("{} after {}", sent.text, sent.at.since(at)),
            None => "nothing".into(),
        };
        let detail = format!("the kernel: {}; ours: {}", shown(kernel, at.0), shown(ours, at.1));
        // The earlier of the two says whether it is the step that makes the difference.
        let first = [kernel.map(|sent| sent.at.since(at.0)), ours.map(|sent| sent.at.since(at.1))];
        let first = first.into_iter().flatten().min();
        let is_timer = first.is_some_and(|first| first > TIMER);
        return Some((what, detail, is_timer.then_some(index)));
    }
    None
}

/// How the next packets of both are different. `latest` is when each sent those before.
fn between(
    kernel: Option<&Sent>,
    ours: Option<&Sent>,
    at: (Instant, Instant),
    latest: Latest,
    (host_next, written): (i64, i64),
) -> Option<String> {
    let (kernel, ours) = match (kernel, ours) {
        (None, None) => return None,
        (Some(kernel), None) => return Some(format!("kernel {}, ours nothing", kernel.shape())),
        (None, Some(ours)) => return Some(format!("kernel nothing, ours {}", ours.shape())),
        (Some(kernel), Some(ours)) => (kernel, ours),
    };
    let (theirs_at, own_at) = (kernel.at.since(at.0), ours.at.since(at.1));
    // A timer runs from the step, or from what was sent before: then what it was late before is no matter.
    let since = |from: (Instant, Instant)| are_apart(kernel.at.since(from.0), ours.at.since(from.1));
    let apart = are_apart(theirs_at, own_at) && since(latest.any) && since(latest.numbered);
    let fields = kernel.different_fields(ours, host_next, written);
    match (apart, fields.is_empty()) {
        (false, true) => None,
        // A quarter of the time-out: as much as variations of the round trip make.
        (true, true) if theirs_at > own_at && is_somewhat_later(kernel, ours, latest.any) => {
            Some(format!("kernel {} somewhat later", kernel.shape()))
        }
        (true, true) if theirs_at > own_at => Some(format!("kernel {} later", kernel.shape())),
        (true, true) => Some(format!("kernel {} earlier", kernel.shape())),
        (true, false) if theirs_at < own_at => Some(format!("kernel {}, ours nothing", kernel.shape())),
        (true, false) => Some(format!("kernel nothing, ours {}", ours.shape())),
        (false, false) if kernel.shape() != ours.shape() => {
            Some(format!("kernel {}, ours {}", kernel.shape(), ours.shape()))
        }
        (false, false) => Some(format!("{} differs in {}", kernel.shape(), fields.join(" "))),
    }
}

/// Whether the kernel's packet is later by less than half of the time since the one before.
fn is_somewhat_later(kernel: &Sent, ours: &Sent, latest: (Instant, Instant)) -> bool {
    let own = ours.at.since(latest.1);
    kernel.at.since(latest.0) < own + own.divided_by(2)
}
fn are_apart(one: Duration, other: Duration) -> bool {
    let (least, most) = (one.min(other), one.max(other));
    most - least > TOLERANCE + most.divided_by(8)
}
