//! The table of functions, driven as packetdrill drives it: from the shared library, by two threads.
#![allow(clippy::disallowed_methods)] // The tool is another program, with a clock and threads of its own.

use inhost_interop::{join, receive, until};
use inhost_packetdrill::Interface;
use libc::{c_char, c_int, c_longlong, c_void, sockaddr, sockaddr_in, socklen_t};
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::net::Ipv4Addr;
use std::time::Duration;

const OURS: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const PORT: u16 = 8080;
const PEER_PORT: u16 = 40_000;

const SYN: u8 = 2;
const FIN: u8 = 1;
const RST: u8 = 4;
const ACK: u8 = 16;
const PSH: u8 = 8;

type Init = unsafe extern "C" fn(*const c_char, *mut Interface);

/// The library as it was built, loaded as the tool loads it, and its one symbol.
fn load() -> Init {
    let mut path = std::env::current_exe().unwrap();
    path.set_file_name("libinhost_packetdrill.so");
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the library is ours and has no constructors; the symbol has the type that is written down for it.
    unsafe {
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE | libc::RTLD_DEEPBIND;
        let image = libc::dlopen(path.as_ptr(), flags);
        assert!(!image.is_null(), "{path:?} cannot be loaded");
        let symbol = libc::dlsym(image, c"packetdrill_interface_init".as_ptr());
        assert!(!symbol.is_null());
        std::mem::transmute::<*mut c_void, Init>(symbol)
    }
}

/// The table with methods that take Rust's types.
struct Table(Interface);
// SAFETY: the table is function pointers and a NULL; the functions are made to be called from two threads.
unsafe impl Sync for Table {}

/// The result of a call, and `errno` when it failed.
fn result(answer: isize) -> Result<isize, i32> {
    if answer < 0 { Err(std::io::Error::last_os_error().raw_os_error().unwrap()) } else { Ok(answer) }
}

/// Calls a member of the table.
macro_rules! call {
    ($table:expr, $name:ident $(, $argument:expr)*) => {
        // SAFETY: the arguments are those the member asks for, and every place given has room for the length given.
        result(unsafe { ($table.0.$name.unwrap())($table.0.userdata $(, $argument)*) } as isize)
    };
}

impl Table {
    fn init(init: Init, flags: &str) -> Table {
        let flags = CString::new(flags).unwrap();
        let mut place = MaybeUninit::<Interface>::zeroed();
        // SAFETY: a string with its zero, room for the structure, which is filled in.
        unsafe {
            init(flags.as_ptr(), place.as_mut_ptr());
            Table(place.assume_init())
        }
    }
    fn free(self) {
        // SAFETY: the table is not used afterwards.
        unsafe { (self.0.free.unwrap())(self.0.userdata) }
    }
    fn micros(&self) -> i64 {
        let mut time = libc::timeval { tv_sec: 0, tv_usec: 0 };
        call!(self, gettimeofday, &mut time, std::ptr::null_mut()).unwrap();
        time.tv_sec * 1_000_000 + time.tv_usec
    }
    /// A listener at [`PORT`].
    fn listener(&self) -> c_int {
        let fd = call!(self, socket, libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_TCP).unwrap() as c_int;
        let local = address(OURS, PORT);
        let bytes = size_of::<sockaddr_in>() as socklen_t;
        call!(self, bind, fd, (&raw const local).cast::<sockaddr>(), bytes).unwrap();
        call!(self, listen, fd, 1).unwrap();
        fd
    }
    fn inject(&self, segment: Segment) {
        let packet = segment.packet();
        call!(self, netdev_send, packet.as_ptr().cast(), packet.len()).unwrap();
    }
    /// The next segment that leaves, and when.
    fn sniff(&self) -> Option<(Segment, i64)> {
        let mut buffer = [0_u8; 65_536];
        let mut length = buffer.len();
        let mut micros: c_longlong = 0;
        call!(self, netdev_receive, buffer.as_mut_ptr().cast(), &mut length, &mut micros).unwrap();
        (length > 0).then(|| (Segment::parse(&buffer[..length]), micros))
    }
    /// A connection that a peer opened, up to its acceptance.
    fn accepted(&self, listener: c_int) -> (c_int, u32) {
        self.inject(Segment { flags: SYN, ..Segment::default() });
        let (reply, _) = self.sniff().unwrap();
        assert_eq!((reply.flags, reply.acknowledgment), (SYN | ACK, 1));
        let acknowledgment = reply.sequence.wrapping_add(1);
        self.inject(Segment { flags: ACK, sequence: 1, acknowledgment, ..Segment::default() });
        let mut peer = MaybeUninit::<sockaddr_in>::zeroed();
        let mut bytes = size_of::<sockaddr_in>() as socklen_t;
        let fd = call!(self, accept, listener, peer.as_mut_ptr().cast::<sockaddr>(), &mut bytes).unwrap();
        // SAFETY: zero is a value of the structure, and `accept` wrote over it.
        let peer = unsafe { peer.assume_init() };
        assert_eq!(u16::from_be(peer.sin_port), PEER_PORT);
        assert_eq!(Ipv4Addr::from(u32::from_be(peer.sin_addr.s_addr)), PEER);
        (fd as c_int, acknowledgment)
    }
}

