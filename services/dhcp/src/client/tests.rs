//! Dialogues with a server that the tests play, and the whole table of transitions.

use super::*;
use crate::identity::Duid;
use crate::lease::{Lease, Settings, Terms};
use crate::{CLIENT_PORT, SERVER_PORT};
use dhcproto::v4::{DhcpOption, Message, MessageType, Opcode, OptionCode};
use dhcproto::{Decodable, Decoder, Encodable, Encoder};
use inhost_base::{Endpoint, Instant, IpAddr, Ipv4Addr};

const CARD: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 1]);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OTHER_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const LEASE_S: u32 = 800;

struct Talk {
    client: Client,
    now: Instant,
    words: u64,
    /// The last datagram that was sent.
    asked: Option<Message>,
    /// What has been wanted since this was looked at last.
    wanted: Vec<String>,
    link: Vec<IpAddr>,
}

impl Talk {
    fn new() -> Talk {
        Talk::remembering(Remembered::default())
    }
    fn remembering(remembered: Remembered) -> Talk {
        let identity = Identity::new(Duid::from_card(CARD), "in0");
        let now = Instant::from_millis(1000);
        let client = Client::new(Config::new(CARD, &identity), remembered, now, 1 << 31);
        let mut talk = Talk { client, now, words: 1, asked: None, wanted: Vec::new(), link: Vec::new() };
        talk.follow();
        talk
    }
    fn word(&mut self) -> u64 {
        self.words += 1;
        self.words << 32 | 0x8000_0000
    }
    fn follow(&mut self) {
        while let Some(action) = self.client.action() {
            let text = match action {
                Action::Send(Datagram { bytes, destination }) => {
                    let message = Message::decode(&mut Decoder::new(&bytes)).unwrap();
                    let kind = format!("{:?}", message.opts().msg_type().unwrap()).to_lowercase();
                    self.asked = Some(message);
                    let to = match destination {
                        Destination::Unaddressed => "from nowhere".to_owned(),
                        Destination::Broadcast { from } => format!("from {from} to all"),
                        Destination::Unicast { from, to } => format!("from {from} to {to}"),
                    };
                    format!("{kind} {to}")
                }
                Action::Assign(cidr) => {
                    assert!(!self.link.contains(&cidr.address()), "{cidr} twice");
                    self.link.push(cidr.address());
                    let address =
                        if is_own_choice(cidr.address()) { "link-local".into() } else { cidr.to_string() };
                    format!("assign {address}")
                }
                Action::Unassign(address) => {
                    assert!(self.link.contains(&address.into()), "{address} is not there");
                    self.link.retain(|own| *own != IpAddr::V4(address));
                    let address =
                        if address.is_link_local() { "link-local".into() } else { address.to_string() };
                    format!("unassign {address}")
                }
                Action::Configure(_) => "configure".into(),
                Action::Unconfigure => "unconfigure".into(),
                Action::Remember => "remember".into(),
                Action::Tell(_) => continue,
            };
            self.wanted.push(text);
        }
    }
    fn wants(&mut self) -> Vec<String> {
        core::mem::take(&mut self.wanted)
    }
    fn state(&self) -> &'static str {
        self.client.status().state
    }
    /// Time passes until something is due.
    fn due(&mut self) {
        let (now, word) = (self.now.max(self.client.deadline()), self.word());
        self.now = now;
        self.client.timeout(now, word);
        self.follow();
    }
    fn reach(&mut self, at: Instant) {
        self.now = at;
        let word = self.word();
        self.client.timeout(at, word);
        self.follow();
    }
    /// An answer to what was asked last, that would be taken.
    fn answer(&self, kind: MessageType) -> Message {
        let mut message = self.asked.clone().expect("something was asked");
        let identifier = message.opts().get(OptionCode::ClientIdentifier).cloned().unwrap();
        message.set_opcode(Opcode::BootReply).set_ciaddr(Ipv4Addr::UNSPECIFIED);
        let options = message.opts_mut();
        options.clear();
        options.insert(identifier);
        options.insert(DhcpOption::MessageType(kind));
        options.insert(DhcpOption::ServerIdentifier(SERVER));
        if kind != MessageType::Nak {
            options.insert(DhcpOption::AddressLeaseTime(LEASE_S));
            options.insert(DhcpOption::SubnetMask(Ipv4Addr::new(255, 255, 255, 0)));
            options.insert(DhcpOption::Router(vec![SERVER]));
            options.insert(DhcpOption::DomainNameServer(vec![SERVER]));
            message.set_yiaddr(ADDRESS);
        }
        message
    }
    fn hear(&mut self, message: &Message) -> Result<(), Refused> {
        let mut bytes = Vec::new();
        message.encode(&mut Encoder::new(&mut bytes)).unwrap();
        self.hear_bytes(&bytes)
    }
    fn hear_bytes(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        let (now, word) = (self.now, self.word());
        let result = self.client.receive(bytes, Endpoint::new(SERVER, SERVER_PORT), now, word);
        self.follow();
        result
    }
    fn says(&mut self, kind: MessageType) -> Result<(), Refused> {
        let message = self.answer(kind);
        self.hear(&message)
    }
    fn settle(&mut self) {
        for own in self.link.clone() {
            self.client.settled(own);
        }
        self.follow();
    }
    fn conflict(&mut self, address: IpAddr) {
        let (now, word) = (self.now, self.word());
        self.client.conflict(address, now, word);
        self.follow();
    }
    fn bound(mut self) -> Talk {
        self.due();
        self.says(MessageType::Offer).unwrap();
        self.says(MessageType::Ack).unwrap();
        self.settle();
        assert_eq!(self.state(), "bound");
        self.wants();
        self
    }
}

