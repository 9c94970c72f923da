//! The task that carries every link's clients.

use super::link::Verdict;
use super::{Link, Shared};
use crate::client::{Action, Datagram, Destination};
use crate::identity::Duid;
use crate::limits::REPLY_BYTES;
use crate::stateless::SERVERS;
use crate::{CLIENT_PORT, CLIENT_PORT_V6, SERVER_PORT, SERVER_PORT_V6, saved};
use inhost_base::{Duration, Endpoint, Instant, IpAddr, Ipv4Addr, LinkId, Random};
use inhost_socket::{Either, Ends, race};
use inhost_stack::DatagramInfo;
use std::rc::Rc;

/// Longest wait of a datagram for room on its link. It is dropped afterwards.
const SEND_WITHIN: Duration = Duration::from_secs(1);
/// Polling interval for pending output at the end.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// The name under which the host's identifier is kept.
const DUID: &str = "duid";

/// Event that ended a wait.
enum Event {
    V4(DatagramInfo),
    V6(DatagramInfo),
    Time,
    Paths(u32),
}

/// Runs until the host takes the sockets away.
pub(super) async fn run(shared: Rc<Shared>, seed: [u8; 32]) {
    let mut random = Random::from_seed(seed);
    start(&shared, &mut random).await;
    // One octet more than is read: a longer reply shows.
    let (mut v4, mut v6) = ([0; REPLY_BYTES + 1], [0; REPLY_BYTES + 1]);
    let mut paths = shared.host.with_stack(|stack, _| stack.ip().paths().generation());
    let count = shared.links.borrow().len();
    loop {
        for place in 0..count {
            await_detection(&shared, place, &mut random).await;
        }
        let deadline = shared.links.borrow().iter().map(Link::deadline).min().unwrap_or(Instant::FAR_FUTURE);
        let datagram = race(shared.v4.receive_from(&mut v4), shared.v6.receive_from(&mut v6));
        let changed = race(shared.host.sleep_until(deadline), shared.host.paths_changed(paths));
        let event = match race(datagram, changed).await {
            Either::First(Either::First(Ok(info))) => Event::V4(info),
            Either::First(Either::Second(Ok(info))) => Event::V6(info),
            // The only socket error is its end.
            Either::First(_) => return,
            Either::Second(Either::First(())) => Event::Time,
            Either::Second(Either::Second(generation)) => Event::Paths(generation),
        };
        match event {
            Event::V4(info) => take(&shared, &info, &v4, &mut random),
            Event::V6(info) => take(&shared, &info, &v6, &mut random),
            Event::Paths(generation) => paths = generation,
            Event::Time => {
                let now = shared.host.now();
                for link in shared.links.borrow_mut().iter_mut() {
                    if let Some(clients) = &mut link.clients {
                        clients.v4.timeout(now, word(&mut random));
                        clients.v6.timeout(now, word(&mut random));
                    }
                }
            }
        }
    }
}

/// Reads what is kept, and starts each link's clients with it.
async fn start(shared: &Rc<Shared>, random: &mut Random) {
    let kept = shared.store.load(DUID).await;
    let duid = match kept.as_deref().and_then(Duid::parse) {
        Some(duid) => duid,
        None => {
            let words = [word(random), word(random)].map(u64::to_be_bytes);
            let bytes: Vec<u8> = words.concat();
            let duid = Duid::from_random(core::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0)));
            // Without a place to keep it the host is another one after its next start, which costs it its addresses.
            let _ = shared.store.save(DUID, format!("{duid}\n")).await;
            duid
        }
    };
    let names: Vec<String> = shared.links.borrow().iter().map(lease_name).collect();
    for (place, name) in names.iter().enumerate() {
        let text = shared.store.load(name).await.unwrap_or_default();
        let now = shared.host.now();
        let remembered = saved::read(&text, now, (shared.unix_seconds)());
        if let Some(link) = shared.links.borrow_mut().get_mut(place) {
            link.begin(&duid, shared.host_name.as_deref(), remembered, now, word(random));
        }
    }
}

/// Gives the leases back.
pub(super) async fn release(shared: &Rc<Shared>, seed: [u8; 32]) {
    let mut random = Random::from_seed(seed);
    let now = shared.host.now();
    let count = shared.links.borrow().len();
    for place in 0..count {
        if let Some(link) = shared.links.borrow_mut().get_mut(place)
            && let Some(clients) = &mut link.clients
        {
            clients.v4.release(now, word(&mut random));
        }
        // The first is the message to the server; it is sent before the address is removed.
        let Some(Todo::V4(action)) = next(shared, place) else { continue };
        carry(shared, place, action, &mut random).await;
        has_left(shared).await;
        await_detection(shared, place, &mut random).await;
    }
}

/// Waits until what was sent has left, its neighbour's address asked for included.
async fn has_left(shared: &Shared) {
    let waits = || {
        let socket = shared.v4.socket();
        shared.host.with_stack(|stack, now| {
            stack.instruments().info(socket, now).is_some_and(|info| info.send_queue > 0)
        })
    };
    let until = shared.host.now() + SEND_WITHIN;
    while waits() && shared.host.now() < until {
        shared.host.sleep(LOOK_AGAIN).await;
    }
}

fn lease_name(link: &Link) -> String {
    format!("{}-lease", link.name)
}

fn word(random: &mut Random) -> u64 {
    u64::from(random.private_u32()) << 32 | u64::from(random.private_u32())
}

