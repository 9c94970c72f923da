//! TN3270E: the subnegotiations of its option, and the header of each record (RFC 2355).

use core::fmt;

/// The code of the Telnet option.
pub const TN3270E: u8 = 40;

/// Octets of a device type or of a device name that are taken.
const NAME_BYTES: usize = 40;

const ASSOCIATE: u8 = 0;
const CONNECT: u8 = 1;
const DEVICE_TYPE: u8 = 2;
const FUNCTIONS: u8 = 3;
const IS: u8 = 4;
const REASON: u8 = 5;
const REJECT: u8 = 6;
const REQUEST: u8 = 7;
const SEND: u8 = 8;

/// Why a server does not give the device that a client asks for (RFC 2355 §7.1.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DeviceReason {
    /// The terminal with which a printer wants to be associated is not connected.
    ConnectPartner = 0,
    /// The device is in use.
    DeviceInUse = 1,
    /// The association is not one that can be.
    InvalidAssociate = 2,
    /// There is no device of this name.
    InvalidName = 3,
    /// There is no such device type.
    InvalidDeviceType = 4,
    /// The device of this name is of another type.
    TypeNameError = 5,
    /// Something else.
    Unknown = 6,
    /// The request is not supported.
    UnsupportedRequest = 7,
}

impl DeviceReason {
    const ALL: [DeviceReason; 8] = [
        DeviceReason::ConnectPartner,
        DeviceReason::DeviceInUse,
        DeviceReason::InvalidAssociate,
        DeviceReason::InvalidName,
        DeviceReason::InvalidDeviceType,
        DeviceReason::TypeNameError,
        DeviceReason::Unknown,
        DeviceReason::UnsupportedRequest,
    ];
    fn from_octet(octet: u8) -> DeviceReason {
        DeviceReason::ALL.get(usize::from(octet)).copied().unwrap_or(DeviceReason::Unknown)
    }
}

impl fmt::Display for DeviceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceReason::ConnectPartner => "the terminal to associate with is not connected",
            DeviceReason::DeviceInUse => "the device is in use",
            DeviceReason::InvalidAssociate => "the devices cannot be associated",
            DeviceReason::InvalidName => "there is no device of this name",
            DeviceReason::InvalidDeviceType => "the device type is not known",
            DeviceReason::TypeNameError => "the device of this name is of another type",
            DeviceReason::Unknown => "an unknown error",
            DeviceReason::UnsupportedRequest => "the request is not supported",
        })
    }
}

/// An optional function (RFC 2355 §7.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Function {
    /// The server passes BIND and UNBIND on.
    BindImage = 0,
    /// Printers: the 3270 data stream beside SCS.
    DataStreamControl = 1,
    /// Responses to records.
    Responses = 2,
    /// Printers: SCS.
    ScsControlCodes = 3,
    /// The SysReq key.
    SysReq = 4,
}

/// A set of functions. Those that RFC 2355 does not have are not kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Functions(u8);

impl Functions {
    /// None.
    pub const NONE: Functions = Functions(0);
    /// All.
    pub const ALL: Functions = Functions(0x1f);

    /// The set of these.
    pub fn of(functions: &[Function]) -> Functions {
        Functions(functions.iter().fold(0, |bits, function| bits | 1 << *function as u8))
    }
    fn from_octets(octets: &[u8]) -> Functions {
        Functions(octets.iter().filter(|octet| **octet <= 4).fold(0, |bits, octet| bits | 1 << octet))
    }
    fn octets(self) -> impl Iterator<Item = u8> {
        (0..=4).filter(move |octet| self.0 & 1 << octet != 0)
    }
    /// Whether `function` is in it.
    pub fn contains(self, function: Function) -> bool {
        self.0 & 1 << function as u8 != 0
    }
    /// What both have.
    #[must_use]
    pub fn and(self, other: Functions) -> Functions {
        Functions(self.0 & other.0)
    }
}

/// Which device a client asks for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Resource {
    /// The one of this name.
    Connect(String),
    /// The printer of the terminal of this name.
    Associate(String),
}

