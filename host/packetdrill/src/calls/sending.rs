//! `write`, `send` and their variants.

use crate::address::{self, Given};
use crate::calls::opening::{begin, fast_open_call};
use crate::calls::receiving::wait_with;
use crate::calls::{connection_error, stream_errno, syn_data_room};
use crate::memory::{self, Lent};
use crate::socket::State;
use crate::world::{World, blocking};
use core::ffi::{c_int, c_void};
use inhost_base::Endpoint;
use inhost_event::TcpState;
use inhost_socket::Taken;
use inhost_stack::{FastOpenCall, Readiness, SendHow, StreamError, TcpSocketId};
use libc::{
    EAGAIN, EALREADY, EDESTADDRREQ, EINPROGRESS, EINVAL, EISCONN, ENOTCONN, EOPNOTSUPP, EPIPE, MSG_DONTWAIT,
    MSG_EOR, MSG_MORE, iovec, msghdr, sockaddr, socklen_t, ssize_t,
};

/// Open with the first data: MSG_FASTOPEN.
const MSG_FASTOPEN: c_int = 0x2000_0000;
/// Pieces of a zero-copy send that one buffer can name.
const PAGES_PER_BUFFER: usize = 17;
/// Send without copying, and tell when the pages are free.
const MSG_ZEROCOPY: c_int = 0x400_0000;

pub(crate) unsafe extern "C" fn write(
    _: *mut c_void,
    fd: c_int,
    buffer: *const c_void,
    bytes: usize,
) -> ssize_t {
    send_one(fd, buffer, bytes, 0, core::ptr::null(), 0)
}

pub(crate) unsafe extern "C" fn writev(
    _: *mut c_void,
    fd: c_int,
    vector: *const iovec,
    count: c_int,
) -> ssize_t {
    transfer(fd, 0, move |_| {
        let count = usize::try_from(count).map_err(|_| EINVAL)?;
        Ok((memory::pieces(vector, count)?, None))
    })
}

pub(crate) unsafe extern "C" fn send(
    _: *mut c_void,
    fd: c_int,
    buffer: *const c_void,
    bytes: usize,
    flags: c_int,
) -> ssize_t {
    send_one(fd, buffer, bytes, flags, core::ptr::null(), 0)
}

pub(crate) unsafe extern "C" fn sendto(
    _: *mut c_void,
    fd: c_int,
    buffer: *const c_void,
    bytes: usize,
    flags: c_int,
    place: *const sockaddr,
    length: socklen_t,
) -> ssize_t {
    send_one(fd, buffer, bytes, flags, place, length)
}

pub(crate) unsafe extern "C" fn sendmsg(
    _: *mut c_void,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    transfer(fd, flags, move |world| {
        let header = memory::read(message)?;
        let pieces = memory::pieces(header.msg_iov, header.msg_iovlen)?;
        let remote = remote_of(world, fd, header.msg_name.cast(), header.msg_namelen)?;
        Ok((pieces, remote))
    })
}

fn send_one(
    fd: c_int,
    buffer: *const c_void,
    bytes: usize,
    flags: c_int,
    place: *const sockaddr,
    length: socklen_t,
) -> ssize_t {
    transfer(fd, flags, move |world| {
        let remote = remote_of(world, fd, place, length)?;
        // A NULL buffer is found out when its bytes are wanted.
        Ok((vec![Lent::new(buffer.cast_mut().cast(), bytes)?], remote))
    })
}

/// The address of a call that names one.
fn remote_of(
    world: &World,
    fd: c_int,
    place: *const sockaddr,
    length: socklen_t,
) -> Result<Option<Endpoint>, i32> {
    if place.is_null() || length == 0 {
        return Ok(None);
    }
    match address::read(place, length, world.socket(fd)?.family)? {
        Given::Endpoint(remote) => Ok(Some(remote)),
        Given::None => Err(EOPNOTSUPP),
    }
}

