//! Splits the octets of a connection: records and the option TN3270E for us, all else for Telnet.

use inhost_telnet::codec::{Command, DO, DONT, IAC, SB, SE, TelnetOption, WILL, WONT};

use crate::codec::TN3270E;

/// Octets of a subnegotiation of TN3270E that are kept. A device type and a name are at most 81.
pub(super) const BODY_BYTES: usize = 256;
/// Characters of a device's name that are kept.
const NAME_BYTES: usize = 16;

/// A part of the stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Piece<'a> {
    /// Data, with IAC undoubled.
    Data(&'a [u8]),
    /// The end of a record.
    EndOfRecord,
    /// WILL, WONT, DO or DONT of TN3270E.
    Negotiate(u8),
    /// The body of a subnegotiation of TN3270E.
    Subnegotiation(Vec<u8>),
    /// Octets that Telnet has to see.
    Telnet(Octets),
}

/// At most four octets.
pub(super) type Octets = ([u8; 4], usize);

fn octets(some: &[u8]) -> Octets {
    let mut all = [0; 4];
    all.iter_mut().zip(some).for_each(|(to, from)| *to = *from);
    (all, some.len().min(4))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Data,
    Command,
    Verb(u8),
    Subnegotiation,
    Own,
    OwnCommand,
    Other,
    OtherCommand,
    Name,
}

/// The decoder. It holds back IAC and what follows it until it is known for whom they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Tap {
    state: State,
    body: Vec<u8>,
    is_terminal_type: bool,
    name: String,
}

impl Tap {
    /// The name behind an `@` in the last TERMINAL-TYPE; empty where there was none.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
    /// Takes octets from the front of `input` up to and with the next piece.
    pub(super) fn next<'a>(&mut self, input: &mut &'a [u8]) -> Option<Piece<'a>> {
        loop {
            if self.state == State::Data {
                let end = input.iter().position(|&octet| octet == IAC).unwrap_or(input.len());
                let (data, rest) = input.split_at(end);
                *input = rest;
                if !data.is_empty() {
                    return Some(Piece::Data(data));
                }
            }
            let (one, rest) = input.split_at_checked(1)?;
            *input = rest;
            if let Some(piece) = self.octet(one) {
                return Some(piece);
            }
        }
    }

    fn octet<'a>(&mut self, one: &'a [u8]) -> Option<Piece<'a>> {
        let &octet = one.first()?;
        let (state, piece) = match self.state {
            State::Data => (State::Command, None),
            State::Command => match octet {
                IAC => (State::Data, Some(Piece::Data(one))),
                WILL | WONT | DO | DONT => (State::Verb(octet), None),
                SB => (State::Subnegotiation, None),
                _ if octet == Command::EndOfRecord.octet() => (State::Data, Some(Piece::EndOfRecord)),
                _ => (State::Data, Some(Piece::Telnet(octets(&[IAC, octet])))),
            },
            State::Verb(verb) => match octet {
                TN3270E => (State::Data, Some(Piece::Negotiate(verb))),
                _ => (State::Data, Some(Piece::Telnet(octets(&[IAC, verb, octet])))),
            },
            State::Subnegotiation => match octet {
                TN3270E => {
                    self.body.clear();
                    (State::Own, None)
                }
                IAC => (State::Command, None),
                _ => {
                    self.is_terminal_type = octet == TelnetOption::TerminalType.code();
                    (State::Other, Some(Piece::Telnet(octets(&[IAC, SB, octet]))))
                }
            },
            State::Own => match octet {
                IAC => (State::OwnCommand, None),
                _ => (self.push(octet), None),
            },
            State::OwnCommand => match octet {
                IAC => (self.push(octet), None),
                SE => {
                    let body = core::mem::take(&mut self.body);
                    (State::Data, (body.len() <= BODY_BYTES).then_some(Piece::Subnegotiation(body)))
                }
                // Another command breaks the subnegotiation off.
                _ => {
                    self.state = State::Command;
                    return self.octet(one);
                }
            },
            State::Other => match octet {
                IAC => (State::OtherCommand, None),
                b'@' if self.is_terminal_type => {
                    self.name.clear();
                    (State::Name, None)
                }
                _ => (State::Other, Some(Piece::Telnet(octets(&[octet])))),
            },
            // The device that a terminal asks for behind its type, which Telnet does not know (RFC 1646 §4).
            State::Name => match octet {
                IAC => (State::OtherCommand, None),
                _ => {
                    if octet.is_ascii_graphic() && self.name.len() < NAME_BYTES {
                        self.name.push(char::from(octet.to_ascii_uppercase()));
                    }
                    (State::Name, None)
                }
            },
            State::OtherCommand => match octet {
                IAC => (State::Other, Some(Piece::Telnet(octets(&[IAC, IAC])))),
                SE => (State::Data, Some(Piece::Telnet(octets(&[IAC, SE])))),
                // Telnet breaks it off at the next command as well.
                _ => {
                    self.state = State::Command;
                    return self.octet(one);
                }
            },
        };
        self.state = state;
        piece
    }

    /// One octet more than the limit is kept, by which a body that is too long is known.
    fn push(&mut self, octet: u8) -> State {
        if self.body.len() <= BODY_BYTES {
            self.body.push(octet);
        }
        State::Own
    }
}
