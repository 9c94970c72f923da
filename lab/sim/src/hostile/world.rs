//! The host under attack, its peer, and the transfers between them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use inhost_base::{Cidr, Duration, Endpoint, HardwareAddress, Instant, IpAddr, Ipv4Addr, Ipv6Addr, LinkId};
use inhost_socket::{Host, Stream, both};
use inhost_stack::{
    ConnectOptions, DuplicateDetection, InterfaceConfig, ListenOptions, Local, Medium, SendHow, StackConfig,
    TcpSocketId, UdpOptions,
};

use super::recent::Recent;
use crate::link::LinkConfig;
use crate::network::{Network, Ran};
use crate::queue::{QueueConfig, QueueLimit};
use crate::stream::byte_at;

/// The host under attack, in the network.
pub(super) const VICTIM: usize = 0;
/// Its peer.
pub(super) const PEER: usize = 1;
/// Links: an Ethernet, and bare IP.
pub(super) const LINKS: usize = 2;
/// Transfers: each family on each link.
pub(super) const TRANSFERS: usize = 4;
/// A listener of the victim with which nobody has business.
pub(super) const OPEN_PORT: u16 = 80;
/// Connections of that listener that may bear data in their SYN.
const FAST_OPEN_QUEUE: usize = 16;
/// UDP echo port of the victim.
pub(super) const ECHO_PORT: u16 = 7;
/// The first transfer's listener.
const FIRST_PORT: u16 = 5000;
/// Bytes of a write and of a read.
const PIECE_BYTES: usize = 4096;
const ROUND_LIMIT: u64 = u64::MAX;

/// The card of a host on the Ethernet.
pub(super) fn card(host: usize) -> HardwareAddress {
    HardwareAddress([2, 0, 0, 0, 0, host as u8 + 1])
}
/// The address of a host on a link: 10.0.LINK.HOST, fd00:LINK::HOST.
pub(super) fn address(link: usize, host: usize, is_ipv6: bool) -> IpAddr {
    match is_ipv6 {
        true => Ipv6Addr::new(0xfd00, link as u16, 0, 0, 0, 0, 0, host as u16 + 1).into(),
        false => Ipv4Addr::new(10, 0, link as u8, host as u8 + 1).into(),
    }
}

/// One transfer, from the victim's side.
#[derive(Clone)]
pub(super) struct Transfer {
    pub link: usize,
    pub socket: TcpSocketId,
    pub victim: Endpoint,
    pub peer: Endpoint,
}

/// Counters of both ends.
#[derive(Debug, Default)]
struct Counted {
    sent: [Cell<u64>; 2],
    received: [Cell<u64>; 2],
    done: [Cell<bool>; 2],
    fault: RefCell<Option<String>>,
}

pub(super) struct World {
    pub network: Network,
    pub names: [LinkId; LINKS],
    pub transfers: Vec<Transfer>,
    pub recent: Rc<RefCell<Recent>>,
    counted: Vec<Rc<Counted>>,
    finishing: Rc<Cell<bool>>,
}

