//! Where the nanoseconds of a segment go, at both ends of a transfer, beside VPI's figures: two hosts on two threads with
//! the runtime of `inhost serve`, on a link in memory.

use super::machine;
use super::page;
use super::statistics::median;
use inhost_base::{Cidr, Duration, Endpoint, Ipv4Addr};
use inhost_event::Layer;
use inhost_layers::draw::{self, Bar, Line};
use inhost_layers::{Direction, Meter, Mode, Report};
use inhost_link::memory::{self, Memory};
use inhost_runtime::{Clock, Runtime, interface};
use inhost_socket::{Host, Stream};
use inhost_stack::{DuplicateDetection, ListenOptions, StackConfig, TcpConfig};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The page.
const PAGE: &str = "docs/layers.md";
/// Payload bytes of a segment: VPI's write sizes of figures 14 and 15, for 500 its class of 512. Each is answered by a byte,
/// which stands for VPI's acknowledgment.
const SIZES: [usize; 6] = [1, 10, 100, 512, 1024, 1460];
/// Bytes of a write in a stream, whose segments have 1460 bytes and are acknowledged as TCP likes.
const STREAM_WRITE_BYTES: usize = 32 << 10;
/// What a stream is called.
const STREAM: &str = "stream";
/// With timestamps, a payload of 1460 bytes fits.
const MTU_BYTES: usize = 1512;
/// Segments of a run.
const SEGMENTS: usize = 20_000;
/// Runs of each size.
const RUNS: usize = 9;
/// Bytes of VPI's transfer, and of its writes, its send buffer and its window (table 9).
const TRANSFER_BYTES: usize = 40_960;
const WRITE_BYTES: usize = 1_024;
const SEND_BUFFER_BYTES: usize = 4_096;
const WINDOW_BYTES: usize = 2_048;
/// Transfers of each kind; VPI made as many.
const TRANSFERS: usize = 100;
/// How long a run may take.
const LIMIT: Duration = Duration::from_secs(120);
/// Where the receiver listens.
const AT: Endpoint = Endpoint { address: std::net::IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2)), port: 9 };
/// The time that a time-line shows, in nanoseconds, and how much of it is before the first segment with data.
const SHOWN_NS: u64 = 150_000;
const SHOWN_BEFORE_NS: u64 = 10_000;

/// VPI's own, from its text (§4.2.3, §4.3.2) and tables 9 and 10.
const VPI_COPY_SHARE: f64 = 0.36;
const VPI_CHECKSUM_SHARE: f64 = 0.33;
const VPI_TIMER_US: f64 = 86.0;
const VPI_SEND_US: f64 = 647.0;
const VPI_SEND_ACK_US: f64 = 409.0;
const VPI_RECEIVE_US: f64 = 599.0;
const VPI_RECEIVE_ACK_US: f64 = 271.0;
const VPI_IDLE_SHARE: f64 = 0.453;

/// What both ends of a run say.
struct Both {
    sender: Report,
    receiver: Report,
}

/// What is sent, and how hosts are.
#[derive(Clone)]
struct Run {
    mode: Mode,
    tcp: TcpConfig,
    write_bytes: usize,
    writes: usize,
    /// Each write waits for an answer of a byte, so that it is a segment of its own.
    is_answered: bool,
}

/// The figures of one size, one value a run.
#[derive(Serialize)]
struct Sized {
    name: String,
    sender: BTreeMap<&'static str, Vec<f64>>,
    receiver: BTreeMap<&'static str, Vec<f64>>,
    /// Segments with data for each acknowledgment.
    data_per_ack: Vec<f64>,
    /// Send and receive phases without copies, at either end, for a segment with data or an acknowledgment.
    protocol: BTreeMap<&'static str, Vec<f64>>,
}

