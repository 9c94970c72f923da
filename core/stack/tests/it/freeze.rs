//! A stack that is frozen and thawed, in this process and in another, and forked. That nothing changes on the wire,
//! whenever it happens, is tried in `lab/sim/tests/it/freeze.rs`.

use crate::common::transfer::Transfer;
use crate::common::{Faults, LINK, Net, endpoint, ignore};
use inhost_base::{Duration, Instant};
use inhost_stack::{
    Acknowledged, CongestionChoice, CongestionController, CongestionWindow, ConnectOptions, ConnectionOption,
    FreezeError, Ignore, Medium, ProbeMethod, Readiness, SocketOption, Stack, StackConfig, TcpState,
    ThawError, UdpOptions,
};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

const MEMORY_BYTES: usize = 64 << 20;

fn thawed(stack: &Stack) -> Stack {
    let bytes = stack.freeze().unwrap();
    let thawed = Stack::thaw(&bytes, MEMORY_BYTES).unwrap();
    assert!(thawed.freeze().unwrap() == bytes, "a thawed stack is frozen to the same bytes");
    thawed
}

fn bad_wire() -> Faults {
    Faults { lost: 30, repeated: 20, corrupted: 10, reordered: 80, delay: Duration::from_millis(5) }
}

#[test]
fn a_transfer_goes_on_in_a_thawed_stack() {
    for seed in 0..8 {
        let mut net = match seed % 2 {
            0 => Net::new(seed),
            _ => Net::ethernet(seed),
        };
        net.set_faults(bad_wire());
        let sockets = net.connected(23);
        let mut transfer = Transfer::new(seed, [sockets.0, sockets.1], [150_000, 70_000]);
        let mut moment = 0;
        let done = net.run(Duration::from_secs(4 * 3600), |net| {
            moment += 1;
            if moment % 5 == 0 {
                let host = moment / 5 % 2;
                net.stacks[host] = thawed(&net.stacks[host]);
            }
            transfer.work(net)
        });
        assert!(done && moment > 50, "seed {seed}: {transfer:?}");
    }
}

#[test]
fn sockets_of_every_kind_are_taken_up_again_by_their_identifiers() {
    let mut net = Net::new(1);
    let (caller, called) = net.connected(23);
    let listener = net.listen(1, 24);
    let waiting = net.connect(0, endpoint(1, 24));
    let now = net.now;
    let stack = &mut net.stacks[1];
    let udp = stack.udp(now, &mut Ignore).bind(endpoint(1, 9), UdpOptions::default()).unwrap();
    let here = net.stacks[0].udp(now, &mut Ignore).bind(endpoint(0, 9), UdpOptions::default()).unwrap();
    net.stacks[0].udp(now, &mut Ignore).send_to(here, b"datagram", Some(endpoint(1, 9)), None).unwrap();
    let echo = net.stacks[0].echo(now, &mut Ignore).open().unwrap();
    net.stacks[0].echo(now, &mut Ignore).send(echo, endpoint(1, 0).address, 7, b"are you there?").unwrap();
    let probe = net.stacks[0].probe(now, &mut Ignore).open(ProbeMethod::Datagram { port: 33_434 }).unwrap();
    assert_eq!(net.send(0, caller, b"in flight"), 9);

    net.pass(Duration::from_secs(2));
    for host in 0..2 {
        net.stacks[host] = thawed(&net.stacks[host]);
    }
    let now = net.now;
    assert_eq!(net.read(1, called, 100), b"in flight");
    let accepted = net.stacks[1].tcp(now, &mut Ignore).accept(listener).unwrap().unwrap();
    assert_eq!(net.send(1, accepted.socket, b"welcome"), 7);
    let mut place = [0; 100];
    let datagram = net.stacks[1].udp(now, &mut Ignore).receive_from(udp, &mut place).unwrap();
    assert_eq!(&place[..datagram.length_bytes], b"datagram");
    let reply = net.stacks[0].echo(now, &mut Ignore).receive(echo, &mut place).unwrap();
    assert_eq!(&place[..reply.length_bytes], b"are you there?");
    assert!(net.stacks[0].probe(now, &mut Ignore).receive(probe).is_err(), "none was sent");
    net.pass(Duration::from_secs(1));
    assert_eq!(net.read(0, waiting, 100), b"welcome");
    for (host, socket) in [(0, caller), (1, called), (0, waiting), (1, accepted.socket)] {
        net.close(host, socket);
    }
    net.close(1, listener);
    net.close(1, udp);
    net.close(0, here);
    net.close(0, echo);
    net.close(0, probe);
    net.pass(Duration::from_secs(600));
    for (host, left) in [(0, 0), (1, 1)] {
        // Of host 1 the listener of the first connection.
        assert_eq!(net.stacks[host].instruments().socket_count(), left);
        assert_eq!(net.stacks[host].memory().outstanding_bytes(), 0);
    }
}

