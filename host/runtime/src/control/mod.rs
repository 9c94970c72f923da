//! The control socket: access to a running host for other processes.
//!
//! A Unix socket, by default at [`default_path`], only for the user that runs the host: its directory is mode 0700, the
//! socket 0600, and each end verifies by the system that the other is this user or root.
//!
//! # Protocol
//!
//! A conversation is lines of JSON, one request and one reply at a time. A request is an object with `"op"`; a reply
//! has `"ok": true`, or `"ok": false` with `"error"`, a sentence, and where the system has a number for it `"errno"`.
//! Ends are written as `"10.9.0.2:23"` and `"[fd00::2]:23"`.
//!
//! | request | reply | with the reply's first byte |
//! |---|---|---|
//! | `{"op":"connect","to":END,"from":END?,"nagle":BOOL?}` | `"socket"`, `"local"`, `"remote"` | a stream: the connection |
//! | `{"op":"listen","at":END,"backlog":N?}` | `"socket"`, `"local"` | a message socket: the listener |
//! | `{"op":"udp","at":END,"to":END?}` | `"socket"`, `"local"` | a message socket: datagrams |
//! | `{"op":"status","socket":NAME}` | the socket as in `netstat`, or `"ended"` with why and `"errno"` | |
//! | `{"op":"netstat"}` | `"interfaces"`, `"routes"`, `"counters"`, `"memory"`, `"sockets"`; in pieces, as the sockets are looked at | |
//! | `{"op":"record","only":ONLY?}` | `"frames"`, `"lost"` | a file: what the flight recorder holds, as pcapng |
//! | `{"op":"watch","only":ONLY?,"states":BOOL?,"past":BOOL?}` | nothing more | a stream of pcapng: frames and events from now on, or from the oldest that is held, and each second the state of connections |
//! | `{"op":"traps","arm":TRAP?,"disarm":TRAP?}` | `"traps"`: each with `"trap"` and `"times"` | |
//! | `{"op":"view","target":TEXT}` | nothing more | a file: a view of the host as JSON, where it offers views ([`Client::view`]) |
//! | `{"op":"counters"}` | as `netstat`, without `"sockets"` | |
//! | `{"op":"debug","socket":NAME}` | `"connection"`: the whole state of one connection, with its `"local"` and `"remote"`; `"host"`: timers, queues and what tasks wait for | |
//! | `{"op":"shutdown"}` | nothing more | |
//!
//! `ONLY` is an object that chooses frames: `"address"`, `"port"`, or `"ends"`, both ends of a connection. A `TRAP` is
//! written as [`inhost_record::Trap`] says. A watcher that does not read loses frames, and is told how many.
//!
//! Others are added by [`Server::handle`]. The descriptors are one end of a socketpair each, so that poll, epoll, dup
//! and fork work as on any other; the host's thread pumps the other end with bounded buffers:
//!
//! - **connection**: `shutdown` is a FIN, the peer's FIN the end of the stream. Closing sends what was written, to the end;
//!   where bytes were not read, or more come in meanwhile, the connection is reset once the peer has acknowledged all of
//!   it, or has acknowledged nothing for a minute. When the connection fails, both directions end; `status` then says why, for a reset cannot be
//!   told from the end of the stream on the descriptor alone.
//! - **listener** (`SOCK_SEQPACKET`): readable when a caller was accepted; each message is the line
//!   `{"socket":…,"local":…,"remote":…}` with the connection's descriptor. Closing stops listening.
//! - **datagrams** (`SOCK_SEQPACKET`): with `"to"` each message is a payload; without, 20 bytes stand before it,
//!   [`encode_address`]: where it goes, or whence it came. A payload may be empty; so may the message then be, and reads as
//!   0 bytes, as it does on a UDP socket of the system. The end reads as 0 bytes, too: it has no `SCM_CREDENTIALS` with it
//!   (`recvmsg`), which every message has, and from then on `poll` says `POLLHUP`.

mod client;
mod debug;
mod figures;
mod names;
mod netstat;
mod parcel;
mod protocol;
mod pump;
mod record;
mod reply;
mod server;
mod trust;

pub use client::{CallOptions, Client, ClientError, Connected, ListenerClient, UdpClient};
pub use netstat::{Summary, netstat, netstat_with_links, overview, socket};
pub use parcel::Parcels;
pub use protocol::{
    ADDRESS_BYTES, LONGEST_LINE_BYTES, LONGEST_REQUEST_BYTES, decode_address, default_path, encode_address,
};
pub use reply::{Failure, Handler, Reply};
pub use server::Server;
