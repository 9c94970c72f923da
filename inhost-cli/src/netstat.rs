//! `inhost netstat`: a running host as a person reads it.

mod histograms;
pub mod table;
mod views;

use crate::args::{Netstat, Part};
use crate::failure::Failure;
use crate::output::print;
use crate::views::{Overview, Rows, Session, SessionRows, list, open, step_back, view};
use inhost_dashboard::Filter;
use inhost_runtime::control::{Client, ClientError};
use serde_json::{Value, json};

pub use views::{age as session_age, bytes as size, log as log_text, summary};

/// Asks the running host and prints.
pub fn run(arguments: &Netstat) -> Result<(), Failure> {
    step_back();
    let part = arguments.part();
    let filter = arguments.filter();
    filter.parse::<Filter>().map_err(|wrong| Failure::usage(wrong.to_string()))?;
    let is_of_connections = matches!(part, None | Some(Part::Connections | Part::Ledgers));
    if !filter.is_empty() && !is_of_connections {
        return Err(Failure::usage("a filter chooses connections: of that part there are none"));
    }
    if arguments.svg.is_some() && part != Some(Part::Histograms) {
        return Err(Failure::usage("--svg draws histograms: inhost netstat histograms --svg FILE"));
    }
    let (path, mut client) = open(arguments.via.as_deref())?;
    let chosen = Chosen { part, filter, arguments };
    match chosen.text(&mut client) {
        Ok(text) => match &arguments.svg {
            Some(to) if to.as_os_str() != "-" => {
                std::fs::write(to, text).map_err(|e| Failure::operation(format!("{}: {e}", to.display())))
            }
            _ => print(&text),
        },
        Err(ClientError::Refused { text, .. }) => Err(refused(&text)),
        Err(why) => Err(Failure::operation(format!("the host at {}: {why}", path.display()))),
    }
}

fn refused(text: &str) -> Failure {
    match text.contains("no such request") {
        true => Failure::operation("the host is older than this command; --json shows what it has"),
        false => Failure::operation(text),
    }
}

/// What is asked.
struct Chosen<'a> {
    part: Option<Part>,
    filter: String,
    arguments: &'a Netstat,
}

impl Chosen<'_> {
    fn text(&self, client: &mut Client) -> Result<String, ClientError> {
        if self.arguments.json {
            return Ok(format!("{}\n", self.json(client)?));
        }
        Ok(match self.part {
            Some(Part::Interfaces) => views::interface_details(&with_leases(client)?),
            Some(Part::Connections) => views::connection_details(&self.details(client)?),
            Some(Part::Ledgers) => views::ledgers(&self.details(client)?),
            Some(Part::Neighbours) => views::neighbour_table(&client.counters()?),
            Some(Part::Routes) => views::route_table(&client.counters()?),
            Some(Part::Counters) => views::counters(&client.counters()?),
            Some(Part::Queues) => views::queues(&client.counters()?),
            Some(Part::Listeners) => views::listeners(&overview(client)?),
            Some(Part::Sessions) => views::session_table(&sessions(client)?),
            Some(Part::Log) => views::log(&view(client, "log")?),
            Some(Part::Histograms) => {
                let found: Value = view(client, "histograms")?;
                match self.arguments.svg {
                    Some(_) => inhost_dashboard::draw_histograms(&found),
                    None => histograms::text(&found),
                }
            }
            None => {
                let rows = self.rows(client)?;
                let connections = views::connection_table(&rows, &self.filter);
                if !self.filter.is_empty() {
                    return Ok(connections);
                }
                let (state, overview) = (client.counters()?, overview(client)?);
                [
                    views::interfaces(&state),
                    connections,
                    views::listeners(&overview),
                    views::others(&overview),
                    views::memory(&state),
                ]
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect::<Vec<_>>()
                .join("\n")
            }
        })
    }
    fn json(&self, client: &mut Client) -> Result<Value, ClientError> {
        Ok(match self.part {
            Some(Part::Connections | Part::Ledgers) => self.details(client)?.into(),
            None if !self.filter.is_empty() => self.details(client)?.into(),
            None => whole(client)?,
            Some(Part::Interfaces) => with_leases(client)?["interfaces"].take(),
            Some(Part::Neighbours) => neighbours(&client.counters()?).map(Value::from).collect(),
            Some(Part::Routes) => client.counters()?["routes"].take(),
            Some(Part::Counters) => counters(client.counters()?),
            Some(Part::Queues) => client.counters()?["queues"].take(),
            Some(Part::Listeners) => json!(overview(client)?.listeners),
            Some(Part::Sessions) => json!(sessions(client)?),
            Some(Part::Log) => view::<Value>(client, "log")?["lines"].take(),
            Some(Part::Histograms) => view::<Value>(client, "histograms")?["histograms"].take(),
        })
    }
    /// The connections that are meant.
    fn rows(&self, client: &mut Client) -> Result<Rows, ClientError> {
        let (sort, limit) = (self.arguments.sort, self.arguments.count.map_or(usize::MAX, usize::from));
        view(client, &list(&sort.name(), sort.is_descending_at_first(), 0, limit, &self.filter))
    }
    /// The same with every figure of each.
    fn details(&self, client: &mut Client) -> Result<Vec<Value>, ClientError> {
        let mut all = Vec::new();
        for row in self.rows(client)?.rows {
            let mut answer = client.status(&row.id)?;
            // One that is over by now has none.
            if !answer["status"].is_null() {
                all.push(answer["status"].take());
            }
        }
        Ok(all)
    }
}

