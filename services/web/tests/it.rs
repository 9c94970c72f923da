//! A server on a host of its own, in virtual time: what a client may send, how slowly, and what it may leave unread.

use std::cell::Cell;
use std::rc::Rc;

use futures_lite::future::{or, yield_now};
use inhost_base::{Duration, Endpoint, Instant};
use inhost_common::service::Doors;
use inhost_common::{Admission, LocalFuture};
use inhost_socket::{Host, Stream};
use inhost_stack::{Stack, StackConfig};
use inhost_web::{Config, EventLimits, Events, Request, Response, Site, assets, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const HERE: Endpoint =
    Endpoint { address: inhost_base::IpAddr::V4(inhost_base::Ipv4Addr::LOCALHOST), port: 80 };

struct Page {
    events: Events,
    /// Responses under way.
    waiting: Rc<Cell<u32>>,
}

struct Waiting(Rc<Cell<u32>>);
impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Site for Page {
    fn respond(self: Rc<Self>, request: Request) -> LocalFuture<Response> {
        let response = match (request.method().as_str(), &*request.path()) {
            ("GET", ["events"]) => self.events.subscribe(),
            ("GET", ["large"]) => Response::bytes("text/plain", vec![b'x'; 4 << 20]),
            ("GET", ["assets", name]) => assets::respond(&[], name, &request),
            ("POST", ["echo", rest @ ..]) => {
                Response::json(&(rest, request.query("q"), String::from_utf8_lossy(request.body())))
            }
            ("GET", ["wait"]) => {
                self.waiting.set(self.waiting.get() + 1);
                let waiting = Waiting(self.waiting.clone());
                return Box::pin(async move {
                    let _waiting = waiting;
                    std::future::pending().await
                });
            }
            (_, ["echo"]) => Response::method_not_allowed("POST"),
            _ => Response::not_found(),
        };
        Box::pin(std::future::ready(response))
    }
}

struct World {
    host: Host,
    events: Events,
    waiting: Rc<Cell<u32>>,
}

/// Runs a test with a server; no test takes more than a virtual hour.
fn world<F: Future<Output = ()>>(config: Config, test: impl FnOnce(World) -> F) {
    let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
    let mut limits = EventLimits::default();
    limits.events = 8;
    let events = Events::new(limits, Rc::new(host.clone()));
    let waiting = Rc::new(Cell::new(0));
    let page = Rc::new(Page { events: events.clone(), waiting: waiting.clone() });
    let admission = Admission::new(server::LIMITS);
    let doors = Doors::new("page", &host, &Default::default(), admission, |_| ());
    doors.listen_at(HERE, doors.admission(), server::sessions(&host, page, config)).unwrap();
    let test = test(World { host: host.clone(), events, waiting });
    let limit = async {
        host.sleep(Duration::from_secs(3600)).await;
        panic!("the test takes too long");
    };
    host.run_alone(or(test, limit)).expect("the host waits for nothing");
    host.stop();
}

impl World {
    async fn open(&self, head: &str) -> Stream {
        let mut stream = self.host.connect(HERE).await.unwrap();
        // The server may have had enough before the end.
        let _ = stream.write_all(head.as_bytes()).await;
        stream
    }
    /// The response to a request after which the server closes.
    async fn ask(&self, line: &str, fields: &str, body: &str) -> String {
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
        );
        rest(&mut self.open(&head).await).await
    }
}

