//! Integration tests, one program for all: a program costs more to link than to run.

#[path = "../../../../fuzz/src/thaw.rs"]
mod bodies;

mod blind_icmp;
mod common;
mod congestion;
mod cookies;
mod costs;
mod datagram_close;
mod datagrams;
mod fast_open;
mod freeze;
mod gro;
mod hoarders;
mod hosts;
mod lending;
mod listeners;
mod options;
mod pressure;
mod probes;
mod redirects;
mod rules;
mod seeds;
mod sharing;
mod source_routes;
mod tentative;
mod thaw;
mod truncated;
mod udp_gso;
mod unaddressed;
