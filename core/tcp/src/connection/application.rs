//! What the application does: send, read, close, abort, and set options (RFC 9293 §3.9.1).

use crate::flags::{ConnectionFlags, ReceiverFlags, SenderFlags};
use crate::offset::Offset;
use crate::outcome::{Outcome, ResetReply, SendHow};
use crate::sender::burst::WriteBoundary;
use crate::state::Allows;
use crate::{Connection, ConnectionError, Environment, PushPlacement, ReceiveError, SendError};
use bytes::Bytes;
use inhost_base::Instant;
use inhost_buf::{BlockLayout, Packet};
use inhost_event::{Layer, TcpState};

impl Connection {
    /// Adds as many of `bytes` to the send queue as there is room for, and returns how many. They are sent by the next
    /// [`Connection::transmit`], or once the connection is open.
    ///
    /// # Errors
    /// [`SendError::WouldBlock`] when not one byte fits; a change WRITABLE follows. [`SendError::Closed`] after
    /// [`Connection::close`], and [`SendError::Connection`] after the connection's end.
    #[inline]
    pub fn send(
        &mut self,
        bytes: &[u8],
        how: SendHow,
        env: &mut Environment<'_>,
    ) -> Result<usize, SendError> {
        Call { tcb: self, env }.send(bytes, how)
    }
    /// As [`Connection::send`], without a copy: the accepted part is split from the front of `bytes`, and kept until the
    /// peer has acknowledged it.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub fn lend(
        &mut self,
        bytes: &mut Bytes,
        how: SendHow,
        env: &mut Environment<'_>,
    ) -> Result<usize, SendError> {
        Call { tcb: self, env }.lend(bytes, how)
    }
    /// With [`crate::PushPlacement::WritesAndHalfWindows`]: the data queued so far ends a burst. `pushed`: its last
    /// segment bears PSH.
    pub fn end_burst(&mut self, pushed: bool) {
        let (end, unacknowledged) =
            (self.sender.end_of_queue(&self.common), self.sender.space.unacknowledged());
        if let Some(buffers) = &mut self.sender.buffers {
            buffers.boundaries.add(
                end,
                if pushed { WriteBoundary::Push } else { WriteBoundary::Burst },
                unacknowledged,
            );
            let _ = self.decide();
        }
    }

    /// Moves bytes of the stream into `into`, in order; `Ok(0)` at the stream's end (or for an empty `into`). A read
    /// stops at the urgent mark, so that [`ReceiveView::urgent_ahead`](crate::ReceiveView::urgent_ahead) tells on which side of it the next byte lies.
    ///
    /// # Errors
    /// [`ReceiveError::WouldBlock`] while nothing is there, [`ReceiveError::Connection`] after an end by error.
    #[inline]
    pub fn read(&mut self, into: &mut [u8], env: &mut Environment<'_>) -> Result<usize, ReceiveError> {
        let most = self.receiver().readable_to_mark(into.len())?;
        let Some(into) = into.get_mut(..most) else { return Ok(0) };
        env.begin_layer(Layer::Read);
        let count = match &mut self.receiver.buffers {
            Some(buffers) => buffers.receive.read(into, env.pool),
            None => 0,
        };
        env.end_layer();
        self.receiver.size_receive_buffer(&self.common, &self.sender.timer.round_trip, count, env);
        Call { tcb: self, env }.after_reading();
        Ok(count)
    }
    /// Takes the packet with the first unread bytes, so that they are read where the device put them; an empty one at the
    /// stream's end. Data beyond the urgent mark stays. The caller returns the packet to the pool; until then its memory
    /// counts there, and no longer against the window.
    ///
    /// # Errors
    /// As [`Connection::read`].
    pub fn borrow(&mut self, env: &mut Environment<'_>) -> Result<Packet, ReceiveError> {
        let most = self.receiver().readable_to_mark(usize::MAX)?;
        let Some(buffers) =
            self.receiver.buffers.as_mut().filter(|buffers| buffers.receive.front().len() <= most)
        else {
            // The urgent mark lies within the first packet: the data before it is copied.
            let Some(mut packet) = env.pool.take_bare(most).filter(|_| most > 0) else {
                return Ok(Packet::default());
            };
            if let Some(place) = packet.extend(most) {
                self.read(place, env)?;
            }
            return Ok(packet);
        };
        let packet = buffers.receive.take().unwrap_or_default();
        self.receiver.size_receive_buffer(&self.common, &self.sender.timer.round_trip, packet.len(), env);
        Call { tcb: self, env }.after_reading();
        Ok(packet)
    }
    /// Drops up to `bytes` bytes from the front of what waits.
    pub fn consume(&mut self, bytes: usize, env: &mut Environment<'_>) {
        let before = self.receiver().readable_bytes();
        if let Some(buffers) = &mut self.receiver.buffers {
            buffers.receive.discard(bytes, env.pool);
        }
        self.receiver.size_receive_buffer(
            &self.common,
            &self.sender.timer.round_trip,
            bytes.min(before),
            env,
        );
        Call { tcb: self, env }.after_reading();
    }
    /// Closes our side: a FIN follows the queued data (RFC 9293 §3.10.4). Data of the peer is still received.
    // spec: RFC9293 MUST-60 (what is queued is pushed by the close)
    pub fn close(&mut self, env: &mut Environment<'_>) -> Outcome {
        let outcome = Call { tcb: self, env }.close_sending();
        self.update(env);
        outcome
    }
    /// Closes the receiving side: unread data and data that still arrives are discarded.
    pub fn close_receive(&mut self, env: &mut Environment<'_>) {
        Call { tcb: self, env }.close_receiving();
        self.update(env);
    }
    /// The application closes the socket: both sides close, and TCP completes the close by itself. Unread received data
    /// is answered by a reset, so that the peer learns that it is lost (RFC 9293 §3.6.1, RFC 2525 §2.17).
    pub fn detach(&mut self, env: &mut Environment<'_>) -> Outcome {
        if self.receiver().readable_bytes() > 0
            && (!self.common.state.opens() || self.common.is_early())
            && !matches!(self.common.state, TcpState::TimeWait | TcpState::Closed)
        {
            return Call { tcb: self, env }.end_with_reset();
        }
        let outcome = Call { tcb: self, env }.close_sending();
        let before = self.common.is_minimal();
        Call { tcb: self, env }.close_receiving();
        if self.common.is_minimal() && !before {
            self.begin_minimal();
            if let Some(buffers) = &mut self.receiver.buffers {
                buffers.reassembly.clear(env.pool);
            }
        }
        self.orphaned(env.now);
        self.update(env);
        outcome
    }
    /// Ends the connection at once, with a reset where the peer knows of it and either side may still send, or something
    /// that was received is lost (RFC 9293 §3.10.5, RFC 2525 §2.17).
    pub fn abort(&mut self, env: &mut Environment<'_>) -> Outcome {
        let said_all = matches!(self.common.state, TcpState::Closing | TcpState::LastAck)
            && self.sender.stream_end() < self.sender.space.next();
        if !said_all || self.receiver().readable_bytes() > 0 {
            return Call { tcb: self, env }.end_with_reset();
        }
        let mut outcome = Outcome::default();
        self.finish(Some(ConnectionError::Aborted), env, &mut outcome);
        self.update(env);
        outcome
    }
    /// Sends the data that was queued without push now.
    pub fn push(&mut self, env: &mut Environment<'_>) {
        if self.sender.queued_bytes() > 0 {
            if self.common.config.policy.push == PushPlacement::WritesAndHalfWindows
                && !self.common.state.opens()
            {
                // It is sent, and bears PSH only where a write asked for it.
                self.sender.release_held_writes(&self.common);
            } else {
                self.sender.space.push_to(self.sender.end_of_queue(&self.common));
            }
            self.sender.buffers_mut().aggregate_until = Instant::FAR_FUTURE;
        }
        self.update(env);
    }
}

