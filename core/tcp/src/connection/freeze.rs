//! A thawed connection: its packets get their memory back, and its state is checked.

use super::Connection;
use crate::receiver::window::MAX_SCALE;
use crate::{Config, RecoveryState};
use alloc::sync::Arc;
use inhost_base::freeze::{Invalid, require};
use inhost_buf::freeze::ThawPacket;
use inhost_event::TcpState;

impl Connection {
    /// Calls `act` with each packet of a thawed connection, and checks the connection. `config` is how it behaves, which
    /// is not written with it.
    pub fn thaw(&mut self, config: Arc<Config>, act: ThawPacket<'_>) -> Result<(), Invalid> {
        self.common.config = config;
        if let Some(buffers) = &mut self.sender.buffers {
            buffers.send.thaw(act)?;
            buffers.flight.check()?;
            buffers.pacer.check()?;
            let reduces = self.sender.recovery.state == RecoveryState::Recovery
                && self.common.config.proportional_rate_reduction;
            require(!reduces || buffers.reduction.has_begun(), "a rate reduction")?;
            let (unacknowledged, next) = (self.sender.space.unacknowledged(), self.sender.space.next());
            let (first, last) = (buffers.flight.first(), buffers.flight.last());
            let is_out = first.is_none_or(|first| unacknowledged <= first.start)
                && last.is_none_or(|last| last.end <= next);
            require(is_out, "the place of a flight")?;
            require(first.is_none() || self.sender.segment_bytes() > 0, "the size of a flight's segments")?;
        }
        let may_lack_size = self.common.opens() || self.common.state == TcpState::Closed;
        require(may_lack_size || self.sender.segment_bytes() > 0, "the size of a segment")?;
        // The SYN and the FIN are counted with the data.
        let most = u64::from(self.sender.queued_bytes()) + 2;
        let is_closed = self.common.state == TcpState::Closed;
        require(is_closed || u64::from(self.sender.space.outstanding_bytes()) <= most, "data in flight")?;
        self.sender.congestion.check()?;
        self.common.round_trip.check()?;
        require(self.sender.scale <= MAX_SCALE, "a window scale")?;
        self.receiver.thaw(act)
    }
}
