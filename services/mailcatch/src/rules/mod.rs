//! Failures to order: rules that refuse, drop, delay or slow down what they match.
//!
//! A [`Rule`] has one line of text, `recipient=*@full.example reply="452 4.2.2 Mailbox full" first=3`, and the same as
//! JSON. A [`Script`] is a sequence of steps, each with its rules. A [`Rulebook`] decides: pure, with the time as an
//! argument and a seeded random source.

mod book;
mod json;
mod rule;
mod script;
mod text;

pub use book::{Event, Fired, Outcome, RuleState, Rulebook};
pub use rule::{Action, Frequency, Matches, Refusal, Rule, Stage};
pub use script::{Script, ScriptError, Step};
pub use text::{RULE_BYTES, RuleError};
