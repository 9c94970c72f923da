//! The server on a host: requests at its port, each transfer at its own port.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use inhost_base::{Endpoint, Instant, IpAddr, Ipv6Addr};
use inhost_common::service::{Doors, Problem};
use inhost_common::storage::{Storage, StorageError, Store, VirtualPath};
use inhost_common::{Admission, AdmissionLimits, Callers, Transport};
use inhost_socket::{Ends, Host, Task, UdpSocket};
use inhost_stack::UdpOptions;

use super::carry::{Arriving, Progress, carry};
use crate::codec::options::{BLOCK_BYTES, Limits, WINDOW_BYTES_LIMIT};
use crate::codec::{ErrorCode, Packet, REQUEST_BYTES, Request};
use crate::machine::{Settings, Summary, Transfer, TransferError};
use crate::server::{Client, RequestHandler, Rights, TransferLimits, Verdict, error_code};

/// Permission bits that a file which came does not get.
const UMASK: u32 = 0o022;
/// Memory of datagrams that wait, beyond a window: those that come meanwhile.
const RECEIVE_BYTES: usize = 256 * 1024;

/// Configuration of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Limits on concurrent transfers.
    pub transfers: TransferLimits,
    /// Access rights. Default: they may be read.
    pub rights: Rights,
    /// Limits on granted options. Default: blocks of 65,464 octets, windows of 64 blocks.
    pub limits: Limits,
    /// Configuration of each transfer.
    pub settings: Settings,
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig {
            transfers: TransferLimits::default(),
            rights: Rights::Read,
            limits: Limits::default(),
            settings: Settings::default(),
        }
    }
}

/// Events of the server.
#[derive(Clone, Copy, Debug)]
pub enum ServerEvent<'a> {
    /// A request was refused.
    Refused {
        /// Whose: the outer caller's, if it came through a gateway.
        peer: Endpoint,
        /// The reason, as sent to the client.
        why: &'a str,
    },
    /// A transfer is over.
    Ended {
        /// With whom: the outer caller, if it came through a gateway.
        peer: Endpoint,
        /// The requested name.
        request: &'a Request,
        /// The result.
        outcome: &'a Result<Summary, TransferError>,
    },
}

