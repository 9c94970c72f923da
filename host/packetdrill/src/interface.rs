//! The C table of functions, and the symbol that fills it in.

use crate::calls::{control, opening, pipes, readiness, receiving, sending};
use crate::flags::Flags;
use crate::{clock, network, options, world};
use core::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_uint, c_ulong, c_void};
use libc::{epoll_event, iovec, msghdr, nfds_t, pollfd, size_t, sockaddr, socklen_t, ssize_t, timeval};

type User = *mut c_void;

/// `struct packetdrill_interface`: 33 pointers. Every function takes `userdata` first, returns -1 with `errno` set
/// when it fails, and may be NULL where it is never used.
#[repr(C)]
#[allow(missing_docs)] // The members are the system calls of the same names.
pub struct Interface {
    pub userdata: User,
    pub free: Option<unsafe extern "C" fn(User)>,
    pub socket: Option<unsafe extern "C" fn(User, c_int, c_int, c_int) -> c_int>,
    pub bind: Option<unsafe extern "C" fn(User, c_int, *const sockaddr, socklen_t) -> c_int>,
    pub listen: Option<unsafe extern "C" fn(User, c_int, c_int) -> c_int>,
    pub accept: Option<unsafe extern "C" fn(User, c_int, *mut sockaddr, *mut socklen_t) -> c_int>,
    pub connect: Option<unsafe extern "C" fn(User, c_int, *const sockaddr, socklen_t) -> c_int>,
    pub read: Option<unsafe extern "C" fn(User, c_int, *mut c_void, size_t) -> ssize_t>,
    pub readv: Option<unsafe extern "C" fn(User, c_int, *const iovec, c_int) -> ssize_t>,
    pub recv: Option<unsafe extern "C" fn(User, c_int, *mut c_void, size_t, c_int) -> ssize_t>,
    pub recvfrom: Option<
        unsafe extern "C" fn(
            User,
            c_int,
            *mut c_void,
            size_t,
            c_int,
            *mut sockaddr,
            *mut socklen_t,
        ) -> ssize_t,
    >,
    pub recvmsg: Option<unsafe extern "C" fn(User, c_int, *mut msghdr, c_int) -> ssize_t>,
    pub write: Option<unsafe extern "C" fn(User, c_int, *const c_void, size_t) -> ssize_t>,
    pub writev: Option<unsafe extern "C" fn(User, c_int, *const iovec, c_int) -> ssize_t>,
    pub send: Option<unsafe extern "C" fn(User, c_int, *const c_void, size_t, c_int) -> ssize_t>,
    pub sendto: Option<
        unsafe extern "C" fn(
            User,
            c_int,
            *const c_void,
            size_t,
            c_int,
            *const sockaddr,
            socklen_t,
        ) -> ssize_t,
    >,
    pub sendmsg: Option<unsafe extern "C" fn(User, c_int, *const msghdr, c_int) -> ssize_t>,
    /// Variadic in C; on this platform a function with a last long serves both arities.
    pub fcntl: Option<unsafe extern "C" fn(User, c_int, c_int, c_long) -> c_int>,
    /// Variadic in C; on this platform a function with a last pointer serves both arities.
    pub ioctl: Option<unsafe extern "C" fn(User, c_int, c_ulong, *mut c_int) -> c_int>,
    pub close: Option<unsafe extern "C" fn(User, c_int) -> c_int>,
    pub shutdown: Option<unsafe extern "C" fn(User, c_int, c_int) -> c_int>,
    pub getsockopt:
        Option<unsafe extern "C" fn(User, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int>,
    pub setsockopt:
        Option<unsafe extern "C" fn(User, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int>,
    pub poll: Option<unsafe extern "C" fn(User, *mut pollfd, nfds_t, c_int) -> c_int>,
    pub netdev_send: Option<unsafe extern "C" fn(User, *const c_void, size_t) -> c_int>,
    pub netdev_receive:
        Option<unsafe extern "C" fn(User, *mut c_void, *mut size_t, *mut c_longlong) -> c_int>,
    pub usleep: Option<unsafe extern "C" fn(User, c_uint) -> c_int>,
    pub gettimeofday: Option<unsafe extern "C" fn(User, *mut timeval, *mut c_void) -> c_int>,
    pub epoll_create: Option<unsafe extern "C" fn(User, c_int) -> c_int>,
    pub epoll_ctl: Option<unsafe extern "C" fn(User, c_int, c_int, c_int, *mut epoll_event) -> c_int>,
    pub epoll_wait: Option<unsafe extern "C" fn(User, c_int, *mut epoll_event, c_int, c_int) -> c_int>,
    pub pipe: Option<unsafe extern "C" fn(User, *mut c_int) -> c_int>,
    pub splice:
        Option<unsafe extern "C" fn(User, c_int, *mut i64, c_int, *mut i64, size_t, c_uint) -> ssize_t>,
}

/// The size that C gives the structure.
const SIZE_BYTES: usize = 33 * 8;
const _: () = assert!(size_of::<Interface>() == SIZE_BYTES);

/// Makes a host from `flags` (NULL, or words such as `profile=linux`, commas between) and fills in the table at `out`.
/// It may be called again after `free`; a host that is still there makes way.
///
/// # Safety
/// `flags` is NULL or a string that ends with a zero byte; `out` points to room for an [`Interface`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(flags: *const c_char, out: *mut Interface) {
    let words = if flags.is_null() {
        String::new()
    } else {
        // SAFETY: the caller promises a string that ends with a zero byte.
        unsafe { CStr::from_ptr(flags) }.to_string_lossy().into_owned()
    };
    world::install(Flags::parse(&words));
    let table = Interface {
        userdata: core::ptr::null_mut(),
        free: Some(free),
        socket: Some(opening::socket),
        bind: Some(opening::bind),
        listen: Some(opening::listen),
        accept: Some(opening::accept),
        connect: Some(opening::connect),
        read: Some(receiving::read),
        readv: Some(receiving::readv),
        recv: Some(receiving::recv),
        recvfrom: Some(receiving::recvfrom),
        recvmsg: Some(receiving::recvmsg),
        write: Some(sending::write),
        writev: Some(sending::writev),
        send: Some(sending::send),
        sendto: Some(sending::sendto),
        sendmsg: Some(sending::sendmsg),
        fcntl: Some(control::fcntl),
        ioctl: Some(control::ioctl),
        close: Some(control::close),
        shutdown: Some(control::shutdown),
        getsockopt: Some(options::getsockopt),
        setsockopt: Some(options::setsockopt),
        poll: Some(readiness::poll),
        netdev_send: Some(network::netdev_send),
        netdev_receive: Some(network::netdev_receive),
        usleep: Some(clock::usleep),
        gettimeofday: Some(clock::gettimeofday),
        epoll_create: Some(readiness::epoll_create),
        epoll_ctl: Some(readiness::epoll_ctl),
        epoll_wait: Some(readiness::epoll_wait),
        pipe: Some(pipes::pipe),
        splice: Some(pipes::splice),
    };
    // SAFETY: the caller promises room for the structure; nothing there needs to be dropped.
    unsafe { out.write(table) };
}

unsafe extern "C" fn free(_: User) {
    world::remove();
}
