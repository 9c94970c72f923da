//! The bodies of subnegotiations: what stands between `IAC SB option` and `IAC SE`, with the doubling of IAC already
//! undone. Reading is total: any input gives a value or nothing.

use super::command::{DO, DONT, IAC, SE, WILL, WONT};
use super::option::{Side, TelnetOption};

/// Variables in one report.
pub const ENVIRONMENT_VARIABLES: usize = 32;
/// Octets of a terminal's name.
pub const TERMINAL_NAME_BYTES: usize = 40;
/// Octets of the name or of the value of an environment variable.
pub const VARIABLE_BYTES: usize = 256;

/// "Here it is" in RFC 1091, 1079, 1572 and 859.
pub(crate) const IS: u8 = 0;
/// "Send it" in the same.
pub(crate) const SEND: u8 = 1;
/// "It has changed" in RFC 1572.
pub(crate) const INFO: u8 = 2;
const VARIABLE: u8 = 0;
const VALUE: u8 = 1;
const ESCAPE: u8 = 2;
const USER_VARIABLE: u8 = 3;

/// Commands of REMOTE-FLOW-CONTROL (RFC 1372).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum FlowControl {
    /// XOFF and XON are ordinary characters.
    Off = 0,
    /// XOFF stops the output.
    On = 1,
    /// Any character restarts it.
    RestartAny = 2,
    /// Only XON restarts it.
    RestartXon = 3,
}

impl FlowControl {
    fn from_octet(octet: u8) -> Option<FlowControl> {
        [FlowControl::Off, FlowControl::On, FlowControl::RestartAny, FlowControl::RestartXon]
            .into_iter()
            .find(|&flow| flow as u8 == octet)
    }
}

/// Whether a variable is one of the well-known ones or the user's own (RFC 1572).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VariableKind {
    /// VAR: USER, JOB, ACCT, PRINTER, SYSTEMTYPE, DISPLAY.
    WellKnown,
    /// USERVAR: any other.
    User,
}

/// One environment variable as it crosses the wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Whose name it is.
    pub kind: VariableKind,
    /// Its name, of at most 256 octets, not validated.
    pub name: Vec<u8>,
    /// Its value, of at most 256 octets, not validated; `None` when it is undefined.
    pub value: Option<Vec<u8>>,
}

/// One line of a STATUS report: the reporter's view of one side of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StatusEntry {
    /// Whose side, seen from us.
    pub side: Side,
    /// The option's code, spoken here or not.
    pub code: u8,
    /// Whether it is in force.
    pub active: bool,
}

/// A terminal's name out of `IS name`: letters, digits and `-_./+@`, at most 40 of them, in lower case.
/// Behind an `@`, terminals of the 3270 name a device (RFC 1646). RFC 1091 knows no difference of case; no
/// other name is in a terminal database.
pub(crate) fn terminal_name(body: &[u8]) -> Option<String> {
    let (&IS, name) = body.split_first()? else { return None };
    let valid = !name.is_empty()
        && name.len() <= TERMINAL_NAME_BYTES
        && name.iter().all(|c| c.is_ascii_alphanumeric() || b"-_./+@".contains(c));
    valid.then(|| name.iter().map(|c| c.to_ascii_lowercase() as char).collect())
}

/// Columns and rows out of a NAWS body; either may be 0, "unspecified".
pub(crate) fn window_size(body: &[u8]) -> Option<(u16, u16)> {
    let &[c1, c0, r1, r0] = body else { return None };
    Some((u16::from_be_bytes([c1, c0]), u16::from_be_bytes([r1, r0])))
}

/// Transmit and receive speed in bits a second out of `IS "transmit,receive"`.
pub(crate) fn terminal_speed(body: &[u8]) -> Option<(u32, u32)> {
    let (&IS, text) = body.split_first()? else { return None };
    let text = core::str::from_utf8(text).ok()?;
    let (transmit, receive) = text.split_once(',')?;
    let number = |digits: &str| -> Option<u32> {
        let plain = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
        if plain { digits.parse().ok() } else { None }
    };
    Some((number(transmit)?, number(receive)?))
}

/// The command out of a REMOTE-FLOW-CONTROL body.
pub(crate) fn flow_control(body: &[u8]) -> Option<FlowControl> {
    let &[octet] = body else { return None };
    FlowControl::from_octet(octet)
}

/// The variables of an `IS` or `INFO` body, at most 32, each part cut off at 256 octets.
pub(crate) fn environment(body: &[u8]) -> Option<Vec<Variable>> {
    let (&(IS | INFO), rest) = body.split_first()? else { return None };
    let mut variables: Vec<Variable> = Vec::new();
    let mut octets = rest.iter().copied();
    while let Some(octet) = octets.next() {
        let (octet, literal) = match octet {
            ESCAPE => (octets.next()?, true),
            _ => (octet, false),
        };
        match octet {
            VARIABLE | USER_VARIABLE if !literal => {
                if variables.len() == ENVIRONMENT_VARIABLES {
                    return Some(variables);
                }
                let kind = if octet == VARIABLE { VariableKind::WellKnown } else { VariableKind::User };
                variables.push(Variable { kind, name: Vec::new(), value: None });
            }
            VALUE if !literal => {
                let variable = variables.last_mut()?;
                if variable.value.is_some() {
                    return None;
                }
                variable.value = Some(Vec::new());
            }
            _ => {
                let variable = variables.last_mut()?;
                let part = variable.value.as_mut().unwrap_or(&mut variable.name);
                if part.len() < VARIABLE_BYTES {
                    part.push(octet);
                }
            }
        }
    }
    Some(variables)
}

