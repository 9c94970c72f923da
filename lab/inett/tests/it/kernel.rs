//! Both ends of ours over the system's sockets, and what the other tests share.

use std::sync::mpsc;
use std::thread::JoinHandle;

use inhost_base::{Endpoint, Ipv4Addr};
use inhost_inett::driver::{RunError, ServeOptions, Served, Stop, Stopper, run, serve};
use inhost_inett::face::Kernel;
use inhost_inett::plan::Plan;
use inhost_inett::result::Outcome;

/// Runs a future under tokio, on this thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A plan from TOML.
pub fn plan(text: &str) -> Plan {
    toml::from_str(text).unwrap()
}

/// Measures against a server.
pub fn measure(server: Endpoint, plan: &Plan) -> Result<Outcome, RunError> {
    let (_stopper, stop) = Stop::new();
    block_on(async { run(&Kernel::new(), server, plan, &stop, &mut |_| {}).await })
}

/// A server of ours on a thread; dropping it ends it.
pub struct OurServer {
    pub at: Endpoint,
    /// What it tells.
    pub told: mpsc::Receiver<Served>,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

impl OurServer {
    pub fn start() -> OurServer {
        let (stopper, stop) = Stop::new();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            block_on(async {
                let at = Endpoint::new(Ipv4Addr::LOCALHOST, 0);
                let mut tell = |served| drop(tell.send(served));
                serve(&Kernel::new(), at, &ServeOptions::default(), &stop, &mut tell).await.unwrap();
            });
        });
        let Ok(Served::Listening(at)) = told.recv_timeout(inhost_interop::DEADLINE) else {
            panic!("no server")
        };
        OurServer { at, told, stopper, thread: Some(thread) }
    }
    /// The end of the test that runs.
    pub fn end(&self) -> Served {
        loop {
            match self.told.recv_timeout(inhost_interop::DEADLINE).unwrap() {
                Served::Began(_) => {}
                other => return other,
            }
        }
    }
}

impl OurServer {
    /// Its user ends it.
    pub fn stop(&self) {
        self.stopper.stop();
    }
}

impl Drop for OurServer {
    fn drop(&mut self) {
        self.stop();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[test]
fn every_kind_over_the_loopback() {
    let server = OurServer::start();
    for (text, least) in [
        ("time_ms = 400", 1e8),
        ("time_ms = 400\ndirection = 'receive'\nstreams = 2", 1e8),
        ("bytes = 50000000\ndirection = 'both'", 1e8),
        // As with iperf3, what is in flight when the client says the end is not counted: a short test would be all of it.
        ("count = 50000\nwrite_bytes = 10000", 1e6),
        ("time_ms = 400\nrate_bits_per_second = 20000000", 1e7),
        ("time_ms = 400\nwindow_bytes = 65536\ncongestion = 'reno'\nno_delay = true", 1e7),
        ("protocol = 'udp'\ntime_ms = 400\nrate_bits_per_second = 20000000\ndirection = 'both'", 1e7),
        ("kind = 'echo'\ncount = 200", 1.0),
        ("kind = 'screen'\ntime_ms = 300\nconnections = 3\nload = 1", 1.0),
        ("kind = 'request'\ncount = 20\nresponse_bytes = { constant = 500000 }\nbackground_streams = 1", 1.0),
        ("kind = 'connect'\ncount = 50\nconnections = 2", 1.0),
        ("kind = 'connections'\nconnections = 64", 1.0),
    ] {
        let outcome = measure(server.at, &plan(text)).unwrap_or_else(|why| panic!("{text}: {why}"));
        let figure = outcome.summary.unwrap().mean;
        assert!(figure >= least, "{text}: {}", outcome.text());
        assert!(outcome.text().lines().all(|line| line.chars().count() <= 100), "{}", outcome.text());
        assert_eq!(outcome.csv().trim_end().matches(',').count(), Outcome::CSV_HEAD.matches(',').count());
        assert!(matches!(server.end(), Served::Ended { .. }), "{text}");
    }
}

#[test]
fn a_loopback_stream_says_who_was_the_limit() {
    let server = OurServer::start();
    let outcome = measure(server.at, &plan("time_ms = 1000")).unwrap();
    let repetition = &outcome.repetitions[0];
    assert!(repetition.client_processor.unwrap().seconds > 0.0);
    assert!(repetition.sent.unwrap().retransmits.is_some());
    assert!(repetition.limit.is_some() && repetition.congestion.is_some(), "{}", outcome.text());
    println!("{}", outcome.text());
    let paced = measure(server.at, &plan("time_ms = 1000\nrate_bits_per_second = 8000000")).unwrap();
    let limit = paced.repetitions[0].limit.clone().unwrap();
    assert_eq!(limit.who, inhost_inett::result::Who::Plan, "{}", paced.text());
}

#[test]
fn a_user_who_stops_it_keeps_what_was_measured() {
    let server = OurServer::start();
    let (stopper, stop) = Stop::new();
    let plan = plan("time_ms = 60000\ninterval_ms = 100");
    let outcome = block_on(async {
        let mut reports = 0;
        let mut told = |_: inhost_inett::driver::Progress<'_>| {
            reports += 1;
            if reports == 3 {
                stopper.stop();
            }
        };
        run(&Kernel::new(), server.at, &plan, &stop, &mut told).await.unwrap()
    });
    let repetition = &outcome.repetitions[0];
    assert!(repetition.is_aborted && repetition.sent.unwrap().bytes > 0, "{}", outcome.text());
    assert!(matches!(server.end(), Served::Ended { .. }));
}

/// A server that takes whatever comes and answers as far as `states` go.
fn silent_server(states: &'static [u8]) -> (Endpoint, JoinHandle<Vec<u8>>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = Endpoint::from(listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let (mut control, _) = listener.accept().unwrap();
        control.set_read_timeout(Some(inhost_interop::DEADLINE)).unwrap();
        control.write_all(states).unwrap();
        let mut said = Vec::new();
        control.read_to_end(&mut said).unwrap();
        said
    });
    (at, thread)
}