fn is_own_choice(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if address.is_link_local())
}

fn kept(now: Instant) -> Remembered {
    let lease = Lease {
        address: ADDRESS,
        prefix_bits: 24,
        server: SERVER,
        asked_at: now,
        terms: Terms { renew_s: 400, rebind_s: 700, lease_s: LEASE_S },
        settings: Settings::default(),
    };
    Remembered { lease: Some(lease), wanted: Some(ADDRESS), link_local: None }
}

// RFC 2131 §3.1
#[test]
fn an_address_is_found_tested_and_used() {
    let mut talk = Talk::new();
    assert_eq!((talk.state(), talk.wants().is_empty()), ("init", true));
    talk.due();
    assert!((1000..=2000).contains(&talk.now.as_millis()), "it waited {:?}", talk.now);
    assert_eq!(talk.wants(), ["discover from nowhere"]);
    let discover = talk.asked.clone().unwrap();
    talk.says(MessageType::Offer).unwrap();
    assert_eq!((talk.state(), talk.wants()), ("requesting", vec!["request from nowhere".to_owned()]));
    let request = talk.asked.clone().unwrap();
    assert_eq!((request.xid(), request.secs()), (discover.xid(), discover.secs()));
    talk.says(MessageType::Ack).unwrap();
    assert_eq!((talk.state(), talk.wants()), ("checking", vec!["assign 10.0.0.9/24".to_owned()]));
    talk.settle();
    assert_eq!((talk.state(), talk.wants()), ("bound", vec!["configure".to_owned(), "remember".to_owned()]));
    let lease = talk.client.status().lease.unwrap().clone();
    assert_eq!((lease.terms.renew_s, lease.terms.rebind_s), (400, 700));
    assert_eq!(lease.settings.routes.len(), 1);
    assert_eq!(talk.client.remembered().lease, Some(lease));
}

