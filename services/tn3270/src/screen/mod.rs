//! The buffer of a 3270 terminal: what a host writes to it, what the keyboard does to it, and what it sends.
//!
//! [`Screen`] is pure. The owner passes each record of the host to [`Screen::receive`] and each key to
//! [`Screen::press`]; both give what is to be sent. A record that cannot be executed is a [`DataError`](crate::codec::DataError),
//! and what it did before the error stays done, as on the terminals.
//!
//! ```
//! use inhost_tn3270::codec::{CodePage, Command, FieldAttribute, StreamWriter, WriteControl};
//! use inhost_tn3270::screen::{Key, Screen, ScreenConfig};
//! let mut writer = StreamWriter::new(Command::EraseWrite, WriteControl::RESTORE_KEYBOARD, 1920);
//! writer.start_field(FieldAttribute::PROTECTED);
//! writer.text(&CodePage::Cp037.encode("Name"));
//! writer.start_field(FieldAttribute::UNPROTECTED);
//! writer.insert_cursor();
//! let mut screen = Screen::new(ScreenConfig::default());
//! assert_eq!(screen.receive(&writer.finish()), Ok(None));
//! for key in "ada".chars().map(Key::Character).chain([Key::Enter]) {
//!     if let Ok(Some(record)) = screen.press(key) {
//!         // Enter, the cursor at 9, and the field at 6.
//!         assert_eq!(record, b"\x7d\x40\xc9\x11\x40\xc6\x81\x84\x81");
//!     }
//! }
//! assert_eq!(screen.line(0).trim_end(), " Name ada");
//! ```

mod buffer;
mod edit;
mod keys;
mod model;
mod print;
mod query;
mod read;
mod view;
mod write;

#[cfg(test)]
mod tests;

pub use buffer::{Cell, Field, Keyboard, OperatorError, Screen};
pub use keys::{Key, UnknownKey};
pub use model::{Model, ScreenConfig};
pub use print::{PRINT_LINES, printed};
pub use view::{FieldView, Position, Snapshot};
