//! A flood of SYNs from random addresses, beside transfers that go on, in simulation: the rate of the transfers, the
//! memory, whether callers still get through, and what a SYN costs of a core.

use super::bulk::{Bulk, BulkConfig, address};
use super::chart::{self, Axis, Line};
use super::machine;
use super::page;
use inhost_base::{Cidr, Duration, Endpoint, Ipv4Addr, LinkId, Random, Sequence};
use inhost_event::Ignore;
use inhost_sim::{LinkConfig, QueueConfig};
use inhost_stack::{DuplicateDetection, InterfaceConfig, ListenOptions, Medium, StackConfig, SynCookies};
use inhost_wire::ipv4::Ipv4Header;
use inhost_wire::protocol;
use inhost_wire::tcp::{Flags, TcpHeader, TcpOptions};
use serde::Serialize;
use std::cell::Cell;
use std::fmt::Write;
use std::rc::Rc;

/// SYNs in a second.
const SYNS_A_SECOND: u64 = 100_000;
/// The flood begins, and ends, so long after the beginning; the end of the run follows as long after that as it began.
const FLOOD_S: (u64, u64) = (4, 14);
/// Transfers that go on.
const TRANSFERS: usize = 10;
/// Bits a second of the line that carries them.
const RATE_BITS_PER_SECOND: u64 = 1_000_000_000;
/// Under flood they keep at least this share of their rate.
const GOAL_SHARE: f64 = 0.9;
/// Memory may grow by so much before it is called growth: the entries of the SYN queue, and packets under way.
const FLAT_BYTES: u64 = 1 << 20;
/// The listener under attack.
const PORT: u16 = 80;
/// The host under attack, on the line by which the flood comes, and the router at its other end.
const ATTACKED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// Callers, one after the other, and how long each waits.
const CALLER_EVERY: Duration = Duration::from_millis(100);
/// See above.
const CALLER_WAITS: Duration = Duration::from_secs(3);

/// What a listener shows.
#[derive(Serialize)]
struct Shown {
    listener: &'static str,
    /// Of all transfers, in each second.
    mbit_by_second: Vec<f64>,
    /// Under flood, of what it was before.
    share: f64,
    /// Of the host under attack, in each second: buffers and all other memory of the process.
    bytes_by_second: Vec<u64>,
    grown_bytes: u64,
    /// Callers that were served under flood, of all.
    served: (u32, u32),
    /// A core's time for one SYN with its answer, the simulator's part included.
    syn_ns: f64,
    met: bool,
}

/// Arguments of `inhost-bench figures flood`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// SYNs a second; the page is written where there are as many as it says
    #[arg(long, value_name = "SYNS", default_value_t = SYNS_A_SECOND)]
    rate: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `inhost-bench figures flood …`
pub fn command(options: &Options) -> Result<(), String> {
    let Options { rate: syns, json } = *options;
    eprintln!("{}, {}", machine::describe(), machine::today());
    let kinds = [
        ("cookies when full", SynCookies::WhenFull),
        ("cookies always", SynCookies::Always),
        ("no cookies", SynCookies::Off),
    ];
    let shown = kinds
        .into_iter()
        .map(|(name, cookies)| {
            let shown = run(name, cookies, syns)?;
            eprintln!("{name}: {:.1} %", 100.0 * shown.share);
            Ok(shown)
        })
        .collect::<Result<Vec<_>, String>>()?;
    match json {
        true => println!("{}", serde_json::to_string_pretty(&shown).map_err(|e| e.to_string())?),
        false => print!("{}", to_table(&shown, syns)),
    }
    if syns != SYNS_A_SECOND {
        return Ok(());
    }
    page::put("flood", &to_table(&shown, syns))?;
    draw(&shown)
}

