//! The client: one request after the other over any byte stream, and their responses. What a broken connection has lost is asked again: a
//! submission with the same key, output from where it was.

use std::fmt;
use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use inhost_common::Cleaner;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::codec::{Job, Submission};
use crate::queue::Output;
use crate::store::{Change, Selection};

/// Octets of a response.
pub const RESPONSE_BYTES: usize = 4 << 20;
/// Header fields of a response.
const FIELDS: usize = 64;
/// Octets of an error's text that are shown.
const DETAIL_BYTES: usize = 300;

/// Who asks whom.
#[derive(Clone, PartialEq, Eq)]
pub struct Client {
    host: String,
    authorization: String,
}

/// Why a request has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// There is no connection: nothing was sent.
    Unreachable(io::Error),
    /// The connection is lost, or is not one of HTTP: the same request may be sent again.
    Broken(io::Error),
    /// The server refuses, with this status and reason.
    Refused(u16, String),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Unreachable(error) => write!(f, "no connection: {error}"),
            ClientError::Broken(error) => write!(f, "the connection is lost: {error}"),
            ClientError::Refused(status, why) => write!(f, "refused ({status}): {why}"),
        }
    }
}
impl std::error::Error for ClientError {}

impl ClientError {
    /// Whether the same request may have an answer later.
    pub fn is_transient(&self) -> bool {
        match self {
            ClientError::Unreachable(_) | ClientError::Broken(_) => true,
            ClientError::Refused(status, _) => matches!(status, 408 | 429 | 500..),
        }
    }
}

/// A response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Whether more output may come: the field `X-Job-Open`.
    pub is_open: bool,
    /// The attempt whose output it is: the field `X-Job-Attempt`; else 0.
    pub attempt: u32,
    /// The first octet of its part of the output: the field `Content-Range`.
    pub from: Option<u64>,
    /// Its body.
    pub body: Vec<u8>,
}

#[derive(Deserialize)]
struct New {
    id: i64,
}

#[derive(Deserialize)]
struct Problem {
    detail: String,
}

impl Client {
    /// For a user of the host of that name. Nothing of it may have line ends.
    ///
    /// # Errors
    /// A text cannot be part of a header field.
    pub fn new(host: &str, user: &str, password: &str) -> io::Result<Client> {
        if !inhost_common::text::is_host(host) || user.contains(':') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a host or user name"));
        }
        let authorization = STANDARD.encode(format!("{user}:{password}"));
        Ok(Client { host: host.to_owned(), authorization })
    }
    /// Submits a job; its number there.
    ///
    /// # Errors
    /// The connection is lost, or the server refuses.
    pub async fn submit<S>(&self, stream: S, key: &str, submission: &Submission) -> Result<i64, ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let body = serde_json::to_vec(submission).map_err(broken)?;
        let field = format!("Idempotency-Key: {key}\r\nContent-Type: application/json\r\n");
        json::<New>(&self.ask(stream, "POST /jobs", &field, &body).await?).map(|new| new.id)
    }
    /// A job.
    ///
    /// # Errors
    /// The connection is lost, or the server refuses.
    pub async fn job<S>(&self, stream: S, id: i64) -> Result<Job, ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        json(&self.ask(stream, &format!("GET /jobs/{id}"), "", b"").await?)
    }
    /// Jobs, the latest first.
    ///
    /// # Errors
    /// The connection is lost, or the server refuses.
    pub async fn list<S>(&self, stream: S, selection: &Selection) -> Result<Vec<Job>, ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut target = format!("GET /jobs?count={}", selection.count);
        if let Some(state) = selection.state {
            target += &format!("&state={}", state.name());
        }
        for (name, value) in [("array", selection.array), ("before", selection.before)] {
            if let Some(value) = value {
                target += &format!("&{name}={value}");
            }
        }
        json(&self.ask(stream, &target, "", b"").await?)
    }
    /// A piece of the output of an attempt, of the latest one if that is `None`, from an offset.
    ///
    /// # Errors
    /// The connection is lost, or the server refuses.
    pub async fn output<S>(
        &self,
        stream: S,
        id: i64,
        output: Output,
        attempt: Option<u32>,
        offset: u64,
    ) -> Result<Response, ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let field = format!("Range: bytes={offset}-\r\n");
        let query = attempt.map(|attempt| format!("?attempt={attempt}")).unwrap_or_default();
        let request = format!("GET /jobs/{id}/{}{query}", output.name());
        let mut response = self.exchange(stream, &request, &field, b"").await?;
        match (response.status, response.from) {
            (206, Some(from)) if from == offset => {}
            (206, _) => {
                let why = "the server gives another part than was asked for";
                return Err(ClientError::Broken(io::Error::new(io::ErrorKind::InvalidData, why)));
            }
            // There is no more.
            (416, _) => response.body.clear(),
            // All of it, as a server may do that has no ranges (RFC 9110 §14.2).
            (200..300, _) => {
                let known = usize::try_from(offset).unwrap_or(usize::MAX).min(response.body.len());
                response.body.drain(..known);
            }
            _ => return Err(refused(&response)),
        }
        Ok(response)
    }
    /// Holds, releases or cancels.
    ///
    /// # Errors
    /// The connection is lost, or the server refuses.
    pub async fn change<S>(&self, stream: S, id: i64, change: Change) -> Result<(), ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let verb = match change {
            Change::Hold => "hold",
            Change::Release => "release",
            Change::Cancel => "cancel",
        };
        self.ask(stream, &format!("POST /jobs/{id}/{verb}"), "", b"").await.map(drop)
    }

    async fn ask<S>(
        &self,
        stream: S,
        request: &str,
        fields: &str,
        body: &[u8],
    ) -> Result<Response, ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let response = self.exchange(stream, request, fields, body).await?;
        if response.status < 300 { Ok(response) } else { Err(refused(&response)) }
    }
    async fn exchange<S>(
        &self,
        mut stream: S,
        request: &str,
        fields: &str,
        body: &[u8],
    ) -> Result<Response, ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (host, authorization, length) = (&self.host, &self.authorization, body.len());
        let head = format!(
            "{request} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic {authorization}\r\n\
             {fields}Content-Length: {length}\r\n\r\n"
        );
        let mut octets = head.into_bytes();
        octets.extend_from_slice(body);
        stream.write_all(&octets).await.map_err(ClientError::Broken)?;
        stream.flush().await.map_err(ClientError::Broken)?;
        let (mut received, mut place) = (Vec::new(), vec![0; 16 << 10]);
        loop {
            if let Some(response) = parse(&received)? {
                return Ok(response);
            }
            let count = stream.read(&mut place).await.map_err(ClientError::Broken)?;
            if count == 0 {
                return Err(ClientError::Broken(io::ErrorKind::UnexpectedEof.into()));
            }
            received.extend_from_slice(place.get(..count).unwrap_or_default());
        }
    }
}

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> ClientError {
    ClientError::Broken(io::Error::other(error))
}

