//! What the application does: send, read, close, abort, and set options (RFC 9293 §3.9.1).

use crate::flags::ConnectionFlags;
use crate::{Connection, ConnectionError, Environment, Outcome, ResetReply, SendHow, StreamError};
use bytes::Bytes;
use inhost_base::Offset;
use inhost_buf::Packet;
use inhost_event::TcpState;

impl Connection {
    /// Adds as many of `bytes` to the send queue as there is room for, and returns how many. They are sent by the next
    /// [`Connection::transmit`], or once the connection is open.
    ///
    /// # Errors
    /// [`StreamError::WouldBlock`] when not one byte fits; a change WRITABLE follows. [`StreamError::Closed`] after
    /// [`Connection::close`], and [`StreamError::Connection`] after the connection's end.
    #[inline]
    pub fn send(
        &mut self,
        bytes: &[u8],
        how: SendHow,
        env: &mut Environment<'_>,
    ) -> Result<usize, StreamError> {
        self.common.may_add()?;
        let taken = self.sender.write(&self.common, bytes, env);
        let added = self.sender.added(&self.common, (taken, bytes.len()), how, env.now());
        self.update(env);
        added
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
    ) -> Result<usize, StreamError> {
        self.common.may_add()?;
        let length = bytes.len();
        let taken = self.sender.lend(&self.common, bytes);
        let added = self.sender.added(&self.common, (taken, length), how, env.now());
        self.update(env);
        added
    }
    /// With [`crate::Policy::pushes_writes_and_bursts`]: the data queued so far ends a burst. `pushed`: its last
    /// segment bears PSH.
    pub fn end_burst(&mut self, pushed: bool) {
        self.sender.end_burst(&self.common, pushed);
        self.common.set(ConnectionFlags::WANTS_TRANSMIT, self.next_segment().is_ok());
    }

    /// Moves bytes of the stream into `into`, in order; `Ok(0)` at the stream's end (or for an empty `into`). A read
    /// stops at the urgent mark, so that [`ReceiveView::urgent_ahead`](crate::ReceiveView::urgent_ahead) tells on which side of it the next byte lies.
    ///
    /// # Errors
    /// [`StreamError::WouldBlock`] while nothing is there, [`StreamError::Connection`] after an end by error.
    #[inline]
    pub fn read(&mut self, into: &mut [u8], env: &mut Environment<'_>) -> Result<usize, StreamError> {
        let most = self.receiver().readable_to_mark(into.len())?;
        let Some(into) = into.get_mut(..most) else { return Ok(0) };
        let count = self.receiver.read(&self.common, into, env);
        self.after_reading(env);
        Ok(count)
    }
    /// Takes the packet with the first unread bytes, so that they are read where the device put them; an empty one at the
    /// stream's end. Data beyond the urgent mark stays. The caller returns the packet to the pool; until then its memory
    /// counts there, and no longer against the window.
    ///
    /// # Errors
    /// As [`Connection::read`].
    pub fn borrow(&mut self, env: &mut Environment<'_>) -> Result<Packet, StreamError> {
        let most = self.receiver().readable_to_mark(usize::MAX)?;
        let Some(packet) = self.receiver.take_front(&self.common, most, env) else {
            // The urgent mark lies within the first packet: the data before it is copied.
            let Some(mut packet) = env.pool().take_bare(most).filter(|_| most > 0) else {
                return Ok(Packet::default());
            };
            if let Some(place) = packet.extend(most) {
                self.read(place, env)?;
            }
            return Ok(packet);
        };
        self.after_reading(env);
        Ok(packet)
    }
    /// Drops up to `bytes` bytes from the front of what waits.
    pub fn consume(&mut self, bytes: usize, env: &mut Environment<'_>) {
        self.receiver.discard(&self.common, bytes, env);
        self.after_reading(env);
    }
    /// Closes our side: a FIN follows the queued data (RFC 9293 §3.10.4). Data of the peer is still received.
    // spec: RFC9293 MUST-60 (what is queued is pushed by the close)
    pub fn close(&mut self, env: &mut Environment<'_>) -> Outcome {
        self.close_sending(env);
        self.update(env);
        env.take_outcome()
    }
    /// The application closes the socket: both sides close, and TCP completes the close by itself. Unread received data
    /// is answered by a reset, so that the peer learns that it is lost (RFC 9293 §3.6.1, RFC 2525 §2.17).
    pub fn detach(&mut self, env: &mut Environment<'_>) -> Outcome {
        if self.receiver().readable_bytes() > 0
            && (!self.common.opens() || self.common.is_early())
            && !matches!(self.common.state(), TcpState::TimeWait | TcpState::Closed)
        {
            return self.end_with_reset(env);
        }
        self.close_sending(env);
        self.receiver.close(&mut self.common, env);
        self.sender.orphaned(&mut self.common, env.now());
        self.update(env);
        env.take_outcome()
    }
    /// Ends the connection at once, with a reset where the peer knows of it and either side may still send, or something
    /// that was received is lost (RFC 9293 §3.10.5, RFC 2525 §2.17).
    pub fn abort(&mut self, env: &mut Environment<'_>) -> Outcome {
        let said_all = matches!(self.common.state(), TcpState::Closing | TcpState::LastAck)
            && self.sender.stream_end() < self.sender.space().next();
        if !said_all || self.receiver().readable_bytes() > 0 {
            return self.end_with_reset(env);
        }
        self.finish(Some(ConnectionError::Aborted), env);
        self.update(env);
        env.take_outcome()
    }
    /// Sends the data that was queued without push now.
    pub fn push(&mut self, env: &mut Environment<'_>) {
        self.sender.push(&self.common);
        self.update(env);
    }

    /// What reading has made due.
    #[inline]
    fn after_reading(&mut self, env: &mut Environment<'_>) {
        if self.receiver.was_read(&self.common) {
            return self.update(env);
        }
        // Reading changes no other decision about what to send.
        let cause = self.receiver.receive_cause(&self.common);
        self.accounts.wait_for(self.accounts.send_cause(), cause, env);
    }
    /// Our side closes.
    fn close_sending(&mut self, env: &mut Environment<'_>) {
        match self.common.state() {
            TcpState::SynSent => self.finish(None, env),
            TcpState::SynReceived => self.common.set(ConnectionFlags::CLOSE_AFTER_OPEN, true),
            TcpState::Established => self.common.enter(TcpState::FinWait1, env),
            TcpState::CloseWait => self.common.enter(TcpState::LastAck, env),
            _ => {}
        }
        if !self.common.opens() && self.common.has_fin_outstanding() {
            self.sender.push_all();
        }
    }
    /// Ends the connection, with a reset to the peer where one is due.
    fn end_with_reset(&mut self, env: &mut Environment<'_>) -> Outcome {
        env.reply(match self.common.state() {
            TcpState::SynSent | TcpState::TimeWait | TcpState::Closed => None,
            TcpState::SynReceived if self.sender.space().next() == Offset::SYN => {
                // Our SYN was not sent: the answer is that of a port without a listener.
                let acknowledgment = Some(self.receiver.space().next_sequence());
                Some(ResetReply { acknowledgment, ..ResetReply::default() })
            }
            _ => Some(self.active_reset(env.now())),
        });
        self.finish(Some(ConnectionError::Aborted), env);
        self.update(env);
        env.take_outcome()
    }
}