impl World {
    /// Two hosts with four transfers under way. Without `busy`, the connections are there and idle.
    pub fn new(seed: u64, busy: bool) -> Result<World, String> {
        World::with_victim(seed, busy, StackConfig::default())
    }
    /// The same with a victim of this kind.
    pub fn with_victim(seed: u64, busy: bool, config: StackConfig) -> Result<World, String> {
        let mut network = Network::new(Instant::from_millis(1000), ROUND_LIMIT);
        // Forgeries are not what was sent.
        network.check_nothing();
        network.add_host(config, seed * 2 + VICTIM as u64);
        network.add_host(StackConfig::default(), seed * 2 + PEER as u64);
        // Slow enough that something is always in flight.
        let wire = LinkConfig {
            delay: Duration::from_millis(5),
            rate_bits_per_second: Some(20_000_000),
            queue: QueueConfig { limit: QueueLimit::Packets(100), ..QueueConfig::default() },
            ..LinkConfig::default()
        };
        let mut names = [LinkId(0); LINKS];
        for (link, name) in names.iter_mut().enumerate() {
            let ends = [VICTIM, PEER].map(|host| (host, interface(link, host)));
            let (_, ids) =
                network.join(ends, wire.clone(), seed ^ link as u64).map_err(|why| why.to_string())?;
            *name = ids[VICTIM];
        }
        let recent = Rc::new(RefCell::new(Recent::default()));
        network.watch(recent.clone());
        let mut world = World {
            network,
            names,
            transfers: Vec::new(),
            recent,
            counted: Vec::new(),
            finishing: Rc::new(Cell::new(!busy)),
        };
        world.serve()?;
        for number in 0..TRANSFERS {
            world.open(number, seed, busy)?;
        }
        world.network.pass(Duration::from_secs(2));
        Ok(world)
    }
    pub fn victim(&self) -> &Host {
        self.network.host(VICTIM)
    }
    /// Open services of the victim.
    fn serve(&self) -> Result<(), String> {
        let victim = self.victim();
        for any in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
            let mut options = ListenOptions::default();
            options.fast_open_queue = FAST_OPEN_QUEUE;
            let listener =
                victim.listen(Endpoint::new(any, OPEN_PORT), options).map_err(|why| why.to_string())?;
            victim
                .spawn(async move {
                    // A completed connection is dropped.
                    while let Ok(stream) = listener.accept().await {
                        stream.abort();
                    }
                })
                .detach();
            let socket = victim
                .udp(Endpoint::new(any, ECHO_PORT), UdpOptions::default())
                .map_err(|why| why.to_string())?;
            victim
                .spawn(async move {
                    let mut place = [0; 2048];
                    while let Ok(info) = socket.receive_from(&mut place).await {
                        let length = info.length_bytes.min(place.len());
                        let _ = socket.send_to(&place[..length], info.from).await;
                    }
                })
                .detach();
        }
        Ok(())
    }
    /// Opens a transfer; the victim calls in every other one.
    fn open(&mut self, number: usize, seed: u64, busy: bool) -> Result<(), String> {
        let (link, is_ipv6) = (number / 2, number % 2 == 1);
        let caller = [PEER, VICTIM][(number + number / 2) % 2];
        let called = 1 - caller;
        let remote = Endpoint::new(address(link, called, is_ipv6), FIRST_PORT + number as u16);
        let counted = Rc::new(Counted::default());
        let found: Rc<RefCell<Option<(TcpSocketId, Endpoint, Endpoint)>>> = Rc::default();
        let listener = self
            .network
            .host(called)
            .listen(remote, ListenOptions::default())
            .map_err(|why| why.to_string())?;
        let keys = [0, 1].map(|host| seed << 8 | (number as u64) << 1 | host);
        let mut listener = Some(listener);
        for host in [caller, called] {
            let (own, counted, found, finishing) =
                (self.network.host(host).clone(), counted.clone(), found.clone(), self.finishing.clone());
            let talk = Talk { host, keys, counted, finishing, busy };
            let find = move |stream: &Stream| {
                if host == VICTIM {
                    *found.borrow_mut() = Some((stream.socket(), stream.local(), stream.remote()));
                }
            };
            if host == caller {
                let local = Local { address: Some(address(link, caller, is_ipv6)), port: 0 };
                let mut options = ConnectOptions::default();
                options.local = local;
                self.network.host(host).spawn(async move {
                    match own.connect_with(remote, options).await {
                        Ok(stream) => {
                            find(&stream);
                            talk.run(&stream).await;
                        }
                        Err(why) => talk.fails(why.to_string()),
                    }
                })
            } else {
                let listener = listener.take();
                self.network.host(host).spawn(async move {
                    let Some(listener) = listener else { return };
                    if let Ok(stream) = listener.accept().await {
                        find(&stream);
                        talk.run(&stream).await;
                    }
                })
            }
            .detach();
        }
        let ran = self.network.run(Duration::from_secs(60), |_| found.borrow().is_some());
        let Some((socket, victim, peer)) = found.borrow_mut().take().filter(|_| ran == Ran::Done) else {
            return Err(format!("transfer {number} did not open: {ran:?}"));
        };
        self.transfers.push(Transfer { link, socket, victim, peer });
        self.counted.push(counted);
        Ok(())
    }
    /// Errors of transfers and of both hosts' tasks.
    pub fn fault(&self) -> Option<String> {
        if let Some(failure) = self.network.task_failure() {
            return Some(format!("host {}: {failure}", failure.host));
        }
        self.counted.iter().find_map(|counted| counted.fault.borrow().clone())
    }
    /// A transfer without progress at either end for longer than `limit`, described by both ends.
    pub fn stalled(&self, limit: Duration) -> Option<String> {
        let of = |host: usize| {
            self.network.host(host).with_stack(|stack, now| {
                let late = stack.instruments().sockets(now).filter(|s| {
                    let is_transfer = self.transfers.iter().any(|t| {
                        [Some(t.victim), Some(t.peer)].contains(&s.remote)
                            && [t.victim, t.peer].contains(&s.local)
                    });
                    is_transfer && s.tcp.as_ref().is_some_and(|tcp| tcp.idle > limit)
                });
                late.map(|socket| (host, socket)).collect::<Vec<_>>()
            })
        };
        let (at_victim, at_peer) = (of(VICTIM), of(PEER));
        (!at_victim.is_empty() && !at_peer.is_empty()).then(|| format!("{at_victim:#?} {at_peer:#?}"))
    }
    /// Stream bytes of each transfer that arrived at either end.
    pub fn received(&self) -> impl Iterator<Item = u64> {
        self.counted.iter().map(|counted| counted.received.iter().map(Cell::get).sum())
    }
    /// Those of all.
    pub fn received_bytes(&self) -> u64 {
        self.received().sum()
    }
    /// Ends the transfers; everything that was sent has then arrived.
    pub fn finish(&mut self) -> Result<(), String> {
        self.finishing.set(true);
        let counted = self.counted.clone();
        let ran = self.network.run(Duration::from_secs(3600), |_| {
            counted.iter().all(|c| c.done.iter().all(Cell::get) || c.fault.borrow().is_some())
        });
        if let Some(why) = self.fault() {
            return Err(why);
        }
        if ran != Ran::Done {
            return Err(format!("the transfers do not end: {ran:?}, {counted:?}"));
        }
        for counted in &self.counted {
            let same =
                [0, 1].iter().all(|&host| counted.sent[host].get() == counted.received[1 - host].get());
            if !same {
                return Err(format!("not all arrived: {counted:?}"));
            }
        }
        Ok(())
    }
}