/// A call of the application in progress.
struct Call<'a, 'e> {
    tcb: &'a mut Connection,
    env: &'a mut Environment<'e>,
}

impl Call<'_, '_> {
    /// See [`Connection::send`].
    #[inline]
    fn send(&mut self, bytes: &[u8], how: SendHow) -> Result<usize, SendError> {
        self.may_add()?;
        let room = self.tcb.sender().writable_bytes();
        let fits = bytes.get(..room.min(bytes.len())).unwrap_or(bytes);
        let layout = self.tcb.sender.block_layout(&self.tcb.common);
        let taken = if fits.is_empty() {
            0
        } else {
            match self.env.marks_layers {
                false => self.tcb.sender.buffers_mut().send.write(fits, layout, self.env.pool),
                true => self.write_marked(fits, layout),
            }
        };
        self.added(taken, bytes.len(), how)
    }
    /// Copies bytes into the send queue, and tells the sink.
    #[cold]
    #[inline(never)]
    fn write_marked(&mut self, bytes: &[u8], layout: BlockLayout) -> usize {
        self.env.begin_layer(if layout.summed { Layer::WriteAndSum } else { Layer::Write });
        let taken = self.tcb.sender.buffers_mut().send.write(bytes, layout, self.env.pool);
        self.env.end_layer();
        taken
    }
    /// See [`Connection::lend`].
    fn lend(&mut self, bytes: &mut Bytes, how: SendHow) -> Result<usize, SendError> {
        self.may_add()?;
        let length = bytes.len();
        let taken = self.tcb.sender().writable_bytes().min(length);
        if taken > 0 {
            let layout = self.tcb.sender.block_layout(&self.tcb.common);
            let part = bytes.split_to(taken);
            self.tcb.sender.buffers_mut().send.lend(part, layout);
        }
        self.added(taken, length, how)
    }
    /// Whether the application may add to the stream at all.
    #[inline]
    fn may_add(&self) -> Result<(), SendError> {
        if let Some(error) = self.tcb.common.error {
            return Err(SendError::Connection(error));
        }
        if !self.tcb.common.state.may_send() || self.tcb.common.flags.has(ConnectionFlags::CLOSE_AFTER_OPEN) {
            return Err(SendError::Closed);
        }
        Ok(())
    }
    /// `taken` of `length` bytes were added to the queue.
    #[inline]
    fn added(&mut self, taken: usize, length: usize, how: SendHow) -> Result<usize, SendError> {
        // A write that exactly filled the buffer also waits for WRITABLE: an application that checks for room before it writes
        // never makes the write that fails.
        if taken < length || self.tcb.sender().writable_bytes() == 0 {
            self.tcb.sender.flags.set(SenderFlags::WRITER_WAITS);
        }
        if taken == 0 && length > 0 {
            self.tcb.update(self.env);
            return Err(SendError::WouldBlock);
        }
        self.tcb.sender.flags.clear(SenderFlags::BLOCKED);
        let end = self.tcb.sender.end_of_queue(&self.tcb.common);
        if how.urgent && taken == length && taken > 0 {
            self.tcb.sender.space.urge_to(end);
            if !self.tcb.common.config.policy.urgent_goes_with_data {
                self.tcb.sender.flags.set(SenderFlags::ANNOUNCE_URGENT);
            }
        }
        if how.end_of_record && taken == length && taken > 0 {
            let unacknowledged = self.tcb.sender.space.unacknowledged();
            self.tcb.sender.buffers_mut().boundaries.add(end, WriteBoundary::Record, unacknowledged);
        }
        // Promotion: one mark, at the end of what is queued (UCLA §2.4). Bytes without push wait for more, and a
        // write that was cut short is followed by the rest.
        let pushed = how.push && !how.more && taken == length;
        if pushed {
            self.tcb.sender.keep_sent_push(&self.tcb.common);
            self.tcb.sender.space.push_to(end);
        }
        if !pushed && taken == length && taken > 0 {
            // Within urgent data no burst counts.
            let start = if how.urgent { end } else { end.back(taken as u32) };
            self.tcb.sender.push_half_window(
                &self.tcb.common,
                self.tcb.receiver.sack_bytes(&self.tcb.common),
                start,
                end,
            );
        }
        let held = !pushed || self.tcb.sender.flags.has(SenderFlags::CORKED);
        // The acknowledgment of data in flight releases the data that is held back.
        if taken > 0
            && held
            && !(self.tcb.common.config.policy.cork_lasts_rto && self.tcb.sender.space.has_outstanding())
        {
            self.tcb.sender.aggregate(&self.tcb.common, self.env.now);
        }
        self.update_sending();
        Ok(taken)
    }
    /// As [`Connection::update`], where the receiving side has not changed.
    fn update_sending(&mut self) {
        let next = self.tcb.decide();
        if self.tcb.update_send_cause(next, self.env.now) {
            self.tcb.accounts.emit_causes(self.env);
        }
    }
    /// What reading has made due.
    #[inline]
    fn after_reading(&mut self) {
        let was_due = self.tcb.receiver.flags.has(ReceiverFlags::ACKNOWLEDGE);
        self.tcb.receiver.was_read(&self.tcb.common);
        if was_due == self.tcb.receiver.flags.has(ReceiverFlags::ACKNOWLEDGE) {
            // Reading changes no other decision about what to send.
            let cause = self.tcb.receiver.receive_cause(&self.tcb.common);
            self.tcb.accounts.update_receiving(cause, false, self.env);
        } else {
            self.tcb.update(self.env);
        }
    }

