//! Observable state of a host: the part that a rejected frame must not change, and the limited part.

use inhost_base::{Duration, Instant, Sequence};
use inhost_event::TcpState;
use inhost_ip::limits;
use inhost_stack::{ConnectionError, SoftError, Stack};
use inhost_tcp::Info;

use super::world::{LINKS, TRANSFERS, World};

/// Connections of the transfers.
pub(super) type Connections = [Option<Connection>; TRANSFERS];

/// What a connection has. Time that merely passes is left out, and so is the cause of waiting, for a connection that
/// is to answer waits for the link.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Connection {
    state: TcpState,
    pub send_unacknowledged: Sequence,
    pub send_next: Sequence,
    send_window_bytes: u32,
    send_queue_bytes: usize,
    in_flight_bytes: u32,
    pub receive_next: Sequence,
    pub receive_window_bytes: u32,
    receive_queue_bytes: usize,
    reassembly: (usize, usize),
    urgent_ahead_bytes: Option<usize>,
    round_trip: (Option<Duration>, Duration),
    retransmission: (Duration, u8, u32, u32),
    congestion: (u32, u32),
    streams: (u64, u64),
    heard_at: Instant,
    errors: (Option<ConnectionError>, Option<SoftError>),
}

impl Connection {
    fn of(info: &Info, now: Instant) -> Connection {
        Connection {
            state: info.state,
            send_unacknowledged: info.send_unacknowledged,
            send_next: info.send_next,
            send_window_bytes: info.send_window_bytes,
            send_queue_bytes: info.send_queue_bytes,
            in_flight_bytes: info.in_flight_bytes,
            receive_next: info.receive_next,
            receive_window_bytes: info.receive_window_bytes,
            receive_queue_bytes: info.receive_queue_bytes,
            reassembly: (info.reassembly_pieces, info.reassembly_bytes),
            urgent_ahead_bytes: info.urgent_ahead_bytes,
            round_trip: (info.smoothed_round_trip, info.round_trip_variation),
            retransmission: (
                info.retransmission_timeout,
                info.retransmission_backoff,
                info.retransmitted_segments,
                info.timeouts,
            ),
            congestion: (info.congestion_window_bytes, info.slow_start_threshold_bytes),
            streams: (info.sent_bytes, info.received_bytes),
            heard_at: now - info.idle,
            errors: (info.error, info.soft_error),
        }
    }
}

/// The rest of a host.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Surroundings {
    deadline: Option<Instant>,
    wants_transmit: [bool; LINKS],
    sockets: usize,
    outstanding_bytes: usize,
    generation: u32,
    reassemblies: (usize, usize),
    redirects: usize,
    addresses: [usize; LINKS],
}

impl World {
    pub fn connections(&self) -> Connections {
        self.victim().with_stack(|stack, now| {
            let mut place = 0;
            [(); TRANSFERS].map(|()| {
                let transfer = self.transfers.get(place)?;
                place += 1;
                stack
                    .instruments()
                    .info(transfer.socket, now)?
                    .tcp
                    .as_ref()
                    .map(|info| Connection::of(info, now))
            })
        })
    }
    pub fn surroundings(&self) -> Surroundings {
        self.victim().with_stack(|stack, _| Surroundings {
            deadline: stack.deadline(),
            wants_transmit: self.names.map(|link| stack.wants_transmit(link)),
            sockets: stack.instruments().socket_count(),
            outstanding_bytes: stack.memory().outstanding_bytes(),
            generation: stack.ip().paths().generation(),
            reassemblies: stack.ip().reassemblies(),
            redirects: stack.ip().paths().redirects(),
            addresses: self
                .names
                .map(|link| stack.ip().interface(link).map_or(0, |link| link.addresses().len())),
        })
    }
    /// Drops so far on a link: of one kind each, in the order of [`inhost_event::Drop::ALL`].
    pub fn drops(&self, link: usize) -> [u64; inhost_event::Drop::COUNT] {
        let name = self.names[link];
        self.victim().with_stack(|stack, _| {
            stack.instruments().link_counters(name).map_or([0; _], |link| link.dropped)
        })
    }
    /// Whether the victim is within every limit; memory in use, in bytes.
    pub fn within_limits(&self) -> Result<usize, String> {
        self.victim().with_stack(|stack, _| {
            for &link in &self.names {
                let ip = stack.ip();
                let Some(interface) = ip.interface(link) else { continue };
                let counted = [
                    ("neighbours", interface.neighbours().len(), limits::NEIGHBOURS),
                    ("addresses", interface.addresses().len(), limits::ADDRESSES),
                    ("groups", interface.groups().len(), limits::GROUPS),
                    ("routes", ip.paths().routes().len(), limits::ROUTES),
                    ("redirects", ip.paths().redirects(), limits::REDIRECTS),
                    ("reassemblies", ip.reassemblies().0, limits::REASSEMBLIES),
                    ("reassembly bytes", ip.reassemblies().1, limits::REASSEMBLY_BYTES),
                    ("sockets", stack.instruments().socket_count(), socket_limit()),
                    ("bytes in use", stack.memory().outstanding_bytes(), memory_limit(stack)),
                ];
                if let Some((what, count, limit)) =
                    counted.into_iter().find(|(_, count, limit)| count > limit)
                {
                    return Err(format!("{count} {what}, with a limit of {limit}"));
                }
            }
            Ok(stack.memory().outstanding_bytes())
        })
    }
}

/// Listeners, UDP sockets and transfers of this world, and full queues of the two open listeners.
fn socket_limit() -> usize {
    let options = inhost_stack::ListenOptions::default();
    4 + 2 * TRANSFERS + 2 * (options.syn_queue + options.backlog)
}

/// What the transfers' queues, reassembly, control frames and datagram sockets may hold at most.
fn memory_limit(stack: &Stack) -> usize {
    let tcp = &stack.config().tcp;
    let of_transfers = TRANSFERS * (tcp.send_buffer_limit_bytes + tcp.receive_buffer_limit_bytes);
    let of_control = LINKS * (limits::CONTROL_FRAMES + limits::CONTROL_PACKETS_WAITING) * 2176;
    let udp = inhost_stack::UdpOptions::default();
    of_transfers
        + of_control
        + limits::REASSEMBLY_BYTES
        + 2 * (udp.receive_limit_bytes + udp.send_limit_bytes)
}
