//! A connection's whole state as text: the same for a stepped host and for a live one.

use serde_json::Value;

use crate::words::{name, place, time, value, wrapped};

/// Columns of a section's name.
const HEADING_COLUMNS: usize = 14;

/// The state that [`inhost_stack::Connection::detail`] has as JSON, in lines of at most 100 columns. `title` says whose
/// it is.
pub fn connection(title: &str, state: &Value) -> String {
    let now_ns = state["now_ns"].as_u64().unwrap_or(0);
    let mut text = format!("{title}  {}", text_of(&state["state"]));
    if let Some(age_ns) = state["age_ns"].as_u64() {
        text += &format!(", {} old", time(age_ns));
    }
    for (field, what) in [("error", "ended by"), ("soft_error", "trouble")] {
        if let Some(error) = state[field].as_str() {
            text += &format!(", {what}: {error}");
        }
    }
    text.push('\n');
    for section in ["send", "receive", "round_trip", "congestion", "recovery"] {
        text += &line(section, &fields(section, &state[section]));
    }
    text += &line("timers", &timers(&state["timers"], now_ns));
    for (index, item) in scoreboard(&state["scoreboard"], now_ns).iter().enumerate() {
        text += &line(if index == 0 { "scoreboard" } else { "" }, std::slice::from_ref(item));
    }
    text += &line("agreed", &fields("agreed", &state["agreed"]));
    text += &line("options", &fields("options", &state["options"]));
    text += &line("policy", &policy(&state["policy"]));
    text += &line("sent time", &ledger(&state["send_ledger"]));
    text += &line("received time", &ledger(&state["receive_ledger"]));
    text += &line("algorithm", &own(&state["congestion"]["own"]["algorithm"], "algorithm"));
    text
}

/// The host around the connection: what the control socket has as `"host"`.
pub fn host(state: &Value, now_ns: u64) -> String {
    let due = |field: &Value| {
        field.as_u64().map_or("none".to_owned(), |at| format!("in {}", time(at.saturating_sub(now_ns))))
    };
    let timers = [
        format!("sockets {}", due(&state["socket_timer_ns"])),
        format!("IP {}", due(&state["ip_timer_ns"])),
        format!("memory {}", due(&state["memory_retry_ns"])),
        format!("tasks {}", due(&state["tasks"]["timer_ns"])),
    ];
    let links = state["links"].as_array().into_iter().flatten();
    let senders = links.map(|link| format!("link {}: {} to send", link["link"], link["senders"]));
    let memory = format!("memory {} of {} bytes", state["memory_bytes"], state["memory_limit_bytes"]);
    let orphans = format!("{} orphans", state["orphans"]);
    let waiting = |field: &str| {
        let sockets = state["tasks"]["sockets"].as_array().into_iter().flatten();
        sockets.filter_map(|of| of[field].as_u64()).sum::<u64>()
    };
    let tasks = [
        if state["tasks"]["is_runnable"] == true {
            "one is runnable".to_owned()
        } else {
            "none is runnable".to_owned()
        },
        format!("{} timers", state["tasks"]["timers"].as_u64().unwrap_or(0)),
        format!("{} wait to read", waiting("reading")),
        format!("{} to write", waiting("writing")),
    ];
    let queues: Vec<String> = senders.chain([memory, orphans]).collect();
    "host\n".to_owned() + &line("timers", &timers) + &line("queues", &queues) + &line("tasks", &tasks)
}

/// Timers with what remains of each.
pub fn timers(timers: &Value, now_ns: u64) -> Vec<String> {
    let all = timers.as_array().into_iter().flatten();
    let items: Vec<String> = all
        .map(|timer| {
            let due_ns = timer["due_ns"].as_u64().unwrap_or(0);
            format!("{} in {}", text_of(&timer["name"]), time(due_ns.saturating_sub(now_ns)))
        })
        .collect();
    if items.is_empty() { vec!["none".to_owned()] } else { items }
}

fn line(section: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    wrapped(&format!("  {:<HEADING_COLUMNS$} ", section.replace('_', " ")), items)
}

fn fields(section: &str, object: &Value) -> Vec<String> {
    let all = object.as_object().into_iter().flatten().filter(|(field, _)| *field != "own");
    let mut all: Vec<(String, &str, &Value)> =
        all.map(|(field, of)| (format!("{section}.{field}"), field.as_str(), of)).collect();
    all.sort_by_key(|(path, ..)| place(path));
    let text = |(path, field, of): &(String, &str, &Value)| match *field {
        // Beside the section's name it says it all.
        "state" | "algorithm" => value(field, of),
        _ => format!("{} {}", name(path), value(field, of)),
    };
    all.iter().map(text).collect()
}

fn scoreboard(records: &Value, now_ns: u64) -> Vec<String> {
    let all = records.as_array().into_iter().flatten();
    let item = |record: &Value| {
        let sent_ns = record["sent_ns"].as_u64().unwrap_or(0);
        let again = if record["retransmitted"] == true { " again" } else { "" };
        format!(
            "{}..{} {}, sent{again} {} ago",
            record["start"],
            record["end"],
            text_of(&record["state"]),
            time(now_ns.saturating_sub(sent_ns))
        )
    };
    all.map(item).collect()
}

/// What is on, and what has a value: where it differs from the RFCs.
fn policy(policy: &Value) -> Vec<String> {
    let all = policy.as_object().into_iter().flatten();
    let chosen = all.filter(|(_, of)| !matches!(of, Value::Bool(false) | Value::Null));
    let chosen: Vec<String> = chosen
        .map(|(field, of)| match of {
            Value::Bool(true) => field.replace('_', " "),
            _ => format!("{} {}", field.replace('_', " "), text_of(of)),
        })
        .collect();
    if chosen.is_empty() { vec!["as the RFCs say".to_owned()] } else { chosen }
}

fn ledger(spent: &Value) -> Vec<String> {
    let all = spent.as_array().into_iter().flatten();
    let all = all.filter_map(|of| Some((text_of(&of["cause"]), of["time_ns"].as_u64()?)));
    all.filter(|(_, ns)| *ns > 0).map(|(cause, ns)| format!("{cause} {}", time(ns))).collect()
}

/// The algorithm's own state as it keeps it.
fn own(state: &Value, path: &str) -> Vec<String> {
    match state {
        Value::Object(members) => {
            members.iter().flat_map(|(key, of)| own(of, &key.replace('_', " "))).collect()
        }
        Value::Null => Vec::new(),
        other => vec![format!("{path} {}", text_of(other))],
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
