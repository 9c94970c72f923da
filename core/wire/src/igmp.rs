//! The Internet Group Management Protocol, version 2 (RFC 2236), with the messages of version 1 and the queries of
//! version 3 understood.
//!
//! Every message is sent with a time to live of 1 and a router alert ([`crate::ipv4::ROUTER_ALERT`]).

use crate::Malformed;
use crate::checksum::Sum;
use crate::cursor::{Reader, Writer};
use inhost_base::{Duration, Ipv4Addr};

/// Bytes of a message of version 2.
pub const LENGTH: usize = 8;
/// The time to live of every message.
pub const TIME_TO_LIVE: u8 = 1;

/// Queries of this length and more are of version 3 (RFC 3376 §7.1).
const VERSION_3_QUERY_BYTES: usize = 12;

const QUERY: u8 = 0x11;
const REPORT_V1: u8 = 0x12;
const REPORT_V2: u8 = 0x16;
const LEAVE: u8 = 0x17;

/// Version of the querier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueryVersion {
    /// RFC 1112: the response code is 0, and answers are due within 10 seconds.
    V1,
    /// RFC 2236.
    V2,
    /// RFC 3376; its source list is not read.
    V3,
}

/// A message in place; its checksum is asked for apart.
#[derive(Clone, Copy, Debug)]
pub struct IgmpView<'a>(&'a [u8]);

impl<'a> IgmpView<'a> {
    /// The payload of an IPv4 packet.
    pub fn new(message: &'a [u8]) -> Result<Self, Malformed> {
        if message.len() < LENGTH { Err(Malformed::Truncated) } else { Ok(IgmpView(message)) }
    }
    /// Whether the checksum over the whole payload is right.
    // spec: RFC2236 2.3
    pub fn checksum_ok(&self) -> bool {
        Sum::of(self.0).is_valid()
    }
}

/// The message as a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IgmpMessage {
    /// A router asks who is a member.
    Query {
        /// Version of the querier.
        version: QueryVersion,
        /// Of this group; unspecified asks about all.
        group: Ipv4Addr,
        /// The maximum response code as sent; see [`IgmpMessage::max_response`].
        max_response_code: u8,
    },
    /// Somebody is a member, and speaks version 1.
    ReportV1 {
        /// Of this group.
        group: Ipv4Addr,
    },
    /// Somebody is a member.
    Report {
        /// Of this group.
        group: Ipv4Addr,
    },
    /// Somebody is a member no longer.
    Leave {
        /// Of this group.
        group: Ipv4Addr,
    },
}

impl IgmpMessage {
    /// The message that `view` shows; an error when its type is not known (RFC 2236 §2.1 ignores such), or its group is
    /// no multicast address. Bytes beyond the known fields are ignored.
    pub fn parse(view: &IgmpView<'_>) -> Result<Self, Malformed> {
        let mut r = Reader::new(view.0);
        let kind = r.u8().ok_or(Malformed::Truncated)?;
        let max_response_code = r.u8().ok_or(Malformed::Truncated)?;
        r.u16().ok_or(Malformed::Truncated)?;
        let group = r.ipv4().ok_or(Malformed::Truncated)?;
        let asks_all = kind == QUERY && group.is_unspecified();
        if !group.is_multicast() && !asks_all {
            return Err(Malformed::Value);
        }
        // spec: RFC3376 7.1
        let version = match max_response_code {
            _ if view.0.len() >= VERSION_3_QUERY_BYTES => QueryVersion::V3,
            0 => QueryVersion::V1,
            _ => QueryVersion::V2,
        };
        match kind {
            QUERY => Ok(IgmpMessage::Query { version, group, max_response_code }),
            REPORT_V1 => Ok(IgmpMessage::ReportV1 { group }),
            REPORT_V2 => Ok(IgmpMessage::Report { group }),
            LEAVE => Ok(IgmpMessage::Leave { group }),
            _ => Err(Malformed::Value),
        }
    }

    /// The time within which a query wants its answers; zero for other messages.
    // spec: RFC2236 2.2, 4
    // spec: RFC3376 4.1.1
    pub fn max_response(&self) -> Duration {
        let IgmpMessage::Query { version, max_response_code, .. } = *self else { return Duration::ZERO };
        let code = u64::from(max_response_code);
        let tenths = match version {
            QueryVersion::V1 => 100,
            QueryVersion::V3 if code >= 0x80 => ((code & 0xf) | 0x10) << ((code >> 4 & 7) + 3),
            QueryVersion::V2 | QueryVersion::V3 => code,
        };
        Duration::from_millis(100 * tenths)
    }

