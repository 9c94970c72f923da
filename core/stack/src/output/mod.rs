//! Output: a pass over the sockets that want to send on a link.

use crate::icmp::{EchoSockets, ProbeSockets};
use crate::output::segments::{CommonHeader, Segments};
use crate::parts::{Parts, ip_environment};
use crate::sockets::{AnySocketId, Socket};
use crate::udp::UdpSockets;
use alloc::vec::Vec;
use inhost_base::{Instant, LinkId};
use inhost_buf::{Device, Slices};
use inhost_event::{Layer, Mask, Sink};
use inhost_ip::{HeaderHow, Resolution};
use inhost_tcp::{Blocked, Ecn, SegmentOutput};
use inhost_wire::protocol;

mod device;
mod flow;
mod limit;
mod loopback;
mod reply;
mod segments;

pub use device::Transmitted;
pub(crate) use device::{Counting, Turn};
pub(crate) use loopback::{Loopback, PASS_FRAMES};
pub(crate) use reply::{Replies, Reply};

/// Segments that one connection sends before the next has its turn, where there is one (DEC: transmit fairness).
const SEGMENTS_PER_TURN: usize = 4;
/// The same where the device cuts large frames: one of 64 KiB costs little more than one of 1,500 bytes.
const GSO_SEGMENTS_PER_TURN: usize = 44;
/// Bytes that a pass sends at most, for each frame of its budget.
const PASS_BYTES_A_FRAME: u64 = 4096;

/// A pass over everything that wants to leave by one link.
pub(crate) struct Pass<'a> {
    parts: &'a mut Parts,
    link: LinkId,
    now: Instant,
    budget_frames: usize,
    device: Counting<'a>,
    sink: &'a mut dyn Sink,
}

/// Sends what is due on `link`, at most about `budget_frames` frames.
pub(crate) fn transmit(
    parts: &mut Parts,
    link: LinkId,
    now: Instant,
    budget_frames: usize,
    device: &mut dyn Device,
    sink: &mut dyn Sink,
) -> Transmitted {
    if !parts.has_output(link) {
        return Transmitted::default();
    }
    let wanted = sink.mask().wants(Mask::LINK);
    let mut lengths = if wanted { parts.links.take_lengths() } else { Vec::new() };
    let device = Counting::new(device, wanted.then_some(&mut lengths));
    let mut pass = Pass { parts: &mut *parts, link, now, budget_frames, device, sink: &mut *sink };
    let more = pass.run();
    let (frames, bytes, device_full) = (pass.device.frames(), pass.device.bytes(), pass.device.is_full());
    parts.links.count_sent(link, frames as u64, bytes);
    if wanted {
        parts.links.emit_sent(link, lengths, now, sink);
    }
    Transmitted { frames, more: more || parts.has_output(link), device_full }
}

