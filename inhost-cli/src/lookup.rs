//! `inhost lookup`: what a name stands for, who says so, and how long it took.

use crate::args::Lookup;
use crate::connection::Family;
use crate::failure::Failure;
use crate::target::{Schemes, Target};
use crate::through::{HostChoice, Private, seen_at};
use inhost_base::{Duration, Endpoint, IpAddr};
use inhost_names::proto::rr::{RData, Record, RecordType};
use inhost_names::service::server;
use inhost_names::{
    Attempt, AttemptOutcome, RecordsRequest, RecordsResult, Source, Transport, check_name, data_shown, shown,
};
use serde_json::{Value, json};
use std::path::Path;
use std::str::FromStr;

mod show;

/// Looks up, and says what was found.
pub fn run(arguments: &Lookup) -> Result<(), Failure> {
    let request = request(arguments)?;
    let limit = arguments.reach.common.limit();
    let report = match HostChoice::find(&arguments.reach)? {
        HostChoice::Running(path) => by_running(&path, request, limit)?,
        HostChoice::Private(private) => privately(*private, request, limit)?,
    };
    let text = match arguments.json {
        true => format!("{report}\n"),
        false => show::text(&report, arguments.trace),
    };
    crate::output::show(&text);
    match report["found"].as_bool() {
        Some(true) => Ok(()),
        _ => Err(Failure::operation(show::why_nothing(&report))),
    }
}

fn request(arguments: &Lookup) -> Result<RecordsRequest, Failure> {
    let Asked { name, server: named, kinds } = asked(&arguments.name)?;
    check_name(&name).map_err(|why| Failure::usage(why.to_string()))?;
    let mut request = RecordsRequest::new(&name);
    (request.server, request.kinds) = (named, kinds);
    (request.over_tcp, request.on_the_link) = (arguments.tcp, arguments.mdns);
    for word in &arguments.words {
        match word.strip_prefix('@') {
            Some(text) => request.server = Some(server(text)?),
            None => request.kinds.push(kind(word).map_err(Failure::usage)?),
        }
    }
    match arguments.reach.common.family() {
        Family::Either => {}
        // A name is asked for its address; an address is asked for its names, of either family.
        _ if !request.kinds.is_empty() || name.parse::<IpAddr>().is_ok() => {
            return Err(Failure::usage(
                "-4 and -6 choose between A and AAAA; leave them out, or the types of records",
            ));
        }
        Family::V4 => request.kinds.push(RecordType::A),
        Family::V6 => request.kinds.push(RecordType::AAAA),
    }
    if request.on_the_link && request.server.is_some() {
        return Err(Failure::usage("--mdns asks everybody on the link; leave @SERVER out, or --mdns"));
    }
    Ok(request)
}

/// What a name or a URL asks for.
struct Asked {
    name: String,
    server: Option<Endpoint>,
    kinds: Vec<RecordType>,
}

/// A name as it stands, the host of a URL, or what `dns://server/name?type=MX` says (RFC 4501).
fn asked(text: &str) -> Result<Asked, Failure> {
    if !text.contains("://") {
        return Ok(Asked { name: text.to_owned(), server: None, kinds: Vec::new() });
    }
    if let Some(rest) = text.strip_prefix("dns:///") {
        return of_dns(rest, None);
    }
    let target = Target::parse(text, Schemes::Any)?;
    if target.scheme.as_deref() != Some("dns") {
        return Ok(Asked { name: target.host, server: None, kinds: Vec::new() });
    }
    let at = match (target.host.contains(':'), target.port) {
        (false, Some(port)) => format!("{}:{port}", target.host),
        (true, Some(port)) => format!("[{}]:{port}", target.host),
        (_, None) => target.host,
    };
    let rest = target.path.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    of_dns(&rest, Some(server(&at)?))
}

