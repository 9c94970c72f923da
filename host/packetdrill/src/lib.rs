//! The adapter for packetdrill: the stack behind a C interface, in virtual time.
//!
//! packetdrill is the public tool that tests a TCP by script: timed packets in, timed packets out, socket calls
//! between. It loads `libinhost_packetdrill.so`, calls [`packetdrill_interface_init`], and from then on every socket
//! call and every packet of the script goes through the returned table of functions ([`Interface`]). Behind the table
//! are one [`inhost_stack::Stack`] and a virtual clock, which advances only while the tool waits. So a script of a
//! minute runs in milliseconds, and every run of it is the same.
//!
//! This crate touches no network device and starts no thread. Unsafe code is allowed here because C pointers cross
//! this interface; they are checked at the edge and go no further.
//!
//! `docs/conformance.md` shows how to run a suite.

mod address;
mod ancillary;
mod calls;
mod clock;
mod commands;
mod completions;
mod descriptors;
mod device;
mod epoll;
mod exported;
mod flags;
mod info;
mod interface;
mod memory;
mod network;
mod options;
mod outbound;
mod socket;
mod sysctl;
mod world;

pub use interface::{Interface, packetdrill_interface_init};
