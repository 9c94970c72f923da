//! Fuzz targets. The input is a server, the clock and the neighbours at once; the invariants are asserted.

use crate::client::{Action, Client, Config, Destination, Remembered};
use crate::identity::{Duid, Identity};
use crate::stateless::Stateless;
use crate::{SERVER_PORT, SERVER_PORT_V6, limits, saved};
use inhost_base::{Cidr, Duration, Endpoint, HardwareAddress, Instant, IpAddr, Ipv4Addr, Ipv6Addr};

const CARD: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 1]);
/// Steps of one input.
const MOST_STEPS: usize = 64;
/// Things to do that may follow from one call.
const MOST_ACTIONS: usize = 16;

/// One input, to both clients and to the reader of what is kept.
pub fn fuzz_client(input: &[u8]) {
    let identity = Identity::new(Duid::from_card(CARD), "in0");
    version_4(&identity, input);
    version_6(&identity, input);
    let text = String::from_utf8_lossy(input);
    let now = Instant::from_millis(1);
    let remembered = saved::read(&text, now, 1 << 40);
    let again = saved::read(&saved::write(&remembered, now, 1 << 40), now, 1 << 40);
    assert_eq!(remembered.wanted.is_some(), again.wanted.is_some());
    let mut client = Client::new(Config::new(CARD, &identity), remembered, now, 7);
    follow(&mut client, &mut Link::default());
}

/// What a link has because the client wanted it.
#[derive(Default)]
struct Link {
    addresses: Vec<Cidr>,
    is_configured: bool,
}

/// Does what the client wants, and looks whether it makes sense.
fn follow(client: &mut Client, link: &mut Link) {
    let mut actions = 0;
    while let Some(action) = client.action() {
        actions += 1;
        assert!(actions <= MOST_ACTIONS);
        let has =
            |link: &Link, address| link.addresses.iter().any(|own| own.address() == IpAddr::V4(address));
        match action {
            Action::Send(datagram) => {
                assert!((300..=limits::REPLY_BYTES).contains(&datagram.bytes.len()));
                if let Destination::Broadcast { from } | Destination::Unicast { from, .. } =
                    datagram.destination
                {
                    assert!(has(link, from), "sent from {from}, which the link does not have");
                }
            }
            Action::Assign(cidr) => {
                assert!(!link.addresses.iter().any(|own| own.address() == cidr.address()), "{cidr} twice");
                link.addresses.push(cidr);
            }
            Action::Unassign(address) => {
                assert!(has(link, address), "{address} is taken away and not there");
                link.addresses.retain(|own| own.address() != IpAddr::V4(address));
            }
            Action::Configure(settings) => {
                link.is_configured = true;
                assert!(
                    settings.routes.len() <= limits::ROUTES
                        && settings.search.len() <= limits::SEARCH_DOMAINS
                );
            }
            Action::Unconfigure => assert!(core::mem::take(&mut link.is_configured)),
            Action::Remember | Action::Tell(_) => {}
        }
    }
    // One that is lent, one of the link's own while the former is tested.
    assert!(link.addresses.len() <= 2);
}

/// A dialogue: each step is an octet that says what happens, an octet of length, and so many octets. A datagram's octets
/// are laid over an offer or an acknowledgment that would be taken.
fn version_4(identity: &Identity, input: &[u8]) {
    let mut now = Instant::from_millis(1);
    let mut client = Client::new(Config::new(CARD, identity), Remembered::default(), now, 1);
    let (mut link, mut asked) = (Link::default(), Vec::new());
    let mut rest = input;
    for step in 0..MOST_STEPS {
        let Some((&[what, length], after)) = rest.split_first_chunk::<2>() else { break };
        let (piece, after) = after.split_at(after.len().min(usize::from(length)));
        rest = after;
        let word = u64::from(what) << 40 | step as u64;
        match what % 8 {
            0 | 1 => {
                now = now.max(client.deadline().min(now + Duration::from_secs(1 << 20)));
                client.timeout(now, word);
            }
            2 => {
                now += Duration::from_millis(u64::from(length) * 97);
                client.timeout(now, word);
            }
            3 => link.addresses.clone().iter().for_each(|own| client.settled(own.address())),
            4 => {
                if let Some(own) = link.addresses.get(usize::from(length) % 2) {
                    client.conflict(own.address(), now, word);
                }
            }
            kind => {
                let from = Endpoint::new(Ipv4Addr::new(10, 0, 0, 1), SERVER_PORT);
                let reply = reply(&asked, [2, 5, 6][usize::from(kind - 5)], piece);
                // A refusal is an answer, too.
                let _ = client.receive(&reply, from, now, word);
            }
        }
        let mut look = client.clone();
        while let Some(action) = look.action() {
            if let Action::Send(datagram) = action {
                asked = datagram.bytes;
            }
        }
        follow(&mut client, &mut link);
    }
    // Bytes that are nobody's answer, before and after what is lent is given back.
    let from = Endpoint::new(Ipv4Addr::new(10, 0, 0, 1), SERVER_PORT);
    let _ = client.receive(input, from, now, 3);
    follow(&mut client, &mut link);
    client.release(now, 5);
    follow(&mut client, &mut link);
    let _ = client.receive(input, from, now, 6);
    follow(&mut client, &mut link);
}

/// An answer to `asked` that would be taken, then `piece`: pairs of a place and an octet for it, and behind 32 of them
/// options.
fn reply(asked: &[u8], kind: u8, piece: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 240];
    let front = bytes.len().min(asked.len());
    bytes[..front].copy_from_slice(&asked[..front]);
    bytes[0] = 2;
    bytes[12..16].fill(0);
    bytes[16..20].copy_from_slice(&[10, 0, 0, 9]);
    bytes[236..].copy_from_slice(&dhcproto::v4::MAGIC);
    bytes.extend_from_slice(&[53, 1, kind, 54, 4, 10, 0, 0, 1, 51, 4, 0, 0, 0, 60, 1, 4, 255, 255, 255, 0]);
    let (places, options) =
        piece.split_at(piece.len().min(piece.first().map_or(0, |first| usize::from(first % 16))));
    bytes.extend_from_slice(options);
    for pair in places.chunks_exact(2) {
        let place = usize::from(pair[0]) % bytes.len();
        bytes[place] = pair[1];
    }
    bytes.push(255);
    bytes
}

/// The same for DHCPv6, whose every reply is the input behind a number that is right.
fn version_6(identity: &Identity, input: &[u8]) {
    let mut now = Instant::from_millis(1);
    let mut stateless = Stateless::new(identity.duid.clone());
    stateless.begin(now, 5);
    let from = Endpoint::new(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), SERVER_PORT_V6);
    for (step, piece) in input.chunks(251).enumerate().take(MOST_STEPS) {
        now = stateless.deadline().min(now + Duration::from_secs(1 << 20));
        stateless.timeout(now, step as u64);
        let Some(question) = stateless.outgoing() else { continue };
        assert!(stateless.outgoing().is_none() && (16..=200).contains(&question.len()));
        let duid = identity.duid.bytes();
        let mut reply = [&[7][..], &question[1..4], &[0, 1, 0, duid.len() as u8], duid].concat();
        reply.extend_from_slice(&[0, 2, 0, 4, 0, 3, 0, 1]);
        reply.extend_from_slice(piece);
        let _ = stateless.receive(&reply, from, now);
        let _ = stateless.receive(piece, from, now);
        if let Some(information) = stateless.information() {
            assert!(information.name_servers.len() <= limits::NAME_SERVERS);
            assert!(information.search.len() <= limits::SEARCH_DOMAINS);
        }
    }
}