fn address(ip: Ipv4Addr, port: u16) -> sockaddr_in {
    sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(ip).to_be() },
        sin_zero: [0; 8],
    }
}

/// As much of a segment as these tests look at.
#[derive(Clone, Default)]
struct Segment {
    flags: u8,
    sequence: u32,
    acknowledgment: u32,
    payload: Vec<u8>,
}

impl Segment {
    /// A datagram from the peer to us.
    fn packet(&self) -> Vec<u8> {
        let mut tcp = Vec::new();
        tcp.extend(PEER_PORT.to_be_bytes());
        tcp.extend(PORT.to_be_bytes());
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend(self.acknowledgment.to_be_bytes());
        tcp.extend([5 << 4, self.flags]);
        tcp.extend(32_000_u16.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(&self.payload);
        let mut pseudo = [PEER.octets(), OURS.octets()].concat();
        pseudo.extend([0, 6]);
        pseudo.extend((tcp.len() as u16).to_be_bytes());
        pseudo.extend(&tcp);
        tcp[16..18].copy_from_slice(&checksum(&pseudo).to_be_bytes());
        let mut ip = vec![0x45, 0];
        ip.extend((20 + tcp.len() as u16).to_be_bytes());
        ip.extend([0, 0, 0, 0, 255, 6, 0, 0]);
        ip.extend(PEER.octets());
        ip.extend(OURS.octets());
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        ip.extend(tcp);
        ip
    }
    fn parse(packet: &[u8]) -> Segment {
        assert_eq!((packet[0], packet[9]), (0x45, 6));
        assert_eq!(checksum(&packet[..20]), 0);
        let tcp = &packet[20..];
        let word = |at: usize| u32::from_be_bytes(tcp[at..at + 4].try_into().unwrap());
        Segment {
            flags: tcp[13],
            sequence: word(4),
            acknowledgment: word(8),
            payload: tcp[usize::from(tcp[12] >> 4) * 4..].to_vec(),
        }
    }
}

fn checksum(bytes: &[u8]) -> u16 {
    let sum: u32 =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Whether a thread of this process sleeps, as the tool finds it out.
fn sleeps(thread: libc::pid_t) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
}

/// One connection from SYN to a read that blocks on a second thread, and nothing left of it after `free`.
fn course(init: Init) {
    let table = Table::init(init, "local=192.168.0.1,gateway=192.168.0.1,prefix=16,mtu=1500");
    let listener = table.listener();
    let (fd, acknowledgment) = table.accepted(listener);

    let started = table.micros();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            // SAFETY: it takes nothing.
            sender.send(unsafe { libc::gettid() }).unwrap();
            let mut place = [0_u8; 100];
            let read = call!(table, read, fd, place.as_mut_ptr().cast(), place.len());
            (read, table.micros(), place)
        });
        let thread = receive(&receiver);
        until("the reader sleeps", || sleeps(thread).then_some(()));
        call!(table, usleep, 50_000).unwrap();
        let data = b"hello".to_vec();
        table.inject(Segment { flags: ACK | PSH, sequence: 1, acknowledgment, payload: data });
        call!(table, usleep, 400_000).unwrap();
        let (read, woke_at, place) = reader.join().unwrap();
        assert_eq!((read, &place[..5]), (Ok(5), &b"hello"[..]));
        let after = woke_at - started;
        assert!((50_000..51_000).contains(&after), "woken {after} us after the start, data came at 50,000");
    });
    let (reply, at) = table.sniff().unwrap();
    assert_eq!((reply.flags, reply.acknowledgment), (ACK, 6));
    assert!(at - started < 120_000, "acknowledged {} us after the start", at - started);

    assert_eq!(call!(table, write, fd, b"abc".as_ptr().cast(), 3), Ok(3));
    let (data, _) = table.sniff().unwrap();
    assert_eq!((data.flags, data.payload.as_slice()), (ACK | PSH, &b"abc"[..]));
    assert_eq!(call!(table, close, listener), Ok(0));
    assert_eq!(call!(table, close, listener), Err(libc::EBADF));
    // `fd` stays open: `free` closes it.
    table.free();
    // SAFETY: a number goes to the kernel.
    assert_eq!(unsafe { libc::fcntl(fd, libc::F_GETFD) }, -1);
}

