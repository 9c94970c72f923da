//! Doubly linked lists over slab places.

use crate::make_room;
use alloc::vec;
use alloc::vec::Vec;

/// No place, or no list.
const NONE: u32 = u32::MAX;

/// A set of lists of small numbers (places in the socket table). A number is in at most one list of a set; every
/// operation takes constant time, so that a socket which goes away leaves its list at once.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Lists {
    heads: Vec<Head>,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "freeze", serde(from = "Option<(u32, u32, u32)>", into = "Option<(u32, u32, u32)>"))]
struct Head {
    first: u32,
    last: u32,
    count: u32,
}

#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "freeze", serde(from = "Option<(u32, u32, u32)>", into = "Option<(u32, u32, u32)>"))]
struct Node {
    next: u32,
    previous: u32,
    list: u32,
}

/// An empty list and a place in no list are written as one byte each, since most are; `NONE` as 0.
#[cfg(feature = "freeze")]
mod frozen {
    use crate::list::{Head, NONE, Node};

    impl From<Option<(u32, u32, u32)>> for Head {
        fn from(frozen: Option<(u32, u32, u32)>) -> Head {
            frozen.map_or(Head::EMPTY, |(first, last, count)| Head { first, last, count })
        }
    }
    impl From<Head> for Option<(u32, u32, u32)> {
        fn from(Head { first, last, count }: Head) -> Self {
            (count > 0).then_some((first, last, count))
        }
    }
    impl From<Option<(u32, u32, u32)>> for Node {
        fn from(frozen: Option<(u32, u32, u32)>) -> Node {
            let (next, previous, list) = frozen.unwrap_or((0, 0, NONE));
            Node { next: next.wrapping_sub(1), previous: previous.wrapping_sub(1), list }
        }
    }
    impl From<Node> for Option<(u32, u32, u32)> {
        fn from(Node { next, previous, list }: Node) -> Self {
            (list != NONE).then_some((next.wrapping_add(1), previous.wrapping_add(1), list))
        }
    }
}

impl Head {
    const EMPTY: Head = Head { first: NONE, last: NONE, count: 0 };
}
impl Node {
    /// In no list.
    const FREE: Node = Node { next: NONE, previous: NONE, list: NONE };
}

