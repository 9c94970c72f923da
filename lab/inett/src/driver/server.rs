//! The server: one test at a time, as iperf3 does it.

use std::io;
use std::rc::Rc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use inhost_base::{Duration, Endpoint, Instant};
use tokio::io::AsyncReadExt;

use super::control::{Control, Lost};
use super::counters::{Counter, Total};
use super::datagrams::{self, Worker};
use super::door::{Door, accept};
use super::report::{Found, Side, sides};
use super::running::Ran;
use super::stream::{self, Buffers, Ended, Job};
use super::transactions::{self, Serving};
use super::watch::{Overrun, Watch, takes};
use super::{ANSWER_WITHIN, HELLO_WITHIN, Stop, within};
use crate::face::{Face, SocketOptions, StreamFigures};
use crate::iperf3::{
    COOKIE_BYTES, DATAGRAM_READY, Parameters, ProtocolError, Results, Server, ServerEvent, code, is_hello,
};
use crate::plan::{CONNECTIONS_MAX, DATAGRAM_MAX_BYTES, Plan, Protocol, STREAMS_MAX, TIME_MAX_MS};

/// Connections of one test with transactions.
pub(super) const WORKERS_MAX: usize = CONNECTIONS_MAX as usize + 2 * STREAMS_MAX as usize;

/// How to serve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ServeOptions {
    /// Whether to end after one test, failed or not. Default: no.
    pub is_one_off: bool,
    /// Longest duration of a test, warm-up included. A client that names a longer one is refused. A test that ends by bytes or
    /// by count, or when its user ends it, is given up after it. Default: a day, as in iperf3.
    pub time_max: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        ServeOptions { is_one_off: false, time_max: Duration::from_millis(TIME_MAX_MS) }
    }
}

/// What the caller is told.
#[derive(Debug)]
#[non_exhaustive]
pub enum Served {
    /// It listens there.
    Listening(Endpoint),
    /// A test began.
    Began(Box<Plan>),
    /// A test ended in order: what this end found, and what the client said that it found.
    #[allow(missing_docs)]
    Ended { own: Box<Results>, client: Box<Results> },
    /// A test failed, and why.
    Failed(String),
}

/// Serves tests at `at` until the user stops it.
///
/// # Errors
/// When it cannot listen there.
pub async fn serve<F: Face>(
    face: &F,
    at: Endpoint,
    options: &ServeOptions,
    stop: &Stop,
    told: &mut dyn FnMut(Served),
) -> io::Result<()> {
    let listener = face.listen(at).await?;
    let local = face.local(&listener)?;
    told(Served::Listening(local));
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.stopped() => return Ok(()),
            accepted = accept(face, &listener) => accepted,
        };
        let Some((stream, peer)) = accepted else { continue };
        let options_of_control = SocketOptions { no_delay: true, ..SocketOptions::default() };
        let _ = face.prepare(&stream, &options_of_control).await;
        let door = Door::new(face, &listener);
        let control = Control::new(face, stream, Server::default());
        let (time_max, has_begun) = (options.time_max, false);
        let mut session = Session { face, local, peer, door, control, stop, time_max, has_begun };
        let result = session.run(told).await;
        // A connection that asked for no test, of a port scanner for instance, is not the one.
        let is_last = options.is_one_off && session.has_begun;
        match result {
            Ok(()) => session.control.close().await,
            Err(why) => {
                let text = session.farewell(why).await;
                session.control.close().await;
                told(Served::Failed(text));
            }
        }
        if is_last || stop.is_stopped() {
            return Ok(());
        }
    }
}

/// Why a session failed.
enum Failure {
    Lost(Lost),
    /// Refused or given up, with iperf3's number and our words.
    Refused(i32, &'static str),
    /// The client's user stopped it.
    Terminated,
    /// Our user did.
    Stopped,
}

impl From<Overrun> for Failure {
    fn from(limit: Overrun) -> Self {
        match limit {
            Overrun::Time => Failure::Refused(160, "the client did not end the test"),
            Overrun::Silent => {
                Failure::Refused(code::NO_MESSAGE, "a stream or connection was silent for too long")
            }
        }
    }
}

impl From<Lost> for Failure {
    fn from(why: Lost) -> Self {
        Failure::Lost(why)
    }
}

struct Session<'a, F: Face> {
    face: &'a F,
    local: Endpoint,
    /// The client's end of the control connection.
    peer: Endpoint,
    door: Door<'a, F>,
    control: Control<F, Server>,
    stop: &'a Stop,
    time_max: Duration,
    /// Whether the client has asked for a test that can be.
    has_begun: bool,
}

