//! `/api/v1/messages`.

use std::rc::Rc;

use inhost_base::Duration;
use inhost_socket::{Either, race, yield_now};
use inhost_web::{Request, Response, StatusCode, header};
use serde_json::{Value, json};

use super::{Answer, DNS_PREFETCH, foreign, wrong};
use crate::catcher::{Catcher, off_thread};
use crate::html::{POLICY, POLICY_WITH_IMAGES, document};
use crate::message::{contents, is_safe_image, part};
use crate::search::Search;
use crate::store::{Id, Message};

/// The most messages of one answer.
const LISTED: usize = 200;
/// The messages of one answer, if nothing is said.
const LISTED_BY_DEFAULT: usize = 50;
/// Octets of text that a search looks at before others have their turn.
const SEARCH_TURN_BYTES: usize = 1 << 20;
/// The longest wait, and the wait if nothing is said, in seconds.
const WAIT_SECONDS: u64 = 120;
const WAIT_SECONDS_BY_DEFAULT: u64 = 10;

/// `GET /messages?query=&limit=&before=`.
pub(super) async fn list(catcher: &Catcher, request: &Request) -> Answer {
    let search = search(request)?;
    let limit = request.query_as("limit")?.unwrap_or(LISTED_BY_DEFAULT).clamp(1, LISTED);
    let before = id_of(request, "before")?;
    let mut found = find(&search, catcher.store.newest_first(before), limit + 1).await;
    let next = (found.len() > limit).then(|| {
        found.truncate(limit);
        found.last().map(|message| message.id)
    });
    let (total, unread, _) = catcher.store.totals();
    let listed: Vec<_> = found.iter().map(|message| message.listed()).collect();
    Ok(Response::json(
        &json!({ "messages": listed, "total": total, "unread": unread, "next": next.flatten() }),
    ))
}

/// `DELETE /messages?query=`.
pub(super) async fn remove_all(catcher: &Catcher, request: &Request) -> Answer {
    let search = search(request)?;
    let removed = if search.is_empty() {
        catcher.remove(|_| true)
    } else {
        let mut ids: Vec<Id> = find(&search, catcher.store.newest_first(None), usize::MAX)
            .await
            .iter()
            .map(|message| message.id)
            .collect();
        ids.sort_unstable();
        catcher.remove(|message| ids.binary_search(&message.id).is_ok())
    };
    Ok(Response::json(&json!({ "removed": removed })))
}

/// `GET /messages/wait?query=&after=&timeout=`: the first message that matches, there already or yet to come.
pub(super) async fn wait(catcher: &Catcher, request: &Request) -> Answer {
    let search = search(request)?;
    let mut after = id_of(request, "after")?;
    let seconds = request.query_as("timeout")?.unwrap_or(WAIT_SECONDS_BY_DEFAULT).min(WAIT_SECONDS);
    let end = catcher.host.now() + Duration::from_secs(seconds);
    loop {
        let candidates = catcher.store.oldest_first(after);
        let last = candidates.last().map(|message| message.id);
        if let Some(message) = find(&search, candidates, 1).await.pop() {
            return whole(&message).await;
        }
        after = last.max(after);
        let arrival = catcher.store.arrival_after(after.unwrap_or(Id(0)));
        if let Either::Second(()) = race(arrival, catcher.host.sleep_until(end)).await {
            let detail = format!("no message matched within {seconds} s");
            return Err(Response::problem(StatusCode::NOT_FOUND, &detail));
        }
    }
}

