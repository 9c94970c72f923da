//! Events of hosts, from the comments of frames.

use inhost_common::Cleaner;
use serde_json::{Value, json};

/// Events of one comment that are read.
const MOST: usize = 1000;

/// Something that a host did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Nanoseconds since 1970.
    pub at_ns: u64,
    /// The host's name.
    pub host: String,
    /// Its end and the peer's, where it is of a connection.
    pub ends: Option<[String; 2]>,
    /// What happened.
    pub words: String,
}

impl Event {
    /// The line of a comment that tells of it, as a flight recorder writes it.
    pub fn line(&self) -> String {
        let Event { at_ns, host, ends, words } = self;
        let [local, remote] = ends.as_ref().map_or(["-", "-"], |ends| [&ends[0], &ends[1]]);
        let host = if host.is_empty() { "-".to_owned() } else { host.replace(char::is_whitespace, "_") };
        format!("@{at_ns} {host} {local} {remote} {words}")
    }
    /// As JSON: `at_ns`, `host`, `ends` (its own and the peer's, or null) and `event`.
    pub fn json(&self) -> Value {
        let Event { at_ns, host, ends, words } = self;
        json!({"at_ns": at_ns, "host": host, "ends": ends, "event": words})
    }
}

/// The events in a comment: lines `@TIME HOST LOCAL REMOTE WORDS`, as a flight recorder writes them. Other lines are
/// events of nobody at the frame's time.
pub fn events(comment: &[u8], frame_ns: u64) -> Vec<Event> {
    let lines = comment.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.take(MOST).map(|line| event(&Cleaner::line(line), frame_ns)).collect()
}

fn event(line: &str, frame_ns: u64) -> Event {
    let mut words = line.splitn(5, ' ');
    let at_ns = words.next().and_then(|word| word.strip_prefix('@')).and_then(|word| word.parse().ok());
    if let (Some(at_ns), Some(host), Some(local), Some(remote), Some(rest)) =
        (at_ns, words.next(), words.next(), words.next(), words.next())
    {
        let ends = (local != "-").then(|| [local.to_owned(), remote.to_owned()]);
        return Event { at_ns, host: host.to_owned(), ends, words: rest.to_owned() };
    }
    Event { at_ns: frame_ns, host: String::new(), ends: None, words: line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_recorder_are_read_and_those_of_others_kept() {
        let comment = b"@5 gate 10.0.0.1:80 10.0.0.2:9 state SYN-SENT to ESTABLISHED\n@6 gate - - neighbour\nlook at this";
        let found = events(comment, 7);
        assert_eq!(found[0].ends, Some(["10.0.0.1:80".to_owned(), "10.0.0.2:9".to_owned()]));
        assert_eq!((found[0].at_ns, &*found[0].words), (5, "state SYN-SENT to ESTABLISHED"));
        assert_eq!((found[1].at_ns, found[1].ends.clone(), &*found[1].words), (6, None, "neighbour"));
        assert_eq!((found[2].at_ns, &*found[2].words), (7, "look at this"));
    }
}
