//! What is worked off when more comes than can be worked off, in virtual time and with declared costs, so that it is the
//! same on every machine: the rounds of the runtime, and rounds that take whatever has come before anything else
//! (DEC: livelock; Mogul and Ramakrishnan 1997).

use super::chart::{self, Axis, Line};
use futures_lite::future::yield_now;
use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr, LinkId};
use inhost_buf::{Batch, Device, Frame, Full};
use inhost_runtime::{BATCHES_A_ROUND, FRAMES_A_ROUND, POLLS_A_ROUND};
use inhost_socket::{Host, UdpSocket};
use inhost_stack::{DuplicateDetection, Ignore, InterfaceConfig, Medium, Stack, StackConfig, UdpOptions};
use serde::Serialize;
use std::cell::Cell;
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

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
const LOADS: [u64; 6] = [1, 2, 4, 8, 16, 32];
/// Datagrams between the task that takes them and the one that works on them.
const STAGE: usize = 16;
const PICTURE: &str = "docs/figures/overload.svg";

/// How the consumer is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Consumer {
    /// It takes datagrams as long as there are any.
    Greedy,
    /// It lets others run after each.
    Polite,
    /// One task takes datagrams, another works on them.
    Staged,
}

impl Consumer {
    const ALL: [Consumer; 3] = [Consumer::Greedy, Consumer::Polite, Consumer::Staged];

    fn text(self) -> &'static str {
        match self {
            Consumer::Greedy => "takes all that is there",
            Consumer::Polite => "lets others run after each",
            Consumer::Staged => "one task takes, another works",
        }
    }
}

/// What a round takes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Input {
    /// What the runtime does: a bounded number of batches.
    Bounded,
    /// Whatever has come, and whatever comes meanwhile, before anything else has its turn.
    First,
}

/// What a run came to.
#[derive(Debug, Serialize)]
struct Came {
    consumer: Consumer,
    input: Input,
    load: u64,
    goodput_percent: f64,
    worked_off: u64,
    /// Datagrams that another task of the host sent, of 1,000.
    ticks: u64,
    lost_at_the_device: u64,
    taken: u64,
}

/// Arguments of `inhost-bench figures overload`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `inhost-bench figures overload …`
pub fn command(options: &Options) -> Result<(), String> {
    let mut all = Vec::new();
    for (consumer, input) in kinds() {
        all.extend(curve(consumer, input)?);
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&all).map_err(|e| e.to_string())?);
        return Ok(());
    }
    println!(
        "Datagrams worked off in % of the capacity, by offered load, and what another task sent of 1,000"
    );
    print!("{:<44}", "consumer");
    LOADS.iter().for_each(|load| print!("{:>8}", format!("{load} x")));
    println!("{:>14}", "sent");
    let mut lines = Vec::new();
    for (consumer, input) in kinds() {
        let name = match input {
            Input::Bounded => consumer.text().to_owned(),
            Input::First => format!("{}, input first", consumer.text()),
        };
        let of: Vec<&Came> = all.iter().filter(|c| (c.consumer, c.input) == (consumer, input)).collect();
        print!("{name:<44}");
        of.iter().for_each(|came| print!("{:>8.1}", came.goodput_percent));
        let ticks = || of.iter().map(|came| came.ticks);
        println!("{:>14}", format!("{} to {}", ticks().min().unwrap_or(0), ticks().max().unwrap_or(0)));
        let points = of.iter().map(|came| (came.load as f64, came.goodput_percent)).collect();
        lines.push(Line { name, points, dots: false });
    }
    let axis = |name: &str, range| Axis { name: name.into(), range, logarithmic: false };
    let axes = [
        axis("offered load, times the capacity", (1.0, 32.0)),
        axis("worked off, % of the capacity", (0.0, 120.0)),
    ];
    chart::lines(PICTURE, "Datagrams worked off under overload, by declared costs", axes, &lines, None)
}