// RFC 2131 §4.4.5
#[test]
fn a_lease_is_renewed_by_its_server_then_by_any_and_ends() {
    let mut talk = Talk::new().bound();
    let asked_at = talk.client.status().lease.unwrap().asked_at;
    let at = |s: u64| asked_at + Duration::from_secs(s);
    assert_eq!(talk.client.deadline(), at(400));
    talk.due();
    assert_eq!(
        (talk.state(), talk.wants()),
        ("renewing", vec!["request from 10.0.0.9 to 10.0.0.1".to_owned()])
    );
    let request = talk.asked.clone().unwrap();
    assert_eq!((request.ciaddr(), request.flags().broadcast()), (ADDRESS, false));
    talk.says(MessageType::Ack).unwrap();
    assert_eq!(
        (talk.state(), talk.wants()),
        ("bound", vec!["remember".to_owned()]),
        "nothing else has changed"
    );
    assert_eq!(talk.client.deadline(), at(800));
    // Its server is silent from now on: half of what is left until T2, again half, then not within a minute.
    let asked_at = at(400);
    let at = |s: u64| asked_at + Duration::from_secs(s);
    let mut seen = Vec::new();
    while talk.state() != "selecting" {
        talk.due();
        seen.push((talk.now.since(asked_at).as_secs(), talk.state(), talk.wants().join(", ")));
    }
    let times: Vec<_> = seen.iter().map(|(second, state, _)| (*second, *state)).collect();
    let expected = [
        (400, "renewing"),
        (550, "renewing"),
        (625, "renewing"),
        (685, "renewing"),
        (700, "rebinding"),
        (760, "rebinding"),
        (800, "selecting"),
    ];
    assert_eq!(times, expected);
    assert_eq!(seen[4].2, "request from 10.0.0.9 to all");
    assert_eq!(seen[6].2, "unconfigure, unassign 10.0.0.9, discover from nowhere, remember");
    assert_eq!((talk.client.remembered().lease, talk.now), (None, at(800)));
    assert!(talk.asked.as_ref().unwrap().opts().get(OptionCode::RequestedIpAddress).is_some());
}

#[test]
fn another_server_may_extend_a_lease_that_is_rebound_and_settings_may_change() {
    let mut talk = Talk::new().bound();
    talk.due();
    while talk.state() == "renewing" {
        talk.due();
    }
    talk.wants();
    let mut answer = talk.answer(MessageType::Ack);
    answer.opts_mut().insert(DhcpOption::ServerIdentifier(OTHER_SERVER));
    answer.opts_mut().insert(DhcpOption::DomainNameServer(vec![OTHER_SERVER]));
    talk.hear(&answer).unwrap();
    assert_eq!((talk.state(), talk.wants()), ("bound", vec!["configure".to_owned(), "remember".to_owned()]));
    assert_eq!(talk.client.status().lease.unwrap().server, OTHER_SERVER);
    // The network is cut anew: the address is tested within it.
    talk.due();
    let mut answer = talk.answer(MessageType::Ack);
    answer.opts_mut().insert(DhcpOption::ServerIdentifier(OTHER_SERVER));
    answer.opts_mut().insert(DhcpOption::SubnetMask(Ipv4Addr::new(255, 255, 0, 0)));
    talk.wants();
    talk.hear(&answer).unwrap();
    assert_eq!(talk.wants(), ["unconfigure", "unassign 10.0.0.9", "assign 10.0.0.9/16"]);
}

// RFC 2131 §3.2
#[test]
fn after_a_restart_the_old_address_is_asked_for() {
    let start = Instant::from_millis(1000);
    let mut talk = Talk::remembering(kept(start));
    assert_eq!((talk.state(), talk.wants()), ("rebooting", vec!["request from nowhere".to_owned()]));
    let request = talk.asked.clone().unwrap();
    assert!(request.opts().get(OptionCode::ServerIdentifier).is_none());
    assert_eq!(
        request.opts().get(OptionCode::RequestedIpAddress),
        Some(&DhcpOption::RequestedIpAddress(ADDRESS))
    );
    talk.says(MessageType::Ack).unwrap();
    talk.settle();
    assert_eq!(talk.state(), "bound");
    // No server: what is kept holds while it lasts.
    let mut talk = Talk::remembering(kept(start));
    talk.due();
    talk.due();
    assert_eq!(talk.wants(), ["request from nowhere", "request from nowhere", "assign 10.0.0.9/24"]);
    talk.settle();
    assert_eq!((talk.state(), talk.client.deadline()), ("bound", start + Duration::from_secs(400)));
    // It was moved to another network.
    let mut talk = Talk::remembering(kept(start));
    talk.wants();
    talk.says(MessageType::Nak).unwrap();
    assert_eq!(talk.wants(), ["discover from nowhere", "remember"]);
    assert_eq!(talk.client.remembered(), Remembered::default());
    // What has ended is no more than a wish.
    let mut ended = kept(start);
    ended.lease.as_mut().unwrap().terms.lease_s = 0;
    let mut talk = Talk::remembering(ended);
    talk.due();
    assert_eq!((talk.state(), talk.wants()), ("selecting", vec!["discover from nowhere".to_owned()]));
    assert!(talk.asked.unwrap().opts().get(OptionCode::RequestedIpAddress).is_some());
}

