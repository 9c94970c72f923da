use super::*;
use crate::plan::{Direction, Kind, Plan, Protocol};

fn joined<E>(steps: Vec<Step<E>>) -> (Vec<u8>, Vec<E>) {
    let (mut bytes, mut events) = (Vec::new(), Vec::new());
    for step in steps {
        match step {
            Step::Send(more) => bytes.extend(more),
            Step::Event(event) => events.push(event),
        }
    }
    (bytes, events)
}

fn client(plan: &Plan) -> (Client, Vec<u8>) {
    Client::new(&[b'a'; COOKIE_BYTES], Parameters::from_plan(plan))
}

/// Both ends, with every message cut into pieces of `chunk` bytes.
fn exchange(plan: &Plan, chunk: usize) -> (Vec<ClientEvent>, Vec<ServerEvent>) {
    let (mut client, mut to_server) = client(plan);
    let mut server = Server::default();
    let (mut at_client, mut at_server) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let mut to_client = Vec::new();
        for piece in std::mem::take(&mut to_server).chunks(chunk) {
            let (bytes, events) = joined(server.receive(piece).unwrap());
            to_client.extend(bytes);
            for event in events {
                match &event {
                    ServerEvent::Parameters(parameters) => {
                        let found = parameters.to_plan().unwrap();
                        assert_eq!((found.kind, found.streams), (plan.kind, plan.streams));
                        to_client.extend(server.accept(plan.kind.is_transaction()));
                        if !plan.kind.is_transaction() {
                            to_client.extend(server.start());
                        }
                    }
                    ServerEvent::Results(_) => to_client.extend(server.results(&Results::default())),
                    _ => {}
                }
                at_server.push(event);
            }
        }
        for piece in to_client.chunks(chunk) {
            let (bytes, events) = joined(client.receive(piece).unwrap());
            to_server.extend(bytes);
            for event in events {
                match event {
                    ClientEvent::Run | ClientEvent::OpenTransactions => to_server.extend(client.end()),
                    ClientEvent::GiveResults => to_server.extend(client.results(&Results::default())),
                    _ => {}
                }
                at_client.push(event);
            }
        }
    }
    (at_client, at_server)
}

#[test]
fn a_whole_test_in_pieces_of_any_size() {
    for kind in [Kind::Stream, Kind::Echo] {
        for chunk in [1, 2, 5, 100_000] {
            let (client, server) = exchange(&Plan { kind, streams: 3, ..Plan::default() }, chunk);
            assert_eq!(client.last(), Some(&ClientEvent::Done), "{kind:?} {chunk}");
            assert_eq!(server.last(), Some(&ServerEvent::Done), "{kind:?} {chunk}");
        }
    }
}

