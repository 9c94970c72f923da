//! A host on one end of a memory link, and on the other a server as small as one can be, under a virtual clock.

use dhcproto::v4::{DhcpOption, Message, MessageType, Opcode, OptionCode};
use dhcproto::{Decodable, Decoder, Encodable, Encoder};
use inhost_base::{Duration, Instant, IpAddr, Ipv4Addr, LinkId};
use inhost_buf::{Batch, Device, Frame, Offload, Pool, Slices};
use inhost_dhcp::driver::{Dhcp, LocalFuture, Setup, Store};
use inhost_ip::{InterfaceConfig, RouteOrigin};
use inhost_link::{Driver, memory};
use inhost_socket::Host;
use inhost_stack::{Medium, Stack, StackConfig};
use inhost_wire::ipv4::Ipv4Header;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

const ROUNDS: usize = 200_000;
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const LENT: &str = "10.9.0.50/24";
const LEASE_S: u32 = 40;

/// Keeps texts as long as the test lives.
#[derive(Default)]
struct Kept(RefCell<BTreeMap<String, String>>);

impl Store for Kept {
    fn load<'a>(&'a self, name: &'a str) -> LocalFuture<'a, Option<String>> {
        Box::pin(async move { self.0.borrow().get(name).cloned() })
    }
    fn save<'a>(&'a self, name: &'a str, text: String) -> LocalFuture<'a, io::Result<()>> {
        self.0.borrow_mut().insert(name.to_owned(), text);
        Box::pin(async { Ok(()) })
    }
}

struct Network {
    host: Host,
    link: LinkId,
    driver: memory::Memory,
    batch: Batch,
    server: Server,
    now: Instant,
}

/// The far end: it answers ARP for its address, and leases one address to every client, unless it is silent.
struct Server {
    driver: memory::Memory,
    pool: Pool,
    batch: Batch,
    card: [u8; 6],
    is_silent: bool,
    discovers: usize,
    /// Addresses that were given back.
    released: Rc<RefCell<Vec<Ipv4Addr>>>,
}

impl Server {
    fn work(&mut self) {
        self.driver.receive(&mut self.pool, &mut self.batch).unwrap();
        while let Some(packet) = self.batch.pop() {
            let frame = packet.bytes().to_vec();
            self.pool.give(packet);
            let reply = match frame.get(12..14) {
                Some([8, 6]) => self.arp(&frame),
                Some([8, 0]) if !self.is_silent => self.datagram(&frame),
                _ => None,
            };
            if let Some(reply) = reply {
                let frame = Frame { header: &reply, payload: Slices::EMPTY, offload: Offload::None };
                self.driver.transmit(&frame).unwrap();
            }
        }
    }
    fn arp(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let asked = frame.get(14..42)?;
        if asked[7] != 1 || asked[24..28] != SERVER.octets() {
            return None;
        }
        let head = [&asked[8..14], &self.card[..], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]].concat();
        Some([&head[..], &self.card, &SERVER.octets(), &asked[8..14], &asked[14..18]].concat())
    }
    fn datagram(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        if frame.get(23) != Some(&17) || frame.get(36..38) != Some(&[0, 67][..]) {
            return None;
        }
        let asked = Message::decode(&mut Decoder::new(&frame[42..])).unwrap();
        let kind = match asked.opts().msg_type() {
            Some(MessageType::Discover) => {
                self.discovers += 1;
                MessageType::Offer
            }
            Some(MessageType::Request) => MessageType::Ack,
            Some(MessageType::Release) => {
                self.released.borrow_mut().push(asked.ciaddr());
                return None;
            }
            _ => return None,
        };
        let (card, to) = match asked.ciaddr() {
            Ipv4Addr::UNSPECIFIED => ([0xff; 6], Ipv4Addr::BROADCAST),
            own => (frame[6..12].try_into().unwrap(), own),
        };
        let payload = answer(&asked, kind);
        // UDP over IPv4 may go without a checksum.
        let length = (payload.len() as u16 + 8).to_be_bytes();
        let udp = [&[0, 67, 0, 68][..], &length, &[0, 0], &payload].concat();
        let header = Ipv4Header::new(SERVER, to, 17, udp.len() as u16);
        let mut packet = [0; 20];
        header.emit(&mut packet);
        Some([&card[..], &self.card, &[8, 0], &packet, &udp].concat())
    }
}

