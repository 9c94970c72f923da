//! A client, a router and a server on virtual time, with a capture at each.

use std::cell::RefCell;
use std::future::Future;
use std::io::{self, Write};
use std::pin::Pin;
use std::rc::Rc;

use inhost_explain::{Options, Report, Verdict, explain};
use inhost_ip::{DuplicateDetection, Forwarding, InterfaceConfig, IpConfig, Medium};
use inhost_sim::{Capture, Duration, Instant, LinkConfig, Network, Seen, Watcher};
use inhost_stack::{ListenOptions, StackConfig};
use inhost_tcp::Config;

pub use inhost_base::Endpoint;
use inhost_base::{Cidr, IpAddr, Ipv4Addr};

/// More than any run takes.
const ROUND_LIMIT: u64 = 50_000_000;
pub const PORT: u16 = 7;
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 1);

pub use inhost_socket::Host;
pub type Program = Box<dyn FnOnce(Host) -> Pin<Box<dyn Future<Output = ()>>>>;

/// What is made.
pub struct Situation {
    /// From client to router and back, and from router to server and back.
    pub links: [[LinkConfig; 2]; 2],
    pub tcp: [Config; 2],
    pub listen: ListenOptions,
    pub client: Program,
    pub server: Program,
    pub limit: Duration,
    pub mtu_bytes: [u16; 2],
}

/// A link of this many milliseconds.
pub fn link(delay_ms: u64) -> LinkConfig {
    LinkConfig { delay: Duration::from_millis(delay_ms), ..LinkConfig::default() }
}
/// A program.
pub fn program<F: Future<Output = ()> + 'static>(run: impl FnOnce(Host) -> F + 'static) -> Program {
    Box::new(move |host| Box::pin(run(host)))
}
pub fn server_at() -> Endpoint {
    Endpoint::new(SERVER, PORT)
}

/// Bytes that a capture writes while the network has it.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);
impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
/// One interface of a host.
struct At {
    link: usize,
    end: usize,
    capture: Capture<Shared>,
}
impl Watcher for At {
    fn sent(&mut self, host: usize, frame: &Seen<'_>) {
        if (frame.link, frame.end) == (self.link, self.end) {
            self.capture.sent(host, frame);
        }
    }
    fn delivered(&mut self, host: usize, frame: &Seen<'_>) {
        if (frame.link, frame.end) == (self.link, self.end) {
            self.capture.delivered(host, frame);
        }
    }
}

fn interface(subnet: u8, last: u8, gateway: Option<u8>, mtu_bytes: u16) -> InterfaceConfig {
    let mut config = InterfaceConfig::new("wire", Medium::Ip);
    config.mtu_bytes = mtu_bytes;
    config.duplicate_detection = DuplicateDetection::Off;
    config.accept_router_advertisements = false;
    config.addresses.extend(Cidr::new(Ipv4Addr::new(10, 0, subnet, last), 24));
    config.gateways.extend(gateway.map(|last| IpAddr::from(Ipv4Addr::new(10, 0, subnet, last))));
    config
}

impl Situation {
    /// Files captured at the client, at the router and at the server.
    pub fn captures(self) -> [Vec<u8>; 3] {
        // Not from 0: captures have the time of a calendar.
        let mut network = Network::new(Instant::from_millis(1_700_000_000_000), ROUND_LIMIT);
        network.check_nothing();
        let [client, server] = [0, 1].map(|side| {
            let mut config = StackConfig::default();
            config.tcp = self.tcp[side].clone();
            config.memory_limit_bytes = 256 << 20;
            network.add_host(config, side as u64 + 1)
        });
        let mut config = StackConfig::default();
        config.ip = IpConfig::default();
        config.ip.forwarding = Some(Forwarding::default());
        let router = network.add_host(config, 3);
        let [near, far] = self.links;
        let mtu = self.mtu_bytes;
        let ends = [(client, interface(1, 1, Some(2), mtu[0])), (router, interface(1, 2, None, mtu[0]))];
        network.join(ends, near, 4).unwrap();
        let ends = [(router, interface(2, 2, None, mtu[1])), (server, interface(2, 1, Some(2), mtu[1]))];
        network.join(ends, far, 5).unwrap();
        let files = [(0, 0), (0, 1), (1, 1)].map(|(link, end)| {
            let file = Shared::default();
            network.watch(At { link, end, capture: Capture::new(file.clone()).unwrap() });
            file
        });
        let listener = network.host(server).listen(server_at(), self.listen).unwrap();
        let host = network.host(server).clone();
        let serves = self.server;
        LISTENER.with(|place| place.replace(Some(listener)));
        network.host(server).spawn::<()>(serves(host)).detach();
        let host = network.host(client).clone();
        network.host(client).spawn::<()>((self.client)(host)).detach();
        network.run(self.limit, |_| false);
        drop(network);
        files.map(|file| file.0.take())
    }
    /// Verdicts from the client, the router and the server.
    pub fn verdicts(self) -> [Verdict; 3] {
        self.captures().map(|file| {
            let report = report(&file);
            report.conversations.into_iter().next().expect("a connection")
        })
    }
}

thread_local! {
    /// The listener of the situation that is being made, for its server.
    pub static LISTENER: RefCell<Option<inhost_socket::Listener>> = const { RefCell::new(None) };
}
pub fn listener() -> inhost_socket::Listener {
    LISTENER.with(RefCell::take).expect("a listener")
}

/// Explains a file, and checks what holds of every report.
pub fn report(file: &[u8]) -> Report {
    let report = explain(file, &Options::default()).unwrap();
    inhost_explain::fuzz::check(&report);
    report
}

impl Default for Situation {
    /// A path of 40 ms without limits; the client sends 2 MB and closes, and the server reads.
    fn default() -> Self {
        Situation {
            links: [[link(10), link(10)], [link(10), link(10)]],
            tcp: [Config::default(), Config::default()],
            listen: ListenOptions::default(),
            client: sends(2_000_000),
            server: reads(),
            limit: Duration::from_secs(60),
            mtu_bytes: [1500, 1500],
        }
    }
}

/// Sends so many bytes and closes.
pub fn sends(bytes: usize) -> Program {
    program(move |host| async move {
        let Ok(stream) = host.connect(server_at()).await else { return };
        let (piece, mut left) = (vec![7; 1 << 16], bytes);
        while left > 0 {
            match stream.send(&piece[..left.min(piece.len())], Default::default()).await {
                Ok(count) => left -= count,
                Err(_) => return,
            }
        }
        stream.shutdown();
        let _ = stream.receive(&mut [0; 1]).await;
    })
}
/// Accepts one connection, reads to its end and closes.
pub fn reads() -> Program {
    program(|_| async move {
        let Ok(stream) = listener().accept().await else { return };
        let mut place = vec![0; 1 << 16];
        while let Ok(1..) = stream.receive(&mut place).await {}
        stream.shutdown();
    })
}
