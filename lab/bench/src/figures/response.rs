//! Faster cells, in simulation: what one connection carries at a given loss, beside CUBIC's response function, and
//! how it fills 10 Gbit/s over 100 ms.

use super::bulk::{Bulk, BulkConfig};
use super::chart::{self, Axis, Line};
use super::machine;
use super::page;
use inhost_base::Duration;
use inhost_sim::{LinkConfig, Loss, QueueConfig, QueueLimit, WhenFull};
use inhost_stack::StackConfig;
use serde::Serialize;
use std::fmt::Write;

/// Payload of one segment at MTU 1500 with timestamps.
const SEGMENT_BYTES: f64 = 1448.0;
/// Memory of each host. The limits of TCP are those of its profile; a host's memory has to hold what they allow.
const MEMORY_BYTES: usize = 2 << 30;
/// Losses over which a mean is taken, after so many that are not counted.
const LOSSES: f64 = 12.0;
/// See above.
const SETTLING_LOSSES: f64 = 5.0;
/// At least so much is counted, and at most, in seconds.
const COUNTED_S: (f64, f64) = (10.0, 600.0);
/// The share of 10 Gbit/s that one connection reaches in seconds 10 to 30.
const GOAL_SHARE: f64 = 0.9;

/// What one loss at one rate and round trip showed.
#[derive(Serialize)]
struct Point {
    rate_gbit: f64,
    round_trip_ms: u64,
    loss: f64,
    measured_mbit: f64,
    expected_mbit: f64,
    ratio: f64,
}

/// One connection on an empty path.
#[derive(Serialize)]
struct Fill {
    rate_gbit: f64,
    round_trip_ms: u64,
    gbit_by_second: Vec<f64>,
    /// In seconds 10 to 30, of the link's rate less its headers.
    share: f64,
    met: bool,
    /// Simulated, of both directions, in a second of one core.
    segments_a_second: f64,
}

/// Rates and losses that the page shows.
const RATES_GBIT: [f64; 2] = [1.0, 10.0];
const LOSS_RATES: [f64; 4] = [1e-3, 1e-4, 1e-5, 1e-6];

/// Arguments of `inhost-bench figures response`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Rates of the link, between commas [default: 1,10]
    #[arg(long, value_name = "GBIT", value_delimiter = ',')]
    rates: Vec<f64>,
    /// Shares of packets that are lost, between commas [default: 1e-3,1e-4,1e-5,1e-6]
    #[arg(long, value_name = "SHARE", value_delimiter = ',')]
    losses: Vec<f64>,
    /// Only how an empty line is filled
    #[arg(long)]
    fill: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `inhost-bench figures response …`
pub fn command(options: &Options) -> Result<(), String> {
    let Options { rates, losses, fill: fill_only, json } = options;
    let is_whole = !fill_only && rates.is_empty() && losses.is_empty();
    let rates = if rates.is_empty() { &RATES_GBIT[..] } else { rates };
    let losses = if losses.is_empty() { &LOSS_RATES[..] } else { losses };
    eprintln!("{}, {}", machine::describe(), machine::today());
    let mut fills = Vec::new();
    for &rate_gbit in rates {
        fills.push(fill(rate_gbit, 100)?);
    }
    let mut points = Vec::new();
    for &rate_gbit in rates.iter().filter(|_| !fill_only) {
        for round_trip_ms in [10, 100] {
            for &loss in losses {
                points.push(point(rate_gbit, round_trip_ms, loss)?);
            }
        }
    }
    match json {
        true => println!("{}", serde_json::to_string_pretty(&(&fills, &points)).map_err(|e| e.to_string())?),
        false => print!("{}", to_table(&fills, &points)),
    }
    // The page shows the whole, not what somebody tries.
    if !is_whole {
        return Ok(());
    }
    page::put("response", &to_table(&fills, &points))?;
    draw(&fills, &points)
}

