//! Running a script.

use core::fmt;

use inhost_base::{Duration, Instant};

use super::parse::{Condition, Line, Script};
use crate::client::terminal::Terminal;
use crate::screen::{Key, Keyboard};
use crate::transfer::Direction;

/// How long a wait takes at most, where the script does not say so.
const WITHIN: Duration = Duration::from_secs(30);

/// What the owner of a run has to do.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Step {
    /// Wait for octets from the host, or until then, and step again.
    Wait(Instant),
    /// Show this text, which has no control characters but line ends; then step again.
    Show(String),
    /// Show the screen as JSON ([`Snapshot`](crate::screen::Snapshot)); then step again.
    ShowJson,
    /// Read a local file, give it to [`Run::file_read`], and step again.
    Read(String),
    /// Write a local file, and step again.
    Write {
        /// Its name.
        path: String,
        /// What it is to hold.
        data: Vec<u8>,
    },
    /// The script is through.
    Done,
}

/// Why a script stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}
impl core::error::Error for Failure {}

/// A script on its way through a terminal.
#[derive(Clone, Debug)]
pub struct Run {
    script: Script,
    next: usize,
    within: Duration,
    /// Until when the line that waits may take.
    until: Option<Instant>,
    /// The file of the line, once it is read.
    file: Option<Vec<u8>>,
    /// Whether the line has done its part and waits for the host.
    is_begun: bool,
    /// Octets of the line's transfer when they were last looked at.
    moved_bytes: u64,
    /// The line whose owner had something to do last.
    asked_by: usize,
}

impl Run {
    /// A run from the first line.
    pub fn new(script: Script) -> Run {
        Run {
            script,
            next: 0,
            within: WITHIN,
            until: None,
            file: None,
            is_begun: false,
            moved_bytes: 0,
            asked_by: 0,
        }
    }
    /// The contents of the file that [`Step::Read`] asked for.
    pub fn file_read(&mut self, data: Vec<u8>) {
        self.file = Some(data);
    }

    /// Goes on as far as it can.
    ///
    /// # Errors
    ///
    /// The line at which the script stops: a wait took too long, a check failed, a key cannot be pressed, the host refused
    /// the device, or it broke the protocol.
    pub fn step(&mut self, terminal: &mut Terminal, now: Instant) -> Result<Step, Failure> {
        loop {
            let Some((number, line)) = self.script.lines.get(self.next).cloned() else {
                return Ok(Step::Done);
            };
            let failure = |why: String| Failure { line: number, why };
            if let Some(violation) = terminal.violation() {
                return Err(failure(violation.to_string()));
            }
            // The connection would go on without TN3270E, on some other device.
            if let Some(reason) = terminal.device_rejected() {
                return Err(failure(format!("the host refuses the device: {reason}")));
            }
            match self.line(&line, terminal, now).map_err(failure)? {
                Progress::Next => self.advance(),
                Progress::NextWith(step) => {
                    self.advance();
                    self.asked_by = number;
                    return Ok(step);
                }
                Progress::Stay(step) => {
                    self.asked_by = number;
                    return Ok(step);
                }
                Progress::Wait(what) if terminal.is_closed() => {
                    return Err(failure(format!("{what}, and the host has closed the connection")));
                }
                Progress::Wait(what) => {
                    let until = *self.until.get_or_insert(now + self.within);
                    if now >= until {
                        return Err(failure(what));
                    }
                    return Ok(Step::Wait(until));
                }
            }
        }
    }

    /// What its owner was asked for last failed.
    pub fn failure(&self, why: String) -> Failure {
        Failure { line: self.asked_by, why }
    }
    fn advance(&mut self) {
        self.next += 1;
        (self.until, self.file, self.is_begun, self.moved_bytes) = (None, None, false, 0);
    }