    /// Bytes that [`IgmpMessage::emit`] writes.
    pub fn length(&self) -> usize {
        match self {
            IgmpMessage::Query { version: QueryVersion::V3, .. } => VERSION_3_QUERY_BYTES,
            _ => LENGTH,
        }
    }

    /// Writes the message with its checksum; its length, or 0 when `buffer` is too short. A query of version 1
    /// is sent with a response code of 0.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let mut w = Writer::new(buffer);
        match *self {
            IgmpMessage::Query { version, group, max_response_code } => {
                let code = if version == QueryVersion::V1 { 0 } else { max_response_code };
                w.u8(QUERY).u8(code).u16(0).ipv4(group);
                if version == QueryVersion::V3 {
                    w.u32(0);
                }
            }
            IgmpMessage::ReportV1 { group } => {
                w.u8(REPORT_V1).u8(0).u16(0).ipv4(group);
            }
            IgmpMessage::Report { group } => {
                w.u8(REPORT_V2).u8(0).u16(0).ipv4(group);
            }
            IgmpMessage::Leave { group } => {
                w.u8(LEAVE).u8(0).u16(0).ipv4(group);
            }
        }
        let checksum = Sum::of(w.written()).finish();
        w.patch_u16(2, checksum).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);

    #[test]
    fn every_message_survives_the_wire() {
        // spec: RFC2236 2
        let query =
            |version, group, max_response_code| IgmpMessage::Query { version, group, max_response_code };
        for message in [
            query(QueryVersion::V1, Ipv4Addr::UNSPECIFIED, 0),
            query(QueryVersion::V2, GROUP, 100),
            query(QueryVersion::V3, GROUP, 0xff),
            IgmpMessage::ReportV1 { group: GROUP },
            IgmpMessage::Report { group: GROUP },
            IgmpMessage::Leave { group: GROUP },
        ] {
            let mut buffer = [0; 12];
            let length = message.emit(&mut buffer);
            assert_eq!(length, message.length());
            let view = IgmpView::new(&buffer[..length]).unwrap();
            assert!(view.checksum_ok());
            assert_eq!(IgmpMessage::parse(&view), Ok(message));
            assert_eq!(message.emit(&mut buffer[..length - 1]), 0);
        }
    }

    #[test]
    fn a_real_report() {
        let bytes = [0x16, 0, 0x09, 0x04, 224, 0, 0, 251];
        let view = IgmpView::new(&bytes).unwrap();
        assert!(view.checksum_ok());
        assert_eq!(IgmpMessage::parse(&view), Ok(IgmpMessage::Report { group: GROUP }));
    }

    #[test]
    fn response_times_are_read_by_version() {
        let query = |version, max_response_code| {
            IgmpMessage::Query { version, group: GROUP, max_response_code }.max_response()
        };
        // spec: RFC2236 4
        assert_eq!(query(QueryVersion::V1, 0), Duration::from_secs(10));
        assert_eq!(query(QueryVersion::V2, 255), Duration::from_millis(25_500));
        // spec: RFC3376 4.1.1
        assert_eq!(query(QueryVersion::V3, 0x7f), Duration::from_millis(12_700));
        assert_eq!(query(QueryVersion::V3, 0xff), Duration::from_millis(3_174_400));
    }

    #[test]
    fn other_messages_are_refused() {
        let parse = |bytes: &[u8]| IgmpView::new(bytes).and_then(|view| IgmpMessage::parse(&view));
        assert_eq!(parse(&[0x22, 0, 0, 0, 224, 0, 0, 1]), Err(Malformed::Value));
        assert_eq!(parse(&[0x16, 0, 0, 0, 10, 0, 0, 1]), Err(Malformed::Value));
        assert_eq!(parse(&[0x16, 0, 0, 0, 0, 0, 0, 0]), Err(Malformed::Value));
        assert_eq!(parse(&[0x11, 0, 0, 0, 224, 0, 0]), Err(Malformed::Truncated));
    }
}
