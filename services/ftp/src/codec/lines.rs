//! Lines of a control connection, with Telnet taken out.
//!
//! RFC 959 §3.1 gives control connections to Telnet, and RFC 1123 §4.1.2.12 asks for no more of it than that its
//! commands be understood and its options be refused.

/// The longest command line, its end not counted. Names of PATH_MAX octets fit.
pub const LINE_BYTES: usize = 4352;

/// Telnet has no command below this.
const FIRST_COMMAND: u8 = 236;
const IAC: u8 = 255;
const DONT: u8 = 254;
const DO: u8 = 253;
const WONT: u8 = 252;
const WILL: u8 = 251;
const SB: u8 = 250;
const IP: u8 = 244;
const DM: u8 = 242;
const SE: u8 = 240;

/// Octets of Telnet refusals that may wait to be sent; beyond it options are refused by silence.
const REFUSAL_BYTES: usize = 96;

/// Line events of a control connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LineEvent {
    /// A line without its end.
    Line(Vec<u8>),
    /// A line longer than [`LINE_BYTES`]; all of it was thrown away.
    TooLong,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Text,
    Return,
    Command,
    Option(u8),
    Subnegotiation,
    SubnegotiationCommand,
}

/// Makes lines of octets.
#[derive(Debug, Default)]
pub struct LineReader {
    line: Vec<u8>,
    too_long: bool,
    state: State,
}

impl LineReader {
    /// Takes octets off `input` up to the end of the next line. Refusals of Telnet options go to `output`.
    pub fn receive(&mut self, input: &mut &[u8], output: &mut Vec<u8>) -> Option<LineEvent> {
        let room = output.len() + REFUSAL_BYTES;
        while let [octet, rest @ ..] = *input {
            *input = rest;
            if let Some(event) = self.octet(*octet, output, room) {
                return Some(event);
            }
        }
        None
    }
    /// Whether a line has begun and not ended.
    pub fn is_midway(&self) -> bool {
        !self.line.is_empty() || self.too_long || self.state != State::Text
    }
    /// Octets of memory.
    pub fn held_bytes(&self) -> usize {
        self.line.capacity()
    }
    /// Forgets what was begun.
    pub fn clear(&mut self) {
        *self = LineReader::default();
    }

    fn octet(&mut self, octet: u8, output: &mut Vec<u8>, room: usize) -> Option<LineEvent> {
        match (self.state, octet) {
            (State::Text | State::Return, IAC) => self.state = State::Command,
            // A line feed alone ends a line too: so many clients and people with nc send it.
            (State::Text | State::Return, b'\n') => {
                self.state = State::Text;
                return Some(self.end());
            }
            (State::Text, b'\r') => self.state = State::Return,
            (State::Return, b'\r') => self.push(b'\r'),
            // RFC 854: CR NUL is a carriage return that ends nothing.
            (State::Return, 0) => {
                self.push(b'\r');
                self.state = State::Text;
            }
            (State::Return, octet) => {
                self.push(b'\r');
                self.push(octet);
                self.state = State::Text;
            }
            // The same with what stands before the command.
            (State::Text, IP | DM) if self.line.is_empty() => {}
            (State::Text, octet) => self.push(octet),
            // Data that looks like a command is doubled (RFC 854).
            (State::Command, IAC) => {
                self.push(IAC);
                self.state = State::Text;
            }
            // The command was urgent, and somebody on the way has taken it out of line.
            (State::Command, octet) if octet < FIRST_COMMAND => {
                self.state = State::Text;
                return self.octet(octet, output, room);
            }
            (State::Command, SB) => self.state = State::Subnegotiation,
            (State::Command, WILL | WONT | DO | DONT) => self.state = State::Option(octet),
            // A Synch or an interrupt begins ABOR or STAT: what stood unfinished before it is not a part of that.
            (State::Command, IP | DM) => self.clear(),
            (State::Command, _) => self.state = State::Text,
            (State::Option(verb), option) => {
                let refusal = match verb {
                    WILL => Some(DONT),
                    DO => Some(WONT),
                    _ => None,
                };
                if let Some(refusal) = refusal.filter(|_| output.len() + 3 <= room) {
                    output.extend_from_slice(&[IAC, refusal, option]);
                }
                self.state = State::Text;
            }
            (State::Subnegotiation, IAC) => self.state = State::SubnegotiationCommand,
            (State::Subnegotiation, _) => {}
            (State::SubnegotiationCommand, SE) => self.state = State::Text,
            (State::SubnegotiationCommand, _) => self.state = State::Subnegotiation,
        }
        None
    }