/// A write: it waits until everything is taken, unless it may not.
fn transfer(
    fd: c_int,
    flags: c_int,
    arguments: impl FnOnce(&mut World) -> Result<(Vec<Lent>, Option<Endpoint>), i32>,
) -> ssize_t {
    blocking::write_call(|world| {
        let (pieces, remote) = arguments(world)?;
        let wait = wait_with(world, fd, flags & MSG_DONTWAIT)?;
        let mut progress =
            Progress { fd, flags, pieces, piece: 0, offset: 0, taken: 0, opens: false, was_full: false };
        let waits = !matches!(wait, blocking::Wait::Never);
        if (flags & MSG_FASTOPEN != 0 || world.socket(fd)?.deferred)
            && progress.open(world, remote)?
            && !waits
        {
            // The rest does not wait for the handshake.
            let answer = progress
                .finish(world, if progress.taken > 0 { Ok(progress.taken as i64) } else { Err(EINPROGRESS) });
            return Ok((Box::new(move |_: &mut World| answer), blocking::Wait::Never));
        }
        Ok((Box::new(move |world: &mut World| progress.step(world, waits)), wait))
    }) as ssize_t
}

/// How far a write has come.
struct Progress {
    fd: c_int,
    flags: c_int,
    pieces: Vec<Lent>,
    piece: usize,
    offset: usize,
    taken: usize,
    /// The handshake that this call began is awaited.
    opens: bool,
    /// There was no room the last time.
    was_full: bool,
}