/// Runs a plan, and stops it after 300 ms: what comes of it, and how long that takes.
fn stop_soon(server: Endpoint, text: &str) -> (Result<Outcome, RunError>, std::time::Duration) {
    let (stopper, stop) = Stop::new();
    block_on(async {
        let plan = plan(text);
        let mut told = |_: inhost_inett::driver::Progress<'_>| {};
        let kernel = Kernel::new();
        let running = run(&kernel, server, &plan, &stop, &mut told);
        let stopping = async {
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            stopper.stop();
            tokio::time::Instant::now()
        };
        let (outcome, stopped) = tokio::join!(running, stopping);
        (outcome, stopped.elapsed())
    })
}

/// The server is there and says nothing more; a user who stops the test does not wait for it.
#[test]
fn a_user_who_stops_it_does_not_wait_for_the_server() {
    const TERMINATE: u8 = 12;
    let quickly = std::time::Duration::from_millis(1500);
    // While it waits for the start; while it says hello over UDP; while transactions are opened.
    for (states, text) in [
        (&[9, 10][..], "time_ms = 60000"),
        (&[9, 10], "time_ms = 60000\nprotocol = 'udp'"),
        (&[9, 64], "time_ms = 60000\nkind = 'echo'"),
    ] {
        let (at, server) = silent_server(states);
        let (outcome, took) = stop_soon(at, text);
        assert!(matches!(outcome, Err(RunError::Stopped)), "{text}: {outcome:?}");
        assert!(took < quickly, "{text}: {took:?}");
        assert_eq!(server.join().unwrap().last(), Some(&TERMINATE), "{text}");
    }
    // While the test runs: what was measured is kept.
    let (at, server) = silent_server(&[9, 10, 1, 2]);
    let (outcome, took) = stop_soon(at, "time_ms = 60000\ndirection = 'receive'");
    assert!(outcome.unwrap().repetitions[0].is_aborted);
    assert!(took < quickly, "{took:?}");
    server.join().unwrap();
}

/// A port scanner, for instance.
#[test]
fn a_connection_that_asks_for_no_test_is_not_the_only_one() {
    let (_stopper, stop) = Stop::new();
    let mut options = ServeOptions::default();
    options.is_one_off = true;
    let (tell, told) = async_channel::bounded(9);
    let mut tell = |served| {
        if let Served::Listening(at) = served {
            tell.try_send(at).unwrap();
        }
    };
    block_on(async {
        let kernel = Kernel::new();
        let serving = serve(&kernel, Endpoint::new(Ipv4Addr::LOCALHOST, 0), &options, &stop, &mut tell);
        let client = async {
            let at = told.recv().await.unwrap();
            drop(tokio::net::TcpStream::connect(std::net::SocketAddr::from(at)).await.unwrap());
            let (_stopper, stop) = Stop::new();
            run(&kernel, at, &plan("time_ms = 200"), &stop, &mut |_| {}).await
        };
        let (served, measured) =
            tokio::time::timeout(inhost_interop::DEADLINE, async { tokio::join!(serving, client) })
                .await
                .unwrap();
        served.unwrap();
        assert!(measured.unwrap().summary.is_some());
    });
}

#[test]
fn repetition_says_when_it_did_not_suffice() {
    let server = OurServer::start();
    let text =
        "kind = 'echo'\ncount = 20\nrepetitions_min = 3\nrepetitions_max = 4\nhalf_width_share = 0.00001";
    let outcome = measure(server.at, &plan(text)).unwrap();
    assert_eq!((outcome.repetitions.len(), outcome.is_sufficient), (4, Some(false)));
    assert!(outcome.text().contains("not sure enough"), "{}", outcome.text());
}

#[test]
fn a_server_that_is_stopped_says_so() {
    let server = OurServer::start();
    let client = std::thread::spawn({
        let at = server.at;
        move || measure(at, &plan("time_ms = 30000"))
    });
    assert!(matches!(server.told.recv_timeout(inhost_interop::DEADLINE), Ok(Served::Began(_))));
    inhost_interop::pause(std::time::Duration::from_millis(300));
    server.stop();
    let why = client.join().unwrap().unwrap_err();
    assert!(why.to_string().contains("was stopped"), "{why}");
}
