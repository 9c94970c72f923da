//! Our stack at both ends in virtual time: the rounds of the simulator, with the emulator's path between the hosts.

use super::ours::{self, Ours};
use super::{Run, SERVER_PORT};
use crate::explain::path::Path;
use crate::explain::script::Notes;
use crate::explain::situation::Situation;
use inhost_base::{Cidr, Duration, Endpoint, Instant, Ipv4Addr, LinkId};
use inhost_buf::{Batch, Device, Frame, Full};
use inhost_socket::{Host, Task};
use inhost_stack::{DuplicateDetection, InterfaceConfig, Medium, Stack};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// Not from 0: captures have the time of a calendar.
const START: Instant = Instant::from_millis(1_700_000_000_000);
/// What a round takes when there is more to do at once.
const ROUND_TIME: Duration = Duration::from_micros(1);
/// Polls of tasks in a round, and frames sent in one.
const BUDGET: usize = 256;
/// Time for what is on its way when both programs have ended.
const DRAIN: Duration = Duration::from_millis(500);

/// One end of the path, as the device that its host sends to.
struct Sending<'a> {
    path: &'a mut Path,
    end: usize,
    now: Instant,
}

impl Device for Sending<'_> {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let mut packet = vec![0; frame.len()];
        frame.write_to(&mut packet);
        self.path.offer(self.end, packet, self.now);
        Ok(())
    }
}

struct Ends {
    hosts: [Host; 2],
    links: [LinkId; 2],
    batch: Batch,
}

/// Makes a situation.
pub fn run(situation: &Situation, seed: u64) -> Result<Run, String> {
    let now = Rc::new(Cell::new(START));
    let gone = [Arc::default(), Arc::default()];
    let mut path = Path::new(situation.path.clone(), seed, 0, gone.clone())?;
    let mut ends = Ends::new(situation, seed)?;
    let [client, server] = [0, 1].map(|side| {
        let now = now.clone();
        Ours {
            host: ends.hosts[side].clone(),
            clock: Rc::new(move || now.get()),
            notes: Notes::default(),
            gone: gone[side].clone(),
            known: Rc::default(),
        }
    });
    let [call, serve] = situation.with_fillers(0).sides;
    let listener = ours::listen(&server.host, &serve)?;
    let tasks = [
        server.host.spawn(server.clone().serve(listener, serve)),
        client.host.spawn(client.clone().call(call, Endpoint::new(address(1), SERVER_PORT))),
    ];
    ends.drive(&mut path, &now, START + situation.limit, &tasks);
    ends.hosts.iter().for_each(Host::stop);
    let (log, captures) = path.finish()?;
    Ok(Run {
        log,
        captures,
        notes: [client.notes.all(), server.notes.all()],
        samples: Default::default(),
        known: [client.known.take(), server.known.take()],
        late: Duration::ZERO,
    })
}

fn address(end: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, end as u8 + 1)
}

impl Ends {
    fn new(situation: &Situation, seed: u64) -> Result<Ends, String> {
        let make = |side: usize| -> Result<(Host, LinkId), String> {
            let mut bytes = [side as u8; 32];
            bytes[..8].copy_from_slice(&seed.to_le_bytes());
            let mut stack = Stack::new(ours::config(&situation.sides[side].settings), bytes, START);
            let mut interface = InterfaceConfig::new("wire", Medium::Ip);
            interface.mtu_bytes = 1500;
            interface.duplicate_detection = DuplicateDetection::Off;
            interface.addresses.extend(Cidr::new(address(side), 24));
            let link = stack.add_link(interface, START).map_err(|e| e.to_string())?;
            Ok((Host::new(stack, START), link))
        };
        let ((client, near), (server, far)) = (make(0)?, make(1)?);
        Ok(Ends { hosts: [client, server], links: [near, far], batch: Batch::new() })
    }
    /// Makes rounds until both programs have ended and nothing is on its way, or the time is over.
    fn drive(
        &mut self,
        path: &mut Path,
        clock: &Cell<Instant>,
        end: Instant,
        tasks: &[Task<Result<(), String>>; 2],
    ) {
        let mut end = end;
        let mut is_over = false;
        while clock.get() < end {
            let now = clock.get();
            let mut arrived = [Vec::new(), Vec::new()];
            path.advance(now, |end, _, packet| arrived[end].push(packet.to_vec()));
            let mut next = end;
            for (side, packets) in arrived.into_iter().enumerate() {
                next = next.min(self.round(side, packets, path, now));
            }
            next = path.next().map_or(next, |at| next.min(at));
            clock.set(next.max(now + ROUND_TIME));
            if !is_over && tasks.iter().all(Task::is_finished) {
                is_over = true;
                end = end.min(now + DRAIN);
            }
        }
    }
    /// One round of a host; when it wants the next.
    fn round(&mut self, side: usize, packets: Vec<Vec<u8>>, path: &mut Path, now: Instant) -> Instant {
        let (host, link) = (&self.hosts[side], self.links[side]);
        for bytes in packets {
            if let Some(mut packet) = host.with_stack(|stack, _| stack.pool().take(bytes.len())) {
                packet.append(&bytes);
                let _ = self.batch.push(packet);
            }
            if self.batch.is_full() {
                host.receive(link, &mut self.batch, now);
            }
        }
        host.receive(link, &mut self.batch, now);
        host.run(now, BUDGET);
        let mut more = host.has_runnable();
        if host.wants_transmit(link) {
            more |= host.transmit(link, now, BUDGET, &mut Sending { path, end: side, now }).more;
        }
        let own = host.deadline().unwrap_or(Instant::FAR_FUTURE);
        if more { now + ROUND_TIME } else { own }
    }
}
