//! Hosts whose work takes time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant};
use inhost_sim::{
    Digest, FrameWork, LINE_WAIT, LinkConfig, LlpLine, Loss, Network, Processor, Ran, Seen, Spent, Takes,
    Watcher, Work, address, interface,
};
use inhost_stack::{InterfaceConfig, ListenOptions, StackConfig, UdpOptions};

const INPUT: Duration = Duration::from_millis(3);
const OUTPUT: Duration = Duration::from_millis(2);
const CARD_FRAMES: usize = 4;

/// Three milliseconds for a frame in, two for one out.
#[derive(Default)]
struct Slow {
    waits_for_line: bool,
    octet_interrupt: Duration,
}

impl Processor for Slow {
    fn cost(&mut self, work: &Work, spent: &mut Spent) {
        match work {
            Work::Input(_) => spent.add("input", INPUT),
            Work::Output(FrameWork { data_bytes, .. }) => {
                spent.add("output", OUTPUT);
                spent.add("data", Duration::from_micros(*data_bytes as u64));
            }
            Work::Tasks { .. } => {}
        }
    }
    fn card_frames(&self) -> usize {
        CARD_FRAMES
    }
    fn octet_interrupt(&self) -> Duration {
        self.octet_interrupt
    }
    fn waits_for_line(&self) -> bool {
        self.waits_for_line
    }
}

/// Two hosts on a perfect wire.
fn pair() -> Network {
    let mut network = Network::new(Instant::ZERO, 1_000_000);
    let hosts = [1, 2].map(|seed| network.add_host(StackConfig::default(), seed));
    let ends = hosts.map(|host| (host, interface(host, false, 1500)));
    network.join(ends, LinkConfig::default(), 3).unwrap();
    network
}

/// When host 1 took each datagram, and when host 0 made it.
#[derive(Clone, Default)]
struct Times(Rc<RefCell<[Vec<Instant>; 2]>>);

impl Watcher for Times {
    fn sent(&mut self, host: usize, frame: &Seen<'_>) {
        if host == 0 {
            self.0.borrow_mut()[0].push(frame.at);
        }
    }
    fn delivered(&mut self, host: usize, frame: &Seen<'_>) {
        if host == 1 {
            self.0.borrow_mut()[1].push(frame.at);
        }
    }
}

/// Host 0 sends so many datagrams of 100 bytes at once; the number that a task of host 1 receives.
fn datagrams(network: &mut Network, count: usize) -> Rc<Cell<usize>> {
    let received = Rc::new(Cell::new(0));
    let (receiver, sender) = (network.host(1).clone(), network.host(0).clone());
    let counts = received.clone();
    let at = Endpoint::new(address(1, false), 9);
    let socket = receiver.udp(at, UdpOptions::default()).unwrap();
    let receives = async move {
        loop {
            socket.receive_from(&mut [0; 200]).await.unwrap();
            counts.set(counts.get() + 1);
        }
    };
    network.host(1).spawn(receives).detach();
    let sends = async move {
        let socket = sender.udp(Endpoint::new(address(0, false), 9), UdpOptions::default()).unwrap();
        for _ in 0..count {
            socket.send_to(&[7; 100], at).await.unwrap();
        }
    };
    network.host(0).spawn(sends).detach();
    received
}

#[test]
fn frames_depart_when_the_work_on_them_is_done() {
    let (mut network, times) = (pair(), Times::default());
    network.watch(times.clone());
    network.set_processor(0, Box::new(Slow::default()));
    let received = datagrams(&mut network, 3);
    assert_eq!(network.run(Duration::from_secs(1), |_| received.get() == 3), Ran::Done);
    // Work of 2.1 ms each, one after the other, and a millisecond on the wire.
    let arrived: Vec<u64> = times.0.borrow()[1].iter().map(|at| at.as_micros()).collect();
    assert_eq!(arrived, [3100, 5200, 7300]);
    let used = network.used(0);
    assert_eq!((used.of("output"), used.of("data")), (OUTPUT.times(3), Duration::from_micros(300)));
    assert_eq!(network.used(1).total(), Duration::ZERO, "the other host has no processor");
}

#[test]
fn a_busy_host_takes_one_frame_after_the_other_and_loses_what_its_card_cannot_hold() {
    let (mut network, times) = (pair(), Times::default());
    network.watch(times.clone());
    network.set_processor(1, Box::new(Slow::default()));
    let received = datagrams(&mut network, 10);
    network.pass(Duration::from_secs(1));
    // All come at 1 ms. The first four find room in the card.
    assert_eq!((received.get(), network.statistics(0, 0).overflowed), (4, 6));
    let taken: Vec<u64> = times.0.borrow()[1].iter().map(|at| at.as_micros()).collect();
    assert_eq!(taken, [1000, 4000, 7000, 10_000]);
    assert_eq!(network.used(1).of("input"), INPUT.times(4));
}

#[test]
fn an_application_charges_for_its_work_and_hears_when_it_is_done() {
    let mut network = pair();
    let charges = network.set_processor(0, Box::new(Slow::default()));
    let (host, done_at) = (network.host(0).clone(), Rc::new(Cell::new(Instant::ZERO)));
    let (hears, ended_at) = (done_at.clone(), Rc::new(Cell::new(Instant::ZERO)));
    let ends = ended_at.clone();
    network
        .host(0)
        .spawn(async move {
            charges.when_done(move |at| hears.set(at));
            charges.charge("print", Duration::from_millis(4));
            charges.spend("print", Duration::from_millis(6)).await;
            ends.set(host.now());
        })
        .detach();
    assert_eq!(network.run(Duration::from_secs(1), |_| ended_at.get() > Instant::ZERO), Ran::Done);
    assert_eq!((done_at.get(), ended_at.get()), (Instant::from_millis(10), Instant::from_millis(10)));
    assert_eq!(network.used(0).of("print"), Duration::from_millis(10));
}

