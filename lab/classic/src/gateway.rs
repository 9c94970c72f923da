//! A fast network before a slow line.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use inhost_base::{Cidr, Duration, Endpoint, Instant, IpAddr, Ipv4Addr, Random};
use inhost_congestion::CongestionChoice;
use inhost_ip::{DuplicateDetection, Forwarding};
use inhost_sim::{CodelConfig, Discipline, FqCodelConfig, LinkConfig, Network, QueueConfig, Ran};
use inhost_socket::{Host, Stream};
use inhost_stack::{InterfaceConfig, ListenOptions, Medium, StackConfig, TcpConfig};
use inhost_tcp::EcnMode;
use serde::{Deserialize, Serialize};

use crate::common::{
    CongestionControl, FixedWindow, QueueDiscipline, milliseconds, percentile, tcp_of_1988, tcp_of_today,
    wire,
};
use crate::star::{read_all, text, write_all};
use crate::{Measured, measured};
use inhost_sim::setup::{SetupError, failed, within};

/// Rounds after which a run has failed.
const ROUND_LIMIT: u64 = 20_000_000;
/// Characters of a screenful (MIT §6.2.5).
const SCREENFUL_BYTES: usize = 1966;
/// What the host says first.
const GREETING: &[u8] = b"login: ";
/// After it, nothing is on its way.
const SETTLES: Duration = Duration::from_secs(5);
/// Headers of a packet: IP and TCP without options.
const HEADER_BYTES: u64 = 40;
/// The window that the personal computer offered (MIT §6.2.2).
const WINDOW_BYTES: u32 = 4000;
/// Rate of the fast network.
const NETWORK_BITS_PER_SECOND: u64 = 10_000_000;
/// One-way delay of the fast network.
const NETWORK_DELAY: Duration = Duration::from_millis(5);
/// One-way delay of the line.
const LINE_DELAY: Duration = Duration::from_millis(1);
/// Longest time that is waited for a screenful, or for an echo.
const LIMIT: Duration = Duration::from_secs(600);
/// Before echoes are measured, the bulk transfer has this time.
const BULK_BEGINS: Duration = Duration::from_secs(20);
/// Characters that are echoed beside the bulk transfer.
const ECHOES: usize = 20;
/// Bytes that a flow sends in its turn under FQ-CoDel on a slow line.
const QUANTUM_BYTES: u32 = 300;
/// Ports: screenful and echo, bulk.
const PORTS: [u16; 2] = [23, 9];

/// How the host on the fast network sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GatewaySender {
    /// All that the window of 4,000 bytes allows, at once: a host of 1982.
    Unlimited,
    /// As `unlimited`, but the personal computer offers a window of two packets.
    SmallWindow,
    /// As `unlimited`, but its programs write a packet in the time that the line takes for one. (The stack's own pacing does
    /// not hold back the first window after a pause.)
    Paced,
    /// Slow start from one packet, congestion avoidance, fast retransmit: TCP of 1988 (RFC 5681).
    SlowStart,
    /// All that the stack has, and ECN.
    Today,
}

/// The question that MIT's report of 1982 leaves open (MIT/LCS/TM-233 §7.2): how a fast network is kept from swamping a
/// machine that connects it to a slow one. A host on a network of 10 Mbit/s sends a screenful in twenty small packets to a
/// personal computer behind a line of 9,600 bit/s. The gateway between them has few buffers.
///
/// First, nothing else goes on: the screenful. Then the host sends bulk data, too, and characters are echoed beside it.
/// CoDel and FQ-CoDel have a target of one and a half packets' time and an interval of ten targets, as slow lines need (RFC 8289 §4.4,
/// RFC 8290 §5.2.2 and §5.2.4).
///
/// Gives `screenful_s` from the request to the last character, `line_limit_s` (what the line takes for request and
/// packets), `screenful_dropped` and `screenful_packets`; then, beside bulk data, `echo_mean_ms`, `echo_p50_ms`,
/// `echo_max_ms`, `bulk_bps` (payload, in bit/s), `bulk_dropped`, `bulk_marked`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Gateway {
    /// How the host sends. Default: `unlimited`.
    pub sender: GatewaySender,
    /// Discipline of the gateway's queue before the line. Default: `tail-drop`.
    pub queue: QueueDiscipline,
    /// Packets that the gateway holds for the line; 1 to 1,000. Default: 8.
    pub buffers: u32,
    /// Speed of the line, in bit/s; 300 to 1,000,000. Default: 9,600.
    pub line_bps: u32,
    /// Payload of a packet, in bytes; 64 to 1,000. Default: 100.
    pub packet_bytes: u32,
}

