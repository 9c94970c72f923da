//! A script played against one side, line by line.

use crate::flow::{Flow, Seen};
use crate::language::{Assertion, Call, CallKind, Expect, Icmp, Line, Must, Script, Segment, Step, When};
use crate::matching;
use crate::packet::{self, Ends};
use crate::side::{Came, Figure, PEER_PORTS, Side};
use crate::stream::{self, From};
use crate::trace::{self, Trace};
use inhost_base::{Duration, Instant};
use inhost_wire::{Ecn, tcp};
use std::collections::BTreeMap;

/// Why a script failed.
#[derive(Clone, Debug)]
pub struct Failed {
    /// The line, as `file:line`.
    pub place: String,
    /// The line as it was written.
    pub line: String,
    /// What was expected and what came instead.
    pub reason: String,
    /// The packets so far.
    pub trace: Vec<String>,
    /// How late the player itself was at most with what it sends in and calls: in real time a busy machine is late,
    /// and the script has not been played as it is written.
    pub lateness: Duration,
}

/// Plays `script` against `side`.
pub fn play(script: &Script, side: &mut dyn Side) -> Result<(), Failed> {
    let mut player = Player {
        side,
        ends: Ends::new(script.is_ipv6),
        flows: BTreeMap::new(),
        streams: BTreeMap::new(),
        clock: Instant::ZERO,
        trace: Trace::default(),
        lateness: Duration::ZERO,
    };
    for line in &script.lines {
        player.line(line).map_err(|reason| player.failed(line, reason))?;
    }
    let Some(last) = script.lines.last() else { return Ok(()) };
    player
        .quiet_until(player.clock)
        .map_err(|reason| player.failed(last, format!("after this line: {reason}")))
}

struct Player<'a> {
    side: &'a mut dyn Side,
    ends: Ends,
    flows: BTreeMap<u8, Flow>,
    /// For each socket, how much it has written and read.
    streams: BTreeMap<String, (u64, u64)>,
    /// When the latest line happened.
    clock: Instant,
    trace: Trace,
    lateness: Duration,
}