impl Lists {
    /// `count` empty lists.
    pub fn new(count: usize) -> Self {
        Lists { heads: vec![Head::EMPTY; count], nodes: Vec::new() }
    }
    /// Checks thawed lists of places below `places`: each is whole, and no place is in two.
    #[cfg(feature = "freeze")]
    pub fn check(&self, places: usize) -> Result<(), crate::freeze::Invalid> {
        crate::freeze::require(self.nodes.len() <= places, "a list of places that are none")?;
        let mut found = 0;
        for (number, head) in self.heads.iter().enumerate() {
            let (mut previous, mut next, mut count) = (NONE, head.first, 0);
            while let Some(node) = self.nodes.get(next as usize) {
                let is_here = node.list as usize == number && node.previous == previous;
                crate::freeze::require(is_here && count < head.count, "a member of a list")?;
                (previous, next, count) = (next, node.next, count + 1);
            }
            let is_whole = next == NONE && previous == head.last && count == head.count;
            crate::freeze::require(is_whole, "the end of a list")?;
            found += count as usize;
        }
        let listed = self.nodes.iter().filter(|node| node.list != NONE).count();
        crate::freeze::require(found == listed, "a member that is in no list")
    }
    /// How many lists there are.
    #[cfg(feature = "freeze")]
    pub fn number(&self) -> usize {
        self.heads.len()
    }
    /// Places that have been in a list.
    #[cfg(feature = "freeze")]
    pub fn places(&self) -> usize {
        self.nodes.len()
    }
    /// Members of a list.
    #[inline]
    pub fn count(&self, list: usize) -> usize {
        self.heads.get(list).map_or(0, |head| head.count as usize)
    }
    /// The list that `place` is in.
    #[inline]
    pub fn list_of(&self, place: usize) -> Option<usize> {
        self.nodes.get(place).filter(|node| node.list != NONE).map(|node| node.list as usize)
    }
    /// The first member.
    #[inline]
    pub fn first(&self, list: usize) -> Option<usize> {
        self.heads.get(list).filter(|head| head.first != NONE).map(|head| head.first as usize)
    }
    /// The member behind `place` in its list.
    pub fn next(&self, place: usize) -> Option<usize> {
        self.nodes.get(place).filter(|node| node.next != NONE).map(|node| node.next as usize)
    }
    /// Puts `place` at the end of `list`, out of any other.
    #[inline]
    pub fn push_back(&mut self, list: usize, place: usize) {
        self.make_free(list, place);
        let (Some(head), Some(node)) = (self.heads.get_mut(list), self.nodes.get_mut(place)) else { return };
        let previous = core::mem::replace(&mut head.last, place as u32);
        *node = Node { next: NONE, previous, list: list as u32 };
        head.count += 1;
        // `NONE` is beyond every place.
        match self.nodes.get_mut(previous as usize) {
            Some(previous) => previous.next = place as u32,
            None => head.first = place as u32,
        }
    }
    /// Puts `place` at the front of `list`, out of any other.
    pub fn push_front(&mut self, list: usize, place: usize) {
        self.make_free(list, place);
        let (Some(head), Some(node)) = (self.heads.get_mut(list), self.nodes.get_mut(place)) else { return };
        let next = core::mem::replace(&mut head.first, place as u32);
        *node = Node { next, previous: NONE, list: list as u32 };
        head.count += 1;
        // `NONE` is beyond every place.
        match self.nodes.get_mut(next as usize) {
            Some(next) => next.previous = place as u32,
            None => head.last = place as u32,
        }
    }
    /// Takes `place` out of its list, if it is in one, and says which.
    #[inline]
    pub fn remove(&mut self, place: usize) -> Option<usize> {
        let node = *self.nodes.get(place).filter(|node| node.list != NONE)?;
        // `NONE` is beyond every place.
        let head = self.heads.get_mut(node.list as usize)?;
        match self.nodes.get_mut(node.previous as usize) {
            Some(previous) => previous.next = node.next,
            None => head.first = node.next,
        }
        match self.nodes.get_mut(node.next as usize) {
            Some(next) => next.previous = node.previous,
            None => head.last = node.previous,
        }
        head.count = head.count.saturating_sub(1);
        *self.nodes.get_mut(place)? = Node::FREE;
        Some(node.list as usize)
    }
    /// Takes the first member out.
    #[inline]
    pub fn pop_front(&mut self, list: usize) -> Option<usize> {
        let first = self.first(list)?;
        self.remove(first);
        Some(first)
    }

    /// Makes `list` be there, and `place` be there in no list.
    #[inline]
    fn make_free(&mut self, list: usize, place: usize) {
        let is_free = self.nodes.get(place).is_some_and(|node| node.list == NONE);
        if !is_free || self.heads.len() <= list {
            self.make_free_first(list, place);
        }
    }
    #[inline(never)]
    fn make_free_first(&mut self, list: usize, place: usize) {
        if place < self.nodes.len() {
            self.remove(place);
        } else {
            self.add_nodes(place + 1);
        }
        if self.heads.len() <= list {
            self.heads.resize(list + 1, Head::EMPTY);
        }
    }
    #[cold]
    fn add_nodes(&mut self, count: usize) {
        make_room(&mut self.nodes, count);
        self.nodes.resize(count, Node::FREE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(lists: &Lists, list: usize) -> Vec<usize> {
        let mut at = lists.first(list);
        let mut found = Vec::new();
        while let Some(place) = at {
            found.push(place);
            at = lists.next(place);
        }
        assert_eq!(found.len(), lists.count(list));
        found
    }

    #[test]
    fn a_member_leaves_from_anywhere() {
        let mut lists = Lists::new(2);
        for place in [3, 0, 7, 5] {
            lists.push_back(0, place);
        }
        lists.push_front(0, 9);
        assert_eq!(members(&lists, 0), [9, 3, 0, 7, 5]);
        assert_eq!(lists.remove(0), Some(0));
        assert_eq!(lists.remove(0), None);
        lists.push_back(1, 9);
        lists.push_back(1, 5);
        assert_eq!((members(&lists, 0), members(&lists, 1)), (vec![3, 7], vec![9, 5]));
        assert_eq!((lists.pop_front(0), lists.pop_front(0), lists.pop_front(0)), (Some(3), Some(7), None));
        assert_eq!((lists.list_of(5), lists.list_of(3), lists.list_of(100)), (Some(1), None, None));
    }
}
