//! Overload, in virtual time: what is worked off when more comes than can be worked off, with declared costs for a frame
//! and for a datagram (DEC: livelock; Mogul and Ramakrishnan 1997). The rounds are those of the runtime.

use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr, LinkId};
use inhost_buf::{Batch, Device, Frame, Full};
use inhost_runtime::{BATCHES_A_ROUND, FRAMES_A_ROUND, POLLS_A_ROUND};
use inhost_socket::Host;
use inhost_stack::{DuplicateDetection, InterfaceConfig, Medium, Stack, StackConfig, UdpOptions};
use std::cell::Cell;
use std::rc::Rc;

const LINK: LinkId = LinkId(1);
/// Frames that the device holds: the kernel's default for TUN.
const RING_FRAMES: u64 = 500;
/// A round with nothing in it; a frame from the device to its socket; one out.
const ROUND_NS: u64 = 2_000;
const FRAME_NS: u64 = 1_000;
/// What the consumer does with a datagram.
const DATAGRAM_NS: u64 = 20_000;
/// Bytes in a datagram.
const BYTES: usize = 200;
const LENGTH: Duration = Duration::from_secs(1);
/// How often the other task of the host sends.
const TICK: Duration = Duration::from_millis(1);
/// Loads, in parts of the capacity.
const LOADS: [u64; 4] = [1, 2, 4, 8];

/// How the consumer is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consumer {
    /// It takes datagrams as long as there are any.
    Greedy,
    /// It lets others run after each.
    Polite,
    /// One task takes datagrams, another works on them.
    Staged,
}

/// What a run came to.
#[derive(Debug, Default)]
struct Came {
    worked_off: u64,
    ticks: u64,
    lost_at_the_device: u64,
    taken: u64,
}

/// Keeps nothing but the last frame, and counts.
#[derive(Default)]
struct Wire {
    last: Vec<u8>,
    frames: u64,
}

impl Device for Wire {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        self.last.resize(frame.len(), 0);
        frame.write_to(&mut self.last);
        self.frames += 1;
        Ok(())
    }
}

fn host(number: u8, now: Instant) -> Host {
    let mut stack = Stack::new(StackConfig::default(), [number; 32], now);
    let mut interface =
        InterfaceConfig::new("wire", Medium::Ip).with_address(format!("10.0.0.{number}/24").parse().unwrap());
    interface.duplicate_detection = DuplicateDetection::Off;
    stack.add_link(interface, now).unwrap();
    Host::new(stack, now)
}

/// A datagram for the consumer, as it comes from the wire.
fn frame() -> Vec<u8> {
    let now = Instant::from_millis(1);
    let (caller, mut wire) = (host(2, now), Wire::default());
    let here = Endpoint::new(Ipv4Addr::UNSPECIFIED, 9);
    let socket = caller.udp(here, UdpOptions::default()).unwrap();
    let to = Endpoint::new(Ipv4Addr::new(10, 0, 0, 1), 9);
    caller
        .with_stack(|stack, now| stack.udp_send_to(socket.socket(), &[7; BYTES], Some(to), None, now))
        .unwrap();
    caller.transmit(LINK, now, 1, &mut wire);
    wire.last
}

/// The host under load, and its time.
struct Load {
    host: Host,
    now: Instant,
    /// What the tasks have spent since it was last looked at.
    spent_ns: Rc<Cell<u64>>,
    worked_off: Rc<Cell<u64>>,
    frame: Vec<u8>,
}

