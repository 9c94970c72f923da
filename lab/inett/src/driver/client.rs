//! The client: one repetition, and as many as the plan asks for.

use std::future::Future;
use std::rc::Rc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use inhost_base::{Duration, Endpoint, Ipv4Addr, Random};

use super::control::{Control, Lost};
use super::counters::{Counter, Total};
use super::datagrams::{self, Worker};
use super::load::Load;
use super::report::{self, Found, Side, sides};
use super::running::{Ran, Running};
use super::stream::{self, Buffers, Job};
use super::transactions::{self, Dial, Role, Tally};
use super::{ANSWER_WITHIN, RunError, Stop, within};
use crate::face::{Face, SocketOptions, StreamFigures};
use crate::iperf3::{Client, ClientEvent, Parameters, Results, cookie};
use crate::plan::{Direction, Kind, Plan, Protocol};
use crate::result::{Interval, Outcome, Repetition};
use crate::statistics::Advice;

/// Tries of a later repetition: a server may need a moment after a test.
const TRIES: u32 = 25;
/// Time between two tries.
const BETWEEN_TRIES: Duration = Duration::from_millis(200);
/// How long the other end is waited for once the user has stopped the test.
const STOPPED_WITHIN: Duration = Duration::from_secs(1);

/// What the caller is told while it runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// A report is due.
    Interval(&'a Interval),
    /// A repetition is over.
    Repetition(&'a Repetition),
}

/// Measures until the rule of the plan is satisfied or the user stops it. What was measured is kept.
///
/// # Errors
/// When the first repetition fails. A later failure is part of the outcome.
pub async fn run<F: Face>(
    face: &F,
    server: Endpoint,
    plan: &Plan,
    stop: &Stop,
    told: &mut dyn FnMut(Progress<'_>),
) -> Result<Outcome, RunError> {
    plan.validate().map_err(RunError::Plan)?;
    let mut repetitions: Vec<Repetition> = Vec::new();
    let mut figures = Vec::new();
    loop {
        let number = repetitions.len() as u32 + 1;
        let mut tries = 0;
        let repetition = loop {
            match run_once(face, server, plan, number, stop, told).await {
                Err(
                    RunError::Connect(_)
                    | RunError::Closed
                    | RunError::Protocol(crate::iperf3::ProtocolError::Busy),
                ) if number > 1 && tries < TRIES && !stop.is_stopped() => {
                    tries += 1;
                    face.sleep_until(face.now() + BETWEEN_TRIES).await;
                }
                result => break result,
            }
        };
        match repetition {
            Ok(repetition) => {
                told(Progress::Repetition(&repetition));
                figures.extend(repetition.figure(plan));
                repetitions.push(repetition);
            }
            Err(why) if repetitions.is_empty() => return Err(why),
            Err(why) => {
                let failure = (!stop.is_stopped()).then(|| why.to_string());
                return Ok(Outcome { failure, ..Outcome::new(plan, repetitions) });
            }
        }
        if stop.is_stopped() || plan.rule().advise(&figures) != Advice::Again {
            break;
        }
    }
    Ok(Outcome::new(plan, repetitions))
}

/// One repetition; `number` is its number, from 1.
///
/// # Errors
/// When it fails before anything was measured.
pub async fn run_once<F: Face>(
    face: &F,
    server: Endpoint,
    plan: &Plan,
    number: u32,
    stop: &Stop,
    told: &mut dyn FnMut(Progress<'_>),
) -> Result<Repetition, RunError> {
    plan.validate().map_err(RunError::Plan)?;
    let mut plan = plan.clone();
    plan.seed = plan.seed.wrapping_add(u64::from(number) - 1);
    let cookie = cookie(&mut Random::from_number(face.entropy() ^ plan.seed.rotate_left(20)));
    let no_delay = plan.no_delay || plan.kind.is_transaction();
    let options =
        SocketOptions { window_bytes: plan.window_bytes, congestion: plan.congestion.clone(), no_delay };
    let work = async {
        let to_server = SocketOptions { no_delay: true, ..SocketOptions::default() };
        let connected = within(face, ANSWER_WITHIN, face.connect(server, &to_server)).await;
        let connection = connected.ok_or(RunError::Late("answer"))?.map_err(RunError::Connect)?;
        let (machine, hello) = Client::new(&cookie, Parameters::from_plan(&plan));
        let mut control = Control::new(face, connection, machine);
        // A server that is busy may have closed already; what it said comes with the next read.
        let _ = control.send(&hello).await;
        let event = control.answer().await?;
        Ok::<_, RunError>((control, event))
    };
    let (control, event) = tokio::select! {
        biased;
        () = stop.stopped() => return Err(RunError::Stopped),
        opened = work => opened?,
    };
    let dial = Dial { server, cookie, options };
    let test = Test { face, plan: &plan, dial: &dial, stop, number };
    let load = Load::start(plan.load);
    let result = match (event, plan.protocol) {
        (ClientEvent::OpenTransactions, _) => test.transactions(control, told).await,
        (ClientEvent::OpenStreams, Protocol::Tcp) => test.streams(control, told).await,
        (ClientEvent::OpenStreams, Protocol::Udp) => test.datagrams(control, told).await,
        // The machine gives no other.
        _ => Err(RunError::Closed),
    };
    drop(load);
    result
}

impl From<Lost> for RunError {
    fn from(why: Lost) -> Self {
        match why {
            Lost::Closed => RunError::Closed,
            Lost::Late => RunError::Late("answer"),
            Lost::Protocol(why) => RunError::Protocol(why),
        }
    }
}

type ClientControl<F> = Control<F, Client>;

struct Test<'a, F: Face> {
    face: &'a F,
    plan: &'a Plan,
    dial: &'a Dial,
    stop: &'a Stop,
    number: u32,
}

impl<F: Face> Test<'_, F> {
    fn job(&self, total: &Rc<Total>) -> Job {
        let write_bytes = self.plan.write_bytes() as usize;
        let (total, buffers) = (total.clone(), Buffers::new(write_bytes));
        Job { write_bytes, rate: self.plan.rate(), total, buffers }
    }
    fn total(&self) -> Rc<Total> {
        Total::new(self.plan.bytes, self.plan.count, self.plan.warm_up_ms > 0)
    }
    async fn streams(
        &self,
        mut control: ClientControl<F>,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Repetition, RunError> {
        use tokio::io::AsyncWriteExt;
        let (face, sides) = (self.face, sides(self.plan, Side::Sends));
        let opening = async {
            let mut streams = Vec::new();
            for _ in &sides {
                let open = async {
                    let mut stream = face.connect(self.dial.server, &self.dial.options).await?;
                    stream.write_all(&self.dial.cookie).await?;
                    stream.flush().await?;
                    std::io::Result::Ok(stream)
                };
                let opened =
                    within(face, ANSWER_WITHIN, open).await.ok_or(RunError::Late("take a stream"))?;
                streams.push(opened.map_err(RunError::Stream)?);
            }
            Ok(streams)
        };
        let mut streams = self.unless_stopped(&mut control, opening).await?;
        self.wait_for_start(&mut control).await?;
        let counters: Vec<Rc<Counter>> = sides.iter().map(|_| Rc::default()).collect();
        let (total, tally) = (self.total(), Tally::default());
        let job = self.job(&total);
        let mut workers: FuturesUnordered<Worker<'_>> = FuturesUnordered::new();
        for ((stream, side), counter) in streams.iter_mut().zip(&sides).zip(&counters) {
            let job = &job;
            workers.push(match side {
                Side::Sends => Box::pin(stream::send(face, stream, job, counter)),
                Side::Receives => Box::pin(stream::receive::<F>(stream, job, counter)),
            });
        }
        let running = self.running(&counters, &sides, &total, &tally);
        let ran = running.run(&mut control, &mut workers, 1, told).await?;
        let mut found = Found::new(self.plan, &sides, &counters, &ran);
        let gives = self.end(&mut control, &mut workers, &ran).await;
        drop(workers);
        for stream in &streams {
            found.figures.push(face.figures(stream).await);
        }
        let remote = self.exchange(control, gives, &ran, &found).await?;
        Ok(report::repetition(self.number, &ran, &found, remote.as_ref()))
    }
    async fn datagrams(
        &self,
        mut control: ClientControl<F>,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Repetition, RunError> {
        let (face, sides) = (self.face, sides(self.plan, Side::Sends));
        let local = Endpoint::new(Ipv4Addr::UNSPECIFIED, 0);
        let opening = async {
            let mut sockets = Vec::new();
            for _ in &sides {
                let socket = face.datagrams(local, Some(self.dial.server), &self.dial.options).await;
                let socket = socket.map_err(RunError::Stream)?;
                let opened = datagrams::open(face, &socket).await;
                opened.ok_or(RunError::Late("answer over UDP"))?.map_err(RunError::Stream)?;
                sockets.push(socket);
            }
            Ok(sockets)
        };
        let sockets = self.unless_stopped(&mut control, opening).await?;
        self.wait_for_start(&mut control).await?;
        let counters: Vec<Rc<Counter>> = sides.iter().map(|_| Rc::default()).collect();
        let (total, tally) = (self.total(), Tally::default());
        let job = self.job(&total);
        let mut workers: FuturesUnordered<Worker<'_>> = FuturesUnordered::new();
        for ((socket, side), counter) in sockets.iter().zip(&sides).zip(&counters) {
            let job = &job;
            workers.push(match side {
                Side::Sends => Box::pin(datagrams::send(face, socket, None, job, counter, true)),
                Side::Receives => Box::pin(datagrams::receive(face, socket, job, counter, true)),
            });
        }
        let running = self.running(&counters, &sides, &total, &tally);
        let ran = running.run(&mut control, &mut workers, 1, told).await?;
        let mut found = Found::new(self.plan, &sides, &counters, &ran);
        found.figures = vec![StreamFigures::default(); sides.len()];
        // A server that sends datagrams does not wait for a reader: the workers may end here.
        workers.clear();
        let gives = self.end(&mut control, &mut workers, &ran).await;
        let remote = self.exchange(control, gives, &ran, &found).await?;
        Ok(report::repetition(self.number, &ran, &found, remote.as_ref()))
    }
    async fn transactions(
        &self,
        mut control: ClientControl<F>,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Repetition, RunError> {
        let (face, plan, dial) = (self.face, self.plan, self.dial);
        let tally = Tally::default();
        tally.is_warming.set(plan.warm_up_ms > 0);
        let opening = async {
            let mut connections = Vec::new();
            if matches!(plan.kind, Kind::Request | Kind::Echo | Kind::Screen) {
                for number in 0..plan.connections {
                    let opened = dial.open(face, Role::Transactions, number).await;
                    connections.push(opened.map_err(RunError::Stream)?.0);
                }
            }
            let (background, sides) = self.background().await?;
            Ok((connections, background, sides))
        };
        let (mut connections, mut background, sides) = self.unless_stopped(&mut control, opening).await?;
        let counters: Vec<Rc<Counter>> = sides.iter().map(|_| Rc::default()).collect();
        let total = Total::new(None, None, false);
        let job = Job { rate: 0, ..self.job(&total) };
        let mut workers: FuturesUnordered<Worker<'_>> = FuturesUnordered::new();
        for ((stream, side), counter) in background.iter_mut().zip(&sides).zip(&counters) {
            let job = &job;
            workers.push(match side {
                Side::Sends => Box::pin(stream::send(face, stream, job, counter)),
                Side::Receives => Box::pin(stream::receive::<F>(stream, job, counter)),
            });
        }
        let mut ends = usize::from(plan.connections);
        match plan.kind {
            Kind::Connect => {
                for _ in 0..plan.connections {
                    workers.push(Box::pin(transactions::connect(face, dial, plan, &tally)));
                }
            }
            Kind::Connections => {
                let tally = &tally;
                let all = (0..plan.connections).map(|number| transactions::hold(face, dial, number, tally));
                let all: FuturesUnordered<_> = all.collect();
                // They are closed together, once the last one is open or has failed.
                workers.push(Box::pin(async move {
                    drop(all.collect::<Vec<_>>().await);
                    Ok(stream::Ended::Total)
                }));
                ends = 1;
            }
            _ => {
                for (number, connection) in connections.iter_mut().enumerate() {
                    let worker =
                        transactions::transact(face, connection, plan, number as u16, &tally, &job.buffers);
                    workers.push(Box::pin(worker));
                }
            }
        }
        let running = self.running(&counters, &sides, &total, &tally);
        let ran = running.run(&mut control, &mut workers, ends, told).await?;
        let mut found = Found::new(plan, &sides, &counters, &ran);
        found.take_tally(&tally, &ran);
        let gives = self.end(&mut control, &mut workers, &ran).await;
        drop(workers);
        for stream in &background {
            found.figures.push(face.figures(stream).await);
        }
        drop(connections);
        let remote = self.exchange(control, gives, &ran, &found).await?;
        Ok(report::repetition(self.number, &ran, &found, remote.as_ref()))
    }
    /// The streams of bulk data while transactions are timed.
    async fn background(&self) -> Result<(Vec<F::Stream>, Vec<Side>), RunError> {
        let [sends, receives] = self.plan.background_direction.senders();
        let mut streams = (Vec::new(), Vec::new());
        for (is_wanted, side, role) in
            [(sends, Side::Sends, Role::Sink), (receives, Side::Receives, Role::Source)]
        {
            for number in (0..self.plan.background_streams).filter(|_| is_wanted) {
                let opened = self.dial.open(self.face, role, number).await;
                streams.0.push(opened.map_err(RunError::Stream)?.0);
                streams.1.push(side);
            }
        }
        Ok(streams)
    }
    fn running<'b>(
        &'b self,
        counters: &'b [Rc<Counter>],
        sides: &'b [Side],
        total: &'b Total,
        tally: &'b Tally,
    ) -> Running<'b, F> {
        Running { face: self.face, plan: self.plan, stop: self.stop, counters, sides, total, tally }
    }
    async fn wait_for_start(&self, control: &mut ClientControl<F>) -> Result<(), RunError> {
        loop {
            let event = tokio::select! {
                biased;
                () = self.stop.stopped() => return Err(self.terminate(control).await),
                event = control.answer() => event?,
            };
            match event {
                ClientEvent::Start => {}
                ClientEvent::Run => return Ok(()),
                _ => return Err(RunError::Closed),
            }
        }
    }
    /// What `opening` gives, unless the user stops the test before.
    async fn unless_stopped<T>(
        &self,
        control: &mut ClientControl<F>,
        opening: impl Future<Output = Result<T, RunError>>,
    ) -> Result<T, RunError> {
        tokio::select! {
            biased;
            () = self.stop.stopped() => Err(self.terminate(control).await),
            opened = opening => opened,
        }
    }
    /// Tells the server that the user has stopped the test, before anything was measured.
    async fn terminate(&self, control: &mut ClientControl<F>) -> RunError {
        let bytes = control.machine.terminate();
        let _ = within(self.face, STOPPED_WITHIN, control.send(&bytes)).await;
        RunError::Stopped
    }
    /// What `future` gives. Once the user has stopped the test, the other end has [`STOPPED_WITHIN`] since then, all in all.
    async fn patiently<T>(
        &self,
        ran: &Ran,
        future: impl Future<Output = Result<T, RunError>>,
    ) -> Result<T, RunError> {
        if !ran.is_aborted {
            return future.await;
        }
        let left = (ran.ended + STOPPED_WITHIN).since(self.face.now());
        within(self.face, left, future).await.unwrap_or(Err(RunError::Stopped))
    }
    /// Says the end. A client that receives reads until the server has taken the end: a server that sends may not read
    /// while its socket is full.
    async fn end(
        &self,
        control: &mut ClientControl<F>,
        workers: &mut FuturesUnordered<Worker<'_>>,
        ran: &Ran,
    ) -> Result<(), RunError> {
        if self.plan.direction == Direction::Send && self.plan.background_direction == Direction::Send {
            workers.clear();
        }
        let end = control.machine.end();
        let work = self.patiently(ran, async {
            control.send(&end).await?;
            match control.answer().await? {
                ClientEvent::GiveResults => Ok(()),
                _ => Err(RunError::Closed),
            }
        });
        tokio::pin!(work);
        let result = loop {
            tokio::select! {
                biased;
                result = &mut work => break result,
                Some(_) = workers.next(), if !workers.is_empty() => {}
            }
        };
        result.map_err(|why| if ran.is_aborted { RunError::Stopped } else { why })
    }
    /// Exchanges results; none of the server's where the user stopped the test and the server did not answer.
    async fn exchange(
        &self,
        mut control: ClientControl<F>,
        gives: Result<(), RunError>,
        ran: &Ran,
        found: &Found,
    ) -> Result<Option<Results>, RunError> {
        let exchange = async {
            gives?;
            let own = control.machine.results(&found.results());
            control.send(&own).await?;
            match control.answer().await? {
                ClientEvent::Results(results) => Ok(results),
                _ => Err(RunError::Closed),
            }
        };
        let results = match self.patiently(ran, exchange).await {
            Err(_) if ran.is_aborted => return Ok(None),
            results => results?,
        };
        // The results are here; whether the server also says its last word changes nothing.
        let farewell = async {
            let _ = control.answer().await;
            control.close().await;
            Ok(())
        };
        let _ = self.patiently(ran, farewell).await;
        Ok(Some(results))
    }
}