impl Network {
    /// A host without an address, and the server.
    fn new() -> Network {
        let config = memory::Config { mtu_bytes: 1500, ethernet: true, ..Default::default() };
        let (near, far) = memory::pair(&config).unwrap();
        let card = |driver: &memory::Memory| match driver.frame_format() {
            inhost_link::FrameFormat::Ethernet(card) => card,
            other => panic!("{other:?}"),
        };
        let server_card = card(&far).0;
        let mut stack = Stack::new(StackConfig::default(), [3; 32], Instant::ZERO);
        let interface = InterfaceConfig::new("m0", Medium::Ethernet(card(&near)));
        let link = stack.add_link(interface, Instant::ZERO).unwrap();
        let server = Server {
            driver: far,
            pool: Pool::new(1 << 20),
            batch: Batch::new(),
            card: server_card,
            is_silent: false,
            discovers: 0,
            released: Rc::default(),
        };
        let host = Host::new(stack, Instant::ZERO);
        Network { host, link, driver: near, batch: Batch::new(), server, now: Instant::ZERO }
    }
    /// Time passes until `done`, at most `limit`.
    fn until(&mut self, what: &str, limit: Duration, done: impl Fn() -> bool) {
        let end = self.now + limit;
        for _ in 0..ROUNDS {
            if done() {
                return;
            }
            let Network { host, link, driver, batch, server, now } = self;
            host.with_stack(|stack, _| driver.receive(stack.pool(), batch)).unwrap();
            host.receive(*link, batch, *now);
            host.run(*now, 1000);
            host.transmit(*link, *now, 64, driver);
            server.work();
            *now += Duration::from_micros(10);
            if !driver.has_received() && !host.has_runnable() && !host.wants_transmit(*link) {
                *now = (*now).max(host.deadline().expect("nothing will ever happen"));
            }
            assert!(*now < end, "not {what} at {now:?}");
        }
        panic!("no end after {ROUNDS} rounds");
    }
    fn start(&self, store: &Rc<Kept>) -> Dhcp {
        let setup = Setup {
            links: vec![self.link],
            store: store.clone(),
            unix_seconds: || 1_000_000,
            host_name: None,
            seed: [7; 32],
            tell: Box::new(|_, _| {}),
        };
        Dhcp::start(&self.host, setup).unwrap()
    }
    fn addresses(&self) -> Vec<String> {
        self.host.with_stack(|stack, _| {
            let own = stack.ip().interface(self.link).unwrap().addresses().iter();
            let usable = own.filter(|own| own.is_usable() && own.address().is_ipv4());
            usable.map(|own| own.cidr().to_string()).collect()
        })
    }
    fn leased_routes(&self) -> usize {
        self.host.with_stack(|stack, _| {
            stack.ip().paths().routes().iter().filter(|route| route.origin == RouteOrigin::Leased).count()
        })
    }
}

fn answer(asked: &Message, kind: MessageType) -> Vec<u8> {
    let mut message = asked.clone();
    let identifier = asked.opts().get(OptionCode::ClientIdentifier).cloned().unwrap();
    message.set_opcode(Opcode::BootReply).set_yiaddr(Ipv4Addr::new(10, 9, 0, 50));
    let options = message.opts_mut();
    options.clear();
    options.insert(identifier);
    options.insert(DhcpOption::MessageType(kind));
    options.insert(DhcpOption::ServerIdentifier(SERVER));
    options.insert(DhcpOption::SubnetMask(Ipv4Addr::new(255, 255, 255, 0)));
    options.insert(DhcpOption::AddressLeaseTime(LEASE_S));
    options.insert(DhcpOption::Router(vec![SERVER]));
    options.insert(DhcpOption::DomainNameServer(vec![SERVER]));
    options.insert(DhcpOption::DomainName("lab.example".into()));
    let mut bytes = Vec::new();
    message.encode(&mut Encoder::new(&mut bytes)).unwrap();
    bytes
}

