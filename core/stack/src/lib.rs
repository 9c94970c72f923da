//! A whole Internet host as one value: the [`Stack`], which drives IP and TCP and is itself driven.
//!
//! Frames, time and calls go in; frames, events and the next deadline come out. This crate finds the socket that a
//! frame is for, keeps listeners, connections, UDP and echo sockets and their timers, and shares links and memory
//! out among them. It never reads a clock, never touches an operating system, never waits and never wakes anybody.
//! How it is driven is written on [`Stack`], with an example.
#![forbid(unsafe_code)]

mod apply;
mod bind;
mod cookie;
mod counters;
mod datagram_run;
mod direct;
mod echo;
mod entry;
mod error;
mod extras;
mod fast_open;
mod icmp;
mod input;
mod instruments;
mod limit;
mod list;
mod listener;
mod loopback;
mod memory;
mod options;
mod orphans;
mod output;
mod parked;
mod pieces;
mod ports;
mod probe;
mod recent;
mod reply;
mod share;
mod socket;
mod socket_options;
mod source_route;
mod stack;
mod stateless;
mod straight;
mod stream;
mod table;
mod udp;
mod udp_close;
mod wheel;

pub use counters::{Counters, LinkCounters};
pub use datagram_run::MAX_RUN_DATAGRAMS;
pub use error::{BindError, ConnectError, DatagramError, ListenError, SocketError, StreamError};
pub use fast_open::{FastOpenCall, FastOpenConfig};
pub use inhost_base::{Endpoint, LinkId};
pub use inhost_ip::{
    ConfigureError, DuplicateDetection, ErrorKind, Forwarding, InterfaceConfig, IpConfig, Medium, RouteError,
    SourceRoute,
};
pub use inhost_tcp::{
    Config as TcpConfig, CongestionChoice, ConnectionError, EcnMode, KeepAlive, PathMtuProbing, SendHow,
    SoftError,
};
pub use instruments::Queued;
pub use options::{ConnectOptions, ListenOptions, Local, StackConfig, SynCookies, UdpOptions};
pub use ports::PortSelection;
pub use probe::{Probe, ProbeAnswer, ProbeMethod, ProbeNews};
pub use share::{Share, Steer};
pub use socket::{Accepted, DatagramInfo, EchoInfo, Readiness, SocketId, SocketInfo, SocketKind};
pub use socket_options::{ConnectionOptions, SocketOption};
pub use stack::{Stack, Transmitted};
pub use stream::Refusal;

/// A stack may move to another thread, with everything in it.
const fn assert_send<T: Send>() {}
const _: () = assert_send::<Stack>();
