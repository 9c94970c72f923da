//! `pipe` and `splice`: pipes are the system's own, and splicing moves bytes between one of them and a socket of ours.

use crate::calls::{receiving, sending};
use crate::world::{answered, call};
use crate::{descriptors, memory};
use core::ffi::{c_int, c_uint, c_void};
use libc::{EINVAL, SPLICE_F_NONBLOCK, ssize_t};

/// Bytes that one call moves at most: what a pipe holds.
const PIECE_BYTES: usize = 65_536;

pub(crate) unsafe extern "C" fn pipe(_: *mut c_void, places: *mut c_int) -> c_int {
    // SAFETY: the caller promises room for two descriptors; the kernel checks it.
    unsafe { libc::pipe(places) }
}

pub(crate) unsafe extern "C" fn splice(
    _: *mut c_void,
    from: c_int,
    _: *mut i64,
    to: c_int,
    _: *mut i64,
    bytes: usize,
    flags: c_uint,
) -> ssize_t {
    let flags = if flags & SPLICE_F_NONBLOCK != 0 { libc::MSG_DONTWAIT } else { 0 };
    match (descriptors::is_ours(from), descriptors::is_ours(to)) {
        (true, false) => out_of_socket(from, to, bytes, flags),
        (false, true) => into_socket(from, to, bytes, flags),
        _ => answered(Err(EINVAL)) as ssize_t,
    }
}

/// `sendfile`: as much of the file as the socket takes, from `offset` or from where the file stands.
pub(crate) fn sendfile(to: c_int, from: c_int, offset: *mut i64, bytes: usize) -> ssize_t {
    let start = match (!offset.is_null()).then(|| memory::read(offset)).transpose() {
        Ok(start) => start,
        Err(number) => return answered(Err(number)) as ssize_t,
    };
    let mut piece = vec![0_u8; bytes.min(PIECE_BYTES)];
    let place = piece.as_mut_ptr().cast::<c_void>();
    // SAFETY: the place has room for the bytes asked for.
    let got = unsafe {
        match start {
            Some(start) => libc::pread(from, place, piece.len(), start),
            None => libc::read(from, place, piece.len()),
        }
    };
    if got <= 0 {
        return got;
    }
    // SAFETY: as many bytes were just put there.
    let sent = unsafe { sending::send(core::ptr::null_mut(), to, place, got as usize, 0) };
    if let (Some(start), 1..) = (start, sent)
        && let Err(number) = memory::write(offset, start + sent as i64)
    {
        return answered(Err(number)) as ssize_t;
    }
    sent
}

fn out_of_socket(from: c_int, to: c_int, bytes: usize, flags: c_int) -> ssize_t {
    // Splicing stops before the byte that an urgent mark points to, which is read apart.
    let before_urgent = call(|world| {
        let name = world.socket(from)?.connection();
        let ahead = name.and_then(|name| {
            world
                .stack()
                .instruments()
                .connection(name)
                .and_then(|connection| connection.receiver().urgent_ahead())
        });
        Ok(ahead.map_or(i64::MAX, |ahead| ahead as i64 - 1))
    });
    if before_urgent <= 0 {
        return before_urgent as ssize_t;
    }
    let mut piece = vec![0_u8; bytes.min(PIECE_BYTES).min(before_urgent as usize)];
    let place = piece.as_mut_ptr().cast::<c_void>();
    // SAFETY: the place has room for the bytes asked for.
    let got = unsafe { receiving::recv(core::ptr::null_mut(), from, place, piece.len(), flags) };
    if got <= 0 {
        return got;
    }
    // SAFETY: as many bytes were just put there.
    unsafe { libc::write(to, place, got as usize) }
}

fn into_socket(from: c_int, to: c_int, bytes: usize, flags: c_int) -> ssize_t {
    let mut piece = vec![0_u8; bytes.min(PIECE_BYTES)];
    let place = piece.as_mut_ptr().cast::<c_void>();
    // SAFETY: the place has room for the bytes asked for.
    let got = unsafe { libc::read(from, place, piece.len()) };
    if got <= 0 {
        return got;
    }
    // SAFETY: as many bytes were just put there.
    unsafe { sending::send(core::ptr::null_mut(), to, place, got as usize, flags) }
}