struct Shared {
    host: Host,
    callers: Callers,
    requests: RefCell<RequestHandler>,
    config: RefCell<ServerConfig>,
    storage: RefCell<Rc<dyn Storage>>,
    record: Box<dyn Fn(ServerEvent<'_>)>,
    transfers: RefCell<BTreeMap<Endpoint, Task<()>>>,
}

/// A running server. Dropping it ends it, with its transfers.
#[must_use = "dropping it ends the server"]
pub struct Server {
    shared: Rc<Shared>,
    doors: Doors,
}

/// Starts a server of the files of `storage` at `port` of every address of `host`. Limits count the outer callers of
/// `callers`.
pub fn serve(
    host: &Host,
    port: u16,
    storage: Rc<dyn Storage>,
    config: ServerConfig,
    callers: Callers,
    record: impl Fn(ServerEvent<'_>) + 'static,
) -> Result<Server, Problem> {
    let at = Endpoint::new(Ipv6Addr::UNSPECIFIED, port);
    // Nobody calls by TCP.
    let admission = Admission::new(AdmissionLimits::default());
    let doors = Doors::new("tftp", host, &callers, admission, |_| ());
    let shared = Rc::new(Shared {
        host: host.clone(),
        callers,
        requests: RefCell::new(RequestHandler::new(config.transfers, config.rights)),
        config: RefCell::new(config),
        storage: RefCell::new(storage),
        record: Box::new(record),
        transfers: RefCell::default(),
    });
    let own = shared.clone();
    doors.bind(at, UdpOptions::default(), move |socket| take_requests(own.clone(), socket))?;
    Ok(Server { shared, doors })
}

impl Server {
    /// Other files and another behaviour from now on, for new transfers.
    pub fn change(&self, storage: Rc<dyn Storage>, config: ServerConfig) {
        self.shared.requests.borrow_mut().change(config.transfers, config.rights);
        self.shared.config.replace(config);
        self.shared.storage.replace(storage);
    }
    /// Clients with an active transfer, each with its start.
    pub fn callers(&self) -> Vec<(IpAddr, Instant)> {
        self.shared.requests.borrow().callers().collect()
    }
    /// What takes requests.
    pub fn doors(&self) -> &Doors {
        &self.doors
    }
    /// Transfers that go on.
    pub fn transfers(&self) -> usize {
        self.shared.requests.borrow().transfers()
    }
}
impl Drop for Server {
    fn drop(&mut self) {
        let ended = std::mem::take(&mut *self.shared.transfers.borrow_mut());
        drop(ended);
    }
}

async fn take_requests(shared: Rc<Shared>, socket: UdpSocket) {
    // One octet by which a longer request is known.
    let mut datagram = vec![0; REQUEST_BYTES + 1];
    loop {
        // An error is news of an earlier answer that nobody took.
        let Ok(received) = socket.receive_from(&mut datagram).await else { continue };
        let bytes = &datagram[..received.length_bytes.min(datagram.len())];
        let (from, to) = (received.from, received.to);
        let caller = shared.callers.of(Transport::Udp, from);
        let client = Client { end: from, caller };
        let verdict = shared.requests.borrow_mut().request(client, to, bytes, shared.host.now());
        match verdict {
            Verdict::Ignore => {}
            Verdict::Refuse(code, why) => {
                (shared.record)(ServerEvent::Refused { peer: caller, why: &why });
                let error = Packet::Error(code, why).bytes();
                // An unreachable client gets no error.
                let _ = socket.send_between(&error, Ends { from: Some(to), to: Some(from) }).await;
            }
            Verdict::Start(request, path) => {
                let work = transfer(shared.clone(), to.address, client, request, path);
                let replaced = shared.transfers.borrow_mut().insert(from, shared.host.spawn(work));
                drop(replaced);
            }
        }
    }
}

/// Notes how a client's transfer goes.
struct Place {
    shared: Rc<Shared>,
    client: Client,
    request: Request,
}

impl Progress for Place {
    fn moved(&self, _: u64, now: Instant) {
        self.shared.requests.borrow_mut().progress(self.client.end, now);
    }
    // A dallying transfer does not count against the limit.
    fn settled(&self, outcome: &Result<Summary, TransferError>) {
        self.shared.requests.borrow_mut().ended(self.client.end);
        let (peer, request) = (self.client.caller, &self.request);
        (self.shared.record)(ServerEvent::Ended { peer, request, outcome });
    }
}

async fn transfer(shared: Rc<Shared>, own: IpAddr, client: Client, request: Request, path: VirtualPath) {
    let place = Place { shared: shared.clone(), client, request };
    if let Err((code, message)) = meet(&place, own, &path).await {
        place.settled(&Err(TransferError::Here { code, message }));
    }
    // This is the task that is being removed: it ends by itself.
    if let Some(task) = shared.transfers.borrow_mut().remove(&client.end) {
        task.detach();
    }
}

/// Carries the transfer to its end; or says why it did not begin.
async fn meet(place: &Place, own: IpAddr, path: &VirtualPath) -> Result<(), (ErrorCode, String)> {
    let Place { shared, client, request } = place;
    let config = *shared.config.borrow();
    let granted = request.options.grant(&config.limits, None, request.is_write);
    let window_bytes =
        usize::from(granted.window.unwrap_or(1)) * usize::from(granted.block_size.unwrap_or(BLOCK_BYTES));
    // A packet's buffer may be twice as long as what is in it.
    let receive_limit_bytes = RECEIVE_BYTES + 2 * window_bytes.min(WINDOW_BYTES_LIMIT);
    let mut options = UdpOptions::default();
    options.receive_limit_bytes = receive_limit_bytes;
    options.answers_strangers = true;
    let opened = shared.host.udp(Endpoint::new(own, 0), options);
    let socket = opened.map_err(|error| (ErrorCode::OTHER, error.to_string()))?;
    let (file, size_bytes) = match open(shared, &config, request, path).await {
        Ok(opened) => opened,
        Err((code, message)) => {
            let error = Packet::Error(code, message.clone()).bytes();
            // An unreachable client gets no error.
            let _ = socket.send_to(&error, client.end).await;
            return Err((code, message));
        }
    };
    let (limits, now) = (&config.limits, shared.host.now());
    let transfer = Transfer::answer(request.clone(), client.end, size_bytes, limits, config.settings, now);
    // The result is reported as soon as it is known.
    let _ = carry(transfer, &socket, &shared.host, file, place).await;
    Ok(())
}

/// Opens the requested file, or gives the error for the client.
async fn open(
    shared: &Rc<Shared>,
    config: &ServerConfig,
    request: &Request,
    path: &VirtualPath,
) -> Result<(Arriving, Option<u64>), (ErrorCode, String)> {
    let storage = shared.storage.borrow().clone();
    let refused = |error: StorageError| (error_code(&error), error.to_string());
    if !request.is_write {
        let source = storage.retrieve(path).await.map_err(refused)?;
        let size_bytes = source.size_bytes();
        return Ok((Arriving::Source(source), Some(size_bytes)));
    }
    if request.options.transfer_size.is_some_and(|bytes| bytes > config.settings.size_limit_bytes) {
        return Err((ErrorCode::FULL, "The file is longer than this end takes".to_owned()));
    }
    if config.rights != Rights::Write && storage.facts(path).await.is_ok() {
        return Err(refused(StorageError::Exists));
    }
    let storing = storage.store(path, Store::Replace, UMASK).await.map_err(refused)?;
    Ok((Arriving::Sink(storing.sink), None))
}
