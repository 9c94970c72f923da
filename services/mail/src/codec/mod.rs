//! The language of SMTP: mailboxes, commands, replies, and how a message is carried.

mod address;
mod command;
mod content;
mod data;
mod reply;
mod xtext;

pub use address::{AddressError, DOMAIN_BYTES, LOCAL_BYTES, Mailbox};
pub use command::{AUTH_BYTES, COMMAND_BYTES, Command, CommandError, MailFrom, Notify, Recipient, Returns};
pub use content::{Content, ContentError, ContentLimits};
pub use data::{DataDecoder, DataEncoder, DataEnd};
pub use reply::{REPLY_LINE_BYTES, REPLY_LINES, Reply, ReplyError, ReplyReader};
pub use xtext::{decode as decode_xtext, encode as encode_xtext};
