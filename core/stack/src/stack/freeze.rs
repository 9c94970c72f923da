//! A stack as bytes: frozen, thawed in this process or another, and forked.
//!
//! The bytes are a header and a body. The header says what they are, which version of the format they have, and has a
//! checksum of the body; the body is the state itself, by serde's derives on the types that hold it, in postcard's format.
//! What a body says is checked before anything uses it, because it may have been changed: every list, place and count on
//! which an index or a difference depends.

use crate::output::Loopback;
use crate::sockets::Socket;
use crate::stack::{Parts, Stack};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::iter;
use inhost_base::freeze::{Invalid, require};
use inhost_base::{Instant, Random, SipKey};
use inhost_buf::Packet;
use inhost_tcp::Config;

/// The first bytes of a frozen stack.
const MAGIC: [u8; 8] = *b"inhost\xf0\x7a";
/// The version of the format. It rises with each change of a type that is written; the test `the_format_is_that_of_its_version`
/// fails on a change without it.
const VERSION: u32 = 11;
/// Magic, version, fingerprint, length of the body, checksum of the body.
const HEADER_BYTES: usize = 8 + 4 + 8 + 8 + 8;

/// Why a stack cannot be frozen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FreezeError {
    /// A connection, a listener or the configuration has congestion control of its own
    /// ([`crate::CongestionChoice::custom`]), whose state only its author knows. Choose another first, with
    /// [`inhost_tcp::ConnectionOption::Congestion`].
    #[error("custom congestion control cannot be frozen")]
    CustomCongestion,
}

/// Why bytes are not thawed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThawError {
    /// The bytes do not begin as a frozen stack does.
    #[error("not a frozen stack")]
    NotAStack,
    /// The format has another version.
    #[error("a stack frozen in version {found} of the format; this program reads version {known}")]
    Version {
        /// The version of the bytes.
        found: u32,
        /// The version that this program reads.
        known: u32,
    },
    /// The format has this version, and the program that wrote it lays something out otherwise.
    #[error("a stack frozen by a program with another layout")]
    Layout,
    /// The bytes are fewer or more than their header says.
    #[error("a frozen stack of {expected} bytes, of which there are {found}")]
    Length {
        /// Bytes expected.
        expected: u64,
        /// Bytes given.
        found: u64,
    },
    /// The checksum is wrong: the bytes were changed.
    #[error("a frozen stack that was changed: its checksum is wrong")]
    Checksum,
    /// The body cannot be read.
    #[error("a frozen stack that cannot be read")]
    Malformed,
    /// A field has a value that no stack has, and which one.
    #[error("a frozen stack that is none: {0}")]
    Invalid(&'static str),
    /// Packets of the stack take more memory than was allowed.
    #[error("a frozen stack that takes more memory than allowed")]
    Memory,
}

impl From<Invalid> for ThawError {
    fn from(invalid: Invalid) -> Self {
        ThawError::Invalid(invalid.0)
    }
}

/// What is written: the state, the configurations that it shares, and which of these the host's default is, and then that of
/// each connection and listener, in order of place.
type Frozen<State, Config> = (State, Vec<Config>, Vec<u32>);

