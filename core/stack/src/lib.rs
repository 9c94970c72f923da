//! A whole Internet host as one value: the [`Stack`], which drives IP and TCP and is itself driven.
//!
//! Frames, time and calls go in; frames, events and the next deadline come out. This crate finds the socket that a
//! frame is for, keeps listeners, connections, UDP and echo sockets and their timers, and shares links and memory
//! out among them. It never reads a clock, never touches an operating system, never waits and never wakes anybody.
//! How it is driven is written on [`Stack`], with an example.
#![forbid(unsafe_code)]

mod api;
mod counters;
mod datagram_sockets;
mod demux;
mod error;
mod icmp;
mod input;
mod links;
mod listen;
mod memory;
mod options;
mod output;
mod parts;
mod schedule;
mod sockets;
mod stack;
mod tcp;
mod udp;

pub use api::{Instruments, Queued, Refusal, TcpSockets};
pub use counters::{Counters, LinkCounters};
pub use demux::{PortSelection, Share, Steer};
pub use error::{BindError, ConnectError, DatagramError, ListenError, SocketError, StreamError};
pub use icmp::{EchoSockets, Probe, ProbeAnswer, ProbeMethod, ProbeNews, ProbeSockets};
pub use inhost_base::{Endpoint, LinkId};
pub use inhost_ip::{
    ConfigureError, DuplicateDetection, ErrorKind, Forwarding, InterfaceConfig, IpConfig, Medium, Route,
    RouteError, RouteOrigin, SourceRoute,
};
pub use inhost_tcp::{
    Acknowledged, Config as TcpConfig, CongestionAlgorithm, CongestionChoice, CongestionController,
    CongestionWindow, ConnectionError, EcnMode, Info as TcpInfo, KeepAlive, PathMtuProbing,
    Policy as TcpPolicy, SendHow, SoftError,
};
pub use options::{
    ConnectOptions, FastOpenCall, FastOpenConfig, ListenOptions, Local, StackConfig, SynCookies, UdpOptions,
};
pub use output::Transmitted;
pub use sockets::{
    Accepted, AnySocketId, ConnectionOptions, DatagramInfo, EchoInfo, EchoSocketId, ListenerId,
    ProbeSocketId, Readiness, SocketId, SocketInfo, SocketKind, SocketOption, TcpSocketId, UdpSocketId,
};
pub use stack::Stack;
pub use udp::{MAX_GSO_DATAGRAMS, UdpSockets};

/// A stack may move to another thread, with everything in it.
const fn assert_send<T: Send>() {}
const _: () = assert_send::<Stack>();
