//! Files by inhost's servers and clients, beside those of others, in the same run.

mod carry;
mod tftp;

use super::machine;
use super::options::Options;
use super::page;
use super::statistics::median;
use serde::Serialize;
use std::fmt::Write;

/// The size that the page shows.
const MEGABYTES: u64 = 100;
const REPEATS: usize = 3;

/// What one program showed.
#[derive(Serialize)]
struct Row {
    /// What was done.
    what: &'static str,
    /// By whom, and how.
    who: &'static str,
    /// Time of each repetition.
    seconds: Vec<f64>,
    /// The most memory that it had at a time.
    memory_kib: u64,
    /// The row that it is compared with.
    is_peer: bool,
}

/// `inhost-bench figures files …`
pub fn command(mut options: Options) -> Result<(), String> {
    let json = options.flag("--json");
    let megabytes = options.value("--megabytes")?.unwrap_or(MEGABYTES);
    let repeats = options.value("--repeats")?.unwrap_or(REPEATS);
    options.end()?;
    eprintln!("{}, {}", machine::describe(), machine::today());
    let rows = tftp::rows(megabytes * 1_000_000, repeats)?;
    if json {
        println!("{}", serde_json::to_string_pretty(&rows).map_err(|e| e.to_string())?);
        return Ok(());
    }
    let table = to_table(&rows, megabytes);
    print!("{table}");
    if (megabytes, repeats) == (MEGABYTES, REPEATS) { page::put("files", &table) } else { Ok(()) }
}

fn to_table(rows: &[Row], megabytes: u64) -> String {
    let mut table = format!("TFTP of {megabytes} MB, blocks of 1428 octets, median of the repetitions\n");
    let heads = ("what", "who", "s", "MB/s", "ratio", "memory");
    let (a, b, c, d, e, f) = heads;
    let _ = writeln!(table, "{a:<16} {b:<40} {c:>7} {d:>7} {e:>6} {f:>9}");
    for row in rows {
        let rate = |row: &Row| median(&row.seconds).map(|seconds| megabytes as f64 / seconds);
        let peer = rows.iter().find(|other| other.is_peer && other.what == row.what).and_then(rate);
        let (Some(seconds), Some(own), Some(peer)) = (median(&row.seconds), rate(row), peer) else {
            continue;
        };
        let _ = writeln!(
            table,
            "{:<16} {:<40} {seconds:>7.2} {own:>7.1} {:>6.2} {:>6.1} MB",
            row.what,
            row.who,
            own / peer,
            row.memory_kib as f64 / 1024.0
        );
    }
    table
}
