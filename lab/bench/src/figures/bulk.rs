//! Transfers between two hosts of the simulator, over one link, as fast as TCP lets them.

use inhost_base::{Cidr, Duration, Endpoint, Instant, Ipv4Addr};
use inhost_sim::{LinkConfig, LinkStatistics, Network, Ran};
use inhost_socket::Host;
use inhost_stack::{DuplicateDetection, InterfaceConfig, ListenOptions, Medium, StackConfig};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;

/// Port of the receiver.
const PORT: u16 = 9;
/// Bytes of one write and one read.
const PIECE_BYTES: usize = 64 << 10;

/// What every sender says, again and again.
static TEXT: [u8; PIECE_BYTES] = [0x5a; PIECE_BYTES];

/// Two hosts and what they do.
pub struct BulkConfig {
    /// What the first host sends goes this way, and what the second sends the other.
    pub links: [LinkConfig; 2],
    /// Both hosts.
    pub stack: StackConfig,
    /// When each connection is made, from the beginning.
    pub starts: Vec<Duration>,
    /// Of the randomness of the hosts and the link.
    pub seed: u64,
}

/// The hosts while they work.
pub struct Bulk {
    /// The network, whose first host sends and whose second receives.
    pub network: Network,
    link: usize,
    received: Rc<[Cell<u64>]>,
}

impl Bulk {
    /// Makes the network, and lets the connections begin.
    pub fn new(config: BulkConfig) -> Result<Bulk, String> {
        let BulkConfig { links, stack, starts, seed } = config;
        let mut network = Network::new(Instant::ZERO, u64::MAX);
        let hosts = [1, 2].map(|own| network.add_host(stack.clone(), seed << 2 | own));
        let ends = [(hosts[0], interface(hosts[0])?), (hosts[1], interface(hosts[1])?)];
        let (link, _) = network.join(ends, links, seed).map_err(|e| e.to_string())?;
        let place = Rc::new(RefCell::new(vec![0; PIECE_BYTES]));
        let received: Rc<[Cell<u64>]> = starts.iter().map(|_| Cell::new(0)).collect();
        for (flow, start) in starts.into_iter().enumerate() {
            let at = Endpoint::new(address(hosts[1]), PORT + flow as u16);
            let listener = network.host(hosts[1]).listen(at, ListenOptions::default());
            let listener = listener.map_err(|e| e.to_string())?;
            let (counted, place) = (received.clone(), place.clone());
            let hears = async move {
                let Ok(stream) = listener.accept().await else { return };
                // All read into one place: nobody looks at it, and a hundred places would be what is measured.
                let receive = || poll_fn(|context| stream.poll_receive(context, &mut place.borrow_mut()));
                while let Ok(count @ 1..) = receive().await {
                    counted[flow].set(counted[flow].get() + count as u64);
                }
            };
            network.host(hosts[1]).spawn(hears).detach();
            let host = network.host(hosts[0]).clone();
            network.host(hosts[0]).spawn(talk(host, at, start)).detach();
        }
        Ok(Bulk { network, link, received })
    }
    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) -> Result<(), String> {
        match self.network.pass(time) {
            Ran::TimeOver | Ran::Silent => Ok(()),
            ended => Err(format!("the simulation ended early: {ended:?}")),
        }
    }
    /// Bytes that each connection's receiver has got.
    pub fn received_bytes(&self) -> Vec<u64> {
        self.received.iter().map(Cell::get).collect()
    }
    /// Lets `settling` pass, and then `time`; gives what each connection carried in the latter, in bits a second.
    pub fn rates(&mut self, settling: Duration, time: Duration) -> Result<Vec<f64>, String> {
        self.pass(settling)?;
        let before = self.received_bytes();
        self.pass(time)?;
        let carried = self.received_bytes().into_iter().zip(before).map(|(after, before)| after - before);
        Ok(carried.map(|bytes| bytes as f64 * 8.0 / time.as_secs_f64()).collect())
    }
    /// What happened to the frames of the sender, and to those of the receiver.
    pub fn statistics(&self) -> [LinkStatistics; 2] {
        [0, 1].map(|end| self.network.statistics(self.link, end))
    }
}

/// The address of a host on the link: 10.0.0.1 and 10.0.0.2.
pub fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}

/// A bare link of MTU 1500.
fn interface(host: usize) -> Result<InterfaceConfig, String> {
    let mut interface = InterfaceConfig::new("wire", Medium::Ip);
    interface.duplicate_detection = DuplicateDetection::Off;
    let own = Cidr::new(address(host), 24).map_err(|e| e.to_string())?;
    Ok(interface.with_address(own))
}

async fn talk(host: Host, to: Endpoint, start: Duration) {
    host.sleep(start).await;
    let Ok(stream) = host.connect(to).await else { return };
    while stream.send(&TEXT, Default::default()).await.is_ok() {}
}
