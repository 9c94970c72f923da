//! The machine of either end.

use std::collections::VecDeque;

use inhost_base::Instant;
use inhost_telnet::codec::{Command, DO, DONT, IAC, OptionSet, SB, SE, Side, TelnetOption, WILL, WONT};
use inhost_telnet::machine::{Config, Event as TelnetEvent, Phase, Telnet};

use super::config::{ClientConfig, ServerConfig};
use super::event::{Event, Protocol, Violation};
use super::tap::{Piece, Tap};
use crate::codec::{
    DataType, DeviceReason, Function, Functions, Header, Negotiation, RESPONSE_NEGATIVE, RESPONSE_NONE,
    RESPONSE_POSITIVE, Resource, Sense, TN3270E,
};

/// Octets of one record that are taken.
pub const RECORD_BYTES: usize = 64 << 10;
/// Octets of output that may wait before [`Tn3270::has_room`] is false.
pub const OUTPUT_BYTES: usize = 32 << 10;
/// Devices that a client may ask for, one after the other.
pub const DEVICE_ATTEMPTS: u8 = 8;
/// Proposals of functions that an end may make.
pub const FUNCTION_ROUNDS: u8 = 8;
/// The most of a sequence number (RFC 2355 §8.1.4).
const LAST_SEQUENCE: u16 = 32_767;
/// The options that TN3270 needs on both sides (RFC 1576 §3.1).
const NEEDED: [TelnetOption; 2] = [TelnetOption::EndOfRecord, TelnetOption::Binary];

#[derive(Clone, Debug)]
enum Role {
    Server(ServerConfig),
    Client(ClientConfig),
}

/// How far the negotiation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing is agreed on.
    New,
    /// The option TN3270E is in force; no device is agreed on.
    Device,
    /// A device is; functions are not.
    Functions,
    /// Server: TERMINAL-TYPE is asked for.
    TerminalType,
    /// Server: the needed options are asked for.
    Options,
    Ready(Protocol),
    Refused,
}

/// One end of a connection.
///
/// The owner calls [`start`](Tn3270::start) once; then for each piece that arrives [`advance`](Tn3270::advance) with the
/// time, and [`receive`](Tn3270::receive) until it gives `None`; it acts on each event, sends what
/// [`pending`](Tn3270::pending) shows, and confirms by [`sent`](Tn3270::sent). While [`has_room`](Tn3270::has_room) is false
/// it takes no more input. After [`Event::Violation`] nothing more comes.
#[derive(Debug)]
pub struct Tn3270 {
    role: Role,
    telnet: Telnet,
    tap: Tap,
    state: State,
    device_type: String,
    name: Option<String>,
    proposed: Functions,
    functions: Functions,
    attempts: u8,
    rounds: u8,
    record: Vec<u8>,
    sequence: u16,
    events: VecDeque<Event>,
    output: Vec<u8>,
    output_start: usize,
    is_violated: bool,
    bad_records: u64,
}

impl Tn3270 {
    /// The end that has the application.
    pub fn server(config: ServerConfig) -> Tn3270 {
        let mut telnet = Config::server();
        (telnet.offer, telnet.request) = (OptionSet::EMPTY, OptionSet::EMPTY);
        telnet.accept_local = OptionSet::of(&NEEDED).with(TelnetOption::TimingMark);
        telnet.accept_remote = OptionSet::of(&NEEDED).with(TelnetOption::TerminalType);
        Tn3270::new(Role::Server(config), telnet)
    }
    /// The end that has the terminal.
    pub fn client(config: ClientConfig) -> Tn3270 {
        let mut telnet = Config::client(&config.terminal_type);
        (telnet.offer, telnet.request) = (OptionSet::EMPTY, OptionSet::EMPTY);
        telnet.accept_local = OptionSet::of(&NEEDED)
            .with(TelnetOption::TerminalType)
            .with(TelnetOption::TimingMark)
            .with(TelnetOption::SuppressGoAhead);
        Tn3270::new(Role::Client(config), telnet)
    }
    fn new(role: Role, telnet: Config) -> Tn3270 {
        Tn3270 {
            role,
            telnet: Telnet::new(telnet),
            tap: Tap::default(),
            state: State::New,
            device_type: String::new(),
            name: None,
            proposed: Functions::NONE,
            functions: Functions::NONE,
            attempts: 0,
            rounds: 0,
            record: Vec::new(),
            sequence: 0,
            events: VecDeque::new(),
            output: Vec::new(),
            output_start: 0,
            is_violated: false,
            bad_records: 0,
        }
    }

