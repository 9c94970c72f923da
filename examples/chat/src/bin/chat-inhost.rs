//! The chat server on inhost's sockets, in production.

use inhost::net;
use tokio::{task, time};

#[path = "../server.rs"]
mod server;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(link), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err(std::io::Error::other("usage: chat-inhost LINK ADDRESS:PORT"));
    };
    let host = inhost::Host::builder().link(&link).start()?;
    host.make_default();
    let listener = net::TcpListener::bind(address).await?;
    println!("chat on {}", listener.local_addr()?);
    server::serve(listener).await
}
