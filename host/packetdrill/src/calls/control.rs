//! `close`, `shutdown`, `fcntl` and `ioctl`.

use crate::descriptors::Entry;
use crate::memory;
use crate::socket::{Socket, State};
use crate::world::{World, call};
use core::ffi::{c_int, c_long, c_ulong, c_void};
use inhost_event::TcpState;
use libc::{EINVAL, ENOTCONN, ENOTTY, F_GETFL, F_SETFL, O_NONBLOCK, O_RDWR, SHUT_RD, SHUT_RDWR, SHUT_WR};

/// Bytes that wait to be read.
const SIOCINQ: c_ulong = 0x541b;
/// Bytes that wait to be sent or acknowledged.
const SIOCOUTQ: c_ulong = 0x5411;
/// Bytes that wait to be sent for the first time.
const SIOCOUTQNSD: c_ulong = 0x894b;

pub(crate) unsafe extern "C" fn close(_: *mut c_void, fd: c_int) -> c_int {
    call(|world| match world.descriptors_mut().remove(fd)? {
        Entry::Epoll(_) => Ok(0),
        Entry::Socket(entry) => {
            release(world, &entry.0);
            Ok(0)
        }
    }) as c_int
}

/// Closes what is behind a descriptor: a linger time of zero resets.
fn release(world: &mut World, socket: &Socket) {
    match socket.state {
        State::Connection(name) if socket.options.linger == Some(0) => world.abort(name),
        State::Connection(name) => world.close(name),
        State::Listener(name) => world.close(name),
        State::Fresh => {}
    }
}

pub(crate) unsafe extern "C" fn shutdown(_: *mut c_void, fd: c_int, how: c_int) -> c_int {
    call(|world| {
        let (reading, writing) = match how {
            SHUT_RD => (true, false),
            SHUT_WR => (false, true),
            SHUT_RDWR => (true, true),
            _ => return Err(EINVAL),
        };
        let now = world.now();
        let name = world.socket(fd)?.connection().ok_or(ENOTCONN)?;
        let state = world.stack().instruments().info(name, now).and_then(|info| info.state);
        if matches!(state, None | Some(TcpState::Closed)) {
            return Err(ENOTCONN);
        }
        let socket = world.socket_mut(fd)?;
        socket.reading_ended |= reading;
        if writing && !socket.writing_ended {
            socket.writing_ended = true;
            world.tcp_mut().shutdown(name).map_err(|_| ENOTCONN)?;
        }
        world.descriptors_mut().note(fd, libc::POLLIN | libc::POLLOUT | libc::POLLHUP | libc::POLLRDHUP);
        Ok(0)
    }) as c_int
}

pub(crate) unsafe extern "C" fn fcntl(_: *mut c_void, fd: c_int, command: c_int, value: c_long) -> c_int {
    call(|world| {
        let socket = world.socket_mut(fd)?;
        match command {
            F_GETFL => Ok(i64::from(O_RDWR | if socket.nonblocking { O_NONBLOCK } else { 0 })),
            F_SETFL => {
                socket.nonblocking = value & c_long::from(O_NONBLOCK) != 0;
                Ok(0)
            }
            _ => Err(EINVAL),
        }
    }) as c_int
}

pub(crate) unsafe extern "C" fn ioctl(
    _: *mut c_void,
    fd: c_int,
    request: c_ulong,
    value: *mut c_int,
) -> c_int {
    call(|world| {
        let socket = world.socket(fd)?;
        if matches!(socket.state, State::Listener(_)) {
            return Err(EINVAL);
        }
        let info = socket.connection().and_then(|name| world.tcp(name));
        let answer = info.map_or(0, |info| match request {
            SIOCINQ => info.receive_queue_bytes,
            SIOCOUTQ => info.send_queue_bytes,
            _ => info.not_sent_bytes,
        });
        match request {
            SIOCINQ | SIOCOUTQ | SIOCOUTQNSD => memory::write(value, answer as c_int).map(|()| 0),
            _ => Err(ENOTTY),
        }
    }) as c_int
}
