//! Two stacks that exchange frames in one process: a TCP echo, with no device and no clock.
#![forbid(unsafe_code)]

use inhost_example_stack::Pair;
use inhost_stack::{ConnectOptions, Duration, Ignore, ListenOptions, StackConfig, TcpSocketId};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut pair = Pair::new(&StackConfig::default(), Duration::from_millis(5));
    let server = Pair::endpoint(1, 7);
    let listener = pair.stacks[1].tcp().listen(server, ListenOptions::default(), pair.now)?;
    let client = pair.stacks[0].tcp().connect(server, ConnectOptions::default(), pair.now, &mut Ignore)?;

    let (mut said, mut heard) = (false, Vec::new());
    let mut accepted: Option<TcpSocketId> = None;
    let done = pair.run(|[caller, called], now| {
        // The client says something once it can, and reads the answer. A call that finds nothing to do says so.
        if !said {
            said = caller.tcp().send(client, b"hello over two stacks", now, &mut Ignore).is_ok();
        }
        let mut bytes = [0; 512];
        if let Ok(count) = caller.tcp().read(client, &mut bytes, now, &mut Ignore) {
            heard.extend_from_slice(&bytes[..count]);
        }
        // The server sends back what it reads.
        if let Ok(Some(connection)) = called.tcp().accept(listener, now) {
            println!("{} called {}", connection.remote, connection.local);
            accepted = Some(connection.socket);
        }
        if let Some(socket) = accepted
            && let Ok(count) = called.tcp().read(socket, &mut bytes, now, &mut Ignore)
        {
            let _ = called.tcp().send(socket, &bytes[..count], now, &mut Ignore);
        }
        heard.len() >= 21
    });
    println!("\"{}\" came back after {} ms", String::from_utf8_lossy(&heard), pair.now.as_millis());
    if done { Ok(()) } else { Err("no echo".into()) }
}