#[test]
fn one_library_serves_script_after_script() {
    // A call into the library that never returns is left behind.
    join(std::thread::spawn(|| {
        let init = load();
        course(init);
        course(init);
        time_is_virtual_and_silence_ends(init);
        errors_have_the_systems_numbers(init);
        options_that_would_do_nothing_are_refused(init);
        the_time_in_fin_wait_2_is_set(init);
    }));
}

/// A minute of script time takes no time, retransmissions come when they are due, and where nothing comes the tool is
/// told so.
fn time_is_virtual_and_silence_ends(init: Init) {
    let table = Table::init(init, "profile=rfc,local=192.168.0.1");
    let listener = table.listener();
    let (fd, acknowledgment) = table.accepted(listener);
    let start = std::time::Instant::now();
    let sent = call!(table, write, fd, b"abc".as_ptr().cast(), 3);
    assert_eq!(sent, Ok(3));
    let (_, first) = table.sniff().unwrap();
    let mut times = vec![first];
    for _ in 0..6 {
        let (again, at) = table.sniff().unwrap();
        assert_eq!(again.payload, b"abc");
        times.push(at);
    }
    let pauses: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.last().unwrap() > &(8 * pauses[0]), "no back-off in {pauses:?}");
    let acknowledgment = acknowledgment.wrapping_add(3);
    table.inject(Segment { flags: ACK, sequence: 1, acknowledgment, payload: Vec::new() });
    assert!(table.sniff().is_none());
    assert!(start.elapsed() < Duration::from_secs(20));
    table.free();
}

fn errors_have_the_systems_numbers(init: Init) {
    let table = Table::init(init, "");
    let listener = table.listener();
    let null: *mut c_void = std::ptr::null_mut();
    assert_eq!(call!(table, fcntl, listener, libc::F_SETFL, libc::c_long::from(libc::O_NONBLOCK)), Ok(0));
    assert_eq!(call!(table, accept, listener, null.cast(), null.cast()), Err(libc::EAGAIN));
    assert_eq!(call!(table, read, listener, null, 10), Err(libc::ENOTCONN));
    assert_eq!(call!(table, socket, libc::AF_UNIX, libc::SOCK_STREAM, 0), Err(libc::EAFNOSUPPORT));
    assert_eq!(call!(table, read, 999_999, null, 10), Err(libc::EBADF));
    let mut pollfd = libc::pollfd { fd: listener, events: libc::POLLIN, revents: !0 };
    assert_eq!(call!(table, poll, &mut pollfd, 1, 100), Ok(0));
    assert_eq!(pollfd.revents, 0);
    table.free();
}

