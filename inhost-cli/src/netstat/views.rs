//! Views of `netstat`, one for each part of a host.

use super::table::{Column, WIDTH, table, wrapped};
use super::{neighbours, rows};
use crate::views::{Listener, Other, Overview, Row, Rows, Session};
use Column::{Left, Right};
use inhost_common::Cleaner;
use jiff::Timestamp;
use serde_json::Value;
use std::fmt::Write as _;
use std::time::Duration;

/// No window is larger (RFC 7323 §2.3), so a threshold there is none yet.
const NO_THRESHOLD_BYTES: u64 = 1 << 30;

/// NETSTAT of the Telnet server: the part of a [`Summary`](inhost_runtime::control::Summary) that a visitor may know.
pub fn summary(state: &Value) -> String {
    let of = |kind: &str| number(&state["sockets"][kind]);
    let mut text = interfaces(state);
    let _ = writeln!(
        text,
        "\n{} connections, {} listeners, {} UDP sockets\n{}",
        of("connections"),
        of("listeners"),
        of("udp"),
        memory(state).trim_end()
    );
    text
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("-").to_owned()
}
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}
fn figure(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".to_owned(), |n| n.to_string())
}
fn milliseconds(ns: &Value) -> String {
    ns.as_u64().map_or_else(|| "-".to_owned(), |ns| format!("{:.3}", ns as f64 / 1e6))
}
/// Bytes in at most six places.
pub fn bytes(value: u64) -> String {
    match value {
        n @ ..1_000_000 => n.to_string(),
        n if n >> 20 < 1000 => format!("{:.1}M", n as f64 / f64::from(1 << 20)),
        n => format!("{:.1}G", n as f64 / f64::from(1 << 30)),
    }
}
fn link_name(link: &Value) -> String {
    let usual = if link["medium"] == "loopback" { "loopback" } else { "-" };
    link["name"].as_str().filter(|name| !name.is_empty()).unwrap_or(usual).to_owned()
}

pub fn interfaces(state: &Value) -> String {
    let columns = [
        Left("Link", 4),
        Left("Name", 10),
        Right("Frames in", 10),
        Right("Bytes in", 14),
        Right("Frames out", 10),
        Right("Bytes out", 14),
        Right("Dropped", 8),
    ];
    let row = |link: &Value| {
        let dropped: u64 = link["dropped"].as_object().map_or(0, |d| d.values().map(number).sum());
        [
            figure(&link["link"]),
            link_name(link),
            number(&link["received_frames"]).to_string(),
            number(&link["received_bytes"]).to_string(),
            number(&link["sent_frames"]).to_string(),
            number(&link["sent_bytes"]).to_string(),
            dropped.to_string(),
        ]
    };
    table(columns, rows(&state["interfaces"]).iter().map(row)) + &links_down(state)
}

/// A line for each link that has died.
fn links_down(state: &Value) -> String {
    let mut out = String::new();
    for link in rows(&state["interfaces"]) {
        let down = &link["driver"]["down"];
        if down.is_null() {
            continue;
        }
        let seconds = number(&down["for_ns"]) / 1_000_000_000;
        let next = match down["returns"].as_bool() {
            Some(true) => {
                format!("it is opened again when it is back; {} tries so far", figure(&down["tries"]))
            }
            _ => "start the host anew to use it again".to_owned(),
        };
        let _ = writeln!(
            out,
            "Link {} {} is down for {seconds} s: {}; {next}",
            figure(&link["link"]),
            link_name(link),
            text(&down["error"])
        );
    }
    out
}

