//! The published test suite of SPF (openspf.org), whose cases others wrote.

use crate::zone::check;
use inhost_mailauth::{Answer, Envelope, Kind, Query};
use serde_json::Value;

fn texts<'a>(records: &'a Value, kind: &str) -> Vec<&'a str> {
    records[kind].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn answer(zone: &Value, query: &Query, name: &str, aliases: usize) -> Answer {
    let records = &zone[name];
    if records.is_null() {
        return Answer::NoSuchName;
    }
    if let [alias] = texts(records, "CNAME")[..]
        && aliases < 2
    {
        return answer(zone, query, &alias.to_lowercase(), aliases + 1);
    }
    let kind = match query.kind {
        Kind::Txt => "TXT",
        Kind::A => "A",
        Kind::Aaaa => "AAAA",
        Kind::Mx => "MX",
        Kind::Ptr => "PTR",
    };
    if records[kind].is_null() && !records["TIMEOUT"].is_null() {
        return Answer::Failed;
    }
    let found = texts(records, kind);
    match query.kind {
        Kind::Txt => Answer::Texts(found.iter().map(|text| text.as_bytes().to_vec()).collect()),
        Kind::A | Kind::Aaaa => Answer::Addresses(found.iter().map(|text| text.parse().unwrap()).collect()),
        Kind::Ptr => Answer::Names(found.iter().map(ToString::to_string).collect()),
        Kind::Mx => {
            let mut exchanges: Vec<(u64, String)> = records["MX"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|mx| (mx[0].as_u64().unwrap(), mx[1].as_str().unwrap().to_owned()))
                .collect();
            exchanges.sort();
            Answer::Names(exchanges.into_iter().map(|(_, name)| name).collect())
        }
    }
}

/// spec: RFC7208 4, RFC7208 5, RFC7208 6, RFC7208 7
#[test]
fn the_published_suite_passes() {
    let suite: Value = serde_json::from_str(include_str!("../vectors/rfc7208-tests.json")).unwrap();
    let (mut cases, mut wrong) = (0, Vec::new());
    for scenario in suite.as_array().unwrap() {
        for (name, case) in scenario["tests"].as_object().unwrap() {
            let text = |key: &str| case[key].as_str().unwrap();
            let envelope = Envelope::new(text("host").parse().unwrap(), text("helo"), text("mailfrom"));
            let (report, _) = check(envelope, b"", |query| answer(&scenario["zone"], query, &query.name, 0));
            cases += 1;
            let verdict = report.spf.verdict.to_string();
            let is_right =
                case["result"].as_array().unwrap().iter().any(|wanted| *wanted == verdict.as_str());
            let explanation = report.spf.explanation.clone().unwrap_or_else(|| "DEFAULT".to_owned());
            let is_explained = case["explanation"].as_str().is_none_or(|wanted| wanted == explanation);
            if !is_right || !is_explained {
                wrong.push(format!("{name}: {case} gave {verdict} ({}) {explanation:?}", report.spf.reason));
            }
        }
    }
    assert_eq!((cases, wrong.len()), (203, 0), "{}", wrong.join("\n"));
}