/// `/messages/ID` and below; `latest` is the newest one.
pub(super) async fn one(catcher: &Catcher, request: &Request, id: &str, rest: &[&str]) -> Answer {
    let message = match id {
        "latest" => catcher.store.latest(),
        id => id.parse().ok().and_then(|id| catcher.store.message(id)),
    };
    let gone = || Response::problem(StatusCode::NOT_FOUND, "there is no message with that identifier");
    let message = message.ok_or_else(gone)?;
    match (request.method().as_str(), rest) {
        ("GET", []) => whole(&message).await,
        ("DELETE", []) => {
            catcher.remove(|other| other.id == message.id);
            Ok(Response::json(&json!({ "removed": 1 })))
        }
        ("POST", ["read"]) => {
            if message.is_unread.replace(false) {
                catcher.events.publish("read", &message.id);
            }
            Ok(Response::json(&message.listed()))
        }
        ("GET", ["source"]) => {
            let response = Response::bytes("text/plain; charset=utf-8", message.raw.clone());
            let disposition = match request.query("download") {
                Some(_) => format!("attachment; filename=\"{}.eml\"", message.id),
                None => "inline".to_owned(),
            };
            Ok(foreign(response, &disposition))
        }
        ("GET", ["headers"]) => Ok(Response::json(&read(&message, contents).await.headers)),
        ("GET", ["text"]) => {
            let text = read(&message, contents).await.text.unwrap_or_default();
            Ok(foreign(Response::bytes("text/plain; charset=utf-8", text), "inline"))
        }
        ("GET", ["html"]) => html(&message, request.query("images").is_some()).await,
        ("GET", ["parts", number]) => a_part(&message, number).await,
        (_, [] | ["read" | "source" | "headers" | "text" | "html" | "parts", ..]) => {
            Err(Response::method_not_allowed("GET; DELETE for a message, POST for read"))
        }
        _ => Err(Response::not_found()),
    }
}

/// A message with all that can be read of it.
async fn whole(message: &Message) -> Answer {
    let contents = read(message, contents).await;
    let mut value = serde_json::to_value(message.listed()).unwrap_or_default();
    if let (Value::Object(all), Ok(Value::Object(more))) = (&mut value, serde_json::to_value(contents)) {
        all.extend(more);
    }
    Ok(Response::json(&value))
}

/// The HTML, made harmless, in a sandbox of its own.
async fn html(message: &Message, with_images: bool) -> Answer {
    let make = move |raw: &[u8]| contents(raw).html.map(|html| document(raw, &html, with_images));
    let Some(document) = read(message, make).await else {
        return Err(Response::problem(StatusCode::NOT_FOUND, "the message has no HTML"));
    };
    let policy = if with_images { POLICY_WITH_IMAGES } else { POLICY };
    Ok(Response::bytes("text/html; charset=utf-8", document)
        .with(header::CONTENT_SECURITY_POLICY, policy)
        .with(DNS_PREFETCH, "off")
        .with(header::CACHE_CONTROL, "no-store"))
}

/// A part: an image that is safe is shown, anything else is saved.
async fn a_part(message: &Message, number: &str) -> Answer {
    let number: u32 = number.parse().map_err(|_| Response::not_found())?;
    let Some((part, octets)) = read(message, move |raw| part(raw, number)).await else {
        return Err(Response::problem(StatusCode::NOT_FOUND, "there is no such part"));
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = part.name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(100).collect();
    let name = if name.trim_matches('.').is_empty() { format!("part-{number}") } else { name };
    let (disposition, media_type) = match is_safe_image(&part.media_type) {
        true => ("inline", &*part.media_type),
        false => ("attachment", "application/octet-stream"),
    };
    let response = Response::bytes("application/octet-stream", octets).with(header::CONTENT_TYPE, media_type);
    Ok(foreign(response, &format!("{disposition}; filename=\"{name}\"")))
}

/// Reads a message, on another thread if it is large.
async fn read<T: Send + 'static>(message: &Message, work: impl FnOnce(&[u8]) -> T + Send + 'static) -> T {
    let raw = message.raw.clone();
    off_thread(raw.len(), move || work(&raw)).await
}

/// The first `limit` messages that a search finds. Others have their turn in between.
async fn find(search: &Search, messages: Vec<Rc<Message>>, limit: usize) -> Vec<Rc<Message>> {
    let (mut found, mut looked_at) = (Vec::new(), 0);
    for message in messages {
        if found.len() == limit {
            break;
        }
        looked_at += message.folded.text.len();
        if looked_at > SEARCH_TURN_BYTES {
            looked_at = 0;
            yield_now().await;
        }
        if search.finds(&message) {
            found.push(message);
        }
    }
    found
}

fn search(request: &Request) -> Result<Search, Response> {
    let parsed = request.query("query").unwrap_or_default().parse();
    parsed.map_err(|error: crate::rules::RuleError| wrong(&error.to_string()))
}

fn id_of(request: &Request, name: &str) -> Result<Option<Id>, Response> {
    request.query_as(name)
}
