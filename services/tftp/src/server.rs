//! The server's request handler: accepts, refuses or ignores requests.

use std::collections::BTreeMap;

use inhost_base::{Duration, Endpoint, Instant, IpAddr};
use inhost_common::storage::{StorageError, VirtualPath, is_partial};
use inhost_common::{Guard, Rate, network};

use crate::codec::{ErrorCode, Malformed, Packet, Request};

/// Requests that one address has answered, and all together.
const REQUESTS_EACH: Rate = Rate { burst: 64, per_second: 32 };
const REQUESTS_ALL: Rate = Rate { burst: 1024, per_second: 512 };
/// A request that comes again while its transfer has moved within this time is the same one.
const QUIET: Duration = Duration::from_secs(3);
/// Ports of services that answer every datagram (RFC 862, 864, 865, 867, 868), and no port. Any other may be a
/// client's, those below 1024 too: a transfer's ports are drawn from all (RFC 1350 §4), and boot loaders begin at low
/// ones.
const ANSWERING_PORTS: [u16; 6] = [0, 7, 13, 17, 19, 37];

/// Access rights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rights {
    /// They may be read.
    #[default]
    Read,
    /// New ones may come, and none in the place of another.
    Create,
    /// Files may come, in the place of others too.
    Write,
}

/// Limits on concurrent transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TransferLimits {
    /// Transfers. Default: 64. Cost: a window, and what is read ahead of it, each.
    pub transfers: usize,
    /// Transfers of one address, or IPv6 network of 64 bits. Default: 8.
    pub transfers_per_client: usize,
}

impl Default for TransferLimits {
    fn default() -> Self {
        TransferLimits { transfers: 64, transfers_per_client: 8 }
    }
}

/// The client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Client {
    /// The endpoint for its answer.
    pub end: Endpoint,
    /// By whom it is counted: the outer caller, if a gateway forwards it, else the same.
    pub caller: Endpoint,
}

impl From<Endpoint> for Client {
    fn from(end: Endpoint) -> Client {
        Client { end, caller: end }
    }
}

/// Verdict on a datagram at the server's port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// A transfer begins, in the place of an earlier one of the same port.
    Start(Request, VirtualPath),
    /// The sender gets an error.
    Refuse(ErrorCode, String),
    /// Nothing is said.
    Ignore,
}

#[derive(Debug)]
struct Active {
    caller: IpAddr,
    began: Instant,
    request: Request,
    moved_at: Instant,
}

/// Handler of requests at the server port.
///
/// ```
/// use inhost_base::{Endpoint, Instant};
/// use inhost_tftp::{ErrorCode, RequestHandler, Rights, TransferLimits, Verdict};
/// let (client, server) = (Endpoint::new([10, 9, 0, 1], 2000), Endpoint::new([10, 9, 0, 2], 69));
/// let mut handler = RequestHandler::new(TransferLimits::default(), Rights::Read);
/// let write = b"\0\x02notes.txt\0octet\0";
/// let verdict = handler.request(client.into(), server, write, Instant::ZERO);
/// assert!(matches!(verdict, Verdict::Refuse(ErrorCode::ACCESS, _)));
/// let read = b"\0\x01notes.txt\0octet\0";
/// assert!(matches!(handler.request(client.into(), server, read, Instant::ZERO), Verdict::Start(..)));
/// ```
#[derive(Debug)]
pub struct RequestHandler {
    limits: TransferLimits,
    rights: Rights,
    guard: Guard,
    active: BTreeMap<Endpoint, Active>,
}