    /// Our side closes.
    fn close_sending(&mut self) -> Outcome {
        let mut outcome = Outcome::default();
        match self.tcb.common.state {
            TcpState::SynSent => self.tcb.finish(None, self.env, &mut outcome),
            TcpState::SynReceived => self.tcb.common.flags.set(ConnectionFlags::CLOSE_AFTER_OPEN),
            TcpState::Established => self.tcb.enter(TcpState::FinWait1, self.env),
            TcpState::CloseWait => self.tcb.enter(TcpState::LastAck, self.env),
            _ => {}
        }
        if !self.tcb.common.state.opens() && self.tcb.common.state.has_fin_outstanding() {
            if self.tcb.common.config.policy.push != PushPlacement::WritesAndHalfWindows {
                self.tcb.sender.space.push_to(self.tcb.sender.stream_end());
            }
            self.tcb.sender.flags.clear(SenderFlags::BLOCKED);
        }
        outcome
    }
    /// The application reads no more.
    fn close_receiving(&mut self) {
        self.tcb.common.flags.set(ConnectionFlags::RECEIVE_CLOSED);
        if let Some(buffers) = &mut self.tcb.receiver.buffers {
            buffers.receive.clear(self.env.pool);
        }
        if self.tcb.common.state == TcpState::FinWait2 && self.tcb.common.linger_at == Instant::FAR_FUTURE {
            self.tcb.common.linger_at = self.env.now + self.tcb.common.config.fin_wait_2;
        }
        self.tcb.receiver.was_read(&self.tcb.common);
    }
    /// Ends the connection, with a reset to the peer where one is due.
    fn end_with_reset(&mut self) -> Outcome {
        let reset = match self.tcb.common.state {
            TcpState::SynSent | TcpState::TimeWait | TcpState::Closed => None,
            TcpState::SynReceived if self.tcb.sender.space.next() == Offset::SYN => {
                // Our SYN was not sent: the answer is that of a port without a listener.
                let space = &self.tcb.receiver.space;
                let acknowledgment = Some(space.sequence(space.next()));
                Some(ResetReply { acknowledgment, ..ResetReply::default() })
            }
            _ => Some(self.tcb.outgoing().active_reset(self.env.now)),
        };
        let mut outcome = Outcome { reset, ..Outcome::default() };
        self.tcb.finish(Some(ConnectionError::Aborted), self.env, &mut outcome);
        self.tcb.update(self.env);
        outcome
    }
}
