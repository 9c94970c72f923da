//! Two stacks that exchange frames in one process: a TCP echo, with no device and no clock.
#![forbid(unsafe_code)]

use inhost_example_stack::Pair;
use inhost_stack::{ConnectOptions, Duration, Ignore, ListenOptions, StackConfig, TcpSocketId};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut pair = Pair::new(&StackConfig::default(), Duration::from_millis(5));
    let server = Pair::endpoint(1, 7);
    let listener = pair.stacks[1].tcp(pair.now, &mut Ignore).listen(server, ListenOptions::default())?;
    let client = pair.stacks[0].tcp(pair.now, &mut Ignore).connect(server, ConnectOptions::default())?;

    let (mut said, mut heard) = (false, Vec::new());
    let mut accepted: Option<TcpSocketId> = None;
    let done = pair.run(|[caller, called], now| {
        // The client says something once it can, and reads the answer. A call that finds nothing to do says so.
        if !said {
            said = caller.tcp(now, &mut Ignore).send(client, b"hello over two stacks").is_ok();
        }
        let mut bytes = [0; 512];
        if let Ok(count) = caller.tcp(now, &mut Ignore).read(client, &mut bytes) {
            heard.extend_from_slice(&bytes[..count]);
        }
        // The server sends back what it reads.
        if let Ok(Some(connection)) = called.tcp(now, &mut Ignore).accept(listener) {
            println!("{} called {}", connection.remote, connection.local);
            accepted = Some(connection.socket);
        }
        if let Some(socket) = accepted
            && let Ok(count) = called.tcp(now, &mut Ignore).read(socket, &mut bytes)
        {
            let _ = called.tcp(now, &mut Ignore).send(socket, &bytes[..count]);
        }
        heard.len() >= 21
    });
    println!("\"{}\" came back after {} ms", String::from_utf8_lossy(&heard), pair.now.as_millis());
    if done { Ok(()) } else { Err("no echo".into()) }
}
