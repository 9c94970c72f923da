//! The four services over TCP, on anything that reads and writes.

use crate::{Daytime, Pattern};
use inhost_base::Duration;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bytes moved at a time for one connection.
const CHUNK_BYTES: usize = 4096;

/// Called whenever a connection makes progress, so that an idle one can be told from a slow one.
pub(crate) trait Progress {
    fn made(&self);
}

/// spec: RFC862 — what comes is sent back, until the caller closes.
pub(crate) async fn echo(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    progress: &impl Progress,
) -> io::Result<()> {
    let mut chunk = [0; CHUNK_BYTES];
    loop {
        let length = stream.read(&mut chunk).await?;
        if length == 0 {
            return stream.shutdown().await;
        }
        progress.made();
        let mut rest = &chunk[..length];
        while !rest.is_empty() {
            let taken = stream.write(rest).await?;
            rest = &rest[taken..];
            progress.made();
        }
    }
}

/// spec: RFC863 — what comes is thrown away, until the caller closes.
pub(crate) async fn discard(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    progress: &impl Progress,
) -> io::Result<()> {
    let mut chunk = [0; CHUNK_BYTES];
    while stream.read(&mut chunk).await? > 0 {
        progress.made();
    }
    stream.shutdown().await
}

/// Longest wait for a daytime client to close.
pub(crate) const DAYTIME_CLOSE: Duration = Duration::from_secs(10);

/// spec: RFC867 — one line, whatever the caller sends, and the end.
pub(crate) async fn daytime(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    time: Daytime,
) -> io::Result<()> {
    stream.write_all(time.line().as_bytes()).await?;
    stream.shutdown().await?;
    // What the caller says is thrown away, but read: closing over unread input would reset the connection, and the line
    // could be lost with it.
    let mut chunk = [0; 512];
    while stream.read(&mut chunk).await? > 0 {}
    Ok(())
}

/// spec: RFC864 — characters until the caller closes; what the caller sends is thrown away.
pub(crate) async fn chargen(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    progress: &impl Progress,
) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let ended = async {
        let mut chunk = [0; 512];
        while reader.read(&mut chunk).await? > 0 {}
        Ok::<_, io::Error>(())
    };
    let generate = async {
        let (mut pattern, mut chunk) = (Pattern::new(), [0; CHUNK_BYTES]);
        loop {
            let mut ahead = pattern;
            ahead.fill(&mut chunk);
            pattern.skip(writer.write(&chunk).await?);
            progress.made();
        }
    };
    // A caller who has closed his sending side has had enough, and an endless stream has no better end.
    futures_lite::future::or(ended, generate).await?;
    writer.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, zip};
    use std::cell::Cell;

    impl Progress for Cell<usize> {
        fn made(&self) {
            self.set(self.get() + 1);
        }
    }

    /// spec: RFC862
    #[test]
    fn echo_gives_back_what_it_got_and_closes_after() {
        let (mut near, mut far) = tokio::io::duplex(64);
        let sent: Vec<u8> = (0..10_000u32).map(|n| n as u8).collect();
        let progress = Cell::new(0);
        let (mut reader, mut writer) = tokio::io::split(&mut near);
        let client = async {
            let mut back = Vec::new();
            let write = async {
                writer.write_all(&sent).await.unwrap();
                writer.shutdown().await.unwrap();
            };
            zip(write, reader.read_to_end(&mut back)).await.1.unwrap();
            back
        };
        let (back, served) = block_on(zip(client, echo(&mut far, &progress)));
        served.unwrap();
        assert!(back == sent && progress.get() > 100);
    }

    /// spec: RFC863
    #[test]
    fn discard_gives_nothing_back() {
        let (mut near, mut far) = tokio::io::duplex(64);
        let client = async {
            near.write_all(&[1; 5_000]).await.unwrap();
            near.shutdown().await.unwrap();
            let mut back = Vec::new();
            near.read_to_end(&mut back).await.unwrap()
        };
        let (back, served) = block_on(zip(client, discard(&mut far, &Cell::new(0))));
        served.unwrap();
        assert_eq!(back, 0);
    }

    /// spec: RFC864
    #[test]
    fn chargen_goes_on_until_the_caller_closes() {
        let (mut near, mut far) = tokio::io::duplex(100);
        let client = async {
            let mut text = vec![0; 20_000];
            near.read_exact(&mut text).await.unwrap();
            near.shutdown().await.unwrap();
            let mut rest = Vec::new();
            near.read_to_end(&mut rest).await.unwrap();
            text
        };
        let (text, served) = block_on(zip(client, chargen(&mut far, &Cell::new(0))));
        served.unwrap();
        let mut expected = vec![0; 20_000];
        Pattern::new().fill(&mut expected);
        assert!(text == expected);
    }

    /// spec: RFC867
    #[test]
    fn daytime_is_one_line() {
        let (mut near, mut far) = tokio::io::duplex(100);
        let mut line = String::new();
        let caller = async {
            let read = near.read_to_string(&mut line).await;
            near.shutdown().await.unwrap();
            read
        };
        let (read, served) = block_on(zip(caller, daytime(&mut far, Daytime::new(86_400))));
        served.unwrap();
        assert_eq!(read.unwrap(), line.len());
        assert_eq!(line, "Friday, January 2, 1970 00:00:00-UTC\r\n");
    }
}