impl<F: Face> Session<'_, F> {
    async fn run(&mut self, told: &mut dyn FnMut(Served)) -> Result<(), Failure> {
        let ServerEvent::Parameters(parameters) = self.event().await? else {
            return Err(Failure::Terminated);
        };
        let plan = parameters.to_plan().map_err(|code| Failure::Refused(code, "the parameters cannot be"))?;
        if takes(&plan).is_some_and(|takes| takes > self.time_max) {
            return Err(Failure::Refused(code::DURATION, "the test is too long"));
        }
        self.has_begun = true;
        told(Served::Began(Box::new(plan.clone())));
        let found = match (plan.kind.is_transaction(), plan.protocol) {
            (true, _) => self.transactions(&plan).await?,
            (false, Protocol::Tcp) => self.streams(&plan).await?,
            (false, Protocol::Udp) => self.datagrams(&plan, &parameters).await?,
        };
        let ServerEvent::Results(client) = self.event().await? else { return Err(Failure::Terminated) };
        let own = found.results();
        let bytes = self.control.machine.results(&own);
        self.control.send(&bytes).await?;
        // The client has everything; whether it says its last word changes nothing.
        let _ = self.event().await;
        told(Served::Ended { own: Box::new(own), client: Box::new(client) });
        Ok(())
    }
    /// What is said to the client at the end of a session that failed, and what our user is told.
    async fn farewell(&mut self, why: Failure) -> String {
        let (bytes, text) = match why {
            Failure::Lost(Lost::Closed) => (None, "the client closed the connection".to_owned()),
            Failure::Lost(Lost::Late) => {
                (Some(self.control.machine.refuse(code::NO_MESSAGE, 0)), "the client said nothing".to_owned())
            }
            Failure::Lost(Lost::Protocol(why)) => {
                (Some(self.control.machine.refuse(code::PARAMETERS, 0)), words(&why))
            }
            Failure::Refused(code, text) => (Some(self.control.machine.refuse(code, 0)), text.to_owned()),
            Failure::Terminated => (None, "the client was stopped".to_owned()),
            Failure::Stopped => (Some(self.control.machine.terminate()), "stopped".to_owned()),
        };
        if let Some(bytes) = bytes {
            let _ = self.control.send(&bytes).await;
        }
        text
    }
    /// The next event, which must come soon; others who come are told that the server is busy.
    async fn event(&mut self) -> Result<ServerEvent, Failure> {
        let event = tokio::select! {
            biased;
            () = self.stop.stopped() => return Err(Failure::Stopped),
            event = self.control.answer() => event?,
            never = self.door.deny_all() => match never {},
        };
        match event {
            ServerEvent::Terminated => Err(Failure::Terminated),
            event => Ok(event),
        }
    }
    async fn accept(&mut self, are_transactions: bool) -> Result<(), Failure> {
        let bytes = self.control.machine.accept(are_transactions);
        Ok(self.control.send(&bytes).await?)
    }
    async fn start(&mut self) -> Result<(), Failure> {
        let bytes = self.control.machine.start();
        Ok(self.control.send(&bytes).await?)
    }
    async fn streams(&mut self, plan: &Plan) -> Result<Found, Failure> {
        self.accept(false).await?;
        let face = self.face;
        let sides = sides(plan, Side::Receives);
        let options = options(plan);
        let mut streams = Vec::new();
        let until = face.now() + ANSWER_WITHIN;
        while streams.len() < sides.len() {
            // Those who come without the cookie do not put the end off.
            if face.now() >= until {
                return Err(Failure::Refused(code::STREAM_ACCEPT, "the client opened too few streams"));
            }
            streams.extend(self.stream(until, &options).await?);
        }
        self.start().await?;
        let counters: Vec<Rc<Counter>> = sides.iter().map(|_| Rc::default()).collect();
        let job = job(plan);
        let mut workers: FuturesUnordered<Worker<'_>> = FuturesUnordered::new();
        for ((stream, side), counter) in streams.iter_mut().zip(&sides).zip(&counters) {
            let job = &job;
            workers.push(match side {
                Side::Sends => Box::pin(stream::send(face, stream, job, counter)),
                Side::Receives => Box::pin(stream::receive::<F>(stream, job, counter)),
            });
        }
        let ran = self.serve_run(plan, &counters, &mut workers).await?;
        drop(workers);
        let mut found = Found::new(plan, &sides, &counters, &ran);
        for stream in &streams {
            found.figures.push(face.figures(stream).await);
        }
        Ok(found)
    }
    /// The next stream; none where a connection came that is not of this test.
    async fn stream(
        &mut self,
        until: Instant,
        options: &SocketOptions,
    ) -> Result<Option<F::Stream>, Failure> {
        let accepted = tokio::select! {
            biased;
            () = self.stop.stopped() => return Err(Failure::Stopped),
            event = self.control.event() => match event? {
                ServerEvent::Terminated => return Err(Failure::Terminated),
                _ => return Err(Failure::Lost(Lost::Closed)),
            },
            accepted = self.door.accept() => accepted,
            () = self.face.sleep_until(until) => {
                return Err(Failure::Refused(code::STREAM_ACCEPT, "the client opened too few streams"));
            }
        };
        let Some((mut stream, _)) = accepted else { return Ok(None) };
        let mut cookie = [0; COOKIE_BYTES];
        match within(self.face, HELLO_WITHIN, stream.read_exact(&mut cookie)).await {
            Some(Ok(_)) if cookie == *self.control.machine.cookie() => {}
            Some(Ok(_)) => {
                self.door.deny(stream);
                return Ok(None);
            }
            _ => return Ok(None),
        }
        match self.face.prepare(&stream, options).await {
            Ok(()) => Ok(Some(stream)),
            Err(_) => Err(Failure::Refused(134, "the congestion control or window cannot be set")),
        }
    }
    async fn datagrams(&mut self, plan: &Plan, parameters: &Parameters) -> Result<Found, Failure> {
        let face = self.face;
        let socket = face.datagrams(self.local, None, &options(plan)).await;
        let socket = socket.map_err(|_| Failure::Refused(202, "the UDP port cannot be opened"))?;
        self.accept(false).await?;
        let sides = sides(plan, Side::Receives);
        let peers = tokio::select! {
            biased;
            () = self.stop.stopped() => return Err(Failure::Stopped),
            event = self.control.event() => match event? {
                ServerEvent::Terminated => return Err(Failure::Terminated),
                _ => return Err(Failure::Lost(Lost::Closed)),
            },
            peers = within(face, ANSWER_WITHIN, greet(face, &socket, self.peer, sides.len())) => peers,
            never = self.door.deny_all() => match never {},
        };
        let Some(peers) = peers else {
            return Err(Failure::Refused(code::STREAM_ACCEPT, "the client opened too few streams"));
        };
        self.start().await?;
        let counters: Vec<Rc<Counter>> = sides.iter().map(|_| Rc::default()).collect();
        let (job, is_64_bit) = (job(plan), parameters.udp_counters_64bit);
        let mut workers: FuturesUnordered<Worker<'_>> = FuturesUnordered::new();
        for ((peer, side), counter) in peers.iter().zip(&sides).zip(&counters) {
            if *side == Side::Sends {
                let sending = datagrams::send(face, &socket, Some(*peer), &job, counter, is_64_bit);
                workers.push(Box::pin(sending));
            }
        }
        workers.push(Box::pin(receive_all(face, &socket, &peers, &counters, is_64_bit)));
        let ran = self.serve_run(plan, &counters, &mut workers).await?;
        drop(workers);
        let mut found = Found::new(plan, &sides, &counters, &ran);
        found.figures = vec![StreamFigures::default(); sides.len()];
        Ok(found)
    }
    async fn transactions(&mut self, plan: &Plan) -> Result<Found, Failure> {
        self.accept(true).await?;
        let face = self.face;
        let job = Job { rate: 0, ..job(plan) };
        let serving = Serving::new(*self.control.machine.cookie(), plan, job);
        let options = SocketOptions { no_delay: true, ..options(plan) };
        let mut workers: FuturesUnordered<Worker<'_>> = FuturesUnordered::new();
        let mut watch = Watch::new(face, plan, self.time_max);
        loop {
            watch.look(face)?;
            tokio::select! {
                biased;
                () = self.stop.stopped() => return Err(Failure::Stopped),
                () = face.sleep_until(watch.wake()) => {}
                event = self.control.event() => match event? {
                    ServerEvent::End => break,
                    ServerEvent::Terminated => return Err(Failure::Terminated),
                    _ => return Err(Failure::Lost(Lost::Closed)),
                },
                Some(_) = workers.next(), if !workers.is_empty() => {}
                accepted = self.door.accept() => {
                    let Some((stream, _)) = accepted else { continue };
                    // One that is too many is closed.
                    if workers.len() < WORKERS_MAX && face.prepare(&stream, &options).await.is_ok() {
                        let counter: Rc<Counter> = Rc::default();
                        watch.add(face, &counter);
                        let serving = &serving;
                        workers.push(Box::pin(async move {
                            let result = transactions::serve(face, stream, serving, &counter).await;
                            counter.is_over.set(true);
                            result
                        }));
                    }
                }
            }
        }
        drop(workers);
        Ok(Found::new(plan, &[], &[], &watch.ran(face)))
    }
    /// Runs workers until the client says the end.
    async fn serve_run(
        &mut self,
        plan: &Plan,
        counters: &[Rc<Counter>],
        workers: &mut FuturesUnordered<Worker<'_>>,
    ) -> Result<Ran, Failure> {
        let warm_up = Duration::from_millis(plan.warm_up_ms);
        let mut watch = Watch::new(self.face, plan, self.time_max);
        counters.iter().for_each(|counter| watch.add(self.face, counter));
        let mut omits_at = (warm_up > Duration::ZERO).then(|| self.face.now() + warm_up);
        loop {
            watch.look(self.face)?;
            if omits_at.is_some_and(|at| self.face.now() >= at) {
                omits_at = None;
                counters.iter().for_each(|counter| counter.omit());
                watch.measure(self.face);
            }
            let wake = omits_at.map_or(watch.wake(), |at| at.min(watch.wake()));
            tokio::select! {
                biased;
                () = self.stop.stopped() => return Err(Failure::Stopped),
                () = self.face.sleep_until(wake) => {}
                event = self.control.event() => match event? {
                    ServerEvent::End => return Ok(watch.ran(self.face)),
                    ServerEvent::Terminated => return Err(Failure::Terminated),
                    _ => return Err(Failure::Lost(Lost::Closed)),
                },
                // A stream that ends before the test is the client's to explain.
                Some(_) = workers.next(), if !workers.is_empty() => {}
                never = self.door.deny_all() => match never {},
            }
        }
    }
}

