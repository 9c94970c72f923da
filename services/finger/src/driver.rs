//! A session of the server over any stream.

use std::future::Future;
use std::io;

use futures_lite::future::or;
use inhost_base::Duration;
use inhost_common::Clock;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::codec::{LINE_BYTES, Request, encode};

/// The time limit for a client's query.
const QUERY_WITHIN: Duration = Duration::from_secs(30);
/// The time limit of a session; a client that does not read is disconnected.
const SESSION_WITHIN: Duration = Duration::from_secs(120);

/// Takes a query, answers it and waits for the client to close. False for a client that took too long or is gone; its
/// connection is to be reset.
pub async fn serve_session<S, F>(
    stream: &mut S,
    clock: &impl Clock,
    answer: impl FnOnce(Request) -> F,
) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = String>,
{
    let work = async {
        let line = or(async { query(stream).await.ok() }, late(clock, QUERY_WITHIN)).await?;
        let text = match line {
            Some(line) => answer(Request::parse(&line)).await,
            None => "The query is too long.\n".to_owned(),
        };
        stream.write_all(&encode(&text)).await.ok()?;
        stream.shutdown().await.ok()?;
        // Closing over unread input would reset the connection, and the answer could be lost with it.
        let mut rest = [0; LINE_BYTES];
        while stream.read(&mut rest).await.ok()? > 0 {}
        Some(())
    };
    or(work, late(clock, SESSION_WITHIN)).await.is_some()
}

/// `None`, once `limit` has passed.
async fn late<T>(clock: &impl Clock, limit: Duration) -> Option<T> {
    clock.sleep_until(clock.now() + limit).await;
    None
}

/// The query line; `None` for one that is too long. A client that closes its side behind it has ended it as well.
async fn query(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let (mut line, mut place) = (Vec::new(), [0; LINE_BYTES]);
    loop {
        let count = stream.read(&mut place).await?;
        line.extend_from_slice(place.get(..count).unwrap_or_default());
        let end = line.iter().position(|&octet| octet == b'\n');
        match end {
            Some(end) if end <= LINE_BYTES => return Ok(Some(line.drain(..=end).collect())),
            _ if line.len() > LINE_BYTES => return Ok(None),
            None if count == 0 && line.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            None if count == 0 => return Ok(Some(line)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, zip};
    use inhost_base::Instant;
    use inhost_common::LocalFuture;

    /// A clock whose alarms ring at once, or never.
    struct Alarms(bool);
    impl Clock for Alarms {
        fn now(&self) -> Instant {
            Instant::ZERO
        }
        fn sleep_until(&self, _: Instant) -> LocalFuture<()> {
            if self.0 { Box::pin(std::future::ready(())) } else { Box::pin(std::future::pending()) }
        }
    }

    fn exchange(octets: &[u8]) -> (bool, String) {
        let (mut near, mut far) = tokio::io::duplex(16);
        let client = async {
            let (mut reader, mut writer) = tokio::io::split(&mut near);
            let write = async {
                // The server closes after the query.
                let _ = writer.write_all(octets).await;
                let _ = writer.shutdown().await;
            };
            let mut text = String::new();
            zip(write, reader.read_to_string(&mut text)).await.1.unwrap();
            text
        };
        let server = async {
            let answer = |request: Request| async move { format!("{request:?}\nend\n") };
            let done = serve_session(&mut far, &Alarms(false), answer).await;
            drop(far);
            done
        };
        block_on(zip(server, client))
    }

    #[test]
    fn a_line_is_answered_and_one_without_end_refused() {
        let (done, text) = exchange(b"/W ada@x\r\nmore that nobody asked for");
        assert!(done && text.contains("\"ada\"") && text.ends_with("\r\nend\r\n"), "{text}");
        assert!(exchange(b"ada").1.contains("ada"));
        assert!(!exchange(b"").0);
        assert_eq!(exchange(&[b'x'; 5000]).1, "The query is too long.\r\n");
    }

    #[test]
    fn a_client_that_says_or_reads_nothing_is_given_up() {
        let (_near, mut far) = tokio::io::duplex(16);
        let answer = |_: Request| async { String::new() };
        assert!(!block_on(serve_session(&mut far, &Alarms(true), answer)));
    }
}
