//! Peers that send garbage, never read, never end; either end goes on.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

use inhost_inett::driver::{RunError, Served};
use inhost_inett::fuzz::fuzz_inett;
use inhost_inett::iperf3::{DATAGRAM_HELLO, is_ready};
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

#[test]
fn a_client_that_never_reads_or_ends_costs_no_memory() {
    let server = OurServer::start();
    let mut control = begin(&server, r#"{"tcp":true,"time":1,"parallel":1,"reverse":true,"len":131072}"#);
    let mut state = [0];
    control.read_exact(&mut state).unwrap();
    assert_eq!(state, [10]);
    let mut stream = dial(&server);
    stream.write_all(&[b'a'; 37]).unwrap();
    let mut states = [0; 2];
    control.read_exact(&mut states).unwrap();
    assert_eq!(states, [1, 2]);
    // Nothing is read from the stream; the server is still there for its control connection.
    inhost_interop::pause(std::time::Duration::from_millis(500));
    let mut busy = dial(&server);
    busy.write_all(&[b'b'; 37]).unwrap();
    let mut said = Vec::new();
    busy.read_to_end(&mut said).unwrap();
    assert_eq!(said, [0xff]);
    drop((control, stream));
    assert!(matches!(server.end(), Served::Failed(_)));
    measure(server.at, &plan("time_ms = 200")).unwrap();
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
