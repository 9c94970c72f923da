//! The programs in turmoil-net.

pub use tokio::time;
pub use turmoil_net::shim::tokio::net;

#[path = "programs.rs"]
mod programs;

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

use turmoil_net::fixture::ClientServer;
use turmoil_net::{KernelConfig, Latency, Packet, Transport, Verdict, rule};

use crate::{Case, Client, DELAY, LIMIT, Load, PARTITION, Variant};

/// How often turmoil-net repeats a segment before it gives a connection up.
#[derive(Clone, Copy)]
pub enum Repeats {
    /// Its default: five times, some 18 ms.
    Default,
    /// As often as any of the programs here needs.
    Many,
}

/// The end of a server is not looked at: the client finds out.
async fn ignore(server: impl Future<Output = std::io::Result<()>>) {
    let _ = server.await;
}

/// Runs one of the programs.
pub fn run(case: Case, variant: Variant, repeats: Repeats) -> Result<(), String> {
    let mut config = KernelConfig::default();
    if let Repeats::Many = repeats {
        config = config.retx_max(u32::MAX);
    }
    let hosts = ClientServer::with_config(config);
    let (hosts, client): (_, Client) = match case {
        Case::HalfClose => (
            hosts
                .server("server", ignore(programs::answer()))
                .server("relay", ignore(programs::relay(variant))),
            Box::pin(programs::question()),
        ),
        Case::Window(bytes) => (
            hosts.server("server", ignore(programs::echo(bytes))),
            Box::pin(programs::have_echoed(variant, bytes)),
        ),
        Case::Partition => {
            (hosts.server("server", ignore(programs::shop(variant))), Box::pin(programs::buy()))
        }
    };
    hosts.run("client", async move {
        let start = time::Instant::now();
        if let Case::Partition = case {
            rule(move |_: &Packet| match PARTITION.contains(&start.elapsed()) {
                true => Verdict::Drop,
                false => Verdict::Pass,
            })
            .forget();
        }
        rule(Latency::fixed(DELAY)).forget();
        time::timeout(LIMIT, client).await.unwrap_or_else(|_| Err("nothing moves any more".to_owned()))
    })
}

/// Runs a load; gives the TCP segments that hosts sent.
pub fn carry(load: Load) -> u64 {
    let segments = Rc::new(Cell::new(0));
    let counted = segments.clone();
    let hosts = ClientServer::new();
    let (hosts, client): (_, Client) = match load {
        Load::Bulk(bytes) => {
            (hosts.server("server", ignore(programs::sink())), Box::pin(programs::bulk(bytes)))
        }
        Load::Idle(time) => {
            (hosts.server("server", ignore(programs::sink())), Box::pin(programs::idle(time)))
        }
        Load::Exchanges(count) => {
            (hosts.server("server", ignore(programs::echo(8 << 10))), Box::pin(programs::exchanges(count)))
        }
    };
    hosts.run("client", async move {
        let mut latency = Latency::fixed(DELAY);
        rule(move |packet: &Packet| {
            counted.set(counted.get() + u64::from(matches!(packet.payload, Transport::Tcp(_))));
            turmoil_net::Rule::on_packet(&mut latency, packet)
        })
        .forget();
        client.await.unwrap_or_else(|why| panic!("{why}"));
    });
    segments.get()
}
