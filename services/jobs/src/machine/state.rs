//! The states of a job as a transition table.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The state of a job.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A user or operator keeps it from running.
    Held,
    /// It waits for other jobs.
    Waiting,
    /// It may run once there is a slot and its time has come.
    Queued,
    /// A back end has it.
    Running,
    /// It ended with status 0.
    Done,
    /// It ended with another status, or could not be started.
    Failed,
    /// A user or operator ended it, or a job that it needs ended otherwise than needed.
    Cancelled,
    /// Its process is gone and left no status.
    Lost,
}

/// What happens to a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// It is held.
    Hold,
    /// It is released.
    Release,
    /// The jobs that it needs ended as needed.
    Ready,
    /// One of them ended otherwise.
    Impossible,
    /// A back end takes it.
    Start,
    /// The back end never started it, or it is tried once more.
    Requeue,
    /// It ended with status 0.
    Succeed,
    /// It ended with another status.
    Fail,
    /// Its process is gone without a status.
    Vanish,
    /// It is cancelled, and no process of it is left.
    Cancel,
}

use State::{Cancelled, Done, Failed, Held, Lost, Queued, Running, Waiting};

impl State {
    /// All states.
    pub const ALL: [State; 8] = [Held, Waiting, Queued, Running, Done, Failed, Cancelled, Lost];

    /// The state after an event; `None` where the event cannot happen in this state.
    pub fn after(self, event: Event) -> Option<State> {
        Some(match (self, event) {
            (Waiting | Queued, Event::Hold) => Held,
            // What it needs is looked at again.
            (Held, Event::Release) => Waiting,
            (Waiting, Event::Ready) => Queued,
            (Held | Waiting, Event::Impossible) => Cancelled,
            (Queued, Event::Start) => Running,
            (Running, Event::Requeue) => Queued,
            (Running, Event::Succeed) => Done,
            (Running, Event::Fail) => Failed,
            (Running, Event::Vanish) => Lost,
            (Held | Waiting | Queued | Running, Event::Cancel) => Cancelled,
            _ => return None,
        })
    }
    /// Whether nothing happens to it any more.
    pub fn is_over(self) -> bool {
        matches!(self, Done | Failed | Cancelled | Lost)
    }
    /// Its name in the store and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Held => "held",
            Waiting => "waiting",
            Queued => "queued",
            Running => "running",
            Done => "done",
            Failed => "failed",
            Cancelled => "cancelled",
            Lost => "lost",
        }
    }
    /// The state of a [name](Self::name).
    pub fn named(name: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.name() == name)
    }
}

impl Event {
    /// All events.
    pub const ALL: [Event; 10] = [
        Event::Hold,
        Event::Release,
        Event::Ready,
        Event::Impossible,
        Event::Start,
        Event::Requeue,
        Event::Succeed,
        Event::Fail,
        Event::Vanish,
        Event::Cancel,
    ];
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole matrix: a row for each state, a column for each event.
    const TABLE: &str = "\
state      hold     release  ready    impossible start   requeue  succeed  fail     vanish   cancel
held       -        waiting  -        cancelled -        -        -        -        -        cancelled
waiting    held     -        queued   cancelled -        -        -        -        -        cancelled
queued     held     -        -        -        running  -        -        -        -        cancelled
running    -        -        -        -        -        queued   done     failed   lost     cancelled
done       -        -        -        -        -        -        -        -        -        -
failed     -        -        -        -        -        -        -        -        -        -
cancelled  -        -        -        -        -        -        -        -        -        -
lost       -        -        -        -        -        -        -        -        -        -
";

    #[test]
    fn the_table_is_as_it_was() {
        for (row, state) in TABLE.lines().skip(1).zip(State::ALL) {
            let mut words = row.split_whitespace();
            assert_eq!(words.next(), Some(state.name()));
            for (word, event) in words.zip(Event::ALL) {
                let after = state.after(event).map_or("-", State::name);
                assert_eq!(after, word, "{state} after {event:?}");
            }
            assert_eq!(State::named(state.name()), Some(state));
            let row: Vec<_> = Event::ALL.iter().map(|&event| state.after(event)).collect();
            assert_eq!(
                state.is_over(),
                row.iter().all(Option::is_none),
                "a state is over if nothing follows"
            );
        }
        assert_eq!(TABLE.lines().count(), State::ALL.len() + 1);
    }

    #[test]
    fn any_sequence_of_events_ends_at_most_once() {
        let mut random = inhost_base::Random::from_number(7);
        for _ in 0..2_000 {
            let (mut state, mut starts, mut ends) = (State::Waiting, 0, 0);
            for _ in 0..60 {
                let event = Event::ALL[random.public_below(Event::ALL.len() as u32) as usize];
                let Some(next) = state.after(event) else { continue };
                assert!(!state.is_over(), "nothing follows {state}");
                assert_ne!(next, state, "an event changes the state");
                starts += u32::from(next == State::Running);
                ends += u32::from(next.is_over());
                if matches!(next, State::Done | State::Failed | State::Lost) {
                    assert!(starts > 0, "a job that never ran cannot be {next}");
                }
                state = next;
            }
            assert!(ends <= 1);
        }
    }
}