// RFC 2131 §3.1 (5), RFC 5227 §2.1
#[test]
fn an_address_that_another_host_has_is_declined_and_the_client_rests() {
    let mut talk = Talk::new();
    talk.due();
    talk.says(MessageType::Offer).unwrap();
    talk.says(MessageType::Ack).unwrap();
    talk.wants();
    talk.conflict(ADDRESS.into());
    assert_eq!(talk.wants(), ["unassign 10.0.0.9", "decline from nowhere", "remember"]);
    let decline = talk.asked.clone().unwrap();
    assert_eq!(decline.opts().get(OptionCode::ServerIdentifier), Some(&DhcpOption::ServerIdentifier(SERVER)));
    assert_eq!(talk.client.deadline(), talk.now + Duration::from_secs(10));
    talk.due();
    assert!(talk.asked.clone().unwrap().opts().get(OptionCode::RequestedIpAddress).is_none());
    // In use the same happens, and the settings go, too.
    let mut talk = Talk::new().bound();
    talk.conflict(ADDRESS.into());
    assert_eq!(talk.wants(), ["unconfigure", "unassign 10.0.0.9", "decline from nowhere", "remember"]);
    talk.conflict(ADDRESS.into());
    assert!(talk.wants().is_empty(), "nothing is left to lose");
}

// RFC 4039
#[test]
fn a_server_may_lend_at_once_where_it_says_so() {
    let mut talk = Talk::new();
    talk.due();
    let mut rapid = talk.answer(MessageType::Ack);
    assert_eq!(talk.hear(&rapid), Err(Refused::Unasked), "an acknowledgment alone is none");
    rapid.opts_mut().insert(DhcpOption::RapidCommit);
    talk.wants();
    talk.hear(&rapid).unwrap();
    assert_eq!((talk.state(), talk.wants()), ("checking", vec!["assign 10.0.0.9/24".to_owned()]));
    talk.settle();
    assert_eq!(talk.client.status().lease.unwrap().server, SERVER);
}

// RFC 2131 §4.4.6
#[test]
fn a_lease_is_given_back_and_nothing_is_asked_any_more() {
    for state in ["bound", "renewing", "rebinding"] {
        let mut talk = in_state(state);
        let (now, word) = (talk.now, talk.word());
        talk.client.release(now, word);
        talk.follow();
        let expected = ["release from 10.0.0.9 to 10.0.0.1", "unconfigure", "unassign 10.0.0.9", "remember"];
        assert_eq!(talk.wants(), expected);
        assert_eq!((talk.state(), talk.client.deadline()), ("init", Instant::FAR_FUTURE));
        let kept = talk.client.remembered();
        assert_eq!((kept.lease, kept.wanted), (None, Some(ADDRESS)), "it is asked for again");
    }
    for state in ["init", "selecting", "requesting", "rebooting", "checking"] {
        let mut talk = in_state(state);
        let (now, word) = (talk.now, talk.word());
        talk.client.release(now, word);
        talk.follow();
        assert_eq!((talk.state(), talk.wants().is_empty()), (state, true), "there is none");
    }
}