    fn line(&mut self, line: &Line, terminal: &mut Terminal, _: Instant) -> Result<Progress, String> {
        match line {
            Line::Within(seconds) => self.within = Duration::from_secs(*seconds),
            Line::Wait(condition) => match check(condition, terminal) {
                Ok(()) => {}
                Err(why) => return Ok(Progress::Wait(why)),
            },
            Line::Assert(condition) => check(condition, terminal)?,
            Line::Field(label) => {
                let address = behind(terminal, label)?;
                press(terminal, Key::Cursor(address))?;
            }
            Line::Move(row, column) => {
                let address = terminal.screen().address_of(*row, *column);
                let address =
                    address.ok_or_else(|| format!("the screen has no row {row}, column {column}"))?;
                press(terminal, Key::Cursor(address))?;
            }
            Line::Type(text) => {
                terminal.type_text(text).map_err(|error| format!("cannot type {text:?}: {error}"))?;
            }
            Line::Press(key) => {
                if !self.is_begun {
                    press(terminal, *key)?;
                    self.is_begun = true;
                }
                // A host may close the connection where a key is to end the session.
                let is_waiting = key.aid().is_some() && !terminal.is_closed();
                if is_waiting && terminal.screen().keyboard() == Keyboard::System {
                    return Ok(Progress::Wait("the host has not unlocked the keyboard".to_owned()));
                }
            }
            Line::Attention => terminal.attention(),
            Line::SysReq if terminal.sys_req() => {}
            Line::SysReq => return Err("the host does not have SysReq".to_owned()),
            Line::Dump { is_json: true } => return Ok(Progress::NextWith(Step::ShowJson)),
            Line::Dump { is_json: false } => {
                let mut text = terminal.screen().lines().join("\n");
                text.push('\n');
                return Ok(Progress::NextWith(Step::Show(text)));
            }
            Line::Transfer { local, command } => {
                if !self.is_begun {
                    let is_upload = command.direction == Direction::Upload;
                    if is_upload && self.file.is_none() {
                        return Ok(Progress::Stay(Step::Read(local.clone())));
                    }
                    let file = self.file.take().unwrap_or_default();
                    terminal.transfer(command, &file).map_err(|error| error.to_string())?;
                    self.is_begun = true;
                }
                // A transfer may take its time as long as it goes on.
                let moved_bytes = terminal.transferred_bytes();
                if moved_bytes != self.moved_bytes {
                    (self.moved_bytes, self.until) = (moved_bytes, None);
                }
                if !terminal.is_transferred() {
                    return Ok(Progress::Wait("the transfer has not ended".to_owned()));
                }
                // The host shows its panel again behind the end of the transfer.
                if terminal.screen().keyboard() == Keyboard::System {
                    return Ok(Progress::Wait("the host has not unlocked the keyboard".to_owned()));
                }
                return match terminal.take_transfer() {
                    None => Ok(Progress::Next),
                    Some(Err(error)) => Err(format!("the transfer failed: {error}")),
                    Some(Ok(report)) if command.direction == Direction::Download => {
                        Ok(Progress::NextWith(Step::Write { path: local.clone(), data: report.file }))
                    }
                    Some(Ok(_)) => Ok(Progress::Next),
                };
            }
        }
        Ok(Progress::Next)
    }
}

/// What became of a line.
enum Progress {
    Next,
    NextWith(Step),
    /// The same line again, once the owner has done something.
    Stay(Step),
    /// The same line again, once the host has; why it would fail.
    Wait(String),
}

fn press(terminal: &mut Terminal, key: Key) -> Result<(), String> {
    terminal.press(key).map_err(|error| error.to_string())
}

/// The address of the first input field behind a text.
fn behind(terminal: &Terminal, label: &str) -> Result<u16, String> {
    let screen = terminal.screen();
    let (row, column) = find(terminal, label).ok_or_else(|| format!("the screen does not have {label:?}"))?;
    let from = row * screen.columns() + column;
    let inputs =
        || screen.fields().into_iter().filter(|field| !field.attribute.is_protected() && field.length > 0);
    let next = inputs().find(|field| field.start >= from).or_else(|| inputs().next());
    let field = next.ok_or("the screen has no input field")?;
    Ok((field.start + 1) % screen.positions())
}

/// The row and the column from 0 of a text.
fn find(terminal: &Terminal, text: &str) -> Option<(u16, u16)> {
    let screen = terminal.screen();
    (0..screen.rows()).find_map(|row| {
        let line = screen.line(row);
        let at = line.find(text)?;
        let column = line.get(..at)?.chars().count();
        Some((row, u16::try_from(column).ok()?))
    })
}

/// Whether a condition holds, or why it does not.
fn check(condition: &Condition, terminal: &Terminal) -> Result<(), String> {
    let screen = terminal.screen();
    let place = |row: u16, column: u16| {
        screen.address_of(row, column).ok_or_else(|| format!("the screen has no row {row}, column {column}"))
    };
    match condition {
        Condition::Ready if terminal.is_ready() => Ok(()),
        Condition::Ready => Err("the host has not begun 3270 mode".to_owned()),
        Condition::Closed if terminal.is_closed() => Ok(()),
        Condition::Closed => Err("the host has not closed the connection".to_owned()),
        Condition::Unlocked if terminal.is_ready() && screen.keyboard() == Keyboard::Unlocked => Ok(()),
        Condition::Unlocked => Err("the keyboard is locked".to_owned()),
        Condition::Text(text) if find(terminal, text).is_some() => Ok(()),
        Condition::Text(text) => Err(format!("the screen does not have {text:?}")),
        Condition::NoText(text) if find(terminal, text).is_none() => Ok(()),
        Condition::NoText(text) => Err(format!("the screen has {text:?}")),
        Condition::At(row, column, text) => {
            place(*row, *column)?;
            let line = screen.line(row - 1);
            let rest: String = line.chars().skip(usize::from(column - 1)).collect();
            match rest.starts_with(&**text) {
                true => Ok(()),
                false => Err(format!("row {row}, column {column} has {:?}", rest.trim_end())),
            }
        }
        Condition::Cursor(row, column) => {
            let is = screen.position(screen.cursor());
            match (is.row, is.column) == (*row, *column) {
                true => Ok(()),
                false => Err(format!("the cursor is in row {}, column {}", is.row, is.column)),
            }
        }
        Condition::Field(row, column, text) => {
            let is = screen.field_text(place(*row, *column)?);
            if is == *text { Ok(()) } else { Err(format!("the field has {is:?}")) }
        }
    }
}
