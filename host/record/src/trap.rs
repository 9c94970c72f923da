//! Traps: when what is recorded is written.

use std::fmt;
use std::str::FromStr;

use inhost_base::{Endpoint, IpAddr};
use inhost_event::SendCause;

use crate::ends::Selection;

/// What a trap waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Condition {
    /// A frame.
    Frame,
    /// Data is sent again.
    Retransmission,
    /// A segment says that its sender's window is 0.
    ZeroWindow,
    /// A received frame has a wrong checksum.
    BadChecksum,
    /// A connection is reset.
    Reset,
    /// A cause has more than this share of a connection's time of sending, in per cent.
    Share(SendCause, u8),
}

/// A trap: a condition, and of whom. It is written `reset port 80 host 10.9.0.2`.
///
/// ```
/// use inhost_record::{Condition, Trap};
/// let trap: Trap = "zero-window port 80".parse()?;
/// assert_eq!(trap.condition, Condition::ZeroWindow);
/// let trap: Trap = "share receivers-window over 50 host 10.9.0.2".parse()?;
/// assert_eq!(trap.to_string(), "share receivers-window over 50 host 10.9.0.2");
/// # Ok::<(), inhost_record::TrapError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trap {
    /// When it springs.
    pub condition: Condition,
    /// From or to this address.
    pub address: Option<IpAddr>,
    /// From or to this port.
    pub port: Option<u16>,
}

impl Trap {
    /// Whether what goes between `one` and `other` is meant.
    pub fn has(&self, one: Endpoint, other: Endpoint) -> bool {
        Selection { address: self.address, port: self.port, connection: None }.has(one, other)
    }
    /// Whether frames have to be looked at for it.
    pub(crate) fn needs_frames(&self) -> bool {
        !matches!(self.condition, Condition::BadChecksum | Condition::Share(..))
    }
}

/// A trap that is not understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrapError {
    /// What is wrong and what would be right.
    pub text: String,
}
impl fmt::Display for TrapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
impl std::error::Error for TrapError {}

impl FromStr for Trap {
    type Err = TrapError;
    fn from_str(text: &str) -> Result<Trap, TrapError> {
        let fail = |text: String| Err(TrapError { text });
        let (first, mut rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let condition = match first {
            "frame" => Condition::Frame,
            "retransmission" => Condition::Retransmission,
            "zero-window" => Condition::ZeroWindow,
            "bad-checksum" => Condition::BadChecksum,
            "reset" => Condition::Reset,
            "share" => {
                let Some((cause, behind)) = rest.split_once(" over ") else {
                    return fail("a share is written as in: share receivers-window over 50".to_owned());
                };
                let cause = cause.trim();
                let Some(&found) = SendCause::ALL.iter().find(|known| known.word() == cause) else {
                    let known: Vec<_> = SendCause::ALL.iter().map(|cause| cause.word()).collect();
                    return fail(format!("{cause:?} is not a cause; there are {}", known.join(", ")));
                };
                let (bound, behind) = behind.trim().split_once(' ').unwrap_or((behind.trim(), ""));
                let Some(bound) = bound.trim_end_matches('%').parse().ok().filter(|&bound: &u8| bound < 100)
                else {
                    return fail(format!("{bound:?} is not a share from 0 to 99 per cent"));
                };
                rest = behind;
                Condition::Share(found, bound)
            }
            other => {
                return fail(format!(
                    "{other:?} is not a condition; there are frame, retransmission, zero-window, bad-checksum, reset \
                     and share CAUSE over PER_CENT"
                ));
            }
        };
        let mut trap = Trap { condition, address: None, port: None };
        let mut words = rest.split_whitespace();
        while let Some(word) = words.next() {
            match (word, words.next()) {
                ("host", Some(address)) => match address.parse() {
                    Ok(address) => trap.address = Some(address),
                    Err(_) => return fail(format!("{address:?} is not an IP address")),
                },
                ("port", Some(port)) => match port.parse() {
                    Ok(port) => trap.port = Some(port),
                    Err(_) => return fail(format!("{port:?} is not a port up to 65535")),
                },
                ("host" | "port", None) => return fail(format!("{word} has nothing behind it")),
                _ => return fail(format!("{word:?} is not understood; give host ADDRESS or port NUMBER")),
            }
        }
        Ok(trap)
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.condition {
            Condition::Frame => f.write_str("frame")?,
            Condition::Retransmission => f.write_str("retransmission")?,
            Condition::ZeroWindow => f.write_str("zero-window")?,
            Condition::BadChecksum => f.write_str("bad-checksum")?,
            Condition::Reset => f.write_str("reset")?,
            Condition::Share(cause, bound) => write!(f, "share {} over {bound}", cause.word())?,
        }
        if let Some(address) = self.address {
            write!(f, " host {address}")?;
        }
        if let Some(port) = self.port {
            write!(f, " port {port}")?;
        }
        Ok(())
    }
}