/// An option that is taken has an effect; one that would have none is refused, on a fresh socket as on a listener.
fn options_that_would_do_nothing_are_refused(init: Init) {
    let table = Table::init(init, "local=192.168.0.1");
    let fresh = call!(table, socket, libc::AF_INET, libc::SOCK_STREAM, 0).unwrap() as c_int;
    for fd in [fresh, table.listener()] {
        let set = |level, option, value: c_int| {
            let bytes = size_of::<c_int>() as socklen_t;
            call!(table, setsockopt, fd, level, option, (&raw const value).cast(), bytes)
        };
        for option in [libc::SO_MARK, libc::SO_PRIORITY, libc::SO_REUSEPORT, libc::SO_RCVLOWAT] {
            assert_eq!(set(libc::SOL_SOCKET, option, 1), Err(libc::ENOPROTOOPT), "SOL_SOCKET {option}");
        }
        for option in [libc::IP_RECVERR, libc::IP_TRANSPARENT, libc::IP_PKTINFO] {
            assert_eq!(set(libc::SOL_IP, option, 1), Err(libc::ENOPROTOOPT), "SOL_IP {option}");
        }
        assert_eq!(set(libc::SOL_IPV6, libc::IPV6_V6ONLY, 1), Err(libc::ENOPROTOOPT));
        assert_eq!(set(libc::SOL_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE), Err(libc::EINVAL));
        let receive_hardware = 1 << 2;
        assert_eq!(set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, receive_hardware), Err(libc::EINVAL));
        for (level, option, value) in [
            (libc::SOL_IP, libc::IP_TOS, 0x10),
            (libc::SOL_IP, libc::IP_TTL, 9),
            (libc::SOL_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT),
            (libc::SOL_SOCKET, libc::SO_SNDBUF, 10_000),
        ] {
            assert_eq!(set(level, option, value), Ok(0), "{level} {option}");
        }
    }
    table.free();
}

/// `TCP_LINGER2` as the kernel takes it, and what comes of it.
fn the_time_in_fin_wait_2_is_set(init: Init) {
    let table = Table::init(init, "local=192.168.0.1");
    let listener = table.listener();
    let (fd, acknowledgment) = table.accepted(listener);
    for (set, told) in [(0, 60), (2, 2), (500, 120), (-5, -1)] {
        let (mut value, mut bytes): (c_int, _) = (set, size_of::<c_int>() as socklen_t);
        let option = libc::TCP_LINGER2;
        let place = (&raw mut value).cast();
        assert_eq!(call!(table, setsockopt, fd, libc::SOL_TCP, option, place, bytes), Ok(0));
        value = 99;
        let place = (&raw mut value).cast();
        assert_eq!(call!(table, getsockopt, fd, libc::SOL_TCP, option, place, &raw mut bytes), Ok(0));
        assert_eq!(value, told, "{set} was set");
    }
    // With no time at all a connection in FIN-WAIT-2 is forgotten.
    assert_eq!(call!(table, close, fd), Ok(0));
    let (fin, _) = table.sniff().unwrap();
    assert_eq!(fin.flags & FIN, FIN);
    let acknowledgment = acknowledgment.wrapping_add(1);
    table.inject(Segment { flags: ACK, sequence: 1, acknowledgment, payload: Vec::new() });
    table.inject(Segment { flags: ACK | FIN, sequence: 1, acknowledgment, payload: Vec::new() });
    let (answer, _) = table.sniff().unwrap();
    assert_eq!(answer.flags & RST, RST, "{:#x}", answer.flags);
    table.free();
}
