//! Ending every process of a login session.

use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal};

/// Grace period between SIGHUP and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// Polling interval meanwhile.
const STEP: Duration = Duration::from_millis(50);
/// Repetitions of SIGKILL, for those that were just being forked.
const KILLS: usize = 10;

/// Waits out the grace time, then kills what is left of the session. Its leader is reaped last, so that its
/// number, which names the session, stays taken until nobody is in it.
pub(super) fn end_session(leader: Pid, child: &mut Child) {
    let session = leader.as_raw_nonzero().get();
    let mut waited = Duration::ZERO;
    while waited < GRACE && !members(session).is_empty() {
        pause();
        waited += STEP;
    }
    for _ in 0..KILLS {
        let left = members(session);
        if left.is_empty() {
            break;
        }
        for process in left {
            let _ = rustix::process::kill_process(process, Signal::KILL);
        }
        pause();
    }
    let _ = child.wait();
}

/// A step of waiting.
#[expect(clippy::disallowed_methods, reason = "on a side thread that has nothing else to do, not on a shard")]
fn pause() {
    std::thread::sleep(STEP);
}

/// The living processes of a session.
pub(super) fn members(session: i32) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    let in_session = |&process: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        session_of(&stat) == Some(session)
    };
    entries.flatten().filter_map(number).filter(in_session).filter_map(Pid::from_raw).collect()
}

/// The session of a living process, out of its `stat`: after the name in parentheses come state, parent,
/// group and session.
fn session_of(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines() {
        assert_eq!(session_of("12 (a) b) S 1 12 77 0 -1"), Some(77));
        assert_eq!(session_of("12 (sh) Z 1 12 77 0 -1"), None);
        assert_eq!(session_of("12 (sh"), None);
        // Not getsid(): it has no answer in a container whose session leader lives outside.
        let own = session_of(&std::fs::read_to_string("/proc/self/stat").unwrap()).unwrap();
        assert!(members(own).contains(&rustix::process::getpid()));
    }
}
