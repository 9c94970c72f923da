//! The formats of FTP: lines, commands, replies, addresses and facts of a control connection; [`data`], the octets of a
//! data connection.

mod address;
mod command;
pub mod data;
mod facts;
mod lines;
mod parameters;
mod reply;
mod time;

pub use address::{AddressError, Family, parse_epsv, parse_long, parse_pasv, pasv_text};
pub use address::{epsv_text, extended_text, parse_extended, parse_port, port_text};
pub use command::{Argument, Command, Needs, ParseError, Verb};
pub use facts::{facts_line, parse_facts};
pub use inhost_common::storage::{Facts, Kind, Permissions, UnixTime, name_octets, name_text};
pub use lines::{LINE_BYTES, LineEvent, LineReader};
pub use parameters::{Format, Mode, Parameters, Representation, Structure};
pub use reply::{REPLY_LINES, Reply, ReplyError, ReplyReader, write_reply};
pub use time::{list_time, parse_time, time_text};
