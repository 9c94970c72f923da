//! Integration tests, one program for all: a program costs more to link than to run.

mod common;
mod connections;
mod datagrams;
mod events;
mod queue;
mod table;
mod walk;
mod walker;
