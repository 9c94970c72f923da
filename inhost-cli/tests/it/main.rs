//! Integration tests, one program for all: a program costs more to link than to run.

mod clients;
mod common;
mod configuration;
mod dhcp;
mod finger;
mod ftp_clients;
mod ftp_prompt;
mod ftp_servers;
mod grammar;
mod handover;
mod kernel;
mod links;
mod log;
mod mail;
mod names;
mod notify;
mod rcommands;
mod serial;
mod setup;
mod signed;
mod terminal;
mod tftp;
mod traceroute;
mod tutorials;
mod user;
mod whois;
