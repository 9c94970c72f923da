//! Callers that make a host hold as much as it will, and honest ones beside them.

use crate::common::siege::{CHARGEN, DISCARD, Siege};
use inhost_base::Duration;
use inhost_event::Ignore;
use inhost_stack::StackConfig;

fn siege(memory_bytes: usize) -> Siege {
    let mut config = StackConfig::default();
    config.memory_limit_bytes = memory_bytes;
    Siege::new(config)
}
/// Bytes of an honest upload in two seconds.
fn upload(siege: &mut Siege) -> u64 {
    let socket = siege.call(DISCARD);
    let (before, began) = (siege.read_bytes, siege.now);
    while siege.now.since(began) < Duration::from_secs(2) {
        siege.round(Duration::from_millis(5));
        while siege.honest.tcp(siege.now, &mut Ignore).send(socket, &[7; 16_384]).is_ok() {}
    }
    siege.honest.tcp(siege.now, &mut Ignore).abort(socket).unwrap();
    siege.read_bytes - before
}

#[test]
fn pieces_out_of_order_leave_most_of_the_memory_and_an_upload_its_rate() {
    const MEMORY: usize = 64 << 20;
    let undisturbed = upload(&mut siege(MEMORY));
    let mut siege = siege(MEMORY);
    siege.open(0..31, DISCARD, 60_000);
    assert_eq!(siege.said.len(), 31);
    for number in 0..31 {
        siege.scatter(Siege::caller(number), 128 << 10);
        siege.round(Duration::from_micros(10));
    }
    let pinned = siege.host.memory().outstanding_bytes();
    assert!(pinned < MEMORY / 4, "{pinned} of {MEMORY} bytes");
    let disturbed = upload(&mut siege);
    assert!(disturbed * 20 > undisturbed * 19, "{disturbed} bytes where {undisturbed} went alone");
}

#[test]
fn callers_that_read_nothing_leave_memory_to_echo_and_upload() {
    let undisturbed = upload(&mut siege(16 << 20));
    // The second time there are more of them than the memory has room for one chunk each.
    for callers in [400, 1500] {
        let mut siege = siege(16 << 20);
        siege.open(0..callers, CHARGEN, 0);
        for _ in 0..100 {
            siege.round(Duration::from_millis(100));
        }
        for _ in 0..20 {
            let took = siege.echo_takes(1000, Duration::from_secs(5));
            assert!(took.is_some_and(|took| took < Duration::from_secs(1)), "{took:?} with {callers}");
        }
        let disturbed = upload(&mut siege);
        assert!(disturbed * 4 > undisturbed, "{disturbed} bytes where {undisturbed} went alone");
        // Most of them are where they were.
        assert!(siege.said.len() * 4 > callers.min(800) * 3, "{} of {callers} are left", siege.said.len());
    }
}

#[test]
fn at_the_orphan_limit_a_closed_window_ends_and_honest_closes_do_not() {
    let mut config = StackConfig::default();
    config.orphan_limit = 60;
    let mut siege = Siege::new(config);
    siege.open(0..50, CHARGEN, 0);
    for _ in 0..20 {
        siege.round(Duration::from_millis(500));
    }
    // The service lets go of those that read nothing.
    let hoarders: Vec<_> = siege.served.keys().copied().collect();
    for socket in hoarders {
        siege.served.remove(&socket);
        siege.host.close(socket, siege.now, &mut Ignore).unwrap();
    }
    assert_eq!(siege.said.len(), 50);
    // Honest callers whose peers close first, and are in the middle of it.
    siege.open(1000..1060, DISCARD, 60_000);
    let honest: Vec<_> = siege.served.keys().copied().collect();
    assert_eq!(honest.len(), 60);
    for socket in honest {
        siege.served.remove(&socket);
        siege.host.close(socket, siege.now, &mut Ignore).unwrap();
    }
    siege.round(Duration::ZERO);
    let left = |range: core::ops::Range<usize>| {
        range.filter(|&n| siege.said.contains_key(&Siege::caller(n))).count()
    };
    assert_eq!((left(1000..1060), left(0..50)), (60, 0));
    assert_eq!(siege.host.instruments().counters().orphans_aborted, 50);
}