    fn push(&mut self, octet: u8) {
        if self.line.len() >= LINE_BYTES {
            self.too_long = true;
        } else {
            self.line.push(octet);
        }
    }
    fn end(&mut self) -> LineEvent {
        let line = core::mem::take(&mut self.line);
        match core::mem::take(&mut self.too_long) {
            true => LineEvent::TooLong,
            false => LineEvent::Line(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(octets: &[u8]) -> (Vec<LineEvent>, Vec<u8>) {
        let (mut reader, mut output, mut events) = (LineReader::default(), Vec::new(), Vec::new());
        // An octet at a time: no state is lost between reads.
        for octet in octets.chunks(1) {
            let mut input = octet;
            events.extend(reader.receive(&mut input, &mut output));
        }
        (events, output)
    }

    #[test]
    fn lines_end_as_clients_end_them() {
        let line = |text: &str| LineEvent::Line(text.into());
        assert_eq!(read(b"USER a\r\nNOOP\nX\r\0Y\r\n").0, [line("USER a"), line("NOOP"), line("X\rY")]);
        assert_eq!(read(b"\xff\xffz\n").0, [LineEvent::Line(b"\xffz".to_vec())]);
    }

    #[test]
    fn telnet_is_refused_and_a_synch_begins_anew() {
        let (events, output) =
            read(b"RE\xff\xf4\xff\xf2ABOR\r\n\xff\xfd\x01\xff\xfb\x03\xff\xfa\x18\x01\xff\xf0NOOP\r\n");
        assert_eq!(events, [LineEvent::Line(b"ABOR".to_vec()), LineEvent::Line(b"NOOP".to_vec())]);
        assert_eq!(output, [255, 252, 1, 255, 254, 3]);
    }

    /// Urgent octets come in line, or are taken out of it by a system or a gateway on the way.
    #[test]
    fn abor_is_heard_behind_urgent_octets_in_any_order() {
        let ends: [&[u8]; 9] = [
            b"\xff\xf4\xff\xf2",
            b"\xff\xf2\xff\xf4",
            b"\xff\xf4",
            b"\xff\xf2",
            b"\xff\xf4\xff",
            b"\xff\xf4\xf2",
            b"\xf4\xff\xf2",
            b"\xf2",
            b"\xff\xf2\xff\xf2\xff\xf4\xff\xf2",
        ];
        for urgent in ends {
            let (events, _) = read(&[b"RETR half a li", urgent, b"ABOR\r\n"].concat());
            let whole = urgent.starts_with(&[IAC]).then(|| LineEvent::Line(b"ABOR".to_vec()));
            assert!(whole.is_none_or(|abor| events == [abor]), "{urgent:x?}: {events:?}");
            assert_eq!(read(&[urgent, b"ABOR\r\n"].concat()).0, [LineEvent::Line(b"ABOR".to_vec())]);
        }
    }

    #[test]
    fn a_line_that_does_not_end_is_thrown_away() {
        let mut octets = vec![b'x'; 3 * LINE_BYTES];
        octets.extend_from_slice(b"\r\nNOOP\r\n");
        let (events, _) = read(&octets);
        assert_eq!(events, [LineEvent::TooLong, LineEvent::Line(b"NOOP".to_vec())]);
    }
}
