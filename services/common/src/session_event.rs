//! What services say of their sessions in the log, in the same words.

use inhost_base::IpAddr;

use crate::Refusal;

/// A log event that sessions of every service have. It contains no passwords.
///
/// [`session_log!`](crate::session_log) writes them to the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionEvent<'a> {
    /// A connection was turned away.
    Refused {
        /// From where.
        peer: IpAddr,
        /// Why.
        refusal: Refusal,
    },
    /// A session began.
    Opened {
        /// From where.
        peer: IpAddr,
    },
    /// A name or password was wrong.
    Denied {
        /// From where.
        peer: IpAddr,
        /// The name that was tried; it may contain anything that a person can type.
        user: &'a str,
    },
    /// A password could not be verified.
    Unavailable {
        /// Why.
        reason: &'a str,
    },
    /// A user logged in.
    LoggedIn {
        /// From where.
        peer: IpAddr,
        /// Who.
        user: &'a str,
    },
    /// A session ended.
    Closed {
        /// From where.
        peer: IpAddr,
        /// The user, if logged in.
        user: Option<&'a str>,
        /// Why; `None` when the connection was lost.
        why: Option<&'a str>,
    },
}

/// A `fn(SessionEvent<'_>)` that writes one line of the log for each event. The argument is the service's name, which is
/// the target of the lines. What a caller said is a field: it is quoted and its control octets are escaped.
///
/// ```
/// use inhost_common::{SessionEvent, session_log};
/// const LOG: fn(SessionEvent<'_>) = session_log!("telnet");
/// LOG(SessionEvent::Opened { peer: [192, 0, 2, 9].into() });
/// ```
#[macro_export]
macro_rules! session_log {
    ($service:expr) => {
        |event: $crate::SessionEvent<'_>| {
            use $crate::SessionEvent;
            use $crate::tracing::{error, info, warn};
            match event {
                SessionEvent::Refused { peer, refusal } => {
                    info!(target: $service, %peer, "refused: {refusal}")
                }
                SessionEvent::Opened { peer } => info!(target: $service, %peer, "connected"),
                SessionEvent::Denied { peer, user } => {
                    warn!(target: $service, %peer, user, "wrong password")
                }
                SessionEvent::Unavailable { reason } => {
                    error!(target: $service, "no password can be checked: {reason}")
                }
                SessionEvent::LoggedIn { peer, user } => {
                    info!(target: $service, %peer, user, "logged in")
                }
                SessionEvent::Closed { peer, user, why } => {
                    let why = why.unwrap_or("connection lost");
                    info!(target: $service, %peer, user, "ended: {why}")
                }
            }
        }
    };
}