fn overview(client: &mut Client) -> Result<Overview, ClientError> {
    view(client, "host")
}

fn sessions(client: &mut Client) -> Result<Vec<Session>, ClientError> {
    let all: SessionRows = view(client, &format!("sessions?limit={}", usize::MAX))?;
    Ok(all.rows)
}

/// The host's state, each interface with its lease, and the sessions of its services.
fn whole(client: &mut Client) -> Result<Value, ClientError> {
    let (leases, sessions) = (leases(client), sessions(client).map(|of| json!(of)));
    let mut state = client.netstat()?;
    // An older host lists none.
    if let Ok(sessions) = sessions {
        state["sessions"] = sessions;
    }
    lease_out(&mut state, &leases);
    Ok(state)
}

fn with_leases(client: &mut Client) -> Result<Value, ClientError> {
    let leases = leases(client);
    let mut state = client.counters()?;
    lease_out(&mut state, &leases);
    Ok(state)
}

/// Asked first, so that the host shows what a lease has put in force. A host that is older, or that is not a program of ours,
/// knows of none.
fn leases(client: &mut Client) -> Value {
    client.request(&json!({"op": "leases"})).map_or(Value::Null, |(answer, _)| answer["leases"].clone())
}

fn lease_out(state: &mut Value, leases: &Value) {
    for link in state["interfaces"].as_array_mut().into_iter().flatten() {
        if let Some(lease) = rows(leases).iter().find(|lease| lease["link"] == link["link"]) {
            link["dhcp"] = lease.clone();
        }
    }
}