impl Stack {
    /// The whole state as bytes: connections with their queues, timers, listeners, datagram sockets, links, addresses,
    /// neighbours, routes, fragments, counters and secrets. Nothing of the stack changes.
    ///
    /// The bytes hold the keys of the host and the data of its connections: keep them as you would a private key.
    ///
    /// ```
    /// use inhost_stack::{Endpoint, Ignore, Instant, Ipv4Addr, ListenOptions, Stack, StackConfig};
    ///
    /// let now = Instant::from_millis(1);
    /// let mut host = Stack::new(StackConfig::default(), [7; 32], now);
    /// let listener = host.tcp(now, &mut Ignore).listen(Endpoint::new(Ipv4Addr::LOCALHOST, 7), ListenOptions::default())?;
    /// let bytes = host.freeze()?;
    ///
    /// // Another process, which was told the bytes and the identifier of the listener.
    /// let mut host = Stack::thaw(&bytes, 64 << 20)?;
    /// let now = host.instruments().now();
    /// assert_eq!(host.tcp(now, &mut Ignore).accept(listener)?, None);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn freeze(&self) -> Result<Vec<u8>, FreezeError> {
        let Stack { parts, loopback } = self;
        let (mut configs, mut uses, mut known) = (Vec::new(), Vec::new(), BTreeMap::new());
        let used = parts.sockets.iter().filter_map(|(_, socket)| config_of(socket));
        for config in iter::once(parts.sockets.tcp_config()).chain(used) {
            uses.push(*known.entry(Arc::as_ptr(config)).or_insert_with(|| {
                configs.push(&**config);
                configs.len() as u32 - 1
            }));
        }
        let frozen: Frozen<(&Parts, &Loopback), &Config> = ((parts, loopback), configs, uses);
        // Writing to memory fails for nothing but a variant that is not written, which only custom congestion control has.
        let body = postcard::to_extend(&frozen, Vec::new()).map_err(|_| FreezeError::CustomCongestion)?;
        Ok(Stack::seal_frozen(&body))
    }
    /// For tests: `body` behind a header that is right for it.
    #[doc(hidden)]
    pub fn seal_frozen(body: &[u8]) -> Vec<u8> {
        let mut bytes = header(body);
        bytes.extend_from_slice(body);
        bytes
    }
    /// For tests: the body behind the header of a frozen stack.
    #[doc(hidden)]
    pub fn unseal_frozen(bytes: &[u8]) -> Result<&[u8], ThawError> {
        body(bytes)
    }
    /// The stack that was frozen: it goes on as it would have, with the same identifiers of sockets. Its packets may take
    /// `memory_limit_bytes` at most; its own limit stays what it was.
    ///
    /// Time goes on from [`Instruments::now`](crate::Instruments::now): instants that the stack is given must not be before
    /// it. A program whose clock has another origin adds the difference, and the time for which the stack was frozen, if
    /// peers are to find it late rather than in time.
    ///
    /// The stack that was frozen must not be used any more on the same network. [`Stack::ready`] names the sockets that it
    /// had not named before it was frozen; ask for the readiness of the others.
    pub fn thaw(bytes: &[u8], memory_limit_bytes: usize) -> Result<Stack, ThawError> {
        let mut stack = read(body(bytes)?, memory_limit_bytes)?;
        stack.parts.sockets.relist()?;
        Ok(stack)
    }
    /// Another host that begins as a copy of the one that was frozen, with `seed` for all its randomness: initial sequence
    /// numbers, ports, identifications, cookies and keys of tables are its own.
    ///
    /// Open connections are copied as they are, numbers included, because their peers know these. So two copies must not
    /// both be connected to the same network, or a fork must abort its connections first without sending: give its frames
    /// to nobody. A fork is for a simulator that tries two futures, and for a host that was prepared once and started often.
    pub fn fork(bytes: &[u8], memory_limit_bytes: usize, seed: [u8; 32]) -> Result<Stack, ThawError> {
        let mut stack = read(body(bytes)?, memory_limit_bytes)?;
        let Parts { resources, network, sockets, .. } = &mut stack.parts;
        let now = resources.now();
        let random = resources.random_mut();
        *random = Random::from_seed(seed);
        network.ip_mut().reseed(random);
        sockets.reseed(random, now);
        sockets.relist()?;
        Ok(stack)
    }
}

fn config_of(socket: &Socket) -> Option<&Arc<Config>> {
    match socket {
        Socket::Tcp(flow) => Some(flow.connection().config()),
        Socket::Listener(listener) => Some(&listener.inherited().tcp),
        Socket::Udp(_) | Socket::Echo(_) | Socket::Probe(_) => None,
    }
}

