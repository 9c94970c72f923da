//! The crate `redis` over sockets of inhost: its connections take any stream. The server is one of the kernel's, which the
//! host reaches without root by the link `user`.

use std::io;

use futures_util::StreamExt;
use inhost::Host;
use inhost::net::TcpStream;
use redis::aio::{MultiplexedConnection, PubSub};
use redis::{AsyncCommands, AsyncConnectionConfig, RedisConnectionInfo, RedisResult};

/// Where the system's own loopback is to a guest of the link `user`.
const MACHINE: &str = "10.0.2.2";
const TASKS: u32 = 10;
const INCREMENTS: u32 = 100;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = match std::env::args().nth(1).map(|port| port.parse::<u16>()) {
        Some(Ok(port)) => port,
        _ => return Err("usage: inhost-example-redis PORT, that of a redis-server on this machine".into()),
    };
    let host = Host::builder().link("user,loopback=yes").start()?;
    host.make_default();

    let mut connection = connect(port).await?;
    let _: () = connection.set("greeting", "hello, redis").await?;
    let greeting: String = connection.get("greeting").await?;
    println!("{greeting}");

    let _: () = connection.del("counter").await?;
    let tasks: Vec<_> = (0..TASKS).map(|_| tokio::spawn(count(connection.clone()))).collect();
    for task in tasks {
        task.await??;
    }
    let counter: u32 = connection.get("counter").await?;
    println!("{TASKS} tasks over one connection counted to {counter}");

    // A value of many segments, there and back.
    let long: Vec<u8> = (0..4 << 20).map(|at: u32| (at % 251) as u8).collect();
    let _: () = connection.set("long", &long).await?;
    let back: Vec<u8> = connection.get("long").await?;
    println!("{} bytes came back, {}", back.len(), if back == long { "the same" } else { "others" });

    let mut channel = PubSub::new(&RedisConnectionInfo::default(), dial(port).await?).await?;
    channel.subscribe("news").await?;
    let heard: u32 = connection.publish("news", "good morning").await?;
    let message = channel.on_message().next().await.ok_or("the channel ended")?;
    println!("{heard} heard on {}: {}", message.get_channel_name(), message.get_payload::<String>()?);

    host.shutdown().await;
    Ok(())
}

async fn dial(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((MACHINE, port)).await;
    stream.map_err(|why| {
        io::Error::new(why.kind(), format!("redis-server on port {port} of this machine: {why}"))
    })
}

async fn connect(port: u16) -> Result<MultiplexedConnection, Box<dyn std::error::Error>> {
    let (stream, info) = (dial(port).await?, RedisConnectionInfo::default());
    let (connection, driver) =
        MultiplexedConnection::new_with_config(&info, stream, AsyncConnectionConfig::new()).await?;
    tokio::spawn(driver);
    Ok(connection)
}

async fn count(mut connection: MultiplexedConnection) -> RedisResult<()> {
    for _ in 0..INCREMENTS {
        let _: () = connection.incr("counter", 1).await?;
    }
    Ok(())
}
