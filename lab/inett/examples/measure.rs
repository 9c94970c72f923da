//! Measures over the system's sockets.
//!
//! ```text
//! cargo run --release -p inhost-inett --example measure -- server 127.0.0.1:5201
//! cargo run --release -p inhost-inett --example measure -- client 127.0.0.1:5201 "time_ms = 2000"
//! cargo run --release -p inhost-inett --example measure -- client 127.0.0.1:5201 "kind = 'screen'"
//! ```

use std::net::SocketAddr;

use inhost_inett::driver::{ServeOptions, Stop, run, serve};
use inhost_inett::face::Kernel;
use inhost_inett::plan::Plan;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (_stopper, stop) = Stop::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match *words {
            ["server", at] => {
                let at: SocketAddr = at.parse()?;
                let mut told = |served| println!("{served:?}");
                serve(&Kernel::new(), at.into(), &ServeOptions::default(), &stop, &mut told).await?;
            }
            ["client", server, plan] => {
                let (server, plan): (SocketAddr, Plan) = (server.parse()?, toml::from_str(plan)?);
                let outcome = run(&Kernel::new(), server.into(), &plan, &stop, &mut |_| {}).await?;
                print!("{}", outcome.text());
            }
            _ => return Err("say: server ADDRESS:PORT, or client ADDRESS:PORT PLAN".into()),
        }
        Ok(())
    })
}