#[test]
fn bytes_that_do_not_fit_are_refused_with_the_reason() {
    let mut net = Net::new(2);
    let (caller, _) = net.connected(23);
    net.send(0, caller, &[7; 50_000]);
    let bytes = net.stacks[0].freeze().unwrap();
    let thaw = |bytes: &[u8]| Stack::thaw(bytes, MEMORY_BYTES).err();

    assert_eq!(thaw(&[]), Some(ThawError::NotAStack));
    assert_eq!(thaw(b"PNG or anything else, of any length, really"), Some(ThawError::NotAStack));
    let changed = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x40;
        thaw(&bytes)
    };
    assert_eq!(changed(0), Some(ThawError::NotAStack));
    let Some(ThawError::Version { found, known }) = changed(8) else { panic!("another version") };
    assert_eq!(found, known ^ 0x40);
    assert_eq!(changed(12), Some(ThawError::Layout));
    assert!(matches!(changed(20), Some(ThawError::Length { .. })));
    assert_eq!(changed(28), Some(ThawError::Checksum));
    for at in (36..bytes.len()).step_by(997) {
        assert_eq!(changed(at), Some(ThawError::Checksum));
    }
    for length in (0..bytes.len()).step_by(61) {
        let why = thaw(&bytes[..length]);
        match length {
            0..36 => assert_eq!(why, Some(ThawError::NotAStack)),
            _ => assert!(matches!(why, Some(ThawError::Length { found, .. }) if found == length as u64)),
        }
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(thaw(&longer), Some(ThawError::Length { .. })));
    // Behind a header that is right, a body that is not.
    let body = Stack::unseal_frozen(&bytes).unwrap();
    assert_eq!(thaw(&Stack::seal_frozen(&body[..body.len() / 2])), Some(ThawError::Malformed));
    assert!(matches!(thaw(&Stack::seal_frozen(&[body, b"x"].concat())), Some(ThawError::Invalid(_))));
    // Its queue needs more.
    assert_eq!(Stack::thaw(&bytes, 10_000).err(), Some(ThawError::Memory));
    assert!(thaw(&bytes).is_none());
}

/// A window of one size, whatever happens.
#[derive(Debug)]
struct Fixed;

impl CongestionController for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }
    fn opened(&mut self, window: &mut CongestionWindow) {
        window.window_bytes = 64 << 10;
    }
    fn acknowledged(&mut self, _: &mut CongestionWindow, _: &Acknowledged, _: bool) {}
    fn lost(&mut self, _: &mut CongestionWindow, _: u32, _: Instant) {}
}

#[test]
fn custom_congestion_control_is_refused_until_another_is_chosen() {
    let mut net = Net::new(3);
    let (caller, _) = net.connected(23);
    let now = net.now;
    let custom = SocketOption::Tcp(ConnectionOption::Congestion(CongestionChoice::custom(|| Fixed)));
    net.stacks[0].set_option(caller, custom, now, &mut ignore()).unwrap();
    assert_eq!(net.stacks[0].freeze(), Err(FreezeError::CustomCongestion));
    let cubic = SocketOption::Tcp(ConnectionOption::Congestion(CongestionChoice::Cubic));
    net.stacks[0].set_option(caller, cubic, now, &mut ignore()).unwrap();
    assert!(net.stacks[0].freeze().is_ok());
    let mut config = StackConfig::default();
    config.tcp.congestion = CongestionChoice::custom(|| Fixed);
    assert_eq!(Stack::new(config, [1; 32], now).freeze(), Err(FreezeError::CustomCongestion));
}

/// The first SYN of a new call: its source port and sequence number.
fn call(mut stack: Stack) -> (u16, u32) {
    let now = stack.instruments().now();
    let to = endpoint(1, 80);
    stack.tcp(now, &mut ignore()).connect(to, ConnectOptions::default()).unwrap();
    let mut kept = crate::common::packets::Kept::default();
    while stack.transmit(LINK, now, 100, &mut kept, &mut ignore()).more {}
    let syn =
        kept.0.iter().filter_map(|frame| crate::common::packets::parse_segment(frame)).find(|s| s.to == to);
    let syn = syn.unwrap();
    (syn.from.port, syn.header.sequence.0)
}

