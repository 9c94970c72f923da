//! Segments without data that open and close a connection, and what is acknowledged before any data came: while the
//! queues are empty what leaves is known at a glance. The rules are those of the general road in `transmit`.

use crate::marks::{Marks, ReceiveMarks, SendMarks};
use crate::outcome::SegmentOutput;
use crate::phase::Allows;
use crate::sender::next::{Data, Next};
use crate::{Connection, Ecn, Environment, Header, RecoveryState};
use inhost_base::{Instant, Sequence};
use inhost_buf::Slices;
use inhost_event::{Event, Mask, SegmentSent, SendCause, TcpPhase};
use inhost_wire::tcp::Flags;

impl Connection {
    /// The next segment, where [`Self::transmit_control`] may send it.
    #[inline]
    pub(crate) fn control_segment(&self) -> Option<Next> {
        if self.common.marks.has(Marks::UNUSUAL)
            || self.sender.marks.has(SendMarks::UNUSUAL)
            || self.receiver.marks.has(ReceiveMarks::ECHO_CONGESTION)
            || self.sender.recovery.state != RecoveryState::Open
            || self.sender.space.unacknowledged.precedes(self.sender.space.urgent)
        {
            return None;
        }
        let is_idle = self.holds_nothing();
        let next = match self.common.phase {
            TcpPhase::SynSent | TcpPhase::SynReceived
                if self.common.marks.has(Marks::SYNCHRONISE)
                    && self.sender.buffers.is_none()
                    && self.receiver.buffers.is_none() =>
            {
                Next::Synchronise
            }
            _ if !is_idle
                || self.common.marks.has(Marks::SYNCHRONISE)
                || self.receiver.has_sack_news(&self.common) =>
            {
                return None;
            }
            TcpPhase::FinWait1 | TcpPhase::Closing | TcpPhase::LastAck
                if !self.sender.has_outstanding() && !self.sender.is_window_shut(&self.common) =>
            {
                Next::Data(Data { start: self.sender.space.next, length: 0, fin: true, step: 0, again: None })
            }
            TcpPhase::Established | TcpPhase::CloseWait | TcpPhase::FinWait2 | TcpPhase::TimeWait
                if self.receiver.marks.has(ReceiveMarks::ACKNOWLEDGE) =>
            {
                Next::Acknowledge
            }
            _ => return None,
        };
        debug_assert_eq!(Ok(next), self.next_in_general());
        Some(next)
    }
    /// Sends it; whether more may leave after it.
    pub(crate) fn transmit_control<O: SegmentOutput + ?Sized>(
        &mut self,
        next: Next,
        env: &mut Environment<'_>,
        out: &mut O,
    ) -> bool {
        let first = self.sender.space.next;
        self.common.marks.put(Marks::UNSUMMED, !out.wants_sums());
        let left = match next {
            Next::Acknowledge => self.transmit_acknowledgment(env, out),
            _ => {
                let header = match next {
                    Next::Synchronise => self.syn_header(env.now),
                    _ => Header {
                        flags: Flags::FIN | Flags::ACK,
                        ..self.receiver.bare_header(&self.common, first, env).full()
                    },
                };
                let left = out.segment(&header, Slices::EMPTY, Ecn::NotCapable).is_ok();
                match self.common.config.refusal_retry {
                    _ if left => self.committed(next, &header, 0, env),
                    Some(retry) => self.refused_by_link(next, &header, 0, retry, env),
                    None => {}
                }
                left
            }
        };
        let then = self.decide();
        let cause = if left { then.err() } else { Some(SendCause::Link) };
        if self.common.phase.has_fin_outstanding() || self.common.phase.has_fin_acknowledged() {
            // Nothing new is sent any more: how the window was used is no matter.
            if first != self.sender.space.next {
                self.sender.arm_tail_probe(&self.common, false, env.now);
            }
        } else if let Some(cause) = cause {
            self.sender.nothing_more(&self.common, cause, first, env.now);
        }
        self.settle_as(then, env);
        left && then.is_ok()
    }
    fn transmit_acknowledgment<O: SegmentOutput + ?Sized>(
        &mut self,
        env: &mut Environment<'_>,
        out: &mut O,
    ) -> bool {
        let header = self.receiver.bare_header(&self.common, self.acknowledgment_sequence(), env);
        if out.plain(&header, Slices::EMPTY, Ecn::NotCapable).is_err() {
            if let Some(retry) = self.common.config.refusal_retry {
                self.refused_by_link(Next::Acknowledge, &header.full(), 0, retry, env);
            }
            return false;
        }
        self.receiver.acknowledgment_left(&self.common, Next::Acknowledge, header.window);
        let socket = env.socket;
        env.emit(Mask::SEGMENT, || {
            Event::SegmentSent(SegmentSent {
                socket,
                sequence: header.sequence,
                acknowledgment: Some(header.acknowledgment),
                flags: header.flags().bits(),
                payload_bytes: 0,
                window_field: header.window,
            })
        });
        true
    }
    /// The header of our SYN, or SYN and ACK.
    // spec: RFC7323 2.2-4
    pub(crate) fn syn_header(&self, now: Instant) -> Header {
        let (flags, acknowledgment) = match self.common.phase {
            TcpPhase::SynSent => (Flags::SYN, Sequence(0)),
            _ => (Flags::SYN | Flags::ACK, self.receiver.space.next),
        };
        Header {
            sequence: self.sender.syn_sequence(&self.common),
            acknowledgment,
            flags: flags | self.sender.syn_ecn_flags(&self.common),
            // The field of a SYN is never scaled (RFC 7323 §2.2).
            window: self.receiver.window_space(&self.common).min(0xffff) as u16,
            options: self.syn_options(now),
            ..Header::default()
        }
    }
}
