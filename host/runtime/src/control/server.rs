//! The server of the control socket.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::{fs, net::SocketAddr};

use inhost_base::{Endpoint, Instant};
use inhost_record::Recorder;
use inhost_socket::errno::Errno;
use inhost_socket::{Host, Stream, Task};
use inhost_stack::{ConnectOptions, ListenOptions, Local, SocketId, UdpOptions};
use rustix::net::RecvFlags;
use serde_json::{Map, Value, json};

use super::debug;
use super::names::{name, named};
use super::netstat::{self, Pieces};
use super::protocol::{LONGEST_REQUEST_BYTES, own_directory, send_with_descriptor};
use super::pump;
use super::record;
use super::reply::{Failure, Handler, Reply, by};
use super::trust;
use crate::async_fd::AsyncFd;
use crate::link::Links;
use crate::reactor::{Interest, Reactor};

/// Most conversations at a time. Further clients are refused.
const MAX_CONVERSATIONS: usize = 256;
/// Ends of connections that are remembered for `status`.
const REMEMBERED_ENDS: usize = 256;

/// Serves the control socket of one host. Dropping it removes the socket's file; conversations end with the host.
pub struct Server {
    shared: Rc<Shared>,
    path: PathBuf,
    listener: UnixListener,
    /// The task that accepts; none after [`Server::hand_over`].
    accepting: RefCell<Option<Task<()>>>,
    /// Whether the file is removed at the end.
    owns_file: Cell<bool>,
}

struct Shared {
    host: Host,
    reactor: Reactor,
    links: RefCell<Option<Links>>,
    handlers: RefCell<BTreeMap<String, Handler>>,
    ended: RefCell<VecDeque<(SocketId, inhost_socket::ConnectionError)>>,
    conversations: RefCell<usize>,
    shutdown: RefCell<(bool, Vec<Waker>)>,
    /// The round in which a piece of `netstat` was made last.
    piece_made: Cell<Option<Instant>>,
}