fn run(listener: &'static str, cookies: SynCookies, syns_a_second: u64) -> Result<Shown, String> {
    let (mut bulk, line) = world(cookies)?;
    let served = Rc::new(Cell::new(0));
    let mut random = Random::from_number(9);
    let (mut mbit_by_second, mut bytes_by_second) = (Vec::new(), Vec::new());
    let (mut quiet_s, mut flooded_s, mut callers) = (0.0, 0.0, 0);
    for second in 0..FLOOD_S.0 + FLOOD_S.1 {
        let before: u64 = bulk.received_bytes().iter().sum();
        let is_flooded = (FLOOD_S.0..FLOOD_S.1).contains(&second);
        let began_s = machine::core_seconds();
        for millis in 0..1000 {
            if is_flooded {
                for _ in 0..syns_a_second / 1000 {
                    let (syn, length) = syn(&mut random);
                    bulk.network.inject(line, 0, &syn[..length]);
                }
                if millis % CALLER_EVERY.as_millis() == 0 {
                    callers += 1;
                    call(&bulk, &served);
                }
            }
            bulk.pass(Duration::from_millis(1))?;
        }
        let took_s = machine::core_seconds() - began_s;
        match second {
            second if is_flooded && second > FLOOD_S.0 => flooded_s += took_s,
            // The first second is slow start.
            1.. if second < FLOOD_S.0 => quiet_s += took_s,
            _ => {}
        }
        let carried = bulk.received_bytes().iter().sum::<u64>() - before;
        mbit_by_second.push(carried as f64 * 8e-6);
        bytes_by_second.push(memory_bytes(&bulk));
    }
    let of = |from: u64, to: u64| &mbit_by_second[from as usize..to as usize];
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let share = mean(of(FLOOD_S.0, FLOOD_S.1)) / mean(of(1, FLOOD_S.0));
    let flooded_bytes = bytes_by_second[FLOOD_S.0 as usize..FLOOD_S.1 as usize].iter().copied();
    let grown_bytes =
        flooded_bytes.max().unwrap_or(0).saturating_sub(bytes_by_second[FLOOD_S.0 as usize - 1]);
    let (quiet, flooded) = (quiet_s / (FLOOD_S.0 - 1) as f64, flooded_s / (FLOOD_S.1 - FLOOD_S.0 - 1) as f64);
    Ok(Shown {
        listener,
        share,
        grown_bytes,
        served: (served.get(), callers),
        syn_ns: (flooded - quiet) / syns_a_second as f64 * 1e9,
        met: share >= GOAL_SHARE && grown_bytes <= FLAT_BYTES,
        mbit_by_second,
        bytes_by_second,
    })
}

/// The transfers, the listener, and the line by which the flood comes, with its number.
fn world(cookies: SynCookies) -> Result<(Bulk, usize), String> {
    let link = LinkConfig {
        delay: Duration::from_millis(5),
        rate_bits_per_second: Some(RATE_BITS_PER_SECOND),
        queue: QueueConfig::tail_drop(1000),
        ..LinkConfig::default()
    };
    let mut bulk = Bulk::new(BulkConfig {
        links: link.into(),
        stack: {
            let mut config = StackConfig::default();
            config.memory_limit_bytes = 256 << 20;
            config
        },
        starts: vec![Duration::ZERO; TRANSFERS],
        seed: 1,
    })?;
    let network = &mut bulk.network;
    // Frames without a sender would be attributed to the apparent sender.
    network.check_nothing();
    let router = network.add_host(StackConfig::default(), 7);
    let interface = |own: Ipv4Addr| {
        let mut interface = InterfaceConfig::new("flood", Medium::Ip);
        interface.duplicate_detection = DuplicateDetection::Off;
        Cidr::new(own, 24).map(|own| interface.with_address(own)).map_err(|e| e.to_string())
    };
    let ends = [(1, interface(ATTACKED)?), (router, interface(ROUTER)?)];
    let (line, [link, _]): (usize, [LinkId; 2]) =
        network.join(ends, LinkConfig::default(), 2).map_err(|e| e.to_string())?;
    let host = network.host(1).clone();
    host.with_stack(|stack, now| {
        stack
            .with_ip(now, &mut Ignore, |ip, _| ip.add_gateway(link, ROUTER.into(), 1))
            .map_err(|e| e.to_string())
    })?;
    let mut options = ListenOptions::default();
    options.syn_cookies = cookies;
    let at = Endpoint::new(Ipv4Addr::UNSPECIFIED, PORT);
    let listener = host.listen(at, options).map_err(|e| e.to_string())?;
    host.clone()
        .spawn(async move {
            while let Ok(stream) = listener.accept().await {
                // What it does for its callers: a byte, and good-bye.
                let _ = stream.send(b"!", Default::default()).await;
                stream.shutdown();
            }
        })
        .detach();
    Ok((bulk, line))
}

/// A caller that is none of the flood.
fn call(bulk: &Bulk, served: &Rc<Cell<u32>>) {
    let (host, served) = (bulk.network.host(0).clone(), served.clone());
    let calls = host.clone();
    let caller = async move {
        let stream = calls.connect(Endpoint::new(address(1), PORT)).await.ok()?;
        stream.receive(&mut [0]).await.ok().filter(|count| *count == 1)
    };
    let waits = host.clone();
    host.spawn(async move {
        if let Ok(Some(_)) = waits.timeout(CALLER_WAITS, caller).await {
            served.set(served.get() + 1);
        }
    })
    .detach();
}