// RFC 3927 §1.9, §2.2
#[test]
fn silence_leads_to_an_address_of_the_links_own_until_a_server_answers() {
    let mut talk = Talk::new();
    let mut times = Vec::new();
    while times.len() < 8 {
        talk.due();
        times.push(talk.now.as_millis() / 1000);
    }
    let waits: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits, [4, 8, 16, 32, 64, 64, 64]);
    let wants = talk.wants();
    let at = wants.iter().position(|wanted| wanted == "assign link-local").unwrap();
    assert_eq!(wants[..at], ["discover from nowhere"; 3].map(str::to_owned));
    assert!(wants[at + 1..].iter().all(|wanted| wanted == "discover from nowhere"), "{wants:?}");
    talk.settle();
    let chosen = talk.client.status().link_local.unwrap();
    assert_eq!(talk.client.remembered().link_local, Some(chosen));
    // Somebody insists on it: another is tried.
    talk.conflict(chosen.into());
    assert_eq!(talk.wants(), ["remember", "unassign link-local", "assign link-local"]);
    talk.settle();
    talk.wants();
    talk.says(MessageType::Offer).unwrap();
    talk.says(MessageType::Ack).unwrap();
    talk.settle();
    let expected =
        ["request from nowhere", "assign 10.0.0.9/24", "configure", "unassign link-local", "remember"];
    assert_eq!(talk.wants(), expected);
    assert_eq!(talk.client.status().link_local, None);
}

#[test]
fn a_server_that_refuses_what_it_offers_is_asked_ever_more_slowly() {
    let mut talk = Talk::new();
    talk.due();
    let mut rests = Vec::new();
    for _ in 0..5 {
        talk.says(MessageType::Offer).unwrap();
        talk.says(MessageType::Nak).unwrap();
        let before = talk.now;
        while talk.state() == "init" {
            talk.due();
        }
        rests.push(talk.now.since(before).as_secs());
    }
    assert_eq!(rests, [0, 1, 2, 4, 8]);
    // One that offers and then says nothing is given up after a minute.
    talk.says(MessageType::Offer).unwrap();
    let before = talk.now;
    while talk.state() == "requesting" {
        talk.due();
    }
    assert_eq!((talk.state(), talk.now.since(before).as_secs()), ("selecting", 60));
}

#[test]
fn what_was_not_asked_for_is_refused() {
    let mut talk = Talk::new();
    assert_eq!(talk.hear_bytes(&[0; 300]), Err(Refused::Unasked), "nothing was asked yet");
    talk.due();
    let offer = talk.answer(MessageType::Offer);
    let mut wrong = offer.clone();
    wrong.set_xid(offer.xid() ^ 1);
    assert_eq!(talk.hear(&wrong), Err(Refused::Unasked));
    wrong = offer.clone();
    wrong.set_chaddr(&[2, 0, 0, 0, 0, 2]);
    assert_eq!(talk.hear(&wrong), Err(Refused::NotForUs));
    wrong = offer.clone();
    wrong.opts_mut().insert(DhcpOption::ClientIdentifier(vec![1, 2, 3]));
    assert_eq!(talk.hear(&wrong), Err(Refused::NotForUs), "RFC 6842");
    wrong = offer.clone();
    wrong.set_opcode(Opcode::BootRequest);
    assert_eq!(talk.hear(&wrong), Err(Refused::NotAReply));
    for kind in [MessageType::Ack, MessageType::Nak] {
        let early = talk.answer(kind);
        assert_eq!(talk.hear(&early), Err(Refused::Unasked), "an offer is waited for");
    }
    let (now, word) = (talk.now, talk.word());
    let mut bytes = Vec::new();
    offer.encode(&mut Encoder::new(&mut bytes)).unwrap();
    let not_a_server = Endpoint::new(SERVER, CLIENT_PORT);
    assert_eq!(talk.client.receive(&bytes, not_a_server, now, word), Err(Refused::NotAServer));
    bytes.resize(1501, 0);
    assert_eq!(talk.hear_bytes(&bytes), Err(Refused::TooLong));
    assert_eq!((talk.state(), talk.wants()), ("selecting", vec!["discover from nowhere".to_owned()]));

    talk.hear(&offer).unwrap();
    assert_eq!(talk.hear(&offer), Err(Refused::Unasked), "one was taken");
    for kind in [MessageType::Ack, MessageType::Nak] {
        let mut other = talk.answer(kind);
        other.opts_mut().insert(DhcpOption::ServerIdentifier(OTHER_SERVER));
        assert_eq!(talk.hear(&other), Err(Refused::OtherServer), "another server was asked");
    }
    let mut other = talk.answer(MessageType::Ack);
    other.set_yiaddr(Ipv4Addr::new(10, 0, 0, 10));
    assert_eq!(talk.hear(&other), Err(Refused::Address), "another address was offered");

    let mut talk = Talk::new().bound();
    let late = talk.answer(MessageType::Nak);
    assert_eq!(talk.hear(&late), Err(Refused::Unasked), "nothing is asked while all is well");
    talk.due();
    let mut other = talk.answer(MessageType::Nak);
    other.opts_mut().insert(DhcpOption::ServerIdentifier(OTHER_SERVER));
    assert_eq!(talk.hear(&other), Err(Refused::OtherServer));
    assert_eq!(talk.state(), "renewing");
    talk.wants();
    talk.says(MessageType::Nak).unwrap();
    assert_eq!(talk.wants(), ["unconfigure", "unassign 10.0.0.9", "discover from nowhere", "remember"]);
}