impl Player<'_> {
    fn failed(&self, line: &Line, reason: String) -> Failed {
        Failed {
            place: line.place.to_string(),
            line: line.text.clone(),
            reason,
            trace: self.trace.lines().to_vec(),
            lateness: self.lateness,
        }
    }
    fn line(&mut self, line: &Line) -> Result<(), String> {
        match &line.step {
            Step::Out(segment) => return self.expect(segment, line.when),
            Step::Skip => return self.skip(line.when),
            _ => {}
        }
        let at = self.clock + delay_of(line.when);
        // A figure can be looked at while something waits to be expected.
        let looks_only = line.when == When::AtOnce && matches!(line.step, Step::Assert(_));
        if line.when != When::InOneBurst && !looks_only {
            self.quiet_until(at)?;
        }
        self.clock = at.max(self.side.now());
        self.lateness = self.lateness.max(self.clock.since(at));
        match &line.step {
            Step::In(segment) => self.send(segment),
            Step::InIcmp(icmp) => self.send_icmp(icmp),
            Step::Call(call) => self.call(call),
            Step::Assert(assertion) => self.assert(assertion),
            Step::Out(_) | Step::Skip | Step::Wait => Ok(()),
        }
    }

    /// The host sends nothing until `at`.
    fn quiet_until(&mut self, at: Instant) -> Result<(), String> {
        match self.next_segment(at)? {
            None => Ok(()),
            Some(arrived) => Err(format!("nothing more was to be sent, but there came `{}`", arrived.text)),
        }
    }
    fn skip(&mut self, when: When) -> Result<(), String> {
        let until = self.clock + delay_of(when);
        while self.next_segment(until)?.is_some() {}
        self.clock = until.max(self.side.now());
        Ok(())
    }
    /// The host's next TCP segment that comes by `until`.
    fn next_segment(&mut self, until: Instant) -> Result<Option<Arrived>, String> {
        while let Some((at, packet)) = self.side.next_packet(until)? {
            let Some(host) = packet::read(&packet, self.ends) else { continue };
            let seen = self.flows.entry(host.peer).or_default().incoming(&host.segment);
            let text = trace::describe("out", host.peer, &host.segment, &seen);
            self.trace.add(at, &text);
            return Ok(Some(Arrived { at, seen, text, packet }));
        }
        Ok(None)
    }
    fn expect(&mut self, expected: &Segment, when: When) -> Result<(), String> {
        let (least, most, off) = self.bounds(when);
        let Some(arrived) = self.next_segment(self.clock + most + off)? else {
            return Err(format!("nothing came by {:?}", self.clock + most + off));
        };
        let Arrived { at, seen, text, packet } = arrived;
        let Some(host) = packet::read(&packet, self.ends) else { return Err("it is no segment".into()) };
        let wrong = matching::differences(expected, &host, &seen);
        if !wrong.is_empty() {
            return Err(format!("{}; there came `{text}`", wrong.join("; ")));
        }
        let took = at.since(self.clock);
        if took + off < least {
            return Err(format!("it came after {took}, which is too early; there came `{text}`"));
        }
        self.clock = at;
        Ok(())
    }
    /// Earliest and latest, and how far off both may be.
    fn bounds(&self, when: When) -> (Duration, Duration, Duration) {
        match when {
            When::AtOnce | When::InOneBurst => {
                (Duration::ZERO, Duration::ZERO, self.side.slack(Duration::ZERO))
            }
            When::After { delay, tolerance } => {
                let slack = self.side.slack(delay);
                (delay, delay, tolerance.map_or(slack, |tolerance| tolerance.max(slack)))
            }
            When::Between(least, most) => (least, most, self.side.slack(most)),
        }
    }

    fn send(&mut self, segment: &Segment) -> Result<(), String> {
        let flow = self.flows.entry(segment.peer).or_default();
        let (mut header, offset) = flow.outgoing(segment, self.side.now());
        header.source_port = PEER_PORTS + u16::from(segment.peer);
        let length = segment.data.map_or(0, |(from, to)| (to - from) as usize);
        let mut payload = stream::bytes(From::Peer, offset, length);
        if segment.forged {
            payload.iter_mut().for_each(|byte| *byte = !*byte);
        }
        let ecn = segment.ecn.unwrap_or(Ecn::NotCapable);
        let mut packet = packet::segment(self.ends, &header, &payload, &segment.options.raw, ecn);
        if segment.bad_checksum {
            packet::spoil_checksum(&mut packet);
        }
        let seen = seen_of(segment, &header.with_payload(&payload), offset);
        self.trace.add(
            self.side.now(),
            &trace::describe("in ", segment.peer, &header.with_payload(&payload), &seen),
        );
        self.side.inject(&packet)
    }
    fn send_icmp(&mut self, icmp: &Icmp) -> Result<(), String> {
        let flow = self.flows.entry(icmp.peer).or_default();
        let packet = packet::icmp(self.ends, icmp, flow.host_sequence(icmp.about), flow.host_port);
        self.trace.add(self.side.now(), &format!("in  icmp {:?} about {}", icmp.kind, icmp.about));
        self.side.inject(&packet)
    }

    fn call(&mut self, call: &Call) -> Result<(), String> {
        if let CallKind::Socket { .. } | CallKind::Connect { .. } = &call.what {
            self.begin_streams(call.names.as_ref().unwrap_or(&call.on).clone());
        }
        let (written, read) = self.streams.get(&call.on).copied().unwrap_or_default();
        let length = match call.what {
            CallKind::Write { bytes, .. } => bytes,
            CallKind::Connect { data, .. } => data.unwrap_or(0),
            _ => 0,
        };
        if let CallKind::Connect { peer, .. } = call.what {
            // A call after an earlier connection begins with new numbers on both sides.
            let flow = self.flows.entry(peer).or_default();
            *flow = flow.renewed();
        }
        let came = self.side.call(call, &stream::bytes(From::Host, written, length))?;
        self.trace.add(self.side.now(), &format!("call {} -> {}", call_name(&call.what), came_text(&came)));
        if let (Some(name), CallKind::Accept) = (&call.names, &call.what) {
            self.begin_streams(name.clone());
        }
        let name = call.names.as_ref().unwrap_or(&call.on);
        let streams = self.streams.entry(name.clone()).or_default();
        match &came {
            Came::Taken(bytes) => streams.0 += *bytes as u64,
            Came::Read(bytes) => streams.1 += bytes.len() as u64,
            _ => {}
        }
        if let Came::Read(bytes) = &came
            && let Some(at) = stream::first_wrong(From::Peer, read, bytes)
        {
            return Err(format!("the byte read at number {} is not the one that the peer sent", at + 1));
        }
        check(call, &came, length)
    }
    fn begin_streams(&mut self, name: String) {
        self.streams.insert(name, (0, 0));
    }

    fn assert(&mut self, assertion: &Assertion) -> Result<(), String> {
        let Assertion { on, ready, field, must } = assertion;
        let figure = if *ready {
            self.side.is_ready(on, field)?.map(Figure::from)
        } else {
            self.side.figure(on, field)?
        };
        // What one side does not know it cannot get wrong; the names are checked by the side that knows them all.
        let Some(figure) = figure else { return Ok(()) };
        let holds = match (must, &figure) {
            (Must::Word(word), Figure::Word(is)) => word == is,
            (Must::NotWord(word), Figure::Word(is)) => word != is,
            (Must::Between(least, most), Figure::Number(is)) => least <= is && is <= most,
            (Must::Not(number), Figure::Number(is)) => number != is,
            _ => return Err(format!("{field} is {figure:?}, which does not compare with {must:?}")),
        };
        if holds { Ok(()) } else { Err(format!("{field} is {}", figure_text(&figure))) }
    }
}