/// Which variables a `SEND` body asks for: kind and name, or kind and nothing for all of a kind. An empty
/// list asks for all.
pub(crate) fn environment_request(body: &[u8]) -> Option<Vec<(VariableKind, Vec<u8>)>> {
    let (&SEND, names) = body.split_first()? else { return None };
    let mut as_values = vec![IS];
    as_values.extend_from_slice(names);
    Some(environment(&as_values)?.into_iter().map(|variable| (variable.kind, variable.name)).collect())
}

/// Appends `IS` and those of `variables` that `request` asks for.
pub(crate) fn write_environment(
    body: &mut Vec<u8>,
    request: &[(VariableKind, Vec<u8>)],
    variables: &[Variable],
) {
    body.push(IS);
    let wanted = |variable: &&Variable| {
        request.is_empty()
            || request
                .iter()
                .any(|(kind, name)| *kind == variable.kind && (name.is_empty() || *name == variable.name))
    };
    for variable in variables.iter().filter(wanted).take(ENVIRONMENT_VARIABLES) {
        body.push(if variable.kind == VariableKind::WellKnown { VARIABLE } else { USER_VARIABLE });
        write_escaped(body, &variable.name);
        if let Some(value) = &variable.value {
            body.push(VALUE);
            write_escaped(body, value);
        }
    }
}

/// Appends `SEND` and the name of one user variable.
pub(crate) fn write_environment_request(body: &mut Vec<u8>, name: &[u8]) {
    body.extend_from_slice(&[SEND, USER_VARIABLE]);
    write_escaped(body, name);
}

fn write_escaped(body: &mut Vec<u8>, text: &[u8]) {
    for &octet in text.iter().take(VARIABLE_BYTES) {
        if octet <= USER_VARIABLE {
            body.push(ESCAPE);
        }
        body.push(octet);
    }
}

/// The entries of a STATUS `IS` body. Octets after SE are doubled inside (RFC 859), and what is nested in
/// `SB … SE` is skipped. At most one entry for each side of each code.
pub(crate) fn status(body: &[u8]) -> Option<Vec<StatusEntry>> {
    let (&IS, mut rest) = body.split_first()? else { return None };
    let mut entries = Vec::new();
    while let [verb, code, after @ ..] = rest {
        rest = after;
        let (side, active) = match *verb {
            WILL => (Side::Remote, true),
            WONT => (Side::Remote, false),
            DO => (Side::Local, true),
            DONT => (Side::Local, false),
            _ => {
                let end = rest.iter().position(|&octet| octet == SE)?;
                rest = rest.get(end + 1..)?;
                continue;
            }
        };
        if entries.len() < 512 {
            entries.push(StatusEntry { side, code: *code, active });
        }
    }
    Some(entries)
}

/// `IAC SB option body IAC SE`, with IAC doubled.
pub(crate) fn framed(option: TelnetOption, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![IAC, super::command::SB, option.code()];
    for &octet in body {
        bytes.push(octet);
        if octet == IAC {
            bytes.push(IAC);
        }
    }
    bytes.extend_from_slice(&[IAC, SE]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_names_are_validated() {
        assert_eq!(terminal_name(b"\0XTERM-256COLOR").as_deref(), Some("xterm-256color"));
        assert_eq!(terminal_name(b"\0IBM-3278-2-E@LU01").as_deref(), Some("ibm-3278-2-e@lu01"));
        for bad in [&b""[..], b"\0", b"\x01vt100", b"\0vt 100", b"\0vt\xff", b"\0a;rm", &[b'a'; 60]] {
            assert_eq!(terminal_name(bad), None);
        }
    }

    #[test]
    fn sizes_and_speeds() {
        assert_eq!(window_size(&[0, 80, 0, 255]), Some((80, 255)));
        assert_eq!(window_size(&[0, 80, 0]), None);
        assert_eq!(terminal_speed(b"\x0038400,19200"), Some((38400, 19200)));
        for bad in [&b"\x009600"[..], b"\x00,", b"\x00+1,2", b"\x0099999999999,1", b"\x019600,9600"] {
            assert_eq!(terminal_speed(bad), None);
        }
        assert_eq!(flow_control(&[3]), Some(FlowControl::RestartXon));
        assert_eq!(flow_control(&[4]), None);
    }

    /// spec: RFC1572
    #[test]
    fn variables_go_both_ways() {
        let variables = vec![
            Variable {
                kind: VariableKind::WellKnown,
                name: b"USER".to_vec(),
                value: Some(b"a\x01\x02b".to_vec()),
            },
            Variable { kind: VariableKind::User, name: b"L\x03".to_vec(), value: None },
            Variable { kind: VariableKind::User, name: b"EMPTY".to_vec(), value: Some(Vec::new()) },
        ];
        let mut body = Vec::new();
        write_environment(&mut body, &[], &variables);
        assert_eq!(environment(&body), Some(variables.clone()));
        let mut body = Vec::new();
        write_environment_request(&mut body, b"EMPTY");
        let request = environment_request(&body).unwrap();
        let mut body = Vec::new();
        write_environment(&mut body, &request, &variables);
        assert_eq!(environment(&body), Some(variables[2..].to_vec()));
        assert_eq!(environment(b"\0\x01value first"), None);
        assert_eq!(environment(b"\0\0A\x02"), None, "an escape of nothing");
    }

    /// spec: RFC859
    #[test]
    fn status_reports() {
        let body = [IS, WILL, 1, DO, 3, 250, 24, 0, b'x', SE, DONT, 31, WONT];
        let entries = status(&body).unwrap();
        assert_eq!(entries.len(), 3);
        assert_eq!(entries[0], StatusEntry { side: Side::Remote, code: 1, active: true });
        assert_eq!(entries[1], StatusEntry { side: Side::Local, code: 3, active: true });
        assert_eq!(entries[2], StatusEntry { side: Side::Local, code: 31, active: false });
    }
}
