//! Records of closed connections: what is kept, what is removed, what is answered.

use std::net::SocketAddr;
use std::path::PathBuf;

use inhost_event::{ReceiveCause, SendCause};
use inhost_history::{History, HistoryError, Limit, Limits, Order, Question, Record, Writer};
use inhost_interop::until;

/// A folder of a test, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }
    fn write(&self, limits: Limits, records: &[Record]) {
        let writer = Writer::open(&self.0, limits).unwrap();
        records.chunks(1000).for_each(|some| writer.add(some.to_vec()));
    }
    fn ask(&self, question: &Question) -> Vec<u64> {
        let answer = History::open(&self.0).unwrap().ask(question).unwrap();
        answer.records.iter().map(|record| record.sent_bytes).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Number `number`, which sent so many bytes and ended in that second after `base_ms`.
fn record(base_ms: u64, number: u64) -> Record {
    let mut send_ns = [0; SendCause::COUNT];
    let cause =
        if number.is_multiple_of(3) { SendCause::ReceiverWindow } else { SendCause::CongestionWindow };
    send_ns[cause as usize] = 600_000_000;
    send_ns[SendCause::ApplicationIdle as usize] = 400_000_000;
    let mut receive_ns = [0; ReceiveCause::COUNT];
    receive_ns[ReceiveCause::AwaitingData as usize] = 1_000_000_000;
    Record {
        ended_ms: base_ms + number * 1000,
        local: "10.9.0.1:80".parse().unwrap(),
        remote: SocketAddr::new(format!("10.9.{}.2", number % 5).parse().unwrap(), 1024 + number as u16),
        called: false,
        age_ns: 1_000_000_000,
        sent_bytes: number,
        received_bytes: 0,
        retransmitted_segments: (number % 7) as u32,
        retransmitted_bytes: 0,
        timeouts: 0,
        round_trip_ns: Some(40_000_000),
        error: (number % 10 == 9).then(|| "connection reset by the peer".to_owned()),
        send_ns,
        receive_ns,
    }
}

const BASE_MS: u64 = 1_790_000_000_000;

#[test]
fn questions_are_answered() {
    let folder = Folder::new("questions");
    let all: Vec<Record> = (0..100).map(|number| record(BASE_MS, number)).collect();
    folder.write(Limits::default(), &all);
    let answer = History::open(&folder.0).unwrap().ask(&Question::default()).unwrap();
    assert_eq!(answer.records, all[80..].iter().rev().cloned().collect::<Vec<_>>());
    let sums = &answer.sums;
    assert_eq!((sums.connections, sums.failed, sums.sent_bytes, answer.is_partial), (100, 10, 4950, false));
    assert_eq!(sums.send_ns[SendCause::ReceiverWindow as usize], 34 * 600_000_000);

    let peer = "10.9.3.2/32".parse().ok();
    let mut question = Question { peer, count: 2, ..Question::default() };
    assert_eq!(folder.ask(&question), [98, 93]);
    question.peer = Some("10.9.2.0/23".parse().unwrap());
    assert_eq!(folder.ask(&question), [98, 97]);
    question.order = Order::Slowest;
    assert_eq!(folder.ask(&question), [2, 3]);
    question.limits = Limit::named("receiver's window");
    assert_eq!(folder.ask(&question), [3, 12]);
    question.peer = None;
    assert_eq!(folder.ask(&question), [0, 3]);
    question.failed = Some(true);
    assert_eq!(folder.ask(&question), [9, 39]);
    question = Question { count: 3, least_rate: 8 * 20, most_rate: 8 * 21, ..Question::default() };
    assert_eq!(folder.ask(&question), [21, 20]);
    question = Question { since_ms: BASE_MS + 4000, until_ms: BASE_MS + 6000, ..Question::default() };
    assert_eq!(folder.ask(&question), [5, 4]);
    question = Question { port: Some(1024 + 17), ..Question::default() };
    assert_eq!(folder.ask(&question), [17]);
    question = Question { order: Order::MostRetransmitted, count: 1, ..Question::default() };
    assert_eq!(folder.ask(&question), [6]);

    let spans = History::open(&folder.0).unwrap().spans(BASE_MS, BASE_MS + 100_000, 60_000).unwrap();
    assert_eq!(spans.iter().map(|span| span.sums.connections).sum::<u64>(), 100);
    let picture = inhost_history::draw(&spans, BASE_MS, BASE_MS + 100_000);
    assert!(picture.contains("receiver&apos;s window") || picture.contains("receiver's window"));
}

#[test]
fn what_is_over_the_limits_is_removed() {
    let folder = Folder::new("limits");
    let mut limits = Limits::default();
    (limits.days, limits.connections) = (1, 20);
    let old = (0..50).map(|number| record(BASE_MS, number));
    let new = (0..30).map(|number| record(BASE_MS + 2 * 24 * 3_600_000, 1000 + number));
    let mut all: Vec<Record> = old.collect();
    folder.write(limits, &all);
    all = new.collect();
    {
        let writer = Writer::open(&folder.0, limits).unwrap();
        writer.add(all.clone());
        let question = Question { count: 1000, ..Question::default() };
        until("20 are left", || (folder.ask(&question).len() == 20).then_some(()));
        assert_eq!(writer.take_lost(), 0);
    }
    let left = folder.ask(&Question { count: 1000, ..Question::default() });
    assert_eq!(left, (1010..1030).rev().collect::<Vec<_>>());
    let spans = History::open(&folder.0).unwrap().spans(0, u64::MAX, u64::MAX).unwrap();
    assert_eq!(spans[0].sums.connections, 30, "the old minutes are gone");
}

#[test]
fn what_took_no_time_limited_nothing() {
    let mut of = record(BASE_MS, 1);
    of.send_ns = [0; SendCause::COUNT];
    of.send_ns[SendCause::Opening as usize] = 50_000_000;
    of.send_ns[SendCause::Closed as usize] = 950_000_000;
    assert_eq!(of.limit(), Limit::Sending(SendCause::Closed));
    of.send_ns[SendCause::ApplicationIdle as usize] = 950_000_000;
    assert_eq!(of.limit(), Limit::Sending(SendCause::ApplicationIdle));
}

#[test]
fn lines_are_kept_in_two_files() {
    let folder = Folder::new("lines");
    let mut limits = Limits::default();
    limits.lines_bytes = 10_000;
    let all: Vec<Record> = (0..60).map(|number| record(BASE_MS, number)).collect();
    for some in all.chunks(30) {
        folder.write(limits, some);
    }
    let read = |name| std::fs::read_to_string(folder.0.join(name)).unwrap();
    let (old, new) = (read("connections.old.jsonl"), read("connections.jsonl"));
    assert!(old.len() < 11_000 && new.len() < 11_000, "{} and {}", old.len(), new.len());
    let lines = old.lines().chain(new.lines());
    let sent = lines
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["sent_bytes"].as_u64().unwrap());
    let sent: Vec<u64> = sent.collect();
    assert_eq!(sent.last(), Some(&59));
    assert!(sent.windows(2).all(|pair| pair[1] == pair[0] + 1), "{sent:?}");
}

#[test]
fn a_folder_without_records_and_one_of_another_version_are_told() {
    let folder = Folder::new("version");
    assert!(matches!(History::open(&folder.0), Err(HistoryError::Missing(_))));
    folder.write(Limits::default(), &[]);
    let db = rusqlite::Connection::open(folder.0.join("history.sqlite")).unwrap();
    db.pragma_update(None, "user_version", 7).unwrap();
    assert!(matches!(History::open(&folder.0), Err(HistoryError::Version(7))));
    assert!(matches!(Writer::open(&folder.0, Limits::default()), Err(HistoryError::Version(7))));
}
