//! The client's side of rsh over any stream: it sends the request and reads the reply.

use crate::codec::{Reply, ReplyReader, Request, RequestError, encode_error_port};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Why a command was not begun.
#[derive(Debug)]
#[non_exhaustive]
pub enum BeginError {
    /// The connection failed.
    Io(io::Error),
    /// The request cannot be sent.
    Request(RequestError),
    /// The server refuses, in these words.
    Refused(String),
}

impl core::fmt::Display for BeginError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            BeginError::Io(error) => error.fmt(f),
            BeginError::Request(why) => why.fmt(f),
            BeginError::Refused(why) if why.is_empty() => {
                f.write_str("closed without a word; it may want a reserved port, or an entry in its .rhosts")
            }
            BeginError::Refused(why) => write!(f, "refused: {why}"),
        }
    }
}
impl core::error::Error for BeginError {}

/// Tells the server where the connection for errors is to go. The next step is to accept that.
pub async fn send_port<S>(stream: &mut S, port: u16) -> io::Result<()>
where
    S: AsyncWrite + Unpin,
{
    stream.write_all(&encode_error_port(Some(port))).await?;
    stream.flush().await
}

/// Sends the request and waits until the server has begun the command, or refused it. [`send_port`] goes before it.
pub async fn begin<S>(stream: &mut S, request: &Request) -> Result<(), BeginError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    begin_behind(&[], stream, request).await
}

/// Begins a command without a connection for errors: all is said in one piece.
pub async fn begin_alone<S>(stream: &mut S, request: &Request) -> Result<(), BeginError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    begin_behind(&encode_error_port(None), stream, request).await
}

async fn begin_behind<S>(port: &[u8], stream: &mut S, request: &Request) -> Result<(), BeginError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let octets = [port, &request.encode().map_err(BeginError::Request)?].concat();
    stream.write_all(&octets).await.map_err(BeginError::Io)?;
    stream.flush().await.map_err(BeginError::Io)?;
    first_word(stream).await
}

/// Waits for the server's first word: that the command begins, or why it does not. A server that cannot make the
/// connection for errors says so before it has read the request.
pub async fn first_word<S>(stream: &mut S) -> Result<(), BeginError>
where
    S: AsyncRead + Unpin,
{
    let mut reader = ReplyReader::default();
    loop {
        // One octet at a time: what follows the answer is the command's.
        let mut place = [0];
        let said = match stream.read(&mut place).await.map_err(BeginError::Io)? {
            0 => Some(reader.end().unwrap_or(Reply::Fatal(String::new()))),
            _ => reader.take(&mut &place[..]),
        };
        match said {
            None => {}
            Some(Reply::Ok) => return Ok(()),
            Some(Reply::Warning(why) | Reply::Fatal(why)) => return Err(BeginError::Refused(why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, zip};

    fn request(command: &str) -> Request {
        Request { local_user: "ada".into(), remote_user: "charles".into(), command: command.into() }
    }

    #[test]
    fn a_command_begins_and_its_output_stays_on_the_stream() {
        let (mut near, mut far) = tokio::io::duplex(64);
        let server = async {
            let mut asked = [0; 24];
            far.read_exact(&mut asked).await.unwrap();
            assert_eq!(&asked, b"1022\0ada\0charles\0uptime\0");
            far.write_all(b"\0up 3 days").await.unwrap();
            drop(far);
        };
        let client = async {
            send_port(&mut near, 1022).await.unwrap();
            begin(&mut near, &request("uptime")).await.unwrap();
            let mut output = String::new();
            near.read_to_string(&mut output).await.unwrap();
            output
        };
        assert_eq!(block_on(zip(client, server)).0, "up 3 days");
    }

    #[test]
    fn without_a_connection_for_errors_all_leaves_in_one_piece() {
        let (mut near, mut far) = tokio::io::duplex(64);
        let server = async {
            let mut asked = [0; 64];
            let count = far.read(&mut asked).await.unwrap();
            assert_eq!(&asked[..count], b"\0ada\0charles\0uptime\0");
            far.write_all(b"\0").await.unwrap();
        };
        let (done, ()) = block_on(zip(begin_alone(&mut near, &request("uptime")), server));
        done.unwrap();
    }

    #[test]
    fn a_refusal_says_why() {
        for (says, expected) in [
            (&b"\x01Permission denied.\n"[..], "refused: Permission denied."),
            (b"Where are you?\n", "refused: Where are you?"),
            (b"", "closed without a word; it may want a reserved port, or an entry in its .rhosts"),
        ] {
            let (mut near, mut far) = tokio::io::duplex(64);
            let server = async {
                let mut asked = [0; 18];
                far.read_exact(&mut asked).await.unwrap();
                far.write_all(says).await.unwrap();
                drop(far);
            };
            let (done, ()) = block_on(zip(begin(&mut near, &request("uptim")), server));
            assert_eq!(done.unwrap_err().to_string(), expected);
        }
    }
}
