//! What is measured: each case a few times, in turns, so that disturbances of the machine meet all of them alike.

use super::super::statistics::median;
use serde::Serialize;
use std::fmt::Write;

/// One way of doing one thing.
pub struct Case {
    /// What is done; rows of the same are compared.
    pub what: &'static str,
    /// By whom, and how.
    pub who: &'static str,
    /// Whether the others are compared with it.
    pub is_peer: bool,
    /// Does it once. It has its own thread, which ends in the namespaces that it makes.
    pub run: Box<dyn Fn() -> Result<Sample, String> + Send + Sync>,
}

/// One measurement.
#[derive(Clone, Copy)]
pub struct Sample {
    /// Elapsed time.
    pub seconds: f64,
    /// The most memory that the program under test had, with what it started.
    pub memory_kib: u64,
    /// The same after a first transfer of a hundredth, where there was one.
    pub small_kib: Option<u64>,
}

/// What all measurements of a case showed.
#[derive(Serialize)]
pub struct Row {
    what: &'static str,
    who: &'static str,
    is_peer: bool,
    seconds: Vec<f64>,
    memory_kib: u64,
    small_kib: Option<u64>,
}

/// Cases that belong together, with how much each of them does.
#[derive(Serialize)]
pub struct Group {
    /// What stands above.
    pub title: String,
    /// What is moved.
    pub amount: f64,
    /// In what: `MB`, `files`.
    pub unit: &'static str,
    /// One for each case.
    pub rows: Vec<Row>,
}

/// Measures every case so often.
pub fn measure(cases: Vec<Case>, repeats: usize) -> Result<Vec<Row>, String> {
    let empty = |case: &Case| Row {
        what: case.what,
        who: case.who,
        is_peer: case.is_peer,
        seconds: Vec::new(),
        memory_kib: 0,
        small_kib: None,
    };
    let mut rows: Vec<Row> = cases.iter().map(empty).collect();
    for _ in 0..repeats {
        for (case, row) in cases.iter().zip(&mut rows) {
            let done = std::thread::scope(|scope| scope.spawn(&case.run).join());
            let sample = done.map_err(|_| "a run panicked")?;
            let sample = sample.map_err(|e| format!("{} {}: {e}", case.what, case.who))?;
            let Sample { seconds, memory_kib, small_kib } = sample;
            eprintln!("{} {}: {seconds:.2} s, {memory_kib} KiB", case.what, case.who);
            row.seconds.push(seconds);
            row.memory_kib = row.memory_kib.max(memory_kib);
            row.small_kib = row.small_kib.max(small_kib);
        }
    }
    Ok(rows)
}

impl Group {
    /// As the page shows it.
    pub fn to_table(&self) -> String {
        let mut table = format!("{}\n", self.title);
        let rate = format!("{}/s", self.unit);
        let (a, b, c, d) = ("what", "who", "seconds", "least .. most");
        let (e, f, g) = ("ratio", "small MB", "memory MB");
        let _ = writeln!(table, "{a:<15} {b:<30} {c:>8} {d:>16} {rate:>8} {e:>6} {f:>8} {g:>9}");
        for row in &self.rows {
            let peer = self.rows.iter().find(|other| other.is_peer && other.what == row.what);
            let peer = peer.and_then(|peer| median(&peer.seconds));
            let (Some(seconds), Some(peer)) = (median(&row.seconds), peer) else { continue };
            let least = row.seconds.iter().copied().fold(f64::INFINITY, f64::min);
            let most = row.seconds.iter().copied().fold(0.0, f64::max);
            let spread = format!("{least:.2} .. {most:.2}");
            let memory = |kib: u64| format!("{:.1}", kib as f64 / 1024.0);
            let _ = writeln!(
                table,
                "{:<15} {:<30} {seconds:>8.2} {spread:>16} {:>8.0} {:>6.2} {:>8} {:>9}",
                row.what,
                row.who,
                self.amount / seconds,
                peer / seconds,
                row.small_kib.map(memory).unwrap_or_default(),
                memory(row.memory_kib),
            );
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_compared_with_the_peer_of_its_kind() {
        let case = |what, who, is_peer, seconds| Case {
            what,
            who,
            is_peer,
            run: Box::new(move || Ok(Sample { seconds, memory_kib: 2048, small_kib: Some(1024) })),
        };
        let cases =
            vec![case("get", "a", true, 2.0), case("get", "b", false, 1.0), case("put", "a", true, 8.0)];
        let rows = measure(cases, 3).unwrap();
        let table = Group { title: "t".into(), amount: 100.0, unit: "MB", rows }.to_table();
        let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[3], ["get", "b", "1.00", "1.00", "..", "1.00", "100", "2.00", "1.0", "2.0"]);
        assert_eq!(words[4][..8], ["put", "a", "8.00", "8.00", "..", "8.00", "12", "1.00"]);
    }

    #[test]
    fn a_failure_says_whose_it_is() {
        let run = Box::new(|| Err("no".to_owned()));
        let case = Case { what: "get", who: "a", is_peer: true, run };
        assert_eq!(measure(vec![case], 1).err().as_deref(), Some("get a: no"));
    }
}
