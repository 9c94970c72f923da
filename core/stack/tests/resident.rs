//! What a process takes in all while callers make its host hold as much as it will. A program of its own, for it counts
//! all that its process holds.

#[path = "it/common/mod.rs"]
mod common;

use common::siege::{DISCARD, Siege};
use inhost_base::Duration;
use inhost_stack::StackConfig;

const MEMORY_BYTES: usize = 256 << 20;
/// More than the memory has room for.
const CALLERS: usize = 14_000;
/// One-byte pieces of each, more than its connection takes.
const PIECES: u32 = 64;

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}
#[test]
fn pieces_out_of_order_take_at_most_a_third_more_than_the_limit_in_all() {
    let mut config = StackConfig::default();
    config.memory_limit_bytes = MEMORY_BYTES;
    let mut siege = Siege::new(config);
    let mut most = 0;
    for hundred in 0..CALLERS / 100 {
        let callers = hundred * 100..(hundred + 1) * 100;
        siege.open(callers.clone(), DISCARD, 60_000);
        for number in callers {
            siege.scatter(Siege::caller(number), PIECES);
        }
        siege.round(Duration::from_millis(1));
        most = most.max(resident_bytes());
    }
    let pinned = siege.host.memory().outstanding_bytes();
    println!(
        "{pinned} bytes out, {most} bytes resident, {} sockets",
        siege.host.instruments().socket_count()
    );
    assert!(pinned > MEMORY_BYTES / 4 * 3, "they have got what they could: {pinned} bytes");
    assert!(most <= MEMORY_BYTES / 10 * 13, "{most} bytes resident with a limit of {MEMORY_BYTES}");
}