/// Arguments of `inhost-bench figures layers`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Runs of each
    #[arg(long, value_name = "COUNT", default_value_t = RUNS)]
    runs: usize,
    /// Segments of a run
    #[arg(long, value_name = "COUNT", default_value_t = SEGMENTS)]
    segments: usize,
    /// Transfers that wait
    #[arg(long, value_name = "COUNT", default_value_t = TRANSFERS)]
    transfers: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `inhost-bench figures layers …`
pub fn command(options: &Options) -> Result<(), String> {
    let json = options.json;
    let (runs, segments, transfers) =
        (options.runs.max(1), options.segments.max(100), options.transfers.max(1));
    eprintln!("{}, {}", machine::describe(), machine::today());
    let mut all: Vec<Sized> = Vec::new();
    let mut largest = None;
    for _ in 0..runs {
        let answered = SIZES.map(|bytes| (bytes.to_string(), bytes, segments, true));
        let writes = segments * SIZES[SIZES.len() - 1] / STREAM_WRITE_BYTES;
        let stream = [(STREAM.to_owned(), STREAM_WRITE_BYTES, writes, false)];
        for (place, (name, write_bytes, writes, is_answered)) in
            answered.into_iter().chain(stream).enumerate()
        {
            let run =
                Run { mode: Mode::Sampled, tcp: TcpConfig::default(), write_bytes, writes, is_answered };
            let both = run.carry_out()?;
            if all.len() == place {
                all.push(Sized::new(name));
            }
            all[place].add(&both)?;
            largest = Some(both);
        }
    }
    let idle = [true, false].map(|is_narrow| transfers_of(is_narrow, transfers));
    let [narrow, wide] = idle;
    let (narrow, wide) = (narrow?, wide?);
    if json {
        let text = serde_json::to_string(&all).map_err(|e| e.to_string())?;
        println!("{text}");
        return Ok(());
    }
    let mut table = table(&all, runs, segments);
    table += &transfer_table(&narrow, &wide);
    print!("{table}");
    for (name, title, of) in [
        (
            "layers-sender",
            "Sender: nanoseconds a segment by its payload bytes, without driver and loop",
            true,
        ),
        (
            "layers-receiver",
            "Receiver: nanoseconds a segment by its payload bytes, without driver and loop",
            false,
        ),
    ] {
        put(name, &draw::bars(title, "ns", &bars(&all, of)))?;
    }
    if let Some(both) = &largest {
        put("layers-flame", &draw::flame("The receiver of a stream: its time by layer", &both.receiver))?;
    }
    put(
        "layers-time-line",
        &time_line("40 KB in writes of 1 KB, send buffer 4 KB, window 2 KB", &narrow.both),
    )?;
    put(
        "layers-time-line-wide",
        &time_line("40 KB in writes of 1 KB, buffers as they size themselves", &wide.both),
    )?;
    page::put_on(PAGE, "layers", &table)
}

fn put(name: &str, picture: &str) -> Result<(), String> {
    let path = format!("docs/figures/{name}.svg");
    std::fs::write(&path, picture).map_err(|e| format!("{path}: {e}; run from the root"))
}

