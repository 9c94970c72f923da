//! Views of a host: what the page, and programs of the host's user, ask of it.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use inhost_common::service::Sessions;
use inhost_record::Recorder;
use inhost_runtime::Links;
use inhost_runtime::control::{self, Failure, Reply};
use inhost_socket::Host;
use inhost_stack::{SocketId, SocketKind};
use inhost_web::{EventLimits, Events, Request, Response, ResponseBody, StatusCode, header};
use serde_json::{Value, json};

use crate::captures::Captures;
use crate::connection::{self, Sampler};
use crate::filter::Filter;
use crate::histograms::Histograms;
use crate::list::{List, MOST_ROWS, Page, Sort};
use crate::log::Log;
use crate::packets::Packets;
use crate::{metrics, summary};

/// Lines of the log in an answer.
const LOG_LINES: usize = 500;

/// What the views show, besides the host itself.
pub struct Instruments {
    /// The flight recorder.
    pub recorder: Option<Recorder>,
    /// The drivers of links.
    pub links: Links,
    /// The log.
    pub log: Log,
    /// The host's name.
    pub name: String,
    /// The sessions of services.
    pub sessions: Sessions,
}

/// Views of a host. Clones are the same. Nothing is measured, and no task runs, before somebody asks.
#[derive(Clone)]
pub struct Views(Rc<Inner>);

struct Inner {
    host: Host,
    instruments: Instruments,
    list: Rc<List>,
    sampler: Rc<Sampler>,
    histograms: OnceCell<Histograms>,
    packets: Packets,
    captures: Captures,
    events: OnceCell<Rc<Events>>,
}

/// A response, or that of an error.
pub(crate) type Answer = Result<Response, Response>;

impl Views {
    /// The views of `host`.
    pub fn new(host: &Host, instruments: Instruments) -> Views {
        Views(Rc::new(Inner {
            host: host.clone(),
            list: List::new(host),
            sampler: Sampler::new(host),
            histograms: OnceCell::new(),
            packets: Packets::default(),
            captures: Captures::default(),
            events: OnceCell::new(),
            instruments,
        }))
    }
    /// The JSON that the page gets at `/api/` + `target`, such as `connections?sort=rate&filter=dport+%3D+443`; here without a limit
    /// of rows.
    ///
    /// # Errors
    /// A sentence: what is wrong with the target, or that what it names is gone.
    pub async fn ask(&self, target: &str) -> Result<Bytes, String> {
        let answer = match Request::get(&format!("/{target}")) {
            Ok(request) => self.0.answer(&request, &request.path(), usize::MAX).await,
            Err(refused) => Err(refused),
        };
        let body = |response: &Response| match response.body() {
            ResponseBody::Bytes(bytes) => Some(bytes.clone()),
            ResponseBody::Stream(_) => None,
        };
        match answer {
            Ok(response) => body(&response).ok_or_else(|| "that is for browsers".to_owned()),
            Err(response) => Err(body(&response).as_deref().and_then(detail).unwrap_or_default()),
        }
    }
    /// Offers the views to programs of the host's user: the request `view` of the control socket, see
    /// [`control::Client::view`].
    pub fn offer(&self, control: &control::Server) {
        let views = self.clone();
        control.handle("view", move |_, request| {
            let views = views.clone();
            async move {
                let target =
                    request["target"].as_str().ok_or_else(|| Failure::new("\"target\" is missing"))?;
                let body = views.ask(target).await.map_err(Failure::new)?;
                let reply = blocking::unblock(move || Reply::holding(&body)).await;
                reply.map_err(|why| Failure::new(why.to_string()))
            }
        });
    }
    /// The answer to a request of the page, below `/api`.
    pub(crate) async fn answer(&self, request: &Request, path: &[&str]) -> Answer {
        self.0.answer(request, path, MOST_ROWS).await
    }
    /// Figures for Prometheus.
    pub(crate) async fn metrics(&self) -> String {
        self.0.metrics().await
    }
    /// Has histograms measured from now on.
    pub(crate) fn measure(&self) {
        self.0.histograms();
    }
}

/// What a problem says.
fn detail(problem: &[u8]) -> Option<String> {
    let problem: Value = serde_json::from_slice(problem).ok()?;
    Some(problem["detail"].as_str()?.to_owned())
}

