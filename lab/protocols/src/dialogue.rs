//! Lines of a client, and what the server says to them.

use inhost_base::{Endpoint, Ipv4Addr};
use inhost_socket::{Host, Stream};
use inhost_stack::SendHow;

use crate::Failed;

/// A server says less than this before a reply or the end of its text.
const UNREAD_MAX_BYTES: usize = 32 << 20;

pub(crate) struct Dialogue {
    stream: Stream,
    /// What came and was not taken.
    unread: Vec<u8>,
}

impl Dialogue {
    /// Calls a port of the host itself.
    pub(crate) async fn open(host: &Host, port: u16) -> Result<Dialogue, Failed> {
        let at = Endpoint::new(Ipv4Addr::LOCALHOST, port);
        let stream = host.connect(at).await.map_err(|e| Failed::of("connect", e))?;
        Ok(Dialogue { stream, unread: Vec::new() })
    }
    pub(crate) async fn send(&mut self, mut octets: &[u8]) -> Result<(), Failed> {
        while !octets.is_empty() {
            let sent = self.stream.send(octets, SendHow::default()).await;
            octets = &octets[sent.map_err(|e| Failed::of("send", e))?..];
        }
        Ok(())
    }
    /// Sends a line, and takes a reply whose code begins with `digit`.
    pub(crate) async fn command(&mut self, line: &str, digit: char) -> Result<String, Failed> {
        self.send(line.as_bytes()).await?;
        self.send(b"\r\n").await?;
        self.reply(digit).await
    }
    /// Takes a reply of FTP or SMTP, of one line or several (RFC 959 §4.2, RFC 5321 §4.2.1): its last line.
    pub(crate) async fn reply(&mut self, digit: char) -> Result<String, Failed> {
        loop {
            let line = self.until(b"\r\n").await?;
            let line = String::from_utf8_lossy(&line).into_owned();
            if line.as_bytes().get(3) == Some(&b'-') {
                continue;
            }
            return match line.starts_with(digit) {
                true => Ok(line),
                false => Err(Failed::of("the server said", line.trim_end())),
            };
        }
    }
    /// Takes all up to `mark`, with it.
    pub(crate) async fn until(&mut self, mark: &[u8]) -> Result<Vec<u8>, Failed> {
        let mut searched = 0;
        loop {
            let found = self.unread[searched..].windows(mark.len()).position(|octets| octets == mark);
            if let Some(at) = found {
                let rest = self.unread.split_off(searched + at + mark.len());
                return Ok(std::mem::replace(&mut self.unread, rest));
            }
            searched = (self.unread.len() + 1).saturating_sub(mark.len());
            if self.more().await? == 0 {
                return Err(Failed("the server has closed the connection".to_owned()));
            }
            if self.unread.len() > UNREAD_MAX_BYTES {
                return Err(Failed("the server says too much".to_owned()));
            }
        }
    }
    /// Takes all up to the end of the stream, and gives how much it was.
    pub(crate) async fn count_to_end(mut self) -> Result<usize, Failed> {
        let mut count = self.unread.len();
        loop {
            self.unread.clear();
            match self.more().await? {
                0 => return Ok(count),
                came => count += came,
            }
        }
    }
    async fn more(&mut self) -> Result<usize, Failed> {
        let mut place = [0; 16 << 10];
        let count = self.stream.receive(&mut place).await.map_err(|e| Failed::of("receive", e))?;
        self.unread.extend_from_slice(&place[..count]);
        Ok(count)
    }
}
