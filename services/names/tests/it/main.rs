//! Integration tests, one program for all: a program costs more to link than to run.

#[path = "../../../little/tests/network/mod.rs"]
mod network;
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

mod corpus;
mod dns;
mod forward;
mod mdns;
