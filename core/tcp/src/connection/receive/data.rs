//! Data and FIN (RFC 9293 §3.10.7.4, seventh and eighth step).

use crate::arrival::Arrival;
use crate::flags::ConnectionFlags;
use crate::{Changes, Connection, ConnectionError, Environment, ResetReply};
use core::slice::from_mut;
use inhost_event::{Drop, TcpState};

impl Connection {
    pub(super) fn take_data(&mut self, arrival: &mut Arrival<'_>, env: &mut Environment<'_>) {
        if arrival.is_repeated {
            // Nothing of it is new: its sender missed our acknowledgment.
            self.receiver.acknowledge_again(&self.common);
        }
        if arrival.payload.is_empty() && !arrival.fin {
            return;
        }
        if !self.common.expects_data() {
            // After the peer's FIN there is nothing more to take.
            return;
        }
        if self.common.has(ConnectionFlags::ECN) {
            self.receiver.take_congestion_mark(&self.common, arrival.ecn);
        }
        if self.common.has(ConnectionFlags::RECEIVE_CLOSED) && !arrival.payload.is_empty() {
            return self.refuse_data(arrival, env);
        }
        if !arrival.keeps_data && !arrival.payload.is_empty() {
            self.receiver.acknowledge_now();
            env.discarded(Drop::NoMemory);
            return;
        }
        if arrival.start != self.receiver.space().next() {
            return self.receiver.keep_for_later(&self.common, arrival, env);
        }
        if !arrival.payload.is_empty() {
            env.changed(Changes::READABLE);
        }
        let coming = arrival.coming();
        let fills_hole =
            self.receiver.take_in_order(&self.common, from_mut(&mut arrival.payload), coming, env);
        let reaches_fin = fills_hole && self.receiver.reaches_fin();
        if arrival.fin || reaches_fin {
            self.take_fin(reaches_fin, env);
        }
    }
    /// Data that no application can read ends the connection, so that the peer learns that it is lost (RFC 9293 §3.6.1, RFC 1122
    /// §4.2.2.13).
    #[cold]
    pub(super) fn refuse_data(&mut self, arrival: &Arrival<'_>, env: &mut Environment<'_>) {
        env.reply(match self.common.config().policy.unread_data_has_no_connection {
            true => ResetReply::to(arrival.header, arrival.payload.len()),
            false => Some(self.active_reset(env.now())),
        });
        self.finish(Some(ConnectionError::Aborted), env);
    }
    /// The peer's stream is complete. `at_once`: it is acknowledged without delay in any case.
    pub(super) fn take_fin(&mut self, at_once: bool, env: &mut Environment<'_>) {
        self.receiver.take_fin(&self.common, at_once, env.pool());
        env.changed(Changes::PEER_CLOSED | Changes::READABLE);
        match self.common.state() {
            TcpState::Established => self.common.enter(TcpState::CloseWait, env),
            TcpState::FinWait1 => self.common.enter(TcpState::Closing, env),
            TcpState::FinWait2 => self.enter_time_wait(env),
            _ => {}
        }
    }
}