/// `name?class=IN;type=MX`.
fn of_dns(rest: &str, server: Option<Endpoint>) -> Result<Asked, Failure> {
    let (name, query) = rest.split_once('?').unwrap_or((rest, ""));
    let types = query
        .split(';')
        .filter_map(|part| part.split_once('='))
        .filter(|(key, _)| key.eq_ignore_ascii_case("type"));
    let kinds = types.map(|(_, word)| kind(word).map_err(Failure::usage)).collect::<Result<_, _>>()?;
    Ok(Asked { name: name.to_owned(), server, kinds })
}

/// A type of records by its name, or as TYPE65 (RFC 3597 §5).
fn kind(word: &str) -> Result<RecordType, String> {
    let upper = word.to_ascii_uppercase();
    let numbered = upper.strip_prefix("TYPE").and_then(|digits| digits.parse::<u16>().ok());
    match numbered.map(RecordType::from).or_else(|| RecordType::from_str(&upper).ok()) {
        Some(kind) => Ok(kind),
        None => {
            Err(format!("{word}: no type of records; try A, AAAA, MX, NS, PTR, SOA, SRV, TXT, or @SERVER"))
        }
    }
}

fn late(limit: Duration) -> Failure {
    Failure::operation(format!("no answer within {} s (--timeout)", limit.as_secs_f64()))
}

fn privately(
    private: Private,
    mut request: RecordsRequest,
    limit: Option<Duration>,
) -> Result<Value, Failure> {
    let Private { mut runtime, links, names, reaches_loopback } = private;
    if let Some(server) = &mut request.server {
        server.address = seen_at(server.address, reaches_loopback);
    }
    let host = runtime.host().clone();
    let looking = async {
        match limit {
            None => Ok(names.records(&request).await),
            Some(limit) => host.timeout(limit, names.records(&request)).await.map_err(|_| late(limit)),
        }
    };
    let found = runtime
        .run(looking)
        .map_err(|e| Failure::operation(format!("the host cannot wait: {e}")))??
        .map_err(|e| Failure::operation(e.to_string()))?;
    drop(links);
    Ok(report(&request, &found))
}

/// Has the running host ask. With a limit the answer is waited for beside it: the control socket has none.
fn by_running(path: &Path, request: RecordsRequest, limit: Option<Duration>) -> Result<Value, Failure> {
    let Some(limit) = limit else { return ask_running(path, &request) };
    let (sender, receiver) = std::sync::mpsc::channel();
    let path = path.to_owned();
    std::thread::spawn(move || {
        // Nobody listens any more when the time is up.
        let _ = sender.send(ask_running(&path, &request));
    });
    let limit_std = std::time::Duration::from_nanos(limit.as_nanos());
    receiver.recv_timeout(limit_std).unwrap_or_else(|_| Err(late(limit)))
}

fn ask_running(path: &Path, request: &RecordsRequest) -> Result<Value, Failure> {
    let mut client = crate::through::open_host(path)?;
    let asked = json!({
        "op": "records", "name": request.name, "types": request.kinds.iter().map(kind_name).collect::<Vec<_>>(),
        "server": request.server.map(|server| server.to_string()), "tcp": request.over_tcp, "mdns": request.on_the_link,
    });
    let (reply, _) = client.request(&asked).map_err(|e| Failure::operation(e.to_string()))?;
    Ok(reply)
}

/// What a client of the control socket asks for; see [`by_running`].
pub fn request_of(asked: &Value) -> Result<RecordsRequest, String> {
    let words = asked["types"].as_array().cloned().unwrap_or_default();
    let kinds = words.iter().map(|word| kind(word.as_str().unwrap_or_default())).collect::<Result<_, _>>()?;
    let server = match asked["server"].as_str() {
        Some(text) => Some(server(text).map_err(|failure| failure.to_string())?),
        None => None,
    };
    let mut request = RecordsRequest::new(asked["name"].as_str().ok_or("give \"name\"")?);
    (request.kinds, request.server) = (kinds, server);
    request.over_tcp = asked["tcp"].as_bool().unwrap_or(false);
    request.on_the_link = asked["mdns"].as_bool().unwrap_or(false);
    Ok(request)
}

