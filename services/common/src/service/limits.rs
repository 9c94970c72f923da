//! `[SERVICE.limits]` of `host.toml`: how many TCP callers a service takes.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use super::Problem;
use crate::AdmissionLimits;

/// `[SERVICE.limits]` of `host.toml`. A key that is absent takes the service's default.
///
/// ```
/// use inhost_common::AdmissionLimits;
/// use inhost_common::service::Limits;
/// let mut limits = Limits::default();
/// limits.sessions = Some(4);
/// let limits = limits.or("telnet", AdmissionLimits::per_minute(32, 8, 60))?;
/// assert_eq!((limits.sessions, limits.sessions_per_peer, limits.connections_per_window), (4, 4, 60));
/// # Ok::<(), inhost_common::service::Problem>(())
/// ```
#[derive(Deserialize, Serialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// Sessions at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<usize>,
    /// Sessions of one peer at a time. A peer is an IPv4 address or an IPv6 /64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions_per_peer: Option<usize>,
    /// Connections of one peer in a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections_per_minute: Option<u32>,
}

impl Limits {
    /// The limits of `service`. A limit that is absent is that of `default`; the default for one peer shrinks to the
    /// number of sessions.
    ///
    /// # Errors
    /// A limit is 0, or one peer may have more sessions than all together.
    pub fn or(&self, service: &str, default: AdmissionLimits) -> Result<AdmissionLimits, Problem> {
        // A new key must be decided on here.
        let Limits { sessions, sessions_per_peer, connections_per_minute } = *self;
        let refused = |key: &str, value: &dyn Display, expected: String| {
            Err(Problem::setting(&format!("{service}.limits.{key}"), value, expected))
        };
        let zeros = [
            ("sessions", sessions == Some(0)),
            ("sessions_per_peer", sessions_per_peer == Some(0)),
            ("connections_per_minute", connections_per_minute == Some(0)),
        ];
        if let Some((key, _)) = zeros.iter().find(|(_, is_zero)| *is_zero) {
            return refused(
                key,
                &0,
                format!("give 1 or more; {service}.enabled = false turns the service off"),
            );
        }
        let sessions = sessions.unwrap_or(default.sessions);
        if let Some(own) = sessions_per_peer.filter(|own| *own > sessions) {
            let expected = format!("{service}.limits.sessions is {sessions}; one peer cannot have more");
            return refused("sessions_per_peer", &own, expected);
        }
        Ok(AdmissionLimits::per_minute(
            sessions,
            sessions_per_peer.unwrap_or(default.sessions_per_peer.min(sessions)),
            connections_per_minute.unwrap_or(default.connections_per_window),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: AdmissionLimits = AdmissionLimits::per_minute(32, 8, 60);

    fn limits(sessions: Option<usize>, sessions_per_peer: Option<usize>, minute: Option<u32>) -> Limits {
        Limits { sessions, sessions_per_peer, connections_per_minute: minute }
    }

    #[test]
    fn what_is_absent_is_the_default() {
        let or = |limits: Limits| limits.or("ftp", DEFAULT).unwrap();
        assert_eq!(or(Limits::default()), DEFAULT);
        assert_eq!(or(limits(None, Some(32), None)), AdmissionLimits::per_minute(32, 32, 60));
        assert_eq!(or(limits(Some(100), None, Some(1))), AdmissionLimits::per_minute(100, 8, 1));
        assert_eq!(or(limits(Some(1), None, None)), AdmissionLimits::per_minute(1, 1, 60));
    }

    #[test]
    fn zeros_and_contradictions_are_refused() {
        let why = |limits: Limits| limits.or("ftp", DEFAULT).unwrap_err().to_string();
        assert_eq!(
            why(limits(Some(0), None, None)),
            "ftp.limits.sessions = \"0\": give 1 or more; ftp.enabled = false turns the service off"
        );
        assert!(why(limits(None, Some(0), None)).starts_with("ftp.limits.sessions_per_peer = "));
        assert!(why(limits(None, None, Some(0))).starts_with("ftp.limits.connections_per_minute = "));
        assert_eq!(
            why(limits(None, Some(33), None)),
            "ftp.limits.sessions_per_peer = \"33\": ftp.limits.sessions is 32; one peer cannot have more"
        );
        assert!(why(limits(Some(7), Some(8), None)).contains("ftp.limits.sessions is 7"));
    }
}
