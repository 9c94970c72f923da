//! Exported symbols for `LD_PRELOAD`.
//!
//! Four things of a script go past the table to the C library: its embedded checks ask `getsockopt`, sockets left open
//! are closed by `close`, `sendfile` has no place in the table, and shell commands are run by `system`. Preloaded, this library answers for its own descriptors and hands every other one on to
//! the system. It does so by bare system calls: a call of the C library's functions of these names would come back here.

use crate::{calls, commands, descriptors, options};
use core::ffi::{CStr, c_char, c_int, c_void};
use libc::{socklen_t, ssize_t};

/// `getsockopt(2)`.
///
/// # Safety
/// As for the system's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    bytes: *mut socklen_t,
) -> c_int {
    if descriptors::is_ours(fd) {
        // SAFETY: the caller promises what the system's call asks for, which is what the table's function does.
        return unsafe { options::getsockopt(core::ptr::null_mut(), fd, level, option, value, bytes) };
    }
    // SAFETY: the arguments go to the kernel as they came, which checks them.
    unsafe { libc::syscall(libc::SYS_getsockopt, fd, level, option, value, bytes) as c_int }
}

/// `close(2)`.
///
/// # Safety
/// As for the system's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    if descriptors::is_ours(fd) {
        // SAFETY: the function has no demands on its arguments.
        return unsafe { calls::control::close(core::ptr::null_mut(), fd) };
    }
    // SAFETY: a number goes to the kernel, which checks it.
    unsafe { libc::syscall(libc::SYS_close, fd) as c_int }
}

/// `sendfile(2)`.
///
/// # Safety
/// As for the system's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(to: c_int, from: c_int, offset: *mut i64, bytes: usize) -> ssize_t {
    if descriptors::is_ours(to) {
        return calls::pipes::sendfile(to, from, offset, bytes);
    }
    // SAFETY: the arguments go to the kernel as they came, which checks them.
    unsafe { libc::syscall(libc::SYS_sendfile, to, from, offset, bytes) as ssize_t }
}

/// `system(3)`.
///
/// # Safety
/// As for the system's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn system(command: *const c_char) -> c_int {
    if command.is_null() {
        // There is a shell.
        return 1;
    }
    // SAFETY: the caller promises a string that ends with a zero byte.
    commands::run(unsafe { CStr::from_ptr(command) })
}
