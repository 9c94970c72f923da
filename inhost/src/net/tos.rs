//! The octet of differentiated services and ECN, which IPv6 calls the traffic class.

use std::io;

use inhost_stack::Ecn;

/// Six bits of differentiated services (RFC 2474 §3) and two of ECN (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tos(pub(super) u8);

impl Tos {
    /// Of what a caller gives.
    pub(super) fn of(octet: u32) -> io::Result<Tos> {
        let octet = u8::try_from(octet);
        octet.map(Tos).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "an octet is up to 255"))
    }
    /// Of six bits of differentiated services, without ECN.
    pub(super) fn of_services(services: u8) -> Tos {
        Tos(services << 2)
    }
    /// The six bits of differentiated services.
    pub(super) fn services(self) -> u8 {
        self.0 >> 2
    }
    /// The two bits of ECN.
    pub(super) fn ecn(self) -> Ecn {
        Ecn::of(self.0)
    }
}
