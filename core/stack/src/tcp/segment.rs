//! The sizes of segments, as they follow from a path, and the addresses that TCP talks to.

use inhost_base::{IpAddr, Ipv4Addr};
use inhost_ip::Path;

/// The MSS of a peer without an MSS option (RFC 9293 §3.7.1).
// spec: RFC9293 MUST-15
const DEFAULT_MSS_V4: u16 = 536;
const DEFAULT_MSS_V6: u16 = 1220;

/// The MSS of a peer at `remote` without an MSS option.
pub(crate) fn default_mss(remote: IpAddr) -> u16 {
    if remote.is_ipv4() { DEFAULT_MSS_V4 } else { DEFAULT_MSS_V6 }
}

/// The largest payload of a segment without options (RFC 9293 §3.7.1, RFC 6691).
// spec: RFC9293 MUST-67, SHLD-6; RFC1122 3.3.2-3
// spec: RFC4821 5.1-1
pub(crate) fn segment_limit(path: &Path) -> u16 {
    path.payload_limit_bytes().saturating_sub(inhost_wire::tcp::LENGTH) as u16
}

/// Whether an address can be one end of a TCP connection.
pub(crate) fn can_talk(address: IpAddr) -> bool {
    !address.is_unspecified() && !address.is_multicast() && address != IpAddr::V4(Ipv4Addr::BROADCAST)
}
