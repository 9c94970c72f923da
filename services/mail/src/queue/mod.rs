//! The durable queue: messages that wait for their destinations, and the reason why each of them waits.
//!
//! The queue is a folder: `queue.sqlite` has envelopes, small messages and reasons, `text` the large messages, and `lock`
//! is held by the host that sends. A message is in the queue once [`Queue::add`] is done, whatever happens then; it
//! leaves it with its last recipient. A host that is killed between a server's "250" and the note about it sends that
//! message again: a message may come twice, and is never lost (RFC 5321 §4.5.4.1).

mod reason;
mod schedule;
mod store;
#[cfg(test)]
mod tests;
mod views;
mod worker;

pub use reason::{Attempted, Reason};
pub use schedule::Schedule;
pub(crate) use store::Stored;
pub use store::{
    Batch, DestinationFate, Fate, Item, NewMessage, NewRecipient, Result_, Settlement, StoreError,
};
pub use views::{DestinationView, FailureView, MessageView, QueueSummary, RecipientView, Selection, View};
pub use worker::{Queue, SendLock};