#[test]
fn a_fork_has_numbers_of_its_own_and_keeps_its_connections() {
    let mut net = Net::new(4);
    let (caller, called) = net.connected(23);
    net.send(0, caller, b"before ");
    let bytes = net.stacks[0].freeze().unwrap();
    let fork = |seed: u8| Stack::fork(&bytes, MEMORY_BYTES, [seed; 32]).unwrap();

    let original = call(Stack::thaw(&bytes, MEMORY_BYTES).unwrap());
    assert_eq!(
        original,
        call(Stack::thaw(&bytes, MEMORY_BYTES).unwrap()),
        "a thawed stack goes on as it would"
    );
    let (one, other) = (call(fork(1)), call(fork(2)));
    assert_eq!(one, call(fork(1)), "the same seed, the same fork");
    for (first, second) in [(original, one), (original, other), (one, other)] {
        assert_ne!(first.0, second.0, "ports");
        assert_ne!(first.1, second.1, "initial sequence numbers");
    }
    // In the place of the original, whose frames nobody gets any more, a fork has its connections.
    net.stacks[0] = fork(1);
    net.send(0, caller, b"and after");
    net.pass(Duration::from_secs(2));
    assert_eq!(net.read(1, called, 100), b"before and after");
}

/// The types that are written, without comments and white space.
fn written_types() -> String {
    let core = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut folders, mut files) = (vec![core], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() && !path.ends_with("tests") => folders.push(path),
                Some(extension) if extension == "rs" => files.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    let mut types = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let code =
            |line: &str| line.split("//").next().unwrap_or_default().split_whitespace().collect::<String>();
        // Its items are made by a macro.
        let is_list = file.ends_with("event/src/cause.rs");
        let mut end = None;
        for line in text.lines() {
            let line = line.trim_end();
            let indent = &line[..line.len() - line.trim_start().len()];
            if line.ends_with("derive(serde::Serialize, serde::Deserialize))]") {
                end = Some(format!("{indent}}}"));
            }
            if end.is_some() || is_list {
                types += &code(line);
            }
            let is_short = !line.contains("#[") && (line.ends_with(';') || line.ends_with('}'));
            if end.as_deref() == Some(line) || is_short && line.trim_start().starts_with("pub") {
                end = None;
            }
        }
    }
    types
}

#[test]
fn the_format_is_that_of_its_version() {
    let types = written_types();
    assert!(types.len() > 10_000, "{types}");
    let hash = types.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let bytes = Stack::new(StackConfig::default(), [1; 32], Instant::ZERO).freeze().unwrap();
    assert_eq!(
        (hash, inhost_event::Drop::COUNT, bytes[8]),
        (LAYOUT, DROPS, VERSION),
        "a type that is written has changed: raise VERSION in core/stack/src/stack/freeze.rs, then note all three here"
    );
}
const LAYOUT: u64 = 2_093_526_337_146_317_253;
const DROPS: usize = 17;
const VERSION: u8 = 11;

/// In place of a deadline: the connection is over.
const IS_OVER: u64 = u64::MAX - 1;

/// The other process: it thaws a stack, goes on with its connection over a pipe, and ends when the peer has closed.
fn other_process(path: OsString) {
    let bytes = std::fs::read(&path).unwrap();
    let socket: u64 = std::env::var("INHOST_SOCKET").unwrap().parse().unwrap();
    let mut stack = Stack::thaw(&bytes, MEMORY_BYTES).unwrap();
    // The identifiers that were noted with the bytes find their sockets.
    let socket = inhost_stack::SocketId(inhost_stack::Key::from_bits(socket));
    let socket = stack.typed(socket).and_then(inhost_stack::AnySocketId::tcp).unwrap();
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut sent = 0;
    // A line marks where the frames begin: the test runner writes to the pipe, too.
    output.write_all(b"\n@frames\n").unwrap();
    loop {
        // A round of the other's: the time, and frames.
        let mut number = [0; 8];
        input.read_exact(&mut number).unwrap();
        let now = Instant::from_nanos(u64::from_le_bytes(number));
        for frame in read_frames(&mut input) {
            let mut packet = stack.pool().take(frame.len()).unwrap();
            packet.append(&frame);
            let mut batch = inhost_stack::Batch::new();
            batch.push(packet).unwrap();
            stack.receive(LINK, &mut batch, now, &mut ignore());
        }
        stack.timeout(now, &mut ignore());
        let mut place = [0; 4096];
        let mut at_end = false;
        while let Ok(count) = stack.tcp(now, &mut ignore()).read(socket, &mut place) {
            at_end |= count == 0;
            if at_end {
                break;
            }
        }
        // It sends back how it is called, which only this process does.
        if sent == 0 {
            let text = format!("from process {}", std::process::id());
            sent = stack.tcp(now, &mut ignore()).send(socket, text.as_bytes()).unwrap();
            stack.tcp(now, &mut ignore()).shutdown(socket).unwrap();
        }
        let mut kept = crate::common::packets::Kept::default();
        while stack.transmit(LINK, now, 100, &mut kept, &mut ignore()).more {}
        let deadline = stack.deadline().map_or(u64::MAX, Instant::as_nanos);
        output.write_all(&deadline.to_le_bytes()).unwrap();
        write_frames(&mut output, &kept.0);
        let is_over = |state: TcpState| matches!(state, TcpState::TimeWait | TcpState::Closed);
        if at_end
            && stack.instruments().connection(socket).map(|connection| connection.state()).is_none_or(is_over)
        {
            output.write_all(&IS_OVER.to_le_bytes()).unwrap();
            return output.flush().unwrap();
        }
    }
}

