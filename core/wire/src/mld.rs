//! Multicast listener discovery, version 1 (RFC 2710), with the queries of version 2 understood (RFC 3810 §5.1).
//!
//! The messages travel in ICMPv6, with a hop limit of 1, from a link-local address, behind a router alert
//! ([`crate::ipv6::emit_mld_hop_by_hop`]).

use crate::Malformed;
use crate::cursor::{Reader, Writer};
use inhost_base::{Duration, Ipv6Addr};

/// The hop limit of every message.
pub const HOP_LIMIT: u8 = 1;

const QUERY: u8 = 130;
const REPORT: u8 = 131;
const DONE: u8 = 132;

/// A query of version 2 is at least this much longer than one of version 1, which has 20 bytes after the checksum.
const VERSION_2_BODY_BYTES: usize = 24;

/// Version of the querier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueryVersion {
    /// RFC 2710.
    V1,
    /// RFC 3810; its source list is not read.
    V2,
}

/// The message as a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MldMessage {
    /// A router asks who listens.
    Query {
        /// Version of the querier.
        version: QueryVersion,
        /// To this group; unspecified asks about all.
        group: Ipv6Addr,
        /// The maximum response code as sent; see [`MldMessage::max_response`].
        max_response_code: u16,
    },
    /// Somebody listens to the group.
    Report {
        /// Which.
        group: Ipv6Addr,
    },
    /// Somebody no longer listens to the group.
    Done {
        /// Which.
        group: Ipv6Addr,
    },
}

impl MldMessage {
    /// The message of ICMPv6 type `kind`, 130 to 132, whose bytes after the checksum are `body`. Bytes beyond the known
    /// fields are ignored.
    // spec: RFC2710 3
    pub fn parse(kind: u8, body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let max_response_code = r.u16().ok_or(Malformed::Truncated)?;
        r.u16().ok_or(Malformed::Truncated)?;
        let group = r.ipv6().ok_or(Malformed::Truncated)?;
        if kind != QUERY && !group.is_multicast() || !group.is_multicast() && !group.is_unspecified() {
            return Err(Malformed::Value);
        }
        let version = if body.len() >= VERSION_2_BODY_BYTES { QueryVersion::V2 } else { QueryVersion::V1 };
        match kind {
            QUERY => Ok(MldMessage::Query { version, group, max_response_code }),
            REPORT => Ok(MldMessage::Report { group }),
            DONE => Ok(MldMessage::Done { group }),
            _ => Err(Malformed::Value),
        }
    }

    /// The time within which a query wants its answers; zero for other messages.
    // spec: RFC3810 5.1.3
    pub fn max_response(&self) -> Duration {
        let MldMessage::Query { version, max_response_code, .. } = *self else { return Duration::ZERO };
        let code = u64::from(max_response_code);
        match version {
            QueryVersion::V2 if code >= 0x8000 => {
                let (exponent, mantissa) = (code >> 12 & 7, code & 0xfff);
                Duration::from_millis((mantissa | 0x1000) << (exponent + 3))
            }
            _ => Duration::from_millis(code),
        }
    }

    /// The ICMPv6 type.
    pub fn kind(&self) -> u8 {
        match self {
            MldMessage::Query { .. } => QUERY,
            MldMessage::Report { .. } => REPORT,
            MldMessage::Done { .. } => DONE,
        }
    }

    /// Bytes after the checksum.
    pub(crate) fn body_length(&self) -> usize {
        match self {
            MldMessage::Query { version: QueryVersion::V2, .. } => VERSION_2_BODY_BYTES,
            _ => 20,
        }
    }

    pub(crate) fn write_body(&self, w: &mut Writer<'_>) {
        match *self {
            MldMessage::Query { version, group, max_response_code } => {
                w.u16(max_response_code).u16(0).ipv6(group);
                if version == QueryVersion::V2 {
                    // Robustness, interval and sources are left to the querier's defaults.
                    w.u32(0);
                }
            }
            MldMessage::Report { group } | MldMessage::Done { group } => {
                w.u32(0).ipv6(group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::icmpv6::{Icmpv6Message, Icmpv6View};

    const GROUP: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 3);
    const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

    #[test]
    fn every_message_survives_the_wire() {
        // spec: RFC2710 3
        let query = |version, group| MldMessage::Query { version, group, max_response_code: 10_000 };
        for message in [
            query(QueryVersion::V1, Ipv6Addr::UNSPECIFIED),
            query(QueryVersion::V2, GROUP),
            MldMessage::Report { group: GROUP },
            MldMessage::Done { group: GROUP },
        ] {
            let mut buffer = [0; 28];
            let length = Icmpv6Message::Mld(message).emit(HOST, GROUP, &mut buffer);
            assert_eq!(length, 4 + message.body_length());
            let view = Icmpv6View::new(&buffer[..length]).unwrap();
            assert!(view.checksum_ok(HOST, GROUP));
            assert_eq!(Icmpv6Message::parse(&view), Ok(Icmpv6Message::Mld(message)));
        }
    }

    #[test]
    fn response_times_are_read_by_version() {
        // spec: RFC3810 5.1.3
        let query = |version, max_response_code| {
            MldMessage::Query { version, group: GROUP, max_response_code }.max_response()
        };
        assert_eq!(query(QueryVersion::V1, 0xffff), Duration::from_millis(65_535));
        assert_eq!(query(QueryVersion::V2, 0x7fff), Duration::from_millis(32_767));
        assert_eq!(query(QueryVersion::V2, 0x8000), Duration::from_millis(32_768));
        assert_eq!(query(QueryVersion::V2, 0xffff), Duration::from_millis(8_387_584));
        assert_eq!(MldMessage::Done { group: GROUP }.max_response(), Duration::ZERO);
    }

    #[test]
    fn groups_are_multicast() {
        let mut body = [0; 20];
        assert!(MldMessage::parse(130, &body).is_ok(), "a general query");
        assert_eq!(MldMessage::parse(131, &body), Err(Malformed::Value));
        body[4] = 0xfe;
        assert_eq!(MldMessage::parse(130, &body), Err(Malformed::Value));
        assert_eq!(MldMessage::parse(130, &body[..19]), Err(Malformed::Truncated));
    }
}
