//! `inhost netstat`: a running host as a person reads it.

pub mod table;
mod views;

use crate::args::Netstat;
use crate::failure::Failure;
use inhost_runtime::control::{self, Client};
use serde_json::{Value, json};
use std::io::Write as _;

pub use views::summary;

/// Asks the running host and prints.
pub fn run(arguments: &Netstat) -> Result<(), Failure> {
    let path = arguments.via.clone().unwrap_or_else(control::default_path);
    let state = Client::open(&path).map_err(|e| e.to_string());
    let state = state.and_then(|mut client| ask(&mut client).map_err(|e| e.to_string())).map_err(|why| {
        Failure::operation(format!(
            "no host answers at {}: {why}; start one with inhost serve, or name its socket with --via PATH",
            path.display()
        ))
    })?;
    let text = match arguments.json {
        true => format!("{}\n", part_of(&state, arguments.part.as_deref())),
        false => views::view(&state, arguments.part.as_deref()),
    };
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A reader that went away, as `| head` does, is no failure.
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::operation(format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// The host's state, each interface with its lease, and the sessions of its services.
fn ask(client: &mut Client) -> Result<Value, control::ClientError> {
    // First, so that the host shows what a lease has put in force. A host that is older, or that is no program of ours,
    // knows of none.
    let leases =
        client.request(&json!({"op": "leases"})).map_or(Value::Null, |(answer, _)| answer["leases"].clone());
    // An older host lists none.
    let sessions = client
        .request(&json!({"op": "sessions"}))
        .map_or(Value::Null, |(answer, _)| answer["sessions"].clone());
    let mut state = client.netstat()?;
    if !sessions.is_null() {
        state["sessions"] = sessions;
    }
    for link in state["interfaces"].as_array_mut().into_iter().flatten() {
        if let Some(lease) = rows(&leases).iter().find(|lease| lease["link"] == link["link"]) {
            link["dhcp"] = lease.clone();
        }
    }
    Ok(state)
}

/// The part of the host's state that is asked for, or all of it.
fn part_of(state: &Value, part: Option<&str>) -> Value {
    match part {
        None => state.clone(),
        Some("connections" | "ledgers") => connections(state).cloned().collect(),
        Some("neighbours") => neighbours(state).map(Value::from).collect(),
        Some(part) => state[part].clone(),
    }
}

fn connections(state: &Value) -> impl Iterator<Item = &Value> {
    rows(&state["sockets"]).iter().filter(|socket| socket["kind"] == "connection")
}

/// The neighbours of all interfaces, each with its link.
fn neighbours(state: &Value) -> impl Iterator<Item = serde_json::Map<String, Value>> {
    let of_link = |link: &Value| {
        let number = link["link"].clone();
        let with_link = move |neighbour: &Value| {
            let mut row = neighbour.as_object().cloned().unwrap_or_default();
            row.insert("link".to_owned(), number.clone());
            row
        };
        rows(&link["neighbours"]).iter().map(with_link).collect::<Vec<_>>()
    };
    rows(&state["interfaces"]).iter().flat_map(of_link)
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with the longest addresses that there are.
    fn state() -> Value {
        let far = "[fd00:1111:2222:3333:4444:5555:6666:7777]:65535";
        let ledger = json!({"application idle": 900_000_000, "receiver's window": 100_000_000});
        let side = json!({"cause": "application idle", "ledger_ns": ledger, "window_bytes": 4_000_000,
            "queue_bytes": 0, "bytes": 0});
        json!({
            "interfaces": [{"link": 1, "name": "in0", "medium": "ethernet", "mtu_bytes": 1500,
                "hardware": "02:00:00:00:00:01", "dhcp": {"link": 1, "state": "rebinding",
                    "address": "255.255.255.254/32", "server": "255.255.255.255", "expires_in_s": 4_294_967_295u64,
                    "renews_in_s": 2_147_483_647, "link_local": null, "dhcpv6": "informed",
                    "name_servers": vec!["fd00:1111:2222:3333:4444:5555:6666:7777"; 6],
                    "search": vec!["a-long-domain.of-a-department.example"; 6]},
                "dropped": {"no such port": 3},
                "received_frames": 99_999_999_999u64, "received_bytes": 99_999_999_999_999u64,
                "addresses": [{"address": "fd00:1111:2222:3333:4444:5555:6666:7777/64", "state": "tentative"},
                    {"address": "fe80:1111:2222:3333:4444:5555:6666:7777/64", "state": "preferred"}],
                "neighbours": [{"address": "fd00:1111:2222:3333:4444:5555:6666:8888", "state": "reachable",
                    "hardware": "02:00:00:00:00:02", "is_router": true}]}],
            "routes": [{"destination": "fd00:1111:2222:3333:4444:5555:6666:7777/128", "link": 1, "preference": 1,
                "gateway": "fe80:1111:2222:3333:4444:5555:6666:8888", "origin": "advertised"}],
            "sockets": [{"kind": "connection", "local": far, "remote": far, "state": "ESTABLISHED",
                "tcp": {"age_ns": 1_000_000_000, "send": side, "receive": side,
                    "smoothed_round_trip_ns": 12_345_678, "retransmitted_segments": 7}},
                {"kind": "listener", "local": "[::]:23", "remote": null, "state": null, "tcp": null}],
            "counters": {"connections_opened": 1},
            "sessions": [{"service": "telnet", "peer": "fd00:1111:2222:3333:4444:5555:6666:7777",
                "user": "a_name_of_thirty-two_letters.abcd", "age_ns": 359_999_000_000_000u64}],
            "memory": {"used_bytes": 1 << 20, "limit_bytes": 1 << 28, "refused": 0},
        })
    }

    #[test]
    fn every_part_is_shown_and_fits() {
        let parts = ["interfaces", "connections", "sessions", "ledgers", "neighbours", "routes", "counters"];
        let state = state();
        for part in parts.into_iter().map(Some).chain([None]) {
            let text = views::view(&state, part);
            assert!(text.lines().count() > 1, "{part:?}: {text}");
            assert!(text.lines().all(|line| line.chars().count() <= table::WIDTH), "{part:?}: {text}");
            let json = part_of(&state, part);
            assert!(json.as_array().is_none_or(|list| list.len() == 1), "{part:?}: {json}");
            assert!(!json.is_null());
        }
        assert!(views::view(&state, Some("neighbours")).contains("02:00:00:00:00:02"));
        assert_eq!(part_of(&state, Some("neighbours"))[0]["link"], 1);
        let mut state = state;
        state["sockets"] = json!({"connections": 65_535, "listeners": 12, "udp": 7});
        assert!(summary(&state).contains("65535 connections, 12 listeners, 7 UDP sockets"));
        assert!(summary(&state).lines().all(|line| line.len() < 80), "a stranger's terminal");
    }

    #[test]
    fn an_empty_host_has_nothing_to_hide() {
        assert_eq!(views::view(&json!({}), Some("neighbours")), "no neighbours\n");
        assert_eq!(views::view(&json!({}), Some("sessions")), "no sessions\n");
        assert_eq!(views::view(&json!({}), Some("ledgers")), "no connections\n");
    }
}
