//! Transactions: a request and its response, a character and its echo or a screenful, connections.
//!
//! Each connection begins with the cookie of its test, a role and its number; the server answers with one byte. Sizes are
//! drawn at both ends from the same seed, so that a request of one byte is one byte.

use std::cell::{Cell, RefCell};
use std::io;

use inhost_base::{Duration, Endpoint, Random};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::counters::Counter;
use super::stream::{Buffers, Ended, Job, is_end};
use super::{ANSWER_WITHIN, HELLO_WITHIN, stream, within};
use crate::face::{Face, SocketOptions};
use crate::iperf3::{COOKIE_BYTES, Cookie, State};
use crate::plan::{Kind, Plan, SCREEN_BYTES, STREAMS_MAX};
use crate::statistics::Times;

/// Bytes of what a connection begins with: the cookie, the role, the number.
const PREAMBLE_BYTES: usize = COOKIE_BYTES + 3;
/// What the server answers to it.
const READY: u8 = 6;
/// Connections of bulk data of one test at the server.
const BULK_MAX: usize = 2 * STREAMS_MAX as usize;

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Role {
    /// Transactions.
    Transactions = b'T',
    /// Being opened.
    Connect = b'C',
    /// Background data to the server.
    Sink = b'S',
    /// Background data from the server.
    Source = b'R',
}

impl Role {
    fn from_byte(byte: u8) -> Option<Role> {
        [Role::Transactions, Role::Connect, Role::Sink, Role::Source]
            .into_iter()
            .find(|role| *role as u8 == byte)
    }
}

/// Sizes of requests and responses of one connection.
#[derive(Debug)]
pub struct Sizes<'a> {
    plan: &'a Plan,
    random: Random,
}

impl Sizes<'_> {
    /// Of the connection with this number.
    pub fn new(plan: &Plan, number: u16) -> Sizes<'_> {
        Sizes { plan, random: Random::from_number(plan.seed.rotate_left(16) ^ u64::from(number)) }
    }
    /// Bytes of the next request and its response. A request has at least one.
    pub fn draw(&mut self) -> [u64; 2] {
        match self.plan.kind {
            Kind::Screen => [1, SCREEN_BYTES],
            Kind::Request => {
                let request = self.plan.request_bytes.draw(&mut self.random);
                [request.max(1), self.plan.response_bytes.draw(&mut self.random).max(1)]
            }
            _ => [1, 1],
        }
    }
}

/// What the transactions of a test count.
#[derive(Debug, Default)]
pub struct Tally {
    /// Times, warm-up left out.
    pub times: RefCell<Times>,
    /// All that were done, for reports.
    pub done: Cell<u64>,
    /// Those that failed, warm-up left out.
    pub failed: Cell<u64>,
    /// Whether the warm-up is not over.
    pub is_warming: Cell<bool>,
}

impl Tally {
    fn take(&self, time: Duration) {
        self.done.set(self.done.get() + 1);
        if !self.is_warming.get() {
            self.times.borrow_mut().take(time.as_nanos());
        }
    }
    fn fail(&self) {
        if !self.is_warming.get() {
            self.failed.set(self.failed.get() + 1);
        }
    }
}

/// Where connections of a test go, and how they begin.
#[derive(Clone, Debug)]
pub struct Dial {
    /// The server.
    pub server: Endpoint,
    /// The test.
    pub cookie: Cookie,
    /// How sockets are.
    pub options: SocketOptions,
}

