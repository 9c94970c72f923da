//! A small key-value server and its client, as one would write them for tokio, under loss in the simulator.
//!
//! ```text
//! cargo run --example key_value -p inhost-sim            # a hundred seeds
//! cargo run --example key_value -p inhost-sim -- bug     # with a mistake in the client
//! ```
//!
//! A run that fails says how to see it again; that command also writes `seed-N.pcapng` for Wireshark.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use inhost_sim::{Duration, LinkConfig, Loss, Node, ProgramResult, explore};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

const PORT: u16 = 6379;
const KEYS: u32 = 20;

type Store = Rc<RefCell<BTreeMap<String, String>>>;

/// One connection of the server. It knows nothing of the simulator: the same function serves a `tokio::net::TcpStream`.
async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, store: Store) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        let answer = match *line.split_whitespace().collect::<Vec<_>>() {
            ["set", key, value] => {
                store.borrow_mut().insert(key.to_owned(), value.to_owned());
                "ok\n".to_owned()
            }
            ["get", key] => match store.borrow().get(key) {
                Some(value) => format!("{value}\n"),
                None => "none\n".to_owned(),
            },
            _ => "what?\n".to_owned(),
        };
        stream.write_all(answer.as_bytes()).await?;
        line.clear();
    }
    stream.shutdown().await
}

async fn server(node: Node) -> ProgramResult {
    let listener = node.bind(PORT)?;
    let store = Store::default();
    loop {
        let stream = listener.accept().await?;
        let store = store.clone();
        // In place of tokio::spawn: a task of this host.
        node.spawn(async move { serve(stream, store).await }).detach();
    }
}

/// Asks once, and gives up after two seconds.
async fn ask(node: &Node, question: &str) -> Result<String, Box<dyn std::error::Error>> {
    let mut stream = node.dial("server", PORT).await?;
    stream.write_all(question.as_bytes()).await?;
    let mut answer = String::new();
    // In place of tokio::time::timeout: the host's own time.
    node.timeout(Duration::from_secs(2), BufReader::new(&stream).read_line(&mut answer)).await??;
    Ok(answer)
}

async fn client(node: Node, repeats: bool) -> ProgramResult {
    for number in 0..KEYS {
        let question = format!("set key{number} value{number}\n");
        // With loss of a quarter, two seconds are sometimes too short: a client that asks only once is a bug, and some
        // seed shows it.
        while let Err(why) = ask(&node, &question).await {
            if !repeats {
                return Err(why);
            }
            node.sleep(Duration::from_millis(u64::from(node.random_below(500)))).await;
        }
    }
    node.sleep(Duration::from_millis(10)).await;
    let last = format!("get key{}\n", KEYS - 1);
    let answer = loop {
        if let Ok(answer) = ask(&node, &last).await {
            break answer;
        }
    };
    assert_eq!(answer, format!("value{}\n", KEYS - 1));
    Ok(())
}

fn main() {
    let repeats = std::env::args().nth(1).as_deref() != Some("bug");
    explore(0..100, |simulation| {
        simulation.set_link(LinkConfig {
            delay: Duration::from_millis(20),
            loss: Loss::per_mille(100),
            ..LinkConfig::default()
        });
        simulation.host("server", server);
        simulation.client("client", async move |node| client(node, repeats).await);
    });
    println!("clean");
}
