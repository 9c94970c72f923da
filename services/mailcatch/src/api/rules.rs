//! `/api/v1/rules`.

use inhost_web::{Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Answer, wrong};
use crate::catcher::Catcher;
use crate::rules::{Rule, Rulebook, Script};

/// A rule in a request: its text, or its fields.
#[derive(Deserialize)]
#[serde(untagged)]
enum Given {
    Text(String),
    Wrapped { rule: String },
    Fields(Map<String, Value>),
}

/// The rules that take the place of all others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Replacement {
    rules: Option<Vec<Given>>,
    script: Option<String>,
}

fn rule(given: &Given) -> Result<Rule, Response> {
    let parsed = match given {
        Given::Text(text) | Given::Wrapped { rule: text } => text.parse(),
        Given::Fields(fields) => Rule::try_from(fields),
    };
    parsed.map_err(|error| wrong(&error.to_string()))
}

fn shown(book: &Rulebook) -> Value {
    let rules = book.rules().iter().map(|state| {
        let fields: Map<String, Value> = (&state.rule).into();
        let text = state.rule.to_string();
        json!({ "number": state.number, "rule": text, "fields": fields, "matched": state.matched, "fired": state.fired })
    });
    json!({ "rules": rules.collect::<Vec<_>>(), "step": book.step() })
}

fn too_many() -> Response {
    Response::problem(StatusCode::CONFLICT, "there are too many rules")
}

pub(super) fn list(catcher: &Catcher) -> Response {
    Response::json(&shown(&catcher.rules()))
}

pub(super) fn add(catcher: &Catcher, request: &Request) -> Answer {
    let rule = rule(&request.json()?)?;
    let added = catcher.with_rules(|book| book.add(rule).map(|_| shown(book)));
    Ok(Response::json(&added.ok_or_else(too_many)?).with_status(StatusCode::CREATED))
}

pub(super) fn replace(catcher: &Catcher, request: &Request) -> Answer {
    let replaced = match request.json()? {
        Replacement { rules: Some(rules), script: None } => {
            let rules: Vec<Rule> = rules.iter().map(rule).collect::<Result<_, _>>()?;
            catcher.with_rules(|book| {
                book.clear();
                rules.into_iter().all(|rule| book.add(rule).is_some()).then(|| shown(book))
            })
        }
        Replacement { rules: None, script: Some(script) } => {
            let script: Script =
                script.parse().map_err(|error: crate::rules::ScriptError| wrong(&error.to_string()))?;
            catcher.with_rules(|book| {
                book.play(script);
                Some(shown(book))
            })
        }
        _ => return Err(wrong("give either \"rules\" or \"script\"")),
    };
    Ok(Response::json(&replaced.ok_or_else(too_many)?))
}

pub(super) fn clear(catcher: &Catcher) -> Response {
    catcher.with_rules(Rulebook::clear);
    Response::json(&json!({}))
}

pub(super) fn remove(catcher: &Catcher, number: &str) -> Answer {
    let number = number.parse().map_err(|_| Response::not_found())?;
    match catcher.with_rules(|book| book.remove(number)) {
        true => Ok(Response::json(&json!({}))),
        false => Err(Response::problem(StatusCode::NOT_FOUND, "there is no such rule")),
    }
}