impl Default for Gateway {
    fn default() -> Self {
        Gateway {
            sender: GatewaySender::Unlimited,
            queue: QueueDiscipline::TailDrop,
            buffers: 8,
            line_bps: 9600,
            packet_bytes: 100,
        }
    }
}

/// How a program of the host writes: a packet in each interval, or all at once.
#[derive(Clone, Copy)]
struct Pace {
    packet_bytes: usize,
    interval: Option<Duration>,
}

impl Pace {
    async fn write(self, host: &Host, stream: &Stream, bytes: &[u8]) -> Result<(), String> {
        let Some(interval) = self.interval else { return write_all(stream, bytes).await };
        let mut next = host.now();
        for packet in bytes.chunks(self.packet_bytes.max(1)) {
            host.sleep_until(next).await;
            write_all(stream, packet).await?;
            next += interval;
        }
        host.sleep_until(next).await;
        Ok(())
    }
}

/// The network: computer, gateway, host.
struct World {
    network: Network,
    computer: usize,
    host: usize,
    line: usize,
    failure: Rc<RefCell<Option<String>>>,
}

impl Gateway {
    pub(crate) fn run(&self, seed: u64) -> Result<Measured, SetupError> {
        within("buffers", self.buffers, 1..=1000)?;
        within("line_bps", self.line_bps, 300..=1_000_000)?;
        within("packet_bytes", self.packet_bytes, 64..=1000)?;
        let mut world = self.build(seed)?;
        let (screenful, echoes) = (Rc::new(Cell::new(None)), Rc::new(RefCell::new(Vec::new())));
        let (received, begins) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        world.serve_terminal(self.pace())?;
        world.serve_bulk(begins.clone(), received.clone())?;
        let (ended, echoed) = (screenful.clone(), echoes.clone());
        let computer = world.network.host(world.computer).clone();
        world.spawn(world.computer, async move {
            let stream = computer.connect(host_at(PORTS[0])).await.map_err(text)?;
            read_all(&stream, GREETING.len()).await?;
            computer.sleep(SETTLES).await;
            let since = computer.now();
            write_all(&stream, b"s").await?;
            read_all(&stream, SCREENFUL_BYTES).await?;
            ended.set(Some(computer.now().since(since)));
            while !begins.get() {
                computer.sleep(Duration::from_secs(1)).await;
            }
            computer.sleep(BULK_BEGINS).await;
            echo(&computer, &stream, &echoed).await
        });
        let done = screenful.clone();
        world.run(LIMIT, move || done.get().is_some())?;
        let Some(time) = screenful.get() else { return Err(failed("the screenful did not come")) };
        let of_screenful = world.network.statistics(world.line, 1);

        world.start_bulk(self.pace());
        let done = echoes.clone();
        let since = world.network.now();
        world.run(LIMIT.times(ECHOES as u64), move || done.borrow().len() >= ECHOES)?;
        let bulk_time = world.network.now().since(since);
        let all = world.network.statistics(world.line, 1);
        let mut times = echoes.take();
        times.sort_by(f64::total_cmp);
        if times.len() < ECHOES {
            return Err(failed("echoes took too long"));
        }
        let packets = SCREENFUL_BYTES.div_ceil(self.packet_bytes as usize) as u64;
        let line_bytes = SCREENFUL_BYTES as u64 + HEADER_BYTES * (packets + 1) + 1;
        let early = |port: inhost_sim::LinkStatistics| (port.overflowed + port.dropped_early) as f64;
        Ok(measured([
            ("screenful_s", time.as_secs_f64()),
            ("line_limit_s", line_bytes as f64 * 8.0 / f64::from(self.line_bps)),
            ("screenful_dropped", early(of_screenful)),
            ("screenful_packets", of_screenful.sent as f64),
            ("echo_mean_ms", times.iter().sum::<f64>() / times.len() as f64),
            ("echo_p50_ms", percentile(&times, 50.0)),
            ("echo_max_ms", percentile(&times, 100.0)),
            ("bulk_bps", received.get() as f64 * 8.0 / bulk_time.as_secs_f64().max(1e-9)),
            ("bulk_dropped", early(all) - early(of_screenful)),
            ("bulk_marked", (all.marked - of_screenful.marked) as f64),
        ]))
    }
    /// The time that the line takes for a whole packet.
    fn packet_time(&self) -> Duration {
        milliseconds((u64::from(self.packet_bytes) + HEADER_BYTES) as f64 * 8e3 / f64::from(self.line_bps))
    }
    fn pace(&self) -> Pace {
        let is_paced = self.sender == GatewaySender::Paced;
        Pace { packet_bytes: self.packet_bytes as usize, interval: is_paced.then(|| self.packet_time()) }
    }
    fn build(&self, seed: u64) -> Result<World, SetupError> {
        let mut random = Random::from_number(seed);
        let mut network = Network::new(Instant::from_millis(1000), ROUND_LIMIT);
        let mut add = |tcp: TcpConfig, forwards: bool| {
            let mut config = StackConfig::default();
            config.tcp = tcp;
            config.ip.forwarding = forwards.then(Forwarding::default);
            network.add_host(config, random.public_u64())
        };
        let (computer, gateway, host) =
            (add(self.computer_tcp(), false), add(TcpConfig::default(), true), add(self.host_tcp(), false));
        let rate = Some(u64::from(self.line_bps));
        let up = LinkConfig { rate_bits_per_second: rate, ..wire(LINE_DELAY) };
        let down = LinkConfig { queue: self.discipline(), ..up.clone() };
        let ends = [(computer, interface(1, 1)?), (gateway, interface(1, 2)?)];
        let (line, _) = network.join(ends, [up, down], random.public_u64()).map_err(failed)?;
        let fast = LinkConfig { rate_bits_per_second: Some(NETWORK_BITS_PER_SECOND), ..wire(NETWORK_DELAY) };
        let ends = [(host, interface(2, 1)?), (gateway, interface(2, 2)?)];
        network.join(ends, fast, random.public_u64()).map_err(failed)?;
        Ok(World { network, computer, host, line, failure: Rc::default() })
    }
    fn discipline(&self) -> QueueConfig {
        let target =
            milliseconds(self.packet_time().as_secs_f64() * 1e3 * 1.5).max(CodelConfig::default().target);
        let codel = CodelConfig {
            target,
            interval: target.times(10).max(CodelConfig::default().interval),
            largest_frame_bytes: self.packet_bytes as usize + HEADER_BYTES as usize,
            marks: true,
        };
        let queue = self.queue.queue_of(self.buffers, codel);
        match self.queue {
            QueueDiscipline::FqCodel => QueueConfig {
                discipline: Discipline::FqCodel(FqCodelConfig {
                    codel,
                    quantum_bytes: QUANTUM_BYTES,
                    ..FqCodelConfig::default()
                }),
                ..queue
            },
            QueueDiscipline::TailDrop | QueueDiscipline::Codel => queue,
        }
    }
    /// TCP of the host on the fast network.
    fn host_tcp(&self) -> TcpConfig {
        let mut tcp = match self.sender {
            GatewaySender::Today => tcp_of_today(CongestionControl::Cubic),
            _ => tcp_of_1988(),
        };
        tcp.mss_limit_bytes = self.packet_bytes as u16;
        // Headers without options, so that all senders' packets are of one size.
        tcp.timestamps = false;
        // RFC 1122 §4.2.3.1: the timer begins at three seconds.
        tcp.initial_retransmission_timeout = Duration::from_secs(3);
        tcp.send_buffer_limit_bytes = 64 << 10;
        // RFC 896 is of 1984: a host of 1982 sends a short packet with the others.
        tcp.nagle = matches!(self.sender, GatewaySender::SlowStart | GatewaySender::Today);
        match self.sender {
            GatewaySender::Unlimited | GatewaySender::SmallWindow | GatewaySender::Paced => {
                tcp.congestion = CongestionChoice::custom(|| FixedWindow { bytes: WINDOW_BYTES });
            }
            GatewaySender::SlowStart => {}
            GatewaySender::Today => tcp.ecn = EcnMode::Request,
        }
        tcp
    }
    /// TCP of the personal computer.
    fn computer_tcp(&self) -> TcpConfig {
        let mut tcp = self.host_tcp();
        let window_bytes = match self.sender {
            GatewaySender::SmallWindow => 2 * self.packet_bytes,
            _ => WINDOW_BYTES,
        };
        // The window is half of the buffer.
        tcp.receive_buffer_limit_bytes = 2 * window_bytes as usize;
        tcp.receive_buffer_initial_bytes = 2 * window_bytes as usize;
        tcp.window_scaling = false;
        tcp
    }
}

