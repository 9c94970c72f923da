//! Data in order and ahead of a hole (RFC 9293 §3.10.7.4, seventh step; RFC 5681 §4.2), and urgent data (RFC 9293
//! §3.8.5, RFC 6093): the pointer names the byte after the last urgent one, and urgent bytes stay in the stream.

use super::Receiver;
use crate::arrival::{Arrival, Coming};
use crate::common::Common;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::{Changes, Environment};
use inhost_base::Offset;
use inhost_buf::{Packet, Pool};
use inhost_event::{Drop, Layer, TcpState};

/// Least payload ahead of a hole with which the window grows.
const GROWING_AHEAD_BYTES: u32 = 8;

impl Receiver {
    /// Takes the next bytes in order, which may lie in several packets, and the data that they connect to; true when such
    /// data was held. Acknowledging them is the caller's part, unless it is due at once.
    // spec: RFC5681 3.2-2
    pub fn take_in_order(
        &mut self,
        common: &Common,
        payload: &mut [Packet],
        coming: Coming,
        env: &mut Environment<'_>,
    ) -> bool {
        let length = coming.new_bytes;
        if length == 0 {
            return false;
        }
        self.note_data(common, coming, env.now());
        if coming.bytes >= u32::from(self.space.segment_bytes()) {
            self.measure_as_receiver(common, coming.timestamps, env.now());
        }
        let buffers = self.buffers.get_or_insert_default();
        for piece in payload {
            buffers.receive.push(piece.take(), env.pool());
        }
        let next = self.space.next() + length;
        let fills_hole = !buffers.reassembly.is_empty() && !coming.fin;
        let joined = if fills_hole { self.fill_hole(common, next, env) } else { 0 };
        self.space.receive(length + joined);
        self.ack_timing.forgive_duplicates();
        self.flags.insert(ReceiverFlags::SCHEDULED);
        fills_hole
    }
    /// Whether what is here in order reaches the peer's FIN, which arrived before.
    pub fn reaches_fin(&self) -> bool {
        self.buffers.as_ref().is_some_and(|buffers| buffers.reassembly.ends_by(self.space.next()))
    }
    /// The peer's FIN arrived, with all before it. Where acknowledgments adapt it is acknowledged as data is, in
    /// ESTABLISHED, unless `at_once`: an answer may follow, at least our FIN, so the connection counts as interactive.
    pub fn take_fin(&mut self, common: &Common, at_once: bool, pool: &mut Pool) {
        self.space.receive_fin();
        let may_wait = common.acks_adapt() && common.state() == TcpState::Established;
        if at_once || !may_wait {
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        }
        if may_wait {
            self.flags.insert(ReceiverFlags::INTERACTIVE | ReceiverFlags::SCHEDULED);
            let is_alone = self.buffers.as_ref().is_none_or(|buffers| buffers.receive.is_empty());
            self.flags.set(ReceiverFlags::FIN_UNREAD, is_alone);
        }
        if let Some(buffers) = &mut self.buffers {
            buffers.reassembly.end(pool);
        }
    }
    /// Moves bytes that wait into `into`, and says how many.
    #[inline]
    pub fn read(&mut self, common: &Common, into: &mut [u8], env: &mut Environment<'_>) -> usize {
        env.begin_layer(Layer::Read);
        let count = self.buffers.as_mut().map_or(0, |buffers| buffers.receive.read(into, env.pool()));
        env.end_layer();
        self.size_receive_buffer(common, count, env);
        count
    }
    /// Takes the packet with the first bytes that wait, an empty one where there is none, unless it has more than `most`.
    pub fn take_front(&mut self, common: &Common, most: usize, env: &mut Environment<'_>) -> Option<Packet> {
        let buffers = self.buffers.as_mut().filter(|buffers| buffers.receive.front().len() <= most)?;
        let packet = buffers.receive.take().unwrap_or_default();
        self.size_receive_buffer(common, packet.len(), env);
        Some(packet)
    }
    /// Drops up to `bytes` bytes from the front of what waits.
    pub fn discard(&mut self, common: &Common, bytes: usize, env: &mut Environment<'_>) {
        let Some(buffers) = &mut self.buffers else { return };
        let count = bytes.min(buffers.receive.len());
        buffers.receive.discard(count, env.pool());
        self.size_receive_buffer(common, count, env);
    }
    /// Takes the next bytes in order of a stream without a hole.
    #[inline(always)]
    pub fn take_following(&mut self, payload: Packet, pool: &mut Pool) {
        let length = payload.len() as u32;
        self.buffers.get_or_insert_default().receive.push(payload, pool);
        self.space.receive(length);
    }
    /// Data in order reaches to `next`: moves the data held beyond it to the queue. Data that fills a hole is
    /// acknowledged at once (RFC 5681 §4.2).
    #[inline(never)]
    fn fill_hole(&mut self, common: &Common, next: Offset, env: &mut Environment<'_>) -> u32 {
        let tells = common.has(ConnectionFlags::SACK) && common.config().duplicate_sack;
        let Some(buffers) = &mut self.buffers else { return 0 };
        if tells {
            buffers.reassembly.note_overlap(next);
        }
        let joined = buffers.reassembly.drain_into(next, &mut buffers.receive, env.pool());
        self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        joined
    }
    /// Out-of-order data: kept if there is room, and acknowledged at once in either case, so that the sender receives a
    /// duplicate (RFC 5681 §4.2). Each such segment is owed a duplicate of its own, because the sender counts them:
    /// otherwise segments that arrive in one batch would never yield three.
    // spec: RFC5681 3.2-1; RFC2018 4-4
    pub fn keep_for_later(&mut self, common: &Common, arrival: &mut Arrival<'_>, env: &mut Environment<'_>) {
        self.flags.insert(ReceiverFlags::SCHEDULED);
        self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        self.ack_timing.owe_duplicate();
        if common.acks_adapt()
            && common.has(ConnectionFlags::SACK)
            && arrival.whole_bytes >= GROWING_AHEAD_BYTES
        {
            self.tell_of_growth(common, arrival.whole_bytes);
        }
        if env.pool().is_under_pressure() {
            env.discarded(Drop::NoMemory);
            return;
        }
        if common.acks_adapt() {
            self.measure_segments(common, arrival.coming());
        }
        // Data in the advertised window fits the buffer, unless that has shrunk since; then the peer retransmits it.
        let limit = self.receive_buffer_bytes(common);
        let most_runs = common.config().reassembly_limit_pieces;
        let tells_duplicates = common.has(ConnectionFlags::SACK) && common.config().duplicate_sack;
        let (start, end) = (arrival.start, arrival.start + arrival.payload.len() as u32);
        let fin = arrival.fin;
        let buffers = self.buffers.get_or_insert_default();
        let fin_came_before = fin && buffers.reassembly.ends_by(end);
        let is_new = !fin || buffers.reassembly.insert_fin(start, end);
        if !arrival.payload.is_empty() && is_new {
            let room_bytes = limit.saturating_sub(buffers.receive.capacity_bytes());
            let packet = arrival.payload.take();
            if !buffers.reassembly.insert(start, packet, room_bytes, most_runs, env.pool()) {
                env.discarded(Drop::QueueFull);
            }
            if fin {
                buffers.reassembly.repeat_fin(end, fin_came_before);
            }
        }
        if !tells_duplicates {
            buffers.reassembly.forget_duplicate();
        }
    }
    /// Takes note of the peer's mark.
    // spec: RFC9293 MUST-32 (the application hears of it at once, ahead of the data)
    pub fn take_urgent(&mut self, common: &Common, arrival: &Arrival<'_>, env: &mut Environment<'_>) {
        let header = arrival.header;
        if !header.flags.urg() || !common.expects_data() {
            return;
        }
        let first = arrival.first + u32::from(header.flags.syn());
        let least = u16::from(common.policy().zero_urgent_pointer_counts);
        let mark = first + u32::from(header.urgent_pointer.max(least));
        if self.space.urgent() < mark && self.read_position(common) < mark {
            self.space.urge_to(mark);
            env.changed(Changes::URGENT);
        }
    }
    /// The position of the next byte that the application will read.
    #[inline]
    pub fn read_position(&self, common: &Common) -> Offset {
        let waiting = self.buffers.as_ref().map_or(0, |buffers| buffers.receive.len() as u32);
        self.space.next().back(waiting + u32::from(common.peer_has_closed()))
    }
}
