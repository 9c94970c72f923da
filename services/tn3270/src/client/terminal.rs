//! A terminal: its connection, its screen and a file transfer.

use core::fmt;

use inhost_base::Instant;
use inhost_common::Cleaner;

use super::replies::error_reply;
use super::transfer::{Transfer, TransferError, TransferReport};
use crate::codec::{
    Aid, Command, DataType, Ddm, DdmError, DeviceReason, Function, Header, OutboundField, OutboundFields,
    RESPONSE_ERROR, Resource, Sense,
};
use crate::machine::{ClientConfig, Event, Protocol, Tn3270, Violation};
use crate::screen::{Key, Keyboard, Screen, ScreenConfig};
use crate::transfer::{HostKind, TransferCommand};

/// Octets of the host's text before the 3270 mode that are kept.
pub const NVT_BYTES: usize = 8 << 10;

/// What a terminal is, and what it asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TerminalConfig {
    /// Its model, code page and features.
    pub screen: ScreenConfig,
    /// Whether it agrees to TN3270E. Default true.
    pub has_tn3270e: bool,
    /// The device (LU) that it asks for, in TN3270E. Default: any.
    pub device: Option<String>,
    /// The form of the command that starts a file transfer. Default TSO's.
    pub host_kind: HostKind,
}

impl Default for TerminalConfig {
    fn default() -> Self {
        TerminalConfig {
            screen: ScreenConfig::default(),
            has_tn3270e: true,
            device: None,
            host_kind: HostKind::default(),
        }
    }
}

/// Why a key does nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PressError {
    /// The connection is not in 3270 mode, or is closed.
    NotReady,
    /// The keyboard is locked.
    Locked(Keyboard),
    /// A file transfer is under way.
    Transfer,
}

impl fmt::Display for PressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PressError::NotReady => f.write_str("there is no 3270 session with the host"),
            PressError::Locked(Keyboard::Error(error)) => write!(f, "the keyboard is locked: {error}"),
            PressError::Locked(_) => f.write_str("the keyboard is locked: the host has not answered"),
            PressError::Transfer => f.write_str("a file transfer is under way"),
        }
    }
}
impl core::error::Error for PressError {}

/// Why a file transfer cannot begin.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The command cannot be typed.
    Press(PressError),
    /// The file cannot be sent.
    File(TransferError),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Press(error) => error.fmt(f),
            StartError::File(error) => error.fmt(f),
        }
    }
}
impl core::error::Error for StartError {}

/// A terminal on a connection.
///
/// The owner gives it the octets that arrive by [`receive`](Terminal::receive), keys by [`press`](Terminal::press), and sends
/// what [`pending`](Terminal::pending) shows.
///
/// ```
/// use inhost_tn3270::client::{Terminal, TerminalConfig};
/// use inhost_tn3270::machine::{Event, ServerConfig, Tn3270};
/// let mut host = Tn3270::server(ServerConfig::default());
/// let mut terminal = Terminal::new(TerminalConfig::default());
/// host.start();
/// while !terminal.is_ready() {
///     let octets = host.pending().to_vec();
///     host.sent(octets.len());
///     terminal.receive(&mut &octets[..]);
///     let octets = terminal.pending().to_vec();
///     terminal.sent(octets.len());
///     let mut input = &octets[..];
///     while let Some(event) = host.receive(&mut input) {
///         if matches!(event, Event::DeviceRequested { .. }) {
///             host.accept_device("LU001");
///         }
///     }
/// }
/// assert_eq!(terminal.device(), Some("LU001"));
/// ```
#[derive(Debug)]
pub struct Terminal {
    machine: Tn3270,
    screen: Screen,
    host_kind: HostKind,
    transfer: Option<Transfer>,
    nvt: String,
    cleaner: Cleaner,
    is_bound: bool,
    rejected: Option<DeviceReason>,
    violation: Option<Violation>,
    errors: u64,
    is_closed: bool,
}

impl Terminal {
    /// A terminal whose connection is new.
    pub fn new(config: TerminalConfig) -> Terminal {
        let names = [false, true].map(|is_tn3270e| config.screen.terminal_type(is_tn3270e));
        let mut client = ClientConfig::new(&names[0], &names[1]);
        client.has_tn3270e = config.has_tn3270e;
        client.resource = config.device.map(Resource::Connect);
        Terminal {
            machine: Tn3270::client(client),
            screen: Screen::new(config.screen),
            host_kind: config.host_kind,
            transfer: None,
            nvt: String::new(),
            cleaner: Cleaner::default(),
            is_bound: false,
            rejected: None,
            violation: None,
            errors: 0,
            is_closed: false,
        }
    }
    /// Tells the time, by which the host earns replies.
    pub fn advance(&mut self, now: Instant) {
        self.machine.advance(now);
    }