/// What comes until the connection ends, however it does.
async fn rest(stream: &mut Stream) -> String {
    let (mut all, mut place) = (Vec::new(), vec![0; 65_536]);
    while let Ok(count) = stream.read(&mut place).await
        && count > 0
    {
        all.extend_from_slice(&place[..count]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// Reads until `text` has come.
async fn until(stream: &mut Stream, text: &str) -> String {
    let (mut all, mut place) = (String::new(), [0; 1024]);
    while !all.contains(text) {
        let count = stream.read(&mut place).await.unwrap();
        assert!(count > 0, "the end comes before {text:?}: {all}");
        all.push_str(&String::from_utf8_lossy(&place[..count]));
    }
    all
}

#[test]
fn requests_and_their_responses() {
    world(Config::default(), async |world| {
        let echo = world.ask("POST /echo/a%2fb/%C3%A4?q=1+2&r", "", "body").await;
        assert!(
            echo.starts_with("HTTP/1.1 200 ") && echo.ends_with(r#"[["a/b","ä"],"1 2","body"]"#),
            "{echo}"
        );
        for field in
            ["content-security-policy: default-src 'none'", "x-content-type-options: nosniff", "no-referrer"]
        {
            assert!(echo.contains(field), "{field}: {echo}");
        }
        let wrong = world.ask("GET /none", "", "").await;
        assert!(wrong.starts_with("HTTP/1.1 404 ") && wrong.contains("application/problem+json"), "{wrong}");
        assert!(wrong.ends_with(r#""status":404,"detail":"there is nothing at this path"}"#), "{wrong}");
        assert!(world.ask("DELETE /echo", "", "").await.contains("\r\nallow: POST\r\n"));
        let asset = world.ask("GET /assets/house.css", "", "").await;
        let tag = asset.split("etag: ").nth(1).unwrap().split_once('\r').unwrap().0;
        let again = world.ask("GET /assets/house.css", &format!("If-None-Match: W/{tag}\r\n"), "").await;
        assert!(again.starts_with("HTTP/1.1 304 ") && again.ends_with("\r\n\r\n"), "{again}");
        let head = world.ask("HEAD /large", "", "").await;
        assert!(head.contains("content-length: 4194304") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(world.ask("GET /large", "", "").await.len() > 4 << 20);
        assert!(world.ask("GET /%ff", "", "").await.starts_with("HTTP/1.1 400 "));
    });
}

#[test]
fn what_is_refused() {
    world(Config::default(), async |world| {
        let statuses = [
            ("POST /echo", "Sec-Fetch-Site: cross-site\r\n".to_owned(), String::new(), "403"),
            ("POST /echo", "Origin: http://evil.example\r\n".to_owned(), String::new(), "403"),
            ("POST /echo", String::new(), "x".repeat((256 << 10) + 1), "413"),
            ("GET /none", format!("X: {}\r\n", "x".repeat(70_000)), String::new(), "431"),
            ("GET /none", "A: b\r\n".repeat(70), String::new(), "431"),
        ];
        for (line, fields, body, status) in statuses {
            let answer = world.ask(line, &fields, &body).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line} {status}: {answer}");
        }
        // A body whose length is not said.
        let mut stream =
            world.open("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
        for _ in 0..9 {
            let _ = stream.write_all(chunk.as_bytes()).await;
        }
        assert!(rest(&mut stream).await.starts_with("HTTP/1.1 413 "));
        let mut stream =
            world.open("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").await;
        assert!(rest(&mut stream).await.starts_with("HTTP/1.1 403 "));
    });
}

#[test]
fn a_slow_client_is_given_up() {
    let config = Config::default();
    let (idle, head, body, stall) = (config.idle_time, config.head_time, config.body_time, config.stall_time);
    world(config, async |world| {
        let host = &world.host;
        for (said, limit) in [
            ("", idle),
            ("GET / HTTP/1.1\r\nHost: local", head),
            ("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n", idle),
            ("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx", body),
        ] {
            let began = host.now();
            rest(&mut world.open(said).await).await;
            let took = host.now().since(began);
            assert!(took >= limit && took < limit + Duration::from_secs(1), "{said:?}: {took}");
        }
        // Octet by octet it takes no longer.
        let (began, mut stream) = (host.now(), world.open("GET / HTTP/1.1\r\nA: ").await);
        while stream.write_all(b"x").await.is_ok() {
            host.sleep(Duration::from_secs(1)).await;
        }
        assert!(host.now().since(began) < head + Duration::from_secs(3));
        // One that asks for much and reads nothing.
        let (began, stream) =
            (host.now(), world.open("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n").await);
        assert!(stream.closed().await.is_err(), "it is reset");
        assert!(host.now().since(began) < stall + Duration::from_secs(3));
    });
}

#[test]
fn events_come_to_each_and_a_slow_reader_misses_some() {
    world(Config::default(), async |world| {
        let ask = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let mut fast = world.open(ask).await;
        until(&mut fast, "retry: ").await;
        world.events.publish("message", &["a\nb"]);
        assert!(until(&mut fast, "\\nb").await.contains("event: message\ndata: [\"a\\nb\"]\n"));
        // A comment is sent where nothing happens.
        let began = world.host.now();
        until(&mut fast, "\n:\n\n").await;
        assert_eq!(world.host.now().since(began), EventLimits::default().heartbeat);
        // More at once than a subscriber's queue has room for.
        for number in 0..100 {
            world.events.publish("many", &number);
        }
        let text = until(&mut fast, "event: missed\ndata: {\"count\":92}\n\n").await;
        assert!(text.contains("data: 7\n") && !text.contains("data: 8\n"), "{text}");
        world.events.publish("after", &1);
        until(&mut fast, "event: after").await;
        // One that reads nothing is given up, whatever is published.
        let slow = world.open(ask).await;
        while world.events.subscribers() < 2 {
            yield_now().await;
        }
        let noise = "x".repeat(10_000);
        while world.events.subscribers() == 2 {
            world.events.publish("noise", &noise);
            assert!(fast.read(&mut vec![0; 1 << 20]).await.unwrap() > 0);
            world.host.sleep(Duration::from_millis(100)).await;
        }
        assert!(slow.closed().await.is_err(), "it is reset");
        // Events end with the host.
        world.host.drain();
        rest(&mut fast).await;
    });
}

#[test]
fn a_response_that_nobody_waits_for_is_dropped() {
    world(Config::default(), async |world| {
        let stream = world.open("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        while world.waiting.get() == 0 {
            yield_now().await;
        }
        drop(stream);
        while world.waiting.get() == 1 {
            world.host.sleep(Duration::from_millis(10)).await;
        }
    });
}