/// One connection over a link with a queue of one bandwidth-delay product, with every `1 / loss`th packet lost.
fn bulk(rate_gbit: f64, round_trip_ms: u64, loss: f64) -> Result<Bulk, String> {
    let rate_bits_per_second = (rate_gbit * 1e9) as u64;
    let product_bytes = rate_bits_per_second / 8 * round_trip_ms / 1000;
    let queue = QueueConfig {
        limit: QueueLimit::Bytes(product_bytes as usize),
        when_full: WhenFull::Drop,
        ..QueueConfig::default()
    };
    let link = LinkConfig {
        delay: Duration::from_millis(round_trip_ms).divided_by(2),
        rate_bits_per_second: Some(rate_bits_per_second),
        queue,
        loss: if loss > 0.0 { Loss::EveryNth((1.0 / loss).round() as u64) } else { Loss::None },
        ..LinkConfig::default()
    };
    let back = LinkConfig { loss: Loss::None, ..link.clone() };
    let mut stack = StackConfig::default();
    stack.memory_limit_bytes = MEMORY_BYTES;
    let mut bulk =
        Bulk::new(BulkConfig { links: [link, back], stack, starts: vec![Duration::ZERO], seed: 1 })?;
    bulk.network.check_nothing();
    Ok(bulk)
}

fn fill(rate_gbit: f64, round_trip_ms: u64) -> Result<Fill, String> {
    let mut bulk = bulk(rate_gbit, round_trip_ms, 0.0)?;
    let began_s = machine::core_seconds();
    let mut gbit_by_second = Vec::new();
    for _ in 0..30 {
        let rates = bulk.rates(Duration::ZERO, Duration::from_secs(1))?;
        gbit_by_second.push(rates.iter().sum::<f64>() / 1e9);
    }
    let segments: u64 = bulk.statistics().iter().map(|s| s.delivered).sum();
    let payload_share = SEGMENT_BYTES / 1500.0;
    let share = gbit_by_second[10..].iter().sum::<f64>() / 20.0 / (rate_gbit * payload_share);
    Ok(Fill {
        rate_gbit,
        round_trip_ms,
        gbit_by_second,
        share,
        met: share >= GOAL_SHARE,
        segments_a_second: segments as f64 / (machine::core_seconds() - began_s),
    })
}

fn point(rate_gbit: f64, round_trip_ms: u64, loss: f64) -> Result<Point, String> {
    let expected_mbit = expected_bits_per_second(rate_gbit, round_trip_ms, loss) / 1e6;
    let between_losses_s = SEGMENT_BYTES * 8.0 / (expected_mbit * 1e6 * loss);
    let counted_s = (LOSSES * between_losses_s).clamp(COUNTED_S.0, COUNTED_S.1);
    let time = |seconds: f64| Duration::from_millis((seconds * 1000.0) as u64);
    let mut bulk = bulk(rate_gbit, round_trip_ms, loss)?;
    let settling_s = (counted_s * SETTLING_LOSSES / LOSSES).max(5.0);
    let rates = bulk.rates(time(settling_s), time(counted_s))?;
    let measured_mbit = rates.iter().sum::<f64>() / 1e6;
    eprintln!(
        "{rate_gbit} Gbit/s, {round_trip_ms} ms, {loss:e}: {measured_mbit:.1} of {expected_mbit:.1} Mbit/s"
    );
    let ratio = measured_mbit / expected_mbit;
    Ok(Point { rate_gbit, round_trip_ms, loss, measured_mbit, expected_mbit, ratio })
}

/// RFC 9438 §5.1's mean window where every `1 / loss`th packet is lost, or Reno's where that is larger (§4.3), as
/// payload in a second; at most what the link carries.
fn expected_bits_per_second(rate_gbit: f64, round_trip_ms: u64, loss: f64) -> f64 {
    let round_trip_s = round_trip_ms as f64 / 1000.0;
    let cubic = 1.054 * (round_trip_s / loss).powf(0.75);
    let reno = (1.5 / loss).sqrt();
    let window_bits = cubic.max(reno) * SEGMENT_BYTES * 8.0;
    (window_bits / round_trip_s).min(rate_gbit * 1e9 * SEGMENT_BYTES / 1500.0)
}

