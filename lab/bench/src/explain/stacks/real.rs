//! The kernel at one end or both, through the emulator: a namespace for each end, and a TUN device in each.

use super::kernel::{self, Program};
use super::ours::{self, Ours};
use super::{Run, SERVER_PORT};
use crate::explain::path::{Path, Shared};
use crate::explain::situation::Situation;
use crate::figures::kernel::emulator::Emulator;
use crate::figures::kernel::place;
use crate::figures::kernel::subject::{Over, std_time};
use inhost_base::{Cidr, Duration, Ipv4Addr};
use inhost_link::Tunnel;
use inhost_runtime::{Runtime, interface};
use inhost_stack::DuplicateDetection;
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};

/// The kernel at the client and at the server. The network of each reaches all of these addresses.
const KERNEL: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 9, 0, 2)];
/// The kernel's end of the device of our own host, in the namespace whose place it takes.
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 129);
/// Our own host.
const OURS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 130);
/// Time for what is on its way when both programs have ended.
const DRAIN: std::time::Duration = std::time::Duration::from_millis(300);

/// The two namespaces. The thread that makes them is left in the last.
struct Ground {
    namespaces: [File; 2],
    wires: [Tunnel; 2],
    /// The device of our own host.
    own: Option<Tunnel>,
}

impl Ground {
    fn new(situation: &Situation, ours: Option<usize>) -> Result<Ground, String> {
        let mut own = None;
        let mut make = |side: usize| -> Result<(File, Tunnel), String> {
            let namespace = place::enter_new()?;
            kernel::prepare(&situation.sides[side].settings)?;
            // Beside our own host there is a narrower network, so that what is for it goes to its device.
            let is_router = ours == Some(side);
            let wire = place::tunnel("wire", &[(KERNEL[side], if is_router { 25 } else { 24 })])?;
            place::lengthen_queue("wire")?;
            if is_router {
                place::set("net/ipv4/ip_forward", "1")?;
                own = Some(place::tunnel("inhost", &[(ROUTER, 25)])?);
                place::lengthen_queue("inhost")?;
            }
            Ok((namespace, wire))
        };
        let ((client, near), (server, far)) = (make(0)?, make(1)?);
        Ok(Ground { namespaces: [client, server], wires: [near, far], own })
    }
}

fn enter(namespace: &File) -> Result<(), String> {
    setns(namespace, CloneFlags::CLONE_NEWNET).map_err(|e| format!("no way into a namespace: {e}"))
}

/// What the programs of a run share.
struct Shares {
    programs: [Program; 2],
    over: Over,
}

/// Makes a situation; our host is the side `ours`, if any. The thread is left in a namespace of its own.
pub fn run(
    situation: &Situation,
    seed: u64,
    emulator: &Emulator,
    ours: Option<usize>,
) -> Result<Run, String> {
    // The kernel's queue holds one connection more than it is told.
    let situation = &situation.with_fillers(if ours == Some(1) { 0 } else { 1 });
    let Ground { namespaces, wires, own } = Ground::new(situation, ours)?;
    let clock = emulator.clock();
    let gone: [Arc<AtomicBool>; 2] = Default::default();
    let path = Path::new(situation.path.clone(), seed, clock.epoch_ns(), gone.clone())?;
    let path = Shared::new(path);
    let carried = emulator.join(wires, Box::new(path.clone()), None);
    let over = Over::default();
    let programs = gone.map(|gone| Program {
        clock,
        notes: Default::default(),
        gone,
        over: over.clone(),
        samples: Default::default(),
    });
    let shares = Shares { programs, over };
    let mut known = [None, None];
    let ran = within(&shares.over, situation.limit, || -> Result<(), String> {
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for side in [1, 0].into_iter().filter(|side| ours != Some(*side)) {
                enter(&namespaces[side])?;
                let (program, plan) = (&shares.programs[side], &situation.sides[side]);
                let listener = (side == 1).then(|| kernel::listen(&plan.settings)).transpose()?;
                let server = if ours == Some(1) { OURS } else { KERNEL[1] };
                threads.push(scope.spawn(move || match listener {
                    Some(listener) => program.serve(plan, listener),
                    None => program.call(plan, SocketAddr::new(server.into(), SERVER_PORT), situation.limit),
                }));
            }
            if let (Some(side), Some(own)) = (ours, own) {
                known[side] = ours_run(situation, side, own, &shares)?;
            }
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or(Err("a program panicked".to_owned())))
        })
    });
    ran?;
    // What is on its way arrives.
    std::thread::park_timeout(DRAIN);
    let late = carried.count().late.quantile(0.99).unwrap_or(0.0);
    let (log, captures) = path.take().ok_or("the path is gone")?.finish()?;
    let samples = shares.programs.each_ref().map(|program| {
        std::mem::take(&mut *program.samples.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    });
    Ok(Run {
        log,
        captures,
        notes: shares.programs.each_ref().map(|program| program.notes.all()),
        samples,
        known,
        late: Duration::from_nanos(late as u64),
    })
}

/// Does something, and tells it when its time is over.
fn within<T>(over: &Over, limit: Duration, work: impl FnOnce() -> T) -> T {
    let (done, waits) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if waits.recv_timeout(std_time(limit)) == Err(RecvTimeoutError::Timeout) {
                over.store(true, Ordering::Relaxed);
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// Our host's program, on this thread.
fn ours_run(
    situation: &Situation,
    side: usize,
    own: Tunnel,
    shares: &Shares,
) -> Result<Option<inhost_explain::Known>, String> {
    let plan = situation.sides[side].clone();
    let mut runtime = Runtime::new(ours::config(&plan.settings)).map_err(|e| e.to_string())?;
    let mut interface = interface("wire", &own).with_address(Cidr::new(OURS, 24).map_err(|e| e.to_string())?);
    interface.duplicate_detection = DuplicateDetection::Off;
    let host = runtime.host().clone();
    runtime.add_link(&host, interface, Box::new(own)).map_err(|e| e.to_string())?;
    let program = &shares.programs[side];
    let clock = program.clock;
    let ours = Ours {
        host: host.clone(),
        clock: Rc::new(move || clock.now()),
        notes: program.notes.clone(),
        gone: program.gone.clone(),
        known: Rc::default(),
    };
    let known = ours.known.clone();
    let task = match side {
        0 => host.spawn(ours.call(plan, inhost_base::Endpoint::new(KERNEL[1], SERVER_PORT))),
        _ => {
            let listener = ours::listen(&host, &plan)?;
            host.spawn(ours.serve(listener, plan))
        }
    };
    let (waits, over) = (host.clone(), shares.over.clone());
    let time_over = async move {
        while !over.load(Ordering::Relaxed) {
            waits.sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    };
    runtime.run(futures_lite::future::or(task, time_over)).map_err(|e| e.to_string())??;
    let known = known.take();
    // The peer's end is still to be acknowledged.
    let rest = host.clone();
    runtime.run(async move { rest.sleep(Duration::from_millis(200)).await }).map_err(|e| e.to_string())?;
    Ok(known)
}