impl Dial {
    /// Opens a connection; also says how long the connecting took.
    pub async fn open<F: Face>(
        &self,
        face: &F,
        role: Role,
        number: u16,
    ) -> io::Result<(F::Stream, Duration)> {
        let open = async {
            let began = face.now();
            let mut stream = face.connect(self.server, &self.options).await?;
            let took = face.now().since(began);
            let mut preamble = self.cookie.to_vec();
            preamble.push(role as u8);
            preamble.extend_from_slice(&number.to_be_bytes());
            stream.write_all(&preamble).await?;
            match stream.read_u8().await? {
                READY => Ok((stream, took)),
                _ => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        };
        within(face, ANSWER_WITHIN, open).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Transactions on a connection, until the count of the plan or the end of the connection.
pub async fn transact<F: Face>(
    face: &F,
    connection: &mut F::Stream,
    plan: &Plan,
    number: u16,
    tally: &Tally,
    buffers: &Buffers,
) -> io::Result<Ended> {
    let mut sizes = Sizes::new(plan, number);
    let mut thinking = Random::from_number(plan.seed.rotate_left(32) ^ u64::from(number));
    let mut counted = 0;
    while plan.count.is_none_or(|count| counted < count) {
        let think = plan.think_us.draw(&mut thinking);
        if think > 0 {
            face.sleep_until(face.now() + Duration::from_micros(think)).await;
        }
        let [request, response] = sizes.draw();
        let began = face.now();
        let exchange = async {
            write_bytes(connection, buffers, request).await?;
            connection.flush().await
        };
        // A server takes all of a request before it answers, so writing does not wait for reading.
        within(face, ANSWER_WITHIN, exchange).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()))?;
        let answer = read_bytes(connection, buffers, response);
        within(face, ANSWER_WITHIN, answer).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()))?;
        counted += u64::from(!tally.is_warming.get());
        tally.take(face.now().since(began));
    }
    Ok(Ended::Total)
}

async fn write_bytes<S: tokio::io::AsyncWrite + Unpin>(
    to: &mut S,
    buffers: &Buffers,
    mut bytes: u64,
) -> io::Result<()> {
    while bytes > 0 {
        let chunk = buffers.pattern(bytes);
        to.write_all(chunk).await?;
        bytes -= chunk.len() as u64;
    }
    Ok(())
}

/// Reads a message: its last byte.
async fn read_bytes<S: tokio::io::AsyncRead + Unpin>(
    from: &mut S,
    buffers: &Buffers,
    mut bytes: u64,
) -> io::Result<u8> {
    let mut last = 0;
    while bytes > 0 {
        let Some((count, byte)) = buffers.read(from, bytes).await? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        (last, bytes) = (byte, bytes - count);
    }
    Ok(last)
}

/// Opens and closes connections, one after another.
pub async fn connect<F: Face>(face: &F, dial: &Dial, plan: &Plan, tally: &Tally) -> io::Result<Ended> {
    let mut thinking = Random::from_number(plan.seed.rotate_left(32));
    let (mut counted, mut failed_in_a_row) = (0, 0);
    while plan.count.is_none_or(|count| counted < count) {
        let think = plan.think_us.draw(&mut thinking);
        if think > 0 {
            face.sleep_until(face.now() + Duration::from_micros(think)).await;
        }
        counted += u64::from(!tally.is_warming.get());
        match dial.open(face, Role::Connect, 0).await {
            Ok((mut stream, took)) => {
                failed_in_a_row = 0;
                tally.take(took);
                let _ = stream.shutdown().await;
            }
            Err(why) => {
                tally.fail();
                failed_in_a_row += 1;
                if failed_in_a_row >= FAILURES_MAX {
                    return Err(why);
                }
                face.sleep_until(face.now() + AFTER_FAILURE).await;
            }
        }
    }
    Ok(Ended::Total)
}

/// After so many failures in a row the server is taken to be gone.
const FAILURES_MAX: u32 = 20;
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// Opens one connection, whose time counts, and holds it.
pub async fn hold<F: Face>(face: &F, dial: &Dial, number: u16, tally: &Tally) -> Option<F::Stream> {
    match dial.open(face, Role::Connect, number).await {
        Ok((stream, took)) => {
            tally.take(took);
            Some(stream)
        }
        Err(_) => {
            tally.fail();
            None
        }
    }
}

