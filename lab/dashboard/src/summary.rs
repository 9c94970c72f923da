//! The host in a few figures, each second, while somebody listens.

use std::rc::Rc;

use inhost_base::{Duration, Instant};
use inhost_record::Recorder;
use inhost_socket::Host;
use inhost_stack::Stack;
use inhost_web::Events;
use serde_json::{Value, json};

use crate::list::List;

const EVERY: Duration = Duration::from_secs(1);

/// Sums since the host began.
#[derive(Clone, Copy, Default)]
struct Totals {
    received_bytes: u64,
    sent_bytes: u64,
    received_frames: u64,
    sent_frames: u64,
    dropped: u64,
    retransmissions: u64,
}

impl Totals {
    fn of(stack: &Stack, recorder: Option<&Recorder>) -> Totals {
        let mut totals =
            Totals { retransmissions: recorder.map_or(0, Recorder::retransmissions), ..Totals::default() };
        for link in stack.links() {
            let Some(of) = stack.instruments().link_counters(link) else { continue };
            totals.received_bytes += of.received_bytes;
            totals.sent_bytes += of.sent_bytes;
            totals.received_frames += of.received_frames;
            totals.sent_frames += of.sent_frames;
            totals.dropped += of.drops().map(|(_, count)| count).sum::<u64>();
        }
        totals
    }
}

/// Publishes an event `summary` each second, while somebody listens.
pub(crate) async fn publish(host: Host, recorder: Option<Recorder>, list: Rc<List>, events: Rc<Events>) {
    let mut before: Option<(Instant, Totals)> = None;
    loop {
        host.sleep(EVERY).await;
        if events.subscribers() == 0 {
            before = None;
            continue;
        }
        let connections = list.latest().await.rows.len();
        let (now, totals, memory_bytes) = host.with_stack(|stack, now| {
            (now, Totals::of(stack, recorder.as_ref()), stack.memory().outstanding_bytes())
        });
        if let Some((then, old)) = before {
            events
                .publish("summary", &summary(now, now.since(then), &old, &totals, connections, memory_bytes));
        }
        before = Some((now, totals));
    }
}

fn summary(
    now: Instant,
    passed: Duration,
    old: &Totals,
    new: &Totals,
    connections: usize,
    memory_bytes: usize,
) -> Value {
    let seconds = passed.as_secs_f64().max(1e-3);
    let rate = |of: fn(&Totals) -> u64| of(new).saturating_sub(of(old)) as f64 / seconds;
    json!({
        "now_ns": now.as_nanos(),
        "connections": connections,
        "memory_bytes": memory_bytes,
        "received_bytes_per_s": rate(|of| of.received_bytes),
        "sent_bytes_per_s": rate(|of| of.sent_bytes),
        "received_frames_per_s": rate(|of| of.received_frames),
        "sent_frames_per_s": rate(|of| of.sent_frames),
        "dropped_per_s": rate(|of| of.dropped),
        "retransmissions_per_s": rate(|of| of.retransmissions),
    })
}
