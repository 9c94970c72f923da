//! A pass over everything that wants to leave by one link: IP's own packets, replies, and each socket in turn.

mod datagrams;
mod tcp;

use crate::environment::Environment;
use crate::network::Network;
use crate::output::{CommonHeader, Counting, Reply, Segments, Transmitted, Turn};
use crate::socket::AnySocketId;
use crate::sockets::Sockets;
use inhost_base::LinkId;
use inhost_buf::{Device, Full, Slices};
use inhost_event::{Layer, Mask};
use inhost_ip::{HeaderHow, Resolution};
use inhost_tcp::{Ecn, SegmentOutput};
use inhost_wire::protocol;

/// Segments that one connection sends before the next has its turn, where there is one (DEC: transmit fairness).
const SEGMENTS_PER_TURN: usize = 4;
/// The same where the device cuts large frames: one of 64 KiB costs little more than one of 1,500 bytes.
const GSO_SEGMENTS_PER_TURN: usize = 44;
/// Bytes that a pass sends at most, for each frame of its budget.
const PASS_BYTES_A_FRAME: u64 = 4096;

/// A pass over everything that wants to leave by one link.
struct Pass<'p, 'e, 'd> {
    sockets: &'p mut Sockets,
    link: LinkId,
    budget_frames: usize,
    device: Counting<'d>,
    env: &'p mut Environment<'e>,
}

/// Sends what is due on `link`, at most about `budget_frames` frames: first the host's own messages, then replies, then each
/// socket in turn.
#[inline(always)]
pub(crate) fn transmit(
    sockets: &mut Sockets,
    link: LinkId,
    budget_frames: usize,
    device: &mut dyn Device,
    env: &mut Environment<'_>,
) -> Transmitted {
    let waiting @ (ip_waits, replies_wait) = env.network().waiting(link);
    if !sockets.schedule().has_senders(link) && !ip_waits && !replies_wait {
        return Transmitted::default();
    }
    let is_told = env.sink().mask().intersects(Mask::LINK);
    let lengths = is_told.then(|| env.network_mut().links_mut().take_lengths());
    let device = Counting::new(device, lengths);
    Pass { sockets, link, budget_frames, device, env }.run(waiting)
}

/// Whether something is to leave by `link`.
#[inline]
pub(crate) fn has_output(sockets: &Sockets, network: &Network, link: LinkId) -> bool {
    let (ip_waits, replies_wait) = network.waiting(link);
    sockets.schedule().has_senders(link) || replies_wait || ip_waits
}

impl Pass<'_, '_, '_> {
    /// The pass, where IP's own packets and replies wait or not.
    #[inline(never)]
    fn run(mut self, (ip_waits, replies_wait): (bool, bool)) -> Transmitted {
        let (link, mut ip_has_more) = (self.link, false);
        if ip_waits {
            self.env.begin_layer(Layer::Ip);
            let (ip, mut environment) = self.env.ip();
            ip_has_more = ip.transmit(link, &mut environment, self.budget_frames, &mut self.device);
            self.env.end_layer();
        }
        if replies_wait {
            self.transmit_replies();
        }
        self.transmit_sockets();
        let Pass { sockets, device, env, .. } = self;
        let (frames, bytes, device_full) = (device.frames(), device.bytes(), device.is_full());
        env.count_sent(link, (frames as u64, bytes), device.into_lengths());
        let more = ip_has_more || has_output(sockets, env.network(), link);
        Transmitted { frames, more, device_full }
    }
    /// Gives each socket its turn.
    fn transmit_sockets(&mut self) {
        let (link, budget_frames) = (self.link, self.budget_frames);
        // No socket has more turns in a pass than there are frames to send.
        let mut turns = self.sockets.schedule().sender_count(link) + budget_frames;
        // Fewer large frames, so that the data of one pass stays in the processor's cache until it is acknowledged.
        let budget_bytes = budget_frames as u64 * PASS_BYTES_A_FRAME;
        while self.device.frames() < budget_frames
            && self.device.bytes() < budget_bytes
            && !self.device.is_full()
            && turns > 0
        {
            let Some(place) = self.sockets.schedule().first_sender(link) else { break };
            turns -= 1;
            self.turn(place);
        }
    }

    /// Gives the first socket in the list its turn and puts it where it then belongs.
    fn turn(&mut self, place: usize) {
        let link = self.link;
        self.sockets.schedule_mut().take_sending(place);
        let Some(socket) = self.sockets.typed_at(place) else { return };
        let left = self.budget_frames - self.device.frames();
        let is_alone = !self.sockets.schedule().has_senders(link);
        let budget = match self.device.offers().tcp_v4 {
            true if is_alone => left.max(GSO_SEGMENTS_PER_TURN),
            true => GSO_SEGMENTS_PER_TURN,
            false if is_alone => left,
            false => left.min(SEGMENTS_PER_TURN),
        };
        let before = self.device.frames();
        let turn = match socket {
            AnySocketId::Tcp(id) => self.flow_turn(id, budget),
            AnySocketId::Udp(_) => {
                self.env.begin_layer(Layer::Udp);
                let turn = self.datagram_turn(socket, budget);
                self.env.end_layer();
                turn
            }
            AnySocketId::Echo(_) | AnySocketId::Probe(_) => self.datagram_turn(socket, budget),
            AnySocketId::Listener(_) => Turn::Done,
        };
        if turn == Turn::Done || self.sockets.any(socket.into()).is_none() {
            return;
        }
        let now = self.env.now();
        let schedule = self.sockets.schedule_mut();
        // A socket that was queued again meanwhile, for example on another link after a route change, stays there.
        match turn {
            Turn::Done => {}
            Turn::More if !schedule.is_sending(place) => schedule.queue_sender(link, place),
            Turn::More => {}
            // The socket had its turn. If it stayed in front, it would get every turn of a slow device.
            Turn::Full if self.device.frames() > before => schedule.queue_sender(link, place),
            Turn::Full => schedule.queue_sender_first(link, place),
            Turn::Pending(neighbour) => schedule.wait_for_neighbour(link, neighbour, place),
            Turn::Unreachable => schedule.back_off(link, place, now),
        }
    }

    fn transmit_replies(&mut self) {
        let Pass { link, budget_frames, device, env, .. } = self;
        while device.frames() < *budget_frames && !device.is_full() {
            let Some(&Reply { path, header }) = env.network().links().first_reply(*link) else { return };
            let (ip, mut environment) = env.ip();
            let resolved = ip.paths_mut().resolve(&path, &mut environment);
            let waits = matches!(resolved, Resolution::Pending);
            if let Resolution::Ready(link_header) = resolved {
                let common = CommonHeader {
                    path: &path,
                    link_header,
                    how: HeaderHow { dont_fragment: true, ..HeaderHow::new(protocol::TCP) },
                    options: None,
                    local_port: header.source_port,
                    remote_port: header.destination_port,
                };
                let gso = env.network().links().takes_gso(*link);
                let mut output = Segments::new(env.network_mut().ip_mut(), device, &common, gso);
                match output.segment(&header, Slices::EMPTY, Ecn::NotCapable) {
                    Ok(()) => env.counters().resets_sent += u64::from(header.flags.rst()),
                    Err(Full) if device.is_full() => return,
                    Err(Full) => {}
                }
            }
            env.network_mut().links_mut().finish_reply(*link, waits);
        }
    }
}