impl Load {
    fn new(consumer: Consumer) -> Load {
        let now = Instant::from_millis(1);
        let load = Load {
            host: host(1, now),
            now,
            spent_ns: Rc::default(),
            worked_off: Rc::default(),
            frame: frame(),
        };
        load.start(consumer);
        load
    }
    fn start(&self, consumer: Consumer) {
        let (spent, worked_off) = (self.spent_ns.clone(), self.worked_off.clone());
        let work = move || {
            spent.set(spent.get() + DATAGRAM_NS);
            worked_off.set(worked_off.get() + 1);
        };
        let here = Endpoint::new(Ipv4Addr::UNSPECIFIED, 9);
        let socket = self.host.udp(here, UdpOptions::default()).unwrap();
        let (put, take) = async_channel::bounded(16);
        let host = self.host.clone();
        if consumer == Consumer::Staged {
            let work = work.clone();
            self.host
                .spawn(async move {
                    while take.recv().await.is_ok() {
                        work();
                    }
                })
                .detach();
        }
        self.host
            .spawn(async move {
                let mut place = [0; 2048];
                while socket.receive_from(&mut place).await.is_ok() {
                    match consumer {
                        Consumer::Greedy => work(),
                        Consumer::Polite => {
                            work();
                            host.sleep(Duration::ZERO).await;
                            yields().await;
                        }
                        Consumer::Staged => put.send(()).await.unwrap(),
                    }
                }
            })
            .detach();
        // Somebody else on the host who has something to say now and then.
        let (host, tick) = (self.host.clone(), Endpoint::new(Ipv4Addr::UNSPECIFIED, 10));
        let socket = self.host.udp(tick, UdpOptions::default()).unwrap();
        self.host
            .spawn(async move {
                let mut at = host.now();
                let to = Endpoint::new(Ipv4Addr::new(10, 0, 0, 2), 10);
                loop {
                    at += TICK;
                    host.sleep_until(at).await;
                    socket.send_to(b"tick", to).await.unwrap();
                }
            })
            .detach();
    }
    /// Rounds of one second; so many datagrams come in it, evenly, or as many as are taken where `None`.
    fn run(&mut self, per_second: Option<u64>) -> Came {
        let (began, worked_off, mut wire) = (self.now, self.worked_off.get(), Wire::default());
        let mut came = Came::default();
        let mut arrived = 0;
        while self.now.since(began) < LENGTH {
            let age = self.now.since(began);
            // What is there by now, as far as the device has room.
            if let Some(rate) = per_second {
                let due = (u128::from(age.as_nanos()) * u128::from(rate) / 1_000_000_000) as u64;
                let room = RING_FRAMES - (arrived - came.taken);
                let new = due - arrived - came.lost_at_the_device;
                arrived += new.min(room);
                came.lost_at_the_device += new - new.min(room);
            } else {
                arrived = came.taken + 64;
            }
            came.taken += self.receive(arrived - came.taken);
            self.host.run(self.now, POLLS_A_ROUND);
            let sent = wire.frames;
            self.pass(self.spent_ns.take() + ROUND_NS);
            self.host.transmit(LINK, self.now, FRAMES_A_ROUND, &mut wire);
            self.pass((wire.frames - sent) * FRAME_NS);
        }
        came.worked_off = self.worked_off.get() - worked_off;
        came.ticks = wire.frames;
        came
    }
    /// A round's batches of what waits.
    fn receive(&mut self, waiting: u64) -> u64 {
        let (mut batch, mut taken) = (Batch::new(), 0);
        for _ in 0..BATCHES_A_ROUND {
            let in_batch = (waiting - taken).min(Batch::LIMIT as u64);
            for _ in 0..in_batch {
                let packet = self.host.with_stack(|stack, _| stack.pool().take(self.frame.len()));
                let Some(mut packet) = packet else { continue };
                packet.append(&self.frame);
                batch.push(packet).unwrap();
            }
            self.host.receive(LINK, &mut batch, self.now);
            self.pass(in_batch * FRAME_NS);
            taken += in_batch;
            if in_batch < Batch::LIMIT as u64 {
                break;
            }
        }
        taken
    }
    fn pass(&mut self, ns: u64) {
        self.now += Duration::from_nanos(ns);
    }
}

/// Lets the others run once.
async fn yields() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

#[test]
fn goodput_stays_what_the_capacity_is_and_others_still_send() {
    for consumer in [Consumer::Greedy, Consumer::Polite, Consumer::Staged] {
        let capacity = Load::new(consumer).run(None).worked_off;
        println!("{consumer:?}: capacity {capacity} a second");
        for load in LOADS {
            let came = Load::new(consumer).run(Some(capacity * load));
            println!("  {load} times: {:.1} %, {came:?}", 100.0 * came.worked_off as f64 / capacity as f64);
            assert!(came.worked_off * 100 >= capacity * 97, "{consumer:?} at {load} times: {came:?}");
            assert!(came.ticks > 900, "{consumer:?} at {load} times: {came:?}");
        }
    }
}
