//! `read`, `recv` and their variants.

use crate::ancillary::{self, Control};
use crate::calls::opening::wait_of;
use crate::calls::stream_errno;
use crate::memory::{self, Lent};
use crate::socket::State;
use crate::world::blocking::{self, Wait};
use crate::world::{World, call};
use crate::{address, options};
use core::ffi::{c_int, c_void};
use libc::{
    EAGAIN, EINVAL, ENOTCONN, MSG_CTRUNC, MSG_DONTWAIT, MSG_ERRQUEUE, MSG_PEEK, MSG_TRUNC, iovec, msghdr,
    sockaddr, socklen_t, ssize_t,
};

pub(crate) unsafe extern "C" fn read(
    _: *mut c_void,
    fd: c_int,
    buffer: *mut c_void,
    bytes: usize,
) -> ssize_t {
    receive_one(fd, buffer, bytes, 0)
}

pub(crate) unsafe extern "C" fn readv(
    _: *mut c_void,
    fd: c_int,
    vector: *const iovec,
    count: c_int,
) -> ssize_t {
    blocking::call(|world| {
        let count = usize::try_from(count).map_err(|_| EINVAL)?;
        let mut pieces = memory::pieces(vector, count)?;
        let wait = wait_with(world, fd, 0)?;
        Ok((Box::new(move |world: &mut World| receive_now(world, fd, &mut pieces, 0)), wait))
    }) as ssize_t
}

pub(crate) unsafe extern "C" fn recv(
    _: *mut c_void,
    fd: c_int,
    buffer: *mut c_void,
    bytes: usize,
    flags: c_int,
) -> ssize_t {
    receive_one(fd, buffer, bytes, flags)
}

pub(crate) unsafe extern "C" fn recvfrom(
    _: *mut c_void,
    fd: c_int,
    buffer: *mut c_void,
    bytes: usize,
    flags: c_int,
    place: *mut sockaddr,
    length: *mut socklen_t,
) -> ssize_t {
    let received = receive_one(fd, buffer, bytes, flags);
    if received < 0 || place.is_null() {
        return received;
    }
    let named = call(|world| {
        let socket = world.socket(fd)?;
        let remote = socket.connection().and_then(|name| world.stack().endpoints(name)?.1);
        match remote {
            Some(remote) => address::write(remote, socket.family, place, length).map(|()| 0),
            None => Ok(0),
        }
    });
    if named < 0 { -1 } else { received }
}

