//! NFS version 3, both ways: RFC 1813 over ONC RPC (RFC 5531) on connections and in datagrams, with the mount protocol
//! and a portmapper (RFC 1833).
//!
//! - [`codec`]: octets to values: XDR, RPC messages, records, and what each procedure takes and gives;
//! - [`server`]: one message in, its reply out: exports, handles, all 22 procedures over a [`Tree`](server::tree::Tree);
//! - [`client`]: calls under way as a pure machine, and operations made of them: list, fetch, store, rename;
//! - [`driver`]: carries messages over any stream or datagrams, on any executor;
//! - [`service`]: the section of a host's configuration.
//!
//! File handles are made with a key, so that nobody can forge one, and stay valid after a restart. Nothing leads out of an
//! export: not `..`, not a symbolic link. What is answered is on the disk, unless the client has asked for less and
//! commits later; a verifier tells it when to write again. A call that is repeated is answered again and not done again.
//!
//! AUTH_SYS is not authentication: the client names the user, and nothing proves it. An export therefore lists the
//! addresses that may mount it, and by default maps all users to the anonymous one.
//!
//! There is no locking (NLM), no quota protocol and no Kerberos; clients of Linux mount with `nolock`.
//!
//! This crate reads no clock. A client's call, and its way through a server:
//!
//! ```
//! use std::{net::IpAddr, sync::Arc};
//! use inhost_base::Instant;
//! use inhost_nfs::client::{CallSettings, Calls};
//! use inhost_nfs::codec::{mount, rpc::{Credentials, Target}, xdr::from_octets};
//! use inhost_nfs::server::folder::{Durability, FolderTree};
//! use inhost_nfs::server::{Answer, Caller, ExportRules, Programs, Server};
//!
//! let server = Server::new(&[7; 32], 1);
//! let mut rules = ExportRules::default();
//! rules.path = "/files".into();
//! rules.networks = vec!["10.9.0.0/16".parse().unwrap()];
//! let folder = FolderTree::open(&std::env::temp_dir(), Durability::Answered)?;
//! server.set_exports(vec![(rules, Arc::new(folder))]);
//!
//! let mut calls = Calls::new(CallSettings::datagrams(), 4711);
//! let procedure = mount::procedure::MNT;
//! let target = Target { program: mount::PROGRAM, version: mount::VERSION, procedure };
//! let path = mount::Path::from("/files");
//! let call = calls.begin(target, &Credentials::None, &path, Instant::ZERO).unwrap();
//!
//! let message = calls.transmit(Instant::ZERO).unwrap().to_vec();
//! let (address, local) = (IpAddr::from([10, 9, 0, 2]), IpAddr::from([10, 9, 0, 1]));
//! let caller = Caller { address, port: 1023, local, is_datagram: true };
//! let Answer::Reply(reply) = server.answer(&message, caller, Programs::Files, Instant::ZERO) else { panic!() };
//! assert!(calls.received(&reply));
//!
//! let reply: mount::MountReply = from_octets(&calls.take(call).unwrap().unwrap()).unwrap();
//! let (handle, _) = reply.0.unwrap();
//! assert!(handle.0.len() <= 64);
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod client;
pub mod codec;
pub mod driver;
#[doc(hidden)]
pub mod fuzz;
pub mod server;
pub mod service;
mod slots;
