//! The two hosts and what lies between them, stepped.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint, Instant};
use inhost_event::{Event as StackEvent, Mask, RetransmittedWhy, Sink};
use inhost_explain::capture::{Frame as CapturedFrame, LinkType};
use inhost_peep::Flows;
use inhost_peep::decode::decode;
use inhost_sim::{Network, Seen, Tamper, Watcher, address, interface};
use inhost_stack::{ConnectOptions, ListenOptions, SocketId, SocketKind, StackConfig};
use serde_json::{Value, json};

use crate::application::Application;
use crate::changes::changes;
use crate::command::{Amount, End};
use crate::report::{About, Change, EndState, Event, Figures, Frame, Step, Timer, Why};
use crate::settings::Settings;
use crate::show;
use crate::words::{moment, time, wrapped};

/// The port at which the server listens, and the client's first.
const SERVER_PORT: u16 = 7;
const FIRST_CLIENT_PORT: u16 = 1025;
/// Bytes of the largest packet on the link.
const MTU_BYTES: u16 = 1500;
/// Rounds in a row that nobody would notice, before a step is told all the same.
const SILENT_ROUNDS: usize = 1000;
/// Frames that `trace` remembers.
const TRACED: usize = 10_000;
/// The seed of everything that is drawn by chance.
const SEED: u64 = 1;

/// Something that happened in a round, in its order.
enum Happened {
    Sent(Vec<u8>),
    Received(Vec<u8>, bool),
    Event(End, StackEvent),
}

type Log = Rc<RefCell<Vec<Happened>>>;

struct Frames(Log);

impl Watcher for Frames {
    fn sent(&mut self, _: usize, frame: &Seen<'_>) {
        self.0.borrow_mut().push(Happened::Sent(frame.bytes.to_vec()));
    }
    fn delivered(&mut self, _: usize, frame: &Seen<'_>) {
        self.0.borrow_mut().push(Happened::Received(frame.bytes.to_vec(), frame.is_intact));
    }
}

struct Events(Log, End);

impl Sink for Events {
    fn mask(&self) -> Mask {
        Mask::CONNECTION.union(Mask::RECOVERY).union(Mask::DROP)
    }
    fn record(&mut self, _: Instant, event: StackEvent) {
        self.0.borrow_mut().push(Happened::Event(self.1, event));
    }
}

/// A connection of one end, as it was looked at last.
struct Looked {
    socket: Option<SocketId>,
    state: Value,
}

/// The two hosts, their applications, and the frames between them.
pub struct World {
    network: Network,
    link: usize,
    log: Log,
    flows: Flows,
    settings: Settings,
    applications: [Option<Application>; 2],
    /// Which call of the session it is, from 1; 0 before the first.
    calls: u16,
    steps: u64,
    /// The session's beginning on the network's clock.
    began: Instant,
    looked: [Looked; 2],
    trace: VecDeque<String>,
    violations: usize,
}

