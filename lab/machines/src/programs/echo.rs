//! Single characters there and back, as a remote login echoes them (MIT §6.2.4).

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::{Duration, Instant};
use inhost_socket::Stream;

use super::{LIMIT, serve, within, wrong};
use crate::error::SetupError;
use crate::measured::Measured;
use crate::setup::Setup;
use crate::world::{MEASURED, Node, PEER, World};

pub(super) fn run(setup: &Setup, seed: u64, count: u32) -> Result<Measured, SetupError> {
    within("count", count, 1..=10_000)?;
    let mut world = World::new(setup, seed)?;
    let peer = world.node(PEER);
    let serving = async move {
        let stream = serve(&peer).await?;
        stream.set_nagle(false);
        while let Some(character) = take(&peer, &stream).await? {
            peer.write(&stream, &[character]).await.map_err(wrong)?;
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
        let mut began_at = Instant::ZERO;
        // The first one finds both ends at rest, and is not counted.
        for number in 0..=count {
            if number == 1 {
                began_at = node.host.now();
            }
            node.write(&stream, b"a").await.map_err(wrong)?;
            take(&node, &stream).await?;
        }
        measures.set(node.host.now().since(began_at));
        Ok(())
    };
    let asked = world.spawn(MEASURED, asking);
    world.run(LIMIT, &asked)?;
    let mut measured = Measured::default();
    measured.set("echo_ms", took.get().as_secs_f64() * 1000.0 / f64::from(count));
    Ok(measured)
}

/// Takes a character and prints it; none at the end of the stream.
async fn take(node: &Node, stream: &Stream) -> Result<Option<u8>, String> {
    let mut place = [0];
    if node.read(stream, &mut place).await.map_err(wrong)? == 0 {
        return Ok(None);
    }
    node.print(1, false).await;
    Ok(Some(place[0]))
}
