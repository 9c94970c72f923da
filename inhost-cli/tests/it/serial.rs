//! Two hosts on a serial line, and a host against Debian's `slirp`, a SLIP peer that others wrote.
//!
//! The lines are ptys, which do not pace: the rate is kept by the driver, as on any line.
#![allow(clippy::disallowed_methods)] // Programs of others and the kernel's sockets are the other end.

use crate::common::{Folder, PASSWORD, Serve, accept, echo_intact};
use inhost_base::{Endpoint, Random};
use inhost_interop::{Running, join, pause, run};
use inhost_runtime::control::Client;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The rate of a terminal line of MIT's time, and of what is said of echo.
const BAUD: u32 = 9600;
/// Bits of an octet on the line.
const BITS: f64 = 10.0;

/// The host at 10.0.5.2, on a pty that it makes; and the name of the pty's other end.
fn host(name: &str, keys: &str) -> (Serve, String) {
    let serve = Serve::start(name, &["--link", &format!("serial:/dev/ptmx,address=10.0.5.2/24,{keys}")]);
    let other = serve.banner.split("other end ").nth(1).and_then(|rest| rest.split(',').next());
    let other = other.unwrap_or_else(|| panic!("no other end: {}", serve.banner)).to_owned();
    (serve, other)
}

/// Logs in over a line of 9600 baud, and gives how long the echo of a character took, in milliseconds, the median
/// of five.
fn echo_ms(framing: &str) -> f64 {
    let (serve, line) = host("serial", &format!("baud={BAUD},framing={framing}"));
    let link = format!("serial:{line},baud={BAUD},framing={framing},address=10.0.5.1/24");
    // The echo of a character is timed when everything before it, late acknowledgments included, has passed.
    let talk = format!(
        "spawn {} telnet 10.0.5.2 --link {link}\nwant inhost> 2\nsend \"logon ada\\r\"\nwant Password 3\n\
         send \"{PASSWORD}\\r\"\nwant {{[$#] $}} 4\nsend \"echo from-\\$((40+2))\\r\"\nwant from-42 5\n\
         want {{[$#] $}} 6\n\
         foreach c {{v w x y z}} {{\n sleep 1\n set began [clock microseconds]\n send $c\n want $c 7\n\
           puts \"\\nTOOK [expr {{[clock microseconds]-$began}}]\"\n}}\n\
         send \"\\025exit\\r\"\nended 8\n",
        env!("CARGO_BIN_EXE_inhost")
    );
    let said = crate::common::expect(&talk, &serve.folder.0);
    let took = said.lines().filter_map(|line| line.trim().strip_prefix("TOOK ")?.parse::<f64>().ok());
    let mut took_ms: Vec<f64> = took.map(|us| us / 1e3).collect();
    assert_eq!(took_ms.len(), 5, "{said}");
    took_ms.sort_by(f64::total_cmp);
    assert!(serve.end().success());
    took_ms[2]
}

/// The echo of a character: the time of the line for what has to cross it, and what came on top.
fn login_works_and_echo_takes_the_lines_time(framing: &str, octets: u32) {
    let took_ms = echo_ms(framing);
    let line_ms = f64::from(octets) * BITS * 1e3 / f64::from(BAUD);
    println!(
        "{framing}, {BAUD} baud: echo of a character {took_ms:.1} ms, of which the line's own {line_ms:.1} ms"
    );
    assert!(took_ms >= 0.98 * line_ms, "faster than the line: {took_ms} ms, {line_ms} ms");
    assert!(took_ms < 2.0 * line_ms + 200.0, "{took_ms} ms where the line takes {line_ms} ms");
}

/// A segment with one character: both headers, with the timestamps' option, and the character.
const SEGMENT: u32 = 20 + 32 + 1;

#[test]
fn login_over_slip_at_9600_baud() {
    if !crate::common::peers(&["expect"]) {
        return;
    }
    // The character and its echo, each between two ENDs.
    login_works_and_echo_takes_the_lines_time("slip", 2 * (SEGMENT + 2));
}

#[test]
fn login_over_llp_at_9600_baud() {
    if !crate::common::peers(&["expect"]) {
        return;
    }
    // Each with its REQ, ACK, local header and END.
    login_works_and_echo_takes_the_lines_time("llp", 2 * (1 + 1 + 4 + SEGMENT + 1));
}

/// A pattern through the echo service and back over a line on which one octet in a thousand is changed, in each
/// direction.
fn survives_noise(framing: &str) {
    let cable = Cable::new(Some(11));
    // Short packets, of which most survive.
    let keys = format!("baud=1000000,framing={framing},mtu=160");
    let [a, b] = &cable.names;
    let far = Serve::start("noise", &["--link", &format!("serial:{a},address=10.0.5.2/24,{keys}")]);
    let near = Serve::start("noise", &["--link", &format!("serial:{b},address=10.0.5.1/24,{keys}")]);
    let control = near.banner.lines().find_map(|line| line.trim().strip_prefix("control ")).unwrap().trim();
    let control = PathBuf::from(control);
    let began = Instant::now();
    // The client itself has no deadline.
    let connected = join(std::thread::spawn(move || {
        Client::open(&control).unwrap().connect(Endpoint::new([10, 0, 5, 2], 7)).unwrap()
    }));
    let bytes = noisy_bytes();
    // A socket is a socket.
    echo_intact(TcpStream::from(OwnedFd::from(connected.stream)), bytes);
    let took_s = began.elapsed().as_secs_f64();
    let dropped = &near.netstat()["interfaces"][1]["dropped"];
    println!(
        "{framing}, one octet in a thousand changed: {bytes} bytes there and back in {took_s:.1} s; {dropped}"
    );
    drop((near, far));
}

