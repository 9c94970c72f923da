//! A dashboard on a host of its own with many connections, which the system reaches through the link `user`.

use std::net::SocketAddr;
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_common::service::{HostFiles, Service, ServiceContext, ServiceSession, Sessions};
use inhost_common::{Callers, Denials, Transport};
use inhost_dashboard::{Dashboard, Instruments, Level, Log, Section, Views};
use inhost_gateway::{Forward, GatewayConfig, guest_interface, user_link};
use inhost_interop::{DEADLINE, join, output};
use inhost_runtime::{Runtime, entropy};
use inhost_socket::{Host, Listener, Stream};
use inhost_stack::{ListenOptions, StackConfig};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What a stranger would like to run.
pub const HOSTILE: &str = "<img src=x onerror=\"document.title='RAN'\">\u{202e}\u{1b}[31m";

/// Sessions of the host, the oldest of which is the stranger's.
pub const SESSIONS: usize = 20_000;

pub struct Place {
    pub web: SocketAddr,
    /// What a caller within the host is answered, at its loopback and at its own address.
    pub inner: [String; 2],
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

/// What a test asks of the host's thread.
#[derive(Default)]
struct Orders {
    stop: AtomicBool,
    hang: AtomicBool,
}

impl Place {
    /// With so many connections, two by two over the loopback, one pair of which is always busy.
    pub fn new(section: Section, connections: usize) -> Place {
        let (tell, told) = mpsc::channel();
        let orders = Arc::new(Orders::default());
        let given = orders.clone();
        let thread = std::thread::spawn(move || serve(&section, connections / 2, &tell, &given));
        let (web, inner) = told.recv_timeout(DEADLINE).expect("the host starts");
        Place { web, inner, orders, thread: Some(thread) }
    }
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.web)
    }
    /// What curl says to a path; it ends with the status.
    pub fn curl(&self, path: &str, more: &[&str]) -> (String, u16) {
        let mut command = Command::new("curl");
        command.args(["-sS", "-w", "\n%{http_code}", "--max-time", "40"]).args(more).arg(self.url(path));
        let text = String::from_utf8_lossy(&output(&mut command).stdout).into_owned();
        let (body, status) = text.rsplit_once('\n').unwrap();
        (body.to_owned(), status.parse().unwrap())
    }
    /// Has the host's thread do nothing, or go on.
    pub fn hang(&self, hangs: bool) {
        self.orders.hang.store(hangs, Ordering::Relaxed);
    }
    pub fn json(&self, path: &str) -> Value {
        let (body, status) = self.curl(path, &[]);
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.hang(false);
        self.orders.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && !std::thread::panicking()
        {
            join(thread);
        }
    }
}

fn serve(section: &Section, pairs: usize, tell: &mpsc::Sender<(SocketAddr, [String; 2])>, orders: &Orders) {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let (host, callers) = (runtime.host().clone(), Callers::default());
    let mut config = GatewayConfig::default();
    config.callers = callers.clone();
    let outside = "127.0.0.1:0".parse().unwrap();
    config.forwards = vec![Forward { transport: Transport::Tcp, outside, guest_port: section.port }];
    let interface = guest_interface("user", &config);
    let (driver, running) = user_link(&host, config, runtime.handle(), entropy().unwrap()).unwrap().split();
    runtime.add_link(&host, interface, Box::new(driver)).unwrap();
    let (sessions, log) = (Sessions::default(), Log::default());
    let since = host.now();
    let hostile = move || {
        let peer = Ipv4Addr::new(192, 0, 2, 9).into();
        let session = |user: &str| ServiceSession {
            number: None,
            service: "telnet",
            peer,
            user: Some(user.to_owned()),
            since,
        };
        let rest = (1..SESSIONS).map(|number| session(&format!("user {number}")));
        std::iter::once(session(HOSTILE)).chain(rest).collect()
    };
    sessions.add(hostile);
    log.add(1_790_000_000_000, Level::Warn, "telnet", format!("wrong password user={HOSTILE}"));
    let context = context(&runtime, callers, sessions.clone());
    Dashboard::check(section).unwrap();
    let service = Dashboard::start(section, (), &context).unwrap();
    let recorder = runtime.recorder(&host);
    let links = runtime.links();
    service
        .show(&Views::new(&host, Instruments { recorder, links, log, name: HOSTILE.to_owned(), sessions }));
    let web = running.gateway.forwards()[0].outside;
    runtime
        .run(async {
            let held = pair_up(&host, 4000, pairs).await;
            let loopback = Endpoint::new(Ipv4Addr::LOCALHOST, section.port);
            let own = Endpoint::new(Ipv4Addr::new(10, 0, 2, 15), section.port);
            let inner = [call(&host, loopback).await, call(&host, own).await];
            tell.send((web, inner)).unwrap();
            while !orders.stop.load(Ordering::Relaxed) {
                while orders.hang.load(Ordering::Relaxed) {
                    inhost_interop::pause(std::time::Duration::from_millis(20));
                }
                host.sleep(Duration::from_millis(20)).await;
            }
            drop(held);
        })
        .unwrap();
    host.stop();
}

/// What a service is given.
pub fn context(runtime: &Runtime, callers: Callers, sessions: Sessions) -> ServiceContext {
    ServiceContext {
        host: runtime.host().clone(),
        reactor: runtime.handle().clone(),
        callers,
        denials: Denials::default(),
        sessions,
        files: HostFiles { are_users_named: false, users: None, hosts: "/dev/null".into() },
        resolvers: Default::default(),
        program: "inhost".into(),
        descriptor_limit: None,
        netstat: Rc::new(String::new),
        operator: Rc::new(inhost_common::service::NoOperator),
        unix_time: || std::time::UNIX_EPOCH.elapsed().unwrap(),
        entropy,
    }
}

/// Connections of the host to itself.
pub async fn pair_up(host: &Host, port: u16, pairs: usize) -> (Listener, Vec<Stream>) {
    let here = Endpoint::new(Ipv4Addr::LOCALHOST, port);
    let listener = host.listen(here, ListenOptions::default()).unwrap();
    let mut streams = Vec::new();
    for number in 0..pairs {
        let mut caller = host.connect(here).await.unwrap();
        let called = listener.accept().await.unwrap();
        if number == 0 {
            busy(host, caller, called);
            continue;
        }
        caller.write_all(&vec![7; number % 1000 + 1]).await.unwrap();
        streams.extend([caller, called]);
    }
    (listener, streams)
}

/// One sends without end, the other reads slowly.
fn busy(host: &Host, mut sends: Stream, reads: Stream) {
    host.spawn(async move { while sends.write_all(&[1; 10_000]).await.is_ok() {} }).detach();
    let clock = host.clone();
    host.spawn(async move {
        let mut place = vec![0; 20_000];
        while let Ok(1..) = reads.receive(&mut place).await {
            clock.sleep(Duration::from_millis(2)).await;
        }
    })
    .detach();
}

/// What the page says to a caller within the host.
async fn call(host: &Host, page: Endpoint) -> String {
    let mut stream = host.connect(page).await.unwrap();
    stream
        .write_all(b"GET /api/host HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
