//! Mail server to test against: takes every message, shows it on a page, and fails to order.
//!
//! - [`catcher`]: what the SMTP server tells and asks, and what the page shows, in one place;
//! - [`store`], [`message`], [`search`]: the messages, what they say, and how they are found;
//! - [`rules`]: failures to order, pure;
//! - [`sessions`]: dialogues; [`news`]: lines for a terminal;
//! - [`html`]: HTML of strangers, made harmless;
//! - [`api`]: the page and its interface for programs;
//! - [`service`]: both servers as a service of a host; `mailroom`: what ties the SMTP server in.
//!
//! ```
//! use inhost_mailcatch::rules::{Event, Rulebook, Stage};
//! use inhost_base::{Instant, IpAddr};
//! let mut book = Rulebook::new(7);
//! book.add("recipient=*@full.example reply=\"452 4.2.2 Mailbox full\" first=1".parse()?);
//! let recipients = ["ada@full.example".to_owned()];
//! let client = IpAddr::from([10, 0, 0, 9]);
//! let event = Event { stage: Stage::Recipient, client, sender: Some(""), recipients: &recipients, sessions: 1 };
//! let fired = book.decide(&event, Instant::ZERO).unwrap();
//! assert_eq!(fired.action.refusal.unwrap().code, 452);
//! assert_eq!(book.decide(&event, Instant::ZERO), None, "it is for the first one alone");
//! # Ok::<(), inhost_mailcatch::rules::RuleError>(())
//! ```
#![forbid(unsafe_code)]

pub mod api;
pub mod catcher;
mod envelope;
#[doc(hidden)]
pub mod fuzz;
pub mod html;
mod mailroom;
pub mod message;
pub mod news;
pub mod rules;
pub mod search;
pub mod service;
pub mod sessions;
pub mod store;

pub use catcher::{Caller, Catcher, CatcherConfig};
