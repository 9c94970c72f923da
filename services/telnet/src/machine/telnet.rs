//! The decoder of what the peer sends, and what the owner of a connection says.

use inhost_base::Instant;

use super::config::{Config, LineEnd};
use super::event::{Counters, Event, Violation};
use super::limits::{SUBNEGOTIATION_BYTES, TIMING_MARKS};
use super::negotiation::{Input, Phase, Verb};
use super::option_state::{CharsetState, LineMode};
use super::output::{Output, ReplyBudget};
use crate::codec::command::{CR, Command, DO, DONT, IAC, LF, NUL, SB, SE, WILL, WONT};
use crate::codec::option::{OPTION_COUNT, Side, TelnetOption};

/// One end of a Telnet connection.
///
/// The owner, for each piece that the connection delivers:
///
/// 1. calls [`advance`](Telnet::advance) with the time, so that the peer's budget of replies is refilled;
/// 2. if the connection announces urgent data, calls [`urgent`](Telnet::urgent) with the octets that lie
///    before and at the mark — before it hands over those octets; saying so again does no harm;
/// 3. calls [`receive`](Telnet::receive) until it gives `None`; every event is the owner's to act upon;
/// 4. sends what [`pending`](Telnet::pending) shows, the last octet urgent if it says so, and confirms with
///    [`sent`](Telnet::sent). While [`has_room`](Telnet::has_room) is false it takes no more input.
///
/// Nothing here is an error: what the peer does wrong is an event or a count.
#[derive(Debug)]
pub struct Telnet {
    pub(super) config: Config,
    pub(super) phases: [[Phase; OPTION_COUNT]; 2],
    pub(super) window: Option<(u16, u16)>,
    pub(super) terminal_type_next: usize,
    pub(super) line_mode: LineMode,
    pub(super) charset: CharsetState,
    decode: Decode,
    pub(super) body: Vec<u8>,
    body_overflowed: bool,
    synch: Synch,
    pub(super) output: Output,
    budget: ReplyBudget,
    violated: bool,
    timing_marks: u8,
    pub(super) counters: Counters,
}

/// Decoder state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Decode {
    Data,
    AfterReturn,
    Command,
    Negotiation(u8),
    Subnegotiation,
    Body(u8),
    BodyCommand(u8),
}

/// The Synch of RFC 854: while data is discarded, where the urgent mark lies; and up to where marks have
/// been dealt with, so that one is not taken for another.
#[derive(Debug, Default)]
struct Synch {
    active: bool,
    mark: u64,
    done: u64,
}

impl Telnet {
    /// A connection on which nothing has been said.
    pub fn new(config: Config) -> Telnet {
        Telnet {
            config,
            phases: [[Phase::No; OPTION_COUNT]; 2],
            window: None,
            terminal_type_next: 0,
            line_mode: LineMode::default(),
            charset: CharsetState::default(),
            decode: Decode::Data,
            body: Vec::new(),
            body_overflowed: false,
            synch: Synch::default(),
            output: Output::default(),
            budget: ReplyBudget::new(),
            violated: false,
            timing_marks: 0,
            counters: Counters::default(),
        }
    }

    /// Opens the negotiation that the configuration asks for.
    pub fn start(&mut self) {
        for option in self.config.offer.iter() {
            self.enable(Side::Local, option);
        }
        for option in self.config.request.iter() {
            self.enable(Side::Remote, option);
        }
    }

    /// Tells the time.
    pub fn advance(&mut self, now: Instant) {
        self.budget.refill(now);
    }

    /// The connection has urgent data: `ahead_bytes` are still to be received up to and with the last
    /// urgent octet. From here to the Data Mark, data is discarded and commands are obeyed.
    /// spec: RFC854 Synch
    pub fn urgent(&mut self, ahead_bytes: usize) {
        let mark = self.counters.received_bytes.saturating_add(ahead_bytes as u64);
        if ahead_bytes > 0 && mark > self.synch.done {
            self.synch.active = true;
            self.synch.mark = self.synch.mark.max(mark);
        }
    }
    /// Whether a Synch is discarding data. A driver reads on then even if nobody takes the data.
    pub fn is_synchronizing(&self) -> bool {
        self.synch.active
    }

