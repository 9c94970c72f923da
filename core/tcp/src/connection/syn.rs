//! Our SYN, and what the peer's begins in place of a connection in TIME-WAIT (RFC 9293 §3.5, RFC 6191).

use super::Connection;
use crate::Header;
use crate::flags::ConnectionFlags;
use inhost_base::{Instant, Sequence};
use inhost_event::TcpState;
use inhost_wire::tcp::{Flags, TcpOptions};

impl Connection {
    /// The header of our SYN, or SYN and ACK.
    // spec: RFC7323 2.2-4
    pub(super) fn syn_header(&self, now: Instant) -> Header {
        let (flags, acknowledgment) = match self.common.state {
            TcpState::SynSent => (Flags::SYN, Sequence(0)),
            _ => (Flags::SYN | Flags::ACK, self.receiver.space().next_sequence()),
        };
        Header {
            sequence: self.sender.space().initial(),
            acknowledgment,
            flags: flags | self.sender.syn_ecn_flags(&self.common),
            // The field of a SYN is never scaled (RFC 7323 §2.2).
            window: self.receiver.window_space(&self.common).min(0xffff) as u16,
            options: self.syn_options(now),
            ..Header::default()
        }
    }
    /// The options of our SYN. In answer to a SYN only what that offered is offered (RFC 7323 §2.2, §3.2).
    // spec: RFC7323 2.2-1, 2.3-1, 3.2-1; RFC2018 2-1; RFC9293 SHLD-5, MAY-3
    fn syn_options(&self, now: Instant) -> TcpOptions {
        let answering = self.common.state == TcpState::SynReceived;
        let config = &self.common.config;
        let offers = |flag, asks| if answering { self.common.flags.contains(flag) } else { asks };
        let (fast_open, fast_open_experimental) = self.sender.fast_open_option();
        TcpOptions {
            // spec: RFC9293 MUST-14 (the option is sent)
            // spec: RFC9293 MUST-65 (on SYNs only)
            // spec: RFC9293 MUST-67 (what IP can take in, less the 20 bytes of our header)
            mss: Some(self.common.path_mss),
            window_scale: offers(ConnectionFlags::SCALING, config.window_scaling)
                .then_some(self.receiver.space().scale()),
            // RFC 2018 §2
            sack_permitted: offers(ConnectionFlags::SACK, config.sack),
            timestamps: offers(ConnectionFlags::TIMESTAMPS, config.timestamps)
                .then(|| (self.common.timestamp(now), self.receiver.timestamp_recent())),
            fast_open,
            fast_open_experimental,
            ..TcpOptions::NONE
        }
    }
    /// Whether `header`, a SYN for a connection in TIME-WAIT, may begin a new one in its place (RFC 9293 §3.10.7.4,
    /// RFC 6191): the least initial sequence number that the new connection must choose.
    // spec: RFC9293 SHLD-4
    pub fn yields_to(&self, header: &Header) -> Option<Sequence> {
        let flags = header.flags & (Flags::SYN | Flags::ACK | Flags::RST | Flags::FIN);
        if self.common.state != TcpState::TimeWait || flags != Flags::SYN {
            return None;
        }
        let newer_number = self.receiver.space().next() < self.receiver.space().offset(header.sequence);
        let newer = match header.options.timestamps {
            Some((value, _)) if self.common.flags.contains(ConnectionFlags::TIMESTAMPS) => {
                let ahead = value.wrapping_sub(self.receiver.timestamp_recent()) as i32;
                ahead > 0 || (ahead == 0 && newer_number)
            }
            _ => newer_number,
        };
        // A distance that no earlier segment of ours can bridge.
        let distance = self.sender.space().largest_window().max(0xffff);
        newer.then(|| self.sender.space().sequence(self.sender.space().next() + distance))
    }
}
