//! Scripts: what a person would do at a terminal, line by line.
//!
//! ```text
//! # A word that begins with # begins a comment. Texts with blanks are in quotes.
//! within 20                          # each wait takes at most so many seconds (default 30);
//!                                    # a transfer as long as it likes, if it does not stop for that time
//! wait ready                         # 3270 mode has begun
//! wait unlocked                      # the keyboard takes input
//! wait closed                        # the host has closed the connection
//! wait text "Ready"                  # the screen has this text
//! wait no text "Busy"                # the screen does not have it
//! wait at 1 2 "MENU"                 # row 1, column 2 begins with it
//! field "User"                       # the cursor goes to the first input field behind this text
//! move 5 10                          # the cursor goes to row 5, column 10
//! type "ada"                         # types characters
//! press enter                        # presses a key: enter, clear, pf3, pa1, tab, eraseeof … attn, sysreq
//! assert text "Ready"                # as wait, but at once
//! assert cursor 5 10                 # where the cursor is
//! assert field 5 10 "ada"            # what stands in the field there
//! dump                               # shows the screen's rows
//! dump json                          # shows the screen as JSON, on one line
//! send notes.txt report text         # IND$FILE: the local file, the host's name, text or binary, perhaps append
//! receive report notes.txt binary    # IND$FILE the other way
//! ```
//!
//! Each key that sends is followed by a wait until the keyboard is unlocked or the host has closed the connection, but for
//! `attn` and `sysreq`.
//!
//! [`Script::parse`] reads a script, and a [`Run`] takes one terminal through it. Neither waits nor reads files: [`Run::step`]
//! says what is next.

mod parse;
mod run;

#[cfg(test)]
mod tests;

pub use parse::{ParseError, SCRIPT_LINES, Script};
pub use run::{Failure, Run, Step};
