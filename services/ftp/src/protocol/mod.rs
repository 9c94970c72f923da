//! What both ends of a control connection share: lines, commands, replies, addresses, facts.

mod address;
mod command;
mod facts;
mod lines;
mod name;
mod parameters;
mod reply;
mod time;

pub use address::{AddressError, Family, parse_epsv, parse_long, parse_pasv, pasv_text};
pub use address::{epsv_text, extended_text, parse_extended, parse_port, port_text};
pub use command::{Argument, Command, Needs, ParseError, Verb};
pub use facts::{Facts, Kind, Permissions, parse_facts};
pub use lines::{LINE_BYTES, LineEvent, LineReader};
pub use name::{name_octets, name_text};
pub use parameters::{Format, Mode, Parameters, Representation, Structure};
pub use reply::{REPLY_LINES, Reply, ReplyError, ReplyReader, write_reply};
pub use time::{UnixTime, list_time, parse_time, time_text};
