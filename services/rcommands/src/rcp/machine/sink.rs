//! The receiving end of rcp.

use super::super::codec::{Header, Times};
use super::super::name::{Expected, NameError, check};
use super::super::{DEPTH_LIMIT, Options};
use crate::codec::{Reply, ReplyReader, printable};

/// The longest line of the other end's.
const LINE_BYTES: usize = 1024;

/// Messages of the peer and requests to the driver. Events that say so wait for [`Sink::accept`] or [`Sink::refuse`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// A folder begins. Waits; refused, the folder is left out.
    Enter {
        /// Its name, checked.
        name: Vec<u8>,
        /// Permissions, nine bits.
        mode: u32,
        /// Its times, if they are preserved.
        times: Option<Times>,
    },
    /// The folder ends. Waits.
    Leave,
    /// A file begins. Waits; refused, the file is left out.
    Begin {
        /// Its name, checked.
        name: Vec<u8>,
        /// Permissions, nine bits.
        mode: u32,
        /// Its length.
        size_bytes: u64,
        /// Its times, if they are preserved.
        times: Option<Times>,
    },
    /// Some of the file.
    Data(&'a [u8]),
    /// The file is whole. Waits.
    Finished,
    /// The file is not: the other end could not read it, and says why. Waits, and is accepted.
    Spoiled(String),
    /// Something cannot be sent; the rest goes on.
    Warning(String),
    /// A name that the other end sends is refused; the rest goes on.
    Refused(String, NameError),
    /// It is over, and this is why.
    Failed(String),
}

/// The machine. In: [`Sink::receive`], [`Sink::accept`], [`Sink::refuse`], [`Sink::end`]. Out: [`Sink::output`].
#[derive(Clone, Debug)]
pub struct Sink {
    options: Options,
    expected: Expected,
    state: State,
    depth: usize,
    times: Option<Times>,
    output: Vec<u8>,
    line: Vec<u8>,
}

