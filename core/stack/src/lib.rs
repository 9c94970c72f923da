//! A whole Internet host as one value: the [`Stack`], which drives IP and TCP and is itself driven.
//!
//! Frames, time and calls go in; frames, events and the next deadline come out. This crate finds the socket that a
//! frame is for, keeps listeners, connections, UDP and echo sockets and their timers, and shares links and memory
//! out among them. It never reads a clock, never touches an operating system, never waits and never wakes anybody.
//! How it is driven is written on [`Stack`], with an example.
//!
//! All that its calls take and give is re-exported here, and the crates below as the modules [`buf`], [`event`], [`ip`] and
//! [`wire`]. The crate's README has a table for those who know smoltcp.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod api;
mod counters;
mod demux;
mod environment;
mod error;
mod flows;
mod input;
mod links;
mod listen;
mod network;
mod options;
mod output;
mod pass;
mod quote;
mod resources;
mod schedule;
mod socket;
mod sockets;
mod stack;
mod tcp;

pub use api::{Calls, EchoSockets, Instruments, ProbeSockets, Queued, TcpSockets, UdpSockets};
pub use counters::{Counters, LinkCounters};
pub use demux::{Share, Steer};
pub use error::{BindError, ConnectError, ListenError, StreamError};
pub use options::{
    ConnectOptions, FastOpenCall, FastOpenConfig, ListenOptions, Local, StackConfig, SynCookies,
};
pub use output::Transmitted;
pub use socket::{
    Accepted, AnySocketId, ConnectionOptions, EchoSocketId, ListenerId, ProbeSocketId, Refusal, SocketId,
    SocketInfo, SocketKind, SocketOption, TcpSocketId, UdpSocketId,
};
pub use stack::Stack;
#[cfg(feature = "freeze")]
pub use stack::freeze::{FreezeError, ThawError};
#[cfg(feature = "freeze")]
use {
    inhost_base::freeze::{Invalid, require},
    inhost_buf::freeze::ThawPacket,
};

// What the calls above take and give, from the crates below.
pub use bytes::Bytes;
pub use inhost_base::{
    Cidr, Duration, Endpoint, HardwareAddress, Instant, InvalidCidr, IpAddr, Ipv4Addr, Ipv6Addr, Key, LinkId,
};
pub use inhost_buf::{
    Batch, Checksum, Device, Frame, Full, GsoType, Offers, Offload, Packet, Pool, Pressure, Shareable, Slices,
};
pub use inhost_datagram::{
    DatagramError, DatagramInfo, EchoInfo, MAX_GSO_DATAGRAMS, Probe, ProbeAnswer, ProbeMethod, ProbeNews,
    SendDatagrams, SocketError, UdpOptions,
};
pub use inhost_event::{Event, Ignore, Mask, Readiness, ReceiveCause, Recorded, SendCause, Sink, TcpState};
pub use inhost_ip::{
    ConfigureError, DuplicateDetection, ErrorKind, ErrorPace, Forwarding, InterfaceConfig, InterfaceView, Ip,
    IpConfig, IpEnvironment, Medium, Route, RouteError, RouteOrigin, SendDatagramError, SourceRoute,
    Unreachable,
};
pub use inhost_tcp::{
    Acknowledged, Config as TcpConfig, CongestionAlgorithm, CongestionChoice, CongestionController,
    CongestionWindow, Connection, ConnectionError, ConnectionOption, EcnMode, Info as TcpInfo, KeepAlive,
    Ledgers, NetworkError, PathMtuProbing, Policy as TcpPolicy, RateSample, SendHow, SendQueue, SoftError,
};
pub use inhost_wire::Ecn;

// The rest of those crates.
pub use inhost_buf as buf;
pub use inhost_event as event;
pub use inhost_ip as ip;
pub use inhost_wire as wire;

/// A stack may move to another thread, with everything in it.
const fn assert_send<T: Send>() {}
const _: () = assert_send::<Stack>();

/// A configuration may be used again after a panic, and from several threads.
const fn assert_plain<T: Send + Sync + core::panic::UnwindSafe + core::panic::RefUnwindSafe>() {}
const _: () = assert_plain::<(StackConfig, SocketOption)>();

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
