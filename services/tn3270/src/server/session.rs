//! The machine of one session: octets, answers and time in; octets and actions out.

use std::collections::VecDeque;
use std::fmt;

use inhost_base::{Duration, Instant};

use super::devices::is_printer;
use super::dialog::{Entered, Next};
use super::layout::Layout;
use super::panel::{Body, COMMAND, Panel};
use super::transfer::{FileAction, FileAnswer, HostTransfer, Out};
use crate::codec::{
    Aid, Bind, CodePage, Command, DataType, DeviceReason, Function, Inbound, InboundField, ModifiedField,
    OutboundField, POSITIONS_MAX, QueryReply, QueryRequest, RESPONSE_ALWAYS, RESPONSE_ERROR, RESPONSE_NONE,
    Resource, WriteControl,
};
use crate::machine::{Event, ServerConfig, Tn3270, Violation};
use crate::screen::Model;
use crate::transfer::{CommandError, TransferCommand};

/// The largest screen that a terminal may say it has, if its positions have addresses.
const MOST_ROWS: u16 = 128;
const MOST_COLUMNS: u16 = 200;
/// Octets of one record of a print.
const PRINT_RECORD_BYTES: usize = 1_500;
/// How often a printer that has nothing to print is sent a NOP.
const PRINTER_PROBE: Duration = Duration::from_secs(300);
/// The width of a printer.
const PRINT_COLUMNS: usize = 132;

/// What a session does and how long it waits.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SessionConfig {
    /// What it agrees to.
    pub machine: ServerConfig,
    /// The code page of its panels. Default 037.
    pub code_page: CodePage,
    /// How long negotiation may take. Default 30 s.
    pub negotiation_time: Duration,
    /// How long a terminal may take to say what it can do; then the defaults are used. Default 5 s.
    pub query_time: Duration,
    /// How long a user may do nothing; `None` is for ever. Default 30 min.
    pub idle_time: Option<Duration>,
    /// How long a terminal or a printer may take to answer in the middle of a transfer or of a print. Default 2 min.
    pub answer_time: Duration,
    /// The most octets of a file that is sent to the host. Default 64 MiB.
    pub upload_bytes: u64,
}

impl Default for SessionConfig {
    fn default() -> Self {
        SessionConfig {
            machine: ServerConfig::default(),
            code_page: CodePage::default(),
            negotiation_time: Duration::from_secs(30),
            query_time: Duration::from_secs(5),
            idle_time: Some(Duration::from_secs(30 * 60)),
            answer_time: Duration::from_secs(120),
            upload_bytes: 64 << 20,
        }
    }
}

/// Why a session ends.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Closing {
    /// The user has left.
    Left,
    /// The terminal is not a 3270; it is told so.
    NotA3270,
    /// Nothing was done for too long.
    Idle,
    /// Negotiation, a transfer or a print took too long.
    TooSlow,
    /// The peer broke a limit.
    Violation(Violation),
}

impl fmt::Display for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Closing::Left => f.write_str("left"),
            Closing::NotA3270 => f.write_str("not a 3270"),
            Closing::Idle => f.write_str("idle too long"),
            Closing::TooSlow => f.write_str("too slow"),
            Closing::Violation(violation) => violation.fmt(f),
        }
    }
}