/// The host's counters, and those of each link with what was dropped there.
fn counters(mut state: Value) -> Value {
    let of_link = |link: &mut Value| {
        let [number, name, ip, dropped, driver] =
            ["link", "name", "ip", "dropped", "driver"].map(|key| link[key].take());
        json!({"link": number, "name": name, "ip": ip, "dropped": dropped, "driver": driver})
    };
    let links = state["interfaces"].as_array_mut().into_iter().flatten().map(of_link).collect();
    let mut counters = state["counters"].take();
    counters["links"] = Value::Array(links);
    counters
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
    use crate::views::{Listener, Other, Row, Session};

    const FAR: &str = "[fd00:1111:2222:3333:4444:5555:6666:7777]:65535";

    /// A host with the longest addresses that there are.
    fn state() -> Value {
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
            "counters": {"connections_opened": 1},
            "memory": {"used_bytes": 1 << 20, "limit_bytes": 1 << 28, "refused": 0},
            "now_ns": 1_000_000_000,
            "queues": {"socket_timer_ns": 1_250_000_000, "ip_timer_ns": null, "memory_retry_ns": null,
                "orphans": 65_535, "memory_bytes": 1 << 30, "memory_outside_bytes": 1 << 30,
                "memory_idle_bytes": 1 << 30, "memory_limit_bytes": 1 << 30, "memory_refused": 9_999_999,
                "reassembling": 64, "reassembling_limit": 64, "reassembling_bytes": 1 << 20,
                "reassembling_limit_bytes": 1 << 20, "links": [{"link": 1, "senders": 65_535}]},
        })
    }

    fn connection() -> Value {
        let ledger = json!({"application idle": 900_000_000, "receiver's window": 100_000_000});
        let side = json!({"cause": "application idle", "ledger_ns": ledger, "window_bytes": 4_000_000,
            "queue_bytes": 0, "bytes": 0});
        json!({"kind": "connection", "local": FAR, "remote": FAR, "state": "ESTABLISHED",
            "tcp": {"age_ns": 1_000_000_000, "send": side, "receive": side,
                "smoothed_round_trip_ns": 12_345_678, "retransmitted_segments": 7}})
    }

    #[test]
    fn every_part_fits() {
        let state = state();
        let row = Row {
            local: FAR.to_owned(),
            remote: FAR.to_owned(),
            state: "ESTABLISHED".to_owned(),
            causes: vec![("awaiting acknowledgment".to_owned(), 100.0)],
            ..Row::default()
        };
        let rows = Rows { total: 1, matched: 1, rows: vec![row] };
        let listener =
            Listener { local: FAR.to_owned(), accept_queue: 4096, accept_limit: Some(4096), handshakes: 9 };
        let other = Other {
            kind: "probe".to_owned(),
            local: FAR.to_owned(),
            remote: Some(FAR.to_owned()),
            receive_queue: 99_999_999,
            send_queue: 1,
        };
        let session = Session {
            service: "telnet".to_owned(),
            peer: "fd00:1111:2222:3333:4444:5555:6666:7777".to_owned(),
            user: Some("a_name_of_thirty-two_letters.abcd".to_owned()),
            age_ns: 359_999_000_000_000,
        };
        let overview = Overview { listeners: vec![listener], others: vec![other], ..Overview::default() };
        let log = json!({"lines": [{"at_unix_ms": 1_790_000_000_000u64, "level": "warn", "target": "host", "text": "x"}]});
        let texts = [
            views::interfaces(&state),
            views::interface_details(&state),
            views::connection_details(&[connection()]),
            views::ledgers(&[connection()]),
            views::neighbour_table(&state),
            views::route_table(&state),
            views::counters(&state),
            views::queues(&state),
            views::connection_table(&rows, ""),
            views::listeners(&overview),
            views::others(&overview),
            views::session_table(&[session]),
            views::memory(&state),
            views::log(&log),
        ];
        for text in texts {
            assert!(text.lines().all(|line| line.chars().count() <= table::WIDTH), "{text}");
            assert!(text.ends_with('\n') && text.lines().count() >= 1, "{text}");
        }
        assert!(views::neighbour_table(&state).contains("02:00:00:00:00:02"));
        assert_eq!(neighbours(&state).next().unwrap()["link"], 1);
        let mut state = state;
        state["sockets"] = json!({"connections": 65_535, "listeners": 12, "udp": 7});
        assert!(summary(&state).contains("65535 connections, 12 listeners, 7 UDP sockets"));
        assert!(summary(&state).lines().all(|line| line.len() < 80), "a stranger's terminal");
    }

    #[test]
    fn an_empty_host_has_nothing_to_hide() {
        assert_eq!(views::neighbour_table(&json!({})), "no neighbours\n");
        assert_eq!(views::session_table(&[]), "no sessions\n");
        assert_eq!(views::ledgers(&[]), "no connections\n");
        assert_eq!(views::connection_table(&Rows::default(), ""), "no connections\n");
        assert_eq!(
            views::connection_table(&Rows::default(), "port 1"),
            "no connection is like that; there are 0\n"
        );
    }
}