    /// Server: begins the negotiation. A client waits for the server's.
    pub fn start(&mut self) {
        match &self.role {
            Role::Server(config) if config.has_tn3270e => self.output.extend_from_slice(&[IAC, DO, TN3270E]),
            Role::Server(_) => self.ask_terminal_type(),
            Role::Client(_) => {}
        }
    }
    /// Tells the time, by which the peer earns replies.
    pub fn advance(&mut self, now: Instant) {
        self.telnet.advance(now);
    }

    /// Takes octets from the front of `input` up to the next event. `None` when they are used up.
    pub fn receive(&mut self, input: &mut &[u8]) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if self.is_violated {
                return None;
            }
            match self.tap.next(input)? {
                Piece::Data(data) => self.data(data),
                Piece::EndOfRecord => self.end_of_record(),
                Piece::Negotiate(verb) => self.negotiate(verb),
                Piece::Subnegotiation(body) => self.subnegotiated(&body),
                Piece::Telnet((octets, count)) => self.telnet(octets.get(..count).unwrap_or_default()),
            }
        }
    }

    fn violate(&mut self, violation: Violation) {
        self.is_violated = true;
        self.events.push_back(Event::Violation(violation));
    }

    /// Whether data is collected to records.
    fn has_records(&self) -> bool {
        match self.state {
            State::Device | State::Functions => true,
            State::Ready(_) => true,
            _ => self.telnet.is_active(Side::Remote, TelnetOption::EndOfRecord),
        }
    }

    fn data(&mut self, data: &[u8]) {
        if !self.has_records() {
            self.events.push_back(Event::Nvt(data.to_vec()));
        } else if self.record.len() + data.len() > RECORD_BYTES {
            self.violate(Violation::Record);
        } else {
            self.record.extend_from_slice(data);
        }
    }

    fn end_of_record(&mut self) {
        let record = core::mem::take(&mut self.record);
        match self.state {
            State::Ready(Protocol::Tn3270) => {
                self.events
                    .push_back(Event::Record { header: Header::new(DataType::Data3270), data: record });
            }
            State::Ready(Protocol::Tn3270e) => match Header::parse(&record) {
                Some((header, data)) if header.data_type == DataType::Response => {
                    let outcome = match header.response {
                        RESPONSE_NEGATIVE => Err(Sense::from_octet(data.first().copied().unwrap_or(2))),
                        _ => Ok(()),
                    };
                    self.events.push_back(Event::Response { sequence: header.sequence, outcome });
                }
                Some((header, data)) => self.events.push_back(Event::Record { header, data: data.to_vec() }),
                None => self.bad_records += 1,
            },
            _ => self.bad_records += 1,
        }
    }

    /// Octets for Telnet, and what comes of them.
    fn telnet(&mut self, mut octets: &[u8]) {
        let input = &mut octets;
        let mut events = Vec::new();
        while let Some(event) = self.telnet.receive(input) {
            match event {
                TelnetEvent::Command(Command::InterruptProcess | Command::Break) => {
                    events.push(Event::Attention);
                }
                TelnetEvent::Command(Command::AbortOutput) if self.functions.contains(Function::SysReq) => {
                    events.push(Event::SysReq);
                }
                TelnetEvent::Command(Command::AreYouThere) if self.telnet.spend_reply(2) => {
                    self.telnet.send_command(Command::NoOperation);
                }
                TelnetEvent::TerminalType(name) if self.state == State::TerminalType => {
                    self.device_type = name.to_ascii_uppercase();
                    self.state = State::Options;
                }
                TelnetEvent::Violation(_) => self.is_violated = true,
                _ => {}
            }
        }
        self.events.extend(events);
        if self.is_violated {
            self.violate(Violation::Negotiation);
            return;
        }
        self.go_on();
        self.collect();
    }

    /// The next step of TN3270, after options have changed.
    fn go_on(&mut self) {
        let phases = |telnet: &Telnet| {
            [Side::Local, Side::Remote].map(|side| NEEDED.map(|option| telnet.phase(side, option)))
        };
        match self.state {
            State::TerminalType
                if self.telnet.phase(Side::Remote, TelnetOption::TerminalType) == Phase::No =>
            {
                self.refuse();
            }
            State::Options => {
                if !self.device_type.starts_with("IBM-") {
                    self.refuse();
                    return;
                }
                let mut asked = false;
                for side in [Side::Local, Side::Remote] {
                    for option in NEEDED {
                        if self.rounds == 0 && self.telnet.phase(side, option) == Phase::No {
                            self.telnet.enable(side, option);
                            asked = true;
                        }
                    }
                }
                self.rounds = 1;
                if !asked && phases(&self.telnet).as_flattened().contains(&Phase::No) {
                    self.refuse();
                } else {
                    self.check_ready();
                }
            }
            State::New => self.check_ready(),
            _ => {}
        }
    }

    fn check_ready(&mut self) {
        let is_client = matches!(self.role, Role::Client(_));
        let is_active = [Side::Local, Side::Remote]
            .into_iter()
            .all(|side| NEEDED.iter().all(|&option| self.telnet.is_active(side, option)));
        if is_active && (self.state == State::Options || (is_client && self.state == State::New)) {
            self.ready(Protocol::Tn3270);
        }
    }

    fn ready(&mut self, protocol: Protocol) {
        self.state = State::Ready(protocol);
        self.events.push_back(Event::Ready(protocol));
    }
    fn refuse(&mut self) {
        self.state = State::Refused;
        self.events.push_back(Event::NotA3270(self.device_type.clone()));
    }
    fn ask_terminal_type(&mut self) {
        self.state = State::TerminalType;
        self.telnet.enable(Side::Remote, TelnetOption::TerminalType);
        self.collect();
    }
    /// Takes over what Telnet wants to send.
    fn collect(&mut self) {
        while self.telnet.pending_bytes() > 0 {
            let (octets, _) = self.telnet.pending();
            let count = octets.len();
            self.output.extend_from_slice(octets);
            self.telnet.sent(count);
        }
    }
    /// Sends something that the peer's negotiation asks for, if its budget allows.
    fn reply(&mut self, octets: &[u8]) {
        if self.telnet.spend_reply(octets.len()) {
            self.output.extend_from_slice(octets);
        } else {
            self.violate(Violation::Negotiation);
        }
    }
    fn subnegotiate(&mut self, negotiation: &Negotiation) {
        let mut octets = vec![IAC, SB, TN3270E];
        push_escaped(&mut octets, &negotiation.body());
        octets.extend_from_slice(&[IAC, SE]);
        self.reply(&octets);
    }

    /// WILL, WONT, DO or DONT of TN3270E.
    fn negotiate(&mut self, verb: u8) {
        let in_force = matches!(self.state, State::Device | State::Functions)
            || self.state == State::Ready(Protocol::Tn3270e);
        match (&self.role, verb) {
            (Role::Server(config), WILL) if config.has_tn3270e && self.state == State::New => {
                self.state = State::Device;
                self.subnegotiate(&Negotiation::SendDeviceType);
            }
            (Role::Server(_), WONT) if self.state == State::New || self.state == State::Device => {
                self.ask_terminal_type();
            }
            (Role::Client(config), DO) if config.has_tn3270e && self.state == State::New => {
                self.state = State::Device;
                self.reply(&[IAC, WILL, TN3270E]);
            }
            (Role::Client(_), DONT) if in_force && self.state == State::Device => {
                self.state = State::New;
                self.reply(&[IAC, WONT, TN3270E]);
            }
            (Role::Client(_), DO) if !in_force => self.reply(&[IAC, WONT, TN3270E]),
            (Role::Server(_), WILL) if !in_force => self.reply(&[IAC, DONT, TN3270E]),
            // The option the other way round is not one.
            (Role::Server(_), DO) => self.reply(&[IAC, WONT, TN3270E]),
            (Role::Client(_), WILL) => self.reply(&[IAC, DONT, TN3270E]),
            _ => {}
        }
    }

    fn subnegotiated(&mut self, body: &[u8]) {
        let Some(negotiation) = Negotiation::parse(body) else { return };
        let is_server = matches!(self.role, Role::Server(_));
        match negotiation {
            Negotiation::SendDeviceType if !is_server && self.state == State::Device => self.request_device(),
            Negotiation::DeviceTypeRequest { device_type, resource }
                if is_server && self.state == State::Device =>
            {
                self.attempts += 1;
                if self.attempts > DEVICE_ATTEMPTS {
                    self.violate(Violation::Negotiation);
                    return;
                }
                self.device_type.clone_from(&device_type);
                self.events.push_back(Event::DeviceRequested { device_type, resource });
            }
            Negotiation::DeviceTypeIs { device_type, name } if !is_server && self.state == State::Device => {
                (self.device_type, self.name) = (device_type, name);
                self.state = State::Functions;
                self.proposed = self.wanted();
                let functions = self.proposed;
                self.subnegotiate(&Negotiation::FunctionsRequest { functions, has_others: false });
            }
            Negotiation::DeviceTypeReject(reason) if !is_server && self.state == State::Device => {
                self.state = State::New;
                self.events.push_back(Event::DeviceRejected(reason));
                self.reply(&[IAC, WONT, TN3270E]);
            }
            Negotiation::FunctionsRequest { functions, has_others } if self.state == State::Functions => {
                self.functions_requested(functions, has_others);
            }
            Negotiation::FunctionsIs(functions) if self.state == State::Functions => {
                self.functions = functions.and(self.proposed);
                self.ready(Protocol::Tn3270e);
            }
            _ => {}
        }
    }

    fn wanted(&self) -> Functions {
        match &self.role {
            Role::Server(config) => config.functions,
            Role::Client(config) => config.functions,
        }
    }
    fn request_device(&mut self) {
        let Role::Client(config) = &self.role else { return };
        let (device_type, resource) = (config.device_type.clone(), config.resource.clone());
        self.subnegotiate(&Negotiation::DeviceTypeRequest { device_type, resource });
    }
    /// Agrees to what the peer proposes if it is no more than we have, else proposes what both have.
    /// spec: RFC2355 7.2.2
    fn functions_requested(&mut self, functions: Functions, has_others: bool) {
        self.rounds += 1;
        if self.rounds > FUNCTION_ROUNDS {
            self.violate(Violation::Negotiation);
            return;
        }
        let both = functions.and(self.wanted());
        self.proposed = both;
        if both == functions && !has_others {
            self.subnegotiate(&Negotiation::FunctionsIs(both));
            self.functions = both;
            self.ready(Protocol::Tn3270e);
        } else {
            self.subnegotiate(&Negotiation::FunctionsRequest { functions: both, has_others: false });
        }
    }

    /// Server: gives the client the device of this name.
    pub fn accept_device(&mut self, name: &str) {
        if self.state == State::Device {
            self.name = Some(name.to_owned());
            self.state = State::Functions;
            let device_type = self.device_type.clone();
            self.subnegotiate(&Negotiation::DeviceTypeIs { device_type, name: self.name.clone() });
        }
    }
    /// Server: refuses the device that the client asks for. It may ask for another one.
    pub fn reject_device(&mut self, reason: DeviceReason) {
        if self.state == State::Device {
            self.subnegotiate(&Negotiation::DeviceTypeReject(reason));
        }
    }

    /// Sends a record. `response` says whether one is wanted; gives the number by which it comes, if one can. Without
    /// TN3270E only 3270 data can be sent. Before negotiation is over nothing is.
    pub fn send_record(&mut self, data_type: DataType, response: u8, data: &[u8]) -> Option<u16> {
        let mut sequence = None;
        match self.state {
            State::Ready(Protocol::Tn3270e) => {
                let mut header = Header::new(data_type);
                if self.functions.contains(Function::Responses) {
                    (header.response, header.sequence) = (response, self.sequence);
                    self.sequence = if self.sequence == LAST_SEQUENCE { 0 } else { self.sequence + 1 };
                    sequence = (response != RESPONSE_NONE).then_some(header.sequence);
                }
                push_escaped(&mut self.output, &header.octets());
            }
            State::Ready(Protocol::Tn3270) if data_type == DataType::Data3270 => {}
            _ => return None,
        }
        push_escaped(&mut self.output, data);
        self.output.extend_from_slice(&[IAC, Command::EndOfRecord.octet()]);
        sequence
    }
    /// Responds to a record whose header asks for it.
    /// spec: RFC2355 10.4
    pub fn respond(&mut self, to: Header, outcome: Result<(), Sense>) {
        let is_wanted = match to.response {
            crate::codec::RESPONSE_ALWAYS => true,
            crate::codec::RESPONSE_ERROR => outcome.is_err(),
            _ => false,
        };
        let has_responses = self.state == State::Ready(Protocol::Tn3270e)
            && self.functions.contains(Function::Responses)
            && matches!(to.data_type, DataType::Data3270 | DataType::Scs);
        if !is_wanted || !has_responses {
            return;
        }
        let (response, octet) = match outcome {
            // Device end.
            Ok(()) => (RESPONSE_POSITIVE, 0),
            Err(sense) => (RESPONSE_NEGATIVE, sense as u8),
        };
        let header = Header { data_type: DataType::Response, request: 0, response, sequence: to.sequence };
        push_escaped(&mut self.output, &header.octets());
        push_escaped(&mut self.output, &[octet]);
        self.output.extend_from_slice(&[IAC, Command::EndOfRecord.octet()]);
    }
    /// Sends text before records are agreed on: to a client that is not a 3270.
    pub fn send_text(&mut self, text: &str) {
        if !matches!(self.state, State::Ready(_)) {
            self.telnet.send(text.as_bytes());
            self.collect();
        }
    }
    /// Client: presses Attn.
    pub fn send_attention(&mut self) {
        self.output.extend_from_slice(&[IAC, Command::InterruptProcess.octet()]);
    }
    /// Client: presses SysReq, if the server has agreed to this function.
    pub fn send_sys_req(&mut self) -> bool {
        let has_function = self.functions.contains(Function::SysReq);
        if has_function {
            self.output.extend_from_slice(&[IAC, Command::AbortOutput.octet()]);
        }
        has_function
    }
    /// Sends nothing, to find out whether the peer is there.
    pub fn send_nop(&mut self) {
        self.output.extend_from_slice(&[IAC, Command::NoOperation.octet()]);
    }

    /// Whether records can be sent.
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready(_))
    }
    /// The protocol, once it is agreed on.
    pub fn protocol(&self) -> Option<Protocol> {
        match self.state {
            State::Ready(protocol) => Some(protocol),
            _ => None,
        }
    }
    /// The client's terminal or device type, in upper case; empty while it is unknown.
    pub fn device_type(&self) -> &str {
        &self.device_type
    }
    /// The device's name, in TN3270E.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
    /// Server: the device that a terminal without TN3270E asks for behind its type, as IBM-3278-2@LU001 (RFC 1646 §4).
    pub fn wanted_name(&self) -> Option<&str> {
        Some(self.tap.name()).filter(|name| !name.is_empty())
    }
    /// The functions that both ends agreed on.
    pub fn functions(&self) -> Functions {
        self.functions
    }
    /// The resource that a client asks for.
    pub fn resource(&self) -> Option<&Resource> {
        match &self.role {
            Role::Client(config) => config.resource.as_ref(),
            Role::Server(_) => None,
        }
    }
    /// Records that had no header, or came before they could.
    pub fn bad_records(&self) -> u64 {
        self.bad_records
    }
    /// The octets to send.
    pub fn pending(&self) -> &[u8] {
        self.output.get(self.output_start..).unwrap_or_default()
    }
    /// `count` octets of [`pending`](Tn3270::pending) are sent.
    pub fn sent(&mut self, count: usize) {
        self.output_start = self.output_start.saturating_add(count).min(self.output.len());
        if self.output_start == self.output.len() {
            self.output.clear();
            self.output.shrink_to(OUTPUT_BYTES);
            self.output_start = 0;
        }
    }
    /// Whether more input may be taken and more be said.
    pub fn has_room(&self) -> bool {
        self.pending().len() < OUTPUT_BYTES
    }
}

fn push_escaped(to: &mut Vec<u8>, octets: &[u8]) {
    for run in octets.split_inclusive(|&octet| octet == IAC) {
        to.extend_from_slice(run);
        if run.last() == Some(&IAC) {
            to.push(IAC);
        }
    }
}
