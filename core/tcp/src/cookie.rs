//! A passive open whose SYN and ACK left before there was a connection (RFC 4987 §3.6).

use crate::marks::Marks;
use crate::{Connection, Environment};

impl Connection {
    /// The SYN and ACK left already, from whoever answers without keeping state: what follows is the peer's
    /// acknowledgment. No round trip is measured by it, for nobody noted when it left. Of use only straight after
    /// [`Connection::accept`], which was given the number that the SYN and ACK bore.
    pub fn answered(&mut self, env: &mut Environment<'_>) {
        if !self.marks.has(Marks::SYNCHRONISE) || self.send.next != self.send.unacknowledged {
            return;
        }
        self.marks.clear(Marks::SYNCHRONISE);
        self.send.next = self.send.unacknowledged + 1;
        self.receive.acknowledged = self.receive.next;
        // The field of a SYN is never scaled (RFC 7323 §2.2).
        self.receive.edge = self.receive.next + self.window_space().min(0xffff);
        self.progress_at = env.now;
        self.arm_retransmission(env.now);
        self.settle(env);
    }
}