impl Run {
    fn carry_out(&self) -> Result<Both, String> {
        let config = memory::Config { doorbell: true, mtu_bytes: MTU_BYTES, ..memory::Config::default() };
        let (near, far) = memory::pair(&config).map_err(|e| e.to_string())?;
        let clock = Clock::start();
        let (listens, listening) = channel();
        let other = self.clone();
        let receiver = std::thread::spawn(move || other.receive(far, clock, &listens));
        let sender = self.send(near, clock, &listening);
        let receiver = receiver.join().map_err(|_| "the receiver panicked")?;
        Ok(Both { sender: sender?, receiver: receiver? })
    }
    fn host(&self, driver: Memory, last: u8, clock: Clock) -> Result<(Runtime, Meter), String> {
        let mut stack = StackConfig::default();
        stack.tcp = self.tcp.clone();
        let mut runtime = Runtime::new(stack).map_err(|e| e.to_string())?;
        let host = runtime.host().clone();
        let mut config = interface("memory", &driver);
        config.duplicate_detection = DuplicateDetection::Off;
        let address = Cidr::new(Ipv4Addr::new(10, 9, 0, last), 24).map_err(|e| e.to_string())?;
        runtime.add_link(&host, config.with_address(address), Box::new(driver)).map_err(|e| e.to_string())?;
        let meter = Meter::new(move || clock.now().as_nanos());
        runtime.watch_layers(Rc::new(meter.clone()));
        meter.set_one_in(1);
        Ok((runtime, meter))
    }
    fn receive(&self, driver: Memory, clock: Clock, listens: &Sender<()>) -> Result<Report, String> {
        let (mut runtime, meter) = self.host(driver, 2, clock)?;
        let host = runtime.host().clone();
        let listener = host.listen(AT, ListenOptions::default()).map_err(|e| e.to_string())?;
        let _ = listens.send(());
        let (watched, mode) = (meter.clone(), self.mode);
        let work = async {
            let mut stream = listener.accept().await.map_err(|e| e.to_string())?;
            watched.set_mode(mode);
            let (mut place, mut owed) = (vec![0; 64 << 10], 0);
            while let Ok(count @ 1..) = stream.read(&mut place).await {
                owed += count;
                while self.is_answered && owed >= self.write_bytes {
                    owed -= self.write_bytes;
                    stream.write_all(b"a").await.map_err(|e| e.to_string())?;
                }
            }
            watched.set_mode(Mode::Off);
            Ok::<(), String>(())
        };
        let done = runtime.run(host.timeout(LIMIT, work)).map_err(|e| e.to_string())?;
        done.map_err(|e| e.to_string())??;
        runtime.shutdown(Duration::from_secs(1)).map_err(|e| e.to_string())?;
        Ok(meter.report().with_transitions(&meter.transitions()))
    }
    fn send(&self, driver: Memory, clock: Clock, listening: &Receiver<()>) -> Result<Report, String> {
        let (mut runtime, meter) = self.host(driver, 1, clock)?;
        let host = runtime.host().clone();
        listening.recv_timeout(std::time::Duration::from_secs(10)).map_err(|e| e.to_string())?;
        let watched = meter.clone();
        let work = async {
            let stream = host.connect(AT).await.map_err(|e| e.to_string())?;
            stream.set_nagle(false);
            // The handshake is over at the other end, too, and is not part of what is measured.
            host.sleep(Duration::from_millis(2)).await;
            watched.set_mode(self.mode);
            self.write(&host, stream, &watched).await
        };
        let done = runtime.run(host.timeout(LIMIT, work)).map_err(|e| e.to_string())?;
        done.map_err(|e| e.to_string())??;
        runtime.shutdown(Duration::from_secs(1)).map_err(|e| e.to_string())?;
        Ok(meter.report().with_transitions(&meter.transitions()))
    }
    async fn write(&self, host: &Host, mut stream: Stream, meter: &Meter) -> Result<(), String> {
        let text = vec![0x5a; self.write_bytes];
        for _ in 0..self.writes {
            stream.write_all(&text).await.map_err(|e| e.to_string())?;
            if self.is_answered {
                stream.read_exact(&mut [0; 1]).await.map_err(|e| e.to_string())?;
            }
        }
        // Until the last acknowledgment, as VPI has it.
        while stream.queued().is_some_and(|queued| queued.unacknowledged_bytes > 0) {
            host.sleep(Duration::from_micros(5)).await;
        }
        meter.set_mode(Mode::Off);
        stream.shutdown();
        Ok(())
    }
}

