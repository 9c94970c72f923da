//! What changed in a connection from one step to the next.

use serde_json::Value;

use crate::words::place;

/// Fields that change with the time alone, and those that follow from others that are told.
const NOT_TOLD: &[&str] = &[
    "now_ns",
    "age_ns",
    "timers",
    "scoreboard",
    "options",
    "policy",
    "send_ledger",
    "receive_ledger",
    "send.initial",
    "send.window_edge",
    "send.largest_window_bytes",
    "send.pushed",
    "send.queue_capacity_bytes",
    "send.buffer_bytes",
    "send.oldest_in_flight_ns",
    "send.since_sent_ns",
    "send.acknowledged_bytes",
    "send.retransmitted_bytes",
    "receive.initial",
    "receive.queue_capacity_bytes",
    "receive.buffer_bytes",
    "receive.received_bytes",
    "receive.since_received_ns",
    "receive.reassembly_pieces",
    "round_trip.least_ns",
    "round_trip.receiver_ns",
    "congestion.pacing_bytes_per_second",
    "congestion.delivery_bytes_per_second",
    "congestion.own",
    "recovery.reordering_window_ns",
    "recovery.rate_reduction_bytes",
];

/// The fields that differ, as `section.field`, with both values, in the order in which they are shown.
pub fn changes<'a>(before: &'a Value, after: &'a Value) -> Vec<(String, &'a Value, &'a Value)> {
    let mut told = Vec::new();
    compare("", before, after, &mut told);
    told.sort_by_key(|(path, ..)| place(path));
    told
}

fn compare<'a>(
    path: &str,
    before: &'a Value,
    after: &'a Value,
    told: &mut Vec<(String, &'a Value, &'a Value)>,
) {
    if NOT_TOLD.contains(&path) || before == after {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&path, old.get(key).unwrap_or(&Value::Null), value, told);
            }
        }
        _ => told.push((path.to_owned(), before, after)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_changed_is_told() {
        let before = json!({"now_ns": 1, "state": "SYN-SENT", "send": {"next": 1, "unacknowledged": 0}});
        let after = json!({"now_ns": 2, "state": "ESTABLISHED", "send": {"next": 1, "unacknowledged": 1}});
        let told = changes(&before, &after);
        let told: Vec<String> = told.iter().map(|(path, old, new)| format!("{path} {old} {new}")).collect();
        assert_eq!(told, ["state \"SYN-SENT\" \"ESTABLISHED\"", "send.unacknowledged 0 1"]);
    }
}
