//! Sweeps, and their log.

use std::io::Write;

use inhost_inett::driver::{Swept, run_sweep};
use inhost_inett::face::Kernel;
use inhost_inett::result::{Outcome, Repetition, Transfer};
use inhost_inett::sweep::{Log, POINTS_MAX, Point, Record, Sweep, SweepError};

const TEXT: &str = "order_seed = 9\n[plan]\ntime_ms = 100\n[values]\nwrite_bytes = [512, 4096, 8192]\n\
    kind = ['stream', 'echo']\nthink_us = [{ constant = 0 }, { exponential = { mean = 10 } }]";

/// What was measured at a point of streams.
fn record(point: &Point) -> Record {
    let sent = Some(Transfer { bits_per_second: 1e6, ..Transfer::default() });
    let repetition = Repetition { number: 1, sent, ..Repetition::default() };
    let outcome = Some(Outcome::new(&point.plan, vec![repetition]));
    Record { point: point.name.clone(), outcome, error: None }
}

/// A folder of its own, which ends with the test.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("inett-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    fn log(&self) -> std::path::PathBuf {
        self.0.join("log.jsonl")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_order_follows_from_the_seed() {
    let names = |text: &str| -> Vec<String> {
        Sweep::from_toml(text).unwrap().points().iter().map(|point| point.name.clone()).collect()
    };
    let mixed = names(TEXT);
    assert_eq!(mixed, names(TEXT));
    let mut sorted = mixed.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), 12);
    assert_ne!(mixed, names(&TEXT.replace("order_seed = 9", "order_seed = 0")));
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_is() {
    assert!(matches!(Sweep::from_toml("[values]\nstreams = [1, 999]"), Err(SweepError::Plan(..))));
    assert!(matches!(Sweep::from_toml("[values]\nstrems = [1]"), Err(SweepError::Point(..))));
    assert_eq!(Sweep::from_toml("[values]\nstreams = []"), Err(SweepError::NoValues));
    let list = format!("[{}]", "1,".repeat(POINTS_MAX));
    let many = format!("[values]\nstreams = {list}\nload = [0, 1]");
    assert_eq!(Sweep::from_toml(&many), Err(SweepError::TooMany));
    assert!(matches!(Sweep::from_toml("= ="), Err(SweepError::Text(_))));
}

#[test]
fn a_sweep_that_was_interrupted_goes_on_where_it_was() {
    let folder = Folder::new("sweep");
    let path = folder.log();
    let sweep = Sweep::from_toml(&TEXT.replace("'stream', 'echo'", "'stream'")).unwrap();
    let points = sweep.points();
    let mut log = Log::open(&path).unwrap();
    assert!(!log.has(&points[0]));
    log.write(&record(&points[0])).unwrap();
    log.write(&Record { point: points[1].name.clone(), outcome: None, error: Some("refused".into()) })
        .unwrap();
    assert!(log.has(&points[0]) && !log.has(&points[1]));
    drop(log);
    // The power failed in the middle of a line.
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"point\":\"half").unwrap();
    let mut log = Log::open(&path).unwrap();
    assert!(log.has(&points[0]) && !log.has(&points[1]));
    log.write(&record(&points[2])).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert!(text.lines().all(|line| serde_json::from_str::<Record>(line).is_ok()), "{text}");
}

/// The name of a point has only the values that differ from point to point.
#[test]
fn a_point_whose_plan_has_changed_is_measured_again() {
    let folder = Folder::new("changed");
    let sweep = |time_ms: u64, share: f64| {
        let text = format!(
            "[plan]\ntime_ms = {time_ms}\nhalf_width_share = {share}\n[values]\nwrite_bytes = [512, 4096]"
        );
        Sweep::from_toml(&text).unwrap()
    };
    let mut log = Log::open(&folder.log()).unwrap();
    for point in sweep(100, 0.1).points() {
        log.write(&record(point)).unwrap();
    }
    for mut log in [log, Log::open(&folder.log()).unwrap()] {
        let has = |log: &Log, sweep: Sweep| sweep.points().iter().all(|point| log.has(point));
        assert!(has(&log, sweep(100, 0.1)));
        assert!(!has(&log, sweep(200, 0.1)) && !has(&log, sweep(100, 0.2)));
        // The last measurement of a point counts.
        for point in sweep(200, 0.1).points() {
            log.write(&record(point)).unwrap();
        }
        assert!(has(&log, sweep(200, 0.1)) && !has(&log, sweep(100, 0.1)));
        for point in sweep(100, 0.1).points() {
            log.write(&record(point)).unwrap();
        }
    }
}

/// A FIFO or /dev/zero never ends.
#[test]
fn a_log_that_is_not_a_regular_file_is_refused() {
    for path in ["/dev/zero", "/dev/full", "/tmp"] {
        let why = Log::open(path.as_ref()).unwrap_err().to_string();
        assert!(why.contains("not a regular file"), "{path}: {why}");
    }
}

#[test]
fn a_sweep_runs_and_a_second_call_has_nothing_to_do() {
    let folder = Folder::new("swept");
    let server = super::kernel::OurServer::start();
    let sweep =
        Sweep::from_toml("[plan]\ntime_ms = 50\n[values]\nwrite_bytes = [512, 8192]\nstreams = [1, 2]")
            .unwrap();
    let (_stopper, stop) = inhost_inett::driver::Stop::new();
    let mut counts = [0; 2];
    for _ in 0..2 {
        let mut log = Log::open(&folder.log()).unwrap();
        let mut told = |swept: Swept<'_>| match swept {
            Swept::Done(record) => {
                assert_eq!(record.error, None);
                counts[0] += 1;
            }
            Swept::WasDone(record) => {
                assert!(record.outcome.is_some());
                counts[1] += 1;
            }
            _ => {}
        };
        super::kernel::block_on(async {
            run_sweep(&Kernel::new(), server.at, &sweep, &mut log, &stop, &mut told).await.unwrap();
        });
    }
    assert_eq!(counts, [4, 4]);
}
