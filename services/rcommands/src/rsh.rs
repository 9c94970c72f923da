//! rsh: a command on another host. The protocol is 4.2BSD's: a number of a port, for a second connection that the
//! server makes for the command's errors and for signals to it; two users' names; the command.

use crate::answer::{Answer, Said};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The port of rsh, and of rcp, which runs on it.
pub const PORT: u16 = 514;
/// The ports of which servers believe that only the system's own programs call from them.
pub const RESERVED_PORTS: core::ops::RangeInclusive<u16> = 512..=1023;
/// The longest name of a user.
const USER_BYTES: usize = 255;
/// The longest command.
const COMMAND_BYTES: usize = 64 * 1024;

/// What is to be run, and as whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The user's name here.
    pub local_user: String,
    /// The user's name there.
    pub remote_user: String,
    /// The command, for the user's shell there.
    pub command: String,
}

/// Why a request is not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestError {
    /// A name or the command holds an octet of zero, which ends it there; or is empty.
    BadText,
    /// A name or the command is too long.
    TooLong,
}

impl core::fmt::Display for RequestError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            RequestError::BadText => "names and the command may neither be empty nor hold an octet of zero",
            RequestError::TooLong => "a name or the command is too long",
        })
    }
}
impl core::error::Error for RequestError {}

impl Request {
    /// The octets behind the port's number.
    pub fn octets(&self) -> Result<Vec<u8>, RequestError> {
        let Request { local_user, remote_user, command } = self;
        let mut octets = Vec::new();
        for (text, limit_bytes) in
            [(local_user, USER_BYTES), (remote_user, USER_BYTES), (command, COMMAND_BYTES)]
        {
            if text.is_empty() || text.contains('\0') {
                return Err(RequestError::BadText);
            }
            if text.len() > limit_bytes {
                return Err(RequestError::TooLong);
            }
            octets.extend_from_slice(text.as_bytes());
            octets.push(0);
        }
        Ok(octets)
    }
}

/// The octets that tell where the connection for errors is to go; none is wanted without a port.
pub fn port_octets(port: Option<u16>) -> Vec<u8> {
    port.map_or_else(|| vec![0], |port| format!("{port}\0").into_bytes())
}

/// Why a command was not begun.
#[derive(Debug)]
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
    stream.write_all(&port_octets(Some(port))).await?;
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
    begin_behind(&port_octets(None), stream, request).await
}

async fn begin_behind<S>(port: &[u8], stream: &mut S, request: &Request) -> Result<(), BeginError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let octets = [port, &request.octets().map_err(BeginError::Request)?].concat();
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
    let mut answer = Answer::default();
    loop {
        // One octet at a time: what follows the answer is the command's.
        let mut place = [0];
        let said = match stream.read(&mut place).await.map_err(BeginError::Io)? {
            0 => Some(answer.end().unwrap_or(Said::Fatal(String::new()))),
            _ => answer.take(&mut &place[..]),
        };
        match said {
            None => {}
            Some(Said::Fine) => return Ok(()),
            Some(Said::Warning(why) | Said::Fatal(why)) => return Err(BeginError::Refused(why)),
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

    #[test]
    fn what_would_be_read_as_another_request_is_not_sent() {
        assert_eq!(request("a\0b").octets(), Err(RequestError::BadText));
        assert_eq!(request("").octets(), Err(RequestError::BadText));
        assert_eq!(request(&"x".repeat(COMMAND_BYTES + 1)).octets(), Err(RequestError::TooLong));
        assert_eq!(port_octets(None), b"\0");
    }
}
