//! The state of each connection at intervals, from the events of its host or, where there are none, from its frames.

use std::collections::BTreeMap;

use inhost_explain::capture::{Frame, dissect};

use crate::events::Event;
use crate::recent::Recent;

/// Figures that are kept of a connection.
const MAX_FIGURES: usize = 16;
/// Connections that are told at an interval.
const MAX_TOLD: usize = 1000;

/// The host (or source), its end and the peer's.
type Key = (String, [String; 2]);

/// The states of connections: 10,000 at most; those without news for longest are forgotten.
#[derive(Debug)]
pub struct States {
    every_ns: u64,
    next_ns: Option<u64>,
    known: Recent<Key, State>,
}

#[derive(Debug, Default)]
struct State {
    state: String,
    /// What the host tells: names and values.
    figures: BTreeMap<String, String>,
    /// What the frames tell, of both directions, the caller's first.
    halves: [Half; 2],
    is_told_by_host: bool,
    is_over: bool,
}

/// One direction of a connection, as it was seen.
#[derive(Debug, Default)]
struct Half {
    /// The numbers behind the last byte, and those of the other end's acknowledgments.
    end: Option<u32>,
    acknowledged: Option<u32>,
    is_finished: bool,
}

impl States {
    /// Those that are told every so many nanoseconds.
    pub fn new(every_ns: u64) -> States {
        States { every_ns: every_ns.max(1), next_ns: None, known: Recent::default() }
    }
    /// Takes an event. True where it tells nothing but figures: they are told with the states.
    pub fn take(&mut self, event: &Event) -> bool {
        let Some(ends) = &event.ends else { return false };
        let state = self.known.entry((event.host.clone(), ends.clone()), State::default);
        if let Some(change) = event.words.strip_prefix("state ") {
            state.is_told_by_host = true;
            state.set(change.rsplit(" to ").next().unwrap_or(change));
        } else if let Some(figures) = event.words.strip_prefix("figures ") {
            state.is_told_by_host = true;
            for (name, value) in figures.split(' ').filter_map(|figure| figure.split_once('=')) {
                if name == "state" {
                    state.set(value);
                } else if state.figures.len() < MAX_FIGURES || state.figures.contains_key(name) {
                    state.figures.insert(name.to_owned(), value.to_owned());
                }
            }
            return true;
        } else if event.words.starts_with("over ") {
            state.is_over = true;
        }
        false
    }
    /// Takes a frame that was seen by `host`.
    pub fn see(&mut self, frame: &Frame<'_>, host: &str) {
        let Ok((flow, segment)) = dissect(frame) else { return };
        let (source, destination) = (flow.source.to_string(), flow.destination.to_string());
        let reverse = (host.to_owned(), [destination.clone(), source.clone()]);
        let is_reverse = self.known.find(&reverse).is_some();
        let key = if is_reverse { reverse } else { (host.to_owned(), [source, destination]) };
        let state = self.known.entry(key, State::default);
        let is_known = !state.state.is_empty();
        let side = usize::from(is_reverse);
        let later = |one: Option<u32>, other: u32| match one {
            Some(one) if one.wrapping_sub(other) as i32 > 0 => Some(one),
            _ => Some(other),
        };
        let length = segment.payload_bytes + u32::from(segment.flags.syn() || segment.flags.fin());
        if segment.flags.syn() {
            state.halves[side] = Half::default();
        }
        let half = &mut state.halves[side];
        half.end = later(half.end, segment.sequence.wrapping_add(length));
        half.is_finished |= segment.flags.fin();
        if segment.flags.ack() {
            let other = &mut state.halves[1 - side];
            other.acknowledged = later(other.acknowledged, segment.acknowledgment);
        }
        let seen = match (segment.flags.syn(), segment.flags.ack()) {
            _ if segment.flags.rst() => "CLOSED",
            (true, false) => "SYN-SENT",
            (true, true) => "SYN-RECEIVED",
            _ if state.halves.iter().all(|half| half.is_finished) => "CLOSED",
            _ if state.halves.iter().any(|half| half.is_finished) => "HALF-CLOSED",
            _ if is_known && state.is_over => return,
            _ => "ESTABLISHED",
        };
        if !state.is_told_by_host {
            state.set(seen);
        }
    }
    /// The states, if it is time, as events of the interval's end. Give it the time of each item before the item.
    pub fn due(&mut self, at_ns: u64) -> Vec<Event> {
        let next_ns = *self.next_ns.get_or_insert(at_ns.saturating_add(self.every_ns));
        if at_ns < next_ns {
            return Vec::new();
        }
        // Intervals in which nothing happened are left out.
        self.next_ns = Some(at_ns - (at_ns - next_ns) % self.every_ns + self.every_ns);
        let told = self.known.iter().filter(|(_, state)| !state.state.is_empty()).take(MAX_TOLD);
        let told = told
            .map(|((host, ends), state)| Event {
                at_ns: next_ns,
                host: host.clone(),
                ends: Some(ends.clone()),
                words: state.words(),
            })
            .collect();
        // The last state is told once.
        self.known.retain(|state| !state.is_over);
        told
    }
}

impl State {
    fn set(&mut self, state: &str) {
        self.state.clear();
        self.state.push_str(state);
        self.is_over = state == "CLOSED";
    }
    fn words(&self) -> String {
        let mut words = format!("is {}", self.state);
        for (name, value) in &self.figures {
            words.push_str(&format!(" {name}={value}"));
        }
        let flights: Option<Vec<u32>> = self.halves.iter().map(Half::in_flight).collect();
        if let Some([own, peers]) = flights.as_deref()
            && !self.is_told_by_host
        {
            words.push_str(&format!(" flight={own} peer-flight={peers}"));
        }
        words
    }
}

impl Half {
    fn in_flight(&self) -> Option<u32> {
        let flight = self.end?.wrapping_sub(self.acknowledged?);
        Some(if (flight as i32) < 0 { 0 } else { flight })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at_ns: u64, words: &str) -> Event {
        let ends = Some(["10.0.0.1:80".to_owned(), "10.0.0.2:9".to_owned()]);
        Event { at_ns, host: "gate".to_owned(), ends, words: words.to_owned() }
    }

    #[test]
    fn states_are_told_once_an_interval() {
        let mut states = States::new(100);
        assert_eq!(states.due(1000), []);
        assert!(!states.take(&event(1000, "state SYN-SENT to ESTABLISHED")));
        assert!(states.take(&event(1050, "figures flight=5 state=ESTABLISHED cwnd=7")));
        assert!(states.take(&event(1060, "figures flight=6")));
        assert_eq!(states.due(1099), []);
        // Nothing happened in the intervals behind.
        assert_eq!(states.due(1730), [event(1100, "is ESTABLISHED cwnd=7 flight=6")]);
        assert_eq!(states.due(1799), []);
        states.take(&event(1799, "state LAST-ACK to CLOSED"));
        assert_eq!(states.due(1800)[0].words, "is CLOSED cwnd=7 flight=6");
        assert_eq!(states.due(1900), []);
    }
}
