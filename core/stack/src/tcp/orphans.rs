//! Orphans: connections that the application has closed and that still send. Their number is limited; at the limit one
//! is reset.

use crate::parts::{Parts, tcp_environment};
use crate::sockets::{TcpSocketFlags, TcpSocketId};
use inhost_base::{Duration, Instant};
use inhost_event::{Sink, TcpState};
use inhost_tcp::Changes;

/// Orphans that are looked at when there are too many.
const LOOKED_AT: usize = 64;

impl Parts {
    /// Counts a connection among the orphans. Where they are too many by it, one of them goes: `key` itself only when it
    /// is the worst of those looked at.
    pub(crate) fn add_orphan(&mut self, key: TcpSocketId, now: Instant, sink: &mut dyn Sink) {
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        flow.set(TcpSocketFlags::ORPHAN);
        self.schedule.add_orphan(key.place());
        if self.schedule.orphans() > self.config.orphan_limit {
            self.end_an_orphan(now, sink);
        }
    }
    /// Ends an orphan. TIME-WAIT comes first: it guards against a rare case, while a reset loses data. Next comes a
    /// connection with a closed window, then the one without progress for longest.
    fn end_an_orphan(&mut self, now: Instant, sink: &mut dyn Sink) {
        let mut worst: Option<((bool, Duration), TcpSocketId)> = None;
        for _ in 0..LOOKED_AT.min(self.schedule.orphans()) {
            let Some(place) = self.schedule.next_orphan() else { break };
            let Some(key) = self.sockets.tcp_at_place(place) else { continue };
            let Some(flow) = self.sockets.tcp(key) else { continue };
            let connection = flow.connection();
            if connection.state() == TcpState::TimeWait {
                self.counters.time_waits_cut_short += 1;
                return self.reap(key);
            }
            let rank = (
                connection.sender().waits_behind_closed_window(),
                now.since(connection.sender().progress_at()),
            );
            if worst.is_none_or(|(most, _)| rank > most) {
                worst = Some((rank, key));
            }
        }
        let Some((_, key)) = worst else { return };
        self.counters.orphans_aborted += 1;
        self.abort_flow(key, now, sink);
    }
    /// Resets a flow and removes it.
    pub(crate) fn abort_flow(&mut self, key: TcpSocketId, now: Instant, sink: &mut dyn Sink) {
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        let is_silent = flow.connection().sender().ends_in_silence();
        let outcome = flow.connection_mut().abort(&mut tcp_environment!(self, now, key, sink));
        if let Some(reply) = outcome.reset.filter(|_| !is_silent) {
            self.reset_flow(key, reply);
        }
        if outcome.changes.intersects(Changes::ENDED) {
            self.ended(key, now, sink);
        }
        self.reap(key);
    }
}