/// What the owner has to do.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Action {
    /// Give the client a device: [`Session::device`].
    Device {
        /// Its type.
        device_type: String,
        /// The device that the client wants.
        resource: Option<Resource>,
    },
    /// The terminal is ready. Without TN3270E it has no device yet: the owner gives it one.
    Ready {
        /// The terminal's type.
        device_type: String,
        /// Its name, if it has one.
        device: Option<String>,
        /// The device that it wants, if it has none and wants one.
        wanted: Option<String>,
    },
    /// Ask the dialog: [`Session::next`].
    Ask(Entered),
    /// Whether files may be transferred now, and do the first thing: [`Session::file`].
    File(FileAction),
    /// A transfer is over: what it was, and the octets or why not.
    Transferred {
        /// The command.
        command: TransferCommand,
        /// The octets of the file, or why it failed.
        outcome: Result<u64, String>,
    },
    /// A print is done, if it is: give the next one by [`Session::print`].
    Printed(Result<(), ()>),
    /// Send what is pending, and close.
    Close(Closing),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Negotiating,
    Querying,
    /// The dialog is asked.
    Asking,
    /// A panel is shown.
    Showing,
    Transferring,
    /// A printer that waits for a print.
    Idle,
    /// A printer that has one: the number of the last record, if it is responded to.
    Printing(Option<u16>),
    Closed,
}

/// One session.
///
/// The owner calls [`start`](Session::start), then in a loop: takes each [`action`](Session::action), sends
/// [`pending`](Session::pending), gives what arrives to [`receive`](Session::receive) while it
/// [`takes_input`](Session::takes_input), what is left of it after the next actions, and at [`deadline`](Session::deadline) calls [`expire`](Session::expire).
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    machine: Tn3270,
    state: State,
    layout: Layout,
    transfer_bytes: Option<u16>,
    panel: Option<Panel>,
    first_line: usize,
    transfer: Option<HostTransfer>,
    print: VecDeque<Vec<u8>>,
    actions: VecDeque<Action>,
    deadline: Option<Instant>,
    failed_writes: u64,
}

impl Session {
    /// A session on a new connection.
    pub fn new(config: SessionConfig) -> Session {
        Session {
            machine: Tn3270::server(config.machine.clone()),
            layout: Layout { code_page: config.code_page, ..Layout::default() },
            config,
            state: State::Negotiating,
            transfer_bytes: None,
            panel: None,
            first_line: 0,
            transfer: None,
            print: VecDeque::new(),
            actions: VecDeque::new(),
            deadline: None,
            failed_writes: 0,
        }
    }
    /// Begins.
    pub fn start(&mut self, now: Instant) {
        self.machine.start();
        self.deadline = Some(now + self.config.negotiation_time);
    }
    /// The next thing to do.
    pub fn action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
    /// When [`expire`](Session::expire) is to be called.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
    /// The octets to send.
    pub fn pending(&self) -> &[u8] {
        self.machine.pending()
    }
    /// `count` octets of [`pending`](Session::pending) are sent.
    pub fn sent(&mut self, count: usize) {
        self.machine.sent(count);
    }
    /// Whether input may be taken: what is to be sent has room, and all actions are taken.
    pub fn takes_input(&self) -> bool {
        self.machine.has_room() && self.actions.is_empty() && self.state != State::Closed
    }
    /// What is known of the terminal.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
    /// Writes that the terminal could not execute.
    pub fn failed_writes(&self) -> u64 {
        self.failed_writes
    }

    /// Takes octets of the peer from the front of `input`, until there is something to do or they are used up.
    pub fn receive(&mut self, input: &mut &[u8], now: Instant) {
        self.machine.advance(now);
        while self.takes_input()
            && let Some(event) = self.machine.receive(input)
        {
            self.event(event, now);
        }
    }

    fn close(&mut self, closing: Closing) {
        self.state = State::Closed;
        self.deadline = None;
        self.actions.push_back(Action::Close(closing));
    }
    fn idle_until(&mut self, now: Instant) {
        self.deadline = self.config.idle_time.map(|time| now + time);
    }

    fn event(&mut self, event: Event, now: Instant) {
        match event {
            Event::DeviceRequested { device_type, resource } => {
                self.actions.push_back(Action::Device { device_type, resource });
            }
            Event::Ready(_) => self.ready(now),
            Event::NotA3270(_) => {
                self.machine.send_text("This port is for IBM 3270 terminals: try c3270 or x3270.\r\n");
                self.close(Closing::NotA3270);
            }
            Event::Record { header, data } => {
                if matches!(header.data_type, DataType::Data3270 | DataType::Nvt) {
                    self.record(&data, now);
                }
            }
            Event::Response { sequence, outcome } => self.response(sequence, outcome.is_ok(), now),
            // Attn and SysReq show the panel anew.
            Event::Attention | Event::SysReq if self.state == State::Showing => self.show(now),
            Event::Violation(violation) => self.close(Closing::Violation(violation)),
            _ => {}
        }
    }

