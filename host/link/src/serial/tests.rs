//! Two drivers over a pty pair, by a clock of the test's own.

use super::*;
use inhost_buf::{Offload, Slices};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, ptsname, unlockpt};

fn config(framing: Framing, baud: u32) -> SerialConfig {
    SerialConfig {
        path: "test".into(),
        baud,
        framing,
        mtu_bytes: 1500,
        offer: None,
        ask: false,
        noise: 0.0,
        seed: 0,
    }
}

fn pty() -> (OwnedFd, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).unwrap();
    unlockpt(&master).unwrap();
    let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
    (master, slave)
}

/// Two hosts' ends of a line, and the time they live by.
struct Bench {
    ends: [Serial; 2],
    got: [Vec<Vec<u8>>; 2],
    now: Instant,
    pool: Pool,
}

impl Bench {
    fn new(near: SerialConfig, far: SerialConfig) -> Bench {
        let (a, b) = pty();
        let ends = [Serial::adopt(a, near).unwrap(), Serial::adopt(b, far).unwrap()];
        Bench { ends, got: Default::default(), now: Instant::from_millis(1000), pool: Pool::new(1 << 22) }
    }
    /// One round of both hosts, after which the time goes on to the next deadline. The pty delivers in its own
    /// time, which is waited for and does not count.
    fn step(&mut self) {
        let mut batch = Batch::new();
        let mut moved = true;
        while moved {
            moved = false;
            for end in 0..2 {
                self.ends[end].advance(self.now);
                let ours = &self.ends[end];
                let on_the_line = u64::from(!ours.pace.is_free()) + ours.output.len() as u64;
                let sent = ours.pace.octets() - on_the_line;
                let peer = &mut self.ends[1 - end];
                if peer.received_octets < sent {
                    let mut wait = [PollFd::from_borrowed_fd(peer.descriptor().unwrap(), PollFlags::IN)];
                    let limit = Timespec { tv_sec: 5, tv_nsec: 0 };
                    assert_eq!(poll(&mut wait, Some(&limit)).unwrap(), 1, "the pty lost octets");
                    peer.receive(&mut self.pool, &mut batch).unwrap();
                    self.take(1 - end, &mut batch);
                    moved = true;
                }
            }
        }
        for end in 0..2 {
            if self.ends[end].has_received() {
                self.ends[end].receive(&mut self.pool, &mut batch).unwrap();
                self.take(end, &mut batch);
            }
        }
        let due = self.ends.iter().filter_map(|end| end.deadline(self.now)).min();
        self.now = due.unwrap_or(self.now + Duration::from_millis(1)).max(self.now + Duration::from_nanos(1));
    }
    fn take(&mut self, end: usize, batch: &mut Batch) {
        while let Some(packet) = batch.pop() {
            self.got[end].push(packet.bytes().to_vec());
            self.pool.give(packet);
        }
    }
    fn send(&mut self, end: usize, packet: &[u8]) -> Result<(), Full> {
        self.ends[end].advance(self.now);
        let (header, payload) = packet.split_at(packet.len() / 2);
        self.ends[end].transmit(&Frame { header, payload: Slices::one(payload), offload: Offload::None })
    }
    fn is_idle(&self) -> bool {
        self.ends.iter().all(|end| {
            end.queue.is_empty()
                && end.pace.is_free()
                && end.output.is_empty()
                && end.deadline(self.now).is_none()
        })
    }
}

/// A packet of `length` octets in which every octet occurs, and that no other is equal to.
fn packet(number: u32, length: usize) -> Vec<u8> {
    let body = (0..length).map(|i| (i as u32).wrapping_mul(number * 2 + 1) as u8);
    number.to_be_bytes().into_iter().chain(body).take(length).collect()
}

