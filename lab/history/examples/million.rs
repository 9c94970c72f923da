//! Time of questions to a million records: `cargo run --release -p inhost-history --example million [FOLDER]`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Instant;

use inhost_event::{ReceiveCause, SendCause};
use inhost_history::{History, HistoryError, Limit, Limits, Order, Question, Record, Writer};

const RECORDS: u64 = 1_000_000;
/// They end within 30 days.
const APART_MS: u64 = 30 * 24 * 3_600_000 / RECORDS;
const BASE_MS: u64 = 1_790_000_000_000;
const AGAIN: usize = 15;
/// Batches of this size wait for each other.
const BATCH: u64 = 10_000;

/// A number that depends on `number` as chance would have it (splitmix64).
fn chance(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 20
}

fn record(number: u64) -> Record {
    let draw = |what: u64, below: u64| chance(number * 8 + what) % below;
    let age_ns = 1_000_000 << draw(0, 16);
    let mut send_ns = [0; SendCause::COUNT];
    send_ns[draw(1, SendCause::COUNT as u64) as usize] += age_ns / 3;
    send_ns[draw(2, SendCause::COUNT as u64) as usize] += age_ns - age_ns / 3;
    let mut receive_ns = [0; ReceiveCause::COUNT];
    receive_ns[draw(3, ReceiveCause::COUNT as u64) as usize] = age_ns;
    let remote = Ipv4Addr::from(0x0a00_0000 + draw(4, 50_000) as u32);
    Record {
        ended_ms: BASE_MS + number * APART_MS,
        local: "10.200.0.1:443".parse().expect("an endpoint"),
        remote: SocketAddr::new(IpAddr::V4(remote), 1024 + draw(5, 60_000) as u16),
        called: false,
        age_ns,
        sent_bytes: 1 << draw(6, 30),
        received_bytes: draw(6, 5000),
        retransmitted_segments: draw(7, 20).saturating_sub(10) as u32,
        retransmitted_bytes: 0,
        timeouts: 0,
        round_trip_ns: Some(20_000_000),
        error: number.is_multiple_of(50).then(|| "connection reset by the peer".to_owned()),
        send_ns,
        receive_ns,
    }
}

// What is measured takes real time.
#[allow(clippy::disallowed_methods)]
fn now() -> Instant {
    Instant::now()
}

fn main() -> Result<(), HistoryError> {
    let folder =
        std::env::args_os().nth(1).map_or_else(|| std::env::temp_dir().join("inhost-million"), PathBuf::from);
    let _ = std::fs::remove_dir_all(&folder);
    let mut limits = Limits::default();
    limits.connections = RECORDS;
    let began = now();
    let writer = Writer::open(&folder, limits)?;
    for first in (0..RECORDS).step_by(BATCH as usize) {
        writer.add((first..first + BATCH).map(record).collect());
        // No more than a few wait, as a host's would.
        while History::open(&folder)?
            .covers()?
            .is_none_or(|(_, last)| last + 40 * BATCH * APART_MS < record(first).ended_ms)
        {
            std::thread::yield_now();
        }
    }
    let lost = writer.take_lost();
    drop(writer);
    let seconds = began.elapsed().as_secs_f64();
    let bytes = std::fs::metadata(folder.join("history.sqlite")).map_or(0, |about| about.len());
    println!(
        "{RECORDS} records written in {seconds:.1} s, {lost} lost; {:.0} MB, {} bytes each",
        bytes as f64 / 1e6,
        bytes / RECORDS
    );

    let history = History::open(&folder)?;
    let end_ms = BASE_MS + RECORDS * APART_MS;
    let limits = Limit::named("receiver's window");
    let peer = |text: &str| text.parse().ok();
    let all = Question::default();
    let questions = [
        ("the latest", all.clone()),
        ("the slowest", Question { order: Order::Slowest, ..all.clone() }),
        ("of the last hour", Question { since_ms: end_ms - 3_600_000, ..all.clone() }),
        ("of one peer", Question { peer: peer("10.0.7.7/32"), ..all.clone() }),
        ("of a network", Question { peer: peer("10.0.0.0/16"), ..all.clone() }),
        ("of a network that has none", Question { peer: peer("192.0.2.0/24"), ..all.clone() }),
        ("of a cause", Question { limits: limits.clone(), order: Order::Slowest, ..all.clone() }),
        ("of a cause, from one peer", Question { limits, peer: peer("10.0.7.7/32"), ..all.clone() }),
        ("slower than 1 kbit/s", Question { most_rate: 1000, ..all.clone() }),
        ("with an error", Question { failed: Some(true), ..all.clone() }),
        ("of a port", Question { port: Some(2000), ..all }),
    ];
    println!("{:<28} {:>9} {:>9} {:>9}", "question", "least ms", "median ms", "most ms");
    for (name, question) in &questions {
        show(name, || history.ask(question).map(drop))?;
    }
    show("sums of 30 days, 80 bars", || history.spans(BASE_MS, end_ms, 9 * 3_600_000).map(drop))?;
    // What a database without these indexes and sums takes: the same sum, over all rows.
    let db = rusqlite::Connection::open(folder.join("history.sqlite"))?;
    let scan = "SELECT count(*), sum(sent), sum(s3) FROM connection NOT INDEXED WHERE ended > 0";
    show("(a scan of all rows)", || Ok(db.query_row(scan, [], |row| row.get::<_, i64>(0)).map(drop)?))?;
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}

fn show(name: &str, mut ask: impl FnMut() -> Result<(), HistoryError>) -> Result<(), HistoryError> {
    let mut times = Vec::new();
    for _ in 0..AGAIN {
        let began = now();
        ask()?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!("{name:<28} {:>9.2} {:>9.2} {:>9.2}", times[0], times[AGAIN / 2], times[AGAIN - 1]);
    Ok(())
}
