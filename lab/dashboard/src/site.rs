//! The page and its interface: HTTP and JSON below `/api`.

use std::collections::BTreeMap;
use std::rc::Rc;

use inhost_common::LocalFuture;
use inhost_runtime::control;
use inhost_stack::{SocketId, SocketKind};
use inhost_web::{Asset, EventLimits, Events, Request, Response, Site, StatusCode, assets, header};
use serde_json::{Value, json};

use crate::captures::Captures;
use crate::connection::{self, Sampler};
use crate::filter::Filter;
use crate::histograms::Histograms;
use crate::list::{List, MOST_ROWS, Page, Sort};
use crate::packets::Packets;
use crate::service::{Context, Instruments};
use crate::{metrics, summary};

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
/// Lines of the log in an answer.
const LOG_LINES: usize = 500;

macro_rules! assets {
    ($($name:literal $kind:expr),* $(,)?) => {
        [$(Asset::new($name, $kind, include_bytes!(concat!("../assets/", $name)))),*]
    };
}

const INDEX: Asset =
    Asset::new("index.html", "text/html; charset=utf-8", include_bytes!("../assets/index.html"));
const ASSETS: [Asset; 20] = assets![
    "causes.js" JAVASCRIPT,
    "chart.js" JAVASCRIPT,
    "connection.js" JAVASCRIPT,
    "connections.js" JAVASCRIPT,
    "dashboard.js" JAVASCRIPT,
    "explain.js" JAVASCRIPT,
    "format.js" JAVASCRIPT,
    "histograms.js" JAVASCRIPT,
    "links.js" JAVASCRIPT,
    "live.js" JAVASCRIPT,
    "log.js" JAVASCRIPT,
    "morph.js" JAVASCRIPT,
    "packets.js" JAVASCRIPT,
    "sessions.js" JAVASCRIPT,
    "tail.js" JAVASCRIPT,
    "uplot.js" JAVASCRIPT,
    "verdict.js" JAVASCRIPT,
    "dashboard.css" CSS,
    "uplot.css" CSS,
    "icon.svg" "image/svg+xml",
];

/// The pages of a host.
pub(crate) struct Pages {
    context: Context,
    instruments: Instruments,
    list: Rc<List>,
    sampler: Rc<Sampler>,
    histograms: Option<Histograms>,
    packets: Packets,
    captures: Captures,
    events: Rc<Events>,
}

/// A response, or that of an error.
type Answer = Result<Response, Response>;

