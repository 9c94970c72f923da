//! A question asked over a host's own sockets.

use crate::answer::AnswerError;
use crate::asked::Question;
use crate::health::Health;
use crate::machine::{Action, Exchange, Failed, QUESTION_LIMIT, Resolution, RetrySchedule};
use crate::mdns::{self, MdnsReport};
use futures_lite::future;
use inhost_base::{Endpoint, IpAddr, Ipv4Addr, Ipv6Addr, Random};
use inhost_socket::errno::Errno;
use inhost_socket::{Host, Stream, UdpSocket};
use inhost_stack::UdpOptions;
use std::cell::{Cell, RefCell};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The longest datagram taken: more than any server was asked for.
const DATAGRAM_BYTES: usize = 4096;

/// Asks name servers from one host, and remembers how they answer.
pub struct DnsClient {
    host: Host,
    health: RefCell<Health>,
    random: RefCell<Random>,
    retries: Cell<RetrySchedule>,
}

/// Event during an exchange.
enum News {
    Datagram(Endpoint, usize),
    Connected(Stream),
    Reply(Vec<u8>),
    Failed(String),
    Time,
}

/// Open transport to the current server.
enum Open {
    Nothing,
    Socket(UdpSocket),
    Calling(Endpoint, Vec<u8>),
    Connection(Stream),
}

