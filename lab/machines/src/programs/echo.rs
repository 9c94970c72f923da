//! Single characters there and back, as a remote login echoes them (MIT §6.2.4), and packets of any size (MIT §6.2.1).

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::{Duration, Instant};
use inhost_socket::Stream;

use super::{LIMIT, serve, within, wrong};
use crate::measured::Measured;
use crate::setup::Setup;
use crate::world::{MEASURED, Node, PEER, World};
use inhost_sim::setup::SetupError;

/// What is echoed.
#[derive(Clone, Copy)]
pub(super) struct Echo {
    pub(super) count: u32,
    pub(super) bytes: u32,
    pub(super) prints: bool,
    pub(super) scrolls: bool,
}

pub(super) fn run(setup: &Setup, seed: u64, echo: Echo) -> Result<Measured, SetupError> {
    within("count", echo.count, 1..=10_000)?;
    within("bytes", echo.bytes, 1..=1 << 16)?;
    let mut world = World::new(setup, seed)?;
    let peer = world.node(PEER);
    let serving = async move {
        let stream = serve(&peer).await?;
        stream.set_nagle(false);
        let mut place = vec![0; echo.bytes as usize];
        while take(&peer, &stream, &mut place, echo).await? {
            peer.write(&stream, &place).await.map_err(wrong)?;
        }
        Ok(())
    };
    world.spawn(PEER, serving);
    let (node, at) = (world.node(MEASURED), world.peer());
    let took = Rc::new(Cell::new(Duration::ZERO));
    let measures = took.clone();
    let asking = async move {
        let stream = node.host.connect(at).await.map_err(wrong)?;
        stream.set_nagle(false);
        let (mut began_at, mut place) = (Instant::ZERO, vec![b'a'; echo.bytes as usize]);
        // The first one finds both ends at rest, and is not counted.
        for number in 0..=echo.count {
            if number == 1 {
                began_at = node.host.now();
            }
            node.write(&stream, &place).await.map_err(wrong)?;
            take(&node, &stream, &mut place, echo).await?;
        }
        measures.set(node.host.now().since(began_at));
        Ok(())
    };
    let asked = world.spawn(MEASURED, asking);
    world.run(LIMIT, &asked)?;
    let mut measured = Measured::default();
    measured.set("echo_ms", took.get().as_secs_f64() * 1000.0 / f64::from(echo.count));
    Ok(measured)
}

/// Takes all that is echoed at once, and prints it; false at the end of the stream.
async fn take(node: &Node, stream: &Stream, place: &mut [u8], echo: Echo) -> Result<bool, String> {
    let mut taken = 0;
    while taken < place.len() {
        let count = node.read(stream, &mut place[taken..]).await.map_err(wrong)?;
        if count == 0 {
            return Ok(false);
        }
        taken += count;
        node.print(if echo.prints { count } else { 0 }, echo.scrolls).await;
    }
    Ok(true)
}