fn read_frames(input: &mut impl Read) -> Vec<Vec<u8>> {
    let mut number = [0; 4];
    input.read_exact(&mut number).unwrap();
    let mut frames = Vec::new();
    for _ in 0..u32::from_le_bytes(number) {
        input.read_exact(&mut number).unwrap();
        let mut frame = vec![0; u32::from_le_bytes(number) as usize];
        input.read_exact(&mut frame).unwrap();
        frames.push(frame);
    }
    frames
}
fn write_frames(output: &mut impl Write, frames: &[Vec<u8>]) {
    output.write_all(&(frames.len() as u32).to_le_bytes()).unwrap();
    for frame in frames {
        output.write_all(&(frame.len() as u32).to_le_bytes()).unwrap();
        output.write_all(frame).unwrap();
    }
    output.flush().unwrap();
}

#[test]
fn a_connection_moves_to_another_process() {
    if let Some(path) = std::env::var_os("INHOST_FROZEN") {
        return other_process(path);
    }
    // Reading from a pipe has no timeout.
    inhost_interop::join(std::thread::spawn(move_to_another_process));
}

fn move_to_another_process() {
    let mut net = Net::with(6, StackConfig::default(), |_| Medium::Ip);
    let (caller, called) = net.connected(23);
    net.send(1, called, &[7; 30_000]);
    // In the middle of the transfer.
    net.pass(Duration::from_millis(3));
    let path = std::env::temp_dir().join(format!("inhost-frozen-{}", std::process::id()));
    std::fs::write(&path, net.stacks[0].freeze().unwrap()).unwrap();
    let mut other = Command::new(std::env::current_exe().unwrap());
    other
        .args(["--exact", "freeze::a_connection_moves_to_another_process", "--nocapture", "--test-threads=1"])
        .env("INHOST_FROZEN", &path)
        .env("INHOST_SOCKET", caller.key().to_bits().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut other = inhost_interop::Running::spawn(&mut other);
    let (mut to, mut from) = (other.child.stdin.take().unwrap(), other.child.stdout.take().unwrap());
    let mut seen = Vec::new();
    while !seen.ends_with(b"\n@frames\n") {
        let mut byte = [0];
        from.read_exact(&mut byte).unwrap();
        seen.push(byte[0]);
    }
    // The frames that were on their way go to the process; this stack is not used any more.
    let mut text = Vec::new();
    let mut now = net.now;
    let mut inbound: Vec<Vec<u8>> = net.wires[1].peek();
    for _ in 0..10_000 {
        let mut round = now.as_nanos().to_le_bytes().to_vec();
        write_frames(&mut round, &inbound);
        // Where the process has ended, it has said so before.
        let _ = to.write_all(&round).and_then(|()| to.flush());
        let mut number = [0; 8];
        from.read_exact(&mut number).unwrap();
        if u64::from_le_bytes(number) == IS_OVER {
            break;
        }
        let deadline = Instant::from_nanos(u64::from_le_bytes(number));
        now += Duration::from_millis(1);
        for frame in read_frames(&mut from) {
            net.now = now;
            net.inject(1, &frame);
        }
        net.stacks[1].timeout(now, &mut net.sinks[1]);
        text.extend(net.read(1, called, 1000));
        let readiness = net.stacks[1].readiness(called);
        if !text.is_empty() && readiness.contains(Readiness::READABLE) {
            // The end of the stream.
            let _ = net.stacks[1].tcp(now, &mut net.sinks[1]).shutdown(called);
        }
        let mut kept = crate::common::packets::Kept::default();
        while net.stacks[1].transmit(LINK, now, 100, &mut kept, &mut net.sinks[1]).more {}
        inbound = kept.0;
        if inbound.is_empty() {
            let soonest = deadline.min(net.stacks[1].deadline().unwrap_or(Instant::FAR_FUTURE));
            now = now.max(soonest.min(now + Duration::from_secs(1)));
        }
    }
    drop(to);
    let status = other.wait();
    std::fs::remove_file(&path).unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(String::from_utf8(text).unwrap(), format!("from process {}", other.id()));
}
