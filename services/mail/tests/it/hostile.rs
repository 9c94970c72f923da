//! Clients that want to do harm, over a link: each is refused with words, and memory stays bounded.

use std::rc::Rc;

use inhost_base::{Duration, Endpoint};
use inhost_mail::server::{Closing, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::network::Network;
use crate::place::{self, PORT, Place};

/// Says `text` to a server with `config`, reading all the while or not at all; what it answered, and how it ended.
fn say(config: ServerConfig, text: Vec<u8>, reads: bool) -> (String, Rc<Place>, Duration) {
    let mut network = Network::new();
    let place = place::start(&network.ends[1].host, config);
    let host = network.ends[0].host.clone();
    let began = network.now;
    let own = place.clone();
    let said = network.run(async move {
        let mut stream = host.connect(Endpoint::new([10, 9, 0, 2], PORT)).await.unwrap();
        let mut answer = Vec::new();
        match reads {
            true => {
                let (mut from, mut to) = tokio::io::split(stream);
                let writing = async {
                    // The server may close first.
                    let _ = to.write_all(&text).await;
                    std::future::pending::<()>().await;
                };
                let reading = async { drop(from.read_to_end(&mut answer).await) };
                futures_lite::future::or(reading, writing).await;
            }
            false => {
                let writing = async { while stream.write_all(&text).await.is_ok() {} };
                let ended = async {
                    while own.ended.borrow().is_empty() {
                        host.sleep(Duration::from_secs(1)).await;
                    }
                };
                futures_lite::future::or(writing, ended).await;
            }
        }
        String::from_utf8_lossy(&answer).into_owned()
    });
    let took = network.now.since(began);
    (said, place, took)
}

const START: &str = "EHLO client.example\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<x@here.example>\r\n";

#[test]
fn relaying_smuggling_and_endless_things_are_refused() {
    let small = || {
        let mut config = ServerConfig::default();
        config.message_bytes = 10_000;
        config
    };
    let cases: [(String, &str, Option<Closing>); 6] = [
        (
            "EHLO c.example\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<x@far.example>\r\nQUIT\r\n".into(),
            "550 5.7.1 Relaying denied",
            Some(Closing::Quit),
        ),
        (
            format!("{START}DATA\r\na\n.\r\nMAIL FROM:<evil@x>\r\n"),
            "550 5.5.2 a line feed or carriage return alone",
            Some(Closing::Lines),
        ),
        (
            format!("{START}DATA\r\n{}.\r\nQUIT\r\n", "text\r\n".repeat(2000)),
            "552 5.3.4 The message is larger than 10000 octets",
            Some(Closing::Quit),
        ),
        (
            format!("{START}DATA\r\n{}", "text\r\n".repeat(20_000)),
            "552 5.3.4 The message is larger",
            Some(Closing::TooLarge),
        ),
        ("x".repeat(20_000), "500 5.5.6 The line is too long", Some(Closing::Lines)),
        ("NOOP x\r\nWIZ\r\n".repeat(50), "421 4.7.0 Too many errors", Some(Closing::Errors)),
    ];
    for (text, answer, closing) in cases {
        let (said, place, _) = say(small(), text.into_bytes(), true);
        assert!(said.contains(answer), "{answer}\n{said}");
        assert_eq!(*place.ended.borrow(), [closing]);
        assert!(place.messages.borrow().is_empty());
    }
    let large = ServerConfig::default();
    let headers = format!("{START}DATA\r\n{}\r\n.\r\nQUIT\r\n", "X-Long: y\r\n".repeat(30_000));
    assert!(say(large.clone(), headers.into_bytes(), true).0.contains("552 5.3.4 the header is too long"));
    let nested = (0..1200)
        .map(|depth| format!("--{depth}\r\nContent-Type: multipart/mixed; boundary={}\r\n\r\n", depth + 1));
    let nested = format!("{START}DATA\r\n\r\n{}\r\n.\r\nQUIT\r\n", nested.collect::<String>());
    assert!(say(large, nested.into_bytes(), true).0.contains("554 5.6.0 too many MIME containers"));
}

#[test]
fn a_client_that_never_reads_is_given_up() {
    let (_, place, took) = say(ServerConfig::default(), b"NOOP\r\n".repeat(1000), false);
    assert_eq!(*place.ended.borrow(), [None], "it does not hear a word of it");
    assert!(took >= Duration::from_secs(60) && took < Duration::from_secs(120), "{took}");
}