#[test]
fn what_iperf3_sends_is_read() {
    // From iperf 3.12 with -u -R -b 5M -l 1000 -P 2 -O 1.
    let text =
        br#"{"udp":true,"omit":1,"time":10,"num":0,"blockcount":0,"parallel":2,"reverse":true,"len":1000,
        "bandwidth":5000000,"pacing_timer":1000,"client_version":"3.12","udp_counters_64bit":1}"#;
    let plan = parameters(text).unwrap().to_plan().unwrap();
    assert_eq!((plan.protocol, plan.direction, plan.streams), (Protocol::Udp, Direction::Receive, 2));
    assert_eq!((plan.rate(), plan.write_bytes(), plan.warm_up_ms), (5_000_000, 1000, 1000));
    assert!(parameters(text).unwrap().udp_counters_64bit);
    // Large numbers have an exponent.
    assert_eq!(parameters(br#"{"tcp":true,"num":1e+18,"time":0}"#).unwrap().num, 1_000_000_000_000_000_000);
}

#[test]
fn parameters_that_cannot_be_have_iperf3s_numbers() {
    let code = |text: &str| parameters(text.as_bytes()).unwrap().to_plan().unwrap_err();
    assert_eq!(code(r#"{"parallel":129}"#), code::STREAMS);
    assert_eq!(code(r#"{"parallel":1e9}"#), code::STREAMS);
    assert_eq!(code(r#"{"time":86401}"#), code::DURATION);
    assert_eq!(code(r#"{"len":1048577}"#), code::BLOCK_SIZE);
    assert_eq!(code(r#"{"window":1e12}"#), code::WINDOW);
    assert_eq!(code(r#"{"sctp":true}"#), code::PARAMETERS);
    assert_eq!(code(r#"{"authtoken":"x"}"#), code::PARAMETERS);
    assert_eq!(code(r#"{"num":-1}"#), code::PARAMETERS);
}

#[test]
fn an_iperf3_server_asked_for_transactions_is_told_apart() {
    let (mut client, _) = client(&Plan { kind: Kind::Echo, ..Plan::default() });
    client.receive(&[State::ParameterExchange.byte()]).unwrap();
    let why = client.receive(&[State::CreateStreams.byte()]).unwrap_err();
    assert_eq!(why, ProtocolError::OnlyStreams);
    assert!(why.to_string().contains("which has only streams; start `inhost inett --server` there"));
}

#[test]
fn refusals_have_words() {
    let (mut one, _) = client(&Plan::default());
    assert_eq!(one.receive(&[0xff]).unwrap_err(), ProtocolError::Busy);
    let (mut two, _) = client(&Plan::default());
    let refusal = Server::default().refuse(code::STREAMS, 0);
    two.receive(&refusal[..5]).unwrap();
    let why = two.receive(&refusal[5..]).unwrap_err();
    assert!(why.to_string().contains("too many parallel streams"), "{why}");
}

#[test]
fn garbage_bombs_and_what_has_no_place_end_the_connection() {
    let cookie = [b'a'; COOKIE_BYTES];
    let after_cookie = |bytes: &[u8]| {
        let mut server = Server::default();
        server.receive(&cookie).unwrap();
        server.receive(bytes)
    };
    assert!(matches!(after_cookie(b"GET / HTTP/1.0\r\n\r\n"), Err(ProtocolError::TooLong { .. })));
    let mut bomb = (60_000_u32).to_be_bytes().to_vec();
    bomb.extend(std::iter::repeat_n(b'[', 60_000));
    assert_eq!(after_cookie(&bomb), Err(ProtocolError::Json { what: "parameters" }));
    // A length that never is filled keeps what came, and no more than its limit.
    assert_eq!(after_cookie(&[0, 0, 255, 255, b'{']), Ok(Vec::new()));
    let mut server = Server::default();
    server.receive(&cookie).unwrap();
    server.receive(&super::frame::json(&Parameters::from_plan(&Plan::default()))).unwrap();
    assert!(matches!(server.receive(&[4]), Err(ProtocolError::Unexpected { byte: 4, .. })));
    let (mut client, _) = client(&Plan::default());
    assert!(matches!(client.receive(&[13]), Err(ProtocolError::Unexpected { byte: 13, .. })));
    assert!(matches!(client.receive(&[99]), Err(ProtocolError::Unexpected { byte: 99, .. })));
}

#[test]
fn datagrams_are_counted_as_iperf3_counts_them() {
    let mut arrivals = Arrivals::default();
    for number in [1, 2, 5, 3, 6] {
        arrivals.take(Header { sent_ns: number * 1000, number }, number * 1000 + 77);
    }
    assert_eq!((arrivals.received, arrivals.lost, arrivals.out_of_order), (5, 1, 1));
    assert!(arrivals.jitter_s < 1e-12, "a constant delay has no jitter: {}", arrivals.jitter_s);
    for is_64_bit in [true, false] {
        let header = Header { sent_ns: 12_345_678_000, number: 77 };
        let mut datagram = [0; 16];
        header.put(&mut datagram, is_64_bit);
        assert_eq!(Header::read(&datagram, is_64_bit), Some(header));
    }
    assert_eq!(Header::read(&[0; 11], false), None);
    arrivals.take(Header { sent_ns: 0, number: u64::MAX }, 0);
    arrivals.take(Header { sent_ns: u64::MAX / 2, number: 0 }, 0);
    assert!(arrivals.jitter_s.is_finite());
}

#[test]
fn hellos_of_either_age_and_order_of_bytes_are_known() {
    assert!(is_hello(&DATAGRAM_HELLO) && is_hello(b"9876") && is_hello(&123_456_789_u32.to_be_bytes()));
    assert!(is_ready(&DATAGRAM_READY) && is_ready(&987_654_321_u32.to_le_bytes()));
    assert!(!is_hello(&DATAGRAM_READY) && !is_hello(b"987") && !is_ready(b""));
}