/// Every consumer under the runtime's rounds, and one under those that it does not make.
fn kinds() -> impl Iterator<Item = (Consumer, Input)> {
    let bounded = Consumer::ALL.into_iter().map(|consumer| (consumer, Input::Bounded));
    bounded.chain([(Consumer::Greedy, Input::First)])
}

/// A run for each load.
fn curve(consumer: Consumer, input: Input) -> Result<Vec<Came>, String> {
    let capacity = Load::new(consumer, Input::Bounded)?.run(None)?.0;
    let one = |load: u64| {
        let (worked_off, ticks, lost_at_the_device, taken) =
            Load::new(consumer, input)?.run(Some(capacity * load))?;
        let goodput_percent = 100.0 * worked_off as f64 / capacity.max(1) as f64;
        Ok(Came { consumer, input, load, goodput_percent, worked_off, ticks, lost_at_the_device, taken })
    };
    LOADS.into_iter().map(one).collect()
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

fn host(number: u8, now: Instant) -> Result<Host, String> {
    let mut stack = Stack::new(StackConfig::default(), [number; 32], now);
    let address = format!("10.0.0.{number}/24").parse().map_err(|e| format!("{e:?}"))?;
    let mut interface = InterfaceConfig::new("wire", Medium::Ip).with_address(address);
    interface.duplicate_detection = DuplicateDetection::Off;
    stack.add_link(interface, now).map_err(|e| e.to_string())?;
    Ok(Host::new(stack, now))
}

fn bind(host: &Host, port: u16) -> Result<UdpSocket, String> {
    host.udp(Endpoint::new(Ipv4Addr::UNSPECIFIED, port), UdpOptions::default()).map_err(|e| e.to_string())
}

/// A datagram for the consumer, as it comes from the wire.
fn frame() -> Result<Vec<u8>, String> {
    let now = Instant::from_millis(1);
    let (caller, mut wire) = (host(2, now)?, Wire::default());
    let socket = bind(&caller, 9)?;
    let to = Endpoint::new(Ipv4Addr::new(10, 0, 0, 1), 9);
    let send = |stack: &mut Stack, now| {
        stack.udp(now, &mut Ignore).send_to(socket.socket(), &[7; BYTES], Some(to), None)
    };
    caller.with_stack(send).map_err(|e| e.to_string())?;
    caller.transmit(LINK, now, 1, &mut wire);
    Ok(wire.last)
}

/// The host under load, and its time.
struct Load {
    host: Host,
    now: Instant,
    input: Input,
    work: Work,
    frame: Vec<u8>,
}

/// What the consumer's tasks have done.
#[derive(Clone, Default)]
struct Work {
    /// Time spent since it was last looked at.
    spent_ns: Rc<Cell<u64>>,
    done: Rc<Cell<u64>>,
}

impl Work {
    fn one(&self) {
        self.spent_ns.set(self.spent_ns.get() + DATAGRAM_NS);
        self.done.set(self.done.get() + 1);
    }
}

/// Takes datagrams for ever, and works on each.
async fn consume(socket: UdpSocket, work: Work, consumer: Consumer) {
    let mut place = [0; 2048];
    while socket.receive_from(&mut place).await.is_ok() {
        work.one();
        if consumer == Consumer::Polite {
            yield_now().await;
        }
    }
}

/// Takes datagrams for ever, and hands them on.
async fn take(socket: UdpSocket, mut onward: tokio::io::DuplexStream) {
    let mut place = [0; 2048];
    while socket.receive_from(&mut place).await.is_ok() && onward.write_u8(0).await.is_ok() {}
}

/// Somebody else on the host who has something to say now and then.
async fn tick(host: Host, socket: UdpSocket) {
    let (mut at, to) = (host.now(), Endpoint::new(Ipv4Addr::new(10, 0, 0, 2), 10));
    loop {
        at += TICK;
        host.sleep_until(at).await;
        if socket.send_to(b"tick", to).await.is_err() {
            return;
        }
    }
}

impl Load {
    fn new(consumer: Consumer, input: Input) -> Result<Load, String> {
        let now = Instant::from_millis(1);
        let load = Load { host: host(1, now)?, now, input, work: Work::default(), frame: frame()? };
        let (socket, work) = (bind(&load.host, 9)?, load.work.clone());
        if consumer == Consumer::Staged {
            let (here, mut there) = duplex(STAGE);
            let works = async move {
                while there.read_u8().await.is_ok() {
                    work.one();
                }
            };
            load.host.spawn(works).detach();
            load.host.spawn(take(socket, here)).detach();
        } else {
            load.host.spawn(consume(socket, work, consumer)).detach();
        }
        load.host.spawn(tick(load.host.clone(), bind(&load.host, 10)?)).detach();
        Ok(load)
    }
    /// Rounds of one second. So many datagrams come in it, evenly, or as many as are taken where `None`; how many are
    /// worked off, sent by the other task, lost at the device, and taken.
    fn run(&mut self, per_second: Option<u64>) -> Result<(u64, u64, u64, u64), String> {
        let (began, mut wire) = (self.now, Wire::default());
        let (mut taken, mut arrived, mut lost) = (0, 0, 0);
        while self.now.since(began) < LENGTH {
            let mut batches = 0;
            loop {
                // What is there by now, as far as the device has room.
                match per_second {
                    Some(rate) => {
                        let age_ns = u128::from(self.now.since(began).as_nanos());
                        let new = (age_ns * u128::from(rate) / 1_000_000_000) as u64 - arrived - lost;
                        let fits = new.min(RING_FRAMES - (arrived - taken));
                        (arrived, lost) = (arrived + fits, lost + new - fits);
                    }
                    None => arrived = taken + Batch::LIMIT as u64,
                }
                let in_batch = self.receive(arrived - taken)?;
                (taken, batches) = (taken + in_batch, batches + 1);
                let is_last = match self.input {
                    Input::Bounded => batches == BATCHES_A_ROUND || per_second.is_none(),
                    Input::First => self.now.since(began) >= LENGTH,
                };
                if is_last || in_batch < Batch::LIMIT as u64 {
                    break;
                }
            }
            self.host.run(self.now, POLLS_A_ROUND);
            let sent = wire.frames;
            self.pass(self.work.spent_ns.take() + ROUND_NS);
            self.host.transmit(LINK, self.now, FRAMES_A_ROUND, &mut wire);
            self.pass((wire.frames - sent) * FRAME_NS);
        }
        let worked_off = self.work.done.get();
        self.host.stop();
        Ok((worked_off, wire.frames, lost, taken))
    }
    /// A batch of what waits.
    fn receive(&mut self, waiting: u64) -> Result<u64, String> {
        let (mut batch, in_batch) = (Batch::new(), waiting.min(Batch::LIMIT as u64));
        for _ in 0..in_batch {
            let packet = self.host.with_stack(|stack, _| stack.pool().take(self.frame.len()));
            let mut packet = packet.ok_or("the host has no memory")?;
            packet.append(&self.frame);
            let _ = batch.push(packet);
        }
        self.host.receive(LINK, &mut batch, self.now);
        self.pass(in_batch * FRAME_NS);
        Ok(in_batch)
    }
    fn pass(&mut self, ns: u64) {
        self.now += Duration::from_nanos(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_stays_what_the_capacity_is_and_others_still_send() {
        for consumer in Consumer::ALL {
            for came in curve(consumer, Input::Bounded).unwrap() {
                assert!(came.goodput_percent > 97.0 && came.ticks > 950, "{came:?}");
            }
        }
    }

    #[test]
    fn without_a_bound_on_input_both_would_suffer() {
        let came = curve(Consumer::Greedy, Input::First).unwrap();
        assert!(came.last().unwrap().goodput_percent < 5.0, "{came:?}");
    }
}
