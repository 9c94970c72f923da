//! Integration tests, one program for all: a program costs more to link than to run.

#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

mod corpus;
mod ends;
