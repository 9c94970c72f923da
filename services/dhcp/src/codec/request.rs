//! Writing what a client says (RFC 2131 §4.4, table 5).

use dhcproto::v4::{DhcpOption, Flags, Message, MessageType, OptionCode};
use dhcproto::{Encodable, Encoder};
use inhost_base::{HardwareAddress, Ipv4Addr};

/// Minimum message size of BOOTP (RFC 1542 §2.1).
const LEAST_BYTES: usize = 300;

/// The requesting client and its exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub card: HardwareAddress,
    pub identifier: &'a [u8],
    /// Host name for servers that update the DNS (RFC 2132 §3.14).
    pub host_name: Option<&'a str>,
    /// The longest datagram that is taken (RFC 2132 §9.10).
    pub longest_bytes: u16,
    pub transaction: u32,
    /// Time since the exchange began.
    pub seconds: u16,
}

/// The message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    /// DHCPDISCOVER, with an optional requested address.
    Discover { wanted: Option<Ipv4Addr> },
    /// I take this offer.
    Select { server: Ipv4Addr, address: Ipv4Addr },
    /// I had this address: may I still have it?
    Reboot { address: Ipv4Addr },
    /// I have this address, and want it longer. Said to its server, or to all.
    Extend { address: Ipv4Addr },
    /// Somebody else uses this address.
    Decline { server: Ipv4Addr, address: Ipv4Addr },
    /// I need this address no longer.
    Release { server: Ipv4Addr, address: Ipv4Addr },
}

impl Request {
    /// The datagram; empty when it cannot be written, which the sizes here exclude.
    pub fn write(self, asker: &Asker<'_>) -> Vec<u8> {
        let Asker { card, identifier, host_name, longest_bytes, transaction, seconds } = *asker;
        let none = Ipv4Addr::UNSPECIFIED;
        let (kind, own, wanted, server) = match self {
            Request::Discover { wanted } => (MessageType::Discover, none, wanted, None),
            Request::Select { server, address } => (MessageType::Request, none, Some(address), Some(server)),
            Request::Reboot { address } => (MessageType::Request, none, Some(address), None),
            Request::Extend { address } => (MessageType::Request, address, None, None),
            Request::Decline { server, address } => (MessageType::Decline, none, Some(address), Some(server)),
            Request::Release { server, address } => (MessageType::Release, address, None, Some(server)),
        };
        let mut message = Message::new_with_id(transaction, own, none, none, none, &card.0);
        let is_question = !matches!(kind, MessageType::Decline | MessageType::Release);
        if is_question {
            message.set_secs(seconds);
        }
        // A host without an address receives broadcasts only (RFC 2131 §4.1).
        if own.is_unspecified() && is_question {
            message.set_flags(Flags::default().set_broadcast());
        }
        let options = message.opts_mut();
        options.insert(DhcpOption::MessageType(kind));
        options.insert(DhcpOption::ClientIdentifier(identifier.to_vec()));
        if let Some(wanted) = wanted {
            options.insert(DhcpOption::RequestedIpAddress(wanted));
        }
        if let Some(server) = server {
            options.insert(DhcpOption::ServerIdentifier(server));
        }
        // RFC 4039 §3.1: who sends its only message here may be answered with a lease at once.
        if kind == MessageType::Discover {
            options.insert(DhcpOption::RapidCommit);
        }
        if is_question {
            if let Some(name) = host_name {
                options.insert(DhcpOption::Hostname(name.to_owned()));
            }
            options.insert(DhcpOption::MaxMessageSize(longest_bytes));
            options.insert(DhcpOption::ParameterRequestList(ASKED_FOR.to_vec()));
        }
        let mut bytes = Vec::with_capacity(LEAST_BYTES);
        if message.encode(&mut Encoder::new(&mut bytes)).is_err() {
            bytes.clear();
        }
        bytes.resize(bytes.len().max(LEAST_BYTES), 0);
        bytes
    }
}

/// Configuration that comes with a lease. Routes of any length stand before the others (RFC 3442).
const ASKED_FOR: [OptionCode; 9] = [
    OptionCode::SubnetMask,
    OptionCode::ClasslessStaticRoute,
    OptionCode::StaticRoutingTable,
    OptionCode::Router,
    OptionCode::DomainNameServer,
    OptionCode::DomainName,
    OptionCode::DomainSearch,
    OptionCode::InterfaceMtu,
    OptionCode::Renewal,
];

#[cfg(test)]
mod tests {
    use super::*;
    use dhcproto::{Decodable, Decoder};

    fn read(request: Request) -> Message {
        let asker = Asker {
            card: HardwareAddress([2, 0, 0, 0, 0, 1]),
            identifier: &[255, 1, 2, 3, 4, 0, 3, 0, 1, 9],
            host_name: Some("ada"),
            longest_bytes: 1500,
            transaction: 0x0102_0304,
            seconds: 7,
        };
        let bytes = request.write(&asker);
        assert_eq!(bytes.len(), LEAST_BYTES);
        Message::decode(&mut Decoder::new(&bytes)).unwrap()
    }

    // RFC 2131 §4.4.1, table 5
    #[test]
    fn each_request_says_what_the_table_asks_and_nothing_that_it_forbids() {
        let (server, address) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 9));
        let none = Ipv4Addr::UNSPECIFIED;
        // Request, ciaddr, broadcast, seconds, requested address, server identifier, parameter list.
        let table = [
            (Request::Discover { wanted: None }, none, true, 7, false, false, true),
            (Request::Discover { wanted: Some(address) }, none, true, 7, true, false, true),
            (Request::Select { server, address }, none, true, 7, true, true, true),
            (Request::Reboot { address }, none, true, 7, true, false, true),
            (Request::Extend { address }, address, false, 7, false, false, true),
            (Request::Decline { server, address }, none, false, 0, true, true, false),
            (Request::Release { server, address }, address, false, 0, false, true, false),
        ];
        for (request, own, broadcast, seconds, wanted, server, list) in table {
            let message = read(request);
            assert_eq!(
                (message.ciaddr(), message.flags().broadcast(), message.secs()),
                (own, broadcast, seconds)
            );
            assert_eq!((message.xid(), message.chaddr()), (0x0102_0304, &[2, 0, 0, 0, 0, 1][..]));
            let has = |code| message.opts().get(code).is_some();
            assert_eq!(has(OptionCode::RequestedIpAddress), wanted, "{request:?}");
            assert_eq!(has(OptionCode::ServerIdentifier), server, "{request:?}");
            assert_eq!(has(OptionCode::ParameterRequestList), list, "{request:?}");
            assert_eq!(has(OptionCode::Hostname), list, "{request:?}");
            assert_eq!(has(OptionCode::RapidCommit), matches!(request, Request::Discover { .. }));
            // RFC 4361 §6.1: the identifier is in every message, the same each time.
            assert!(has(OptionCode::ClientIdentifier));
        }
    }
}
