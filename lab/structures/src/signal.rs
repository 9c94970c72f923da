//! The event flag of a task, and queues that post it (MIT §5.2).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// An event flag: a task waits for it, and others post it.
#[derive(Default)]
pub struct Signal {
    flag: Cell<bool>,
    waiter: Cell<Option<Waker>>,
    dispatches: Cell<u64>,
}

impl Signal {
    /// Sets the flag, and wakes the task if it waits.
    pub fn post(&self) {
        self.flag.set(true);
        if let Some(waiter) = self.waiter.take() {
            waiter.wake();
        }
    }
    /// Waits for the flag, and resets it.
    pub async fn wait(&self) {
        poll_fn(|context| {
            if self.flag.replace(false) {
                return Poll::Ready(());
            }
            self.waiter.set(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
        self.dispatches.update(|count| count + 1);
    }
    /// How often a wait has ended.
    pub fn dispatches(&self) -> u64 {
        self.dispatches.get()
    }
}

/// A bounded queue between two tasks.
pub struct Queue<T> {
    items: RefCell<VecDeque<T>>,
    limit: usize,
    producer: Rc<Signal>,
    consumer: Rc<Signal>,
}

impl<T> Queue<T> {
    /// A queue of at most `limit` items, from the task that waits for `producer` to the one that waits for `consumer`.
    pub fn new(limit: usize, producer: &Rc<Signal>, consumer: &Rc<Signal>) -> Rc<Queue<T>> {
        let items = RefCell::new(VecDeque::with_capacity(limit));
        Rc::new(Queue { items, limit, producer: producer.clone(), consumer: consumer.clone() })
    }
    /// Whether a push would be refused.
    pub fn is_full(&self) -> bool {
        self.items.borrow().len() >= self.limit
    }
    /// Appends an item and posts the consumer; gives the item back when the queue is full.
    pub fn push(&self, item: T) -> Result<(), T> {
        if self.is_full() {
            return Err(item);
        }
        self.items.borrow_mut().push_back(item);
        self.consumer.post();
        Ok(())
    }
    /// Takes the first item. The producer of a queue that was full is posted.
    pub fn pop(&self) -> Option<T> {
        let was_full = self.is_full();
        let item = self.items.borrow_mut().pop_front();
        if was_full {
            self.producer.post();
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_bounded_and_posts_both_ends() {
        let (producer, consumer) = (Rc::new(Signal::default()), Rc::new(Signal::default()));
        let queue = Queue::new(2, &producer, &consumer);
        assert_eq!((queue.push(1), queue.push(2), queue.push(3)), (Ok(()), Ok(()), Err(3)));
        assert!(consumer.flag.take() && !producer.flag.get());
        assert_eq!(queue.pop(), Some(1));
        assert!(producer.flag.take());
        assert_eq!((queue.pop(), queue.pop()), (Some(2), None));
        assert!(!producer.flag.get() && !consumer.flag.get());
    }
}
