//! A server of DHCPv6, played by the tests.

use super::*;
use inhost_base::HardwareAddress;

fn client() -> Stateless {
    Stateless::new(Duid::from_card(HardwareAddress([2, 0, 0, 0, 0, 1])))
}
fn server() -> Endpoint {
    Endpoint::new(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), SERVER_PORT_V6)
}
/// A reply to `question` with these options behind who it is for and from.
fn reply(question: &[u8], options: &[u8]) -> Vec<u8> {
    // The question's first option is who asks.
    let client_bytes = 4 + usize::from(question[7]);
    let head = [7, question[1], question[2], question[3]];
    [&head[..], &question[4..4 + client_bytes], &[0, 2, 0, 3, 0, 4, 9], options].concat()
}
fn asked() -> (Stateless, Vec<u8>, Instant) {
    let mut client = client();
    client.begin(Instant::from_millis(1), 9);
    let now = client.deadline();
    client.timeout(now, 0x0011_2233_8000_0000);
    let question = client.outgoing().unwrap();
    (client, question, now)
}

// RFC 8415 §18.2.6, §15
#[test]
fn a_question_is_repeated_ever_more_slowly() {
    let (mut client, question, mut now) = asked();
    assert!(now.as_millis() <= 1001);
    assert_eq!((question[0], &question[4..6]), (11, &[0, 1][..]));
    let mut waits = Vec::new();
    for step in 0..14 {
        let before = now;
        now = client.deadline();
        waits.push(now.since(before).as_secs());
        client.timeout(now, step << 32 | 0x8000_0000);
        let again = client.outgoing().unwrap();
        assert_eq!((again[1..4] == question[1..4], client.outgoing()), (true, None), "the same transaction");
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]);
}

#[test]
fn servers_and_domains_are_learnt_and_asked_for_anew() {
    let (mut client, question, now) = asked();
    let name_server = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x53];
    let options = [
        &[0, 23, 0, 16][..],
        &name_server,
        &[0, 24, 0, 9, 3, b'm', b'i', b't', 3, b'e', b'd', b'u', 0],
        &[0, 32, 0, 4, 0, 0, 0, 1],
        &[0, 83, 0, 4, 0, 0, 0, 99],
    ]
    .concat();
    client.receive(&reply(&question, &options), server(), now).unwrap();
    let information = client.information().unwrap();
    assert_eq!(information.name_servers, [Ipv6Addr::from(name_server)]);
    assert_eq!(information.search, ["mit.edu"]);
    assert_eq!(client.deadline(), now + Duration::from_secs(600), "not within ten minutes");
    assert_eq!(client.longest_wait, Duration::from_secs(99));
    client.timeout(client.deadline(), 7 << 40);
    assert!(client.outgoing().is_some() && client.information().is_some(), "what was said holds meanwhile");
    client.end();
    assert_eq!((client.information(), client.deadline()), (None, Instant::FAR_FUTURE));
}

#[test]
fn what_is_no_answer_is_refused() {
    let (mut client, question, now) = asked();
    let good = reply(&question, &[]);
    let elsewhere = Endpoint::new(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), SERVER_PORT_V6);
    assert_eq!(client.receive(&good, elsewhere, now), Err(RefusedV6::NotAServer), "from another network");
    assert_eq!(client.receive(&good, Endpoint { port: 546, ..server() }, now), Err(RefusedV6::NotAServer));
    let changed = |place: usize, octet: u8| {
        let mut bytes = good.clone();
        bytes[place] = octet;
        bytes
    };
    assert_eq!(client.receive(&changed(0, 2), server(), now), Err(RefusedV6::Unasked), "an advertisement");
    assert_eq!(client.receive(&changed(3, good[3] ^ 1), server(), now), Err(RefusedV6::Unasked));
    assert_eq!(client.receive(&changed(17, 99), server(), now), Err(RefusedV6::NotForUs));
    assert_eq!(
        client.receive(&changed(5, 99), server(), now),
        Err(RefusedV6::NotForUs),
        "it names no client"
    );
    let from_nobody = [&good[..good.len() - 7], &[0, 2, 0, 1, 0]].concat();
    assert_eq!(client.receive(&from_nobody, server(), now), Err(RefusedV6::NoServer));
    for status in [&[0, 13, 0, 0][..], &[0, 13, 0, 1, 0], &[0, 13, 0, 2, 0, 1]] {
        let failed = [&good[..], status].concat();
        assert_eq!(client.receive(&failed, server(), now), Err(RefusedV6::Failed), "{status:?}");
    }
    for length in 0..good.len() {
        assert!(client.receive(&good[..length], server(), now).is_err(), "{length}");
    }
    assert_eq!(client.receive(&[&good[..], &[0; 1500]].concat(), server(), now), Err(RefusedV6::Malformed));
    // Addresses that are nobody's name server.
    let groups = [&[0, 23, 0, 32][..], &[0xff; 16], &[0; 16]].concat();
    client.receive(&reply(&question, &groups), server(), now).unwrap();
    assert!(client.information().unwrap().name_servers.is_empty());
    assert_eq!(client.receive(&good, server(), now), Err(RefusedV6::Unasked), "it was answered");
}