    /// Takes octets of the host from the front of `input`, as long as it [has room](Terminal::has_room) for what they ask
    /// for. Give it the rest again once something is sent.
    pub fn receive(&mut self, input: &mut &[u8]) {
        while self.has_room()
            && let Some(event) = self.machine.receive(input)
        {
            match event {
                Event::Record { header, data } => self.record(header, &data),
                Event::Nvt(text) => self.take_text(&text),
                Event::DeviceRejected(reason) => self.rejected = Some(reason),
                Event::Violation(violation) => {
                    self.violation = Some(violation);
                    *input = &[];
                }
                _ => {}
            }
        }
    }

    fn record(&mut self, header: Header, data: &[u8]) {
        match header.data_type {
            DataType::Data3270 => self.data(header, data),
            DataType::BindImage => self.is_bound = true,
            DataType::Unbind => self.is_bound = false,
            DataType::SscpLu => self.screen.write_text(data),
            DataType::Nvt => self.take_text(data),
            _ => {}
        }
    }

    /// Keeps the last of the host's text.
    fn take_text(&mut self, text: &[u8]) {
        self.cleaner.take(text, &mut self.nvt);
        let excess = self.nvt.len().saturating_sub(NVT_BYTES);
        let cut = (excess..self.nvt.len()).find(|&at| self.nvt.is_char_boundary(at));
        self.nvt.drain(..cut.unwrap_or(0));
    }

    fn data(&mut self, header: Header, record: &[u8]) {
        // What is read again is the last answer of a file transfer.
        let command = record.first().and_then(|octet| Command::from_octet(*octet));
        let saved = self.transfer.as_ref().and_then(|transfer| transfer.saved.clone());
        if let (Some(saved), Some(Command::ReadModified)) = (saved, command) {
            self.send(&saved);
            return;
        }
        let outcome = self.screen.receive(record);
        self.errors += u64::from(outcome.is_err());
        match outcome {
            Ok(None) => self.machine.respond(header, Ok(())),
            Ok(Some(answer)) => {
                self.machine.respond(header, Ok(()));
                self.send(&answer);
            }
            Err(error) => {
                let sense =
                    if error.is_command_reject() { Sense::CommandReject } else { Sense::OperationCheck };
                self.machine.respond(header, Err(sense));
            }
        }
        match command {
            Some(Command::WriteStructuredField) => self.transfer_fields(record.get(1..).unwrap_or_default()),
            _ => {
                let frame = self.transfer.as_mut().and_then(|transfer| transfer.frame(&mut self.screen));
                frame.into_iter().for_each(|frame| self.send(&frame));
            }
        }
    }

    /// Fields that ask for more than there is room to answer are passed over: a record asks for one piece of a file.
    fn transfer_fields(&mut self, data: &[u8]) {
        for field in OutboundFields::new(data) {
            if !self.has_room() {
                return;
            }
            let Ok(OutboundField::Ddm(body)) = field else { continue };
            let answer = match (Ddm::parse(body), &mut self.transfer) {
                (Ok(request), Some(transfer)) => transfer.request(request),
                (Ok(Ddm::Open { .. }), None) => Some(error_reply(0, DdmError::Failed)),
                _ => None,
            };
            answer.into_iter().for_each(|answer| self.send(&answer));
        }
    }

    fn send(&mut self, record: &[u8]) {
        self.machine.send_record(DataType::Data3270, RESPONSE_ERROR, record);
    }
    /// Whether keys go to the SSCP: before a BIND, where the host announces it.
    fn is_in_sscp(&self) -> bool {
        self.machine.functions().contains(Function::BindImage) && !self.is_bound
    }

