//! An echo server of many connections on tokio's threads: only the `use` of the sockets and the first two lines of `main` are
//! not tokio's.

use inhost::Host;
use inhost::net::{TcpListener, TcpStream};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let host = Host::builder().start()?;
    host.make_default();

    let listener = TcpListener::bind("127.0.0.1:7").await?;
    tokio::spawn(serve(listener));
    let calls: Vec<_> = (0..100).map(|number| tokio::spawn(call(number))).collect();
    for call in calls {
        call.await??;
    }
    println!("100 callers were answered");
    host.shutdown().await;
    Ok(())
}

async fn serve(listener: TcpListener) -> std::io::Result<()> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let (mut receive, mut send) = stream.split();
            tokio::io::copy(&mut receive, &mut send).await
        });
    }
}

async fn call(number: u32) -> std::io::Result<()> {
    let mut stream = TcpStream::connect("127.0.0.1:7").await?;
    stream.write_u32(number).await?;
    let answer = tokio::time::timeout(Duration::from_secs(10), stream.read_u32()).await??;
    assert_eq!(answer, number);
    Ok(())
}