impl Inner {
    /// What passes, measured from the first call on, and before it as far back as the recorder goes.
    fn histograms(&self) -> Option<&Histograms> {
        let recorder = self.instruments.recorder.as_ref()?;
        Some(self.histograms.get_or_init(|| Histograms::start(&self.host, recorder)))
    }
    fn events(&self) -> &Events {
        self.events.get_or_init(|| {
            let events = Rc::new(Events::new(EventLimits::default(), Rc::new(self.host.clone())));
            let (recorder, list) = (self.instruments.recorder.clone(), self.list.clone());
            self.host.spawn(summary::publish(self.host.clone(), recorder, list, events.clone())).detach();
            events
        })
    }
    async fn answer(&self, request: &Request, path: &[&str], most_rows: usize) -> Answer {
        match (request.method().as_str(), path) {
            ("GET", ["host"]) => Ok(Response::json(&self.host().await)),
            ("GET", ["sessions"]) => self.sessions(request, most_rows),
            ("GET", ["connections"]) => self.connections(request, most_rows).await,
            ("GET", ["connections", id, rest @ ..]) => {
                let socket = connection::socket(id).ok_or_else(Response::not_found)?;
                self.connection(request, socket, rest).await
            }
            ("GET", ["histograms"]) => Ok(Response::json(&match self.histograms() {
                Some(histograms) => {
                    histograms.caught_up(&self.host).await;
                    histograms.json()
                }
                None => json!({ "histograms": [] }),
            })),
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
            ("GET", ["events"]) => Ok(self.events().subscribe()),
            ("POST", ["explain"]) => self.explain(request).await,
            ("GET", ["explain", name]) => {
                let (captures, name) = (self.captures.clone(), (*name).to_owned());
                let picture = blocking::unblock(move || captures.picture(&name)).await;
                let picture = picture.ok_or_else(Response::not_found)?;
                Ok(Response::bytes("image/svg+xml", picture).with(header::CACHE_CONTROL, "no-store"))
            }
            (_, ["explain"]) => Err(Response::method_not_allowed("POST")),
            ("GET", _) => Err(Response::not_found()),
            (
                _,
                [
                    "host" | "sessions" | "connections" | "histograms" | "packets" | "log" | "events"
                    | "explain",
                    ..,
                ],
            ) => Err(Response::method_not_allowed("GET")),
            _ => Err(Response::not_found()),
        }
    }
    /// The host but for its connections and sessions.
    async fn host(&self) -> Value {
        let snapshot = self.list.latest().await;
        let mut overview = Value::Object(control::overview(&self.host, Some(&self.instruments.links)));
        let count = |kind: SocketKind| snapshot.counts[kind as usize];
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
            "retransmissions": self.retransmissions(),
            "links": overview["interfaces"].as_array().into_iter().flatten().map(link).collect::<Vec<_>>(),
            "listeners": snapshot.listeners,
            "others": snapshot.others,
            "sessions": self.instruments.sessions.all().len(),
        })
    }
    fn retransmissions(&self) -> u64 {
        self.instruments.recorder.as_ref().map_or(0, Recorder::retransmissions)
    }
    fn sessions(&self, request: &Request, most_rows: usize) -> Answer {
        let (offset, limit) = range(request, most_rows)?;
        let now = self.host.now();
        let sessions = self.instruments.sessions.all();
        let row = |of: &inhost_common::service::ServiceSession| {
            json!({
                "service": of.service,
                "peer": of.peer.to_string(),
                "user": of.user,
                "age_ns": now.since(of.since).as_nanos(),
            })
        };
        let rows: Vec<Value> = sessions.iter().skip(offset).take(limit).map(row).collect();
        Ok(Response::json(&json!({ "total": sessions.len(), "rows": rows })))
    }
    async fn connections(&self, request: &Request, most_rows: usize) -> Answer {
        let wrong = |detail: &str| Response::problem(StatusCode::BAD_REQUEST, detail);
        let sort = request.query("sort").unwrap_or("age");
        let (offset, limit) = range(request, most_rows)?;
        let page = Page {
            sort: sort.parse::<Sort>().map_err(|()| wrong("connections cannot be sorted by that"))?,
            is_descending: match request.query("order").unwrap_or("desc") {
                "asc" => false,
                "desc" => true,
                _ => return Err(wrong("the order of connections is asc or desc")),
            },
            offset,
            limit,
            filter: request
                .query("filter")
                .unwrap_or_default()
                .parse::<Filter>()
                .map_err(|e| wrong(&e.to_string()))?,
        };
        let snapshot = self.list.latest().await;
        let age = self.host.now().since(snapshot.taken);
        let body = blocking::unblock(move || page.of(&snapshot, age)).await;
        Ok(Response::bytes("application/json", body).with(header::CACHE_CONTROL, "no-store"))
    }
    async fn connection(&self, request: &Request, socket: SocketId, path: &[&str]) -> Answer {
        let host = &self.host;
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
                let now_ns = self.instruments.recorder.as_ref().map(|recorder| recorder.unix_ns(host.now()));
                let verdict = blocking::unblock(move || connection::verdict(&info, &frames, now_ns)).await;
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
    async fn metrics(&self) -> String {
        let snapshot = self.list.latest().await;
        let overview = Value::Object(control::overview(&self.host, Some(&self.instruments.links)));
        let mut sessions = BTreeMap::new();
        for session in self.instruments.sessions.all() {
            *sessions.entry(session.service).or_insert(0) += 1;
        }
        metrics::text(&overview, &snapshot, &sessions, self.retransmissions(), self.histograms())
    }
}

/// Which rows of a list are wanted: where they begin, and how many at most.
fn range(request: &Request, most_rows: usize) -> Result<(usize, usize), Response> {
    let limit = request.query_as("limit")?.unwrap_or(100);
    Ok((request.query_as("offset")?.unwrap_or(0), limit.min(most_rows)))
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
