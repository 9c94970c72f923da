//! The host's stack for C: the adapter by which packetdrill tests it, in virtual time.
//!
//! packetdrill is the public tool that tests a TCP by script: timed packets in, timed packets out, socket calls
//! between. It loads `libinhost_packetdrill.so`, calls [`packetdrill_interface_init`], and from then on every socket
//! call and every packet of the script goes through the table of functions that it got ([`Interface`]). Behind the
//! table are one [`inhost_stack::Stack`] and a clock that stands still unless the tool waits, so a script of a minute
//! takes a moment, and the same script always takes the same course.
//!
//! This crate never touches a network device and starts no thread. It is the only place, with `host/link`, where
//! unsafe code is allowed: C's pointers come in here and go no further.
//!
//! How a suite is run through it is told in `docs/conformance.md`.

mod address;
mod ancillary;
mod blocking;
mod calls;
mod clock;
mod commands;
mod completions;
mod descriptors;
mod device;
mod exported;
mod flags;
mod info;
mod interface;
mod memory;
mod network;
mod options;
mod sysctl;
mod world;

pub use interface::{Interface, packetdrill_interface_init};
