//! The page and its interface for programs: HTTP and JSON below `/api/v1`.

mod messages;
mod rules;

use std::rc::Rc;

use inhost_common::LocalFuture;
use inhost_web::{Asset, HeaderName, Request, Response, Site, StatusCode, assets, header};
use serde_json::json;

use crate::catcher::Catcher;

/// The description of the interface, OpenAPI 3.1.
pub const OPENAPI: &str = include_str!("../../assets/openapi.json");

const INDEX: Asset =
    Asset::new("index.html", "text/html; charset=utf-8", include_bytes!("../../assets/index.html"));
const DOCS: Asset =
    Asset::new("docs.html", "text/html; charset=utf-8", include_bytes!("../../assets/docs.html"));
const ASSETS: [Asset; 6] = [
    Asset::new("mailcatch.css", "text/css; charset=utf-8", include_bytes!("../../assets/mailcatch.css")),
    Asset::new("mailcatch.js", "text/javascript; charset=utf-8", include_bytes!("../../assets/mailcatch.js")),
    Asset::new("view.js", "text/javascript; charset=utf-8", include_bytes!("../../assets/view.js")),
    Asset::new("rules.js", "text/javascript; charset=utf-8", include_bytes!("../../assets/rules.js")),
    Asset::new("docs.js", "text/javascript; charset=utf-8", include_bytes!("../../assets/docs.js")),
    Asset::new("icon.svg", "image/svg+xml", include_bytes!("../../assets/icon.svg")),
];

/// The site of a mail catcher.
pub struct CatcherSite {
    catcher: Rc<Catcher>,
}

impl CatcherSite {
    /// The site of `catcher`.
    pub fn new(catcher: Rc<Catcher>) -> Rc<CatcherSite> {
        Rc::new(CatcherSite { catcher })
    }
}

impl Site for CatcherSite {
    fn respond(self: Rc<Self>, request: Request) -> LocalFuture<Response> {
        Box::pin(async move {
            let path = request.path();
            match (request.method().as_str(), &path[..]) {
                ("GET", []) => INDEX.response(&request),
                ("GET", ["docs"]) => DOCS.response(&request),
                ("GET", ["assets", name]) => assets::respond(&ASSETS, name, &request),
                (_, ["api", "v1", path @ ..]) => api(&self.catcher, &request, path).await,
                _ => Response::not_found(),
            }
        })
    }
}

/// A response, or that of an error.
type Answer = Result<Response, Response>;

async fn api(catcher: &Rc<Catcher>, request: &Request, path: &[&str]) -> Response {
    let answer = match (request.method().as_str(), path) {
        ("GET", ["openapi.json"]) => Ok(Response::bytes("application/json", OPENAPI).with_tag(request)),
        ("GET", ["info"]) => Ok(info(catcher)),
        ("GET", ["events"]) => Ok(catcher.events.subscribe()),
        ("GET", ["sessions"]) => Ok(sessions(catcher)),
        ("GET", ["sessions", number]) => session(catcher, number),
        ("GET", ["messages"]) => messages::list(catcher, request).await,
        ("DELETE", ["messages"]) => messages::remove_all(catcher, request).await,
        ("GET", ["messages", "wait"]) => messages::wait(catcher, request).await,
        ("GET" | "DELETE" | "POST", ["messages", id, rest @ ..]) => {
            messages::one(catcher, request, id, rest).await
        }
        ("GET", ["rules"]) => Ok(rules::list(catcher)),
        ("POST", ["rules"]) => rules::add(catcher, request),
        ("PUT", ["rules"]) => rules::replace(catcher, request),
        ("DELETE", ["rules"]) => Ok(rules::clear(catcher)),
        ("DELETE", ["rules", number]) => rules::remove(catcher, number),
        (_, ["messages"]) => Err(Response::method_not_allowed("GET, DELETE")),
        (_, ["rules"]) => Err(Response::method_not_allowed("GET, POST, PUT, DELETE")),
        (_, ["openapi.json" | "info" | "events" | "sessions", ..]) => {
            Err(Response::method_not_allowed("GET"))
        }
        _ => Err(Response::not_found()),
    };
    answer.unwrap_or_else(|error| error)
}

fn info(catcher: &Catcher) -> Response {
    let (messages, unread, bytes) = catcher.store.totals();
    Response::json(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "messages": messages,
        "unread": unread,
        "bytes": bytes,
        "open_sessions": catcher.sessions.borrow().open(),
        "counters": catcher.counters(),
    }))
}

/// The sessions without their dialogues.
fn sessions(catcher: &Catcher) -> Response {
    let sessions = catcher.sessions.borrow();
    let without = |session: &&crate::sessions::Session| {
        let mut session = (*session).clone();
        session.lines.clear();
        session
    };
    Response::json(&sessions.list().iter().map(without).collect::<Vec<_>>())
}

fn session(catcher: &Catcher, number: &str) -> Answer {
    let sessions = catcher.sessions.borrow();
    let found = number.parse().ok().and_then(|number| sessions.session(number));
    found.map(Response::json).ok_or_else(Response::not_found)
}

fn wrong(detail: &str) -> Response {
    Response::problem(StatusCode::BAD_REQUEST, detail)
}

/// A response that a browser saves, or shows as nothing but itself.
fn foreign(response: Response, disposition: &str) -> Response {
    response
        .with(header::CONTENT_DISPOSITION, disposition)
        .with(header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'; frame-ancestors 'none'")
        .with(header::CACHE_CONTROL, "no-store")
}

/// Whether a browser may look up the names of links before they are followed.
const DNS_PREFETCH: HeaderName = HeaderName::from_static("x-dns-prefetch-control");