/// A subnegotiation of the option (RFC 2355 §6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Negotiation {
    /// The server asks for the device type.
    SendDeviceType,
    /// The client names it.
    DeviceTypeRequest {
        /// IBM-3278-2-E, IBM-3287-1, IBM-DYNAMIC …
        device_type: String,
        /// The device that it wants.
        resource: Option<Resource>,
    },
    /// The server gives a device.
    DeviceTypeIs {
        /// Its type.
        device_type: String,
        /// Its name.
        name: Option<String>,
    },
    /// The server refuses.
    DeviceTypeReject(DeviceReason),
    /// Either side proposes functions.
    FunctionsRequest {
        /// Those of RFC 2355.
        functions: Functions,
        /// Whether others were named as well.
        has_others: bool,
    },
    /// Either side agrees to what was proposed.
    FunctionsIs(Functions),
}

impl Negotiation {
    /// Reads a subnegotiation's body, behind the option's code. `None` for one without meaning.
    pub fn parse(body: &[u8]) -> Option<Negotiation> {
        Some(match body {
            [SEND, DEVICE_TYPE] => Negotiation::SendDeviceType,
            [DEVICE_TYPE, REQUEST, rest @ ..] => {
                let (device_type, resource) = named(rest)?;
                let resource = match resource {
                    None => None,
                    Some((CONNECT, name)) => Some(Resource::Connect(name)),
                    Some((_, name)) => Some(Resource::Associate(name)),
                };
                Negotiation::DeviceTypeRequest { device_type, resource }
            }
            [DEVICE_TYPE, IS, rest @ ..] => {
                let (device_type, resource) = named(rest)?;
                Negotiation::DeviceTypeIs { device_type, name: resource.map(|(_, name)| name) }
            }
            [DEVICE_TYPE, REJECT, REASON, code, ..] => {
                Negotiation::DeviceTypeReject(DeviceReason::from_octet(*code))
            }
            [FUNCTIONS, REQUEST, list @ ..] => Negotiation::FunctionsRequest {
                functions: Functions::from_octets(list),
                has_others: list.iter().any(|&octet| octet > 4),
            },
            [FUNCTIONS, IS, list @ ..] => Negotiation::FunctionsIs(Functions::from_octets(list)),
            _ => return None,
        })
    }
    /// The body, behind the option's code.
    pub fn body(&self) -> Vec<u8> {
        let device = |verb: u8, device_type: &str, resource: Option<(u8, &str)>| {
            let mut body = vec![DEVICE_TYPE, verb];
            body.extend_from_slice(device_type.as_bytes());
            if let Some((kind, name)) = resource {
                body.push(kind);
                body.extend_from_slice(name.as_bytes());
            }
            body
        };
        match self {
            Negotiation::SendDeviceType => vec![SEND, DEVICE_TYPE],
            Negotiation::DeviceTypeRequest { device_type, resource } => {
                let resource = resource.as_ref().map(|resource| match resource {
                    Resource::Connect(name) => (CONNECT, &**name),
                    Resource::Associate(name) => (ASSOCIATE, &**name),
                });
                device(REQUEST, device_type, resource)
            }
            Negotiation::DeviceTypeIs { device_type, name } => {
                device(IS, device_type, name.as_ref().map(|name| (CONNECT, &**name)))
            }
            Negotiation::DeviceTypeReject(reason) => vec![DEVICE_TYPE, REJECT, REASON, *reason as u8],
            Negotiation::FunctionsRequest { functions, .. } => {
                [FUNCTIONS, REQUEST].into_iter().chain(functions.octets()).collect()
            }
            Negotiation::FunctionsIs(functions) => {
                [FUNCTIONS, IS].into_iter().chain(functions.octets()).collect()
            }
        }
    }
}

