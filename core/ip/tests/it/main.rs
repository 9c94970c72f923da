//! Integration tests, one program for all: a program costs more to link than to run.

mod addresses;
mod common;
mod forward;
mod gateways;
mod hostile;
mod icmp;
mod neighbours;
mod options;
mod receive;
mod rfc1122;