/// An interface of a serial line, which is too short for IPv6.
fn serial(host: usize) -> InterfaceConfig {
    let mut config = interface(host, false, 576);
    config.ipv6 = false;
    config.addresses.retain(|cidr| cidr.address().is_ipv4());
    config
}

/// A transfer of 2,000 bytes over LLP at 9,600 bit/s, whose sender waits for its line; when the receiver, which works for
/// 2 s on the first bytes, was done with that work.
fn worked_until(octet_interrupt: Duration) -> (Instant, Network) {
    let mut network = Network::new(Instant::ZERO, 1_000_000);
    let hosts = [1, 2].map(|seed| network.add_host(StackConfig::default(), seed));
    let medium = network.add_medium(LlpLine::new(9600));
    for host in hosts {
        network.join_medium((host, serial(host)), medium, 1).unwrap();
    }
    network.set_processor(0, Box::new(Slow { waits_for_line: true, ..Slow::default() }));
    let charges = network.set_processor(1, Box::new(Slow { octet_interrupt, ..Slow::default() }));
    let at = Endpoint::new(address(1, false), 7);
    let listener = network.host(1).listen(at, ListenOptions::default()).unwrap();
    let done_at = Rc::new(Cell::new(Instant::ZERO));
    let hears = done_at.clone();
    let reads = async move {
        let stream = listener.accept().await.unwrap();
        stream.receive(&mut [0; 2000]).await.unwrap();
        charges.when_done(move |at| hears.set(at));
        charges.spend("work", Duration::from_secs(2)).await;
        std::future::pending::<()>().await;
    };
    network.host(1).spawn(reads).detach();
    let host = network.host(0).clone();
    let sends = async move {
        let stream = host.connect(at).await.unwrap();
        stream.send(&[b'a'; 2000], Default::default()).await.unwrap();
    };
    network.host(0).spawn(sends).detach();
    assert_eq!(network.run(Duration::from_secs(60), |_| done_at.get() > Instant::ZERO), Ran::Done);
    (done_at.get(), network)
}

#[test]
fn octets_of_a_serial_line_take_their_time_from_the_work_that_runs() {
    let (undisturbed_at, network) = worked_until(Duration::ZERO);
    assert!(network.used(0).of(LINE_WAIT) > Duration::from_secs(1), "{:?}", network.used(0));
    let (disturbed_at, _) = worked_until(Duration::from_micros(200));
    // What came while it worked: 1,476 bytes in three segments with headers of 52 and 7 octets for the line, escapes, and
    // the beginning of a repeat.
    let stolen = disturbed_at.since(undisturbed_at);
    let octets = stolen.as_micros() / 200;
    assert!((1653..1850).contains(&octets), "{octets}");
}

/// Two hosts on a line of 9,600 bit/s, each with a processor that waits for it, and the link of the first one.
fn on_a_line() -> (Network, usize) {
    let mut network = Network::new(Instant::ZERO, 1_000_000);
    let hosts = [1, 2].map(|seed| network.add_host(StackConfig::default(), seed));
    let medium = network.add_medium(LlpLine::new(9600));
    let links = hosts.map(|host| network.join_medium((host, serial(host)), medium, 1).unwrap().0);
    for host in hosts {
        network.set_processor(host, Box::new(Slow { waits_for_line: true, ..Slow::default() }));
    }
    (network, links[0])
}

#[test]
fn frames_lost_before_the_medium_hold_nobody_up() {
    let (mut network, link) = on_a_line();
    network.cut(link);
    network.after(Duration::from_secs(2), move |network| network.heal(link));
    let received = datagrams(&mut network, 5);
    let host = network.host(0).clone();
    network
        .host(0)
        .spawn(async move {
            host.sleep(Duration::from_secs(3)).await;
            let socket = host.udp(Endpoint::new(address(0, false), 10), UdpOptions::default()).unwrap();
            socket.send_to(&[7; 100], Endpoint::new(address(1, false), 9)).await.unwrap();
        })
        .detach();
    assert_eq!(network.run(Duration::from_secs(60), |_| received.get() == 1), Ran::Done);
    assert_eq!(network.statistics(link, 0).cut, 5);
    // A line that loses one in two carries the others.
    let (mut network, link) = on_a_line();
    let lossy = LinkConfig { delay: Duration::ZERO, loss: Loss::per_mille(500), ..LinkConfig::default() };
    network.set_link(link, 0, lossy);
    let received = datagrams(&mut network, 40);
    network.pass(Duration::from_secs(60));
    assert_eq!(received.get() as u64 + network.statistics(link, 0).lost, 40);
    assert!((10..30).contains(&received.get()), "{}", received.get());
}

#[test]
fn a_network_with_a_medium_can_be_stepped() {
    let (mut network, _) = on_a_line();
    network.pass(Duration::from_secs(1));
    let received = datagrams(&mut network, 2);
    for _ in 0..200 {
        if network.step_once().is_none() {
            break;
        }
    }
    assert_eq!(received.get(), 2);
}

#[test]
fn a_run_with_processors_and_a_medium_repeats_to_the_bit() {
    let run = || {
        let digest = Digest::default();
        let mut network = pair();
        digest.attach(&mut network, Takes::FramesAndEvents);
        for host in [0, 1] {
            network.set_processor(host, Box::new(Slow::default()));
        }
        let _ = datagrams(&mut network, 20);
        network.pass(Duration::from_secs(1));
        (digest.value(), worked_until(Duration::from_micros(231)).0)
    };
    assert_eq!(run(), run());
}