#[test]
fn a_lease_comes_is_renewed_outlives_a_restart_and_ends_with_its_server() {
    let store = Rc::new(Kept::default());
    let mut network = Network::new();
    let dhcp = network.start(&store);
    assert!(!dhcp.has_addresses());
    let seen = dhcp.clone();
    network.until("bound", Duration::from_secs(20), move || seen.views()[0].state == "bound");
    assert_eq!((network.addresses(), network.leased_routes()), (vec![LENT.to_owned()], 1));
    let resolvers = dhcp.resolvers();
    assert_eq!(
        (resolvers.servers, resolvers.search),
        (vec![IpAddr::V4(SERVER)], vec!["lab.example".to_owned()])
    );
    // Renewed by unicast, from the address: the end moves.
    let first = dhcp.views()[0].lease.as_ref().unwrap().expires_at();
    let seen = dhcp.clone();
    let renewed = move || seen.views()[0].lease.as_ref().is_some_and(|lease| lease.expires_at() > first);
    network.until("renewed", Duration::from_secs(60), renewed);
    let kept = store.0.borrow().clone();
    assert!(kept["m0-lease"].contains("address = 10.9.0.50/24") && kept.contains_key("duid"), "{kept:?}");

    // The server falls silent: rebinding, then nothing is left, then an address of the link's own.
    network.server.is_silent = true;
    let seen = dhcp.clone();
    network.until("rebinding", Duration::from_secs(60), move || seen.views()[0].state == "rebinding");
    assert_eq!(network.addresses(), [LENT]);
    let seen = dhcp.clone();
    network.until("over", Duration::from_secs(60), move || seen.views()[0].state == "selecting");
    assert_eq!((network.addresses(), network.leased_routes()), (Vec::new(), 0));
    assert_eq!(dhcp.resolvers(), Default::default());
    let seen = dhcp.clone();
    network.until("on its own", Duration::from_secs(60), move || seen.views()[0].link_local.is_some());
    assert!(network.addresses()[0].starts_with("169.254.") && dhcp.has_addresses());
    network.server.is_silent = false;
    let seen = dhcp.clone();
    network.until("bound again", Duration::from_secs(200), move || seen.views()[0].state == "bound");
    assert_eq!(network.addresses(), [LENT]);
    network.host.stop();

    // Another start, with what was kept: the same address, without a discover.
    let mut network = Network::new();
    let dhcp = network.start(&store);
    let seen = dhcp.clone();
    network.until("rebooting", Duration::from_secs(5), move || seen.views()[0].state == "rebooting");
    let seen = dhcp.clone();
    network.until("checking", Duration::from_secs(5), move || seen.views()[0].state == "checking");
    let seen = dhcp.clone();
    network.until("bound", Duration::from_secs(20), move || seen.views()[0].state == "bound");
    assert_eq!((network.addresses(), network.server.discovers), (vec![LENT.to_owned()], 0));

    // It is given back, and nothing is asked any more.
    let (seen, leaving) = (dhcp.clone(), network.server.released.clone());
    network.host.spawn(async move { dhcp.release([9; 32]).await }).detach();
    let keeping = store.clone();
    let is_kept = move || keeping.0.borrow()["m0-lease"].contains("address =");
    let is_over = move || !leaving.borrow().is_empty() && !seen.has_addresses() && !is_kept();
    network.until("given back", Duration::from_secs(5), is_over);
    assert_eq!(*network.server.released.borrow(), [Ipv4Addr::new(10, 9, 0, 50)]);
    assert_eq!((network.addresses(), network.leased_routes()), (Vec::new(), 0));
    let kept = store.0.borrow()["m0-lease"].clone();
    assert!(kept.contains("wanted = 10.9.0.50") && !kept.contains("address ="), "{kept}");
    network.host.stop();
}

#[test]
fn a_link_without_a_card_has_nobody_to_ask() {
    let network = Network::new();
    let setup = Setup {
        links: vec![LinkId(0)],
        store: Rc::new(Kept::default()),
        unix_seconds: || 0,
        host_name: None,
        seed: [7; 32],
        tell: Box::new(|_, _| {}),
    };
    let refused = Dhcp::start(&network.host, setup).err().unwrap();
    assert!(refused.to_string().contains("not Ethernet"), "{refused}");
    network.host.stop();
}
