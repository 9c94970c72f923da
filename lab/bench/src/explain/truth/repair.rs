//! The times in which losses, or what was taken for them, were repaired: "fast recovery", "timeout" and their kin as
//! docs/explain-causes.md defines them, with the fate of every packet known.

use super::flow::{Flow, Sent};
use crate::explain::path::middlebox::Why;
use inhost_base::{Duration, Instant};
use inhost_explain::Cause;

/// A time of repair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repair {
    /// From when.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
    /// By what.
    pub cause: Cause,
}

/// A sender that hears nothing for so long, and for twice the round trip, was woken by its timer.
const SILENCE: Duration = Duration::from_millis(150);

/// What the sender knows as its segments leave and acknowledgments come.
#[derive(Default)]
struct Knows {
    acknowledged: i64,
    edge: i64,
    /// The byte behind the newest that was sent.
    newest: i64,
    progress_at: Option<Instant>,
    heard_at: Option<Instant>,
    /// The first duplicate or selective acknowledgment since the last progress.
    evidence_at: Option<Instant>,
}

/// All repairs of a direction, by time; they do not overlap.
pub fn repairs(flow: &Flow) -> Vec<Repair> {
    let mut last = Instant::ZERO;
    let mut repairs = overlapping(flow);
    for repair in &mut repairs {
        repair.from = repair.from.max(last);
        last = last.max(repair.to);
    }
    repairs.retain(|repair| repair.from < repair.to);
    repairs
}

fn overlapping(flow: &Flow) -> Vec<Repair> {
    let mut knows = Knows::default();
    let mut came = flow.came.iter().peekable();
    let mut repairs: Vec<Repair> = Vec::new();
    let mut open: Option<(Repair, i64)> = None;
    for (place, sent) in flow.sent.iter().enumerate() {
        while let Some(next) = came.next_if(|next| next.at <= sent.at) {
            knows.hear(next.at, next.acknowledged, next.edge, next.sack, next.data);
            if let Some((repair, until)) = open
                && knows.acknowledged >= until
            {
                repairs.push(Repair { to: next.at, ..repair });
                open = None;
            }
        }
        let is_again = sent.has_data() && sent.bytes[0] < knows.newest;
        // What the window does not allow, or what is acknowledged, is sent to probe.
        let is_probe = sent.bytes[1] > knows.edge || sent.bytes[1] <= knows.acknowledged;
        if is_again && !is_probe {
            let before = &flow.sent[..place];
            open = Some(match open {
                None => (begun(flow, &knows, before, sent), knows.newest),
                Some((repair, until)) => match timer_within(flow, &knows, sent) {
                    // A timeout in the middle of a repair is one of its own.
                    Some(from)
                        if repair.cause == Cause::FastRecovery || is_beyond_tail(&repair, before, sent) =>
                    {
                        repairs.push(Repair { to: from.max(repair.from), ..repair });
                        (
                            Repair { from: from.max(repair.from), to: sent.at, cause: timeout(before, sent) },
                            knows.newest,
                        )
                    }
                    _ => (repair, until),
                },
            });
            if let Some((repair, _)) = open
                && repair.cause == Cause::SpuriousTimeout
            {
                repairs.push(repair);
                open = None;
            }
        }
        if sent.has_data() && sent.bytes[1] <= knows.edge {
            knows.newest = knows.newest.max(sent.bytes[1]);
        }
    }
    if let Some((repair, until)) = open {
        let end = came.find(|next| next.acknowledged >= until).map_or(flow.span[1], |next| next.at);
        repairs.push(Repair { to: end, ..repair });
    }
    repairs
}

impl Knows {
    fn hear(&mut self, at: Instant, acknowledged: i64, edge: i64, sack: bool, data: bool) {
        self.heard_at = Some(at);
        let is_duplicate =
            acknowledged == self.acknowledged && edge == self.edge && !data && self.newest > acknowledged;
        if acknowledged > self.acknowledged {
            self.acknowledged = acknowledged;
            self.progress_at = Some(at);
            self.evidence_at = sack.then_some(at);
        } else if sack && acknowledged == self.acknowledged || is_duplicate {
            self.evidence_at.get_or_insert(at);
        }
        self.edge = self.edge.max(edge);
    }
}

/// The repair that begins with this retransmission.
fn begun(flow: &Flow, knows: &Knows, before: &[Sent], sent: &Sent) -> Repair {
    if let Some(from) = knows.evidence_at
        && timer_within(flow, knows, sent).is_none()
    {
        return Repair { from, to: sent.at, cause: Cause::FastRecovery };
    }
    let oldest = before.iter().find(|one| one.has_data() && one.bytes[1] > knows.acknowledged);
    let left = oldest.map_or(sent.at, |one| one.at);
    let from = knows.progress_at.map_or(left, |at| at.max(left));
    let cause = match before.iter().any(|one| one.has_data() && one.bytes[1] > sent.bytes[1]) {
        false if timeout(before, sent) == Cause::Timeout => Cause::TailLoss,
        _ => timeout(before, sent),
    };
    Repair { from, to: sent.at, cause }
}

/// A probe of the tail did not help: older data is sent again by the timer.
fn is_beyond_tail(repair: &Repair, before: &[Sent], sent: &Sent) -> bool {
    repair.cause == Cause::TailLoss && before.iter().any(|one| one.has_data() && one.bytes[1] > sent.bytes[1])
}

/// The kind of a timeout that ends in this retransmission, but for tail loss.
fn timeout(before: &[Sent], sent: &Sent) -> Cause {
    let originals =
        || before.iter().filter(|one| one.bytes[0] < sent.bytes[1] && one.bytes[1] > sent.bytes[0]);
    if originals().any(|one| one.has_data() && one.arrived.is_some()) {
        Cause::SpuriousTimeout
    } else if originals().any(|one| one.lost == Some(Why::Mtu)) {
        Cause::MtuBlackHole
    } else {
        Cause::Timeout
    }
}

/// Since when the sender waited for its timer, if it did.
fn timer_within(flow: &Flow, knows: &Knows, sent: &Sent) -> Option<Instant> {
    let heard = knows.heard_at?;
    (sent.at.since(heard) > SILENCE.max(flow.round_trip.times(2))).then_some(heard)
}
