//! Integration tests, one program for all: a program costs more to link than to run.

#[path = "../../../little/tests/network/mod.rs"]
mod network;

mod corpus;
mod ends;
mod hercules;
mod host;
mod hostile;
mod kernel;
mod place;
mod printers;
mod s3270;
mod screens;
mod terminals;
