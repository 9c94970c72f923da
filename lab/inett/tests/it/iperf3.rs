//! Beside iperf3 of Debian, both ways.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use inhost_base::{Endpoint, Ipv4Addr};
use inhost_inett::driver::{RunError, Served};
use inhost_inett::iperf3::ProtocolError;
use inhost_interop::{Running, output_within};

use super::kernel::{OurServer, measure, plan};

/// iperf3's own server, for one test or until it is dropped.
fn iperf3_server(more: &[&str]) -> (Running, Endpoint) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("iperf3");
    command.args(["-s", "--forceflush", "-B", "127.0.0.1", "-p", &port.to_string()]).args(more);
    let mut server = Running::start(&mut command);
    server.wait_for("Server listening");
    (server, Endpoint::new(Ipv4Addr::LOCALHOST, port))
}

#[test]
fn our_client_beside_its_server() {
    let (mut server, at) = iperf3_server(&[]);
    for text in [
        "time_ms = 1000",
        "time_ms = 1000\ndirection = 'receive'",
        "time_ms = 1000\ndirection = 'both'\nstreams = 2",
        "bytes = 30000000\nstreams = 3",
        "bytes = 30000000\ndirection = 'receive'",
        "count = 100000\nwrite_bytes = 8192",
        "time_ms = 1000\nwarm_up_ms = 1000\nstreams = 2",
        "time_ms = 1000\nrate_bits_per_second = 10000000\nwindow_bytes = 100000\ncongestion = 'reno'",
        "protocol = 'udp'\ntime_ms = 1000\nrate_bits_per_second = 10000000",
        "protocol = 'udp'\ntime_ms = 1000\nrate_bits_per_second = 10000000\ndirection = 'receive'\nstreams = 2",
        "protocol = 'udp'\ntime_ms = 1000\nrate_bits_per_second = 10000000\ndirection = 'both'",
        "protocol = 'udp'\ncount = 500\nrate_bits_per_second = 10000000\nwarm_up_ms = 1000",
        "time_ms = 300\nrepetitions_min = 3\nrepetitions_max = 3",
    ] {
        let mut tries = 0;
        let outcome = loop {
            match measure(at, &plan(text)) {
                // It closes its listener for a moment after each test.
                Err(RunError::Connect(_)) if tries < 20 => {
                    tries += 1;
                    inhost_interop::pause(Duration::from_millis(100));
                }
                result => break result,
            }
        };
        let outcome = outcome.unwrap_or_else(|why| panic!("{text}: {why}\n{}", server.printed()));
        let repetition = &outcome.repetitions[0];
        for transfer in [repetition.sent, repetition.received].into_iter().flatten() {
            // Each end leaves the warm-up out by its own clock.
            let is_exact = !text.contains("warm_up_ms");
            assert!(transfer.bytes > 0, "{text}: {transfer:?}");
            assert!(!is_exact || transfer.bytes <= transfer.sent_bytes, "{text}: {transfer:?}");
            if let Some(datagrams) = transfer.datagrams {
                assert!(datagrams.sent > 400 && datagrams.lost_share < 0.2, "{text}: {datagrams:?}");
                assert!(transfer.bits_per_second > 8e6, "{text}: {transfer:?}");
            } else {
                assert!(transfer.retransmits.is_some(), "{text}: {transfer:?}");
            }
        }
        assert!(server.child.try_wait().unwrap().is_none(), "{text}: {}", server.printed());
        inhost_interop::pause(Duration::from_millis(100));
    }
    assert!(!server.printed().contains("error"), "{}", server.printed());
}

#[test]
fn its_server_asked_for_transactions_says_what_to_do() {
    let (_server, at) = iperf3_server(&[]);
    let why = measure(at, &plan("kind = 'echo'\ncount = 5")).unwrap_err();
    assert!(matches!(why, RunError::Protocol(ProtocolError::OnlyStreams)), "{why}");
    assert!(why.to_string().contains("start `inhost inett --server` there"));
}

