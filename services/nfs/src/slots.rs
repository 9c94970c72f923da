//! A semaphore for the calls of one server, over all its connections. Each call occupies a thread of the pool that all
//! services of the host share.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Calls that run at a time.
pub(crate) const CALLS_AT_ONCE: usize = 32;

#[derive(Debug)]
struct State {
    free: usize,
    next: u64,
    /// Those that wait, the first first. Their number is bounded by the calls that connections may have under way.
    waiting: VecDeque<(u64, Waker)>,
}

/// Slots, given in the order in which they were asked for. Clones are the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    state: Arc<Mutex<State>>,
}

/// A slot; dropped, it is free.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Slots,
}

/// A place among those that wait.
struct Waiting<'a> {
    slots: &'a Slots,
    number: u64,
    has_slot: bool,
}

impl Slots {
    /// So many slots.
    pub(crate) fn new(count: usize) -> Slots {
        Slots { state: Arc::new(Mutex::new(State { free: count, next: 0, waiting: VecDeque::new() })) }
    }
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Waits for a slot.
    pub(crate) async fn take(&self) -> Slot {
        let number = {
            let mut state = self.locked();
            state.next += 1;
            state.next
        };
        let mut waiting = Waiting { slots: self, number, has_slot: false };
        poll_fn(|cx| waiting.poll(cx)).await;
        Slot { slots: self.clone() }
    }
    fn wake_first(state: &State) -> Option<Waker> {
        if state.free == 0 { None } else { state.waiting.front().map(|(_, waker)| waker.clone()) }
    }
}

impl Waiting<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.slots.locked();
        let place = state.waiting.iter().position(|(number, _)| *number == self.number);
        let is_first = place == Some(0) || (place.is_none() && state.waiting.is_empty());
        if state.free == 0 || !is_first {
            match place {
                Some(place) => state.waiting[place].1.clone_from(cx.waker()),
                None => state.waiting.push_back((self.number, cx.waker().clone())),
            }
            return Poll::Pending;
        }
        state.free -= 1;
        self.has_slot = true;
        state.waiting.retain(|(number, _)| *number != self.number);
        let next = Slots::wake_first(&state);
        drop(state);
        next.into_iter().for_each(Waker::wake);
        Poll::Ready(())
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.has_slot {
            return;
        }
        let mut state = self.slots.locked();
        state.waiting.retain(|(number, _)| *number != self.number);
        let next = Slots::wake_first(&state);
        drop(state);
        next.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.slots.locked();
        state.free += 1;
        let next = Slots::wake_first(&state);
        drop(state);
        next.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, poll_once};

    #[test]
    fn slots_are_given_in_order_and_come_back() {
        let slots = Slots::new(2);
        block_on(async {
            let (first, second) = (slots.take().await, slots.take().await);
            let (mut third, mut fourth) = (Box::pin(slots.take()), Box::pin(slots.take()));
            assert!(poll_once(&mut third).await.is_none() && poll_once(&mut fourth).await.is_none());
            drop(first);
            assert!(poll_once(&mut fourth).await.is_none(), "the third was there before");
            drop(third);
            let fourth = poll_once(&mut fourth).await;
            assert!(fourth.is_some(), "the third is not wanted any more");
            drop((second, fourth));
            assert_eq!(slots.locked().free, 2);
        });
    }
}