impl World {
    fn spawn(&self, host: usize, program: impl Future<Output = Result<(), String>> + 'static) {
        let failure = self.failure.clone();
        let task = async move {
            if let Err(why) = program.await {
                failure.borrow_mut().get_or_insert(why);
            }
        };
        self.network.host(host).spawn(task).detach();
    }
    /// The host answers the first character with a screenful, and echoes all others.
    fn serve_terminal(&self, pace: Pace) -> Result<(), SetupError> {
        let host = self.network.host(self.host).clone();
        let listener = host.listen(host_at(PORTS[0]), ListenOptions::default()).map_err(failed)?;
        self.spawn(self.host, async move {
            let stream = listener.accept().await.map_err(text)?;
            write_all(&stream, GREETING).await?;
            read_all(&stream, 1).await?;
            pace.write(&host, &stream, &[b'x'; SCREENFUL_BYTES]).await?;
            loop {
                read_all(&stream, 1).await?;
                write_all(&stream, b"x").await?;
            }
        });
        Ok(())
    }
    /// The computer takes bulk data, and says that it has begun.
    fn serve_bulk(&self, begins: Rc<Cell<bool>>, received: Rc<Cell<u64>>) -> Result<(), SetupError> {
        let computer = self.network.host(self.computer);
        let at = Endpoint::new(address(1, 1), PORTS[1]);
        let listener = computer.listen(at, ListenOptions::default()).map_err(failed)?;
        self.spawn(self.computer, async move {
            let stream = listener.accept().await.map_err(text)?;
            begins.set(true);
            let mut place = [0; 4096];
            while let Ok(count @ 1..) = stream.receive(&mut place).await {
                received.set(received.get() + count as u64);
            }
            Ok(())
        });
        Ok(())
    }
    /// The host sends bulk data without end.
    fn start_bulk(&self, pace: Pace) {
        let host = self.network.host(self.host).clone();
        self.spawn(self.host, async move {
            let stream = host.connect(Endpoint::new(address(1, 1), PORTS[1])).await.map_err(text)?;
            loop {
                pace.write(&host, &stream, &[7; 4096]).await?;
            }
        });
    }
    fn run(&mut self, limit: Duration, done: impl Fn() -> bool) -> Result<(), SetupError> {
        let failure = self.failure.clone();
        let ran = self.network.run(limit, |_| failure.borrow().is_some() || done());
        if let Some(why) = self.failure.borrow_mut().take() {
            return Err(failed(why));
        }
        match ran {
            Ran::Done | Ran::TimeOver => Ok(()),
            Ran::Wrong => Err(failed(self.network.checker().violations().join("\n"))),
            Ran::Failed => {
                Err(failed(self.network.task_failure().map_or_else(String::new, |why| why.to_string())))
            }
            Ran::Silent | Ran::Endless => Err(failed(format!("{ran:?}"))),
        }
    }
}

/// Sends characters one after the other, and notes how long each echo takes.
async fn echo(computer: &Host, stream: &Stream, times: &RefCell<Vec<f64>>) -> Result<(), String> {
    for _ in 0..ECHOES {
        computer.sleep(Duration::from_secs(1)).await;
        let since = computer.now();
        write_all(stream, b"c").await?;
        read_all(stream, 1).await?;
        times.borrow_mut().push(computer.now().since(since).as_secs_f64() * 1e3);
    }
    std::future::pending().await
}

fn address(subnet: u8, last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, subnet, last).into()
}
fn host_at(port: u16) -> Endpoint {
    Endpoint::new(address(2, 1), port)
}
/// The interface of an end; number 2 is the gateway's.
fn interface(subnet: u8, last: u8) -> Result<InterfaceConfig, SetupError> {
    let mut config = InterfaceConfig::new("line", Medium::Ip);
    config.mtu_bytes = 1500;
    config.duplicate_detection = DuplicateDetection::Off;
    config.accept_router_advertisements = false;
    config.addresses.push(Cidr::new(address(subnet, last), 24).map_err(|_| failed("an address"))?);
    if last == 1 {
        config.gateways.push(address(subnet, 2));
    }
    Ok(config)
}
