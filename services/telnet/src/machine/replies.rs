//! Subnegotiation: values sent when an option takes effect, and replies to SEND.

use super::event::Event;
use super::limits::SUBNEGOTIATION_BYTES;
use super::negotiation::Phase;
use super::telnet::Telnet;
use crate::codec::option::{Side, TelnetOption};
use crate::codec::subnegotiation::{self as body, FlowControl, IS, SEND, StatusEntry};
use crate::codec::{DO, WILL};

/// Terminal names that are cycled through.
const TERMINAL_TYPES: usize = 8;

impl Telnet {
    /// Subnegotiation sent when an option takes effect.
    pub(super) fn option_changed(&mut self, side: Side, option: TelnetOption, active: bool) {
        if option == TelnetOption::Charset {
            return self.charset_changed(side, active);
        }
        if !active {
            if option == TelnetOption::TerminalType {
                self.terminal_type_next = 0;
            }
            return;
        }
        match (side, option) {
            (side, TelnetOption::LineMode) => self.line_mode_began(side),
            (Side::Local, TelnetOption::WindowSize) => {
                if let Some((columns, rows)) = self.window {
                    self.reply(&window_report(columns, rows));
                }
            }
            (Side::Remote, TelnetOption::TerminalType | TelnetOption::TerminalSpeed) if self.config.ask => {
                self.reply(&body::framed(option, &[SEND]));
            }
            (Side::Remote, TelnetOption::NewEnvironment) if self.config.ask => {
                let mut request = Vec::new();
                body::write_environment_request(&mut request, b"LANG");
                self.reply(&body::framed(option, &request));
            }
            _ => {}
        }
    }

    /// A whole subnegotiation has come in. One for an option that is not in force is ignored.
    /// spec: RFC855
    pub(super) fn subnegotiated<'a>(&mut self, code: u8, bytes: &[u8]) -> Option<Event<'a>> {
        let event = self.subnegotiation_event(code, bytes);
        if event.is_none() {
            self.counters.bad_subnegotiations += 1;
        }
        event.flatten()
    }

    /// `None`: without meaning. `Some(None)`: answered, nothing to tell.
    fn subnegotiation_event<'a>(&mut self, code: u8, bytes: &[u8]) -> Option<Option<Event<'a>>> {
        let option = TelnetOption::from_code(code)?;
        if option == TelnetOption::LineMode {
            return self.line_mode_said(bytes);
        }
        if option == TelnetOption::Charset {
            return self.charset_said(bytes);
        }
        let is_enabled = self.is_active(Side::Remote, option);
        let asked = self.is_active(Side::Local, option);
        let event = match option {
            TelnetOption::TerminalType if is_enabled => Event::TerminalType(body::terminal_name(bytes)?),
            TelnetOption::WindowSize if is_enabled => {
                let (columns, rows) = body::window_size(bytes)?;
                Event::WindowSize { columns, rows }
            }
            TelnetOption::TerminalSpeed if is_enabled => {
                let (transmit, receive) = body::terminal_speed(bytes)?;
                Event::TerminalSpeed { transmit, receive }
            }
            TelnetOption::NewEnvironment if is_enabled => Event::Environment(body::environment(bytes)?),
            TelnetOption::Status if is_enabled && bytes.first() == Some(&IS) => {
                Event::Status(body::status(bytes)?)
            }
            TelnetOption::RemoteFlowControl if asked => Event::FlowControl(body::flow_control(bytes)?),
            _ if asked => {
                self.answer(option, bytes)?;
                return Some(None);
            }
            _ => return None,
        };
        Some(Some(event))
    }

    /// Answers a `SEND`.
    fn answer(&mut self, option: TelnetOption, bytes: &[u8]) -> Option<()> {
        if bytes.first() != Some(&SEND) {
            return None;
        }
        let mut value = vec![IS];
        match option {
            TelnetOption::TerminalType => {
                let name = self.next_terminal_type();
                value.extend_from_slice(name.to_ascii_uppercase().as_bytes());
            }
            TelnetOption::TerminalSpeed => {
                let (transmit, receive) = self.config.terminal_speed;
                value.extend_from_slice(format!("{transmit},{receive}").as_bytes());
            }
            TelnetOption::NewEnvironment => {
                let request = body::environment_request(bytes)?;
                value.clear();
                body::write_environment(&mut value, &request, &self.config.environment);
            }
            TelnetOption::Status => self.write_status(&mut value),
            _ => return None,
        }
        value.truncate(SUBNEGOTIATION_BYTES);
        self.reply(&body::framed(option, &value));
        Some(())
    }

    /// The names in turn, the last one twice, then from the front again.
    /// spec: RFC1091
    fn next_terminal_type(&mut self) -> String {
        let names = self.config.terminal_types.get(..TERMINAL_TYPES).unwrap_or(&self.config.terminal_types);
        let turn = self.terminal_type_next;
        self.terminal_type_next = if turn >= names.len() { 0 } else { turn + 1 };
        let name = names.get(turn).or(names.last()).map_or("unknown", String::as_str);
        name.to_owned()
    }

    /// Options in force, in either direction, as this end sees them.
    /// spec: RFC859
    fn write_status(&self, value: &mut Vec<u8>) {
        for option in TelnetOption::ALL {
            for (side, verb) in [(Side::Local, WILL), (Side::Remote, DO)] {
                if self.is_active(side, option) {
                    value.extend_from_slice(&[verb, option.code()]);
                }
            }
        }
    }

    /// This end's window has this size; the peer gets it if NAWS is active. spec: RFC1073
    pub fn set_window(&mut self, columns: u16, rows: u16) {
        if self.window == Some((columns, rows)) {
            return;
        }
        self.window = Some((columns, rows));
        if self.is_active(Side::Local, TelnetOption::WindowSize) {
            self.output.extend(&window_report(columns, rows));
        }
    }
    /// Asks the peer how it sees the options. False, and nothing is sent, unless it agreed to tell.
    /// spec: RFC859
    pub fn ask_status(&mut self) -> bool {
        let agreed = self.is_active(Side::Remote, TelnetOption::Status);
        if agreed {
            self.output.extend(&body::framed(TelnetOption::Status, &[SEND]));
        }
        agreed
    }
    /// Tells the peer's terminal what XOFF and XON do, if it agreed to the option. spec: RFC1372
    pub fn send_flow_control(&mut self, flow: FlowControl) {
        if self.is_active(Side::Remote, TelnetOption::RemoteFlowControl) {
            self.output.extend(&body::framed(TelnetOption::RemoteFlowControl, &[flow as u8]));
        }
    }
    /// Every option that is in force, or asked for: what `status` shows.
    pub fn options(&self) -> Vec<StatusEntry> {
        let mut entries = Vec::new();
        for option in TelnetOption::ALL {
            for side in [Side::Local, Side::Remote] {
                if self.phase(side, option) != Phase::No {
                    let active = self.is_active(side, option);
                    entries.push(StatusEntry { side, code: option.code(), active });
                }
            }
        }
        entries
    }
}

fn window_report(columns: u16, rows: u16) -> Vec<u8> {
    let [c1, c0] = columns.to_be_bytes();
    let [r1, r0] = rows.to_be_bytes();
    body::framed(TelnetOption::WindowSize, &[c1, c0, r1, r0])
}
