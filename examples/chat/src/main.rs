//! The chat server on the kernel's sockets. Its tests run in the simulator.

#[cfg(test)]
use inhost::sim::{net, task, time};
#[cfg(not(test))]
use tokio::{net, task, time};

mod server;
#[cfg(test)]
mod tests;

#[cfg(not(test))]
#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:6142".to_owned());
    let listener = net::TcpListener::bind(address).await?;
    println!("chat on {}", listener.local_addr()?);
    server::serve(listener).await
}