impl Pass<'_> {
    /// Sends: first the host's own messages, then replies, then each socket in turn. Whether IP has more.
    fn run(&mut self) -> bool {
        let (link, budget_frames) = (self.link, self.budget_frames);
        let (ip_waits, replies_wait) = (self.parts.ip.wants_transmit(link), self.parts.replies.waits(link));
        let mut more = false;
        if ip_waits {
            if self.parts.marks_layers {
                self.sink.begin_layer(Layer::Ip);
            }
            let mut environment = ip_environment!(self.parts, self.now, &mut *self.sink);
            more = self.parts.ip.transmit(link, &mut environment, budget_frames, &mut self.device);
            if self.parts.marks_layers {
                self.sink.end_layer();
            }
        }
        if replies_wait {
            self.transmit_replies();
        }
        // No socket has more turns in a pass than there are frames to send.
        let mut turns = self.parts.schedule.sender_count(link) + budget_frames;
        // Fewer large frames, so that the data of one pass stays in the processor's cache until it is acknowledged.
        let budget_bytes = budget_frames as u64 * PASS_BYTES_A_FRAME;
        while self.device.frames() < budget_frames
            && self.device.bytes() < budget_bytes
            && !self.device.is_full()
            && turns > 0
        {
            let Some(place) = self.parts.schedule.first_sender(link) else { break };
            turns -= 1;
            self.turn(place);
        }
        more
    }

    /// Gives the first socket in the list its turn and puts it where it then belongs.
    fn turn(&mut self, place: usize) {
        let (link, now) = (self.link, self.now);
        self.parts.schedule.take_sending(place);
        let Some(socket) = self.parts.sockets.at_place(place) else { return };
        let left = self.budget_frames - self.device.frames();
        let is_alone = !self.parts.schedule.has_senders(link);
        let budget = match self.device.features().tcp_v4 {
            true if is_alone => left.max(GSO_SEGMENTS_PER_TURN),
            true => GSO_SEGMENTS_PER_TURN,
            false if is_alone => left,
            false => left.min(SEGMENTS_PER_TURN),
        };
        let before = self.device.frames();
        let turn = match self.parts.sockets.typed(socket) {
            Some(AnySocketId::Tcp(id)) => self.flow_turn(id, budget),
            Some(AnySocketId::Udp(id)) => {
                if self.parts.marks_layers {
                    self.sink.begin_layer(Layer::Udp);
                }
                let udp = &mut UdpSockets::new(self.parts);
                let turn = udp.turn(link, id, now, budget, &mut self.device, &mut *self.sink);
                if self.parts.marks_layers {
                    self.sink.end_layer();
                }
                turn
            }
            Some(AnySocketId::Echo(id)) => {
                EchoSockets::new(self.parts).turn(link, id, now, budget, &mut self.device, &mut *self.sink)
            }
            Some(AnySocketId::Probe(id)) => {
                ProbeSockets::new(self.parts).turn(link, id, now, budget, &mut self.device, &mut *self.sink)
            }
            Some(AnySocketId::Listener(_)) | None => Turn::Done,
        };
        if self.parts.sockets.any(socket).is_none() {
            return;
        }
        // A socket that was queued again meanwhile, for example on another link after a route change, stays there.
        match turn {
            Turn::Done => {}
            Turn::More if !self.parts.schedule.is_sending(place) => {
                self.parts.schedule.queue_sender(link, place);
            }
            // The socket had its turn. If it stayed in front, it would get every turn of a slow device.
            Turn::Full if self.device.frames() > before => self.parts.schedule.queue_sender(link, place),
            Turn::Full => self.parts.schedule.queue_sender_first(link, place),
            Turn::Pending => {
                if let Some(neighbour) = self.parts.sockets.any(socket).and_then(Socket::next_hop) {
                    self.parts.schedule.wait_for_neighbour(link, neighbour, place);
                }
            }
            Turn::Unreachable => self.parts.schedule.back_off(link, place, now),
            Turn::More => {}
        }
    }

    fn transmit_replies(&mut self) {
        let link = self.link;
        while self.device.frames() < self.budget_frames && !self.device.is_full() {
            let Some(reply) = self.parts.replies.pop(link) else { return };
            let Reply { path, header } = reply;
            match self
                .parts
                .ip
                .paths_mut()
                .resolve(&path, &mut ip_environment!(self.parts, self.now, &mut *self.sink))
            {
                Resolution::Pending => self.parts.replies.wait_for_neighbour(reply),
                Resolution::Failed => {}
                Resolution::Ready(link_header) => {
                    let common = CommonHeader {
                        path: &path,
                        link_header,
                        how: HeaderHow { dont_fragment: true, ..HeaderHow::new(protocol::TCP) },
                        options: None,
                        local_port: header.source_port,
                        remote_port: header.destination_port,
                    };
                    let gso = self.parts.links.takes_gso(link);
                    let mut output = Segments::new(&mut self.parts.ip, &mut self.device, common, gso);
                    match output.segment(&header, Slices::EMPTY, Ecn::NotCapable) {
                        Ok(()) => self.parts.counters.resets_sent += u64::from(header.flags.rst()),
                        Err(Blocked::Link) if self.device.is_full() => self.parts.replies.put_back(reply),
                        Err(Blocked::Link) => {}
                    }
                }
            }
        }
    }
}
