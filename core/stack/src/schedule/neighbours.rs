//! Sockets that wait for a neighbour.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use inhost_base::{IpAddr, LinkId, Lists};

/// Neighbours below which lists that became empty are not looked for.
const FEW: usize = 64;

/// A list of sockets that wait for a neighbour, among the lists of those that want to send.
const fn waiting_list(number: usize) -> usize {
    number * 3 + 1
}

/// For each neighbour that some socket waits for, the number of the list that these sockets are in. When a neighbour is
/// decided only its own sockets are touched.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct WaitingForNeighbours {
    numbers: BTreeMap<(LinkId, IpAddr), usize>,
    free: Vec<usize>,
    /// Number of neighbours at which empty lists are removed next.
    next_look: usize,
}

impl WaitingForNeighbours {
    /// Checks thawed numbers of lists: each is used once.
    #[cfg(feature = "freeze")]
    pub(crate) fn check(&self) -> Result<(), crate::Invalid> {
        let mut seen = alloc::vec![false; self.numbers.len() + self.free.len()];
        for &number in self.numbers.values().chain(&self.free) {
            let is_new = seen.get_mut(number).is_some_and(|seen| !core::mem::replace(seen, true));
            crate::require(is_new, "the list of a neighbour")?;
        }
        crate::require(self.next_look <= usize::MAX / 4, "when lists of neighbours are looked at")
    }
    /// The list of those that wait for `neighbour`.
    pub(crate) fn list_of(&mut self, link: LinkId, neighbour: IpAddr, lists: &Lists) -> usize {
        if let Some(&number) = self.numbers.get(&(link, neighbour)) {
            return waiting_list(number);
        }
        if self.numbers.len() >= self.next_look.max(FEW) {
            self.forget_empty(lists);
        }
        let number = self.free.pop().unwrap_or(self.numbers.len());
        self.numbers.insert((link, neighbour), number);
        waiting_list(number)
    }
    /// The same, for a resolved or failed neighbour, whose list is removed.
    pub(crate) fn take(&mut self, link: LinkId, neighbour: IpAddr) -> Option<usize> {
        let number = self.numbers.remove(&(link, neighbour))?;
        self.free.push(number);
        Some(waiting_list(number))
    }
    /// Sockets that close leave their list empty.
    fn forget_empty(&mut self, lists: &Lists) {
        let free = &mut self.free;
        self.numbers.retain(|_, number| {
            let is_empty = lists.count(waiting_list(*number)) == 0;
            if is_empty {
                free.push(*number);
            }
            !is_empty
        });
        self.next_look = 2 * self.numbers.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Ipv4Addr;

    fn neighbour(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(number))
    }

    #[test]
    fn each_neighbour_has_a_list_of_its_own_and_empty_ones_are_used_again() {
        let (mut waiting, mut lists) = (WaitingForNeighbours::default(), Lists::new(0));
        for number in 0..1000 {
            let list = waiting.list_of(LinkId(1), neighbour(number % 500), &lists);
            lists.push_back(list, number as usize);
        }
        let other = waiting.list_of(LinkId(2), neighbour(7), &lists);
        assert_eq!(lists.count(other), 0);
        let list = waiting.take(LinkId(1), neighbour(7)).unwrap();
        assert_eq!(
            (lists.pop_front(list), lists.pop_front(list), lists.pop_front(list)),
            (Some(7), Some(507), None)
        );
        assert_eq!(waiting.take(LinkId(1), neighbour(7)), None);
        // The sockets close, and others wait for other neighbours.
        (0..1000).for_each(|place| {
            lists.remove(place);
        });
        for number in 1000..100_000 {
            let list = waiting.list_of(LinkId(1), neighbour(number), &lists);
            lists.push_back(list, 0);
        }
        assert!(waiting.numbers.len() + waiting.free.len() <= 1100, "lists are used again");
    }
}
