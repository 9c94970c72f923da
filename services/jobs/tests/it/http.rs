//! The queue over HTTP on a host of its own, in virtual time.

use std::rc::Rc;
use std::time::Duration;

use inhost_base::{Endpoint, Instant, IpAddr, Ipv4Addr};
use inhost_common::service::Doors;
use inhost_common::users::{Account, Authenticate, Verdict};
use inhost_common::{Admission, AdmissionLimits, LocalFuture};
use inhost_jobs::machine::Shares;
use inhost_jobs::queue::{Queue, QueueConfig};
use inhost_jobs::server::{PORT, Server, config, sessions};
use inhost_jobs::store::{End, Outcome, Store};
use inhost_socket::Host;
use inhost_stack::{Stack, StackConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const HERE: Endpoint = Endpoint { address: IpAddr::V4(Ipv4Addr::LOCALHOST), port: PORT };
/// ada:a, bob:b and the operator op:o.
const ADA: &str = "YWRhOmE=";
const BOB: &str = "Ym9iOmI=";
const OPERATOR: &str = "b3A6bw==";

/// Users whose password is the first letter of their name.
pub struct Three;

impl Authenticate for Three {
    fn authenticate(&self, user: String, password: String) -> LocalFuture<Verdict> {
        let is_right =
            ["ada", "bob", "op"].contains(&&*user) && user.starts_with(&password) && !password.is_empty();
        let account = Account { is_operator: user == "op", name: user, shell: None };
        Box::pin(std::future::ready(if is_right { Verdict::Granted(account) } else { Verdict::Denied }))
    }
}

fn unix_time() -> Duration {
    Duration::from_secs(1000)
}

async fn ask(host: &Host, user: &str, request: &str, fields: &str, body: &str) -> String {
    let mut stream = host.connect(HERE).await.unwrap();
    let text = format!(
        "{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Basic {user}\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // What is refused may be closed before all is sent.
    let _ = stream.write_all(text.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn start(name: &str) -> (Host, Rc<Queue>, std::path::PathBuf, Doors) {
    let folder = std::env::temp_dir().join(format!("inhost-jobs-http-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
    std::fs::create_dir_all(&folder).unwrap();
    let store = Store::in_memory(&folder).unwrap();
    let queue = Rc::new(Queue::new(store, QueueConfig::default(), Rc::new(host.clone()), unix_time));
    let server = Server { queue: queue.clone(), users: Rc::new(Three), config: config(), tls: None };
    let admission = Admission::new(AdmissionLimits::default());
    let doors = Doors::new("jobs", &host, &Default::default(), admission, |_| ());
    doors.listen_at(HERE, doors.admission(), sessions(&host, server)).unwrap();
    (host, queue, folder, doors)
}

#[test]
fn jobs_are_submitted_seen_by_their_user_and_fetched() {
    let (host, queue, folder, _doors) = start("calls");
    let own = host.clone();
    let done = host.run_alone(async move {
        let key = "Idempotency-Key: k1\r\n";
        let job = r#"{"name":"tides","script":"echo high"}"#;
        let first = ask(&own, ADA, "POST /jobs", key, job).await;
        assert!(first.starts_with("HTTP/1.1 201") && first.ends_with(r#"{"id":1,"count":1}"#), "{first}");
        assert!(ask(&own, ADA, "POST /jobs", key, job).await.starts_with("HTTP/1.1 200"), "it is there");
        assert!(ask(&own, ADA, "POST /jobs", key, r#"{"script":"x"}"#).await.starts_with("HTTP/1.1 422"));
        assert!(ask(&own, BOB, "GET /jobs/1", "", "").await.starts_with("HTTP/1.1 404"), "it is not his");
        assert!(ask(&own, BOB, "GET /jobs", "", "").await.ends_with("\r\n\r\n[]"));
        assert!(ask(&own, OPERATOR, "GET /jobs", "", "").await.contains("tides"));
        assert!(ask(&own, BOB, "POST /jobs/1/cancel", "", "").await.starts_with("HTTP/1.1 404"));
        assert!(ask(&own, OPERATOR, "POST /jobs/1/hold", "", "").await.ends_with(r#"{"count":1}"#));
        assert!(ask(&own, ADA, "GET /jobs/1", "", "").await.contains(r#""state":"held""#));
        assert!(ask(&own, ADA, "POST /jobs/1/release", "", "").await.ends_with(r#"{"count":1}"#));
        let plan = queue.store.plan("local", Shares::default(), 1000).await.unwrap();
        assert_eq!(plan.start.len(), 1);
        std::fs::create_dir_all(&plan.start[0].folder).unwrap();
        std::fs::write(plan.start[0].folder.join("stdout"), "high tide").unwrap();
        let part = ask(&own, ADA, "GET /jobs/1/stdout", "Range: bytes=5-\r\n", "").await;
        assert!(
            part.starts_with("HTTP/1.1 206")
                && part.contains("bytes 5-8/9")
                && part.ends_with("\r\n\r\ntide")
        );
        assert!(part.contains("x-job-open: true"), "{part}");
        let end = End { id: 1, attempt: 1, outcome: Outcome::Exit(0, String::new()), output_bytes: 9 };
        queue.store.settle(vec![end], 1001).await.unwrap();
        let rest = ask(&own, ADA, "GET /jobs/1/stdout", "Range: bytes=9-\r\n", "").await;
        assert!(rest.starts_with("HTTP/1.1 416") && rest.contains("bytes */9"), "{rest}");
        assert!(rest.contains("x-job-open: false") && rest.contains("x-job-attempt: 1"), "{rest}");
        let none = ask(&own, ADA, "GET /jobs/1/stderr", "Range: bytes=0-\r\n", "").await;
        assert!(none.starts_with("HTTP/1.1 200") && none.ends_with("\r\n\r\n"), "{none}");
        let late = ask(&own, ADA, "POST /jobs/1/cancel", "", "").await;
        assert!(late.starts_with("HTTP/1.1 409") && late.contains("application/problem+json"), "{late}");
    });
    assert!(done.is_some());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn hostile_requests_are_refused() {
    let (host, queue, folder, _doors) = start("hostile");
    let own = host.clone();
    let done = host.run_alone(async move {
        let large = format!(r#"{{"script":"{}"}}"#, "x".repeat(2 << 20));
        assert!(ask(&own, ADA, "POST /jobs", "", &large).await.contains(" 413 "));
        for body in ["", "{", "[]", r#"{"script":1}"#, r#"{"script":"a","name":"\u001b[2J"}"#] {
            assert!(ask(&own, ADA, "POST /jobs", "", body).await.starts_with("HTTP/1.1 400"), "{body}");
        }
        let unknown = ask(&own, ADA, "POST /jobs", "", r#"{"script":"a","to":"elsewhere"}"#).await;
        assert!(unknown.starts_with("HTTP/1.1 409"), "{unknown}");
        for path in ["/jobs/x", "/jobs/-1", "/jobs/1/../..", "/jobs/1/script", "/jobs/99999999999999999999"] {
            assert!(
                ask(&own, ADA, &format!("GET {path}"), "", "").await.starts_with("HTTP/1.1 404"),
                "{path}"
            );
        }
        let mut refused = 0;
        for _ in 0..20 {
            refused +=
                usize::from(ask(&own, "YWRhOng=", "GET /jobs", "", "").await.starts_with("HTTP/1.1 401"));
        }
        assert!(refused < 20, "guesses are limited");
        assert!(
            queue.store.list(inhost_jobs::store::Scope::All, Default::default()).await.unwrap().is_empty()
        );
    });
    assert!(done.is_some());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_client_that_never_reads_a_log_is_given_up() {
    const REQUESTS: usize = 200;
    let (host, queue, folder, _doors) = start("unread");
    let own = host.clone();
    let received = host.run_alone(async move {
        ask(&own, ADA, "POST /jobs", "", r#"{"script":"x"}"#).await;
        let plan = queue.store.plan("local", Shares::default(), 1000).await.unwrap();
        std::fs::create_dir_all(&plan.start[0].folder).unwrap();
        std::fs::write(plan.start[0].folder.join("stdout"), vec![b'x'; 1 << 20]).unwrap();
        let mut stream = own.connect(HERE).await.unwrap();
        let request = format!("GET /jobs/1/stdout HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {ADA}\r\n\r\n");
        let _ = stream.write_all(request.repeat(REQUESTS).as_bytes()).await;
        own.sleep(inhost_base::Duration::from_secs(120)).await;
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received).await;
        received.len()
    });
    let received = received.unwrap();
    assert!(
        received < REQUESTS * (64 << 10) / 2,
        "{received} octets were sent to a client that did not read"
    );
    std::fs::remove_dir_all(folder).unwrap();
}
