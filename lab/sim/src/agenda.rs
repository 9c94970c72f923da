//! Tournament tree: the earliest deadline among a fixed number of slots.

use inhost_base::Instant;

/// For each place an instant, with the minimum at the root: a tree in which each node has the earlier of the two below
/// it.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// The root is 1, the children of `n` are `2n` and `2n + 1`, the places are the last half.
    tree: Vec<Instant>,
    places: usize,
}

impl Agenda {
    /// Adds a place that waits for nothing.
    pub(crate) fn add(&mut self) {
        let before: Vec<Instant> = (0..self.places).map(|place| self.of(place)).collect();
        self.places += 1;
        if self.places * 2 > self.tree.len() {
            self.tree = vec![Instant::FAR_FUTURE; self.places.next_power_of_two() * 2];
            before.iter().enumerate().for_each(|(place, &at)| self.set(place, at));
        }
    }
    /// Deadline of a slot.
    pub(crate) fn of(&self, place: usize) -> Instant {
        self.tree[self.tree.len() / 2 + place]
    }
    /// Lets a place wait for `at`.
    pub(crate) fn set(&mut self, place: usize, at: Instant) {
        let mut node = self.tree.len() / 2 + place;
        if self.tree[node] == at {
            return;
        }
        self.tree[node] = at;
        while node > 1 {
            node /= 2;
            let earlier = self.tree[2 * node].min(self.tree[2 * node + 1]);
            if self.tree[node] == earlier {
                return;
            }
            self.tree[node] = earlier;
        }
    }
    /// The earliest instant.
    pub(crate) fn earliest(&self) -> Instant {
        self.tree.get(1).copied().unwrap_or(Instant::FAR_FUTURE)
    }
    /// The first place, in their order, from `from` on that is due by `now`.
    pub(crate) fn due(&self, from: usize, now: Instant) -> Option<usize> {
        if self.earliest() > now || from >= self.places {
            return None;
        }
        let leaves = self.tree.len() / 2;
        let mut node = leaves + from;
        // Up to where something to the right is due, then down to the leftmost of it.
        while self.tree[node] > now {
            while node % 2 == 1 {
                node /= 2;
                if node == 0 {
                    return None;
                }
            }
            node += 1;
        }
        while node < leaves {
            node *= 2;
            if self.tree[node] > now {
                node += 1;
            }
        }
        Some(node - leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Random;

    #[test]
    fn it_finds_what_a_search_through_all_finds() {
        let mut random = Random::from_number(3);
        for places in [1, 2, 3, 7, 8, 9, 33] {
            let mut agenda = Agenda::default();
            let mut plain = vec![Instant::FAR_FUTURE; places];
            (0..places).for_each(|_| agenda.add());
            for _ in 0..500 {
                let place = random.public_below(places as u32) as usize;
                let at = match random.public_below(3) {
                    0 => Instant::FAR_FUTURE,
                    _ => Instant::from_nanos(u64::from(random.public_below(50))),
                };
                agenda.set(place, at);
                plain[place] = at;
                assert_eq!(Some(agenda.earliest()), plain.iter().min().copied());
                let (from, now) = (random.public_below(places as u32) as usize, Instant::from_nanos(20));
                let due = (from..places).find(|&place| plain[place] <= now);
                assert_eq!(agenda.due(from, now), due, "{plain:?} from {from}");
            }
        }
    }
}