    /// Presses a key.
    pub fn press(&mut self, key: Key) -> Result<(), PressError> {
        if !self.machine.is_ready() || self.is_closed {
            return Err(PressError::NotReady);
        }
        if self.transfer.is_some() {
            return Err(PressError::Transfer);
        }
        // The SSCP takes no other keys that send.
        if self.is_in_sscp() && key.aid().is_some_and(|aid| aid != Aid::Enter) {
            return Err(PressError::NotReady);
        }
        let answer = self.screen.press(key).map_err(PressError::Locked)?;
        match answer {
            Some(_) if self.is_in_sscp() => {
                let text = self.screen.read_text();
                self.machine.send_record(DataType::SscpLu, RESPONSE_ERROR, &text);
            }
            Some(record) => self.send(&record),
            None => {}
        }
        Ok(())
    }
    /// Types characters. Those before one that cannot be typed stay.
    pub fn type_text(&mut self, text: &str) -> Result<(), PressError> {
        text.chars().try_for_each(|character| self.press(Key::Character(character)))
    }
    /// Presses Attn.
    pub fn attention(&mut self) {
        self.machine.send_attention();
    }
    /// Presses SysReq; false where the host does not have it.
    pub fn sys_req(&mut self) -> bool {
        self.machine.send_sys_req()
    }

    /// Starts a file transfer: types its command at the cursor and presses Enter. `file` is sent by an upload. The outcome
    /// is told by [`take_transfer`](Terminal::take_transfer).
    pub fn transfer(&mut self, command: &TransferCommand, file: &[u8]) -> Result<(), StartError> {
        let transfer = Transfer::new(command, file, self.screen.config()).map_err(StartError::File)?;
        // What stands in the command's field is not part of the command.
        let press = |terminal: &mut Terminal, key| terminal.press(key).map_err(StartError::Press);
        press(self, Key::EraseEof)?;
        self.type_text(&command.typed(self.host_kind)).map_err(StartError::Press)?;
        press(self, Key::Enter)?;
        self.transfer = Some(transfer);
        Ok(())
    }
    /// Whether a file transfer is under way.
    pub fn is_transferring(&self) -> bool {
        self.transfer.is_some()
    }
    /// Octets of a file that have gone over the wire in the transfer that is under way.
    pub fn transferred_bytes(&self) -> u64 {
        self.transfer.as_ref().map_or(0, |transfer| transfer.wire_bytes)
    }
    /// Whether a transfer is over, and its outcome is to be taken.
    pub fn is_transferred(&self) -> bool {
        self.transfer.as_ref().is_some_and(|transfer| transfer.outcome.is_some())
    }
    /// Gives a transfer up. The host learns it at its next request.
    pub fn abandon_transfer(&mut self) {
        if let Some(transfer) = &mut self.transfer {
            transfer.abandon();
        }
    }
    /// The outcome of a transfer, once there is one. Then keys can be pressed again.
    pub fn take_transfer(&mut self) -> Option<Result<TransferReport, TransferError>> {
        let outcome = self.transfer.as_mut()?.outcome.take()?;
        self.transfer = None;
        Some(outcome)
    }

    /// The screen.
    pub fn screen(&self) -> &Screen {
        &self.screen
    }
    /// Whether the host has begun 3270 mode.
    pub fn is_ready(&self) -> bool {
        self.machine.is_ready()
    }
    /// The protocol, once it is agreed on.
    pub fn protocol(&self) -> Option<Protocol> {
        self.machine.protocol()
    }
    /// The device's name, in TN3270E.
    pub fn device(&self) -> Option<&str> {
        self.machine.name()
    }
    /// Why the host refused the device that was asked for.
    pub fn device_rejected(&self) -> Option<DeviceReason> {
        self.rejected
    }
    /// What the host said before 3270 mode: the last [`NVT_BYTES`], without control characters but for line ends.
    pub fn nvt_text(&self) -> &str {
        &self.nvt
    }
    /// The host has closed the connection.
    pub fn close(&mut self) {
        self.is_closed = true;
    }
    /// Whether the host has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }
    /// Records that could not be executed.
    pub fn errors(&self) -> u64 {
        self.errors
    }
    /// What the host did that ends the connection.
    pub fn violation(&self) -> Option<Violation> {
        self.violation
    }
    /// The octets to send.
    pub fn pending(&self) -> &[u8] {
        self.machine.pending()
    }
    /// `count` octets of [`pending`](Terminal::pending) are sent.
    pub fn sent(&mut self, count: usize) {
        self.machine.sent(count);
    }
    /// Whether more octets may be taken.
    pub fn has_room(&self) -> bool {
        self.machine.has_room()
    }
}
