use super::*;
use crate::codec::Mode;
use crate::codec::options::Options;

const SERVER: Endpoint = Endpoint { address: IpAddr::V4(inhost_base::Ipv4Addr::new(10, 9, 0, 2)), port: 69 };
const NOW: Instant = Instant::from_millis(5_000);

fn client(last: u8, port: u16) -> Endpoint {
    Endpoint::new([10, 9, 0, last], port)
}

fn asks(is_write: bool, name: &str) -> Vec<u8> {
    let options = Options::default();
    Packet::Request(Request { is_write, name: name.into(), mode: Mode::Octet, options }).bytes()
}

fn refused(handler: &mut RequestHandler, bytes: &[u8]) -> String {
    match handler.request(client(1, 2000).into(), SERVER, bytes, NOW) {
        Verdict::Refuse(code, why) => format!("{} {why}", code.0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_refused_is_told() {
    let mut handler = RequestHandler::new(TransferLimits::default(), Rights::Read);
    for (bytes, message) in [
        (asks(false, "../../etc/passwd"), "2 The name leads out of the folder"),
        (asks(false, "a/../../b"), "2 The name leads out of the folder"),
        (asks(false, "/"), "2 No file is named"),
        (asks(false, ""), "2 No file is named"),
        (asks(false, "a\nb"), "2 That cannot be a file's name"),
        (asks(false, ".x.inhost-part"), "2 A file that is being written has no name yet"),
        (asks(true, "x"), "2 Files may be read here, not written"),
        (asks(false, &"x".repeat(600)), "4 The request is longer than 512 octets"),
        (b"\0\x01name\0mail\0".to_vec(), "4 The mode is neither octet nor netascii"),
        (b"\0\x07zz".to_vec(), "4 There is no operation 7"),
        (Packet::Ack(3).bytes(), "5 No transfer is at this port"),
    ] {
        assert_eq!(refused(&mut handler, &bytes), message);
    }
    assert_eq!(handler.transfers(), 0);
}

#[test]
fn a_slash_at_the_beginning_is_the_folder() {
    let mut handler = RequestHandler::new(TransferLimits::default(), Rights::Read);
    let verdict = handler.request(client(1, 2000).into(), SERVER, &asks(false, "/etc/passwd"), NOW);
    let Verdict::Start(_, path) = verdict else { panic!("{verdict:?}") };
    assert_eq!(path.relative(), "etc/passwd");
}

#[test]
fn what_is_passed_over() {
    let mut handler = RequestHandler::new(TransferLimits::default(), Rights::Write);
    let mut ignored = |from: Endpoint, to, bytes: &[u8]| {
        let verdict = handler.request(from.into(), to, bytes, NOW);
        assert_eq!(verdict, Verdict::Ignore, "{from} {to} {bytes:?}");
    };
    // RFC 1123 §4.2.3.5.
    ignored(client(1, 2000), Endpoint::new([255; 4], 69), &asks(false, "x"));
    ignored(client(1, 2000), Endpoint::new([224, 0, 0, 1], 69), &asks(false, "x"));
    // A forged source port of such a service would start a loop between two servers.
    for port in [0, 7, 13, 17, 19, 37] {
        ignored(client(1, port), SERVER, &asks(false, "x"));
    }
    ignored(client(1, 2000), SERVER, &Packet::Error(ErrorCode::OTHER, "x".into()).bytes());
    ignored(client(1, 2000), SERVER, b"x");
}

#[test]
fn a_client_may_ask_from_any_port_below_1024_too() {
    let mut handler = RequestHandler::new(TransferLimits::default(), Rights::Read);
    for (last, port) in [(1, 1), (2, 69), (3, 512), (4, 1023)] {
        let verdict = handler.request(client(last, port).into(), SERVER, &asks(false, "x"), NOW);
        assert!(matches!(verdict, Verdict::Start(..)), "{port}: {verdict:?}");
    }
}

#[test]
fn so_many_transfers_and_no_more() {
    let mut handler =
        RequestHandler::new(TransferLimits { transfers: 5, transfers_per_client: 3 }, Rights::Read);
    let mut asked =
        |last, port| match handler.request(client(last, port).into(), SERVER, &asks(false, "x"), NOW) {
            Verdict::Start(..) => "start".to_owned(),
            Verdict::Refuse(code, why) => format!("{} {why}", code.0),
            Verdict::Ignore => "ignored".to_owned(),
        };
    let full = "0 Too many transfers, try again later";
    let of_one: Vec<String> = (2000..2004).map(|port| asked(1, port)).collect();
    assert_eq!(of_one, ["start", "start", "start", full]);
    let of_others: Vec<String> = (2..5).map(|last| asked(last, 2000)).collect();
    assert_eq!(of_others, ["start", "start", full]);
    handler.ended(client(1, 2000));
    assert!(matches!(
        handler.request(client(4, 2000).into(), SERVER, &asks(false, "x"), NOW),
        Verdict::Start(..)
    ));
}

#[test]
fn a_request_that_comes_again_is_one_until_its_transfer_is_quiet() {
    let mut handler = RequestHandler::new(TransferLimits::default(), Rights::Read);
    let mut at = |millis, name| {
        handler.request(client(1, 2000).into(), SERVER, &asks(false, name), Instant::from_millis(millis))
    };
    assert!(matches!(at(0, "x"), Verdict::Start(..)));
    assert_eq!(at(1_000, "x"), Verdict::Ignore);
    assert!(matches!(at(1_100, "y"), Verdict::Start(..)), "another file is another transfer");
    assert!(matches!(at(4_200, "y"), Verdict::Start(..)), "whoever was started anew asks anew");
    assert_eq!(handler.transfers(), 1);
}

/// Behind a gateway all have its address, and each has limits of its own.
#[test]
fn limits_count_outer_callers_and_networks() {
    let mut handler =
        RequestHandler::new(TransferLimits { transfers: 9, transfers_per_client: 2 }, Rights::Read);
    let mut starts = |port, caller: &str| {
        let caller = Endpoint::new(caller.parse::<IpAddr>().unwrap(), 4000 + port);
        let client = Client { end: client(1, 2000 + port), caller };
        matches!(handler.request(client, SERVER, &asks(false, "x"), NOW), Verdict::Start(..))
    };
    let two = |starts: &mut dyn FnMut(u16, &str) -> bool, from: u16, callers: [&str; 3]| {
        [0, 1, 2].map(|n| starts(from + n, callers[usize::from(n)]))
    };
    assert_eq!(two(&mut starts, 0, ["192.0.2.1"; 3]), [true, true, false]);
    assert_eq!(two(&mut starts, 10, ["192.0.2.2"; 3]), [true, true, false]);
    let neighbours = ["2001:db8::1", "2001:db8::2", "2001:db8::3"];
    assert_eq!(two(&mut starts, 20, neighbours), [true, true, false]);
}
