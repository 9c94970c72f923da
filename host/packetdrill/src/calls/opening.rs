//! `socket`, `bind`, `listen`, `accept` and `connect`.

use crate::address::{self, Family, Given};
use crate::calls::{connection_error, syn_data_room, unreported_error};
use crate::flags::Profile;
use crate::options::defer_accept;
use crate::socket::{Socket, State};
use crate::sysctl;
use crate::world::blocking::{self, Wait};
use crate::world::{World, call};
use core::ffi::{c_int, c_void};
use inhost_base::{Endpoint, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_socket::errno::Errno;
use inhost_stack::{
    ConnectOptions, FastOpenCall, ListenOptions, Local, Readiness, Stack, TcpConfig, TcpSocketId,
};
use libc::{
    AF_INET, AF_INET6, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EALREADY, ECONNABORTED, EINPROGRESS, EINVAL,
    EISCONN, EPROTONOSUPPORT, SOCK_NONBLOCK, SOCK_STREAM, sockaddr, socklen_t,
};

/// The bits of a socket's type that say its kind.
const KIND: c_int = 0xf;
/// The most connections that may wait to be accepted, as the kernel's `somaxconn`.
const MOST_WAITING: c_int = 4096;

pub(crate) unsafe extern "C" fn socket(_: *mut c_void, domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    call(|world| {
        let family = match domain {
            AF_INET => Family::V4,
            AF_INET6 => Family::V6,
            _ => return Err(EAFNOSUPPORT),
        };
        if kind & KIND != SOCK_STREAM || !matches!(protocol, 0 | libc::IPPROTO_TCP) {
            return Err(EPROTONOSUPPORT);
        }
        let config = match world.profile() {
            Profile::Rfc => TcpConfig::default(),
            Profile::Linux => sysctl::tcp_config(),
        };
        let mut socket = Socket::new(family, config);
        socket.profile = world.profile();
        socket.nonblocking = kind & SOCK_NONBLOCK != 0;
        world.descriptors_mut().add(socket.into()).map(i64::from)
    }) as c_int
}

pub(crate) unsafe extern "C" fn bind(
    _: *mut c_void,
    fd: c_int,
    place: *const sockaddr,
    bytes: socklen_t,
) -> c_int {
    call(|world| {
        let socket = world.socket(fd)?;
        if socket.state != State::Fresh || socket.bound.is_some() {
            return Err(EINVAL);
        }
        let Given::Endpoint(local) = address::read(place, bytes, socket.family)? else {
            return Err(EAFNOSUPPORT);
        };
        world.learn(local.address);
        world.socket_mut(fd)?.bound = Some(local);
        Ok(0)
    }) as c_int
}

pub(crate) unsafe extern "C" fn listen(_: *mut c_void, fd: c_int, backlog: c_int) -> c_int {
    call(|world| listen_now(world, fd, backlog).map(|()| 0)) as c_int
}

fn listen_now(world: &mut World, fd: c_int, backlog: c_int) -> Result<(), i32> {
    let socket = world.socket(fd)?;
    if matches!(socket.state, State::Listener(_)) {
        return Ok(());
    }
    if socket.state != State::Fresh {
        return Err(EINVAL);
    }
    let any = match socket.family {
        Family::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        Family::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let local = socket.bound.filter(|local| local.port != 0).ok_or(EADDRNOTAVAIL)?;
    let local = if local.address.is_unspecified() { Endpoint { address: any, ..local } } else { local };
    let backlog = backlog.clamp(0, MOST_WAITING);
    world.socket_mut(fd)?.backlog = backlog;
    let socket = world.socket(fd)?;
    let (queue, without_cookie) = socket.fast_open();
    if let Some((key, previous)) = socket.fast_open_keys() {
        world.tcp_mut().set_fast_open_keys(key, previous);
    }
    let socket = world.socket(fd)?;
    let mut options = ListenOptions::default();
    // The kernel takes one more than it was told.
    options.backlog = backlog as usize + 1;
    options.defer_accept = defer_accept(socket.options.defer_accept);
    options.gives_out_reset = socket.profile == Profile::Linux;
    options.fast_open_queue = queue;
    options.fast_open_without_cookie = without_cookie;
    options.tcp = Some(socket.connection_config());
    let listener = world.tcp_mut().listen(local, options).map_err(|why| why.errno())?;
    world.socket_mut(fd)?.state = State::Listener(listener);
    world.set_pending(fd)
}

impl World {
    /// The system's key may have changed, which holds for every listener that has none of its own.
    pub fn refresh_fast_open_keys(&mut self) {
        let listeners =
            self.descriptors().sockets().filter(|socket| matches!(socket.state, State::Listener(_)));
        if let Some((key, previous)) = listeners.last().and_then(Socket::fast_open_keys) {
            self.tcp_mut().set_fast_open_keys(key, previous);
        }
    }
}

pub(crate) unsafe extern "C" fn accept(
    _: *mut c_void,
    fd: c_int,
    place: *mut sockaddr,
    bytes: *mut socklen_t,
) -> c_int {
    let place = Place { address: place, bytes };
    blocking::call(move |world| {
        let socket = world.socket(fd)?;
        if !matches!(socket.state, State::Listener(_)) {
            return Err(EINVAL);
        }
        let wait = wait_of(socket);
        Ok((Box::new(move |world: &mut World| accept_now(world, fd, place)), wait))
    }) as c_int
}

/// Where the peer's address goes.
#[derive(Clone, Copy)]
struct Place {
    address: *mut sockaddr,
    bytes: *mut socklen_t,
}
// SAFETY: the memory is the caller's, who waits in the call until it is answered; the lock around the world orders the
// accesses.
unsafe impl Send for Place {}

/// How long a call on this socket waits.
pub(crate) fn wait_of(socket: &Socket) -> Wait {
    if socket.nonblocking { Wait::Never } else { Wait::Always }
}

fn accept_now(world: &mut World, fd: i32, place: Place) -> Result<i64, i32> {
    let listener = world.socket(fd)?;
    let State::Listener(name) = listener.state else { return Err(EINVAL) };
    let (family, config, profile) = (listener.family, listener.config.clone(), listener.profile);
    let options = listener.options.inherited();
    let accepted = world.tcp_mut().accept(name).map_err(|_| EINVAL)?.ok_or(EAGAIN)?;
    let mut socket = Socket::new(family, config);
    socket.state = State::Connection(accepted.socket);
    socket.options = options;
    socket.profile = profile;
    socket.send_buffer = socket.room();
    socket.connect_told = true;
    address::write(accepted.remote, family, place.address, place.bytes)?;
    world.descriptors_mut().add(socket.into()).map(i64::from)
}

pub(crate) unsafe extern "C" fn connect(
    _: *mut c_void,
    fd: c_int,
    place: *const sockaddr,
    bytes: socklen_t,
) -> c_int {
    blocking::call(move |world| {
        let socket = world.socket(fd)?;
        let given = address::read(place, bytes, socket.family)?;
        match (given, socket.state) {
            (Given::None, _) => {
                disconnect(world, fd)?;
                Ok((Box::new(|_: &mut World| Ok(0)), Wait::Never))
            }
            (_, State::Listener(_)) => Err(EISCONN),
            (_, State::Connection(_)) => {
                let wait = wait_of(socket);
                Ok((Box::new(move |world: &mut World| connected(world, fd, EALREADY)), wait))
            }
            (Given::Endpoint(remote), State::Fresh) => {
                let wait = wait_of(socket);
                let call =
                    fast_open_call(socket, socket.options.fast_open_connect, FastOpenCall::OnFirstSend);
                begin(world, fd, remote, call)?;
                Ok((Box::new(move |world: &mut World| connected(world, fd, EINPROGRESS)), wait))
            }
        }
    }) as c_int
}

/// How a call opens, when `wanted` is what was asked for, and the system allows it.
pub(crate) fn fast_open_call(socket: &Socket, wanted: bool, how: FastOpenCall) -> FastOpenCall {
    let allowed = socket.profile == Profile::Rfc || sysctl::fast_open().client;
    if wanted && allowed { how } else { FastOpenCall::Off }
}

/// Opens the connection of a fresh socket.
pub(crate) fn begin(
    world: &mut World,
    fd: i32,
    remote: Endpoint,
    fast_open: FastOpenCall,
) -> Result<TcpSocketId, i32> {
    let socket = world.socket(fd)?;
    let without_cookie = socket.profile == Profile::Linux && sysctl::fast_open().client_without_cookie;
    let bound = socket.bound;
    let local = Local {
        address: bound.map(|local| local.address).filter(|address| !address.is_unspecified()),
        port: bound.map_or(0, |local| local.port),
    };
    let mut options = ConnectOptions::default();
    options.fast_open = fast_open;
    options.fast_open_without_cookie = without_cookie;
    options.local = local;
    options.tcp = Some(socket.connection_config());
    let name = world
        .tcp_mut()
        .connect(remote, options)
        .map_err(|why| inhost_socket::ConnectError::from(why).errno())?;
    let room = syn_data_room(world.stack(), name);
    let socket = world.socket_mut(fd)?;
    socket.state = State::Connection(name);
    socket.send_buffer = socket.room();
    socket.deferred = fast_open == FastOpenCall::OnFirstSend && room > 0;
    socket.error_told = false;
    socket.connect_told = false;
    world.set_pending(fd)?;
    Ok(name)
}

/// How a connect stands: done, failed, or under way, which is `under_way` for a socket that does not wait.
fn connected(world: &mut World, fd: i32, under_way: i32) -> Result<i64, i32> {
    let socket = world.socket(fd)?;
    let Some(name) = socket.connection() else { return Err(EINVAL) };
    let connected = socket.deferred || is_connected(world.stack(), name);
    if connected {
        if socket.connect_told {
            return Err(EISCONN);
        }
        world.socket_mut(fd)?.connect_told = true;
        return Ok(0);
    }
    if let Some(number) = unreported_error(world.stack(), socket) {
        world.socket_mut(fd)?.error_told = true;
        return Err(number);
    }
    if connection_error(world.stack(), name).is_some() {
        return Err(ECONNABORTED);
    }
    Err(if socket.nonblocking { under_way } else { EAGAIN })
}

/// Whether the handshake is done and nothing went wrong in it.
fn is_connected(stack: &Stack, name: TcpSocketId) -> bool {
    stack.readiness(name).contains(Readiness::CONNECTED)
}

/// Dissolves a connection; the socket can be used afresh.
fn disconnect(world: &mut World, fd: i32) -> Result<(), i32> {
    // A connected peer gets a reset; a listener only stops listening.
    match world.socket(fd)?.state {
        State::Connection(name) => world.abort(name),
        State::Listener(name) => world.close(name),
        State::Fresh => {}
    }
    let socket = world.socket_mut(fd)?;
    socket.state = State::Fresh;
    socket.deferred = false;
    socket.error_told = false;
    socket.reading_ended = false;
    socket.writing_ended = false;
    Ok(())
}
