//! Ending every process of a login session, or of a process group.

use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal};

/// Grace period between SIGHUP and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// Polling interval meanwhile.
const STEP: Duration = Duration::from_millis(50);
/// Repetitions of SIGKILL, for those that were just being forked.
const KILLS: usize = 10;

/// Processes that belong together, by the number of their leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Together {
    /// A login session.
    Session(Pid),
    /// A process group.
    Group(Pid),
}

/// Waits out the grace time, then kills what is left of those that were hung up. Their leader is reaped last, so that its
/// number, which names them, stays taken until nobody is left.
pub fn end(together: Together, child: &mut Child) {
    let mut waited = Duration::ZERO;
    while waited < GRACE && !members(together).is_empty() {
        pause();
        waited += STEP;
    }
    for _ in 0..KILLS {
        let left = members(together);
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

/// The living processes that belong together.
pub(super) fn members(together: Together) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    let belongs = |&process: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let found = group_and_session(&stat).map(|(group, session)| match together {
            Together::Session(leader) => session == leader.as_raw_nonzero().get(),
            Together::Group(leader) => group == leader.as_raw_nonzero().get(),
        });
        found == Some(true)
    };
    entries.flatten().filter_map(number).filter(belongs).filter_map(Pid::from_raw).collect()
}

/// Group and session of a living process, out of its `stat`: after the name in parentheses come state, parent, group and
/// session.
fn group_and_session(stat: &str) -> Option<(i32, i32)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    let group = fields.nth(1)?.parse().ok()?;
    Some((group, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines() {
        assert_eq!(group_and_session("12 (a) b) S 1 12 77 0 -1"), Some((12, 77)));
        assert_eq!(group_and_session("12 (sh) Z 1 12 77 0 -1"), None);
        assert_eq!(group_and_session("12 (sh"), None);
        // Not getsid(): it has no answer in a container whose session leader lives outside.
        let own = group_and_session(&std::fs::read_to_string("/proc/self/stat").unwrap()).unwrap();
        let (group, session) = (Pid::from_raw(own.0), Pid::from_raw(own.1));
        for together in [group.map(Together::Group), session.map(Together::Session)].into_iter().flatten() {
            assert!(members(together).contains(&rustix::process::getpid()));
        }
    }
}