impl Sized {
    fn new(name: String) -> Sized {
        let (sender, receiver, protocol) = Default::default();
        Sized { name, sender, receiver, data_per_ack: Vec::new(), protocol }
    }
    fn add(&mut self, both: &Both) -> Result<(), String> {
        let data = both.sender.segments_of(Direction::Sent) as f64;
        let acks = both.receiver.segments_of(Direction::Sent) as f64;
        if data == 0.0 || acks == 0.0 {
            return Err("a run carried no segment".into());
        }
        self.data_per_ack.push(data / acks);
        for (report, into) in [(&both.sender, &mut self.sender), (&both.receiver, &mut self.receiver)] {
            for layer in worked() {
                into.entry(layer.text()).or_default().push(report.layer_ns(layer) as f64 / data);
            }
        }
        // Each phase without driver, recorder, loop and instrument.
        let protocol = [Layer::Ip, Layer::Tcp, Layer::Checksum, Layer::Timers, Layer::Sockets];
        let of = |report: &Report, phase: fn(&inhost_layers::LayerTime) -> u64| -> f64 {
            let names = protocol.map(Layer::text);
            report.layers.iter().filter(|time| names.contains(&&*time.layer)).map(phase).sum::<u64>() as f64
        };
        let mut add = |name, ns| self.protocol.entry(name).or_default().push(ns);
        add("send", of(&both.sender, |time| time.send_ns) / data);
        add("send ack", of(&both.sender, |time| time.receive_ns) / acks);
        add("receive", of(&both.receiver, |time| time.receive_ns) / data);
        add("receive ack", of(&both.receiver, |time| time.send_ns) / acks);
        Ok(())
    }
}

/// Layers for which the host works.
fn worked() -> impl Iterator<Item = Layer> {
    Layer::ALL.into_iter().filter(|layer| !matches!(layer, Layer::Idle | Layer::Instrument))
}

/// Layers of the bars: the stack's own, as in VPI's figures. Driver, recorder and loop are in the table.
const DRAWN: [Layer; 8] = [
    Layer::Ip,
    Layer::Tcp,
    Layer::Checksum,
    Layer::Write,
    Layer::WriteAndSum,
    Layer::Read,
    Layer::Timers,
    Layer::Sockets,
];

fn bars(all: &[Sized], of_sender: bool) -> Vec<Bar> {
    let bar = |sized: &Sized| {
        let values = if of_sender { &sized.sender } else { &sized.receiver };
        let part = |layer: Layer| (layer, values.get(layer.text()).and_then(|v| median(v)).unwrap_or(0.0));
        Bar { label: sized.name.clone(), parts: DRAWN.map(part).to_vec() }
    };
    all.iter().map(bar).collect()
}

/// Median and range.
fn spread(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    format!("{:.0} ({least:.0}-{most:.0})", median(values).unwrap_or(0.0))
}

/// Median and half of the range, in a few places.
fn short(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    format!("{:.0}±{:.0}", median(values).unwrap_or(0.0), (most - least) / 2.0)
}

/// For each run, the sum over some layers.
fn sum_of(values: &BTreeMap<&'static str, Vec<f64>>, layers: &[Layer]) -> Vec<f64> {
    let runs = values.values().map(Vec::len).max().unwrap_or(0);
    (0..runs).map(|run| layers.iter().filter_map(|layer| values.get(layer.text())?.get(run)).sum()).collect()
}

/// What VPI counts as TCP's processing of a segment: without IP, driver and application.
const TCP_PROPER: [Layer; 6] =
    [Layer::Tcp, Layer::Checksum, Layer::Write, Layer::WriteAndSum, Layer::Read, Layer::Timers];