impl Pages {
    pub(crate) fn new(context: Context, instruments: Instruments) -> Rc<Pages> {
        let host = &context.host;
        let events = Rc::new(Events::new(EventLimits::default(), Rc::new(host.clone())));
        host.spawn(summary::publish(host.clone(), instruments.recorder.clone(), events.clone())).detach();
        Rc::new(Pages {
            list: List::new(host),
            sampler: Sampler::new(host),
            histograms: instruments.recorder.as_ref().map(|recorder| Histograms::start(host, recorder)),
            packets: Packets::default(),
            captures: Captures::default(),
            events,
            context,
            instruments,
        })
    }
    async fn answer(self: &Rc<Pages>, request: &Request, path: &[&str]) -> Answer {
        match (request.method().as_str(), path) {
            ("GET", ["host"]) => Ok(Response::json(&self.host())),
            ("GET", ["connections"]) => self.connections(request).await,
            ("GET", ["connections", id, rest @ ..]) => {
                let socket = connection::socket(id).ok_or_else(Response::not_found)?;
                self.connection(request, socket, rest).await
            }
            ("GET", ["histograms"]) => {
                let none = || json!({ "histograms": [] });
                Ok(Response::json(&self.histograms.as_ref().map_or_else(none, Histograms::json)))
            }
            ("GET", ["packets"]) => self.packets(request).await,
            ("GET", ["packets", number]) => {
                let found = number.parse().ok().and_then(|number| self.packets.one(number));
                found.map(|packet| Response::json(&packet)).ok_or_else(Response::not_found)
            }
            ("GET", ["log"]) => {
                let (lines, next) =
                    self.instruments.log.since(request.query_as("after")?.unwrap_or(0), LOG_LINES);
                Ok(Response::json(&json!({ "next": next, "lines": lines })))
            }
            ("GET", ["events"]) => Ok(self.events.subscribe()),
            ("POST", ["explain"]) => self.explain(request).await,
            ("GET", ["explain", name]) => {
                let (captures, name) = (self.captures.clone(), (*name).to_owned());
                let picture = blocking::unblock(move || captures.picture(&name)).await;
                let picture = picture.ok_or_else(Response::not_found)?;
                Ok(Response::bytes("image/svg+xml", picture).with(header::CACHE_CONTROL, "no-store"))
            }
            (_, ["explain"]) => Err(Response::method_not_allowed("POST")),
            (_, ["host" | "connections" | "histograms" | "packets" | "log" | "events" | "explain", ..]) => {
                Err(Response::method_not_allowed("GET"))
            }
            _ => Err(Response::not_found()),
        }
    }
    /// The host but for its connections.
    fn host(&self) -> Value {
        let host = &self.context.host;
        let mut overview = Value::Object(control::overview(host, Some(&self.instruments.links)));
        let (counts, listeners) = host.with_stack(|stack, now| {
            let mut counts = [0u64; 5];
            stack.instruments().socket_kinds().for_each(|kind| counts[kind as usize] += 1);
            let listeners: Vec<Value> = stack
                .instruments()
                .socket_states()
                .filter(|(_, kind, _)| *kind == SocketKind::Listener)
                .filter_map(|(socket, ..)| stack.instruments().info(socket, now))
                .map(|of| {
                    json!({
                        "local": of.local.to_string(),
                        "accept_queue": of.receive_queue,
                        "accept_limit": stack.instruments().backlog(of.socket),
                        "handshakes": of.send_queue,
                    })
                })
                .collect();
            (counts, listeners)
        });
        let count = |kind: SocketKind| counts[kind as usize];
        json!({
            "name": self.instruments.name,
            "program": concat!("inhost ", env!("CARGO_PKG_VERSION")),
            "uptime_ns": overview["now_ns"],
            "memory": overview["memory"].take(),
            "counters": overview["counters"].take(),
            "sockets": {
                "connections": count(SocketKind::Connection),
                "listeners": count(SocketKind::Listener),
                "udp": count(SocketKind::Udp),
                "echo": count(SocketKind::Echo),
                "probes": count(SocketKind::Probe),
            },
            "links": overview["interfaces"].as_array().into_iter().flatten().map(link).collect::<Vec<_>>(),
            "listeners": listeners,
            "sessions": self.sessions(),
        })
    }
    fn sessions(&self) -> Vec<Value> {
        let now = self.context.host.now();
        let sessions = self.context.sessions.all();
        let row = |of: &inhost_common::service::ServiceSession| {
            json!({
                "service": of.service,
                "peer": of.peer.to_string(),
                "user": of.user,
                "age_ns": now.since(of.since).as_nanos(),
            })
        };
        sessions.iter().map(row).collect()
    }
    async fn connections(&self, request: &Request) -> Answer {
        let wrong = |detail: &str| Response::problem(StatusCode::BAD_REQUEST, detail);
        let sort = request.query("sort").unwrap_or("age");
        let page = Page {
            sort: sort.parse::<Sort>().map_err(|()| wrong("connections cannot be sorted by that"))?,
            is_descending: request.query("order") != Some("asc"),
            offset: request.query_as("offset")?.unwrap_or(0),
            limit: request.query_as("limit")?.unwrap_or(100).min(MOST_ROWS),
            filter: request
                .query("filter")
                .unwrap_or_default()
                .parse::<Filter>()
                .map_err(|e| wrong(&e.to_string()))?,
        };
        let snapshot = self.list.latest().await;
        let age = self.context.host.now().since(snapshot.taken);
        let body = blocking::unblock(move || page.of(&snapshot, age)).await;
        Ok(Response::bytes("application/json", body).with(header::CACHE_CONTROL, "no-store"))
    }
    async fn connection(&self, request: &Request, socket: SocketId, path: &[&str]) -> Answer {
        let host = &self.context.host;
        let info = connection::info(host, socket).ok_or_else(Response::not_found)?;
        let recorder = || self.instruments.recorder.as_ref().ok_or_else(Response::not_found);
        let failed = |why: String| Response::problem(StatusCode::INTERNAL_SERVER_ERROR, &why);
        match path {
            [] => Ok(Response::json(&connection::figures(&info))),
            ["samples"] => {
                let after_ns = request.query_as("after")?.unwrap_or(0);
                let samples = self.sampler.samples(socket, after_ns).ok_or_else(|| {
                    Response::problem(StatusCode::TOO_MANY_REQUESTS, "too many connections are looked at")
                })?;
                Ok(Response::json(&json!({ "now_ns": host.now().as_nanos(), "samples": samples })))
            }
            ["verdict"] => {
                let frames = match &self.instruments.recorder {
                    Some(recorder) => {
                        connection::frames(recorder, &info).map_err(|e| failed(e.to_string()))?
                    }
                    None => Vec::new(),
                };
                let verdict = blocking::unblock(move || connection::verdict(&info, &frames)).await;
                verdict.map(|verdict| Response::json(&verdict)).map_err(failed)
            }
            ["frames"] => {
                let frames = connection::frames(recorder()?, &info).map_err(|e| failed(e.to_string()))?;
                let response = Response::bytes("application/vnd.tcpdump.pcap", frames);
                Ok(response
                    .with(header::CONTENT_DISPOSITION, "attachment; filename=\"connection.pcapng\"")
                    .with(header::CACHE_CONTROL, "no-store"))
            }
            _ => Err(Response::not_found()),
        }
    }
    async fn packets(&self, request: &Request) -> Answer {
        let Some(recorder) = &self.instruments.recorder else {
            return Ok(Response::json(&json!({ "next": 0, "lost": 0, "packets": [] })));
        };
        let (after, limit) = (request.query_as("after")?, request.query_as("limit")?.unwrap_or(200));
        let filter = request.query("filter").unwrap_or_default().to_owned();
        let (packets, fresh) = (self.packets.clone(), self.packets.fresh(recorder));
        let listed = blocking::unblock(move || {
            let listed = packets.list(fresh, after, limit, &filter);
            listed.map_err(|why| why.shown(&filter))
        });
        match listed.await {
            Ok(listed) => Ok(Response::json(&listed)),
            Err(why) => Err(Response::problem(StatusCode::BAD_REQUEST, &why)),
        }
    }
    async fn explain(&self, request: &Request) -> Answer {
        let (captures, body) = (self.captures.clone(), request.body().clone());
        match blocking::unblock(move || captures.explain(body)).await {
            Ok(report) => Ok(Response::json(&report)),
            Err(why) => {
                let detail = format!("{why}; is it a capture, such as tcpdump -w writes?");
                Err(Response::problem(StatusCode::BAD_REQUEST, &detail))
            }
        }
    }
    async fn metrics(&self) -> Response {
        let snapshot = self.list.latest().await;
        let overview = Value::Object(control::overview(&self.context.host, Some(&self.instruments.links)));
        let mut sessions = BTreeMap::new();
        for session in self.context.sessions.all() {
            *sessions.entry(session.service).or_insert(0) += 1;
        }
        let retransmissions =
            self.instruments.recorder.as_ref().map_or(0, inhost_record::Recorder::retransmissions);
        let text = metrics::text(&overview, &snapshot, &sessions, retransmissions, self.histograms.as_ref());
        Response::bytes("text/plain; version=0.0.4; charset=utf-8", text)
            .with(header::CACHE_CONTROL, "no-store")
    }
}

