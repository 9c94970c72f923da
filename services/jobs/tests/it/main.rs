//! Integration tests, one program for all: a program costs more to link than to run.

#[path = "../../../little/tests/network/mod.rs"]
#[expect(dead_code, reason = "other crates use more of it")]
mod network;

mod corpus;
mod faults;
mod http;
mod local;
mod slurm;
