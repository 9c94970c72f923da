//! A host in five lines, and a greeting on it: no runtime, no root, no device.

use inhost::{Host, net};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn main() -> std::io::Result<()> {
    let host = Host::builder().start()?;
    let greeting = host.block_on(async {
        let listener = net::TcpListener::bind("127.0.0.1:80").await?;
        let mut caller = net::TcpStream::connect("127.0.0.1:80").await?;
        listener.accept().await?.0.write_all(b"hello, world").await?;
        let mut greeting = String::new();
        caller.read_to_string(&mut greeting).await?;
        std::io::Result::Ok(greeting)
    })?;
    println!("{greeting}");
    Ok(())
}
