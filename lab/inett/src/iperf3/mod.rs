//! The control protocol of iperf3, from both ends, as a pure machine: bytes in, events and bytes out.
//!
//! The client opens a connection and sends a cookie. Then either end sends state bytes, some of which are followed by
//! JSON with its length in front. Streams are connections that begin with the same cookie. The source is the protocol as
//! iperf 3.1 to 3.20 speak it; no RFC describes it.
//!
//! Transactions use the same control connection: the client's parameters have a key `inett`, and our server answers with
//! [`State::Transactions`] in place of [`State::CreateStreams`]. iperf3 ignores the key, so that its answer tells.

mod client;
mod datagram;
mod frame;
mod json;
mod server;

pub use client::{Client, ClientEvent};
pub use datagram::{Arrivals, DATAGRAM_HELLO, DATAGRAM_READY, Header, is_hello, is_ready};
pub use json::{InettParameters, InettResults, Parameters, Results, StreamResults, parameters, stream_id};
pub use server::{Server, ServerEvent};

/// The port of iperf3.
pub const PORT: u16 = 5201;
/// Bytes of a cookie, with the zero at its end.
pub const COOKIE_BYTES: usize = 37;
/// Most bytes of the parameters.
pub const PARAMETERS_MAX_BYTES: usize = 64 << 10;
/// Most bytes of the results.
pub const RESULTS_MAX_BYTES: usize = 256 << 10;

/// A cookie: 36 characters and a zero.
pub type Cookie = [u8; COOKIE_BYTES];

/// A cookie from a random source.
pub fn cookie(random: &mut inhost_base::Random) -> Cookie {
    const CHARACTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut cookie = [0; COOKIE_BYTES];
    for place in &mut cookie[..COOKIE_BYTES - 1] {
        *place = CHARACTERS[(random.private_u32() % 32) as usize];
    }
    cookie
}

/// A state byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i8)]
#[allow(missing_docs)]
pub enum State {
    TestStart = 1,
    TestRunning = 2,
    TestEnd = 4,
    ParameterExchange = 9,
    CreateStreams = 10,
    ServerTerminate = 11,
    ClientTerminate = 12,
    ExchangeResults = 13,
    DisplayResults = 14,
    Done = 16,
    /// Ours: transactions in place of streams.
    Transactions = 64,
    AccessDenied = -1,
    ServerError = -2,
}

impl State {
    const ALL: [State; 13] = [
        State::TestStart,
        State::TestRunning,
        State::TestEnd,
        State::ParameterExchange,
        State::CreateStreams,
        State::ServerTerminate,
        State::ClientTerminate,
        State::ExchangeResults,
        State::DisplayResults,
        State::Done,
        State::Transactions,
        State::AccessDenied,
        State::ServerError,
    ];
    /// The byte on the wire.
    pub fn byte(self) -> u8 {
        (self as i8) as u8
    }
    /// From the wire.
    pub fn from_byte(byte: u8) -> Option<State> {
        State::ALL.into_iter().find(|state| state.byte() == byte)
    }
}

/// Error codes of iperf3 that this program sends, and those for which it has words.
pub mod code {
    /// The duration is out of range.
    pub const DURATION: i32 = 5;
    /// The number of streams is out of range.
    pub const STREAMS: i32 = 6;
    /// The size of a write is out of range.
    pub const BLOCK_SIZE: i32 = 7;
    /// The window is out of range.
    pub const WINDOW: i32 = 8;
    /// The parameters could not be read.
    pub const PARAMETERS: i32 = 114;
    /// A stream could not be accepted.
    pub const STREAM_ACCEPT: i32 = 204;
    /// No message came for too long.
    pub const NO_MESSAGE: i32 = 144;

    /// What a code means, where it is known.
    pub fn text(code: i32) -> Option<&'static str> {
        Some(match code {
            DURATION => "the test is too long",
            STREAMS => "there are too many parallel streams",
            BLOCK_SIZE | 20 => "the size of a write or datagram is out of range",
            WINDOW => "the window is too large",
            10 => "the maximum segment size is too large",
            27 => "the rate is above the limit of the server",
            PARAMETERS => "the parameters could not be read",
            134 => "the congestion control is not known there",
            142 => "the server wants a user name and password",
            NO_MESSAGE => "nothing came for too long",
            160 => "the test took longer than the server allows",
            STREAM_ACCEPT => "a stream could not be accepted",
            _ => return None,
        })
    }
}

/// What the other end did wrong, or why it refuses.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The server has a test of another client.
    Busy,
    /// The other end has only streams.
    OnlyStreams,
    /// The server refused the test or gave it up, with iperf3's number and the system's error number.
    #[allow(missing_docs)]
    Server { code: i32, errno: i32 },
    /// The server was stopped.
    ServerTerminated,
    /// A state byte that is unknown or has no place here.
    #[allow(missing_docs)]
    Unexpected { byte: u8, state: &'static str },
    /// A message is longer than its limit.
    #[allow(missing_docs)]
    TooLong { bytes: u32, limit: usize },
    /// JSON that is not what it should be.
    #[allow(missing_docs)]
    Json { what: &'static str },
}

impl core::fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ProtocolError::Busy => f.write_str("the server is busy with another test; try again later"),
            ProtocolError::OnlyStreams => f.write_str(
                "the other end runs iperf3, which has only streams; start `inhost inett --server` there",
            ),
            ProtocolError::Server { code, errno } => {
                match code::text(*code) {
                    Some(text) => write!(f, "the server refused the test: {text}")?,
                    None => write!(f, "the server gave up with iperf3's error {code}")?,
                }
                match errno {
                    0 => Ok(()),
                    errno => write!(f, " (system error {errno})"),
                }
            }
            ProtocolError::ServerTerminated => f.write_str("the server was stopped"),
            ProtocolError::Unexpected { byte, state } => {
                write!(f, "the other end sent {byte}, which has no place {state}; is it iperf3?")
            }
            ProtocolError::TooLong { bytes, limit } => {
                write!(f, "the other end announced a message of {bytes} bytes; at most {limit} are taken")
            }
            ProtocolError::Json { what } => write!(f, "the other end sent {what} that cannot be read"),
        }
    }
}
impl core::error::Error for ProtocolError {}

/// What a control connection is to do next, for either end.
#[derive(Clone, PartialEq, Debug)]
pub enum Step<E> {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Something happened.
    Event(E),
}

#[cfg(test)]
mod tests;
