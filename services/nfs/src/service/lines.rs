//! The lines of the log that a stranger can cause, at a limited rate.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use inhost_base::{Endpoint, Instant};
use inhost_common::{Cleaner, Guard, Rate};

/// Lines that one address may cause.
const LINES_EACH: Rate = Rate { burst: 20, per_second: 1 };
/// The same of all addresses.
const LINES_ALL: Rate = Rate { burst: 100, per_second: 5 };
/// Octets of a path that a line shows.
const PATH_SHOWN_BYTES: usize = 100;

/// Decides which lines are written, and counts the others.
pub(super) struct Lines(Mutex<State>);

struct State {
    guard: Guard,
    left_out: u64,
}

impl Lines {
    pub(super) fn new() -> Lines {
        Lines(Mutex::new(State { guard: Guard::new(LINES_EACH, LINES_ALL), left_out: 0 }))
    }
    /// Whether a line that `address` causes is written now: then how many lines were left out since the last one that was
    /// written, of all addresses.
    pub(super) fn admit(&self, address: IpAddr, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.guard.admit_from_any_port(Endpoint::new(address, 0), now).is_ok() {
            return Some(std::mem::take(&mut state.left_out));
        }
        state.left_out = state.left_out.saturating_add(1);
        None
    }
}

/// A path as a line shows it: the beginning of a long one.
pub(super) fn shown(path: &[u8]) -> String {
    match path.get(..PATH_SHOWN_BYTES) {
        Some(beginning) if path.len() > PATH_SHOWN_BYTES => format!("{}…", Cleaner::line(beginning)),
        _ => Cleaner::line(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_fills_no_disk_and_does_not_silence_another() {
        let (lines, stranger) = (Lines::new(), IpAddr::from([10, 9, 0, 7]));
        let now = Instant::from_millis(5_000);
        let written = (0..10_000).filter(|_| lines.admit(stranger, now).is_some()).count();
        assert_eq!(written, LINES_EACH.burst as usize);
        assert_eq!(
            lines.admit(IpAddr::from([10, 9, 0, 8]), now),
            Some(10_000 - 20),
            "the count is told once"
        );
        assert_eq!(lines.admit(stranger, now), None);
        assert_eq!(lines.admit(stranger, Instant::from_millis(6_000)), Some(1));
        let many =
            (0..10_000u32).filter(|n| lines.admit(IpAddr::from((n << 8).to_be_bytes()), now).is_some());
        assert!(many.count() <= LINES_ALL.burst as usize);
    }

    #[test]
    fn a_long_path_is_cut_and_cleaned() {
        assert_eq!(shown(b"/files/\x1b[2J"), "/files/\u{fffd}[2J");
        assert_eq!(shown(&[b'x'; 1024]), format!("{}…", "x".repeat(100)));
        assert_eq!(shown(&[b'x'; 100]), "x".repeat(100));
    }
}
