//! `pipe` and `splice`: pipes are the system's own, and splicing moves bytes between one of them and a socket of ours.

use crate::calls::{receiving, sending};
use crate::descriptors;
use core::ffi::{c_int, c_uint, c_void};
use libc::{EINVAL, SPLICE_F_NONBLOCK, ssize_t};

/// Bytes that one call moves at most: what a pipe holds.
const PIECE_BYTES: usize = 65_536;

pub(crate) unsafe extern "C" fn pipe(_: *mut c_void, places: *mut c_int) -> c_int {
    // SAFETY: the caller promises room for two descriptors; the kernel checks it.
    unsafe { libc::pipe(places) }
}

pub(crate) unsafe extern "C" fn splice(
    user: *mut c_void,
    from: c_int,
    _: *mut i64,
    to: c_int,
    _: *mut i64,
    bytes: usize,
    flags: c_uint,
) -> ssize_t {
    let mut piece = vec![0_u8; bytes.min(PIECE_BYTES)];
    let place = piece.as_mut_ptr().cast::<c_void>();
    let nonblocking = if flags & SPLICE_F_NONBLOCK != 0 { libc::MSG_DONTWAIT } else { 0 };
    if descriptors::is_ours(from) && !descriptors::is_ours(to) {
        // SAFETY: the place has room for the bytes asked for.
        let got = unsafe { receiving::recv(user, from, place, piece.len(), nonblocking) };
        if got <= 0 {
            return got;
        }
        // SAFETY: as many bytes were just put there.
        return unsafe { libc::write(to, place, got as usize) };
    }
    if descriptors::is_ours(to) && !descriptors::is_ours(from) {
        // SAFETY: the place has room for the bytes asked for.
        let got = unsafe { libc::read(from, place, piece.len()) };
        if got <= 0 {
            return got;
        }
        // SAFETY: as many bytes were just put there.
        return unsafe { sending::send(user, to, place, got as usize, nonblocking) };
    }
    crate::world::answered(Err(EINVAL)) as ssize_t
}