/// Bytes there, and as many back; `make serial-figures` asks for more.
fn noisy_bytes() -> u64 {
    std::env::var("INHOST_NOISY_BYTES").ok().and_then(|bytes| bytes.parse().ok()).unwrap_or(100_000)
}

#[test]
fn nothing_wrong_comes_through_a_noisy_slip_line() {
    survives_noise("slip");
}

#[test]
fn nothing_wrong_comes_through_a_noisy_llp_line() {
    survives_noise("llp");
}

/// Two ptys whose far ends are joined by two threads, which is a null-modem cable between the near ends.
struct Cable {
    /// The names of the near ends.
    names: [String; 2],
    /// Held, so that nobody's going hangs the line up.
    _near: [OwnedFd; 2],
}

impl Cable {
    /// A cable that changes nothing, or, from a seed, one octet in a thousand.
    fn new(noise: Option<u64>) -> Cable {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ptys = [(); 2].map(|()| {
            let master = openpt(flags).unwrap();
            grantpt(&master).unwrap();
            unlockpt(&master).unwrap();
            let near = ioctl_tiocgptpeer(&master, flags).unwrap();
            let mut raw = tcgetattr(&near).unwrap();
            raw.make_raw();
            tcsetattr(&near, OptionalActions::Now, &raw).unwrap();
            (ptsname(&master, Vec::new()).unwrap().into_string().unwrap(), File::from(master), near)
        });
        let [(a, far_a, near_a), (b, far_b, near_b)] = ptys;
        let (from_a, from_b) = (far_a.try_clone().unwrap(), far_b.try_clone().unwrap());
        // They end when the near ends are closed.
        std::thread::spawn(move || carry(from_a, far_b, noise.map(Random::from_number)));
        let other = noise.map(|seed| Random::from_number(seed + 1));
        std::thread::spawn(move || carry(from_b, far_a, other));
        Cable { names: [a, b], _near: [near_a, near_b] }
    }
}

/// Octets between two changed ones, from the first number to less than the sum: a thousand on average. They are so far
/// apart that no packet of these tests has two: the Internet checksum, all that SLIP has, finds every single
/// changed octet, but of packets with two it passes one in some hundreds.
const GAP: (u64, u32) = (700, 601);

/// Carries octets until an end is closed.
fn carry(mut from: File, mut to: File, mut noise: Option<Random>) -> std::io::Result<()> {
    let mut octets = [0; 4096];
    let mut until_change = GAP.0;
    loop {
        let count = from.read(&mut octets)?;
        for octet in &mut octets[..count] {
            let Some(random) = &mut noise else { break };
            until_change -= 1;
            if until_change == 0 {
                *octet ^= 1 + random.public_below(255) as u8;
                until_change = GAP.0 + u64::from(random.public_below(GAP.1));
            }
        }
        to.write_all(&octets[..count])?;
    }
}

/// slirp at one end of a cable: the variant of Debian's package that leaves the pace to the line.
fn slirp(tty: &str) -> Running {
    let open = || File::options().read(true).write(true).open(tty).unwrap();
    let mut command = Command::new("slirp-fullbolt");
    command.args(["-b", "115200"]).stdin(open()).stdout(open()).stderr(Stdio::null());
    let running = Running::spawn(&mut command);
    // It prints its greeting, and then waits for the first frame.
    pause(Duration::from_millis(500));
    running
}

#[test]
fn slirp_answers_our_ping_and_carries_our_telnet() {
    if !crate::common::peers(&["expect", "slirp-fullbolt"]) {
        return;
    }
    let cable = Cable::new(None);
    let _slirp = slirp(&cable.names[0]);
    let folder = Folder::new("slirp");
    let link = format!("serial:{},baud=115200,address=10.0.2.15/24,gateway=10.0.2.2", cable.names[1]);
    let ping = ["ping", "10.0.2.2", "--count", "3", "--interval", "0.3", "--link", &link];
    let said = run(crate::common::inhost(&folder.0).args(ping));
    assert!(said.contains("3 answered"), "{said}");
    println!("slirp: {}", said.lines().last().unwrap_or_default());

    // slirp's 10.0.2.2 is the loopback of the system that it runs on.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let mut stream = accept(&listener);
        stream.write_all(b"what is your name?\r\n").unwrap();
        let mut name = String::new();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut name).unwrap();
        write!(stream, "good day, {}!\r\n", name.trim()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        name
    });
    let talk = format!(
        "spawn {} telnet 10.0.2.2 {port} --line --link {link}\nwant {{your name\\?}} 2\nsend \"countess\\r\"\n\
         want {{good day, countess!}} 3\nexpect eof {{}} timeout {{exit 4}}\n",
        env!("CARGO_BIN_EXE_inhost")
    );
    crate::common::expect(&talk, &folder.0);
    assert_eq!(join(server).trim(), "countess");
}