fn table(all: &[Sized], runs: usize, segments: usize) -> String {
    let mut out = String::new();
    let rows: [(&str, &[Layer]); 11] = [
        ("link", &[Layer::Link]),
        ("IP", &[Layer::Ip]),
        ("TCP", &[Layer::Tcp]),
        ("checksum", &[Layer::Checksum]),
        ("copy, checksum in it", &[Layer::WriteAndSum, Layer::Write]),
        ("copy out", &[Layer::Read]),
        ("timers", &[Layer::Timers]),
        ("sockets", &[Layer::Sockets]),
        ("application", &[Layer::Application]),
        ("recorder", &[Layer::Recorder]),
        ("loop", &[Layer::Loop]),
    ];
    let _ = writeln!(
        out,
        "Nanoseconds a segment by its payload bytes, with the byte that answers it; in a stream with its share of\nacknowledgments. Median and half the range of {runs} runs of {segments} segments."
    );
    for (name, of_sender) in [("Sender", true), ("Receiver", false)] {
        let _ = write!(out, "\n{name:<21}");
        for sized in all {
            let _ = write!(out, "{:>11}", sized.name);
        }
        out.push('\n');
        let values = |sized: &'_ Sized| match of_sender {
            true => sized.sender.clone(),
            false => sized.receiver.clone(),
        };
        for (row, layers) in rows {
            let _ = write!(out, "{row:<21}");
            for sized in all {
                let _ = write!(out, "{:>11}", short(&sum_of(&values(sized), layers)));
            }
            out.push('\n');
        }
        let _ = write!(out, "{:<21}", "all");
        for sized in all {
            let every: Vec<Layer> = worked().collect();
            let _ = write!(out, "{:>11}", short(&sum_of(&values(sized), &every)));
        }
        out.push('\n');
    }
    out + &beside(all)
}

/// Ours beside VPI's.
fn beside(all: &[Sized]) -> String {
    let mut out = format!("\n{:<58}{:>10}{:>22}\n", "Beside VPI's", "VPI", "inhost");
    let Some(at_1460) = all.iter().find(|sized| sized.name == "1460") else { return out };
    let Some(at_1024) = all.iter().find(|sized| sized.name == "1024") else { return out };
    let share = |values: &BTreeMap<&'static str, Vec<f64>>, part: &[Layer]| {
        let (part, all) = (sum_of(values, part), sum_of(values, &TCP_PROPER));
        let each: Vec<f64> = part.iter().zip(all).map(|(part, all)| 100.0 * part / all.max(1.0)).collect();
        format!("{} %", spread(&each))
    };
    let mut row = |what: &str, vpi: String, ours: String| {
        let _ = writeln!(out, "{what:<58}{vpi:>10}{ours:>22}");
    };
    let per_cent = |share: f64| format!("{:.0} %", 100.0 * share);
    let copies = [Layer::Write, Layer::WriteAndSum];
    row("sender, 1460 bytes: copy, of TCP's time", per_cent(VPI_COPY_SHARE), "-".into());
    row("sender, 1460 bytes: checksum, of TCP's time", per_cent(VPI_CHECKSUM_SHARE), "-".into());
    row(
        "sender, 1460 bytes: copy and checksum, of TCP's time",
        per_cent(VPI_COPY_SHARE + VPI_CHECKSUM_SHARE),
        share(&at_1460.sender, &[copies[0], copies[1], Layer::Checksum]),
    );
    row("receiver, 1460 bytes: copy, of TCP's time", "-".into(), share(&at_1460.receiver, &[Layer::Read]));
    row(
        "receiver, 1460 bytes: checksum, of TCP's time",
        "-".into(),
        share(&at_1460.receiver, &[Layer::Checksum]),
    );
    let timers = sum_of(&at_1460.sender, &[Layer::Timers]);
    row(
        "sender: timers and acknowledgment, a segment",
        format!("{VPI_TIMER_US:.0} us"),
        format!("{} ns", spread(&timers)),
    );
    for (name, what, vpi) in [
        ("send", "1024 bytes: a segment is sent", VPI_SEND_US),
        ("send ack", "1024 bytes: an acknowledgment is taken", VPI_SEND_ACK_US),
        ("receive", "1024 bytes: a segment is received", VPI_RECEIVE_US),
        ("receive ack", "1024 bytes: an acknowledgment is prepared", VPI_RECEIVE_ACK_US),
    ] {
        let ours = at_1024.protocol.get(name).map(|values| spread(values)).unwrap_or_default();
        row(what, format!("{vpi:.0} us"), format!("{ours} ns"));
    }
    if let Some(stream) = all.iter().find(|sized| sized.name == STREAM) {
        row(
            "sender of a stream: copy and checksum, of TCP's time",
            "-".into(),
            share(&stream.sender, &[copies[0], copies[1], Layer::Checksum]),
        );
        row("receiver of a stream: copy, of TCP's time", "-".into(), share(&stream.receiver, &[Layer::Read]));
        row(
            "receiver of a stream: checksum, of TCP's time",
            "-".into(),
            share(&stream.receiver, &[Layer::Checksum]),
        );
        let per_ack = median(&stream.data_per_ack).unwrap_or(0.0);
        row("stream: segments with data for an acknowledgment", "2".into(), format!("{per_ack:.1}"));
    }
    out
}

