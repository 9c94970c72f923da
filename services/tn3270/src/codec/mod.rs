//! The format of the 3270 data stream and of TN3270E: octets to values and back.
//!
//! - [`Command`], [`WriteControl`], [`Aid`]: what a record begins with;
//! - [`Orders`], [`StreamWriter`]: what a write command carries;
//! - [`Inbound`]: what a terminal sends;
//! - [`OutboundFields`], [`QueryReply`]: structured fields;
//! - [`Ddm`]: the structured fields of IND$FILE;
//! - [`Header`], [`Negotiation`]: TN3270E (RFC 2355);
//! - [`CodePage`] has EBCDIC.
//!
//! Reading is total: any input gives a value or a [`DataError`], and nothing is kept beyond the input's length. The
//! source is IBM GA23-0059, "3270 Information Display System Data Stream Programmer's Reference".
//!
//! ```
//! use inhost_tn3270::codec::{CodePage, Command, FieldAttribute, Order, Orders, StreamWriter, WriteControl};
//! let mut writer = StreamWriter::new(Command::EraseWrite, WriteControl::RESTORE_KEYBOARD, 1920);
//! writer.set_address(80);
//! writer.start_field(FieldAttribute::PROTECTED);
//! writer.text(&CodePage::Cp037.encode("HELLO"));
//! let record = writer.finish();
//! let orders: Vec<_> = Orders::new(&record[2..]).collect();
//! assert_eq!(orders[0], Ok(Order::SetAddress(80)));
//! assert_eq!(orders[2], Ok(Order::Text(&[0xc8, 0xc5, 0xd3, 0xd3, 0xd6])));
//! ```

mod address;
mod aid;
mod attribute;
mod bind;
mod codepage;

mod command;
mod ddm;
mod error;
mod inbound;
mod order;
mod query;
mod structured;
mod tn3270e;
mod writer;

#[cfg(test)]
mod tests;

pub use address::{POSITIONS_MAX, decode_address, encode_address, six_bit};
pub use aid::Aid;
pub use attribute::{AttributePair, AttributeType, Attributes, Color, Display, FieldAttribute, Highlight};
pub use bind::Bind;
pub use codepage::graphic_character;
pub use command::{Command, WriteControl};
pub use ddm::{Ddm, DdmError, OPEN_DATA, OPEN_MESSAGE};
pub use error::DataError;
pub use inbound::{Inbound, InboundField, ModifiedField};
pub use order::{Order, Orders};
pub use query::{CharacterSet, QueryReply, query_code};
pub use structured::{OutboundField, OutboundFields, QueryRequest, ReplyMode, write_field};
pub use tn3270e::{
    DataType, DeviceReason, Function, Functions, Header, Negotiation, RESPONSE_ALWAYS, RESPONSE_ERROR,
    RESPONSE_NEGATIVE, RESPONSE_NONE, RESPONSE_POSITIVE, Resource, Sense, TN3270E,
};
pub use writer::StreamWriter;

pub use inhost_common::codepage::{CodePage, UnknownCodePage};