impl Server {
    /// Opens the socket at `path` and serves it by tasks of `host`. A stale socket is replaced; the socket of a running
    /// host is an error of kind `AddrInUse`.
    pub fn open(host: &Host, reactor: &Reactor, path: &Path) -> io::Result<Server> {
        prepare(path)?;
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        let server = Server::adopt(host, reactor, path, listener)?;
        server.own_file();
        Ok(server)
    }
    /// Serves a socket that listens at `path` already: one that was handed over by another process. The file is that
    /// process's until [`Server::own_file`].
    ///
    /// # Errors
    /// When it cannot be watched.
    pub fn adopt(host: &Host, reactor: &Reactor, path: &Path, listener: UnixListener) -> io::Result<Server> {
        let shared = Rc::new(Shared {
            host: host.clone(),
            reactor: reactor.clone(),
            links: RefCell::default(),
            handlers: RefCell::default(),
            ended: RefCell::default(),
            conversations: RefCell::default(),
            shutdown: RefCell::default(),
            piece_made: Cell::new(None),
        });
        let (path, accepting) = (path.to_owned(), RefCell::new(None));
        let server = Server { shared, path, listener, accepting, owns_file: Cell::new(false) };
        server.resume()?;
        Ok(server)
    }
    /// A descriptor of the listening socket for another process, which serves it from now on. Conversations go on, and
    /// the file stays when this is dropped.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn hand_over(&self) -> io::Result<UnixListener> {
        let listener = self.listener.try_clone()?;
        drop(self.accepting.take());
        self.owns_file.set(false);
        Ok(listener)
    }
    /// Accepts again after [`Server::hand_over`], because the other process has ended.
    ///
    /// # Errors
    /// When the socket cannot be watched.
    pub fn resume(&self) -> io::Result<()> {
        let listener = AsyncFd::new(&self.shared.reactor, self.listener.try_clone()?)?;
        *self.accepting.borrow_mut() = Some(self.shared.host.spawn(serve(self.shared.clone(), listener)));
        Ok(())
    }
    /// Removes the socket's file when this is dropped: the handover is done, or undone.
    pub fn own_file(&self) {
        self.owns_file.set(true);
    }
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Adds the reports of the links' drivers to the instruments.
    pub fn show_links(&self, links: Links) {
        *self.shared.links.borrow_mut() = Some(links);
    }
    /// Adds the requests of the flight recorder.
    pub fn show_recorder(&self, recorder: &Recorder) {
        let requests = record::requests(&self.shared.reactor, recorder);
        let requests = requests.map(|(op, handler)| (op.to_owned(), handler));
        self.shared.handlers.borrow_mut().extend(requests);
    }
    /// Adds a kind of request; one that is built in cannot be replaced.
    pub fn handle<F>(&self, op: &str, handler: impl Fn(Host, Value) -> F + 'static)
    where
        F: Future<Output = Result<Reply, Failure>> + 'static,
    {
        self.shared.handlers.borrow_mut().insert(op.to_owned(), by(handler));
    }
    /// Waits until a client asks for the host's shutdown.
    pub async fn shutdown_requested(&self) {
        poll_fn(|context| {
            let (asked, waiting) = &mut *self.shared.shutdown.borrow_mut();
            if *asked {
                return Poll::Ready(());
            }
            if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                waiting.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.owns_file.get() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Ensures that `path` can be bound, and that no other user can replace it. The directory for hosts is made.
fn prepare(path: &Path) -> io::Result<()> {
    let own = own_directory();
    if path.parent() == Some(&own) {
        match fs::DirBuilder::new().mode(0o700).create(&own) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    trust::check_directory(path)?;
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {}
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file in its place")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "a host is running there already")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}

async fn serve(shared: Rc<Shared>, listener: AsyncFd<UnixListener>) {
    loop {
        let conversation = match listener.accept().await {
            Ok(conversation) => conversation,
            Err(_) => {
                // A shortage, or a caller who has gone already: the next are accepted all the same.
                shared.host.sleep(inhost_base::Duration::from_millis(100)).await;
                continue;
            }
        };
        if trust::check_peer(&conversation).is_err() || *shared.conversations.borrow() >= MAX_CONVERSATIONS {
            continue;
        }
        let present = Present::new(&shared);
        let shared = shared.clone();
        let host = shared.host.clone();
        let talk = async move {
            let _present = present;
            // An error in a conversation ends only that conversation.
            let _ = converse(&shared, &conversation).await;
        };
        host.spawn(talk).detach();
    }
}

/// Counts a conversation while it lasts.
struct Present(Rc<Shared>);
impl Present {
    fn new(shared: &Rc<Shared>) -> Present {
        *shared.conversations.borrow_mut() += 1;
        Present(shared.clone())
    }
}
impl Drop for Present {
    fn drop(&mut self) {
        *self.0.conversations.borrow_mut() -= 1;
    }
}

async fn converse(shared: &Rc<Shared>, conversation: &AsyncFd<UnixStream>) -> io::Result<()> {
    let mut pending = Vec::new();
    let mut piece = vec![0; 4096];
    loop {
        while let Some(end) = pending.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            let request = serde_json::from_slice::<Value>(&line);
            if request.as_ref().is_ok_and(|request| request["op"] == "netstat") {
                write_netstat(shared, conversation).await?;
                continue;
            }
            let (reply, descriptor) = answer(shared, request).await;
            write(conversation, format!("{reply}\n").as_bytes(), descriptor).await?;
        }
        if pending.len() > LONGEST_REQUEST_BYTES {
            return Ok(());
        }
        let read = conversation
            .io(Interest::Read, |inner| Ok(rustix::net::recv(inner, &mut piece, RecvFlags::empty())?.0));
        match read.await? {
            0 => return Ok(()),
            count => pending.extend_from_slice(&piece[..count]),
        }
    }
}

async fn write(
    conversation: &AsyncFd<UnixStream>,
    mut text: &[u8],
    descriptor: Option<OwnedFd>,
) -> io::Result<()> {
    let mut descriptor = descriptor;
    while !text.is_empty() {
        let count = conversation
            .io(Interest::Write, |inner| {
                send_with_descriptor(inner, text, descriptor.as_ref().map(AsFd::as_fd))
            })
            .await?;
        descriptor = None;
        text = &text[count.min(text.len())..];
    }
    Ok(())
}

/// Answers `netstat` in parts, one part a round for all clients, so that other work is not delayed. The next part
/// follows when the client has read the last.
async fn write_netstat(shared: &Rc<Shared>, conversation: &AsyncFd<UnixStream>) -> io::Result<()> {
    let mut pieces = Pieces::new();
    write(conversation, b"{\"ok\":true,", None).await?;
    loop {
        let now = shared.host.now();
        if shared.piece_made.replace(Some(now)) == Some(now) {
            // Time goes on between rounds only.
            shared.host.sleep(inhost_base::Duration::from_nanos(1)).await;
            continue;
        }
        let Some(piece) = pieces.piece(&shared.host, shared.links.borrow().as_ref()) else { break };
        write(conversation, piece.as_bytes(), None).await?;
    }
    write(conversation, b"}\n", None).await
}

async fn answer(shared: &Rc<Shared>, request: Result<Value, serde_json::Error>) -> (Value, Option<OwnedFd>) {
    let done = match request {
        Ok(request) => carry_out(shared, request).await,
        Err(error) => Err(Failure::new(format!("not JSON: {error}"))),
    };
    match done {
        Ok(Reply { mut members, descriptor }) => {
            members.insert("ok".to_owned(), Value::Bool(true));
            (Value::Object(members), descriptor)
        }
        Err(Failure { text, errno }) => (json!({"ok": false, "error": text, "errno": errno}), None),
    }
}

async fn carry_out(shared: &Rc<Shared>, request: Value) -> Result<Reply, Failure> {
    let op = request["op"].as_str().ok_or_else(|| Failure::new("a request needs an \"op\""))?;
    match op {
        "connect" => connect(shared, &request).await,
        "listen" => listen(shared, &request),
        "udp" => udp(shared, &request),
        "status" => status(shared, &request),
        "counters" => {
            Ok(Value::Object(netstat::overview(&shared.host, shared.links.borrow().as_ref())).into())
        }
        "debug" => debug::answer(&shared.host, &request),
        "shutdown" => {
            let (asked, waiting) = &mut *shared.shutdown.borrow_mut();
            *asked = true;
            waiting.drain(..).for_each(Waker::wake);
            Ok(Reply::default())
        }
        _ => {
            let handler = shared.handlers.borrow().get(op).cloned();
            let handler = handler.ok_or_else(|| Failure::new(format!("no such request: {op}")))?;
            handler(shared.host.clone(), request).await
        }
    }
}

async fn connect(shared: &Rc<Shared>, request: &Value) -> Result<Reply, Failure> {
    let to = end(request, "to")?.ok_or_else(|| Failure::new("\"to\" is missing"))?;
    let local = match end(request, "from")? {
        None => Local::default(),
        Some(from) => {
            let address = Some(from.address).filter(|address| !address.is_unspecified());
            Local { address, port: from.port }
        }
    };
    let mut options = ConnectOptions::default();
    options.local = local;
    // First, so that no connection is opened without a descriptor for it.
    let (ours, theirs) = pump::stream_pair(&shared.reactor).map_err(no_descriptor)?;
    let stream = shared.host.connect_with(to, options).await?;
    if let Some(nagle) = request["nagle"].as_bool() {
        stream.set_nagle(nagle);
    }
    Ok(Reply { members: hand_over(shared, stream, ours), descriptor: Some(theirs) })
}

/// Gives a connection a task that serves its descriptor.
fn hand_over(shared: &Rc<Shared>, stream: Stream, ours: AsyncFd<UnixStream>) -> Map<String, Value> {
    let socket = stream.socket();
    let members = Map::from_iter([
        ("socket".to_owned(), name(socket.into())),
        ("local".to_owned(), stream.local().to_string().into()),
        ("remote".to_owned(), stream.remote().to_string().into()),
    ]);
    let remembered = shared.clone();
    let carry = async move {
        if let Err(why) = pump::carry(stream, ours).await {
            let mut ended = remembered.ended.borrow_mut();
            if ended.len() >= REMEMBERED_ENDS {
                ended.pop_front();
            }
            ended.push_back((socket.into(), why));
        }
    };
    shared.host.spawn(carry).detach();
    members
}

fn listen(shared: &Rc<Shared>, request: &Value) -> Result<Reply, Failure> {
    let at = end(request, "at")?.ok_or_else(|| Failure::new("\"at\" is missing"))?;
    let mut options = ListenOptions::default();
    if let Some(backlog) = request["backlog"].as_u64() {
        options.backlog = backlog.clamp(1, 4096) as usize;
    }
    let listener = shared.host.listen(at, options)?;
    let (ours, theirs) = pump::message_pair(&shared.reactor).map_err(no_descriptor)?;
    let members = Map::from_iter([
        ("socket".to_owned(), name(listener.socket().into())),
        ("local".to_owned(), listener.local().to_string().into()),
    ]);
    let sharing = shared.clone();
    let accepted = move |stream, ours| Value::Object(hand_over(&sharing, stream, ours)).to_string();
    shared.host.spawn(pump::carry_connections(listener, ours, accepted)).detach();
    Ok(Reply { members, descriptor: Some(theirs) })
}

fn udp(shared: &Rc<Shared>, request: &Value) -> Result<Reply, Failure> {
    let to = end(request, "to")?;
    let anywhere = |to: Endpoint| match to.address {
        std::net::IpAddr::V4(_) => Endpoint::new(std::net::Ipv4Addr::UNSPECIFIED, 0),
        std::net::IpAddr::V6(_) => Endpoint::new(std::net::Ipv6Addr::UNSPECIFIED, 0),
    };
    let at = end(request, "at")?
        .or(to.map(anywhere))
        .ok_or_else(|| Failure::new("\"at\" or \"to\" is missing"))?;
    let socket = shared.host.udp(at, UdpOptions::default())?;
    if let Some(to) = to {
        socket.connect(to)?;
    }
    let (ours, theirs) = pump::datagram_pair(&shared.reactor).map_err(no_descriptor)?;
    let members = Map::from_iter([
        ("socket".to_owned(), name(socket.socket().into())),
        ("local".to_owned(), socket.local().to_string().into()),
    ]);
    shared.host.spawn(pump::carry_datagrams(socket, ours, to)).detach();
    Ok(Reply { members, descriptor: Some(theirs) })
}

fn status(shared: &Rc<Shared>, request: &Value) -> Result<Reply, Failure> {
    let socket = named(request)?;
    if let Some((_, why)) = shared.ended.borrow().iter().rev().find(|(ended, _)| *ended == socket) {
        return Ok(json!({"ended": why.to_string(), "errno": why.errno()}).into());
    }
    let info = shared.host.with_stack(|stack, now| stack.instruments().info(socket, now));
    match info {
        Some(info) => Ok(json!({"status": netstat::socket(&info)}).into()),
        None => Ok(json!({"ended": null}).into()),
    }
}

fn end(request: &Value, member: &str) -> Result<Option<Endpoint>, Failure> {
    match &request[member] {
        Value::Null => Ok(None),
        Value::String(text) => match text.parse::<SocketAddr>() {
            Ok(end) => Ok(Some(end.into())),
            Err(_) => Err(Failure::new(format!("{text:?} is not an address with a port"))),
        },
        _ => Err(Failure::new(format!("{member:?} is not a string"))),
    }
}

fn no_descriptor(error: io::Error) -> Failure {
    Failure { text: format!("no descriptor: {error}"), errno: error.raw_os_error() }
}