impl DnsClient {
    /// One that draws identifiers and letters' case from `seed`, which nobody else must know.
    pub fn new(host: &Host, seed: [u8; 32]) -> DnsClient {
        let (health, random) = (RefCell::new(Health::new()), RefCell::new(Random::from_seed(seed)));
        DnsClient { host: host.clone(), health, random, retries: Cell::default() }
    }
    /// The host that asks.
    pub fn host(&self) -> &Host {
        &self.host
    }
    /// Sets how often each server is asked from now on, and how long it is waited for.
    pub fn set_retries(&self, retries: RetrySchedule) {
        self.retries.set(retries);
    }
    /// Asks everybody on the links (RFC 6762).
    pub async fn ask_link(&self, question: Question) -> MdnsReport {
        // Drawn from here, so that no two questions at a time draw the same.
        let mut seed = [0; 32];
        for piece in seed.chunks_exact_mut(4) {
            piece.copy_from_slice(&self.random.borrow_mut().private_u32().to_le_bytes());
        }
        mdns::ask(&self.host, question, &mut Random::from_seed(seed)).await
    }
    /// Asks `servers` until one has given a usable answer, or none has.
    pub async fn ask(&self, question: Question, servers: &[Endpoint], over_tcp: bool) -> Resolution {
        let mut exchange = Exchange::new(
            question,
            servers,
            over_tcp,
            self.retries.get(),
            &self.health.borrow(),
            &mut self.random.borrow_mut(),
            self.host.now(),
        );
        let mut buffer = vec![0; DATAGRAM_BYTES];
        let mut open = Open::Nothing;
        loop {
            match exchange.action() {
                Some(Action::Over) => return exchange.into_report(),
                Some(Action::Udp(server, bytes)) => match self.send(server, &bytes).await {
                    Ok(socket) => open = Open::Socket(socket),
                    Err(why) => self.tell(&mut exchange, News::Failed(why), &buffer),
                },
                Some(Action::Tcp(server, bytes)) => open = Open::Calling(server, bytes),
                None => {
                    let news = self.wait(&exchange, &mut open, &mut buffer).await;
                    match news {
                        News::Connected(stream) => open = Open::Connection(stream),
                        news => self.tell(&mut exchange, news, &buffer),
                    }
                }
            }
        }
    }
    /// Asks, and asks on for the name at the end of aliases that the servers did not follow themselves.
    pub async fn ask_to_the_end(
        &self,
        question: Question,
        servers: &[Endpoint],
        over_tcp: bool,
    ) -> Resolution {
        let ends = self.host.now() + QUESTION_LIMIT;
        let mut report = self.ask(question, servers, over_tcp).await;
        while let Ok(answer) = &report.result
            && let Some(name) = answer.unfinished.clone()
        {
            // Slow servers with many aliases do not hold a place for minutes.
            if self.host.now() >= ends {
                report.result = Err(Failed::Silence);
                break;
            }
            let next = self.ask(Question { name, ..report.question.clone() }, servers, over_tcp).await;
            report.attempts.extend(next.attempts);
            report.result = match next.result {
                Ok(rest) => answer.clone().continued(&rest).map_err(Failed::AnswerError),
                Err(why) => Err(why),
            };
        }
        report
    }
    /// Sends a question from a port that the stack draws. The socket is connected to the server, so that it receives
    /// from that server only, and gets an error if nobody listens at once.
    async fn send(&self, server: Endpoint, bytes: &[u8]) -> Result<UdpSocket, String> {
        let any: IpAddr = match server.address {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket =
            self.host.udp(Endpoint::new(any, 0), UdpOptions::default()).map_err(|error| error.to_string())?;
        socket.connect(server).map_err(|error| error.to_string())?;
        socket.send(bytes).await.map_err(|error| error.to_string())?;
        Ok(socket)
    }
    async fn wait(&self, exchange: &Exchange, open: &mut Open, buffer: &mut [u8]) -> News {
        let time = async {
            match exchange.deadline() {
                Some(deadline) => self.host.sleep_until(deadline).await,
                None => future::pending().await,
            }
            News::Time
        };
        let news = async {
            match open {
                Open::Nothing => future::pending().await,
                Open::Socket(socket) => match socket.receive_from(buffer).await {
                    Ok(info) => News::Datagram(info.from, info.length_bytes.min(buffer.len())),
                    Err(error) => News::Failed(error.to_string()),
                },
                Open::Calling(server, bytes) => match self.host.connect(*server).await {
                    Ok(mut stream) => match write_message(&mut stream, bytes).await {
                        Ok(()) => News::Connected(stream),
                        Err(error) => News::Failed(error.to_string()),
                    },
                    Err(error) => News::Failed(error.into_io().to_string()),
                },
                Open::Connection(stream) => match read_message(stream).await {
                    Ok(Some(message)) => News::Reply(message),
                    Ok(None) => News::Failed("it closed the connection without an answer".into()),
                    Err(error) => News::Failed(error.to_string()),
                },
            }
        };
        future::or(news, time).await
    }
    fn tell(&self, exchange: &mut Exchange, news: News, buffer: &[u8]) {
        let (health, random) = (&mut *self.health.borrow_mut(), &mut *self.random.borrow_mut());
        let now = self.host.now();
        match news {
            News::Datagram(from, length) => {
                exchange.datagram(from, buffer.get(..length).unwrap_or(&[]), health, random, now);
            }
            News::Reply(message) => exchange.reply(&message, health, random, now),
            News::Failed(why) => exchange.failed(why, health, random, now),
            News::Time => exchange.timeout(health, random, now),
            News::Connected(_) => {}
        }
    }
}

/// Writes a message behind its length (RFC 1035 §4.2.2), as one push.
pub(crate) async fn write_message(stream: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> io::Result<()> {
    let length = u16::try_from(message.len())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a message of more than 65535 octets"))?;
    let mut framed = Vec::with_capacity(2 + message.len());
    framed.extend_from_slice(&length.to_be_bytes());
    framed.extend_from_slice(message);
    stream.write_all(&framed).await
}

/// Reads the next message; `None` where the stream ends before one.
pub(crate) async fn read_message(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 2];
    if stream.read(&mut length[..1]).await? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut length[1..]).await?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message).await?;
    Ok(Some(message))
}

impl Resolution {
    /// Whether the servers say that there is no such name.
    pub fn is_no_such_name(&self) -> bool {
        self.result.as_ref().is_ok_and(|answer| answer.is_no_such_name())
    }
    /// Whether the name's aliases go round.
    pub fn is_alias_loop(&self) -> bool {
        matches!(
            &self.result,
            Err(Failed::AnswerError(AnswerError::AliasLoop(_) | AnswerError::TooManyAliases))
        )
    }
}