/// One end of a transfer.
struct Talk {
    host: usize,
    keys: [u64; 2],
    counted: Rc<Counted>,
    finishing: Rc<Cell<bool>>,
    busy: bool,
}

impl Talk {
    fn fails(&self, why: String) {
        let host = self.host;
        self.counted.fault.borrow_mut().get_or_insert(format!("a transfer failed at host {host}: {why}"));
    }
    async fn run(self, stream: &Stream) {
        if !self.busy {
            return std::future::pending().await;
        }
        let (sent, received) = both(self.send(stream), self.receive(stream)).await;
        match (sent, received) {
            (Ok(()), Ok(())) => self.counted.done[self.host].set(true),
            (Err(why), Ok(())) | (Ok(()), Err(why)) => self.fails(why),
            // What broke reading is what broke the connection, more often than not.
            (Err(sent), Err(received)) => self.fails(format!("{received}; {sent}")),
        }
    }
    async fn send(&self, stream: &Stream) -> Result<(), String> {
        let sent = &self.counted.sent[self.host];
        let mut piece = [0; PIECE_BYTES];
        while !self.finishing.get() {
            let positions = sent.get()..;
            piece.iter_mut().zip(positions).for_each(|(byte, at)| *byte = byte_at(self.keys[self.host], at));
            let count = stream.send(&piece, SendHow::default()).await.map_err(|why| why.to_string())?;
            sent.set(sent.get() + count as u64);
        }
        stream.shutdown();
        Ok(())
    }
    async fn receive(&self, stream: &Stream) -> Result<(), String> {
        let received = &self.counted.received[self.host];
        let mut place = [0; PIECE_BYTES];
        loop {
            let count = stream.receive(&mut place).await.map_err(|why| why.to_string())?;
            if count == 0 {
                return Ok(());
            }
            let wrong = (received.get()..)
                .zip(&place[..count])
                .find(|&(at, &byte)| byte != byte_at(self.keys[1 - self.host], at));
            if let Some((at, _)) = wrong {
                stream.abort();
                return Err(format!("byte {at} is not the one that was sent"));
            }
            received.set(received.get() + count as u64);
        }
    }
}

fn interface(link: usize, host: usize) -> InterfaceConfig {
    let medium = if link == 0 { Medium::Ethernet(card(host)) } else { Medium::Ip };
    let mut config = InterfaceConfig::new(["ethernet", "line"][link], medium);
    config.duplicate_detection = DuplicateDetection::Off;
    config.addresses.extend(Cidr::new(address(link, host, false), 24));
    config.addresses.extend(Cidr::new(address(link, host, true), 64));
    config
}
