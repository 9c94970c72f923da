//! The programs in inhost's simulator.

pub use inhost::sim::{net, time};

#[path = "programs.rs"]
mod programs;

use std::cell::RefCell;
use std::rc::Rc;

use inhost::sim::{LinkConfig, Simulation};

use crate::{Case, Client, DELAY, LIMIT, Load, PARTITION, Variant};

fn simulation() -> Simulation {
    let mut simulation = Simulation::new(1);
    // From host to switch and from switch to host.
    simulation.set_link(LinkConfig { delay: (DELAY / 2).into(), ..LinkConfig::default() });
    simulation
}

/// Runs one of the programs.
pub fn run(case: Case, variant: Variant) -> Result<(), String> {
    let mut simulation = simulation();
    let client: Client = match case {
        Case::HalfClose => {
            simulation.host("server", async |_| Ok(programs::answer().await?));
            simulation.host("relay", async move |_| Ok(programs::relay(variant).await?));
            Box::pin(programs::question())
        }
        Case::Window(bytes) => {
            simulation.host("server", async move |_| Ok(programs::echo(bytes).await?));
            Box::pin(programs::have_echoed(variant, bytes))
        }
        Case::Partition => {
            let server = simulation.host("server", async move |_| Ok(programs::shop(variant).await?));
            let network = simulation.network();
            network.after(PARTITION.start.into(), move |network| network.cut(server));
            network.after(PARTITION.end.into(), move |network| network.heal(server));
            Box::pin(programs::buy())
        }
    };
    let result = Rc::new(RefCell::new(Err("the client did not end".to_owned())));
    let ended = result.clone();
    simulation.client("client", async move |_| {
        let done = time::timeout(LIMIT, client).await;
        *ended.borrow_mut() = done.unwrap_or_else(|_| Err("nothing moves any more".to_owned()));
        Ok(())
    });
    simulation.run().map_err(|error| error.why)?;
    result.replace(Ok(()))
}

/// Runs a load; gives the TCP segments that hosts sent.
pub fn carry(load: Load, checks: bool) -> u64 {
    let mut simulation = simulation();
    if !checks {
        simulation.network().check_nothing();
    }
    let client: Client = match load {
        Load::Bulk(bytes) => {
            simulation.host("server", async |_| Ok(programs::sink().await?));
            Box::pin(programs::bulk(bytes))
        }
        Load::Idle(time) => {
            simulation.host("server", async |_| Ok(programs::sink().await?));
            Box::pin(programs::idle(time))
        }
        Load::Exchanges(count) => {
            simulation.host("server", async |_| Ok(programs::echo(8 << 10).await?));
            Box::pin(programs::exchanges(count))
        }
    };
    simulation.client("client", async move |_| Ok(client.await?));
    simulation.run().unwrap_or_else(|why| panic!("{why}"));
    // The links count whether the checker looks or not. The few frames of ARP and groups among them do not matter.
    let network = simulation.network();
    (0..network.link_count()).map(|link| network.statistics(link, 0).sent).sum()
}