/// A client in each state, reached by what is said to it.
fn in_state(state: &str) -> Talk {
    let mut talk = match state {
        "rebooting" => Talk::remembering(kept(Instant::from_millis(1000))),
        "init" => Talk::new(),
        "bound" | "renewing" | "rebinding" => Talk::new().bound(),
        _ => {
            let mut talk = Talk::new();
            talk.due();
            talk
        }
    };
    match state {
        "requesting" => talk.says(MessageType::Offer).unwrap(),
        "checking" => {
            talk.says(MessageType::Offer).unwrap();
            talk.says(MessageType::Ack).unwrap();
        }
        "renewing" => talk.due(),
        "rebinding" => {
            let at = talk.client.status().lease.unwrap().rebind_at();
            talk.due();
            talk.reach(at);
        }
        _ => {}
    }
    assert_eq!(talk.state(), state);
    talk.wants();
    talk
}

/// To accept a change, run with INHOST_SNAPSHOTS=write and read the difference.
#[test]
fn the_whole_table_of_transitions() {
    let states =
        ["init", "selecting", "requesting", "rebooting", "checking", "bound", "renewing", "rebinding"];
    let inputs = [
        "timer",
        "offer",
        "ack",
        "rapid ack",
        "other's ack",
        "nak",
        "other's nak",
        "settled",
        "conflict",
        "end",
        "release",
    ];
    let mut table = String::new();
    for state in states {
        for input in inputs {
            let mut talk = in_state(state);
            if ["offer", "ack", "rapid ack", "other's ack", "nak", "other's nak"].contains(&input) {
                let Some(_) = &talk.asked else { continue };
                let kind = match input {
                    "offer" => MessageType::Offer,
                    "ack" | "rapid ack" | "other's ack" => MessageType::Ack,
                    _ => MessageType::Nak,
                };
                let mut message = talk.answer(kind);
                if input.starts_with("other") {
                    message.opts_mut().insert(DhcpOption::ServerIdentifier(OTHER_SERVER));
                }
                if input.starts_with("rapid") {
                    message.opts_mut().insert(DhcpOption::RapidCommit);
                }
                let result = talk.hear(&message);
                line(&mut table, state, input, &mut talk, result.err());
                continue;
            }
            match input {
                "timer" => talk.due(),
                "settled" => talk.settle(),
                "conflict" => talk.conflict(ADDRESS.into()),
                "release" => {
                    let (now, word) = (talk.now, talk.word());
                    talk.client.release(now, word);
                    talk.follow();
                }
                _ => {
                    let Some(end) = talk.client.status().lease.map(Lease::expires_at) else { continue };
                    talk.reach(end);
                }
            }
            line(&mut table, state, input, &mut talk, None);
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/client/transitions.txt");
    if std::env::var_os("INHOST_SNAPSHOTS").is_some_and(|how| how == "write") {
        std::fs::write(path, &table).unwrap();
    }
    let held = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(table, held, "the table is now:\n{table}");
}

fn line(table: &mut String, state: &str, input: &str, talk: &mut Talk, refused: Option<Refused>) {
    let then = match refused {
        Some(why) => format!("refused: {}", why.text()),
        None => talk.wants().join(", "),
    };
    *table += format!("{state:<11}{input:<13}{:<11}{then}", talk.state()).trim_end();
    table.push('\n');
}
