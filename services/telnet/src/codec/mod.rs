//! The format of Telnet: the octets of RFC 854, options, and the bodies of subnegotiations.
//!
//! ```
//! use inhost_telnet::codec::{Command, IAC, TelnetOption};
//! assert_eq!(IAC, 255);
//! assert_eq!(Command::AreYouThere.name(), "ayt");
//! assert_eq!(TelnetOption::WindowSize.code(), 31);
//! ```

pub(crate) mod charset;
pub(crate) mod command;
pub(crate) mod line_mode;
pub(crate) mod option;
pub(crate) mod subnegotiation;

pub use charset::{CHARSET_NAME_BYTES, CHARSET_NAMES, Charset};
pub use command::{Command, DO, DONT, IAC, SB, SE, WILL, WONT};
pub use line_mode::{EditMode, Function, Level, Setting};
pub use option::{OptionSet, Side, TelnetOption};
pub use subnegotiation::{
    ENVIRONMENT_VARIABLES, FlowControl, StatusEntry, TERMINAL_NAME_BYTES, VARIABLE_BYTES, Variable,
    VariableKind,
};
