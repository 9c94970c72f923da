//! What an end asks for and agrees to.

use crate::codec::{Function, Functions, Resource};

/// The end that has the application.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Whether it offers TN3270E first. Default true.
    pub has_tn3270e: bool,
    /// The functions that it agrees to. Default: all. With BIND image the owner sends a
    /// [`Bind`](crate::codec::Bind) before the first record.
    pub functions: Functions,
}

impl Default for ServerConfig {
    fn default() -> Self {
        use Function::{BindImage, DataStreamControl, Responses, ScsControlCodes, SysReq};
        ServerConfig {
            has_tn3270e: true,
            functions: Functions::of(&[BindImage, DataStreamControl, Responses, ScsControlCodes, SysReq]),
        }
    }
}

/// The end that has the terminal or the printer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ClientConfig {
    /// The name for TERMINAL-TYPE, as IBM-3279-2-E.
    pub terminal_type: String,
    /// The name for TN3270E, as IBM-3278-2-E or IBM-3287-1.
    pub device_type: String,
    /// Whether it agrees to TN3270E. Default true.
    pub has_tn3270e: bool,
    /// The device that it asks for.
    pub resource: Option<Resource>,
    /// The functions that it asks for. Default: BIND image, responses, SysReq.
    pub functions: Functions,
}

impl ClientConfig {
    /// A terminal with these names.
    pub fn new(terminal_type: &str, device_type: &str) -> ClientConfig {
        use Function::{BindImage, Responses, SysReq};
        ClientConfig {
            terminal_type: terminal_type.to_owned(),
            device_type: device_type.to_owned(),
            has_tn3270e: true,
            resource: None,
            functions: Functions::of(&[BindImage, Responses, SysReq]),
        }
    }
    /// A printer, which only TN3270E has.
    pub fn printer(resource: Option<Resource>) -> ClientConfig {
        use Function::{DataStreamControl, Responses, ScsControlCodes};
        ClientConfig {
            resource,
            functions: Functions::of(&[DataStreamControl, Responses, ScsControlCodes]),
            ..ClientConfig::new("IBM-3287-1", "IBM-3287-1")
        }
    }
}