/// Transfers of 40 KB: what their time was, and the shortest of them.
struct Transfers {
    total_us: Vec<f64>,
    idle: Vec<f64>,
    both: Both,
}

fn transfers_of(is_narrow: bool, count: usize) -> Result<Transfers, String> {
    let mut tcp = TcpConfig::default();
    if is_narrow {
        (tcp.send_buffer_initial_bytes, tcp.send_buffer_limit_bytes) = (SEND_BUFFER_BYTES, SEND_BUFFER_BYTES);
        // The window offered is half of it.
        let buffer_bytes = 2 * WINDOW_BYTES;
        (tcp.receive_buffer_initial_bytes, tcp.receive_buffer_limit_bytes) = (buffer_bytes, buffer_bytes);
    }
    let run = Run {
        mode: Mode::Full,
        tcp,
        write_bytes: WRITE_BYTES,
        writes: TRANSFER_BYTES / WRITE_BYTES,
        is_answered: false,
    };
    let (mut total_us, mut idle) = (Vec::new(), Vec::new());
    let mut shortest: Option<Both> = None;
    for _ in 0..count {
        let both = run.carry_out()?;
        let (total, instrument) = (both.sender.total_ns, both.sender.layer_ns(Layer::Instrument));
        total_us.push(total as f64 / 1e3);
        idle.push(100.0 * both.sender.layer_ns(Layer::Idle) as f64 / (total - instrument).max(1) as f64);
        if shortest.as_ref().is_none_or(|shortest| total < shortest.sender.total_ns) {
            shortest = Some(both);
        }
    }
    Ok(Transfers { total_us, idle, both: shortest.ok_or("no transfer was made")? })
}

fn transfer_table(narrow: &Transfers, wide: &Transfers) -> String {
    let mut out = format!(
        "\n40 KB in writes of 1 KB, {} transfers{:>26}{:>22}\n",
        narrow.idle.len(),
        "time, us",
        "sender idle"
    );
    let _ = writeln!(
        out,
        "{:<44}{:>14}{:>22}",
        "VPI, send buffer 4 KB, window 2 KB",
        "344380",
        format!("{:.1} %", 100.0 * VPI_IDLE_SHARE)
    );
    for (name, transfers) in
        [("inhost, send buffer 4 KB, window 2 KB", narrow), ("inhost, buffers as they size themselves", wide)]
    {
        let idle = format!("{} %", spread(&transfers.idle));
        let _ = writeln!(out, "{name:<40}{:>18}{idle:>22}", spread(&transfers.total_us));
    }
    out
}

/// Both hosts from shortly before the first segment with data.
fn time_line(title: &str, both: &Both) -> String {
    let is_data = |seen: &&inhost_layers::TransitionSeen| seen.payload_bytes.is_some_and(|bytes| bytes > 0);
    let first = both.sender.transitions.iter().find(is_data).map_or(0, |seen| seen.at_ns);
    let from_ns = first.saturating_sub(SHOWN_BEFORE_NS);
    let lines = [
        Line { title: "sender", transitions: &both.sender.transitions },
        Line { title: "receiver", transitions: &both.receiver.transitions },
    ];
    draw::time_line(title, &lines, from_ns, from_ns + SHOWN_NS)
}