fn json<T: DeserializeOwned>(response: &Response) -> Result<T, ClientError> {
    serde_json::from_slice(&response.body).map_err(broken)
}

fn refused(response: &Response) -> ClientError {
    let detail =
        serde_json::from_slice::<Problem>(&response.body).map(|problem| problem.detail).unwrap_or_default();
    let shown = detail.as_bytes().get(..DETAIL_BYTES).unwrap_or(detail.as_bytes());
    ClientError::Refused(response.status, Cleaner::line(shown))
}

/// A response, once all of it is there. It has to say its length.
pub(crate) fn parse(octets: &[u8]) -> Result<Option<Response>, ClientError> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut head = httparse::Response::new(&mut fields);
    let wrong = |why: &'static str| ClientError::Broken(io::Error::new(io::ErrorKind::InvalidData, why));
    let begin = match head.parse(octets).map_err(broken)? {
        httparse::Status::Partial if octets.len() > RESPONSE_BYTES => {
            return Err(wrong("the head is too long"));
        }
        httparse::Status::Partial => return Ok(None),
        httparse::Status::Complete(begin) => begin,
    };
    let field = |name: &str| {
        let found = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
        found.and_then(|field| std::str::from_utf8(field.value).ok())
    };
    let length: Option<usize> = field("content-length").and_then(|text| text.trim().parse().ok());
    let length =
        length.filter(|&length| length <= RESPONSE_BYTES).ok_or_else(|| wrong("no length, or too long"))?;
    let Some(body) = octets.get(begin..begin.saturating_add(length)) else { return Ok(None) };
    let is_open = field("x-job-open") == Some("true");
    let attempt = field("x-job-attempt").and_then(|text| text.parse().ok()).unwrap_or(0);
    let from =
        field("content-range").and_then(|text| text.strip_prefix("bytes ")?.split('-').next()?.parse().ok());
    Ok(Some(Response { status: head.code.unwrap_or(0), is_open, attempt, from, body: body.to_vec() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::block_on;

    /// What the client makes of one response to a request for output from octet 4 on.
    fn heard(head: &str, body: &str) -> Result<(String, bool), String> {
        let (own, mut server) = tokio::io::duplex(1 << 16);
        let text = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let client = Client::new("vax", "ada", "a").unwrap();
        let asked = async {
            server.write_all(text.as_bytes()).await.unwrap();
            client.output(own, 1, Output::Stdout, None, 4).await
        };
        let response = block_on(asked).map_err(|error| error.to_string())?;
        Ok((String::from_utf8(response.body).unwrap(), response.is_open))
    }

    #[test]
    fn output_has_an_end_whatever_a_server_knows_of_ranges() {
        let is = |text: &str, is_open| Ok((text.to_owned(), is_open));
        assert_eq!(heard("206 x\r\nContent-Range: bytes 4-7/8", "tide"), is("tide", false));
        assert_eq!(heard("416 x\r\nContent-Range: bytes */4\r\nX-Job-Open: true", "{}"), is("", true));
        // One that ignores them, and one that has no body then.
        assert_eq!(heard("200 x", "hightide"), is("tide", false));
        assert_eq!((heard("200 x", "high"), heard("200 x", "")), (is("", false), is("", false)));
        assert!(heard("206 x\r\nContent-Range: bytes 0-3/8", "high").unwrap_err().contains("another part"));
        assert!(heard("404 x", r#"{"detail":"no job"}"#).unwrap_err().contains("no job"));
    }
}