#[test]
fn its_server_that_is_busy_says_so() {
    let (_server, at) = iperf3_server(&[]);
    let mut command = Command::new("iperf3");
    command.args(["-c", "127.0.0.1", "-p", &at.port.to_string(), "-t", "20", "-b", "10M", "--forceflush"]);
    let mut other = Running::start(&mut command);
    // Its intervals end when it looks at its clock.
    other.wait_for("0.00-1.");
    let why = measure(at, &plan("time_ms = 500")).unwrap_err();
    assert!(matches!(why, RunError::Protocol(ProtocolError::Busy)), "{why}");
}

/// iperf3's own client at our server: its JSON.
fn iperf3_client(at: Endpoint, more: &[&str]) -> serde_json::Value {
    let mut command = Command::new("iperf3");
    command.args(["-c", "127.0.0.1", "-J", "-p", &at.port.to_string()]).args(more);
    let done = output_within(Duration::from_secs(20), &mut command);
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn its_client_at_our_server() {
    let server = OurServer::start();
    for more in [
        &["-t", "1"][..],
        &["-t", "1", "-R"],
        &["-t", "1", "--bidir", "-P", "2"],
        &["-n", "30M", "-P", "3"],
        &["-n", "30M", "-R"],
        &["-k", "500", "-l", "8K"],
        &["-t", "1", "-O", "1", "-P", "2"],
        &["-t", "1", "-O", "1", "-R"],
        &["-t", "1", "-b", "10M", "-w", "100K", "-C", "reno", "-N"],
        &["-u", "-t", "1", "-b", "10M"],
        &["-u", "-t", "1", "-b", "10M", "-R", "-P", "2"],
        &["-u", "-t", "1", "-b", "10M", "--bidir"],
        &["-u", "-t", "1", "-b", "10M", "-O", "1", "--udp-counters-64bit"],
        &["-u", "-k", "500", "-b", "10M", "-l", "1000"],
    ] {
        let found = iperf3_client(server.at, more);
        assert!(found.get("error").is_none(), "{more:?}: {}", found["error"]);
        let sums = ["sum", "sum_received"].map(|name| found["end"][name]["bytes"].as_f64().unwrap_or(0.0));
        assert!(sums.iter().any(|bytes| *bytes > 100_000.0), "{more:?}: {}", found["end"]);
        let Served::Ended { own, client } = server.end() else { panic!("{more:?}") };
        assert_eq!(own.streams.len(), client.streams.len(), "{more:?}");
        for (ours, theirs) in own.streams.iter().zip(&client.streams) {
            assert_eq!(ours.id, theirs.id, "{more:?}");
            assert!(ours.bytes > 0, "{more:?}: {ours:?} {theirs:?}");
        }
        if more[0] == "-u" {
            let lost = found["end"]["sum"]["lost_percent"].as_f64().unwrap();
            assert!(lost < 20.0, "{more:?}: {}", found["end"]["sum"]);
        }
    }
}

#[test]
fn its_client_is_told_that_we_are_busy_and_what_cannot_be() {
    let server = OurServer::start();
    let mut command = Command::new("iperf3");
    command.args(["-c", "127.0.0.1", "-p", &server.at.port.to_string(), "-t", "20", "--forceflush"]);
    let mut other = Running::start(&mut command);
    other.wait_for("0.00-1.0");
    let busy = iperf3_client(server.at, &["-t", "1"]);
    assert!(busy["error"].as_str().unwrap_or_default().contains("busy"), "{busy}");
    // It is stopped: it says so, and we are free.
    other.signal_interrupt();
    assert!(matches!(server.end(), Served::Failed(why) if why.contains("stopped")));
    let next = iperf3_client(server.at, &["-t", "1"]);
    assert!(next.get("error").is_none(), "{next}");
}

trait Interrupt {
    fn signal_interrupt(&self);
}
impl Interrupt for Running {
    fn signal_interrupt(&self) {
        let id = self.id().to_string();
        inhost_interop::run(Command::new("kill").args(["-INT", &id]));
    }
}
