//! Text output of `inhost lookup`.

use inhost_base::Duration;
use serde_json::Value;
use std::collections::BTreeSet;

/// The records in sentences, then who said so and how long it took; with `trace` every server that was asked.
pub fn text(report: &Value, trace: bool) -> String {
    let mut lines = Vec::new();
    let mut seen = BTreeSet::new();
    for question in array(&report["questions"]) {
        for record in array(&question["records"]) {
            let line = sentence(record, word(&report["name"]));
            // Two questions about one name meet the same aliases.
            if seen.insert(line.clone()) {
                lines.push(line);
            }
        }
    }
    let found = report["found"].as_bool() == Some(true);
    if found {
        lines.extend(array(&report["questions"]).iter().filter(|q| q["status"] != "found").map(missing));
    }
    if trace || found {
        let traced = array(&report["questions"]).iter().flat_map(|question| said(question, trace));
        let mut said = Vec::new();
        traced.for_each(|line| {
            if !said.contains(&line) {
                said.push(line);
            }
        });
        lines.extend(said);
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Why there is nothing, in a line, with what to try.
pub fn why_nothing(report: &Value) -> String {
    let name = word(&report["name"]);
    let questions = array(&report["questions"]);
    let by = || {
        let servers: BTreeSet<&str> = questions
            .iter()
            .flat_map(|question| array(&question["attempts"]))
            .filter(|attempt| attempt["answered"] == true)
            .map(|attempt| word(&attempt["server"]))
            .collect();
        match servers.is_empty() {
            true => String::new(),
            false => format!(", says {}", servers.into_iter().collect::<Vec<_>>().join(" and ")),
        }
    };
    if questions.iter().any(|question| question["source"] == "link" && question["status"] == "failed") {
        return format!("nobody on the link answers to {name}; is it up, and does it speak mDNS?");
    }
    if let Some(failed) = questions.iter().find(|question| question["status"] == "failed") {
        let last = array(&failed["attempts"]).last().map(|attempt| word(&attempt["server"]));
        let server = last.map_or_else(String::new, |server| format!(" (asked {server} last)"));
        return format!("no answer for {name}: {}{server}; try another with @SERVER", word(&failed["why"]));
    }
    if questions.iter().any(|question| question["status"] == "no such name") {
        return format!("there is no name {name}{}; check the spelling", by());
    }
    let kinds: Vec<&str> = questions.iter().map(|question| word(&question["type"])).collect();
    format!("{name} exists and has no {} record{}", kinds.join(" or "), by())
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

/// A record in words.
fn sentence(record: &Value, asked: &str) -> String {
    let (name, data) = (word(&record["name"]), word(&record["data"]));
    match word(&record["type"]) {
        "A" => format!("{name} has address {data}"),
        "AAAA" => format!("{name} has IPv6 address {data}"),
        "CNAME" => format!("{name} is an alias of {data}"),
        // An address is shown as it was typed.
        "PTR" if name.ends_with(".arpa") && !asked.ends_with(".arpa") => format!("{asked} is {data}"),
        "PTR" => format!("{name} points to {data}"),
        "MX" => {
            let exchange = word(&record["exchange"]);
            format!("{name} gets its mail at {exchange} (preference {})", record["preference"])
        }
        "NS" => format!("{name} has name server {data}"),
        "TXT" => format!("{name} says \"{data}\""),
        kind => format!("{name} {kind} {data}"),
    }
}

fn missing(question: &Value) -> String {
    let (name, kind) = (word(&question["name"]), word(&question["type"]));
    match (word(&question["status"]), question["why"].as_str()) {
        ("failed", Some(why)) => format!("{name} {kind}: {why}"),
        _ => format!("{name} has no {kind} record"),
    }
}

/// The source of the answer.
fn said(question: &Value, trace: bool) -> Vec<String> {
    let kind = word(&question["type"]);
    let attempts = array(&question["attempts"]);
    if question["source"] == "table" {
        return vec!["  by the table of hosts, or what every host knows".to_owned()];
    }
    if question["source"] == "kept" {
        return vec![format!("  {kind} as the forwarder of the running host has kept it")];
    }
    let line = |attempt: &Value| {
        let (server, transport) = (word(&attempt["server"]), word(&attempt["transport"]));
        let took = Duration::from_nanos(attempt["took_ns"].as_u64().unwrap_or(0));
        let passed_over: String = attempt["passed_over"].as_object().map_or_else(String::new, |counts| {
            counts.iter().map(|(what, count)| format!(", passed over {count} {what}")).collect()
        });
        match trace || attempt["answered"] != true {
            true => {
                format!("  {kind} {server} {transport}: {} in {took}{passed_over}", word(&attempt["outcome"]))
            }
            false => format!("  {kind} by {server} in {took} ({transport})"),
        }
    };
    match trace {
        true => attempts.iter().map(line).collect(),
        false => attempts.iter().filter(|attempt| attempt["answered"] == true).map(line).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn attempt(server: &str, outcome: &str, answered: bool) -> Value {
        json!({ "server": server, "transport": "UDP", "took_ns": 12_000_000, "answered": answered,
            "outcome": outcome, "passed_over": {} })
    }

    #[test]
    fn answers_as_people_read_them() {
        let alias = json!({ "name": "www.example", "type": "CNAME", "ttl_s": 9, "data": "web.example" });
        let address = json!({ "name": "web.example", "type": "A", "ttl_s": 9, "data": "192.0.2.7" });
        let report = json!({ "name": "www.example", "found": true, "questions": [
            { "name": "www.example", "type": "A", "status": "found", "source": "servers", "records": [alias, address],
              "attempts": [attempt("10.9.0.9:53", "no answer", false), attempt("10.9.0.1:53", "answered", true)] },
            { "name": "www.example", "type": "AAAA", "status": "no such record", "source": "servers",
              "records": [alias], "attempts": [attempt("10.9.0.1:53", "answered", true)] },
        ]});
        assert_eq!(
            text(&report, false),
            "www.example is an alias of web.example\nweb.example has address 192.0.2.7\n\
             www.example has no AAAA record\n  A by 10.9.0.1:53 in 12.000 ms (UDP)\n  AAAA by 10.9.0.1:53 in 12.000 ms (UDP)\n"
        );
        assert!(text(&report, true).contains("\n  A 10.9.0.9:53 UDP: no answer in 12.000 ms\n"));
    }

    #[test]
    fn why_there_is_nothing() {
        let report = |status: &str, source: &str, why: Value| {
            json!({ "name": "x.example", "found": false, "questions": [{ "name": "x.example", "type": "MX",
                "status": status, "source": source, "why": why, "records": [],
                "attempts": [attempt("10.9.0.1:53", "answered", true)] }] })
        };
        assert_eq!(
            why_nothing(&report("no such name", "servers", Value::Null)),
            "there is no name x.example, says 10.9.0.1:53; check the spelling"
        );
        assert_eq!(
            why_nothing(&report("no such record", "servers", Value::Null)),
            "x.example exists and has no MX record, says 10.9.0.1:53"
        );
        assert!(
            why_nothing(&report("failed", "servers", json!("no name server answered"))).contains("@SERVER")
        );
        assert!(why_nothing(&report("failed", "link", json!("x"))).contains("mDNS"));
    }
}