/// A device type, and a device's name with what it is for.
fn named(octets: &[u8]) -> Option<(String, Option<(u8, String)>)> {
    let at = octets.iter().position(|&octet| matches!(octet, CONNECT | ASSOCIATE));
    let (device_type, rest) = octets.split_at(at.unwrap_or(octets.len()));
    let resource = match rest.split_first() {
        Some((&kind, text)) => Some((kind, name(text)?)),
        None => None,
    };
    Some((name(device_type)?, resource))
}

/// Graphic characters of ASCII, from 1 to 40 of them, in upper case.
fn name(octets: &[u8]) -> Option<String> {
    let is_name = (1..=NAME_BYTES).contains(&octets.len()) && octets.iter().all(u8::is_ascii_graphic);
    is_name.then(|| octets.iter().map(|octet| char::from(octet.to_ascii_uppercase())).collect())
}

/// What a record holds (RFC 2355 §8.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DataType {
    /// The 3270 data stream.
    Data3270 = 0,
    /// SNA character stream, for printers.
    Scs = 1,
    /// A response.
    Response = 2,
    /// The BIND of an SNA session.
    BindImage = 3,
    /// Its end.
    Unbind = 4,
    /// NVT text.
    Nvt = 5,
    /// A request, such as one that clears an error condition.
    Request = 6,
    /// The SSCP-LU session, before a BIND or behind SysReq.
    SscpLu = 7,
    /// The end of a print job.
    PrintEoj = 8,
}

impl DataType {
    fn from_octet(octet: u8) -> Option<DataType> {
        use DataType::*;
        [Data3270, Scs, Response, BindImage, Unbind, Nvt, Request, SscpLu, PrintEoj]
            .get(usize::from(octet))
            .copied()
    }
}

/// Response flag of data: none is wanted.
pub const RESPONSE_NONE: u8 = 0;
/// Response flag of data: one is wanted on an error.
pub const RESPONSE_ERROR: u8 = 1;
/// Response flag of data: one is always wanted.
pub const RESPONSE_ALWAYS: u8 = 2;
/// Response flag of a response: positive.
pub const RESPONSE_POSITIVE: u8 = 0;
/// Response flag of a response: negative.
pub const RESPONSE_NEGATIVE: u8 = 1;

/// The header of a record (RFC 2355 §8.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// What follows.
    pub data_type: DataType,
    /// 0, but for [`DataType::Request`].
    pub request: u8,
    /// Whether a response is wanted, or how one is.
    pub response: u8,
    /// The number of the record, or of the one that is responded to.
    pub sequence: u16,
}

impl Header {
    /// Octets of a header.
    pub const BYTES: usize = 5;

    /// A header of data for which no response is wanted.
    pub fn new(data_type: DataType) -> Header {
        Header { data_type, request: 0, response: RESPONSE_NONE, sequence: 0 }
    }
    /// Splits a record into header and data. `None` for one that is shorter, or of an unknown type.
    pub fn parse(record: &[u8]) -> Option<(Header, &[u8])> {
        let (&[data_type, request, response, high, low], data) = record.split_first_chunk()?;
        let data_type = DataType::from_octet(data_type)?;
        Some((Header { data_type, request, response, sequence: u16::from_be_bytes([high, low]) }, data))
    }
    /// The octets.
    pub fn octets(self) -> [u8; Header::BYTES] {
        let [high, low] = self.sequence.to_be_bytes();
        [self.data_type as u8, self.request, self.response, high, low]
    }
}

/// What a negative response says (RFC 2355 §10.4.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sense {
    /// The command or the device's function is not supported.
    CommandReject = 0,
    /// The printer needs somebody: paper is out.
    InterventionRequired = 1,
    /// An order or an address cannot be executed.
    OperationCheck = 2,
    /// The printer is disconnected.
    ComponentDisconnected = 3,
}

impl Sense {
    /// The sense of this octet; an unknown one is an operation check.
    pub fn from_octet(octet: u8) -> Sense {
        match octet {
            0 => Sense::CommandReject,
            1 => Sense::InterventionRequired,
            3 => Sense::ComponentDisconnected,
            _ => Sense::OperationCheck,
        }
    }
}