/// What the connections of a test with transactions share at the server.
#[derive(Debug)]
pub struct Serving<'a> {
    cookie: Cookie,
    plan: &'a Plan,
    job: Job,
    /// Connections of bulk data that are open.
    bulk: Cell<usize>,
}

impl<'a> Serving<'a> {
    /// A test; `job` is that of bulk data.
    pub fn new(cookie: Cookie, plan: &'a Plan, job: Job) -> Serving<'a> {
        Serving { cookie, plan, job, bulk: Cell::new(0) }
    }
    /// A place for a connection of bulk data, until it is dropped; `None` where there are [`BULK_MAX`].
    fn bulk(&self) -> Option<Bulk<'_>> {
        (self.bulk.get() < BULK_MAX).then(|| {
            self.bulk.set(self.bulk.get() + 1);
            Bulk(&self.bulk)
        })
    }
}

/// A connection of bulk data that is open.
struct Bulk<'a>(&'a Cell<usize>);

impl Drop for Bulk<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// The server's end of a connection of a test with transactions.
pub async fn serve<F: Face>(
    face: &F,
    mut connection: F::Stream,
    of: &Serving<'_>,
    counter: &Counter,
) -> io::Result<Ended> {
    let hello = within(face, HELLO_WITHIN, hello(&mut connection, of)).await;
    let (role, number, _bulk) = hello.unwrap_or(Err(io::ErrorKind::TimedOut.into()))?;
    match role {
        Some(Role::Transactions) => answer(&mut connection, of, number, counter).await,
        Some(Role::Sink) => stream::receive::<F>(&mut connection, &of.job, counter).await,
        Some(Role::Source) => stream::send(face, &mut connection, &of.job, counter).await,
        // The connection is only to be open: the test of it ends when its client closes it or sends anything.
        Some(Role::Connect) | None => {
            counter.blocks.set(counter.blocks.get() + 1);
            of.job.buffers.read(&mut connection, 1).await.map(|_| Ended::Closed)
        }
    }
}

/// Reads and answers what a connection begins with: its role and its number.
async fn hello<'a, S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
    connection: &mut S,
    of: &'a Serving<'_>,
) -> io::Result<(Option<Role>, u16, Option<Bulk<'a>>)> {
    let mut preamble = [0; PREAMBLE_BYTES];
    connection.read_exact(&mut preamble[..COOKIE_BYTES]).await?;
    if preamble[..COOKIE_BYTES] != of.cookie[..] {
        connection.write_all(&[State::AccessDenied.byte()]).await?;
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    connection.read_exact(&mut preamble[COOKIE_BYTES..]).await?;
    let [role, high, low] = [0, 1, 2].map(|at| preamble[COOKIE_BYTES + at]);
    let role = Role::from_byte(role);
    let bulk = match role {
        Some(Role::Sink | Role::Source) => {
            let bulk = of.bulk();
            if bulk.is_none() {
                connection.write_all(&[State::AccessDenied.byte()]).await?;
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            bulk
        }
        _ => None,
    };
    connection.write_all(&[READY]).await?;
    Ok((role, u16::from_be_bytes([high, low]), bulk))
}

async fn answer<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
    connection: &mut S,
    of: &Serving<'_>,
    number: u16,
    counter: &Counter,
) -> io::Result<Ended> {
    let mut sizes = Sizes::new(of.plan, number);
    let buffers = &of.job.buffers;
    loop {
        let [request, response] = sizes.draw();
        let exchange = async {
            let last = read_bytes(connection, buffers, request).await?;
            match response {
                // An echo is the character that came.
                1 => connection.write_all(&[last]).await?,
                _ => write_bytes(connection, buffers, response).await?,
            }
            connection.flush().await
        };
        match exchange.await {
            Ok(()) => {
                counter.blocks.set(counter.blocks.get() + 1);
                counter.bytes.set(counter.bytes.get() + request + response);
            }
            Err(why) if is_end(&why) => return Ok(Ended::Closed),
            Err(why) => return Err(why),
        }
    }
}
