//! Integration tests, one program for all: a program costs more to link than to run.

mod control;
mod device;
mod direct;
mod fork;
mod forwarded;
mod shapes;
mod sim_net;
mod sim_net_faults;
mod sim_tasks;
mod tokio;
mod tracing;
mod udp;
mod waiting;

use std::io;

use inhost::Host;
use inhost::link::memory;

/// Two hosts on threads of their own, joined by a link of memory.
fn pair() -> io::Result<(Host, Host)> {
    let config = memory::Config { doorbell: true, ..memory::Config::default() };
    let (near, far) = memory::pair(&config)?;
    let near =
        Host::builder().name("near").driver(near, |link| link.with_address("10.9.0.1/24".parse().unwrap()));
    let far =
        Host::builder().name("far").driver(far, |link| link.with_address("10.9.0.2/24".parse().unwrap()));
    Ok((near.start()?, far.start()?))
}

/// What a test within tokio gives, by the deadline.
async fn in_time<T>(test: impl Future<Output = T>) -> T {
    ::tokio::time::timeout(inhost_interop::DEADLINE, test).await.expect("done by the deadline")
}
