//! Connections as spans of `tracing`.
#![cfg(feature = "tracing")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use inhost::net::{TcpListener, TcpStream};
use inhost_interop::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tracing_subscriber::fmt::format::FmtSpan;

use crate::pair;

/// What the subscriber wrote.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// The lines that have all of `words`.
    fn lines(&self, words: &[&str]) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let has = |line: &&str| words.iter().all(|word| line.contains(word));
        text.lines().filter(has).map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(&mut *self.0.lock().unwrap(), bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_connection_is_a_span_and_its_states_are_events_within() -> io::Result<()> {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(move || writer.clone())
        .finish();
    // The test is a process of its own; hosts run on threads of theirs.
    tracing_subscriber::util::SubscriberInitExt::init(subscriber);

    let (near, far) = pair()?;
    let listener = near.block_on(TcpListener::bind("10.9.0.1:7"))?;
    let server = async {
        let (mut stream, _) = listener.accept().await?;
        let mut said = String::new();
        stream.read_to_string(&mut said).await?;
        stream.write_all(said.as_bytes()).await
    };
    let caller = async {
        let mut stream = TcpStream::connect("10.9.0.1:7").await?;
        stream.write_all(b"good day").await?;
        stream.shutdown().await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        io::Result::Ok(answer)
    };
    let answer = std::thread::scope(|scope| {
        let served = scope.spawn(|| near.block_on(server));
        let answer = far.block_on(caller);
        served.join().expect("the server ends").and(answer)
    })?;
    assert_eq!(answer, "good day");

    // One of each host: opened, established, over.
    until("two spans are closed", || {
        (log.lines(&["\"message\":\"close\"", "\"connection\""]).len() == 2).then_some(())
    });
    for (initiator, state) in [("local", "FIN-WAIT-1"), ("remote", "LAST-ACK")] {
        let of = format!("\"initiator\":\"{initiator}\"");
        let ended = log.lines(&[&of, "connection ended"]);
        let words = ["\"sent_bytes\":8", "\"received_bytes\":8", "\"cause\":", "inhost::tcp"];
        assert!(ended.len() == 1 && words.iter().all(|word| ended[0].contains(word)), "{ended:?}");
        let to = format!("\"to\":\"{state}\"");
        assert_eq!(log.lines(&[&of, &to]).len(), 1, "{:?}", log.lines(&[]));
    }
    Ok(())
}
