//! A screenful of text from the peer, printed (MIT §6.2.5).

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::{Duration, Instant};
use inhost_sim::CoarseClock;

use super::{LIMIT, serve, wrong};
use crate::measured::Measured;
use crate::setup::Setup;
use crate::world::{MEASURED, PEER, World};
use inhost_sim::setup::SetupError;

/// 24 lines of 80 characters, and 23 carriage returns of two bytes each (MIT §6.2.3).
const SCREENFUL_BYTES: usize = 1966;
/// After the connection was opened, the machine is at rest for so long before the screen comes.
const REST: Duration = Duration::from_secs(2);
/// The tick of the PC's clock (MIT §6.1).
const TICK: Duration = Duration::from_millis(55);

pub(super) fn run(setup: &Setup, seed: u64) -> Result<Measured, SetupError> {
    let mut world = World::new(setup, seed)?;
    let peer = world.node(PEER);
    let serving = async move {
        let stream = serve(&peer).await?;
        peer.host.sleep(REST.times(2)).await;
        peer.write(&stream, &[b'a'; SCREENFUL_BYTES]).await.map_err(wrong)?;
        stream.closed().await.map_err(wrong)
    };
    world.spawn(PEER, serving);
    let (node, at) = (world.node(MEASURED), world.peer());
    let times = Rc::new(Cell::new((Instant::ZERO, Instant::ZERO)));
    let (measures, is_at_rest) = (times.clone(), Rc::new(Cell::new(false)));
    let rests = is_at_rest.clone();
    let printing = async move {
        let stream = node.host.connect(at).await.map_err(wrong)?;
        node.host.sleep(REST).await;
        rests.set(true);
        let (mut place, mut left) = ([0; SCREENFUL_BYTES], SCREENFUL_BYTES);
        while left > 0 {
            let count = node.read(&stream, &mut place).await.map_err(wrong)?;
            if count == 0 {
                return Err("the peer closed".to_owned());
            }
            if left == SCREENFUL_BYTES {
                measures.set((node.host.now(), Instant::ZERO));
            }
            left -= count;
            let (host, measures) = (node.host.clone(), measures.clone());
            node.print(count, true).await;
            measures.set((measures.get().0, host.now()));
        }
        Ok(())
    };
    let printed = world.spawn(MEASURED, printing);
    world.run_until(LIMIT, &printed, || is_at_rest.get())?;
    let used_before = world.network.used(MEASURED).total();
    world.run(LIMIT, &printed)?;
    let busy = world.network.used(MEASURED).total() - used_before;
    let (from, to) = times.get();
    let phase = Duration::from_nanos(u64::from(world.random.public_below(TICK.as_nanos() as u32)));
    let clock = CoarseClock { tick: TICK, phase };
    let mut measured = Measured::default();
    measured.set("screenful_s", to.since(from).as_secs_f64());
    measured.set("screenful_by_clock_s", clock.measures(from, to).as_secs_f64());
    measured.set("busy_s", busy.as_secs_f64());
    measured.set("packets", world.tally.of(PEER).data_segments_sent as f64);
    Ok(measured)
}
