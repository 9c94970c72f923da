//! Segments without data that open and close a connection, and what is acknowledged before any data came: while the
//! queues are empty what leaves is known at a glance. The rules are those of the general road in `transmit`.

use super::Receiver;
use crate::common::Common;
use crate::{Environment, PlainHeader};
use inhost_base::Sequence;

impl Receiver {
    // spec: RFC7323 3.2-2
    #[inline]
    pub fn bare_header(&self, common: &Common, sequence: Sequence, env: &Environment<'_>) -> PlainHeader {
        PlainHeader {
            sequence,
            acknowledgment: self.space.next,
            window: self.window_to_offer(common, env.pool).0,
            push: false,
            timestamps: self.timestamps_to_send(common, env.now),
        }
    }
}