/// Everything that was found out.
pub fn report(request: &RecordsRequest, found: &[RecordsResult]) -> Value {
    let is_there = |looked: &RecordsResult| {
        looked.result.as_ref().is_ok_and(|answer| answer.wanted(looked.question.kind).next().is_some())
    };
    json!({
        "name": request.name,
        "found": found.iter().any(is_there),
        "questions": found.iter().map(question).collect::<Vec<_>>(),
    })
}

fn question(looked: &RecordsResult) -> Value {
    let RecordsResult { question, source, result, attempts, took } = looked;
    let (status, why) = match result {
        Ok(answer) if answer.is_no_such_name() => ("no such name", None),
        Ok(answer) if answer.wanted(question.kind).next().is_none() => ("no such record", None),
        Ok(_) => ("found", None),
        Err(why) => ("failed", Some(why.to_string())),
    };
    let source = match source {
        Source::Table => "table",
        Source::Servers => "servers",
        Source::Kept => "kept",
        Source::Link => "link",
    };
    let records = result.as_ref().map_or(&[][..], |answer| &answer.records[..]);
    let left_out = result.as_ref().map_or(0, |answer| answer.left_out);
    json!({
        "name": shown(&question.name), "type": kind_name(&question.kind), "status": status, "why": why,
        "source": source, "took_ns": took.as_nanos(), "left_out_records": left_out,
        "records": records.iter().map(record).collect::<Vec<_>>(),
        "attempts": attempts.iter().map(attempt).collect::<Vec<_>>(),
    })
}

fn record(record: &Record) -> Value {
    let mut value = json!({
        "name": shown(&record.name), "type": kind_name(&record.record_type()), "ttl_s": record.ttl,
        "data": data_shown(&record.data),
    });
    if let RData::MX(mx) = &record.data {
        value["preference"] = mx.preference.into();
        value["exchange"] = shown(&mx.exchange).into();
    }
    value
}

fn attempt(attempt: &Attempt) -> Value {
    let Attempt { server, transport, took, outcome, mismatches, .. } = attempt;
    let passed_over: serde_json::Map<String, Value> =
        mismatches.iter().map(|(mismatch, count)| (mismatch.to_string(), (*count).into())).collect();
    json!({
        "server": server.to_string(), "transport": transport_name(*transport), "took_ns": took.as_nanos(),
        "answered": matches!(outcome, AttemptOutcome::Answered(_)), "outcome": outcome.to_string(), "passed_over": passed_over,
    })
}

fn transport_name(transport: Transport) -> String {
    transport.to_string()
}

fn kind_name(kind: &RecordType) -> String {
    match kind {
        RecordType::Unknown(number) => format!("TYPE{number}"),
        known => known.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_urls() {
        let shown = |text: &str| {
            let Asked { name, server, kinds } = asked(text).map_err(drop)?;
            let kinds = kinds.iter().map(kind_name).collect::<Vec<_>>().join(" ");
            Ok::<_, ()>(format!("{name} {} {kinds}", server.map_or("-".into(), |at| at.to_string())))
        };
        assert_eq!(shown("_telnet._tcp.example"), Ok("_telnet._tcp.example - ".into()));
        assert_eq!(shown("https://ada@www.example:8443/x?type=MX"), Ok("www.example - ".into()));
        assert_eq!(shown("dns://10.9.0.1/www.example?type=MX"), Ok("www.example 10.9.0.1:53 MX".into()));
        assert_eq!(shown("dns://[fd00::1]:5353/x?class=IN;TYPE=TXT"), Ok("x [fd00::1]:5353 TXT".into()));
        assert_eq!(shown("dns:///www.example"), Ok("www.example - ".into()));
        assert!(shown("dns://resolver.example/x").is_err() && shown("dns://10.9.0.1/x?type=NONE").is_err());
    }
}
