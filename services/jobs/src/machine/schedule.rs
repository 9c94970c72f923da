//! Which jobs run next, when a job that failed is tried again, and what dependencies say.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::State;

/// The most that back-off multiplies the delay of the first retry by: 2 to the power of this.
const BACK_OFF_DOUBLINGS: u32 = 10;
/// The most that a retry waits.
const RETRY_DELAY_S: u64 = 24 * 3600;

/// A job that may run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Its number. A smaller one was submitted earlier.
    pub id: i64,
    /// Whose it is.
    pub user: String,
    /// A higher one runs first.
    pub priority: i32,
    /// The array that it is an element of.
    pub array: Option<i64>,
    /// Elements of that array that may run at a time.
    pub at_a_time: Option<u32>,
}

/// What runs now, by a back end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Running {
    /// Jobs of each user.
    pub users: BTreeMap<String, usize>,
    /// Elements of each array.
    pub arrays: BTreeMap<i64, usize>,
}

/// How many jobs run at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Shares {
    /// Jobs of all users. Default 4.
    pub slots: usize,
    /// Jobs of one user. Default 4.
    pub slots_per_user: usize,
}

impl Default for Shares {
    fn default() -> Self {
        Shares { slots: 4, slots_per_user: 4 }
    }
}

/// The jobs that start now, in order. A higher priority goes first; among the same, the user who has fewer jobs running;
/// of one user, the earlier job.
pub fn choose(candidates: &[Candidate], mut running: Running, shares: Shares) -> Vec<i64> {
    let total: usize = running.users.values().sum();
    let mut queues: BTreeMap<(&str, Reverse<i32>), Vec<&Candidate>> = BTreeMap::new();
    for candidate in candidates {
        queues.entry((&candidate.user, Reverse(candidate.priority))).or_default().push(candidate);
    }
    queues.values_mut().for_each(|queue| queue.sort_by_key(|candidate| Reverse(candidate.id)));
    let mut chosen = Vec::new();
    while total + chosen.len() < shares.slots {
        // What an array's limit keeps back stays in its queue's way no longer; it is looked at again in the next round.
        for queue in queues.values_mut() {
            while queue.last().is_some_and(|next| is_full(next, &running)) {
                queue.pop();
            }
        }
        let count = |user: &str| running.users.get(user).copied().unwrap_or(0);
        let best = queues
            .iter()
            .filter(|((user, _), _)| count(user) < shares.slots_per_user)
            .filter_map(|(key, queue)| Some((key, queue.last()?)))
            .min_by_key(|((user, priority), next)| (*priority, count(user), next.id));
        let Some((&key, _)) = best else { break };
        let Some(next) = queues.get_mut(&key).and_then(Vec::pop) else { break };
        *running.users.entry(next.user.clone()).or_default() += 1;
        if let Some(array) = next.array {
            *running.arrays.entry(array).or_default() += 1;
        }
        chosen.push(next.id);
    }
    chosen
}

fn is_full(candidate: &Candidate, running: &Running) -> bool {
    let (Some(array), Some(limit)) = (candidate.array, candidate.at_a_time) else { return false };
    running.arrays.get(&array).is_some_and(|&count| count >= limit as usize)
}

/// How long retry number `attempt` (from 1) waits: the delay of the first, doubled for each that follows, up to a day.
pub fn retry_delay_s(first_s: u64, attempt: u32) -> u64 {
    let doublings = attempt.saturating_sub(1).min(BACK_OFF_DOUBLINGS);
    first_s.saturating_mul(1 << doublings).min(RETRY_DELAY_S)
}

/// How another job has to end.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Need {
    /// With status 0.
    AfterOk,
    /// In any way.
    AfterAny,
    /// Otherwise than with status 0.
    AfterNotOk,
}

/// The states of a job, or of all elements of an array, by which others are judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Group {
    /// How many are not over.
    pub open: usize,
    /// How many are done.
    pub done: usize,
    /// How many ended otherwise.
    pub other: usize,
}

impl Group {
    /// Counts one more.
    pub fn add(&mut self, state: State) {
        match state {
            State::Done => self.done += 1,
            state if state.is_over() => self.other += 1,
            _ => self.open += 1,
        }
    }
}

/// Whether a dependency is met: `None` while that is open. An array is done when all of its elements are.
pub fn dependency(need: Need, group: Group) -> Option<bool> {
    match need {
        Need::AfterOk if group.other > 0 => Some(false),
        Need::AfterNotOk if group.other > 0 && group.open == 0 => Some(true),
        _ if group.open > 0 => None,
        Need::AfterOk | Need::AfterAny => Some(true),
        Need::AfterNotOk => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: i64, user: &str, priority: i32) -> Candidate {
        Candidate { id, user: user.into(), priority, array: None, at_a_time: None }
    }

    #[test]
    fn priority_goes_first_then_the_user_with_less() {
        let mut all: Vec<_> = (1..=5).map(|id| candidate(id, "ada", 0)).collect();
        all.extend([candidate(6, "bob", 0), candidate(7, "bob", 0), candidate(8, "ada", 5)]);
        let shares = Shares { slots: 5, slots_per_user: 3 };
        assert_eq!(choose(&all, Running::default(), shares), [8, 6, 1, 7, 2]);
        let running = Running { users: [("ada".to_owned(), 3)].into(), ..Running::default() };
        assert_eq!(choose(&all, running, shares), [6, 7], "ada has her share");
        let running = Running { users: [("eve".to_owned(), 5)].into(), ..Running::default() };
        assert!(choose(&all, running, shares).is_empty(), "no slot is free");
    }

    #[test]
    fn an_array_keeps_its_limit_and_lets_others_pass() {
        let element = |id| Candidate { array: Some(1), at_a_time: Some(2), ..candidate(id, "ada", 0) };
        let all = [element(1), element(2), element(3), candidate(4, "ada", 0)];
        let shares = Shares { slots: 10, slots_per_user: 10 };
        assert_eq!(choose(&all, Running::default(), shares), [1, 2, 4]);
    }

    #[test]
    fn retries_back_off_and_dependencies_are_judged() {
        assert_eq!([1, 2, 3, 60].map(|n| retry_delay_s(10, n)), [10, 20, 40, 10_240]);
        assert_eq!(retry_delay_s(u64::MAX, 40), RETRY_DELAY_S);
        let group = |open, done, other| Group { open, done, other };
        use Need::{AfterAny, AfterNotOk, AfterOk};
        let cases = [
            (AfterOk, group(1, 1, 0), None),
            (AfterOk, group(1, 1, 1), Some(false)),
            (AfterOk, group(0, 2, 0), Some(true)),
            (AfterAny, group(1, 0, 1), None),
            (AfterAny, group(0, 0, 2), Some(true)),
            (AfterNotOk, group(0, 1, 1), Some(true)),
            (AfterNotOk, group(1, 0, 1), None),
            (AfterNotOk, group(0, 2, 0), Some(false)),
        ];
        for (need, group, met) in cases {
            assert_eq!(dependency(need, group), met, "{need:?} {group:?}");
        }
    }
}