/// A link as the page shows it.
fn link(of: &Value) -> Value {
    let driver = &of["driver"];
    let addresses = of["addresses"].as_array().into_iter().flatten();
    json!({
        "link": of["link"],
        "name": of["name"],
        "medium": of["medium"],
        "mtu_bytes": of["mtu_bytes"],
        "hardware": of["hardware"],
        "description": driver["description"],
        "state": if driver.is_null() { json!("up") } else { driver["state"].clone() },
        "down": driver["down"],
        "addresses": addresses.map(|assigned| assigned["address"].clone()).collect::<Vec<_>>(),
        "received_frames": of["received_frames"],
        "received_bytes": of["received_bytes"],
        "sent_frames": of["sent_frames"],
        "sent_bytes": of["sent_bytes"],
        "full": driver["full"].as_u64().unwrap_or(0),
        "dropped": of["dropped"],
    })
}

impl Site for Pages {
    fn respond(self: Rc<Self>, request: Request) -> LocalFuture<Response> {
        Box::pin(async move {
            let path = request.path();
            match (request.method().as_str(), &path[..]) {
                ("GET", []) => INDEX.response(&request),
                ("GET", ["assets", name]) => assets::respond(&ASSETS, name, &request),
                ("GET", ["metrics"]) => self.metrics().await,
                (_, ["api", path @ ..]) => self.answer(&request, path).await.unwrap_or_else(|error| error),
                _ => Response::not_found(),
            }
        })
    }
}
