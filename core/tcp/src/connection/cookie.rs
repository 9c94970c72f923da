//! A passive open whose SYN and ACK left before there was a connection (RFC 4987 §3.6).

use crate::flags::ConnectionFlags;
use crate::{Connection, Environment};

impl Connection {
    /// The SYN and ACK left already, as a SYN cookie, which keeps no state: the peer's acknowledgment follows. It measures no
    /// round trip, because the time of departure is not known. Of use only directly after
    /// [`Connection::accept`], which was given the number that the SYN and ACK bore.
    pub fn answered(&mut self, env: &mut Environment<'_>) {
        if !self.common.flags.has(ConnectionFlags::SYNCHRONISE)
            || self.sender.space.next != self.sender.space.unacknowledged
        {
            return;
        }
        self.common.flags.clear(ConnectionFlags::SYNCHRONISE);
        self.sender.space.next = self.sender.space.unacknowledged + 1;
        self.receiver.space.acknowledged = self.receiver.space.next;
        // The field of a SYN is never scaled (RFC 7323 §2.2).
        self.receiver.space.edge =
            self.receiver.space.next + self.receiver.window_space(&self.common).min(0xffff);
        self.sender.timer.progress_at = env.now;
        self.sender.timer.arm(&self.common, env.now);
        self.settle(env);
    }
}
