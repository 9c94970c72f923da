//! Integration tests, one program for all: a program costs more to link than to run.

#[path = "../../../../host/xti/tests/it/walker.rs"]
mod walker;

#[path = "../../../script/tests/it/mistakes/mod.rs"]
mod mistakes;

mod capture;
mod crash;
mod fairness;
mod freeze;
mod hostile;
mod mutations;
mod processors;
mod response;
mod seeds;
mod simulation;
mod tasks;
mod xti;
