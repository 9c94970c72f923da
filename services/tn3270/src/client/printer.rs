//! A printer session (RFC 2355 §10.3): prints come in as records, lines come out.

use std::collections::VecDeque;

use inhost_base::Instant;

use crate::codec::{CodePage, Command, DataType, DeviceReason, Header, Resource, Sense, WriteControl};
use crate::machine::{ClientConfig, Event, Tn3270, Violation};
use crate::screen::{Screen, ScreenConfig, printed};

/// Lines of a job that are kept; more are dropped.
pub const JOB_LINES: usize = 10_000;
/// Columns of a line of SCS; it breaks there.
const COLUMNS: usize = 132;

/// A 3287 printer on a connection. It understands prints of the buffer of the 3270 data stream, and of SCS characters,
/// new lines and form feeds.
#[derive(Debug)]
pub struct Printer {
    machine: Tn3270,
    screen: Screen,
    lines: Vec<String>,
    jobs: VecDeque<Vec<String>>,
    rejected: Option<DeviceReason>,
    violation: Option<Violation>,
}

/// Jobs that wait to be taken; then nothing more is received.
const JOBS: usize = 64;

impl Printer {
    /// A printer that asks for a device: one by its name, or that of a terminal.
    pub fn new(resource: Option<Resource>, code_page: CodePage) -> Printer {
        let config = ScreenConfig { code_page, ..ScreenConfig::default() };
        Printer {
            machine: Tn3270::client(ClientConfig::printer(resource)),
            screen: Screen::new(config),
            lines: Vec::new(),
            jobs: VecDeque::new(),
            rejected: None,
            violation: None,
        }
    }
    /// Tells the time, by which the host earns replies.
    pub fn advance(&mut self, now: Instant) {
        self.machine.advance(now);
    }
    /// Takes octets of the host from the front of `input`, as long as it [has room](Printer::has_room). Give it the rest
    /// again once something is sent, and jobs are taken.
    pub fn receive(&mut self, input: &mut &[u8]) {
        while self.has_room()
            && let Some(event) = self.machine.receive(input)
        {
            match event {
                Event::Record { header, data } => self.record(header, &data),
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
        let outcome = match header.data_type {
            DataType::Data3270 => self.buffer(data),
            DataType::Scs => {
                self.scs(data);
                Ok(())
            }
            DataType::PrintEoj => {
                self.finish();
                return;
            }
            _ => return,
        };
        self.machine.respond(header, outcome);
    }
    fn buffer(&mut self, record: &[u8]) -> Result<(), Sense> {
        let before = self.screen.prints();
        let answer = self.screen.receive(record).map_err(|error| match error.is_command_reject() {
            true => Sense::CommandReject,
            false => Sense::OperationCheck,
        })?;
        if let Some(answer) = answer {
            self.machine.send_record(DataType::Data3270, 0, &answer);
        }
        let is_write = record.first().and_then(|octet| Command::from_octet(*octet)).is_some();
        if is_write && self.screen.prints() > before {
            let control = WriteControl::from_octet(record.get(1).copied().unwrap_or_default());
            let lines = printed(&self.screen, control);
            self.add(lines);
        }
        Ok(())
    }
    fn scs(&mut self, data: &[u8]) {
        let page = self.screen.config().code_page;
        let mut lines = vec![String::new()];
        for &octet in data {
            match octet {
                // CR alone goes back to the beginning of the line; what follows is put over it elsewhere, and behind it here.
                0x0d => {}
                0x15 | 0x25 | 0x0c => lines.push(String::new()),
                0x05 => lines.last_mut().into_iter().for_each(|line| line.push(' ')),
                0x00..=0x3f => {}
                _ => {
                    if lines.last().is_some_and(|line| line.chars().count() >= COLUMNS) {
                        lines.push(String::new());
                    }
                    lines.last_mut().into_iter().for_each(|line| line.push(page.shown(octet)));
                }
            }
        }
        if lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        self.add(lines);
    }
    fn add(&mut self, lines: Vec<String>) {
        let room = JOB_LINES.saturating_sub(self.lines.len());
        self.lines.extend(lines.into_iter().take(room));
    }
    /// Ends the job that is being printed. Call it when the host has closed the connection: hosts without the function
    /// that marks the end of a job, and those that close behind the last one, leave it open.
    pub fn finish(&mut self) {
        let job = core::mem::take(&mut self.lines);
        if !job.is_empty() {
            self.jobs.push_back(job);
        }
    }
    /// The next job that is whole, line by line. Its text has no control characters.
    pub fn take_job(&mut self) -> Option<Vec<String>> {
        self.jobs.pop_front()
    }
    /// Whether the host has given it a device.
    pub fn is_ready(&self) -> bool {
        self.machine.is_ready()
    }
    /// The device's name.
    pub fn device(&self) -> Option<&str> {
        self.machine.name()
    }
    /// Why the host refused the device.
    pub fn device_rejected(&self) -> Option<DeviceReason> {
        self.rejected
    }
    /// What the host did that ends the connection.
    pub fn violation(&self) -> Option<Violation> {
        self.violation
    }
    /// The octets to send.
    pub fn pending(&self) -> &[u8] {
        self.machine.pending()
    }
    /// `count` octets of [`pending`](Printer::pending) are sent.
    pub fn sent(&mut self, count: usize) {
        self.machine.sent(count);
    }
    /// Whether more octets may be taken: there is room for answers, and for another job.
    pub fn has_room(&self) -> bool {
        self.machine.has_room() && self.jobs.len() < JOBS
    }
}