/// A SYN as today's systems send it, from anywhere, and its length.
fn syn(random: &mut Random) -> ([u8; 64], usize) {
    let draw = random.public_u64().to_le_bytes();
    // Class A networks but those of one's own host and of private use.
    let source = Ipv4Addr::new(11 + draw[0] % 100, draw[1], draw[2], draw[3].max(1));
    let header = TcpHeader {
        source_port: 1024 + u16::from_le_bytes([draw[4], draw[5]]) % 60_000,
        destination_port: PORT,
        sequence: Sequence(random.public_u64() as u32),
        acknowledgment: Sequence(0),
        flags: Flags::SYN,
        window: 64_240,
        urgent_pointer: 0,
        options: TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some((u32::from_le_bytes([draw[6], draw[7], 1, 2]), 0)),
            ..TcpOptions::NONE
        },
    };
    let segment = header.with_payload(&[]);
    let mut packet = [0; 64];
    let length = 20 + segment.length();
    Ipv4Header::new(source, ATTACKED, protocol::TCP, segment.length() as u16).emit(&mut packet);
    segment.emit(source.into(), ATTACKED.into(), &mut packet[20..length]);
    (packet, length)
}

/// All that the process has allocated and not freed, buffers that hosts keep for reuse left out.
fn memory_bytes(bulk: &Bulk) -> u64 {
    let all = crate::ALLOCATOR.stats();
    let live = all.bytes_allocated as u64 - all.bytes_deallocated as u64;
    let idle: usize =
        bulk.network.hosts().map(|host| host.with_stack(|stack, _| stack.memory().idle_bytes())).sum();
    live.saturating_sub(idle as u64)
}

fn to_table(shown: &[Shown], syns: u64) -> String {
    let mut table = format!(
        "{syns} SYNs a second from random addresses, {TRANSFERS} transfers over 1 Gbit/s, in simulation\n"
    );
    let _ = writeln!(
        table,
        "{:<18} {:>9} {:>9} {:>7}  {:>10}  {:>9}  {:>8} {:>10}  met",
        "listener", "before", "flooded", "share", "memory", "callers", "a SYN", "of a core"
    );
    let _ = writeln!(
        table,
        "{:<18} {:>9} {:>9} {:>7}  {:>10}  {:>9}  {:>8} {:>10}",
        "", "Mbit/s", "Mbit/s", "", "grew KiB", "served", "ns", ""
    );
    for s in shown {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let before = mean(&s.mbit_by_second[1..FLOOD_S.0 as usize]);
        let _ = writeln!(
            table,
            "{:<18} {before:>9.1} {:>9.1} {:>5.1} %  {:>10}  {:>9}  {:>8.0} {:>8.1} %  {}",
            s.listener,
            before * s.share,
            100.0 * s.share,
            s.grown_bytes >> 10,
            format!("{}/{}", s.served.0, s.served.1),
            s.syn_ns,
            s.syn_ns * syns as f64 / 1e7,
            if s.met { "yes" } else { "NO" }
        );
    }
    table
}

fn draw(shown: &[Shown]) -> Result<(), String> {
    let seconds = (FLOOD_S.0 + FLOOD_S.1) as f64;
    let lines = |value: &dyn Fn(&Shown) -> Vec<f64>| -> Vec<Line> {
        let line = |s: &Shown| Line {
            name: s.listener.into(),
            points: (1..).map(f64::from).zip(value(s)).collect(),
            dots: false,
        };
        shown.iter().map(line).collect()
    };
    let title = format!("flood from second {} to {}", FLOOD_S.0, FLOOD_S.1);
    let x = || Axis { name: "second".into(), range: (0.0, seconds), logarithmic: false };
    chart::lines(
        "docs/figures/flood-rate.svg",
        &format!("Transfers beside 100,000 SYNs a second; {title} (dashed: the goal)"),
        [x(), Axis { name: "Mbit/s of payload".into(), range: (0.0, 1000.0), logarithmic: false }],
        &lines(&|s| s.mbit_by_second.clone()),
        Some(GOAL_SHARE * 965.0),
    )?;
    let mib = |s: &Shown| s.bytes_by_second.iter().map(|bytes| *bytes as f64 / 1048576.0).collect::<Vec<_>>();
    let most = shown.iter().flat_map(mib).fold(1.0, f64::max);
    chart::lines(
        "docs/figures/flood-memory.svg",
        &format!("Memory of all hosts beside 100,000 SYNs a second; {title}"),
        [x(), Axis { name: "MiB".into(), range: (0.0, 1.2 * most), logarithmic: false }],
        &lines(&mib),
        None,
    )
}