    /// The device that the client gets, or why it gets none.
    pub fn device(&mut self, device: Result<&str, DeviceReason>) {
        match device {
            Ok(name) => self.machine.accept_device(name),
            Err(reason) => self.machine.reject_device(reason),
        }
    }

    fn ready(&mut self, now: Instant) {
        let device_type = self.machine.device_type().to_owned();
        let device = self.machine.name().map(str::to_owned);
        self.layout.is_extended = device_type.contains("-E") || device_type.starts_with("IBM-DYNAMIC");
        if let Some(model) = Model::of_terminal_type(&device_type) {
            self.set_size(model.alternate());
        }
        if self.machine.functions().contains(Function::BindImage) {
            self.bind();
        }
        let wanted = self.machine.wanted_name().map(str::to_owned);
        let is_printer = is_printer(&device_type);
        self.actions.push_back(Action::Ready { device_type, device, wanted });
        if is_printer {
            self.rest(now);
        } else if self.layout.is_extended {
            let mut query = vec![Command::WriteStructuredField.octet()];
            OutboundField::ReadPartition(QueryRequest::Query).write(&mut query);
            self.machine.send_record(DataType::Data3270, RESPONSE_ERROR, &query);
            self.state = State::Querying;
            self.deadline = Some(now + self.config.query_time);
        } else {
            self.ask(Entered::start());
        }
    }
    /// Begins an SNA session, for clients that have the function; Attn and SysReq are of use in one.
    fn bind(&mut self) {
        let size = |rows: u16, columns: u16| {
            (u8::try_from(rows).unwrap_or(u8::MAX), u8::try_from(columns).unwrap_or(u8::MAX))
        };
        let bind = Bind {
            default: size(24, 80),
            alternate: size(self.layout.rows, self.layout.columns),
            application: self.layout.code_page.encode("INHOST"),
        };
        self.machine.send_record(DataType::BindImage, RESPONSE_NONE, &bind.octets());
    }
    fn set_size(&mut self, (rows, columns): (u16, u16)) {
        let is_addressed = rows.checked_mul(columns).is_some_and(|positions| positions <= POSITIONS_MAX);
        if (24..=MOST_ROWS).contains(&rows) && (80..=MOST_COLUMNS).contains(&columns) && is_addressed {
            (self.layout.rows, self.layout.columns) = (rows, columns);
            self.layout.is_alternate = (rows, columns) != (24, 80);
        }
    }
    fn queried(&mut self, fields: &[InboundField<'_>]) {
        for field in fields {
            let InboundField::Query(reply) = field else { continue };
            match *reply {
                QueryReply::UsableArea { columns, rows, .. } => self.set_size((rows, columns)),
                QueryReply::ImplicitPartition { alternate: (columns, rows), .. } => {
                    self.set_size((rows, columns));
                }
                QueryReply::Ddm { outbound_bytes, .. } => self.transfer_bytes = Some(outbound_bytes),
                _ => {}
            }
        }
        self.ask(Entered::start());
    }
    fn ask(&mut self, entered: Entered) {
        self.state = State::Asking;
        self.deadline = None;
        self.actions.push_back(Action::Ask(entered));
    }

    /// What the dialog says.
    pub fn next(&mut self, next: Next, now: Instant) {
        if self.state != State::Asking {
            return;
        }
        match next {
            Next::Show(panel) | Next::Print { panel, .. } => {
                self.panel = Some(*panel);
                self.first_line = 0;
                self.show(now);
            }
            Next::End => self.close(Closing::Left),
        }
    }
    fn show(&mut self, now: Instant) {
        self.state = State::Showing;
        self.idle_until(now);
        if let Some(panel) = &self.panel {
            let record = panel.render(&self.layout, self.first_line);
            self.machine.send_record(DataType::Data3270, RESPONSE_ERROR, &record);
        }
    }

    fn record(&mut self, data: &[u8], now: Instant) {
        let Ok(inbound) = Inbound::parse(data) else { return };
        match (self.state, &inbound) {
            (State::Querying, Inbound::Fields(fields)) => self.queried(fields),
            (State::Transferring, _) => {
                if let Some(mut transfer) = self.transfer.take() {
                    let out = transfer.record(&inbound);
                    self.transfer = Some(transfer);
                    self.carry_on(out, now);
                }
            }
            (State::Showing, Inbound::Read { aid, data, .. }) => self.pressed(*aid, data, now),
            _ => {}
        }
    }

    fn pressed(&mut self, aid: Aid, data: &[u8], now: Instant) {
        let Some(mut panel) = self.panel.take() else { return };
        let fields = ModifiedField::parse(data).unwrap_or_default();
        let values = panel.read(&self.layout, &fields);
        panel.keep(&values);
        (panel.message, panel.focus) = (None, None);
        let lines = match &panel.body {
            Body::Lines(lines) => Some(lines.len()),
            Body::Form(_) => None,
        };
        let typed = values.get(COMMAND).cloned().unwrap_or_default();
        let is_known = aid == Aid::Enter || panel.keys.iter().any(|(key, _)| *key == aid);
        match (aid, lines) {
            (Aid::Clear, _) => {}
            (Aid::Pf(7 | 8 | 19 | 20), Some(lines)) => self.scroll(aid, lines),
            (Aid::Enter, _) if panel.has_command && typed.to_ascii_uppercase().starts_with("IND$FILE") => {
                match typed.parse::<TransferCommand>() {
                    Ok(command) => {
                        self.panel = Some(panel);
                        self.begin_transfer(command, now);
                        return;
                    }
                    Err(CommandError::NotTransfer) => {}
                    Err(error) => panel = panel.error(&error.to_string()),
                }
            }
            (Aid::Enter, _) if let Err((field, why)) = panel.check(&values) => {
                panel = panel.error(&why);
                panel.focus = Some(field);
            }
            _ if is_known => {
                let name = panel.name.clone();
                self.panel = Some(panel);
                self.ask(Entered { panel: name, aid, values });
                return;
            }
            (Aid::Pf(number), _) => panel = panel.error(&format!("PF{number} does nothing here")),
            // Other keys show the panel anew.
            _ => {}
        }
        self.panel = Some(panel);
        self.show(now);
    }
    fn scroll(&mut self, aid: Aid, lines: usize) {
        let page = usize::from(self.layout.body_rows()).max(1);
        self.first_line = match aid {
            Aid::Pf(7 | 19) => self.first_line.saturating_sub(page),
            _ if self.first_line + page < lines => self.first_line + page,
            _ => self.first_line,
        };
    }

    fn begin_transfer(&mut self, command: TransferCommand, now: Instant) {
        let (transfer, out) =
            HostTransfer::new(command, self.transfer_bytes, self.config.code_page, self.config.upload_bytes);
        self.transfer = Some(transfer);
        self.state = State::Transferring;
        self.carry_on(vec![out], now);
    }
    /// The answer of the files.
    pub fn file(&mut self, answer: FileAnswer, now: Instant) {
        if let Some(mut transfer) = self.transfer.take() {
            let out = transfer.file(answer);
            self.transfer = Some(transfer);
            self.carry_on(out, now);
        }
    }
    fn carry_on(&mut self, out: Vec<Out>, now: Instant) {
        for out in out {
            match out {
                Out::Record(record) => {
                    self.machine.send_record(DataType::Data3270, RESPONSE_ERROR, &record);
                }
                Out::File(action) => self.actions.push_back(Action::File(action)),
                Out::Done(outcome) => {
                    let Some(transfer) = self.transfer.take() else { return };
                    let command = transfer.command().clone();
                    let panel = self.panel.take();
                    self.panel = panel.map(|panel| match &outcome {
                        Ok(bytes) => panel.note(&format!("{bytes} bytes transferred")),
                        Err(why) => panel.error(why),
                    });
                    self.actions.push_back(Action::Transferred { command, outcome });
                    self.show(now);
                    return;
                }
            }
        }
        let waits = self.transfer.as_ref().is_some_and(HostTransfer::waits_for_terminal);
        self.deadline = waits.then(|| now + self.config.answer_time);
    }

    fn response(&mut self, sequence: u16, is_done: bool, now: Instant) {
        match self.state {
            State::Querying if !is_done => self.ask(Entered::start()),
            State::Printing(Some(last)) if last == sequence => match is_done {
                true => self.print_on(now),
                false => self.printed(Err(()), now),
            },
            _ => self.failed_writes += u64::from(!is_done),
        }
    }

    /// Whether this is a printer that waits for a print. One that has not read the last print is not: without responses
    /// nothing else says that it is done.
    pub fn is_idle_printer(&self) -> bool {
        self.state == State::Idle && self.machine.pending().is_empty()
    }
    /// Prints lines on this printer: as SCS if the client has agreed to it, else as 3270 data. Give a print only to an
    /// [idle printer](Session::is_idle_printer): it waits to be sent as a whole.
    pub fn print(&mut self, lines: &[String], now: Instant) {
        if self.state != State::Idle {
            return;
        }
        let is_scs = self.machine.functions().contains(Function::ScsControlCodes);
        let head = match is_scs {
            true => Vec::new(),
            false => {
                let control = WriteControl::RESET | WriteControl::START_PRINT;
                vec![Command::EraseWrite.octet(), control.octet()]
            }
        };
        let mut record = head.clone();
        for line in lines {
            if record.len() > PRINT_RECORD_BYTES {
                self.print.push_back(core::mem::replace(&mut record, head.clone()));
            }
            let octets = self.layout.code_page.encode(line);
            let graphic = octets.into_iter().map(|octet| if octet < 0x40 { 0x6f } else { octet });
            record.extend(graphic.take(PRINT_COLUMNS));
            record.push(0x15);
        }
        self.print.push_back(record);
        self.print_on(now);
    }
    fn print_on(&mut self, now: Instant) {
        let is_scs = self.machine.functions().contains(Function::ScsControlCodes);
        let data_type = if is_scs { DataType::Scs } else { DataType::Data3270 };
        while let Some(record) = self.print.pop_front() {
            let sequence = self.machine.send_record(data_type, RESPONSE_ALWAYS, &record);
            self.state = State::Printing(sequence);
            if sequence.is_some() {
                self.deadline = Some(now + self.config.answer_time);
                return;
            }
        }
        self.machine.send_record(DataType::PrintEoj, RESPONSE_NONE, &[]);
        self.printed(Ok(()), now);
    }
    /// A printer waits for a print. Now and then it is sent something, so that one that is gone is noticed.
    fn rest(&mut self, now: Instant) {
        self.state = State::Idle;
        self.deadline = Some(now + PRINTER_PROBE);
    }
    fn printed(&mut self, outcome: Result<(), ()>, now: Instant) {
        self.print.clear();
        self.rest(now);
        self.actions.push_back(Action::Printed(outcome));
    }

    /// The deadline has come.
    pub fn expire(&mut self, now: Instant) {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        match self.state {
            State::Querying => self.ask(Entered::start()),
            State::Showing => self.close(Closing::Idle),
            State::Idle if self.machine.pending().is_empty() => {
                self.machine.send_nop();
                self.rest(now);
            }
            _ => self.close(Closing::TooSlow),
        }
    }
}