impl RequestHandler {
    /// One that nobody has come to.
    pub fn new(limits: TransferLimits, rights: Rights) -> RequestHandler {
        let guard = Guard::new(REQUESTS_EACH, REQUESTS_ALL);
        RequestHandler { limits, rights, guard, active: BTreeMap::new() }
    }
    /// Other limits and rights from now on, for new transfers.
    pub fn change(&mut self, limits: TransferLimits, rights: Rights) {
        (self.limits, self.rights) = (limits, rights);
    }
    /// Judges a datagram that `client` has sent to us at `to`. After [`Verdict::Start`] the transfer counts until
    /// [`RequestHandler::ended`].
    pub fn request(&mut self, client: Client, to: Endpoint, bytes: &[u8], now: Instant) -> Verdict {
        let Client { end: from, caller } = client;
        // RFC 1123 §4.2.3.5: a request to all is nobody's.
        if !is_for_one(to.address) || ANSWERING_PORTS.contains(&caller.port) {
            return Verdict::Ignore;
        }
        // Errors are never answered, so that two servers do not loop.
        if self.guard.admit_from_any_port(caller, now).is_err() {
            return Verdict::Ignore;
        }
        let request = match Packet::parse(bytes) {
            Ok(Packet::Request(request)) => request,
            // An error is never answered with another.
            Ok(Packet::Error(..)) | Err(Malformed::Short) => return Verdict::Ignore,
            Ok(_) => return refuse(ErrorCode::UNKNOWN_TRANSFER, "No transfer is at this port"),
            Err(why) => return refuse(ErrorCode::ILLEGAL, &why.to_string()),
        };
        if let Some(active) = self.active.get(&from) {
            if active.request == request && now.since(active.moved_at) < QUIET {
                return Verdict::Ignore;
            }
            self.active.remove(&from);
        }
        if request.is_write && self.rights == Rights::Read {
            return refuse(ErrorCode::ACCESS, "Files may be read here, not written");
        }
        let path = match path(&request.name) {
            Ok(path) => path,
            Err(why) => return refuse(ErrorCode::ACCESS, why),
        };
        let network = network(caller.address);
        let of_client = self.active.values().filter(|active| self::network(active.caller) == network).count();
        if self.active.len() >= self.limits.transfers || of_client >= self.limits.transfers_per_client {
            return refuse(ErrorCode::OTHER, "Too many transfers, try again later");
        }
        self.active.insert(
            from,
            Active { caller: caller.address, began: now, request: request.clone(), moved_at: now },
        );
        Verdict::Start(request, path)
    }
    /// The client's transfer moves.
    pub fn progress(&mut self, client: Endpoint, now: Instant) {
        if let Some(active) = self.active.get_mut(&client) {
            active.moved_at = now;
        }
    }
    /// The client's transfer is over.
    pub fn ended(&mut self, client: Endpoint) {
        self.active.remove(&client);
    }
    /// Clients with an active transfer, each with its start.
    pub fn callers(&self) -> impl Iterator<Item = (IpAddr, Instant)> {
        self.active.values().map(|active| (active.caller, active.began))
    }
    /// Transfers that go on.
    pub fn transfers(&self) -> usize {
        self.active.len()
    }
}

fn refuse(code: ErrorCode, why: &str) -> Verdict {
    Verdict::Refuse(code, why.to_owned())
}

fn is_for_one(address: IpAddr) -> bool {
    !address.is_multicast() && !matches!(address, IpAddr::V4(a) if a.is_broadcast())
}

/// The file that a name means: from the folder that is served, whether or not the name begins with a slash.
fn path(name: &str) -> Result<VirtualPath, &'static str> {
    if name.split('/').any(|part| part == "..") {
        return Err("The name leads out of the folder");
    }
    let path = VirtualPath::root().join(name);
    match path.name() {
        None => Err("No file is named"),
        Some(last) if is_partial(last) => Err("A file that is being written has no name yet"),
        Some(_) if name.chars().any(char::is_control) => Err("That cannot be a file's name"),
        Some(_) => Ok(path),
    }
}

/// The error code for a file that cannot be opened.
pub fn error_code(error: &StorageError) -> ErrorCode {
    match error {
        StorageError::NotFound => ErrorCode::NOT_FOUND,
        StorageError::Exists => ErrorCode::EXISTS,
        StorageError::Quota | StorageError::Full | StorageError::DiskQuota => ErrorCode::FULL,
        StorageError::Denied
        | StorageError::IsDirectory
        | StorageError::NotDirectory
        | StorageError::NotFile
        | StorageError::Name
        | StorageError::Unfinished => ErrorCode::ACCESS,
        _ => ErrorCode::OTHER,
    }
}

#[cfg(test)]
mod tests;