pub fn interface_details(state: &Value) -> String {
    let mut out = interfaces(state);
    for link in rows(&state["interfaces"]) {
        let hardware = link["hardware"].as_str().map(|at| format!(" {at}")).unwrap_or_default();
        let _ = writeln!(
            out,
            "\n{} {}: {}{hardware}, MTU {}",
            figure(&link["link"]),
            link_name(link),
            text(&link["medium"]),
            figure(&link["mtu_bytes"])
        );
        let address = |assigned: &Value| match assigned["state"].as_str() {
            Some(state) if state != "preferred" => format!("{} ({state})", text(&assigned["address"])),
            _ => text(&assigned["address"]),
        };
        out += &wrapped(4, rows(&link["addresses"]).iter().map(address));
        out += &lease(&link["dhcp"]);
        let groups: Vec<String> = rows(&link["groups"]).iter().map(text).collect();
        if !groups.is_empty() {
            out += "    member of\n";
            out += &wrapped(6, groups);
        }
    }
    out
}

/// Leases of links with DHCP.
fn lease(dhcp: &Value) -> String {
    if dhcp.is_null() {
        return String::new();
    }
    let mut parts = vec![format!("DHCP {}", text(&dhcp["state"]))];
    if let Some(address) = dhcp["address"].as_str() {
        parts.push(format!("{address} from {}", text(&dhcp["server"])));
        match dhcp["expires_in_s"].as_u64() {
            Some(left) => {
                parts.extend([
                    format!("{left} s left"),
                    format!("renewed in {} s", figure(&dhcp["renews_in_s"])),
                ]);
            }
            None => parts.push("for ever".to_owned()),
        }
    }
    parts.extend(dhcp["link_local"].as_str().map(|address| format!("{address} meanwhile")));
    let mut out = wrapped(4, parts);
    for (key, title) in [("name_servers", "names are asked of"), ("search", "and searched in")] {
        let list: Vec<String> = rows(&dhcp[key]).iter().map(text).collect();
        if !list.is_empty() {
            let _ = writeln!(out, "      {title}");
            out += &wrapped(8, list);
        }
    }
    out
}