fn options(plan: &Plan) -> SocketOptions {
    SocketOptions {
        window_bytes: plan.window_bytes,
        congestion: plan.congestion.clone(),
        no_delay: plan.no_delay,
    }
}

/// The client says when a test ends, so the server's streams have no end of their own.
fn job(plan: &Plan) -> Job {
    let write_bytes = plan.write_bytes() as usize;
    let total = Total::new(None, None, false);
    Job { write_bytes, rate: plan.rate(), total, buffers: Buffers::new(write_bytes) }
}

/// Answers the hellos of so many streams. Only the address of the control connection is answered: the source of a datagram
/// can be forged, and a victim would be sent the data of a test.
async fn greet<F: Face>(face: &F, socket: &F::Datagrams, client: Endpoint, streams: usize) -> Vec<Endpoint> {
    let client = client.address.to_canonical();
    let mut peers = Vec::new();
    let mut buffer = [0; 64];
    while peers.len() < streams {
        let Ok((count, from)) = face.receive_from(socket, &mut buffer).await else {
            face.sleep_until(face.now() + Duration::from_millis(1)).await;
            continue;
        };
        if from.address.to_canonical() != client || !is_hello(&buffer[..count]) {
            continue;
        }
        if !peers.contains(&from) {
            peers.push(from);
        }
        let _ = face.send_to(socket, &DATAGRAM_READY, Some(from)).await;
    }
    peers
}

/// Receives the datagrams of all streams.
async fn receive_all<F: Face>(
    face: &F,
    socket: &F::Datagrams,
    peers: &[Endpoint],
    counters: &[Rc<Counter>],
    is_64_bit: bool,
) -> io::Result<Ended> {
    let mut buffer = vec![0; DATAGRAM_MAX_BYTES as usize];
    loop {
        let Ok((count, from)) = face.receive_from(socket, &mut buffer).await else {
            // An error message about a datagram that was sent.
            face.sleep_until(face.now() + Duration::from_millis(1)).await;
            continue;
        };
        let Some(index) = peers.iter().position(|peer| *peer == from) else { continue };
        if is_hello(&buffer[..count]) {
            // The answer was lost.
            let _ = face.send_to(socket, &DATAGRAM_READY, Some(from)).await;
        } else {
            datagrams::arrived(&buffer[..count], face.now().as_nanos(), &counters[index], is_64_bit);
        }
    }
}

/// What is told of a client that speaks something else.
fn words(why: &ProtocolError) -> String {
    format!("the client does not speak the protocol: {why}")
}