/// Sends `count` packets each way at once, and returns the packets received at each end.
fn exchange(mut bench: Bench, count: u32) -> Bench {
    let mut next = [0; 2];
    for _ in 0..2_000_000 {
        for (end, next) in next.iter_mut().enumerate() {
            if *next < count && bench.ends[end].can_transmit() {
                let length = 40 + (*next as usize * 97) % 1460;
                bench.send(end, &packet(*next, length)).unwrap();
                *next += 1;
            }
        }
        bench.step();
        if next == [count; 2] && bench.is_idle() {
            return bench;
        }
    }
    panic!("the line never came to rest");
}

#[test]
fn packets_cross_both_ways_intact_in_both_framings() {
    for framing in [Framing::Slip, Framing::Llp] {
        let bench = exchange(Bench::new(config(framing, 1_000_000), config(framing, 1_000_000)), 50);
        let expected: Vec<_> = (0..50).map(|n| packet(n, 40 + (n as usize * 97) % 1460)).collect();
        assert_eq!(bench.got[0], expected, "{framing:?}");
        assert_eq!(bench.got[1], expected, "{framing:?}");
        for end in &bench.ends {
            let statistics = end.statistics();
            assert_eq!((statistics.transmitted_frames, statistics.received_frames), (50, 50));
            assert_eq!(statistics.discarded_in_all(), 0);
            assert_eq!(end.line_use().sent_octets, end.line_use().received_octets);
        }
        assert_eq!(bench.pool.outstanding_bytes(), 0);
    }
}

#[test]
fn noise_on_an_llp_line_loses_packets_and_never_changes_one() {
    let noisy = |seed| SerialConfig { noise: 0.001, seed, ..config(Framing::Llp, 1_000_000) };
    let bench = exchange(Bench::new(noisy(1), noisy(2)), 400);
    for (got, end) in bench.got.iter().zip(&bench.ends) {
        assert!((100..390).contains(&got.len()), "{} of 400 came", got.len());
        let sent = |got: &Vec<u8>| (0..400).any(|n| *got == packet(n, 40 + (n as usize * 97) % 1460));
        assert!(got.iter().all(sent));
        assert!(end.statistics().discarded(Discard::Check) > 0);
    }
}

#[test]
fn nine_hundred_and_sixty_octets_take_a_second_at_9600_baud() {
    let mut bench = Bench::new(config(Framing::Slip, 9600), config(Framing::Slip, 9600));
    let start = bench.now;
    // With the END before and behind it.
    bench.send(0, &[0x45; 958]).unwrap();
    while bench.got[1].is_empty() {
        bench.step();
    }
    let took = bench.now.since(start).as_secs_f64();
    assert!((0.999..1.003).contains(&took), "{took} s");
    assert_eq!(bench.ends[0].line_use().sent_octets, 960);
    assert_eq!(bench.ends[1].line_use().receiving, Duration::from_secs(1));
}

#[test]
fn the_queue_is_short_and_pushes_back() {
    let mut bench = Bench::new(config(Framing::Slip, 9600), config(Framing::Slip, 9600));
    // One on the line and two behind it.
    for _ in 0..1 + QUEUE_PACKETS {
        assert!(bench.ends[0].can_transmit());
        bench.send(0, &[0x45; 100]).unwrap();
    }
    assert!(!bench.ends[0].can_transmit());
    assert_eq!(bench.send(0, &[0x45; 100]), Err(Full));
    while bench.got[1].is_empty() {
        bench.step();
    }
    assert!(bench.ends[0].can_transmit());
    bench.send(0, &[0x45; 1501]).unwrap();
    assert_eq!(bench.ends[0].statistics().discarded(Discard::TooLong), 1);
}

#[test]
fn a_request_is_given_up_when_it_was_unanswered_three_times_for_two_seconds() {
    // MIT §5.3. The other end listens to SLIP, so no ACK comes.
    let mut bench = Bench::new(config(Framing::Llp, 9600), config(Framing::Slip, 9600));
    let start = bench.now;
    bench.send(0, &[0x45; 100]).unwrap();
    while bench.ends[0].statistics().discarded(Discard::Timeout) == 0 {
        bench.step();
    }
    let took = bench.now.since(start).as_millis();
    assert!((5990..6010).contains(&took), "{took} ms");
    assert_eq!(bench.ends[0].line_use().sent_octets, 3);
    assert!(bench.ends[0].framer.is_ready(bench.now));
}

