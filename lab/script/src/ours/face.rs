//! Socket semantics of the `linux` profile over the stack, as in `host/packetdrill`: an error that ended a connection
//! is reported once, and nothing is written before a connection is open.

use crate::language::{Failure, Profile};
use crate::side::Came;
use inhost_base::Instant;
use inhost_event::TcpState;
use inhost_stack::{Readiness, SocketId, Stack};
use inhost_tcp::SoftError;
use std::collections::{BTreeMap, BTreeSet};

/// The face of one host.
pub(super) struct Face {
    is_linux: bool,
    /// Sockets whose error was reported.
    reported: BTreeSet<SocketId>,
    /// The last soft error reported.
    soft_reported: BTreeMap<SocketId, Option<SoftError>>,
    /// Connection attempts that were shut down, and whether that was reported.
    given_up: BTreeMap<SocketId, bool>,
    /// Sockets of calls that a router's message ended: Linux keeps the message, and poll says so for ever.
    icmp_ended: BTreeSet<SocketId>,
}

impl Face {
    pub fn new(profile: Profile) -> Face {
        Face {
            is_linux: profile == Profile::Linux,
            reported: BTreeSet::new(),
            soft_reported: BTreeMap::new(),
            given_up: BTreeMap::new(),
            icmp_ended: BTreeSet::new(),
        }
    }
    /// Whether the handshake is done, or will never be.
    pub fn may_write(&self, stack: &Stack, socket: SocketId, now: Instant) -> bool {
        let state = stack.instruments().info(socket, now).and_then(|info| info.state);
        let opens = matches!(state, Some(TcpState::SynSent | TcpState::SynReceived));
        !self.is_linux || !opens || stack.readiness(socket).contains(Readiness::CONNECTED)
    }
    /// Whether there is a connection, or the beginning of one, to shut down. A call that is shut down is given up, and
    /// says so once.
    pub fn shuts_down(&mut self, stack: &Stack, socket: SocketId, now: Instant) -> bool {
        let state = stack.instruments().info(socket, now).and_then(|info| info.state);
        if self.is_linux && state == Some(TcpState::SynSent) {
            self.given_up.insert(socket, false);
        }
        !self.is_linux || !matches!(state, None | Some(TcpState::Closed | TcpState::TimeWait))
    }
    /// Result of a write: the error that ended the connection takes precedence over its own shutdown; once reported,
    /// the connection is just closed.
    pub fn written(&mut self, socket: SocketId, came: Came, error: Option<Failure>) -> Came {
        if let Some(came) = self.after_giving_up(socket, Failure::Closed) {
            return came;
        }
        match (came, error) {
            (Came::Failed(why), Some(error)) if self.is_linux && why != Failure::WouldBlock => {
                self.once(socket, Came::Failed(error), Came::Failed(Failure::Closed))
            }
            (came, _) => came,
        }
    }
    /// Result of a read: after its error is reported, end of stream.
    pub fn read(&mut self, socket: SocketId, came: Came) -> Came {
        match self.after_giving_up(socket, Failure::NotConnected) {
            Some(came) => came,
            None => self.once(socket, came, Came::Read(Vec::new())),
        }
    }
    /// The socket's pending error (SO_ERROR), or else the last soft error.
    pub fn error(&mut self, socket: SocketId, came: Came, soft: Option<SoftError>) -> Came {
        if let Some(reported) = self.given_up.get_mut(&socket) {
            return if std::mem::replace(reported, true) { Came::Done } else { Came::Failed(Failure::Reset) };
        }
        if self.is_linux && (came == Came::Done || !self.reported.insert(socket)) {
            return self.soft_error(socket, soft);
        }
        came
    }
    /// What a call gives on a socket whose own call was shut down: a reset once, and `afterwards` from then on.
    fn after_giving_up(&mut self, socket: SocketId, afterwards: Failure) -> Option<Came> {
        let reported = self.given_up.get_mut(&socket)?;
        let failure = if std::mem::replace(reported, true) { afterwards } else { Failure::Reset };
        Some(Came::Failed(failure))
    }
    /// Whether poll shows what is so: urgent data once its last byte is there, and no end of a call that was given up.
    pub fn shows(&self, stack: &Stack, socket: SocketId, field: &str, now: Instant) -> bool {
        let info = stack.instruments().info(socket, now).and_then(|info| info.tcp);
        match (field, info) {
            _ if !self.is_linux => true,
            ("urgent", Some(info)) => info.urgent_has_come,
            ("peer_closed" | "readable", _) => !self.given_up.contains_key(&socket),
            _ => true,
        }
    }
    /// A router's message ended these.
    pub fn ended(&mut self, sockets: impl Iterator<Item = SocketId>) {
        if self.is_linux {
            self.icmp_ended.extend(sockets);
        }
    }
    /// Whether an error is pending.
    pub fn has_error(&self, socket: SocketId, has: bool) -> bool {
        if self.icmp_ended.contains(&socket) {
            return true;
        }
        if let Some(was_reported) = self.given_up.get(&socket) {
            return !was_reported;
        }
        has && !(self.is_linux && self.reported.contains(&socket))
    }
    fn soft_error(&mut self, socket: SocketId, soft: Option<SoftError>) -> Came {
        let failure = match soft {
            Some(SoftError::Refused) => Failure::Refused,
            Some(SoftError::NotResponding) | None => {
                self.soft_reported.remove(&socket);
                return Came::Done;
            }
            Some(_) => Failure::Unreachable,
        };
        if self.soft_reported.insert(socket, soft) == Some(soft) { Came::Done } else { Came::Failed(failure) }
    }
    fn once(&mut self, socket: SocketId, came: Came, afterwards: Came) -> Came {
        let ends = matches!(&came, Came::Failed(why) if *why != Failure::WouldBlock);
        if self.is_linux && ends && !self.reported.insert(socket) { afterwards } else { came }
    }
}