impl Progress {
    /// Opens a connection with as much of the data as its SYN bears; false when there was a connection already.
    fn open(&mut self, world: &mut World, remote: Option<Endpoint>) -> Result<bool, i32> {
        let socket = world.socket(self.fd)?;
        let allowed = fast_open_call(socket, true, FastOpenCall::Now);
        if allowed == FastOpenCall::Off {
            return Err(EOPNOTSUPP);
        }
        let name = match socket.state {
            State::Fresh => begin(world, self.fd, remote.ok_or(EDESTADDRREQ)?, allowed)?,
            State::Connection(name) if socket.deferred => name,
            State::Connection(name) if is_opening(world, name) => return Err(EALREADY),
            State::Connection(name) if connection_error(world.stack(), name).is_some() => {
                return Ok(false);
            }
            State::Connection(_) if !socket.connect_told => {
                // This call is the first to hear of it, and goes on.
                world.socket_mut(self.fd)?.connect_told = true;
                return Ok(false);
            }
            State::Connection(_) => return Err(EISCONN),
            State::Listener(_) => return Err(EOPNOTSUPP),
        };
        world.socket_mut(self.fd)?.deferred = false;
        self.opens = true;
        let mut room = syn_data_room(world.stack(), name);
        loop {
            let piece = self.pieces.get(self.piece).copied();
            let rest = piece.as_ref().map_or(&[][..], |piece| &piece.bytes()[self.offset..]);
            if rest.is_empty() && piece.is_some() {
                (self.piece, self.offset) = (self.piece + 1, 0);
                continue;
            }
            // Nothing at all also lets a SYN go that waited.
            let part = &rest[..rest.len().min(room)];
            let sent = world.tcp_mut().send(name, part).unwrap_or(0);
            self.offset += sent;
            self.taken += sent;
            room -= sent;
            if let Some(buffer) = &mut world.socket_mut(self.fd)?.send_buffer {
                buffer.wrote(sent);
            }
            if sent == 0 || room == 0 {
                return Ok(true);
            }
        }
    }
    /// Takes what there is room for, and notes at the end of the call what is to be told of its bytes.
    fn step(&mut self, world: &mut World, waits: bool) -> Result<i64, i32> {
        let answer = self.resume(world, waits);
        self.finish(world, answer)
    }
    fn finish(&self, world: &mut World, answer: Result<i64, i32>) -> Result<i64, i32> {
        if let Some(buffer) = &mut world.socket_mut(self.fd)?.send_buffer
            && (self.flags & MSG_MORE == 0 || answer.is_err())
            && self.taken > 0
        {
            buffer.push();
        }
        if let Ok(bytes @ 1..) = answer {
            let options = &world.socket(self.fd)?.options;
            let (zero_copy, timestamping) = (options.zero_copy, options.timestamping);
            let completions = world.descriptors_mut().completions_mut(self.fd)?;
            completions.wrote(bytes as u64);
            if self.flags & MSG_ZEROCOPY != 0 && zero_copy {
                completions.zero_copy_sent();
            }
            if timestamping != 0 {
                completions.stamp(timestamping);
            }
        }
        answer
    }
    fn resume(&mut self, world: &mut World, waits: bool) -> Result<i64, i32> {
        let name = self.writable(world)?;
        if self.opens {
            self.opens = false;
            world.socket_mut(self.fd)?.connect_told = true;
            if connection_error(world.stack(), name).is_some() {
                return Err(world.take_error(self.fd)?.unwrap_or(EPIPE));
            }
        }
        while let Some(piece) = self.pieces.get(self.piece).copied() {
            let rest = &piece.bytes()[self.offset..];
            if rest.is_empty() {
                self.piece += 1;
                self.offset = 0;
                continue;
            }
            match self.write(world, name, rest)? {
                Ok(Taken { bytes, goes }) => {
                    self.offset += bytes;
                    self.taken += bytes;
                    if goes {
                        world.transmit();
                    }
                }
                Err(StreamError::WouldBlock) => {
                    if self.taken > 0 {
                        // What was taken so far goes as if the write ended here.
                        let _ = world.tcp_mut().send(name, &[]);
                    }
                    return if self.taken > 0 && !waits { Ok(self.taken as i64) } else { Err(EAGAIN) };
                }
                Err(_) if self.taken > 0 => return Ok(self.taken as i64),
                Err(why) => return Err(self.failed(world, why)?),
            }
        }
        Ok(self.taken as i64)
    }
    /// Writes of the rest of a piece what the socket takes now.
    fn write(
        &mut self,
        world: &mut World,
        name: TcpSocketId,
        rest: &[u8],
    ) -> Result<Result<Taken, StreamError>, i32> {
        let is_last = self.piece + 1 == self.pieces.len();
        let end = |all: bool| {
            let push = self.flags & MSG_MORE == 0 && is_last && all;
            let end_of_record = self.closes_buffer(all, is_last && all);
            SendHow { push: push || end_of_record, end_of_record, ..SendHow::default() }
        };
        let mut was_full = self.was_full;
        let written = world.write((self.fd, name), rest, &mut was_full, end)?;
        self.was_full = was_full;
        Ok(written)
    }
    /// Whether nothing is joined with what follows this piece: a record ends, or a zero-copy send has used up the pages
    /// that one buffer can name.
    fn closes_buffer(&self, ends_piece: bool, is_last: bool) -> bool {
        let pages_used_up = self.flags & MSG_ZEROCOPY != 0
            && ends_piece
            && self.pieces.len() > PAGES_PER_BUFFER
            && (self.piece + 1).is_multiple_of(PAGES_PER_BUFFER);
        (is_last && self.flags & MSG_EOR != 0) || pages_used_up
    }
    /// The connection, when it can be written to.
    fn writable(&self, world: &mut World) -> Result<TcpSocketId, i32> {
        let socket = world.socket(self.fd)?;
        if socket.writing_ended {
            return Err(EPIPE);
        }
        match socket.state {
            State::Connection(name) if is_opening(world, name) => Err(EAGAIN),
            State::Connection(name) => Ok(name),
            State::Fresh => Err(EPIPE),
            State::Listener(_) => Err(ENOTCONN),
        }
    }
    /// The number for why the connection takes no more: its error, once, and EPIPE from then on.
    fn failed(&self, world: &mut World, why: StreamError) -> Result<i32, i32> {
        match why {
            StreamError::Connection(_) => Ok(world.take_error(self.fd)?.unwrap_or(EPIPE)),
            why => Ok(stream_errno(why)),
        }
    }
}

/// Whether the handshake is in progress, and nothing can be sent before it is done.
pub(crate) fn is_opening(world: &World, name: TcpSocketId) -> bool {
    let state = world.stack().instruments().info(name, world.now()).and_then(|info| info.state);
    let opens = matches!(state, Some(TcpState::SynSent | TcpState::SynReceived));
    opens && !world.stack().readiness(name).contains(Readiness::CONNECTED)
}