#[derive(Clone, Debug)]
enum State {
    Line,
    /// The other end waits for our word on this.
    Verdict(Pending),
    Data {
        left_bytes: u64,
    },
    /// Final status of a received file.
    Trailer(ReplyReader),
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pending {
    Enter,
    Leave,
    Begin { size_bytes: u64 },
    Finish,
}

impl Sink {
    /// A machine that takes what was asked for. It speaks first.
    pub fn new(options: Options, expected: Expected) -> Sink {
        let (output, line) = (vec![0], Vec::new());
        Sink { options, expected, state: State::Line, depth: 0, times: None, output, line }
    }
    /// Octets to send next.
    pub fn output(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.output)
    }
    /// Takes octets from the front of `input`. `None` when there are none left, or the machine waits.
    pub fn receive<'a>(&mut self, input: &mut &'a [u8]) -> Option<Event<'a>> {
        while !input.is_empty() {
            match &mut self.state {
                State::Verdict(_) | State::Over => return None,
                State::Data { left_bytes } => {
                    let count = usize::try_from(*left_bytes).unwrap_or(usize::MAX).min(input.len());
                    let (data, rest) = input.split_at(count);
                    *left_bytes -= count as u64;
                    *input = rest;
                    if *left_bytes == 0 {
                        self.state = State::Trailer(ReplyReader::default());
                    }
                    return Some(Event::Data(data));
                }
                State::Trailer(answer) => {
                    let said = answer.take(input)?;
                    return Some(self.trailer(said));
                }
                State::Line => {
                    let (&octet, rest) = input.split_first()?;
                    *input = rest;
                    match octet {
                        b'\n' => {
                            let line = core::mem::take(&mut self.line);
                            if let Some(event) = self.line(&line) {
                                return Some(event);
                            }
                        }
                        _ if self.line.len() >= LINE_BYTES => {
                            return Some(self.fail("the other end's line is too long"));
                        }
                        octet => self.line.push(octet),
                    }
                }
            }
        }
        None
    }
    fn trailer(&mut self, said: Reply) -> Event<'static> {
        self.state = State::Verdict(Pending::Finish);
        match said {
            Reply::Ok => Event::Finished,
            Reply::Warning(why) => Event::Spoiled(why),
            Reply::Fatal(why) => self.fail(&why),
        }
    }
    fn line(&mut self, line: &[u8]) -> Option<Event<'static>> {
        match line {
            [1, why @ ..] => Some(Event::Warning(printable(why))),
            [2, why @ ..] => Some(self.fail(&printable(why))),
            [b'E', ..] if self.depth > 0 => {
                self.times = None;
                self.state = State::Verdict(Pending::Leave);
                Some(Event::Leave)
            }
            [b'T', rest @ ..] => match Times::parse(rest) {
                Some(times) => {
                    self.times = Some(times);
                    self.output.push(0);
                    None
                }
                None => Some(self.protocol_error(line)),
            },
            [b'C', rest @ ..] => match Header::parse(rest) {
                Some(Header { mode, size_bytes, name }) => Some(self.announce(name, mode, Some(size_bytes))),
                None => Some(self.protocol_error(line)),
            },
            [b'D', rest @ ..] => match Header::parse(rest) {
                Some(Header { mode, name, .. }) => Some(self.announce(name, mode, None)),
                None => Some(self.protocol_error(line)),
            },
            line => Some(self.protocol_error(line)),
        }
    }
    /// A file, or without a size a folder.
    fn announce(&mut self, name: &[u8], mode: u32, size_bytes: Option<u64>) -> Event<'static> {
        let times = self.times.take().filter(|_| self.options.preserve);
        let asked_for = self.depth > 0 || self.expected.allows(name);
        let fits = size_bytes.is_some() || (self.options.recursive && self.depth < DEPTH_LIMIT);
        let checked = match check(name) {
            Ok(()) if !asked_for || !fits => Err(NameError::NotAskedFor),
            checked => checked,
        };
        if let Err(why) = checked {
            self.say_no(&why.to_string());
            return Event::Refused(printable(name), why);
        }
        let name = name.to_vec();
        match size_bytes {
            Some(size_bytes) => {
                self.state = State::Verdict(Pending::Begin { size_bytes });
                Event::Begin { name, mode, size_bytes, times }
            }
            None => {
                self.state = State::Verdict(Pending::Enter);
                Event::Enter { name, mode, times }
            }
        }
    }
    fn protocol_error(&mut self, line: &[u8]) -> Event<'static> {
        let line = printable(line);
        self.fail(&format!("the other end does not speak as rcp: {line}"))
    }
    fn fail(&mut self, why: &str) -> Event<'static> {
        self.state = State::Over;
        Event::Failed(why.to_owned())
    }

    /// Completes the pending request.
    pub fn accept(&mut self) {
        let State::Verdict(pending) = self.state else { return };
        self.output.push(0);
        self.state = match pending {
            Pending::Begin { size_bytes: 0 } => State::Trailer(ReplyReader::default()),
            Pending::Begin { size_bytes } => State::Data { left_bytes: size_bytes },
            Pending::Enter => {
                self.depth += 1;
                State::Line
            }
            Pending::Leave => {
                self.depth -= 1;
                State::Line
            }
            Pending::Finish => State::Line,
        };
    }
    /// Fails the pending request. The peer continues with the next entry.
    pub fn refuse(&mut self, why: &str) {
        let State::Verdict(pending) = self.state else { return };
        self.say_no(why);
        self.depth -= usize::from(pending == Pending::Leave);
        self.state = State::Line;
    }
    fn say_no(&mut self, why: &str) {
        self.output.push(1);
        self.output.extend(why.bytes().filter(|octet| !octet.is_ascii_control()).take(LINE_BYTES));
        self.output.push(b'\n');
    }
    /// Nothing more comes. An error says what is missing.
    pub fn end(&mut self) -> Result<(), String> {
        let state = core::mem::replace(&mut self.state, State::Over);
        match state {
            State::Line if self.line.is_empty() && self.depth == 0 => Ok(()),
            State::Line if matches!(self.line.first(), Some(1 | 2)) => Err(printable(&self.line)),
            State::Line if !self.line.is_empty() => {
                Err(format!("the other end says: {}", printable(&self.line)))
            }
            State::Over => Ok(()),
            _ => Err("the connection ended before all had come".to_owned()),
        }
    }
}