/// A time as hours, minutes and seconds.
pub fn age(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Sessions of services.
pub fn session_table(sessions: &[Session]) -> String {
    let columns = [Left("Service", 8), Left("User", 33), Left("From", 39), Right("Age", 10)];
    let row = |session: &Session| {
        [
            session.service.clone(),
            session.user.as_ref().map_or("-".to_owned(), |user| Cleaner::line(user.as_bytes())),
            session.peer.clone(),
            age(session.age_ns),
        ]
    };
    match sessions {
        [] => "no sessions\n".to_owned(),
        all => table(columns, all.iter().map(row)),
    }
}

/// Connections with what they wait for.
pub fn connection_table(rows: &Rows, filter: &str) -> String {
    if rows.rows.is_empty() {
        return match filter {
            "" => "no connections\n".to_owned(),
            _ => format!("no connection is like that; there are {}\n", rows.total),
        };
    }
    let columns = [
        Left("Local                 Remote", 43),
        Left("State", 10),
        Right("Recv-Q", 6),
        Right("Send-Q", 6),
        Right("Resent", 6),
        Left("Waits for", WAITS_FOR),
    ];
    let row = |of: &Row| {
        [
            format!("{:<21} {}", of.local, of.remote),
            // As ss has it.
            if of.state == "ESTABLISHED" { "ESTAB".to_owned() } else { of.state.clone() },
            bytes(of.receive_queue),
            bytes(of.send_queue),
            of.retransmitted_segments.to_string(),
            shortened(&of.waits_for()),
        ]
    };
    let mut text = table(columns, rows.rows.iter().map(row));
    if rows.rows.len() < rows.total {
        let _ = writeln!(text, "{} of {} connections", rows.rows.len(), rows.total);
    }
    text
}

/// Cells of a cause in words.
const WAITS_FOR: usize = 23;

fn shortened(text: &str) -> String {
    match text.chars().count() > WAITS_FOR {
        true => text.chars().take(WAITS_FOR - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// Listeners with both queues.
pub fn listeners(of: &Overview) -> String {
    let columns = [Left("Listener", 47), Right("Accept-Q", 8), Right("of", 6), Right("Handshakes", 10)];
    let row = |of: &Listener| {
        let limit = of.accept_limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
        [of.local.clone(), of.accept_queue.to_string(), limit, of.handshakes.to_string()]
    };
    match &of.listeners[..] {
        [] => "no listeners\n".to_owned(),
        all => table(columns, all.iter().map(row)),
    }
}

/// Sockets that are neither connections nor listeners; nothing where there are none.
pub fn others(of: &Overview) -> String {
    let columns =
        [Left("Kind", 5), Left("Local", 21), Left("Remote", 21), Right("Recv-Q", 6), Right("Send-Q", 6)];
    let row = |of: &Other| {
        let remote = of.remote.clone().unwrap_or_else(|| "-".to_owned());
        [of.kind.clone(), of.local.clone(), remote, bytes(of.receive_queue), bytes(of.send_queue)]
    };
    match &of.others[..] {
        [] => String::new(),
        all => table(columns, all.iter().map(row)),
    }
}

/// The latest lines of the log, with the time of day as UTC.
pub fn log(of: &Value) -> String {
    let line = |line: &Value| {
        let at = line["at_unix_ms"].as_i64().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let at = at.map_or_else(String::new, |at| at.strftime("%m-%d %H:%M:%S%.3fZ").to_string());
        let words = Cleaner::line(line["text"].as_str().unwrap_or_default().as_bytes());
        format!("{at} {:<5} {}: {words}\n", text(&line["level"]).to_uppercase(), text(&line["target"]))
    };
    match rows(&of["lines"]) {
        [] => "no lines in the log\n".to_owned(),
        lines => lines.iter().map(line).collect(),
    }
}

/// Loss recovery, rates, and what was agreed on.
fn recovery_and_rates(tcp: &Value) -> String {
    let (recovery, rates, agreed) = (&tcp["recovery"], &tcp["rates"], &tcp["agreed"]);
    let mut out = format!(
        "  recovery  {}; selectively acknowledged {}, lost {}, again in flight {}, duplicates {}, marks {}\n",
        text(&recovery["state"]),
        figure(&recovery["sacked_bytes"]),
        figure(&recovery["lost_bytes"]),
        figure(&recovery["retransmitted_in_flight_bytes"]),
        figure(&recovery["duplicate_sacks"]),
        figure(&recovery["congestion_marks"])
    );
    let limit = if rates["delivery_is_application_limited"] == true { " (application)" } else { "" };
    let _ = writeln!(
        out,
        "  bytes/s   delivered {}{limit}, paced {}; least round trip {} ms",
        figure(&rates["delivery_bytes_per_second"]),
        figure(&rates["pacing_bytes_per_second"]),
        milliseconds(&tcp["min_round_trip_ns"])
    );
    let names = [
        ("timestamps", "timestamps"),
        ("window_scaling", "window scaling"),
        ("sack", "SACK"),
        ("ecn", "ECN"),
    ];
    let mut terms: Vec<String> =
        names.into_iter().filter(|(key, _)| agreed[*key] == true).map(|(_, name)| name.to_owned()).collect();
    if let Some(state) = agreed["fast_open"].as_str().filter(|&state| state != "none") {
        terms.push(format!("fast open: {state}"));
    }
    let terms = if terms.is_empty() { "nothing".to_owned() } else { terms.join(", ") };
    let _ = writeln!(out, "  agreed    {terms}");
    out
}

/// Each connection with the figures behind its state.
pub fn connection_details(connections: &[Value]) -> String {
    let mut out = String::new();
    for socket in connections {
        let tcp = &socket["tcp"];
        let (send, receive) = (&tcp["send"], &tcp["receive"]);
        let _ = writeln!(out, "{}", heading(socket));
        let _ = writeln!(
            out,
            "  sent      {} bytes; queued {} of {}, not sent {}, in flight {}, window {}, segment {}",
            figure(&send["bytes"]),
            figure(&send["queue_bytes"]),
            figure(&send["queue_capacity_bytes"]),
            figure(&send["not_sent_bytes"]),
            figure(&send["in_flight_bytes"]),
            figure(&send["window_bytes"]),
            figure(&send["segment_bytes"])
        );
        let _ = writeln!(
            out,
            "  received  {} bytes; queued {} of {}, out of order {}, window {}",
            figure(&receive["bytes"]),
            figure(&receive["queue_bytes"]),
            figure(&receive["queue_capacity_bytes"]),
            figure(&receive["reassembly_bytes"]),
            figure(&receive["window_bytes"])
        );
        let _ = writeln!(
            out,
            "  round trip {} ms, variation {} ms, time-out {} ms; sent again {}, timed out {}",
            milliseconds(&tcp["smoothed_round_trip_ns"]),
            milliseconds(&tcp["round_trip_variation_ns"]),
            milliseconds(&tcp["retransmission_timeout_ns"]),
            figure(&tcp["retransmitted_segments"]),
            figure(&tcp["timeouts"])
        );
        let threshold = tcp["slow_start_threshold_bytes"].as_u64().filter(|&at| at < NO_THRESHOLD_BYTES);
        let _ = writeln!(
            out,
            "  {}, congestion window {}, slow start to {}",
            text(&tcp["congestion_control"]),
            figure(&tcp["congestion_window_bytes"]),
            threshold.map_or_else(|| "the first loss".to_owned(), |at| at.to_string())
        );
        out.push_str(&recovery_and_rates(tcp));
        for error in ["error", "soft_error"].into_iter().filter_map(|name| tcp[name].as_str()) {
            let _ = writeln!(out, "  {error}");
        }
        out.push('\n');
    }
    if out.is_empty() { "no connections\n".into() } else { out }
}

/// Ends, state and age; in two lines where one is too short.
fn heading(socket: &Value) -> String {
    let ends = format!("{} <-> {}", text(&socket["local"]), text(&socket["remote"]));
    let age = number(&socket["tcp"]["age_ns"]) as f64 / 1e9;
    let state = format!("{}, {age:.3} s old", text(&socket["state"]));
    let between = if ends.len() + 2 + state.len() > WIDTH { "\n  " } else { "  " };
    format!("{ends}{between}{state}")
}

/// Time ledger of each connection: both ledgers, as shares of its age.
pub fn ledgers(connections: &[Value]) -> String {
    let mut out = String::new();
    for socket in connections {
        let tcp = &socket["tcp"];
        let age = number(&tcp["age_ns"]);
        let _ = writeln!(out, "{}", heading(socket));
        for side in ["send", "receive"] {
            let _ = writeln!(out, "  {side:<8} now: {}", text(&tcp[side]["cause"]));
            let ledger = tcp[side]["ledger_ns"].as_object();
            let mut causes: Vec<(&String, u64)> = ledger
                .into_iter()
                .flatten()
                .map(|(cause, time)| (cause, number(time)))
                .filter(|(_, time)| *time > 0)
                .collect();
            causes.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
            for (cause, time) in causes {
                let share = 100.0 * time as f64 / age.max(1) as f64;
                let _ = writeln!(out, "    {share:>6.2} %  {:>12.6} s  {cause}", time as f64 / 1e9);
            }
        }
        out.push('\n');
    }
    if out.is_empty() { "no connections\n".into() } else { out }
}

pub fn neighbour_table(state: &Value) -> String {
    let columns =
        [Left("Link", 4), Left("Address", 39), Left("Hardware", 17), Left("State", 10), Left("Router", 6)];
    let row = |neighbour: serde_json::Map<String, Value>| {
        let cell = |name: &str| neighbour.get(name).map_or_else(|| "-".to_owned(), text);
        [
            neighbour.get("link").map_or_else(String::new, figure),
            cell("address"),
            cell("hardware"),
            cell("state"),
            if neighbour.get("is_router") == Some(&Value::Bool(true)) { "yes" } else { "" }.to_owned(),
        ]
    };
    let mut all = neighbours(state).peekable();
    match all.peek() {
        None => "no neighbours\n".to_owned(),
        Some(_) => table(columns, all.map(row)),
    }
}

pub fn route_table(state: &Value) -> String {
    let columns = [
        Left("Destination", 28),
        Left("Gateway", 39),
        Left("Link", 4),
        Right("Preference", 10),
        Left("Origin", 10),
    ];
    let row = |route: &Value| {
        [
            text(&route["destination"]),
            text(&route["gateway"]),
            figure(&route["link"]),
            figure(&route["preference"]),
            text(&route["origin"]),
        ]
    };
    table(columns, rows(&state["routes"]).iter().map(row))
}

pub fn counters(state: &Value) -> String {
    let mut out = String::from("host\n");
    let mut list = |name: &str, count: u64| {
        let _ = writeln!(out, "  {:<40} {count:>14}", name.replace('_', " "));
    };
    for (name, count) in state["counters"].as_object().into_iter().flatten() {
        list(name, number(count));
    }
    for link in rows(&state["interfaces"]) {
        let _ = writeln!(out, "link {} {}", figure(&link["link"]), link_name(link));
        let mut list = |name: String, count: u64| {
            if count > 0 {
                let _ = writeln!(out, "  {name:<40} {count:>14}");
            }
        };
        for (name, count) in link["ip"].as_object().into_iter().flatten() {
            list(name.replace('_', " "), number(count));
        }
        for (why, count) in link["dropped"].as_object().into_iter().flatten() {
            list(format!("dropped: {why}"), number(count));
        }
        list("driver: was full".to_owned(), number(&link["driver"]["full"]));
        for (why, count) in link["driver"]["discarded"].as_object().into_iter().flatten() {
            list(format!("driver discarded: {why}"), number(count));
        }
    }
    out
}

/// Timers, memory, reassembly, and who waits to send.
pub fn queues(state: &Value) -> String {
    let (queues, now_ns) = (&state["queues"], number(&state["now_ns"]));
    let mut out = String::from("timers\n");
    for (name, field) in
        [("sockets", "socket_timer_ns"), ("IP", "ip_timer_ns"), ("memory, retry", "memory_retry_ns")]
    {
        // A deadline that passed is run by the next round.
        let due = queues[field].as_u64().map(|at| Duration::from_nanos(at.saturating_sub(now_ns)));
        let due = due.map_or("none".to_owned(), |due| format!("in {due:.1?}"));
        let _ = writeln!(out, "  {name:<30} {due:>14}");
    }
    let mut section = |title: &str, lines: &[(&str, String)]| {
        let _ = writeln!(out, "{title}");
        for (name, text) in lines {
            let _ = writeln!(out, "  {name:<30} {text:>14}");
        }
    };
    let size = |field: &str| bytes(number(&queues[field]));
    let count = |field: &str| number(&queues[field]).to_string();
    let pool = [
        ("in use", size("memory_bytes")),
        ("queues of applications", size("memory_outside_bytes")),
        ("kept for reuse", size("memory_idle_bytes")),
        ("limit", size("memory_limit_bytes")),
        ("refused, times", count("memory_refused")),
    ];
    section("packet pool", &pool);
    let reassembly = [
        ("datagrams in the making", count("reassembling")),
        ("the most", count("reassembling_limit")),
        ("memory", size("reassembling_bytes")),
        ("the most", size("reassembling_limit_bytes")),
    ];
    section("reassembly of fragments", &reassembly);
    for link in rows(&queues["links"]) {
        let senders = number(&link["senders"]).to_string();
        section(
            &format!("link {}", figure(&link["link"])),
            &[("sockets whose turn to send is to come", senders)],
        );
    }
    section("connections without a socket", &[("not ended yet", count("orphans"))]);
    out
}

pub fn memory(state: &Value) -> String {
    let memory = &state["memory"];
    let mebibytes = |value: &Value| number(value) as f64 / f64::from(1 << 20);
    format!(
        "Memory: {:.2} MiB of {:.0} MiB, refused {} times\n",
        mebibytes(&memory["used_bytes"]),
        mebibytes(&memory["limit_bytes"]),
        number(&memory["refused"])
    )
}