fn to_table(fills: &[Fill], points: &[Point]) -> String {
    let mut table = "One connection on an empty path, the profile's default limits\n".to_owned();
    let _ = writeln!(
        table,
        "{:>7} {:>6}  {:>10} {:>10}  {:>11}  met",
        "Gbit/s", "RTT ms", "s 10..30", "of link", "segments/s"
    );
    for f in fills {
        let mean = f.gbit_by_second[10..].iter().sum::<f64>() / 20.0;
        let met = if f.met { "yes" } else { "NO" };
        let _ = writeln!(
            table,
            "{:>7} {:>6}  {mean:>10.3} {:>8.1} %  {:>11.0}  {met}",
            f.rate_gbit,
            f.round_trip_ms,
            100.0 * f.share,
            f.segments_a_second
        );
    }
    if points.is_empty() {
        return table;
    }
    let _ =
        writeln!(table, "\nOne connection with every nth packet lost, beside RFC 9438's response function");
    let _ = writeln!(
        table,
        "{:>7} {:>6} {:>8}  {:>12} {:>12}  {:>6}",
        "Gbit/s", "RTT ms", "loss", "Mbit/s", "RFC 9438", "ratio"
    );
    for p in points {
        let _ = writeln!(
            table,
            "{:>7} {:>6} {:>8.0e}  {:>12.2} {:>12.2}  {:>6.2}",
            p.rate_gbit, p.round_trip_ms, p.loss, p.measured_mbit, p.expected_mbit, p.ratio
        );
    }
    table
}

fn draw(fills: &[Fill], points: &[Point]) -> Result<(), String> {
    let lines: Vec<Line> = fills
        .iter()
        .map(|f| Line {
            name: format!("{} Gbit/s link", f.rate_gbit),
            points: (1..).map(f64::from).zip(f.gbit_by_second.iter().copied()).collect(),
            dots: false,
        })
        .collect();
    let most = fills.iter().map(|f| f.rate_gbit).fold(0.0, f64::max);
    chart::lines(
        "docs/figures/fill.svg",
        "One connection over 100 ms without loss (dashed: 90 % of 10 Gbit/s)",
        [
            Axis { name: "second".into(), range: (0.0, 30.0), logarithmic: false },
            Axis { name: "Gbit/s of payload".into(), range: (0.0, most), logarithmic: false },
        ],
        &lines,
        (most == 10.0).then_some(GOAL_SHARE * most),
    )?;
    if points.is_empty() {
        return Ok(());
    }
    let mut lines = Vec::new();
    for round_trip_ms in [10, 100] {
        let of = |rate: f64| {
            points.iter().filter(move |p| p.round_trip_ms == round_trip_ms && p.rate_gbit == rate)
        };
        let fastest = points.iter().map(|p| p.rate_gbit).fold(0.0, f64::max);
        lines.push(Line {
            name: format!("RFC 9438, {round_trip_ms} ms"),
            points: of(fastest).map(|p| (p.loss, p.expected_mbit)).collect(),
            dots: false,
        });
        for rate in [1.0, 10.0] {
            let points: Vec<_> = of(rate).map(|p| (p.loss, p.measured_mbit)).collect();
            if !points.is_empty() {
                lines.push(Line {
                    name: format!("inhost, {round_trip_ms} ms, {rate} Gbit/s"),
                    points,
                    dots: true,
                });
            }
        }
    }
    chart::lines(
        "docs/figures/response.svg",
        "Throughput against loss: RFC 9438's response function, and inhost in simulation",
        [
            Axis { name: "share of packets lost".into(), range: (1e-7, 1e-2), logarithmic: true },
            Axis { name: "Mbit/s of payload".into(), range: (1.0, 1e4), logarithmic: true },
        ],
        &lines,
        None,
    )
}
