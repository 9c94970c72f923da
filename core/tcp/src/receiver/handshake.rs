//! The receiver during the handshake: what our SYN offers and the peer's says, and data in the peer's SYN (RFC 7413).

use super::Receiver;
use crate::arrival::Coming;
use crate::common::Common;
use crate::flags::ConnectionFlags;
use crate::{Environment, Header};
use core::slice::from_mut;
use inhost_base::{Instant, Sequence};
use inhost_buf::Packet;
use inhost_event::TcpState;
use inhost_wire::tcp::{Flags, TcpOptions};

/// The least that a peer is thought to send in a full segment: IPv4's minimum MTU of 68 less 20 bytes of header.
const LEAST_ASSUMED_BYTES: u16 = 48;

impl Receiver {
    /// The header of our SYN, or SYN and ACK, but for what the [sender](crate::sender::Sender::complete_syn) adds.
    // spec: RFC7323 2.2-4
    pub fn syn_header(&self, common: &Common, now: Instant) -> Header {
        let (flags, acknowledgment) = match common.state() {
            TcpState::SynSent => (Flags::SYN, Sequence(0)),
            _ => (Flags::SYN | Flags::ACK, self.space.next_sequence()),
        };
        // The field of a SYN is never scaled (RFC 7323 §2.2).
        let window = self.window_space(common).min(0xffff) as u16;
        Header { acknowledgment, flags, window, options: self.syn_options(common, now), ..Header::default() }
    }
    /// The options of our SYN, but for Fast Open's. In answer to a SYN only what that offered is offered (RFC 7323 §2.2, §3.2).
    // spec: RFC7323 2.2-1, 2.3-1, 3.2-1; RFC2018 2-1; RFC9293 SHLD-5, MAY-3
    fn syn_options(&self, common: &Common, now: Instant) -> TcpOptions {
        let answering = common.state() == TcpState::SynReceived;
        let config = common.config();
        let offers = |flag, asks| if answering { common.has(flag) } else { asks };
        TcpOptions {
            // spec: RFC9293 MUST-14 (the option is sent)
            // spec: RFC9293 MUST-65 (on SYNs only)
            // spec: RFC9293 MUST-67 (what IP can take in, less the 20 bytes of our header)
            mss: Some(common.path_mss()),
            window_scale: offers(ConnectionFlags::SCALING, config.window_scaling)
                .then_some(self.space.scale()),
            // RFC 2018 §2
            sack_permitted: offers(ConnectionFlags::SACK, config.sack),
            timestamps: offers(ConnectionFlags::TIMESTAMPS, config.timestamps)
                .then(|| (common.timestamp(now), self.timestamp_recent)),
            ..TcpOptions::NONE
        }
    }
    /// Takes over what the peer's SYN says.
    // spec: RFC7323 2.2-3
    pub fn learn_from_syn(&mut self, common: &Common, syn: &Header, now: Instant) {
        self.space.begin(syn.sequence);
        if !common.has(ConnectionFlags::SCALING) {
            self.space.forgo_scale();
        }
        if let Some((value, _)) = syn.options.timestamps
            && common.has(ConnectionFlags::TIMESTAMPS)
        {
            self.set_timestamp_recent(value, now);
        }
    }
    /// The handshake is done. Full-sized segments of the peer's have no more payload than the path takes; where acknowledgments
    /// adapt, a peer that takes little is thought to send little.
    pub fn assume_segments(&mut self, common: &Common, own_bytes: u32) {
        let known = self.space.segment_bytes().min(common.path_mss());
        let adapted = || (own_bytes.min(u32::from(known)) as u16).max(LEAST_ASSUMED_BYTES);
        self.space.assume_segments_of(if common.acks_adapt() { adapted() } else { known });
    }
    /// Takes the data of the SYN with which the peer opens fast. It is not a sample of the arrival rate.
    pub fn take_syn_data(
        &mut self,
        common: &Common,
        syn: &Header,
        payload: &mut Packet,
        env: &mut Environment<'_>,
    ) {
        let bytes = payload.len() as u32;
        let coming = Coming {
            bytes,
            new_bytes: bytes,
            push: syn.flags.psh(),
            is_marked: false,
            fin: false,
            timestamps: syn.options.timestamps,
        };
        let ack_timing = self.ack_timing;
        self.take_in_order(common, from_mut(payload), coming, env);
        self.schedule_acknowledgment(common, env.now());
        self.ack_timing = ack_timing;
    }
}