#[test]
fn a_full_host_leaves_requests_unanswered_and_loses_nothing_it_acknowledged() {
    let mut bench = Bench::new(config(Framing::Llp, 1_000_000), config(Framing::Llp, 1_000_000));
    bench.pool = Pool::new(0);
    let mut sent = 0;
    while bench.now < Instant::from_millis(3000) {
        if bench.ends[0].can_transmit() {
            bench.send(0, &packet(sent, 60)).unwrap();
            sent += 1;
        }
        bench.step();
    }
    assert!(bench.got[1].is_empty());
    bench.pool = Pool::new(1 << 22);
    assert!(sent as usize > framer::PACKET_BUFFERS, "one more asks in vain, and others wait behind it");
    let resumed = bench.now;
    while bench.got[1].len() < sent as usize && bench.now < resumed + Duration::from_secs(1) {
        bench.step();
    }
    // The one that asked is granted without asking again, and nothing was lost.
    let expected: Vec<_> = (0..sent).map(|n| packet(n, 60)).collect();
    assert_eq!(bench.got[1], expected);
    assert_eq!(bench.ends[0].statistics().discarded_in_all(), 0);
}

#[test]
fn the_concentrator_tells_an_end_its_address() {
    // MIT §5.4.
    let own: Cidr = "10.0.5.1/24".parse().unwrap();
    let offer = Some(SerialOffer { address: Ipv4Addr::new(10, 0, 5, 7), own });
    let asks = SerialConfig { ask: true, ..config(Framing::Llp, 9600) };
    let mut bench = Bench::new(asks, SerialConfig { offer, ..config(Framing::Llp, 9600) });
    let told = loop {
        bench.step();
        if let Some(told) = bench.ends[0].take_offer() {
            break told;
        }
        assert!(bench.now < Instant::from_millis(2000));
    };
    let address = "10.0.5.7/24".parse().unwrap();
    assert_eq!(told, AddressOffer { address, gateway: own.address() });
    for _ in 0..100 {
        bench.step();
    }
    assert!(
        bench.ends[0].take_offer().is_none()
            && bench.is_idle()
            && bench.got == [Vec::<Vec<u8>>::new(), vec![]]
    );
}

#[test]
fn an_end_that_nobody_answers_asks_less_and_less() {
    let asks = SerialConfig { ask: true, ..config(Framing::Llp, 9600) };
    let mut bench = Bench::new(asks, config(Framing::Slip, 9600));
    let until = bench.now + Duration::from_secs(300);
    while bench.now < until {
        bench.step();
    }
    // About 0, 3, 9, 21, 45, 93, 153, 213 and 273 seconds, with three REQs each.
    assert!((24..=27).contains(&bench.ends[0].line_use().sent_octets), "{:?}", bench.ends[0].line_use());
}

#[test]
fn the_terminal_is_as_it_was_afterwards() {
    let (master, slave) = pty();
    let settings = |tty: &OwnedFd| {
        let t = rustix::termios::tcgetattr(tty).unwrap();
        (t.input_modes, t.output_modes, t.control_modes, t.local_modes, t.output_speed())
    };
    let before = settings(&slave);
    let serial = Serial::adopt(slave.try_clone().unwrap(), config(Framing::Slip, 19_200)).unwrap();
    let during = settings(&slave);
    assert_ne!(during, before);
    assert_eq!(during.4, 19_200);
    drop(serial);
    assert_eq!(settings(&slave), before);
    drop(master);
}