impl World {
    /// Two hosts that have done nothing.
    ///
    /// # Errors
    /// A sentence, when the hosts cannot be set up.
    pub fn new() -> Result<World, String> {
        let settings = Settings::default();
        let log = Log::default();
        let mut network = Network::new(Instant::ZERO, u64::MAX);
        for end in End::BOTH {
            let host = network.add_host(StackConfig::default(), SEED + end.number() as u64);
            network.host(host).set_sink(Box::new(Events(log.clone(), end)));
        }
        let ends = End::BOTH.map(|end| (end.number(), interface(end.number(), false, MTU_BYTES)));
        let joined = network.join(ends, settings.link.clone(), SEED);
        let (link, _) = joined.map_err(|why| format!("the hosts cannot be joined: {why}"))?;
        network.watch(Frames(log.clone()));
        let looked = || Looked { socket: None, state: Value::Null };
        let mut world = World {
            network,
            link,
            log,
            flows: Flows::default(),
            settings,
            applications: [None, None],
            calls: 0,
            steps: 0,
            began: Instant::ZERO,
            looked: [looked(), looked()],
            trace: VecDeque::new(),
            violations: 0,
        };
        // What hosts say when they start, such as group reports, is not part of the session.
        while world.network.next_step().is_some_and(|at| at < Instant::ZERO + Duration::from_secs(30)) {
            world.network.step_once();
        }
        world.log.borrow_mut().clear();
        world.began = world.network.now();
        Ok(world)
    }
    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }
    /// Time of the session.
    pub fn now_ns(&self) -> u64 {
        self.since_beginning(self.network.now())
    }
    fn since_beginning(&self, at: Instant) -> u64 {
        at.since(self.began).as_nanos()
    }
    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
    /// Changes settings; those of the link count at once.
    pub fn set(&mut self, settings: Settings) {
        for (end, config) in settings.link.iter().enumerate() {
            if *config != self.settings.link[end] {
                self.network.set_link(self.link, end, config.clone());
            }
        }
        self.settings = settings;
    }

    /// The next thing that happens; none when nothing more will.
    pub fn step(&mut self) -> Option<Step> {
        for _ in 0..SILENT_ROUNDS {
            let host = self.network.step_once()?;
            let step = self.report(End::BOTH[host], false);
            let is_seen = step.received.is_some()
                || !step.sent.is_empty()
                || !step.events.is_empty()
                || !step.expired.is_empty()
                || !step.changes.is_empty();
            if is_seen {
                return Some(self.counted(step));
            }
        }
        None
    }
    /// When the next thing happens.
    pub fn next_ns(&mut self) -> Option<u64> {
        self.network.next_step().map(|at| self.since_beginning(at))
    }
    /// Lets the time pass to `at_ns`, before which nothing happens.
    pub fn pass_to(&mut self, at_ns: u64) {
        self.network.pass(Duration::from_nanos(at_ns.saturating_sub(self.now_ns())));
        self.log.borrow_mut().clear();
    }
    /// The client calls the server.
    ///
    /// # Errors
    /// A sentence, when there is a connection already.
    pub fn connect(&mut self) -> Result<Step, String> {
        if End::BOTH.iter().any(|end| !matches!(self.state(*end), "CLOSED" | "LISTEN" | "TIME-WAIT")) {
            return Err("there is a connection; end it with reset and step, or restart".to_owned());
        }
        self.applications = [None, None];
        self.calls += 1;
        let [client, server] = End::BOTH.map(|end| self.network.host(end.number()).clone());
        let [caller, called] = self.settings.tcp.clone();
        let remote = Endpoint::new(address(End::Server.number(), false), SERVER_PORT);
        // The last listener's task has been dropped, and is gone after a round.
        self.network.step_host(End::Server.number());
        let mut listening = ListenOptions::default();
        listening.tcp = Some(called);
        let listener =
            server.listen(remote, listening).map_err(|why| format!("the server cannot listen: {why}"))?;
        self.applications[End::Server.number()] = Some(Application::accept(&server, listener));
        self.network.step_host(End::Server.number());
        let mut calling = ConnectOptions::default();
        calling.tcp = Some(caller);
        calling.local.port = self.client_port();
        self.applications[End::Client.number()] = Some(Application::call(&client, remote, calling));
        Ok(self.called(End::Client))
    }
    /// An application writes.
    ///
    /// # Errors
    /// A sentence, when there is no connection.
    pub fn send(&mut self, end: End, bytes: u64) -> Result<Step, String> {
        self.application(end)?.write(bytes);
        Ok(self.called(end))
    }
    /// An application reads.
    ///
    /// # Errors
    /// As [`World::send`].
    pub fn read(&mut self, end: End, amount: Amount) -> Result<Step, String> {
        self.application(end)?.read(amount);
        Ok(self.called(end))
    }
    /// An application closes its direction.
    ///
    /// # Errors
    /// As [`World::send`].
    pub fn close(&mut self, end: End) -> Result<Step, String> {
        self.application(end)?.close();
        Ok(self.called(end))
    }
    /// An application aborts the connection, or gives the call up.
    ///
    /// # Errors
    /// As [`World::send`].
    pub fn reset(&mut self, end: End) -> Result<Step, String> {
        if !self.application(end)?.abort() {
            self.applications[end.number()] = None;
        }
        Ok(self.called(end))
    }
    fn application(&self, end: End) -> Result<&Application, String> {
        let application = self.applications[end.number()].as_ref();
        application.ok_or_else(|| format!("the {} has no connection; try: connect", end.text()))
    }
    /// Does something to a frame on its way, its number being that of [`World::queues`]; says what.
    ///
    /// # Errors
    /// A sentence, when there is none.
    pub fn tamper(&mut self, how: Tamper, number: usize) -> Result<String, String> {
        let words = self.on_their_way();
        let flying = self.network.flying();
        let Some(chosen) = flying.get(number.wrapping_sub(1)).map(|of| (of.link, of.end, of.index)) else {
            return Err(match flying.len() {
                0 => "no frame is on its way; step until one has left".to_owned(),
                count => format!("{count} frames are on their way, not {number}; queues lists them"),
            });
        };
        let (frame, _) = words.into_iter().nth(number.wrapping_sub(1)).unwrap_or_default();
        let (link, end, index) = chosen;
        if !self.network.tamper(link, end, index, how) {
            return Err("no frame of its direction follows it; try: delay 50ms".to_owned());
        }
        let what = match how {
            Tamper::Drop => "will not arrive".to_owned(),
            Tamper::Duplicate => "will arrive twice".to_owned(),
            Tamper::Delay(by) => format!("will arrive {} later", time(by.as_nanos())),
            Tamper::Reorder => "will arrive behind the next of its direction".to_owned(),
            Tamper::Corrupt => "will arrive with bits changed".to_owned(),
        };
        Ok(format!("{what}: {frame}"))
    }
    /// The frames on their way, by when they arrive: what each is, and when that is.
    fn on_their_way(&mut self) -> Vec<(String, String)> {
        let World { network, flows, began, .. } = self;
        let frame = |flying: &inhost_sim::Flying<'_>| {
            let from = End::BOTH[flying.end];
            let spoilt = if flying.is_intact { "" } else { ", changed" };
            let words = words_of(flying.bytes, flows);
            let arrives = format!("arrives at {}{spoilt}", moment(flying.at.since(*began).as_nanos()));
            (format!("{} > {}  {words}", from.text(), from.other().text()), arrives)
        };
        network.flying().iter().map(frame).collect()
    }
    /// The whole state of an end; null without a connection.
    pub fn detail(&self, end: End) -> Value {
        self.look(end).state
    }
    /// The state of an end, as RFC 9293 §3.3.2 names it.
    pub fn state(&self, end: End) -> &str {
        match self.looked[end.number()].state["state"].as_str() {
            Some(state) => state,
            None => self.without_connection(end),
        }
    }
    /// Whose connection it is, for `show`.
    pub fn title(&self, end: End) -> String {
        let ends = self.looked[end.number()].socket.and_then(|socket| {
            self.network.host(end.number()).with_stack(|stack, _| stack.endpoints(socket))
        });
        match ends {
            Some((local, Some(remote))) => format!("{} {local} > {remote}", end.text()),
            _ => end.text().to_owned(),
        }
    }
    /// The latest frames.
    pub fn trace(&self, count: usize) -> impl Iterator<Item = &str> {
        self.trace.iter().skip(self.trace.len().saturating_sub(count)).map(String::as_str)
    }
    /// Queues of both ends.
    pub fn queues(&mut self) -> (String, Value) {
        let mut text = String::new();
        for end in End::BOTH {
            let state = self.detail(end);
            let (send, receive) = (&state["send"], &state["receive"]);
            let waiting = self.network.waiting_frames(self.link, end.number());
            let items = match state.is_null() {
                true => vec!["no connection".to_owned()],
                false => vec![
                    format!("send queue {} bytes", send["queue_bytes"]),
                    format!("of which not sent {}", send["not_sent_bytes"]),
                    format!("receive queue {} bytes", receive["queue_bytes"]),
                    format!(
                        "out of order {} bytes in {} blocks",
                        receive["reassembly_bytes"], receive["reassembly_pieces"]
                    ),
                ],
            };
            let line = (waiting > 0).then(|| format!("{waiting} frames wait for the line"));
            text +=
                &wrapped(&format!("{}  ", end.text()), &items.into_iter().chain(line).collect::<Vec<_>>());
        }
        let flying = self.on_their_way().into_iter();
        let flying: Vec<String> = flying.map(|(frame, arrives)| format!("{frame}; {arrives}")).collect();
        text += if flying.is_empty() { "no frame is on its way\n" } else { "on their way\n" };
        for (index, frame) in flying.iter().enumerate() {
            text += &format!("{:>3}  {frame}\n", index + 1);
        }
        (text, json!({"frames": flying}))
    }
    /// Timers of both ends.
    pub fn timers(&self) -> String {
        let now_ns = self.network.now().as_nanos();
        let of = |end: End| {
            wrapped(&format!("{}  ", end.text()), &show::timers(&self.detail(end)["timers"], now_ns))
        };
        End::BOTH.map(of).concat()
    }
    /// What the applications of both ends wait for.
    pub fn tasks(&self) -> String {
        let of = |end: End| {
            let waits = self.network.host(end.number()).task_waits();
            let application = self.applications[end.number()].as_ref();
            let mut items =
                application.map_or_else(|| vec!["no application".to_owned()], Application::describe);
            let (mut reading, mut writing) = (0, 0);
            waits
                .sockets
                .iter()
                .for_each(|of| (reading, writing) = (reading + of.reading, writing + of.writing));
            items.push(format!("{reading} wait to read"));
            items.push(format!("{writing} wait to write"));
            items.push(format!("{} timers", waits.timers));
            wrapped(&format!("{}  ", end.text()), &items)
        };
        End::BOTH.map(of).concat()
    }
    /// Both ends in a line each.
    pub fn ends(&self) -> [EndState; 2] {
        End::BOTH.map(|end| self.end_state(end))
    }

    fn client_port(&self) -> u16 {
        FIRST_CLIENT_PORT + (self.calls - 1) % 10_000
    }
    /// A call was made on a host, which gets its round.
    fn called(&mut self, end: End) -> Step {
        self.network.step_host(end.number());
        let mut step = self.report(end, true);
        step.why = Why::Call;
        self.counted(step)
    }
    fn counted(&mut self, mut step: Step) -> Step {
        self.steps += 1;
        step.step = self.steps;
        let at = moment(step.at_ns);
        let lines =
            step.received.iter().map(|frame| format!("{at:>12}  in   {}  {}", step.host, frame.words));
        let lines = lines
            .chain(step.sent.iter().map(|frame| format!("{at:>12}  out  {}  {}", step.host, frame.words)));
        for line in lines {
            if self.trace.len() == TRACED {
                self.trace.pop_front();
            }
            self.trace.push_back(line);
        }
        step
    }
    /// What the round that was made did; its number is to be set.
    fn report(&mut self, end: End, is_call: bool) -> Step {
        let at_ns = self.now_ns();
        let (mut received, mut sent, mut events) = (None, Vec::new(), Vec::new());
        let before = [self.look(End::Client), self.look(End::Server)];
        let before = std::mem::replace(&mut self.looked, before);
        let happened = self.log.take();
        for one in happened {
            match one {
                Happened::Received(bytes, is_intact) => {
                    received = Some(Frame {
                        from: end.other().text().to_owned(),
                        words: words_of(&bytes, &mut self.flows),
                        bytes: bytes.len(),
                        is_intact,
                        arrives_ns: None,
                        waits: false,
                    });
                }
                Happened::Sent(bytes) => sent.push(self.sent(end, &bytes)),
                Happened::Event(whose, event) => events.extend(self.event(whose, &event)),
            }
        }
        for whose in End::BOTH {
            let said = self.applications[whose.number()].as_ref().map(Application::take_said);
            let host = whose.text().to_owned();
            events.extend(said.into_iter().flatten().map(|words| Event {
                host: host.clone(),
                about: About::Application,
                words: format!("the application: {words}"),
            }));
        }
        self.add_violations(end, &mut events);
        let expired = self.expired(&before[end.number()]);
        let changes =
            End::BOTH.into_iter().flat_map(|end| self.changes(end, &before[end.number()])).collect();
        let why = match () {
            () if is_call => Why::Call,
            () if received.is_some() => Why::Frame,
            () if !expired.is_empty() => Why::Timer,
            () => Why::Round,
        };
        Step {
            step: 0,
            at_ns,
            host: end.text().to_owned(),
            why,
            received,
            expired,
            sent,
            events,
            changes,
            timers: self.running(),
            frames_on_their_way: self.network.flying().len(),
            ends: self.ends(),
        }
    }
    fn sent(&mut self, end: End, bytes: &[u8]) -> Frame {
        let words = words_of(bytes, &mut self.flows);
        let flying = self.network.flying();
        let arrives =
            flying.iter().filter(|of| of.end == end.number() && of.bytes == bytes).map(|of| of.at).max();
        Frame {
            from: end.text().to_owned(),
            words,
            bytes: bytes.len(),
            is_intact: true,
            arrives_ns: arrives.map(|at| self.since_beginning(at)),
            waits: arrives.is_none() && self.network.waiting_frames(self.link, end.number()) > 0,
        }
    }
    fn event(&self, end: End, event: &StackEvent) -> Option<Event> {
        let (about, words) = match event {
            StackEvent::Retransmitted(of) => {
                let why = match of.why {
                    RetransmittedWhy::Timeout => "the retransmission timer expired",
                    RetransmittedWhy::Fast => "acknowledgments tell of a loss",
                    RetransmittedWhy::TailProbe => "a probe of the tail",
                    RetransmittedWhy::Probe => "a probe of the window",
                    RetransmittedWhy::Refused => "it was refused before",
                };
                let initial = self.looked[end.number()].state["send"]["initial"].as_u64().unwrap_or(0);
                let number = of.sequence.0.wrapping_sub(initial as u32);
                (
                    About::Retransmission,
                    format!("retransmits {} bytes from {number}: {why}", of.payload_bytes),
                )
            }
            StackEvent::FrameDropped(of) => (About::Drop, format!("drops what arrived: {}", of.why.text())),
            StackEvent::Ended(of) => {
                let why = of.error.map_or("both sides have closed".to_owned(), str::to_owned);
                (About::Connection, format!("the connection is over: {why}"))
            }
            _ => return None,
        };
        Some(Event { host: end.text().to_owned(), about, words })
    }
    fn add_violations(&mut self, end: End, events: &mut Vec<Event>) {
        let violations = self.network.checker().violations();
        for violation in violations.iter().skip(self.violations) {
            let words = format!("a rule is broken: {violation}");
            events.push(Event { host: end.text().to_owned(), about: About::Violation, words });
        }
        self.violations = violations.len();
    }
    /// Timers that had been due by now.
    fn expired(&self, before: &Looked) -> Vec<String> {
        let at_ns = self.network.now().as_nanos();
        let all = before.state["timers"].as_array().into_iter().flatten();
        let due = all.filter(|timer| timer["due_ns"].as_u64().is_some_and(|due_ns| due_ns <= at_ns));
        due.filter_map(|timer| timer["name"].as_str().map(str::to_owned)).collect()
    }
    fn changes(&self, end: End, before: &Looked) -> Vec<Change> {
        let after = &self.looked[end.number()];
        let host = end.text().to_owned();
        if before.socket == after.socket && !after.state.is_null() {
            let told = changes(&before.state, &after.state).into_iter();
            return told
                .map(|(field, from, to)| Change {
                    host: host.clone(),
                    field,
                    from: from.clone(),
                    to: to.clone(),
                })
                .collect();
        }
        // Of one that was not there before, or is gone, the state says it all.
        let name = |looked: &Looked| match looked.state["state"].as_str() {
            Some(state) => state.to_owned(),
            None => self.without_connection(end).to_owned(),
        };
        let (from, to) = (name(before), name(after));
        let change =
            Change { host, field: "state".to_owned(), from: from.clone().into(), to: to.clone().into() };
        (from != to).then_some(change).into_iter().collect()
    }
    fn running(&self) -> Vec<Timer> {
        let mut timers: Vec<Timer> = Vec::new();
        for end in End::BOTH {
            let all = self.looked[end.number()].state["timers"].as_array().into_iter().flatten();
            timers.extend(all.filter_map(|timer| {
                let (name, due_ns) = (timer["name"].as_str()?.to_owned(), timer["due_ns"].as_u64()?);
                let due_ns = self.since_beginning(Instant::from_nanos(due_ns));
                Some(Timer { host: end.text().to_owned(), name, due_ns })
            }));
        }
        timers.sort_by_key(|timer| timer.due_ns);
        timers
    }
    fn end_state(&self, end: End) -> EndState {
        let state = &self.looked[end.number()].state;
        let figure = |section: &str, field: &str| state[section][field].as_u64().unwrap_or(0);
        let figures = (!state.is_null()).then(|| Figures {
            send_unacknowledged: figure("send", "unacknowledged"),
            send_next: figure("send", "next"),
            send_window_bytes: figure("send", "window_bytes"),
            receive_next: figure("receive", "next"),
            receive_window_bytes: figure("receive", "window_bytes"),
            congestion_window_bytes: figure("congestion", "window_bytes"),
            in_flight_bytes: figure("send", "in_flight_bytes"),
            not_sent_bytes: figure("send", "not_sent_bytes"),
            unread_bytes: figure("receive", "queue_bytes"),
            recovery: state["recovery"]["state"].as_str().unwrap_or_default().to_owned(),
        });
        EndState { host: end.text().to_owned(), state: self.state(end).to_owned(), figures }
    }
    /// The state's name of an end without a connection.
    fn without_connection(&self, end: End) -> &'static str {
        let listens = self.network.host(end.number()).with_stack(|stack, _| {
            stack.instruments().socket_states().any(|(_, kind, _)| kind == SocketKind::Listener)
        });
        if listens { "LISTEN" } else { "CLOSED" }
    }
    /// The connection of this call at an end.
    fn look(&self, end: End) -> Looked {
        if self.calls == 0 {
            return Looked { socket: None, state: Value::Null };
        }
        // What the host's own clock showed in its latest round is past.
        let (port, now) = (self.client_port(), self.network.now());
        self.network.host(end.number()).with_stack(|stack, _| {
            let connections =
                stack.instruments().socket_states().filter(|(_, kind, _)| *kind == SocketKind::Connection);
            let meant = connections.map(|(socket, ..)| socket).find(|socket| {
                stack.endpoints(*socket).is_some_and(|(local, remote)| match end {
                    End::Client => local.port == port,
                    End::Server => remote.is_some_and(|remote| remote.port == port),
                })
            });
            let connection = meant.and_then(|socket| stack.instruments().connection(socket));
            let state = connection.map(|connection| connection.detail(now)).unwrap_or_default();
            Looked { socket: meant, state }
        })
    }
}

/// What a packet says above IP, with relative numbers.
fn words_of(bytes: &[u8], flows: &mut Flows) -> String {
    let frame = CapturedFrame {
        number: 0,
        at_ns: 0,
        interface: 0,
        link: LinkType::Ip,
        bytes,
        original_bytes: bytes.len() as u32,
        is_inbound: None,
        comment: None,
    };
    let decoded = decode(&frame, flows);
    let above = decoded.layers.iter().filter(|layer| !matches!(layer.name, "ipv4" | "ipv6"));
    let words: Vec<&str> = above.map(|layer| &*layer.words).filter(|words| !words.is_empty()).collect();
    if words.is_empty() { "a frame that is not read".to_owned() } else { words.join("  ") }
}
