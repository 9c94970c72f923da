//! The fast path: header prediction says whether a segment is the next data in order or a new acknowledgment, with nothing
//! else to consider, and such a one is taken without the steps for all others (DEC §4).

use crate::arrival::Coming;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::{Changes, Connection, Environment, PlainHeader, RecoveryState};
use inhost_base::Instant;
use inhost_buf::{Packet, Pool};
use inhost_event::TcpState;

impl Connection {
    /// Whether a segment with `payload_bytes` of data is one that [`Connection::receive_predicted`] may be given.
    #[inline(always)]
    pub fn is_predicted(&self, header: &PlainHeader, payload_bytes: usize) -> bool {
        self.common.state() == TcpState::Established
            && header.sequence == self.receiver.space().next_sequence()
            && payload_bytes as u32 <= self.receiver.space().window()
            && self.sender.space().acknowledges(header.acknowledgment) <= self.sender.space().outstanding_bytes()
            // Otherwise it may be a duplicate acknowledgment.
            && (payload_bytes > 0 || self.sender.space().acknowledges(header.acknowledgment) > 0)
            && header.window != 0
            && self.sender.space().window() != 0
            && self.sender.recovery_state() == RecoveryState::Open
            // Where acknowledgments adapt, each congestion mark may change their timing.
            && !(self.common.has(ConnectionFlags::ECN) && self.common.acks_adapt())
            && match header.timestamps {
                Some((value, _)) => {
                    self.common.has(ConnectionFlags::TIMESTAMPS)
                        && value.wrapping_sub(self.receiver.timestamp_recent()) as i32 >= 0
                }
                None => !self.common.has(ConnectionFlags::TIMESTAMPS),
            }
    }
    /// Processes a predicted segment. It may be one of several at this instant: [`Connection::update`] must
    /// follow the last, with no other call between. The payload may consist of several packets. `tells`: the event sink
    /// wants segment events.
    #[inline(always)]
    pub fn receive_predicted(
        &mut self,
        header: &PlainHeader,
        payload: &mut [Packet],
        tells: bool,
        env: &mut Environment<'_>,
    ) {
        if tells {
            let payload_bytes = payload.iter().map(|piece| piece.len() as u32).sum();
            super::tell_received(&header.full(), payload_bytes, env);
        }
        self.sender.peer_answers();
        let (first, acknowledgment) = (
            self.receiver.space().next(),
            self.sender.space().unacknowledged() + self.sender.space().acknowledges(header.acknowledgment),
        );
        self.receiver.note_segment(&self.common, first, header.timestamps, env.now());
        if acknowledgment != self.sender.space().unacknowledged() {
            self.sender.take_predicted_acknowledgment(&mut self.common, header, acknowledgment, env);
        }
        self.sender.take_window(&mut self.common, (first, acknowledgment, header.window), env.now());
        if payload.iter().any(|piece| !piece.is_empty()) {
            let bytes = payload.iter().map(|piece| piece.len() as u32).sum();
            let coming = Coming {
                bytes,
                new_bytes: bytes,
                push: header.flags.psh(),
                is_marked: false,
                fin: false,
                timestamps: header.timestamps,
            };
            env.changed(Changes::READABLE);
            if self.receiver.take_in_order(&self.common, payload, coming, env) {
                self.sender.release_held_writes(&self.common);
                if self.receiver.reaches_fin() {
                    self.take_fin(true, env);
                }
            }
            if !self.receiver.has(ReceiverFlags::ACKNOWLEDGE) {
                self.receiver.schedule_acknowledgment(&self.common, env.now());
            }
        }
    }
    /// Takes the payload of a segment that follows one given to [`Connection::receive_predicted`]: the next bytes in order,
    /// with the same acknowledgment, window and timestamps. [`Connection::received_following`] is called after the last.
    #[inline(always)]
    pub fn receive_following(&mut self, payload: Packet, pool: &mut Pool) {
        self.receiver.take_following(payload, pool);
    }
    /// What such segments change about the connection, of which the last had `header`.
    pub fn received_following(&mut self, header: &PlainHeader, now: Instant) {
        let (first, acknowledgment) = (
            self.receiver.space().offset(header.sequence),
            self.sender.space().offset(header.acknowledgment),
        );
        self.sender.take_window(&mut self.common, (first, acknowledgment, header.window), now);
        self.receiver.measure_as_receiver(&self.common, header.timestamps, now);
        self.receiver.schedule_acknowledgment(&self.common, now);
    }
}