pub(crate) unsafe extern "C" fn recvmsg(
    _: *mut c_void,
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> ssize_t {
    let mut header = match memory::read(message) {
        Ok(header) => header,
        Err(number) => return crate::world::answered(Err(number)) as ssize_t,
    };
    if flags & MSG_ERRQUEUE != 0 {
        return receive_error(fd, message, header);
    }
    let received = blocking::call(|world| {
        let mut pieces = memory::pieces(header.msg_iov, header.msg_iovlen)?;
        let wait = wait_with(world, fd, flags)?;
        Ok((Box::new(move |world: &mut World| receive_now(world, fd, &mut pieces, flags)), wait))
    });
    if received < 0 {
        return received as ssize_t;
    }
    let done = call(|world| {
        let controls = inquiry(world, fd)?;
        header.msg_flags = 0;
        if !ancillary::write(&mut header, &controls)? {
            header.msg_flags |= MSG_CTRUNC;
        }
        header.msg_namelen = 0;
        memory::write(message, header).map(|()| 0)
    });
    if done < 0 { -1 } else { received as ssize_t }
}

/// Takes the oldest entry of the error queue; it never waits.
fn receive_error(fd: c_int, message: *mut msghdr, mut header: msghdr) -> ssize_t {
    call(|world| {
        let family = world.socket(fd)?.family;
        let notices = world.descriptors_mut().completions_mut(fd)?;
        let (controls, is_cut) = notices.take(family).ok_or(EAGAIN)?;
        header.msg_flags = MSG_ERRQUEUE | if is_cut { MSG_TRUNC } else { 0 };
        if !ancillary::write(&mut header, &controls)? {
            header.msg_flags |= MSG_CTRUNC;
        }
        header.msg_namelen = 0;
        memory::write(message, header).map(|()| 0)
    }) as ssize_t
}

fn receive_one(fd: c_int, buffer: *mut c_void, bytes: usize, flags: c_int) -> ssize_t {
    blocking::call(|world| {
        let wait = wait_with(world, fd, flags)?;
        // Where the memory is missing is found out when there is something to put there.
        let mut pieces = [Lent::new(buffer.cast(), bytes)];
        let attempt = move |world: &mut World| match &mut pieces[0] {
            Ok(piece) => receive_now(world, fd, std::slice::from_mut(piece), flags),
            Err(number) => {
                let number = *number;
                if flags & MSG_TRUNC != 0 {
                    return discard_now(world, fd, bytes);
                }
                match receive_now(world, fd, &mut [], flags | MSG_PEEK) {
                    Ok(_) if waits(world, fd) => Err(number),
                    other => other,
                }
            }
        };
        Ok((Box::new(attempt), wait))
    }) as ssize_t
}

/// How long a call with these flags waits.
pub(crate) fn wait_with(world: &World, fd: c_int, flags: c_int) -> Result<Wait, i32> {
    let socket = world.socket(fd)?;
    Ok(if flags & MSG_DONTWAIT != 0 { Wait::Never } else { wait_of(socket) })
}

/// How much the caller may still read, as TCP_INQ tells it; the end of the stream counts as one byte.
fn inquiry(world: &World, fd: c_int) -> Result<Vec<Control>, i32> {
    let socket = world.socket(fd)?;
    if !socket.options.inquires {
        return Ok(Vec::new());
    }
    let Some(info) = socket.connection().and_then(|name| world.tcp(name)) else { return Ok(Vec::new()) };
    let ended = options::peer_has_closed(info.state);
    let waiting = info.receive_queue_bytes as i32;
    let told = if waiting == 0 && ended { 1 } else { waiting };
    Ok(vec![Control { level: libc::SOL_TCP, kind: options::TCP_CM_INQ, data: told.to_ne_bytes().to_vec() }])
}

/// Gives what waits, or the reason why nothing comes.
fn receive_now(world: &mut World, fd: c_int, pieces: &mut [Lent], flags: c_int) -> Result<i64, i32> {
    let name = match readable(world, fd)? {
        Readable::Connection(name) => name,
        Readable::Nothing => return Ok(0),
    };
    if pieces.iter().all(|piece| piece.len() == 0) {
        let waits = world.tcp(name).is_some_and(|info| info.receive_queue_bytes > 0);
        if waits {
            return Ok(0);
        }
        let peeked = world.tcp_mut().peek(name, &mut [0]);
        return at_the_end(world, fd, peeked);
    }
    if flags & MSG_PEEK != 0 {
        let target = pieces.iter_mut().find(|piece| piece.len() > 0).ok_or(EINVAL)?;
        let peeked = world.tcp_mut().peek(name, target.bytes_mut());
        return at_the_end(world, fd, peeked);
    }
    let mut total = 0;
    for piece in pieces.iter_mut().filter(|piece| piece.len() > 0) {
        match world.tcp_mut().read(name, piece.bytes_mut()) {
            Ok(read) => {
                total += read;
                if read < piece.len() {
                    break;
                }
            }
            Err(_) if total > 0 => break,
            Err(why) => return at_the_end(world, fd, Err(why)),
        }
    }
    Ok(total as i64)
}

/// Drops bytes instead of giving them: MSG_TRUNC with no place for them.
fn discard_now(world: &mut World, fd: c_int, bytes: usize) -> Result<i64, i32> {
    let name = match readable(world, fd)? {
        Readable::Connection(name) => name,
        Readable::Nothing => return Ok(0),
    };
    let waits = world.tcp(name).map_or(0, |info| info.receive_queue_bytes);
    if waits == 0 {
        let peeked = world.tcp_mut().peek(name, &mut [0]);
        return at_the_end(world, fd, peeked);
    }
    let take = waits.min(bytes);
    world.tcp_mut().consume(name, take).map_err(|_| EINVAL)?;
    Ok(take as i64)
}

enum Readable {
    Connection(inhost_stack::TcpSocketId),
    /// The end of the stream.
    Nothing,
}

/// Whether the socket can be read at all.
fn readable(world: &World, fd: c_int) -> Result<Readable, i32> {
    let socket = world.socket(fd)?;
    match socket.state {
        State::Connection(_) if socket.deferred => Err(EAGAIN),
        State::Connection(_) if socket.reading_ended && !waits(world, fd) => Ok(Readable::Nothing),
        State::Connection(name) => Ok(Readable::Connection(name)),
        State::Fresh | State::Listener(_) => Err(ENOTCONN),
    }
}
fn waits(world: &World, fd: c_int) -> bool {
    let name = world.socket(fd).ok().and_then(|socket| socket.connection());
    name.and_then(|name| world.tcp(name)).is_some_and(|info| info.receive_queue_bytes > 0)
}

/// Makes of the stack's answer the system's: an error that ended the connection is told once, and after it there is
/// only the end of the stream.
fn at_the_end(
    world: &mut World,
    fd: c_int,
    answer: Result<usize, inhost_stack::StreamError>,
) -> Result<i64, i32> {
    match answer {
        Ok(bytes) => Ok(bytes as i64),
        Err(inhost_stack::StreamError::Connection(_)) => match world.take_error(fd)? {
            Some(number) => Err(number),
            None => Ok(0),
        },
        Err(why) => Err(stream_errno(why)),
    }
}
