//! Figures for Prometheus, in its text format. Labels are bounded: links, reasons, states, causes and services, but neither
//! peers nor users.

use std::collections::BTreeMap;
use std::fmt::Write;

use inhost_event::{SendCause, TcpState};
use serde_json::Value;

use crate::histograms::Histograms;
use crate::list::Snapshot;

/// Bounds of times, in seconds, and of sizes, in bytes.
const SECONDS: [f64; 8] = [1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0];
const BYTES: [f64; 8] = [64.0, 256.0, 1024.0, 1460.0, 4096.0, 16_384.0, 65_536.0, 1_048_576.0];
/// Links that are told; a host with more has none beyond.
const LINKS: usize = 16;

/// A text in the making.
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP inhost_{name} {help}\n# TYPE inhost_{name} {kind}");
    }
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let _ = write!(self.0, "inhost_{name}");
        for (place, (label, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{value}\"", if place == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }
    fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

/// The figures of a host: `overview` as the control socket has it, sessions by service.
pub(crate) fn text(
    overview: &Value,
    snapshot: &Snapshot,
    sessions: &BTreeMap<&'static str, usize>,
    retransmissions: u64,
    histograms: Option<&Histograms>,
) -> String {
    let mut text = Text(String::new());
    text.family("build_info", "gauge", "The version that runs.");
    text.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    text.one("uptime_seconds", "gauge", "Since the host began.", number(&overview["now_ns"]) / 1e9);
    let memory = &overview["memory"];
    text.one("memory_used_bytes", "gauge", "Memory of packets and queues.", number(&memory["used_bytes"]));
    text.one("memory_limit_bytes", "gauge", "Its limit.", number(&memory["limit_bytes"]));
    text.one(
        "memory_refused_total",
        "counter",
        "Times that there was no memory left.",
        number(&memory["refused"]),
    );
    for (name, count) in overview["counters"].as_object().into_iter().flatten() {
        text.one(&format!("{name}_total"), "counter", &format!("{}.", name.replace('_', " ")), number(count));
    }
    text.one("retransmissions_total", "counter", "Segments sent again.", retransmissions as f64);
    links(&mut text, overview);
    connections(&mut text, snapshot);
    text.family("sessions", "gauge", "Sessions by service.");
    for (service, count) in sessions {
        text.sample("sessions", &[("service", service)], *count as f64);
    }
    if let Some(histograms) = histograms {
        histograms.each(|name, unit, at_most, count, sum| {
            let (unit, factor, bounds) =
                if unit == "ns" { ("seconds", 1e9, SECONDS) } else { ("bytes", 1.0, BYTES) };
            let name = format!("{}_{unit}", name.replace(' ', "_"));
            text.family(&name, "histogram", "A sample of what passes.");
            for bound in bounds {
                let below = at_most((bound * factor) as u64) as f64;
                text.sample(&format!("{name}_bucket"), &[("le", &bound.to_string())], below);
            }
            text.sample(&format!("{name}_bucket"), &[("le", "+Inf")], count as f64);
            text.sample(&format!("{name}_sum"), &[], sum / factor);
            text.sample(&format!("{name}_count"), &[], count as f64);
        });
    }
    text.0
}

fn links(text: &mut Text, overview: &Value) {
    let links = overview["interfaces"].as_array().map_or(&[][..], Vec::as_slice);
    let links: Vec<(String, &Value)> =
        links.iter().take(LINKS).map(|link| (link["link"].to_string(), link)).collect();
    let figures = [
        ("received_frames", "Frames that came."),
        ("received_bytes", "Bytes that came."),
        ("sent_frames", "Frames that left."),
        ("sent_bytes", "Bytes that left."),
    ];
    for (figure, help) in figures {
        let name = format!("link_{figure}_total");
        text.family(&name, "counter", help);
        for (number, link) in &links {
            text.sample(&name, &[("link", number)], link[figure].as_f64().unwrap_or(0.0));
        }
    }
    text.family("link_up", "gauge", "Whether the link's driver works.");
    for (number, link) in links.iter().filter(|(_, link)| !link["driver"].is_null()) {
        text.sample("link_up", &[("link", number)], f64::from(u8::from(link["driver"]["state"] == "up")));
    }
    text.family("dropped_total", "counter", "What went no further, by its reason.");
    for (number, link) in &links {
        for (reason, count) in link["dropped"].as_object().into_iter().flatten() {
            text.sample(
                "dropped_total",
                &[("link", number), ("reason", reason)],
                count.as_f64().unwrap_or(0.0),
            );
        }
    }
}

fn connections(text: &mut Text, snapshot: &Snapshot) {
    let mut states = BTreeMap::<TcpState, usize>::new();
    let mut causes = [0usize; SendCause::COUNT];
    for row in &snapshot.rows {
        *states.entry(row.state).or_default() += 1;
        causes[row.cause as usize] += 1;
    }
    text.family("connections", "gauge", "Connections by state.");
    for (state, count) in states {
        text.sample("connections", &[("state", state.text())], count as f64);
    }
    text.family("connections_waiting", "gauge", "Connections by what their sending waits for.");
    for (cause, count) in SendCause::ALL.iter().zip(causes) {
        text.sample("connections_waiting", &[("cause", cause.text())], count as f64);
    }
}
