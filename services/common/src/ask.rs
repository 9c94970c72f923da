//! The exchange of whois and finger over any stream: a line there, text back until the server closes.

use core::fmt;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The longest answer that is taken. The whole of a registry's larger objects is a few hundred kilobytes.
pub const ANSWER_BYTES: usize = 4 << 20;
/// Octets of one read.
const READ_BYTES: usize = 4096;

/// Why there is no answer, or not all of it.
#[derive(Debug)]
#[non_exhaustive]
pub enum AskError {
    /// The connection failed.
    Io(io::Error),
    /// There is more than 4 MiB, which is where reading ends.
    TooLong,
    /// The server reset the connection behind some of the answer.
    Reset,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::Io(error) => error.fmt(f),
            AskError::Reset => f.write_str("the connection was reset; the answer may not be whole"),
            AskError::TooLong => write!(f, "the answer is longer than {} MiB", ANSWER_BYTES >> 20),
        }
    }
}
impl std::error::Error for AskError {}

/// Sends `line` and hands what comes back to `take`, piece by piece, until the server closes.
pub async fn ask<S>(stream: &mut S, line: &str, mut take: impl FnMut(&[u8])) -> Result<(), AskError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(line.as_bytes()).await.map_err(AskError::Io)?;
    stream.flush().await.map_err(AskError::Io)?;
    let (mut place, mut total_bytes) = ([0; READ_BYTES], 0);
    loop {
        // Our side stays open: servers exist that take a close for a lack of interest.
        let count = match stream.read(&mut place).await {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            // Some reset once all was said, and nobody can tell whether it was all.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset && total_bytes > 0 => {
                return Err(AskError::Reset);
            }
            Err(error) => return Err(AskError::Io(error)),
        };
        total_bytes += count;
        if total_bytes > ANSWER_BYTES {
            return Err(AskError::TooLong);
        }
        take(place.get(..count).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, zip};

    #[test]
    fn a_line_goes_and_an_answer_comes() {
        let (mut near, mut far) = tokio::io::duplex(16);
        let mut received = Vec::new();
        let server = async {
            let mut line = [0; 5];
            far.read_exact(&mut line).await.unwrap();
            assert_eq!(&line, b"ada\r\n");
            far.write_all(&[b'x'; 10_000]).await.unwrap();
            drop(far);
        };
        let client = ask(&mut near, "ada\r\n", |piece| received.extend_from_slice(piece));
        let (done, ()) = block_on(zip(client, server));
        done.unwrap();
        assert_eq!(received.len(), 10_000);
    }

    #[test]
    fn an_answer_without_end_is_given_up() {
        let (mut near, mut far) = tokio::io::duplex(1 << 16);
        let server = async { while far.write_all(&[b'x'; 4096]).await.is_ok() {} };
        let client = async {
            let done = ask(&mut near, "\r\n", |_| ()).await;
            drop(near);
            done
        };
        let (done, ()) = block_on(zip(client, server));
        assert!(matches!(done, Err(AskError::TooLong)));
    }

    /// Says something, and resets.
    struct Resetting(&'static [u8]);

    impl AsyncRead for Resetting {
        fn poll_read(
            mut self: core::pin::Pin<&mut Self>,
            _: &mut core::task::Context<'_>,
            into: &mut tokio::io::ReadBuf<'_>,
        ) -> core::task::Poll<io::Result<()>> {
            match core::mem::take(&mut self.0) {
                b"" => core::task::Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                said => {
                    into.put_slice(said);
                    core::task::Poll::Ready(Ok(()))
                }
            }
        }
    }
    impl AsyncWrite for Resetting {
        fn poll_write(
            self: core::pin::Pin<&mut Self>,
            _: &mut core::task::Context<'_>,
            octets: &[u8],
        ) -> core::task::Poll<io::Result<usize>> {
            core::task::Poll::Ready(Ok(octets.len()))
        }
        fn poll_flush(
            self: core::pin::Pin<&mut Self>,
            _: &mut core::task::Context<'_>,
        ) -> core::task::Poll<io::Result<()>> {
            core::task::Poll::Ready(Ok(()))
        }
        fn poll_shutdown(
            self: core::pin::Pin<&mut Self>,
            _: &mut core::task::Context<'_>,
        ) -> core::task::Poll<io::Result<()>> {
            core::task::Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn half_an_answer_is_heard_and_is_no_whole_one() {
        let mut received = Vec::new();
        let done =
            block_on(ask(&mut Resetting(b"domain: x"), "x\r\n", |piece| received.extend_from_slice(piece)));
        assert!(matches!(done, Err(AskError::Reset)));
        assert_eq!(received, b"domain: x");
    }
}