#[test]
fn a_pty_is_made_on_demand_and_a_line_that_hangs_up_is_gone() {
    let made = SerialConfig { path: "/dev/ptmx".into(), ..config(Framing::Slip, 9600) };
    let mut serial = Serial::open(made).unwrap();
    let (mut pool, mut batch) = (Pool::new(1 << 20), Batch::new());
    let name = serial.port.other_end().unwrap().to_owned();
    assert!(serial.describe().contains(&name) && name.starts_with("/dev/pts/"));
    for _ in 0..2 {
        // Opening and closing the other end does not end the line.
        let mut other =
            Serial::open(SerialConfig { path: name.clone(), ..config(Framing::Slip, 9600) }).unwrap();
        assert_eq!(other.receive(&mut pool, &mut batch).unwrap(), 0);
        drop(other);
        assert_eq!(serial.receive(&mut pool, &mut batch).unwrap(), 0);
    }
    let (master, slave) = pty();
    let mut serial = Serial::adopt(slave, config(Framing::Slip, 9600)).unwrap();
    drop(master);
    assert!(serial.receive(&mut pool, &mut batch).is_err());
    assert!(matches!(serial.reopen(), Err(NotBack::Ever(_))));

    let none = Serial::open(SerialConfig { path: "/dev/null".into(), ..config(Framing::Slip, 9600) });
    assert!(none.unwrap_err().to_string().contains("not a terminal line"));
}

/// A line that was opened through a symbolic link, as programs that make ptys leave them.
#[test]
fn a_line_that_hung_up_comes_back_when_its_name_is_made_anew() {
    let link = std::env::temp_dir().join(format!("inhost-line-{}", std::process::id()));
    let _ = std::fs::remove_file(&link);
    let plug = || {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        unlockpt(&master).unwrap();
        std::os::unix::fs::symlink(ptsname(&master, Vec::new()).unwrap().to_str().unwrap(), &link).unwrap();
        master
    };
    let (mut pool, mut batch) = (Pool::new(1 << 20), Batch::new());
    let frame =
        |length| Frame { header: &[0x45; 100][..length], payload: Slices::EMPTY, offload: Offload::None };
    let master = plug();
    let path = link.to_str().unwrap().to_owned();
    let mut serial = Serial::open(SerialConfig { path, ..config(Framing::Slip, 9600) }).unwrap();
    serial.advance(Instant::from_millis(1000));
    drop(master);
    let readable = |serial: &Serial, wait_ms: i64| {
        let mut wait = [PollFd::from_borrowed_fd(serial.descriptor().unwrap(), PollFlags::IN)];
        poll(&mut wait, Some(&Timespec { tv_sec: 0, tv_nsec: wait_ms * 1_000_000 })).unwrap() == 1
    };
    assert!(readable(&serial, 900), "the host is told");
    assert!(serial.receive(&mut pool, &mut batch).is_err());
    assert!(serial.describe().ends_with("hung up"));
    assert!(!readable(&serial, 1), "and then left alone");
    assert_eq!(serial.receive(&mut pool, &mut batch).unwrap(), 0);
    // What is sent meanwhile goes nowhere, at the rate of the line. The old name is not tried: its number may by now
    // be another's.
    let _other = pty();
    serial.transmit(&frame(94)).unwrap();
    serial.advance(Instant::from_millis(2500));
    assert!(matches!(serial.reopen(), Err(NotBack::Yet(_))));
    assert!(serial.queue.is_empty() && serial.describe().ends_with("hung up"));
    std::fs::remove_file(&link).unwrap();
    let master = plug();
    assert_eq!(serial.reopen(), Ok(()));
    serial.advance(Instant::from_millis(3500));
    assert!(!serial.describe().ends_with("hung up") && serial.deadline(serial.now).is_none());
    serial.transmit(&frame(3)).unwrap();
    serial.advance(Instant::from_millis(4500));
    let mut octets = [0; 100];
    assert_eq!(rustix::io::read(&master, &mut octets), Ok(5));
    assert_eq!(octets[..5], [0xc0, 0x45, 0x45, 0x45, 0xc0]);
    std::fs::remove_file(&link).unwrap();
}