/// The header of a body.
fn header(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&fingerprint().to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&checksum(body).to_le_bytes());
    bytes
}

/// The body behind a header that is right.
fn body(bytes: &[u8]) -> Result<&[u8], ThawError> {
    let header =
        bytes.get(..HEADER_BYTES).filter(|_| bytes.starts_with(&MAGIC)).ok_or(ThawError::NotAStack)?;
    let number = |at: usize, length: usize| {
        let bytes = header.get(at..at + length).unwrap_or_default();
        bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    };
    let version = number(8, 4) as u32;
    if version != VERSION {
        return Err(ThawError::Version { found: version, known: VERSION });
    }
    if number(12, 8) != fingerprint() {
        return Err(ThawError::Layout);
    }
    let body = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let expected = number(20, 8);
    if expected != body.len() as u64 {
        let header = HEADER_BYTES as u64;
        return Err(ThawError::Length {
            expected: expected.saturating_add(header),
            found: bytes.len() as u64,
        });
    }
    if number(28, 8) != checksum(body) {
        return Err(ThawError::Checksum);
    }
    Ok(body)
}

/// What the format depends on besides its version.
fn fingerprint() -> u64 {
    SipKey::from_halves(u64::from(VERSION), usize::BITS.into()).hash(env!("CARGO_PKG_VERSION").as_bytes())
}

/// Guards against accidents; whoever changes bytes on purpose computes it anew.
fn checksum(body: &[u8]) -> u64 {
    SipKey::from_halves(0, 0).hash(body)
}

/// Reads a stack, and checks all but the tables that are made anew.
fn read(body: &[u8], memory_limit_bytes: usize) -> Result<Stack, ThawError> {
    let thawed = postcard::take_from_bytes::<Frozen<(Parts, Loopback), Config>>(body);
    let (((mut parts, mut loopback), configs, uses), rest) = thawed.map_err(|_| ThawError::Malformed)?;
    require(rest.is_empty(), "bytes behind the end")?;
    let configs: Vec<Arc<Config>> = configs.into_iter().map(Arc::new).collect();
    let mut uses = uses.into_iter();
    let mut config = || {
        let place = uses.next().and_then(|place| usize::try_from(place).ok());
        place
            .and_then(|place| configs.get(place))
            .cloned()
            .ok_or(Invalid("the configuration of a connection"))
    };
    // A century and a half: sums with times that are waited for stay in range.
    require(parts.resources.now() <= Instant::from_nanos(1 << 62), "the time")?;
    parts.sockets.check()?;
    parts.resources.memory().check(parts.sockets.places())?;

    let (mut left, mut lacks_memory) = (memory_limit_bytes, false);
    let mut act = |packet: &mut Packet| match left.checked_sub(packet.frozen_capacity()) {
        Some(rest) => {
            left = rest;
            packet.thaw()
        }
        None => {
            lacks_memory = true;
            Err(Invalid("memory"))
        }
    };
    let mut visit = || {
        parts.sockets.set_tcp_config(config()?);
        for socket in parts.sockets.iter_mut() {
            match socket {
                Socket::Tcp(flow) => flow.connection_mut().thaw(config()?, &mut act)?,
                Socket::Listener(listener) => listener.thaw(config()?),
                Socket::Udp(udp) => udp.check()?,
                Socket::Echo(_) | Socket::Probe(_) => {}
            }
            if let Some(datagrams) = socket.datagrams_mut() {
                datagrams.thaw(&mut act)?;
            }
        }
        loopback.thaw(&mut act)?;
        parts.network.thaw(&mut act)
    };
    let visited = visit();
    if lacks_memory {
        return Err(ThawError::Memory);
    }
    visited?;
    require(uses.next().is_none(), "configurations of connections that are none")?;
    parts.resources.pool_mut().thaw(memory_limit_bytes - left);
    Ok(Stack { parts, loopback })
}
