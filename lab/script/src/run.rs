//! A script played against one side, line by line.

use crate::drive::{self, Driver, What};
use crate::language::{Assertion, Expect, Line, Must, Script, SocketCall, Step, When};
use crate::matching;
use crate::packet::{self, Ends};
use crate::side::{Came, Figure, Side};
use inhost_base::{Duration, Instant};

/// Why a script failed.
#[derive(Clone, Debug)]
pub struct Failed {
    /// The line, as `file:line`.
    pub place: String,
    /// The line as it was written.
    pub line: String,
    /// The expected and the actual packet.
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
        driver: Driver::new(side, Ends::new(script.is_ipv6)),
        clock: Instant::ZERO,
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
    driver: Driver<'a>,
    /// When the latest line happened.
    clock: Instant,
    lateness: Duration,
}

impl Player<'_> {
    fn failed(&self, line: &Line, reason: String) -> Failed {
        Failed {
            place: line.place.to_string(),
            line: line.text.clone(),
            reason,
            trace: self.driver.trace.lines().to_vec(),
            lateness: self.lateness,
        }
    }
    fn line(&mut self, line: &Line) -> Result<(), String> {
        match &line.step {
            Step::Skip => return self.skip(line.when),
            step if step.is_out() => return self.expect(step, line.when),
            _ => {}
        }
        let at = self.clock + delay_of(line.when);
        // A figure can be looked at while something waits to be expected.
        let looks_only = line.when == When::AtOnce && matches!(line.step, Step::Assert(_));
        if line.when != When::InOneBurst && !looks_only {
            self.quiet_until(at)?;
        }
        self.clock = at.max(self.driver.side.now());
        self.lateness = self.lateness.max(self.clock.since(at));
        match &line.step {
            Step::In(segment) => self.driver.send(segment),
            Step::InIcmp(icmp) => match self.driver.send_icmp(icmp)? {
                true => Ok(()),
                false => Err("the host has not sent so many datagrams".to_owned()),
            },
            Step::InDatagram(datagram) => self.driver.send_datagram(datagram),
            Step::SocketCall(call) => check(call, &self.driver.call(call)?),
            Step::Assert(assertion) => self.assert(assertion),
            _ => Ok(()),
        }
    }

    /// The host sends nothing until `at`.
    fn quiet_until(&mut self, at: Instant) -> Result<(), String> {
        match self.driver.next_arrived(at)? {
            None => Ok(()),
            Some(arrived) => Err(format!("nothing more was to be sent, but there came `{}`", arrived.text)),
        }
    }
    fn skip(&mut self, when: When) -> Result<(), String> {
        let until = self.clock + delay_of(when);
        while self.driver.next_arrived(until)?.is_some() {}
        self.clock = until.max(self.driver.side.now());
        Ok(())
    }
    fn expect(&mut self, expected: &Step, when: When) -> Result<(), String> {
        let (least, most, off) = self.bounds(when);
        let Some(arrived) = self.driver.next_arrived(self.clock + most + off)? else {
            return Err(format!("nothing came by {:?}", self.clock + most + off));
        };
        let (at, text) = (arrived.at, &arrived.text);
        let host = packet::read(&arrived.packet, self.driver.ends());
        let wrong = match (expected, &arrived.what, host) {
            (Step::Out(expected), What::Segment(seen), Some(host)) => {
                matching::differences(expected, &host, seen)
            }
            (Step::OutDatagram(expected), What::Datagram(seen), _) => matching::datagram(expected, seen),
            (Step::OutFragment(expected), What::Fragment(seen), _) => matching::fragment(expected, seen),
            (Step::OutIcmp(expected), What::IcmpError(seen), _) => matching::icmp_error(expected, seen),
            _ => vec!["another kind of packet expected".to_owned()],
        };
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
                (Duration::ZERO, Duration::ZERO, self.driver.side.slack(Duration::ZERO))
            }
            When::After { delay, tolerance } => {
                let slack = self.driver.side.slack(delay);
                (delay, delay, tolerance.map_or(slack, |tolerance| tolerance.max(slack)))
            }
            When::Between(least, most) => (least, most, self.driver.side.slack(most)),
        }
    }

    fn assert(&mut self, assertion: &Assertion) -> Result<(), String> {
        let Assertion { on, ready, field, must } = assertion;
        let figure = if *ready {
            self.driver.side.is_ready(on, field)?.map(Figure::from)
        } else {
            self.driver.side.figure(on, field)?
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

fn delay_of(when: When) -> Duration {
    match when {
        When::AtOnce | When::InOneBurst => Duration::ZERO,
        When::After { delay, .. } => delay,
        When::Between(_, most) => most,
    }
}

fn check(call: &SocketCall, came: &Came) -> Result<(), String> {
    let as_expected = match (&call.expect, came) {
        (Expect::Done, Came::Done) => true,
        (Expect::Done, Came::Taken(bytes)) => *bytes == drive::given_bytes(call),
        (Expect::Bytes(expected), Came::Taken(bytes)) => expected == bytes,
        (Expect::Bytes(expected), Came::Read(bytes)) => *expected == bytes.len(),
        (Expect::Bytes(expected), Came::Received { bytes, whole, .. }) => {
            (*expected, *expected) == (bytes.len(), *whole)
        }
        (Expect::Cut(expected, of), Came::Received { bytes, whole, .. }) => {
            (*expected, *of) == (bytes.len(), *whole)
        }
        (Expect::Any, Came::Done | Came::Taken(_) | Came::Read(_) | Came::Received { .. }) => true,
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
        Expect::Cut(bytes, whole) => format!("{bytes} of {whole} bytes"),
        Expect::Any => "any number of bytes".to_owned(),
        Expect::End => "end".to_owned(),
        Expect::Fails(failure) => failure.text().to_owned(),
    };
    Err(format!("{expected} expected, {} came of it", drive::came_text(came)))
}
fn figure_text(figure: &Figure) -> String {
    match figure {
        Figure::Word(word) => word.clone(),
        Figure::Number(number) => format!("{number}"),
    }
}
