//! Peers that send garbage, never read, never end; either end goes on.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

use inhost_inett::driver::{RunError, Served};
use inhost_inett::fuzz::fuzz_inett;
use inhost_inett::iperf3::{DATAGRAM_HELLO, is_ready};
use inhost_inett::plan::STREAMS_MAX;
use inhost_interop::DEADLINE;

use super::kernel::{OurServer, measure, plan};

fn dial(server: &OurServer) -> TcpStream {
    let stream = TcpStream::connect(SocketAddr::from(server.at)).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// The control connection of a client, after its parameters.
fn begin(server: &OurServer, parameters: &str) -> TcpStream {
    let mut control = dial(server);
    control.write_all(&[b'a'; 37]).unwrap();
    let mut state = [0];
    control.read_exact(&mut state).unwrap();
    assert_eq!(state, [9]);
    control.write_all(&(parameters.len() as u32).to_be_bytes()).unwrap();
    control.write_all(parameters.as_bytes()).unwrap();
    control
}

#[test]
fn garbage_and_bombs_end_a_session_and_the_next_one_is_served() {
    let server = OurServer::start();
    let bomb = "[".repeat(60_000);
    for parameters in ["}", "null", &bomb, r#"{"parallel":1e99}"#, r#"{"time":-1}"#] {
        let mut control = begin(&server, parameters);
        let mut said = Vec::new();
        control.read_to_end(&mut said).unwrap();
        assert_eq!(said.first(), Some(&0xfe), "{parameters:.20}: {said:?}");
        assert!(matches!(server.end(), Served::Failed(_)));
    }
    let mut control = dial(&server);
    control.write_all(&[0xff; 5000]).unwrap();
    let _ = control.read_to_end(&mut Vec::new());
    assert!(matches!(server.end(), Served::Failed(_)));
    measure(server.at, &plan("time_ms = 200")).unwrap();
}

/// Resident memory of this process, in KiB, which is also the server's.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// What many connections may cost together: a kibibyte or two each, and two buffers for all.
const MOST_KIB: u64 = 16 << 10;

#[test]
fn a_client_that_never_reads_costs_bounded_memory_while_it_stays() {
    let server = OurServer::start();
    let before = resident_kib();
    let mut control = begin(&server, r#"{"tcp":true,"time":9,"parallel":128,"reverse":true,"len":1048576}"#);
    let mut state = [0];
    control.read_exact(&mut state).unwrap();
    assert_eq!(state, [10]);
    let mut streams: Vec<TcpStream> = (0..128).map(|_| dial(&server)).collect();
    streams.iter_mut().for_each(|stream| stream.write_all(&[b'a'; 37]).unwrap());
    let mut states = [0; 2];
    control.read_exact(&mut states).unwrap();
    assert_eq!(states, [1, 2]);
    // Nothing is read from the streams; the server is still there for others.
    inhost_interop::pause(std::time::Duration::from_secs(1));
    let mut busy = dial(&server);
    busy.write_all(&[b'b'; 37]).unwrap();
    let mut said = Vec::new();
    busy.read_to_end(&mut said).unwrap();
    assert_eq!(said, [0xff]);
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < MOST_KIB, "{grown} KiB");
    drop((control, streams));
    assert!(matches!(server.end(), Served::Failed(_)));
    measure(server.at, &plan("time_ms = 200")).unwrap();
}

#[test]
fn connections_of_bulk_data_have_a_limit_and_share_their_memory() {
    let server = OurServer::start();
    let before = resident_kib();
    let mut control = begin(
        &server,
        r#"{"len":1048576,"inett":{"version":1,"kind":"echo","request_bytes":{"constant":1},
            "response_bytes":{"constant":1},"seed":1}}"#,
    );
    let mut state = [0];
    control.read_exact(&mut state).unwrap();
    let open = |number: usize| {
        let mut stream = dial(&server);
        stream.write_all(&[b'a'; 37]).unwrap();
        stream.write_all(&[b"SR"[number % 2], 0, 0]).unwrap();
        let mut answer = [0];
        stream.read_exact(&mut answer).unwrap();
        (stream, answer[0])
    };
    let mut open_ones: Vec<TcpStream> = Vec::new();
    for number in 0..2 * usize::from(STREAMS_MAX) {
        let (stream, answer) = open(number);
        assert_eq!(answer, 6, "{number}");
        open_ones.push(stream);
    }
    assert_eq!([open(0).1, open(1).1], [0xff; 2]);
    // One that is closed makes room.
    drop(open_ones.pop());
    inhost_interop::until("room for a connection", || (open(1).1 == 6).then_some(()));
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < MOST_KIB, "{grown} KiB");
}

#[test]
fn hellos_of_other_addresses_are_not_answered() {
    let server = OurServer::start();
    let json = r#"{"udp":true,"time":1,"parallel":1,"reverse":true,"len":1000,"bandwidth":1000000}"#;
    let mut control = begin(&server, json);
    let mut state = [0];
    control.read_exact(&mut state).unwrap();
    assert_eq!(state, [10]);
    let [victim, own] = ["127.0.0.2:0", "127.0.0.1:0"].map(|at| UdpSocket::bind(at).unwrap());
    victim.send_to(&DATAGRAM_HELLO, SocketAddr::from(server.at)).unwrap();
    own.send_to(&DATAGRAM_HELLO, SocketAddr::from(server.at)).unwrap();
    own.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut answer = [0; 2000];
    let count = own.recv(&mut answer).unwrap();
    assert!(is_ready(&answer[..count]));
    let mut states = [0; 2];
    control.read_exact(&mut states).unwrap();
    assert_eq!(states, [1, 2]);
    // The data goes where the control connection is.
    assert_eq!(own.recv(&mut answer).unwrap(), 1000);
    victim.set_nonblocking(true).unwrap();
    assert_eq!(victim.recv(&mut answer).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_server_that_says_garbage_or_goes_away_is_told() {
    for (said, is_protocol) in [(&b"220 ready\r\n"[..], true), (b"", false), (&[9, 10, 1, 2, 99], true)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let (mut control, _) = listener.accept().unwrap();
            let mut cookie = [0; 37];
            control.read_exact(&mut cookie).unwrap();
            control.write_all(said).unwrap();
            if !said.is_empty() {
                // Until the client has had enough.
                let _ = control.read_to_end(&mut Vec::new());
            }
        });
        let why = measure(at.into(), &plan("time_ms = 5000")).unwrap_err();
        assert_eq!(matches!(why, RunError::Protocol(_)), is_protocol, "{why}");
        thread.join().unwrap();
    }
}

#[test]
fn the_fuzz_target_takes_its_seeds() {
    let control = |json: &str| {
        let mut bytes = vec![3];
        bytes.extend([b'a'; 37]);
        bytes.extend((json.len() as u32).to_be_bytes());
        bytes.extend(json.as_bytes());
        bytes.push(4);
        bytes
    };
    for seed in [
        control(r#"{"tcp":true,"parallel":1,"len":1000,"time":1}"#),
        control(
            r#"{"inett":{"version":1,"kind":"echo","request_bytes":{"constant":1},"response_bytes":{"table":[]},"seed":1}}"#,
        ),
        b"\x00\x09\x0a\x01\x02\x0d\x00\x00\x00\x02{}\x0e".to_vec(),
        b"\x01[values]\nstreams = [1, 2]".to_vec(),
        Vec::new(),
    ] {
        fuzz_inett(&seed);
        for cut in 0..seed.len() {
            fuzz_inett(&seed[..cut]);
        }
    }
}