struct Arrived {
    at: Instant,
    seen: Seen,
    text: String,
    packet: Vec<u8>,
}

fn delay_of(when: When) -> Duration {
    match when {
        When::AtOnce | When::InOneBurst => Duration::ZERO,
        When::After { delay, .. } => delay,
        When::Between(_, most) => most,
    }
}

/// The peer's own segment in its script's numbers, for the trace.
fn seen_of(said: &Segment, segment: &tcp::Segment<'_>, offset: u64) -> Seen {
    Seen {
        sequence: said.sequence.unwrap_or(offset as i64 + i64::from(!segment.flags.syn())),
        acknowledgment: said.acknowledgment,
        flags: segment.flags,
        window_bytes: said.window.as_ref().map_or(u32::from(segment.window), |window| *window.start()),
        sack: match &said.options.sack {
            crate::language::Presence::Is(blocks) => blocks.clone(),
            _ => Vec::new(),
        },
    }
}

fn check(call: &Call, came: &Came, length: usize) -> Result<(), String> {
    let as_expected = match (&call.expect, came) {
        (Expect::Done, Came::Done) => true,
        (Expect::Done, Came::Taken(bytes)) => *bytes == length,
        (Expect::Bytes(expected), Came::Taken(bytes)) => expected == bytes,
        (Expect::Bytes(expected), Came::Read(bytes)) => *expected == bytes.len(),
        (Expect::Any, Came::Done | Came::Taken(_) | Came::Read(_)) => true,
        (Expect::End, Came::Read(bytes)) => bytes.is_empty(),
        (Expect::Fails(expected), Came::Failed(failure)) => expected == failure,
        _ => false,
    };
    if as_expected {
        return Ok(());
    }
    let expected = match &call.expect {
        Expect::Done => "ok".to_owned(),
        Expect::Bytes(bytes) => format!("{bytes} bytes"),
        Expect::Any => "any number of bytes".to_owned(),
        Expect::End => "end".to_owned(),
        Expect::Fails(failure) => failure.text().to_owned(),
    };
    Err(format!("{expected} expected, {} came of it", came_text(came)))
}
fn came_text(came: &Came) -> String {
    match came {
        Came::Done => "ok".into(),
        Came::Taken(bytes) => format!("{bytes} bytes taken"),
        Came::Read(bytes) if bytes.is_empty() => "end".into(),
        Came::Read(bytes) => format!("{} bytes read", bytes.len()),
        Came::Failed(failure) => failure.text().into(),
    }
}
fn call_name(what: &CallKind) -> String {
    let text = format!("{what:?}").to_lowercase();
    text.split([' ', '{']).next().unwrap_or_default().to_owned()
}
fn figure_text(figure: &Figure) -> String {
    match figure {
        Figure::Word(word) => word.clone(),
        Figure::Number(number) => format!("{number}"),
    }
}
