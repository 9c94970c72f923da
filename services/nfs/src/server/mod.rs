//! The server: messages in, replies out.
//!
//! [`Server::answer`] takes one RPC message and gives its reply. It may wait for the disk, so drivers call it on a
//! thread that may. It reads no clock, and the only randomness is what it is given: the secret of its handles and the
//! verifier of its writes, which must be another at each start.

pub mod access;
pub mod duplicates;
mod exports;
pub mod folder;
pub mod handles;
mod mounts;
mod operations;
mod ports;
pub mod tree;

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use inhost_base::Instant;

use crate::codec::nfs::{self, DATA_BYTES};
use crate::codec::rpc::{CallHeader, NotCall, RPC_VERSION, ReplyHeader, ReplyStatus};
use crate::codec::xdr::{Decoder, Encoder, Malformed, Xdr};
use crate::codec::{mount, portmap};
use crate::slots::{CALLS_AT_ONCE, Slots};
use duplicates::{Admittance, CallId, Duplicates};
use exports::Export;
pub use exports::{ExportRules, Exports};
use handles::{Handles, SECRET_BYTES};
use mounts::Mounts;
pub use ports::Ports;
use tree::{FileKey, Tree};

/// Octets of a message beside the data of a WRITE, at most.
pub const MESSAGE_BYTES: usize = 4096;
/// Octets of a record that is taken.
pub const RECORD_BYTES: usize = DATA_BYTES + MESSAGE_BYTES;
/// Octets of one READ or WRITE in datagrams: header and octets fit into one of 64 KiB.
pub const DATAGRAM_DATA_BYTES: usize = 32 * 1024;
/// Octets of one READ or WRITE that are best: many of them are under way at a time.
const BEST_BYTES: usize = 1 << 20;
/// Locks of files; a file has the one that its key says.
const LOCKS: usize = 64;

/// A folder to be exported, and under which rules.
pub type Exported = (ExportRules, Arc<dyn Tree>);

/// Who calls, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The address by which access is decided: the outer one of a caller behind a gateway.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// The address of this host that it called.
    pub local: IpAddr,
    /// Whether it calls by datagrams.
    pub is_datagram: bool,
}

/// Programs that are served at a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Programs {
    /// NFS and MOUNT.
    Files,
    /// The portmapper.
    Ports,
}

/// What becomes of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A reply is sent.
    Reply(Vec<u8>),
    /// Nothing is sent: it is not a call.
    Nothing,
    /// The same call is being executed. A connection asks again soon; a datagram is dropped.
    InProgress,
}

/// A caller has asked for an export.
#[derive(Clone, Copy, Debug)]
pub struct MountEvent<'a> {
    /// The caller.
    pub caller: Caller,
    /// When it was asked.
    pub at: Instant,
    /// The path; a stranger's octets.
    pub path: &'a [u8],
    /// Why it was refused, if it was.
    pub refusal: Option<mount::MountError>,
}