    /// Takes octets from the front of `input` up to and with the next event. `None` when the input is used
    /// up, or the peer has been found to violate a limit.
    pub fn receive<'a>(&mut self, input: &mut &'a [u8]) -> Option<Event<'a>> {
        while !self.violated && !input.is_empty() {
            let event = match self.decode {
                Decode::Data => self.data(input),
                _ => self.octet(input),
            };
            if self.violated {
                return Some(Event::Violation(Violation::ReplyBudget));
            }
            if event.is_some() {
                return event;
            }
        }
        None
    }

    /// The common case: a run of data in one slice.
    fn data<'a>(&mut self, input: &mut &'a [u8]) -> Option<Event<'a>> {
        let is_raw = self.is_active(Side::Remote, TelnetOption::Binary) || self.has_foreign_ends();
        let end = match is_raw {
            true => input.iter().position(|&octet| octet == IAC),
            false => input.iter().position(|&octet| octet == IAC || octet == CR),
        };
        let (run, special) = match end {
            Some(end) => (input.get(..end)?, input.get(end).copied()),
            None => (*input, None),
        };
        match special {
            // A CR belongs to its run; what follows it is looked at next.
            Some(CR) => {
                self.decode = Decode::AfterReturn;
                let with_return = input.get(..run.len() + 1)?;
                self.consume(input, with_return.len());
                self.deliver(with_return)
            }
            Some(_) => {
                self.decode = Decode::Command;
                self.consume(input, run.len() + 1);
                self.deliver(run)
            }
            None => {
                self.consume(input, run.len());
                self.deliver(run)
            }
        }
    }

    fn deliver<'a>(&mut self, data: &'a [u8]) -> Option<Event<'a>> {
        if self.synch.active {
            self.counters.discarded_bytes += data.len() as u64;
            return None;
        }
        if self.charset.is_foreign() {
            let text = self.text_of(data);
            return (!text.is_empty()).then_some(Event::Text(text));
        }
        (!data.is_empty()).then_some(Event::Data(data))
    }

    fn consume(&mut self, input: &mut &[u8], count: usize) {
        *input = input.get(count..).unwrap_or_default();
        self.counters.received_bytes += count as u64;
    }

    /// One octet in any state but plain data.
    fn octet<'a>(&mut self, input: &mut &'a [u8]) -> Option<Event<'a>> {
        let (one, _) = input.split_at_checked(1)?;
        let &octet = one.first()?;
        if self.decode == Decode::AfterReturn {
            return self.after_return(input, octet);
        }
        self.consume(input, 1);
        match self.decode {
            Decode::Data | Decode::AfterReturn => None,
            Decode::Command => self.command(one, octet),
            Decode::Negotiation(verb) => {
                self.decode = Decode::Data;
                self.negotiate(verb, octet)
            }
            Decode::Subnegotiation => {
                self.body.clear();
                self.body_overflowed = false;
                // IAC cannot name an option here (RFC 861 is not spoken); the subnegotiation is void.
                self.decode = if octet == IAC { Decode::Command } else { Decode::Body(octet) };
                None
            }
            Decode::Body(code) => {
                if octet == IAC {
                    self.decode = Decode::BodyCommand(code);
                } else {
                    self.push_body(octet);
                }
                None
            }
            Decode::BodyCommand(code) => self.body_command(code, octet),
        }
    }

    /// What follows a CR: NUL only completes it, and so does LF where CR LF is the return key.
    /// spec: RFC854 NVT
    /// spec: RFC1123 3.3.1
    fn after_return<'a>(&mut self, input: &mut &'a [u8], octet: u8) -> Option<Event<'a>> {
        self.decode = Decode::Data;
        if octet == NUL || (octet == LF && self.config.line_end == LineEnd::Return) {
            self.consume(input, 1);
        }
        None
    }

    fn command<'a>(&mut self, one: &'a [u8], octet: u8) -> Option<Event<'a>> {
        self.decode = Decode::Data;
        match octet {
            IAC => self.deliver(one),
            WILL | WONT | DO | DONT => {
                self.decode = Decode::Negotiation(octet);
                None
            }
            SB => {
                self.decode = Decode::Subnegotiation;
                None
            }
            _ => match Command::from_octet(octet) {
                Some(Command::DataMark) => self.data_mark(),
                Some(command) => Some(Event::Command(command)),
                None => {
                    self.counters.unknown_commands += 1;
                    None
                }
            },
        }
    }

    /// Ends the Synch, unless the urgent mark lies beyond: then another Data Mark follows. Ends of
    /// connections disagree by one octet about where the mark is (RFC 1122 §4.2.2.4), hence the `+ 1`.
    /// spec: RFC854 Synch
    fn data_mark(&mut self) -> Option<Event<'static>> {
        if !self.synch.active || self.synch.mark > self.counters.received_bytes + 1 {
            return None;
        }
        self.synch.active = false;
        self.synch.done = self.synch.mark;
        self.counters.synchs += 1;
        Some(Event::Synchronized)
    }

    fn push_body(&mut self, octet: u8) {
        if self.body.len() < SUBNEGOTIATION_BYTES {
            self.body.push(octet);
        } else {
            self.body_overflowed = true;
        }
    }

    fn body_command<'a>(&mut self, code: u8, octet: u8) -> Option<Event<'a>> {
        match octet {
            IAC => {
                self.decode = Decode::Body(code);
                self.push_body(IAC);
                None
            }
            SE => {
                self.decode = Decode::Data;
                if self.body_overflowed {
                    self.counters.bad_subnegotiations += 1;
                    return None;
                }
                let body = core::mem::take(&mut self.body);
                let event = self.subnegotiated(code, &body);
                self.body = body;
                event
            }
            // Another command breaks the subnegotiation off, and counts.
            _ => {
                self.counters.bad_subnegotiations += 1;
                self.command(&[], octet)
            }
        }
    }

    /// spec: RFC854 negotiation
    /// spec: RFC1143 7
    fn negotiate<'a>(&mut self, verb: u8, code: u8) -> Option<Event<'a>> {
        let (side, positive) = match verb {
            WILL => (Side::Remote, true),
            WONT => (Side::Remote, false),
            DO => (Side::Local, true),
            _ => (Side::Local, false),
        };
        let Some(option) = TelnetOption::from_code(code) else {
            // Never in force, so a refusal needs no memory, and a negative no answer.
            if positive {
                self.reply(&[IAC, if side == Side::Remote { DONT } else { WONT }, code]);
            }
            return None;
        };
        if option == TelnetOption::TimingMark {
            return self.timing_mark(side, positive);
        }
        let accepted = match side {
            Side::Local => self.config.accept_local,
            Side::Remote => self.config.accept_remote,
        };
        let input = match (positive, accepted.contains(option)) {
            (true, true) => Input::PositiveAgreed,
            (true, false) => Input::PositiveRefused,
            (false, _) => Input::Negative,
        };
        let was_asked = self.phase(side, option) == Phase::WantYes;
        let (message, changed) = self.step(side, option, input);
        if let Some(message) = message {
            self.reply(&message);
        }
        if let Some(active) = changed {
            self.option_changed(side, option, active);
            return Some(Event::OptionChanged { side, option, active });
        }
        // Ours was the wish, and it came to nothing.
        let is_refused = was_asked && !positive && self.phase(side, option) == Phase::No;
        is_refused.then_some(Event::OptionRefused { side, option })
    }

    /// Applies `input` to one side of `option`: what to send, and whether it came into or out of force.
    fn step(&mut self, side: Side, option: TelnetOption, input: Input) -> (Option<[u8; 3]>, Option<bool>) {
        let Some(phase) = self.phases.get_mut(side as usize).and_then(|row| row.get_mut(option.index()))
        else {
            return (None, None);
        };
        let before = phase.is_active(side);
        let transition = phase.on(input);
        *phase = transition.next;
        let after = phase.is_active(side);
        let message = transition.send.map(|verb| {
            let verb = match (side, verb) {
                (Side::Local, Verb::Positive) => WILL,
                (Side::Local, Verb::Negative) => WONT,
                (Side::Remote, Verb::Positive) => DO,
                (Side::Remote, Verb::Negative) => DONT,
            };
            [IAC, verb, option.code()]
        });
        (message, (before != after).then_some(after))
    }

    /// TIMING-MARK is not a state: each DO is answered, in its place in the stream, and not remembered.
    /// spec: RFC860
    fn timing_mark<'a>(&mut self, side: Side, positive: bool) -> Option<Event<'a>> {
        match side {
            Side::Local if positive => {
                self.reply(&[IAC, WILL, TelnetOption::TimingMark.code()]);
                None
            }
            Side::Local => None,
            Side::Remote => {
                self.timing_marks = self.timing_marks.checked_sub(1)?;
                Some(Event::TimingMark)
            }
        }
    }

    /// Appends what the peer's octets call for, if its budget allows.
    pub(super) fn reply(&mut self, bytes: &[u8]) {
        if self.budget.spend(bytes.len()) {
            self.output.extend(bytes);
        } else {
            self.violated = true;
        }
    }
    /// Draws on the peer's budget for something the owner says because the peer asked (the answer to AYT).
    /// False, and the connection is in violation, when it is used up.
    pub fn spend_reply(&mut self, bytes: usize) -> bool {
        let allowed = self.budget.spend(bytes);
        self.violated |= !allowed;
        allowed
    }

    /// Whether `option` is in force.
    pub fn is_active(&self, side: Side, option: TelnetOption) -> bool {
        self.phase(side, option).is_active(side)
    }
    /// State of one side of `option`.
    pub fn phase(&self, side: Side, option: TelnetOption) -> Phase {
        self.phases.get(side as usize).and_then(|row| row.get(option.index())).copied().unwrap_or_default()
    }
    /// Offers to perform an option, or asks the peer to. The answer comes as an event.
    pub fn enable(&mut self, side: Side, option: TelnetOption) {
        self.ask(side, option, Input::Enable);
    }
    /// Stops performing an option, or asks the peer to stop.
    pub fn disable(&mut self, side: Side, option: TelnetOption) {
        self.ask(side, option, Input::Disable);
    }
    fn ask(&mut self, side: Side, option: TelnetOption, input: Input) {
        if option == TelnetOption::TimingMark {
            return;
        }
        if let (Some(message), _) = self.step(side, option, input) {
            self.output.extend(&message);
        }
    }
    /// Agrees to `option` from now on if the peer asks or offers.
    pub fn accept(&mut self, side: Side, option: TelnetOption) {
        match side {
            Side::Local => self.config.accept_local = self.config.accept_local.with(option),
            Side::Remote => self.config.accept_remote = self.config.accept_remote.with(option),
        }
    }

    /// Sends data. IAC is doubled; outside BINARY a CR that no LF follows becomes CR NUL, also where it is
    /// the last octet (CR NUL LF says the same as CR LF). Where a [`charset`](Telnet::charset) is agreed on, data is UTF-8,
    /// and is sent in that.
    /// spec: RFC854 NVT
    /// spec: RFC856
    pub fn send(&mut self, mut data: &[u8]) {
        if let Some(charset) = self.foreign_charset() {
            return self.send_text(data, charset);
        }
        let binary = self.is_active(Side::Local, TelnetOption::Binary);
        while let Some(end) = data.iter().position(|&octet| octet == IAC || (!binary && octet == CR)) {
            let Some((run, rest)) = data.split_at_checked(end + 1) else { return };
            self.output.extend(run);
            match run.last() {
                Some(&IAC) => self.output.extend(&[IAC]),
                _ if rest.first() != Some(&LF) => self.output.extend(&[NUL]),
                _ => {}
            }
            data = rest;
        }
        self.output.extend(data);
    }
    /// Octets as they are, but for IAC.
    pub(super) fn send_octets(&mut self, data: &[u8]) {
        for run in data.split_inclusive(|&octet| octet == IAC) {
            self.output.extend(run);
            if run.last() == Some(&IAC) {
                self.output.extend(&[IAC]);
            }
        }
    }
    /// Sends a command.
    pub fn send_command(&mut self, command: Command) {
        self.output.extend(&[IAC, command.octet()]);
    }
    /// Sends a Synch: a Data Mark, with the stream urgent up to and with it.
    /// spec: RFC854 Synch
    pub fn send_synch(&mut self) {
        self.send_command(Command::DataMark);
        self.output.mark_urgent();
    }
    /// Ends a record, where END-OF-RECORD is in force; elsewhere nothing.
    /// spec: RFC885
    pub fn end_record(&mut self) {
        if self.is_active(Side::Local, TelnetOption::EndOfRecord) {
            self.send_command(Command::EndOfRecord);
        }
    }
    /// Asks for a TIMING-MARK. False when too many are unanswered.
    /// spec: RFC860
    pub fn send_timing_mark(&mut self) -> bool {
        if self.timing_marks == TIMING_MARKS {
            return false;
        }
        self.timing_marks += 1;
        self.output.extend(&[IAC, DO, TelnetOption::TimingMark.code()]);
        true
    }

    /// The next octets to send, and whether the last of them is to be sent as urgent.
    pub fn pending(&self) -> (&[u8], bool) {
        self.output.next()
    }
    /// `count` octets of [`pending`](Telnet::pending) have been sent.
    pub fn sent(&mut self, count: usize) {
        self.output.sent(count);
    }
    /// Octets that wait to be sent.
    pub fn pending_bytes(&self) -> usize {
        self.output.len()
    }
    /// Whether the owner may take more input and say more.
    pub fn has_room(&self) -> bool {
        self.output.len() < super::limits::OUTPUT_BYTES
    }
    /// The counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}