/// Gives a datagram to the client of the link by which it came.
fn take(shared: &Shared, info: &DatagramInfo, place: &[u8], random: &mut Random) {
    let now = shared.host.now();
    let mut links = shared.links.borrow_mut();
    let Some(link) = links.iter_mut().find(|link| link.id == info.link) else { return };
    let Some(clients) = &mut link.clients else { return };
    let bytes = place.get(..info.length_bytes.min(place.len())).unwrap_or_default();
    let is_taken = match info.to.port {
        CLIENT_PORT => clients.v4.receive(bytes, info.from, now, word(random)).is_ok(),
        _ => clients.v6.receive(bytes, info.from, now).is_ok(),
    };
    link.refused += u64::from(!is_taken);
}

/// Does what a link's clients want until they want nothing more.
async fn await_detection(shared: &Rc<Shared>, place: usize, random: &mut Random) {
    let mut is_changed = false;
    loop {
        look(shared, place, random);
        let Some(todo) = next(shared, place) else { break };
        is_changed = true;
        match todo {
            Todo::V4(action) => carry(shared, place, action, random).await,
            Todo::V6(bytes, from) => {
                let to = Endpoint::new(SERVERS, SERVER_PORT_V6);
                let ends = Ends { from: Some(Endpoint::new(from, CLIENT_PORT_V6)), to: Some(to) };
                let send = shared.v6.send_between(&bytes, ends);
                // A datagram that cannot be sent is asked again like one that was lost.
                let _ = shared.host.timeout(SEND_WITHIN, send).await;
            }
        }
    }
    if is_changed {
        shared.has_changed();
    }
}

enum Todo {
    V4(Action),
    V6(Vec<u8>, IpAddr),
}

fn next(shared: &Shared, place: usize) -> Option<Todo> {
    let mut links = shared.links.borrow_mut();
    let link = links.get_mut(place)?;
    let from = link.asks_v6_from(&shared.host);
    let clients = link.clients.as_mut()?;
    if let Some(action) = clients.v4.action() {
        return Some(Todo::V4(action));
    }
    clients.v6.outgoing().zip(from).map(|(bytes, from)| Todo::V6(bytes, from))
}

/// Tells a link's clients what has become of its addresses, and whether a router speaks of DHCPv6.
fn look(shared: &Shared, place: usize, random: &mut Random) {
    let now = shared.host.now();
    let mut links = shared.links.borrow_mut();
    let Some(link) = links.get_mut(place) else { return };
    let verdicts = link.verdicts(&shared.host);
    let asks_v6 = link.asks_v6_from(&shared.host).is_some();
    let Some(clients) = &mut link.clients else { return };
    for verdict in verdicts {
        match verdict {
            Verdict::Settled(address) => clients.v4.settled(address),
            Verdict::Conflict(address) => clients.v4.conflict(address, now, word(random)),
        }
    }
    match asks_v6 {
        true => clients.v6.begin(now, word(random)),
        false => clients.v6.end(),
    }
}

async fn carry(shared: &Rc<Shared>, place: usize, action: Action, random: &mut Random) {
    let with_link = |work: &mut dyn FnMut(&mut Link)| {
        if let Some(link) = shared.links.borrow_mut().get_mut(place) {
            work(link);
        }
    };
    match action {
        Action::Send(datagram) => send(shared, place, &datagram).await,
        Action::Assign(cidr) => with_link(&mut |link| {
            if !link.assign(&shared.host, cidr)
                && let Some(clients) = &mut link.clients
            {
                clients.v4.conflict(cidr.address(), shared.host.now(), word(random));
            }
        }),
        Action::Unassign(address) => with_link(&mut |link| link.unassign(&shared.host, address.into())),
        Action::Configure(settings) => {
            let mut settings = Some(*settings);
            with_link(&mut |link| link.configure(&shared.host, settings.take()));
        }
        Action::Unconfigure => with_link(&mut |link| link.configure(&shared.host, None)),
        Action::Remember => keep(shared, place).await,
        Action::Tell(news) => with_link(&mut |link| (shared.tell)(&link.name, &news)),
    }
}

/// Keeps what the client wants kept. Where that fails the lease is only lost with the process.
async fn keep(shared: &Rc<Shared>, place: usize) {
    let kept = {
        let links = shared.links.borrow();
        links.get(place).and_then(|link| Some((lease_name(link), link.clients.as_ref()?.v4.remembered())))
    };
    let Some((name, remembered)) = kept else { return };
    let text = saved::write(&remembered, shared.host.now(), (shared.unix_seconds)());
    let _ = shared.store.save(&name, text).await;
}

async fn send(shared: &Rc<Shared>, place: usize, datagram: &Datagram) {
    let link: Option<LinkId> = shared.links.borrow().get(place).map(|link| link.id);
    let Some(link) = link else { return };
    let own = |address: Ipv4Addr| Endpoint::new(address, CLIENT_PORT);
    let server = |address: Ipv4Addr| Endpoint::new(address, SERVER_PORT);
    let sending = async {
        match datagram.destination {
            Destination::Unaddressed => shared.v4.send_unaddressed(&datagram.bytes, link, SERVER_PORT).await,
            Destination::Broadcast { from } => {
                let ends = Ends { from: Some(own(from)), to: Some(server(Ipv4Addr::BROADCAST)) };
                shared.v4.send_between(&datagram.bytes, ends).await
            }
            Destination::Unicast { from, to } => {
                let ends = Ends { from: Some(own(from)), to: Some(server(to)) };
                shared.v4.send_between(&datagram.bytes, ends).await
            }
        }
    };
    // A datagram that cannot be sent is asked again like one that was lost.
    let _ = shared.host.timeout(SEND_WITHIN, sending).await;
}