type Observer = Box<dyn Fn(MountEvent<'_>) + Send + Sync>;

/// A server. It is shared by all connections and threads.
pub struct Server {
    handles: Handles,
    exports: RwLock<Exports>,
    ports: RwLock<Ports>,
    verifier: AtomicU64,
    duplicates: Mutex<Duplicates>,
    mounts: Mutex<Mounts>,
    locks: [Mutex<()>; LOCKS],
    observer: Observer,
    slots: Slots,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("exports", &self.exports()).finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A procedure that cannot be called so.
enum Refused {
    Procedure,
    Arguments,
}

impl From<Malformed> for Refused {
    fn from(_: Malformed) -> Refused {
        Refused::Arguments
    }
}

impl Server {
    /// A server without exports. `secret` makes its handles, and has to be the same after a restart; `verifier` has to be
    /// another.
    pub fn new(secret: &[u8; SECRET_BYTES], verifier: u64) -> Server {
        Server {
            handles: Handles::new(secret),
            exports: RwLock::default(),
            ports: RwLock::default(),
            verifier: AtomicU64::new(verifier),
            duplicates: Mutex::default(),
            mounts: Mutex::default(),
            locks: [const { Mutex::new(()) }; LOCKS],
            observer: Box::new(|_| {}),
            slots: Slots::new(CALLS_AT_ONCE),
        }
    }

    /// The same, with `observer` told of each mount. It is called on the thread that answers.
    pub fn with_observer(mut self, observer: impl Fn(MountEvent<'_>) + Send + Sync + 'static) -> Server {
        self.observer = Box::new(observer);
        self
    }

    /// Exports these from now on. Handles of those that have the same path stay valid.
    pub fn set_exports(&self, exports: Vec<Exported>) {
        let export = |(rules, tree): Exported| Export {
            number: self.handles.export_number(rules.path.as_bytes()),
            rules,
            tree,
        };
        let exports = Exports::new(exports.into_iter().map(export).collect());
        *self.exports.write().unwrap_or_else(PoisonError::into_inner) = exports;
    }

    /// The ports that the portmapper tells.
    pub fn set_ports(&self, ports: Ports) {
        *self.ports.write().unwrap_or_else(PoisonError::into_inner) = ports;
    }

    /// How many calls are done at a time.
    pub(crate) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// A handle of this server, for the fuzzer.
    pub(crate) fn sealed(&self, path: &str, key: &FileKey) -> nfs::Handle {
        self.handles.seal(self.handles.export_number(path.as_bytes()), key)
    }

    fn exports(&self) -> Exports {
        self.exports.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn verifier(&self) -> nfs::Verifier {
        self.verifier.load(Ordering::Acquire).to_be_bytes()
    }

    /// What was written and not committed may be lost.
    fn change_verifier(&self) {
        self.verifier.fetch_add(1, Ordering::AcqRel);
    }

    fn lock_of(&self, key: &FileKey) -> usize {
        let sum = key.0.iter().take(8).fold(0usize, |sum, &octet| sum.wrapping_mul(31) + usize::from(octet));
        sum % LOCKS
    }

    /// Answers one message that came at `now`. It may wait for the disk.
    pub fn answer(&self, message: &[u8], caller: Caller, programs: Programs, now: Instant) -> Answer {
        let (call, arguments) = match CallHeader::parse(message) {
            Ok(parsed) => parsed,
            Err(NotCall::Ignore) => return Answer::Nothing,
            Err(NotCall::Version { xid }) => {
                let status = ReplyStatus::RpcMismatch { low: RPC_VERSION, high: RPC_VERSION };
                return Answer::Reply(ReplyHeader::octets(xid, status));
            }
            Err(NotCall::Auth { xid, why }) => {
                return Answer::Reply(ReplyHeader::octets(xid, ReplyStatus::Auth(why)));
            }
        };
        let target = call.target;
        let is_once = target.program == nfs::PROGRAM && nfs::is_repeatable(target.procedure) == Some(false);
        if !is_once || programs != Programs::Files {
            return Answer::Reply(self.perform(&call, arguments, (caller, now), programs));
        }
        let id = CallId::new(caller.address, call.xid, target, message);
        let admitted = locked(&self.duplicates).admit(id);
        match admitted {
            Admittance::InProgress => Answer::InProgress,
            Admittance::Done(reply) => Answer::Reply(reply),
            Admittance::New => {
                let reply = self.perform(&call, arguments, (caller, now), programs);
                locked(&self.duplicates).done(id, Some(&reply));
                Answer::Reply(reply)
            }
        }
    }

    fn perform(
        &self,
        call: &CallHeader,
        arguments: &[u8],
        (caller, now): (Caller, Instant),
        programs: Programs,
    ) -> Vec<u8> {
        let (versions, program) = match (programs, call.target.program) {
            (Programs::Files, nfs::PROGRAM) => ((nfs::VERSION, nfs::VERSION), nfs::PROGRAM),
            (Programs::Files, mount::PROGRAM) => ((mount::VERSION, mount::VERSION), mount::PROGRAM),
            (Programs::Ports, portmap::PROGRAM) => ((portmap::VERSION, portmap::VERSION_4), portmap::PROGRAM),
            _ => return ReplyHeader::octets(call.xid, ReplyStatus::ProgramUnavailable),
        };
        if !(versions.0..=versions.1).contains(&call.target.version) {
            let status = ReplyStatus::ProgramMismatch { low: versions.0, high: versions.1 };
            return ReplyHeader::octets(call.xid, status);
        }
        let mut to = Encoder::default();
        ReplyHeader { xid: call.xid, status: ReplyStatus::Success }.encode(&mut to);
        let mut from = Decoder::new(arguments);
        let done = match program {
            nfs::PROGRAM => self.files_procedure(call, caller, &mut from, &mut to),
            mount::PROGRAM => self.mount_procedure(call, (caller, now), &mut from, &mut to),
            _ => self.ports_procedure(call, caller, &mut from, &mut to),
        };
        match done {
            Ok(()) => to.into_octets(),
            Err(Refused::Procedure) => ReplyHeader::octets(call.xid, ReplyStatus::ProcedureUnavailable),
            Err(Refused::Arguments) => ReplyHeader::octets(call.xid, ReplyStatus::GarbageArguments),
        }
    }
}

/// All of the arguments.
fn arguments<T: Xdr>(from: &mut Decoder<'_>) -> Result<T, Malformed> {
    let value = from.value()?;
    from.end().map(|()| value)
}

#[cfg(test)]
mod tests;
