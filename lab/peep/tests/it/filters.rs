//! Random filters choose the frames that tcpdump chooses.

use inhost_explain::capture::Reader;
use inhost_interop::{left_out, output};
use inhost_peep::filter::Filter;
use std::hash::{BuildHasher, RandomState};
use std::process::Command;

/// Filters that are tried, and frames of the capture.
const FILTERS: usize = 200;
const FRAMES: usize = 600;

/// Choices that follow from a seed (SplitMix64).
struct Random(u64);
impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
    fn is_one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }
}

const V4: [[u8; 4]; 6] =
    [[10, 9, 0, 1], [10, 9, 0, 2], [10, 8, 3, 4], [192, 168, 1, 1], [224, 0, 0, 251], [127, 0, 0, 1]];
const PORTS: [u16; 8] = [22, 53, 80, 443, 1024, 6000, 6005, 65_535];
const MACS: [[u8; 6]; 4] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [0xff; 6], [0x33, 0x33, 0, 0, 0, 1]];

fn v6(random: &mut Random) -> [u8; 16] {
    let mut address = [0; 16];
    (address[0], address[1], address[15]) =
        random.one(&[(0xfd, 9, 1), (0xfd, 9, 2), (0xfe, 0x80, 1), (0xff, 2, 1)]);
    address
}
fn transport(random: &mut Random, protocol: u8) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..40).map(|_| random.next() as u8).collect();
    if matches!(protocol, 6 | 17 | 132) {
        bytes[..2].copy_from_slice(&random.one(&PORTS).to_be_bytes());
        bytes[2..4].copy_from_slice(&random.one(&PORTS).to_be_bytes());
        (bytes[12], bytes[13]) = (0x50, random.one(&[0x02, 0x12, 0x10, 0x18, 0x11, 0x04, 0x14]));
    } else {
        (bytes[0], bytes[1]) = (random.one(&[0, 3, 8, 11, 128, 135]), random.one(&[0, 1, 4]));
    }
    bytes.truncate(random.one(&[8, 20, 40]));
    bytes
}
fn packet(random: &mut Random) -> ([u8; 2], Vec<u8>) {
    match random.below(10) {
        0 => {
            let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1];
            arp.extend(random.one(&MACS).iter().chain(&random.one(&V4)));
            arp.extend(random.one(&MACS).iter().chain(&random.one(&V4)));
            ([8, 6], arp)
        }
        1..4 => {
            let protocol = random.one(&[6, 17, 58, 132, 44, 0]);
            let mut packet = vec![0x60, 0, 0, 0, 0, 60, protocol, 64];
            packet.extend(v6(random));
            packet.extend(v6(random));
            if protocol == 44 {
                packet.extend([random.one(&[6, 17, 58]), 0, 0, 1, 0, 0, 0, 9]);
            }
            packet.extend(transport(random, protocol));
            ([0x86, 0xdd], packet)
        }
        4 => ([random.one(&[0x88, 0x08]), 0xcc], (0..20).map(|_| random.next() as u8).collect()),
        _ => {
            let (protocol, words) = (random.one(&[1, 6, 6, 17, 17, 47, 132, 2]), random.one(&[5, 5, 6, 8]));
            let fragment: u16 = random.one(&[0, 0, 0, 0x4000, 0x2000, 0x2005, 0x0100]);
            let mut packet = vec![0x40 | words as u8, random.one(&[0, 0xb8]), 0, 60, 1, 2];
            packet.extend(fragment.to_be_bytes());
            packet.extend([random.one(&[1, 64, 255]), protocol, 0, 0]);
            packet.extend(random.one(&V4).iter().chain(&random.one(&V4)));
            packet.resize(words * 4, 1);
            packet.extend(transport(random, protocol));
            ([8, 0], packet)
        }
    }
}
/// A pcap file; the frame's number is its time in seconds.
fn capture(random: &mut Random) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    file.resize(16, 0);
    file.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    for number in 0..FRAMES as u32 {
        let mut frame: Vec<u8> = random.one(&MACS).into_iter().chain(random.one(&MACS)).collect();
        let (kind, packet) = packet(random);
        if random.is_one_in(8) {
            frame.extend([0x81, 0, 0, random.one(&[5, 7])]);
        }
        frame.extend(kind);
        frame.extend(packet);
        let length = frame.len() as u32 + if random.is_one_in(10) { 1000 } else { 0 };
        if random.is_one_in(8) {
            frame.truncate(random.below(70));
        }
        for word in [number, 0, frame.len() as u32, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

fn dotted(address: [u8; 4]) -> String {
    std::net::Ipv4Addr::from(address).to_string()
}
fn primitive(random: &mut Random) -> String {
    let side = random.one(&["", "", "src ", "dst ", "src or dst ", "src and dst ", "dst or src "]);
    let host = match random.below(3) {
        0 => std::net::Ipv6Addr::from(v6(random)).to_string(),
        _ => dotted(random.one(&V4)),
    };
    let port = random.one(&PORTS);
    match random.below(16) {
        0 => random.one(&["ip", "ip6", "arp", "rarp", "tcp", "udp", "icmp", "icmp6", "sctp"]).to_owned(),
        1 | 2 => format!("{side}host {host}"),
        3 => format!("{}{side}host {}", random.one(&["ip ", "arp ", ""]), dotted(random.one(&V4))),
        4 => {
            let net = random.one(&[
                "10",
                "10.9",
                "10.9.0",
                "10.0.0.0/8",
                "192.168.0.0/16",
                "10.8.3.0 mask 255.255.255.0",
                "0.0.0.0/0",
            ]);
            format!("{side}net {net}")
        }
        5 => format!("{side}net {}", random.one(&["fd09::/16", "fe80::/10", "ff02::1/128", "::/0"])),
        6 | 7 => format!("{}{side}port {port}", random.one(&["", "tcp ", "udp ", "sctp "])),
        8 => format!(
            "{}{side}portrange {}",
            random.one(&["", "tcp ", "udp "]),
            random.one(&["20-80", "6000-6010", "1024-1024"])
        ),
        9 => format!("{side}port {port} or {}", random.one(&PORTS)),
        10 => {
            let mac = random.one(&MACS).map(|byte| format!("{byte:02x}")).join(":");
            format!("ether {}{mac}", random.one(&["host ", "src ", "dst "]))
        }
        11 => random
            .one(&["broadcast", "multicast", "ether multicast", "ip multicast", "ip6 multicast"])
            .to_owned(),
        12 => format!("{} {}", random.one(&["less", "greater"]), random.one(&[40, 60, 74, 1000])),
        13 => format!(
            "{} proto {}",
            random.one(&["ip", "ip6"]),
            random.one(&["\\tcp", "\\udp", "17", "58", "2"])
        ),
        14 => random
            .one(&[
                "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
                "tcp[tcpflags] = tcp-syn",
                "icmp[icmptype] = icmp-echo or icmp[icmptype] == icmp-echoreply",
                "ether proto 0x88cc",
                "ether proto \\arp",
            ])
            .to_owned(),
        _ => {
            let layer = random.one(&["ether", "ip", "ip6", "tcp", "udp", "icmp", "arp"]);
            let (at, size) = (random.below(24), random.one(&["", ":1", ":2", ":4"]));
            let change = random.one(&["", " & 0xf", " + 3", " * 2", " >> 4", " - 1", " / 3", " % 5"]);
            let relation = random.one(&["=", "==", "!=", "<", ">", "<=", ">="]);
            let limit = random.below(300);
            let other = random.one(&[
                "len".to_owned(),
                "0x45".to_owned(),
                limit.to_string(),
                format!("{layer}[{at}]"),
            ]);
            format!("{layer}[{at}{size}]{change} {relation} {other}")
        }
    }
}
fn expression(random: &mut Random, depth: usize) -> String {
    if depth == 0 || random.is_one_in(3) {
        return primitive(random);
    }
    let (one, other) = (expression(random, depth - 1), expression(random, depth - 1));
    match random.below(6) {
        0 => format!("not ({one})"),
        1 => format!("! {}", primitive(random)),
        2 => format!("({one}) and ({other})"),
        3 => format!("{one} or {other}"),
        4 => format!("{one} and not ({other})"),
        _ => format!("({one}) || {other}"),
    }
}

/// Numbers of the frames of a pcap file, which are their times.
fn numbers(file: &[u8]) -> Vec<u64> {
    let mut reader = Reader::new(file).unwrap();
    let mut numbers = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        numbers.push(frame.at_ns / 1_000_000_000);
    }
    numbers
}
fn ours(file: &[u8], filter: &Filter) -> Vec<u64> {
    let mut reader = Reader::new(file).unwrap();
    let mut numbers = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        if filter.has(&frame) {
            numbers.push(frame.at_ns / 1_000_000_000);
        }
    }
    numbers
}
fn has_tcpdump() -> bool {
    let has = Command::new("tcpdump").arg("--version").output().is_ok();
    if !has {
        left_out("tcpdump missing; lab/interop/peers as root installs it");
    }
    has
}

#[test]
fn random_filters_choose_what_tcpdump_chooses() {
    if !has_tcpdump() {
        return;
    }
    let given = std::env::var("INHOST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| RandomState::new().hash_one(FRAMES));
    println!("INHOST_SEED={seed} repeats this");
    let random = &mut Random(seed);
    let file = capture(random);
    let path = std::env::temp_dir().join(format!("inhost-peep-{}.pcap", std::process::id()));
    std::fs::write(&path, &file).unwrap();
    let (mut chosen, mut empty) = (0, 0);
    for _ in 0..FILTERS {
        let text = expression(random, 3);
        // Without its optimizer, which changes the order of tests, so that another one finds a frame too short.
        let done = output(Command::new("tcpdump").arg("-O").arg("-r").arg(&path).args(["-w", "-", &text]));
        let said = String::from_utf8_lossy(&done.stderr);
        let theirs = match done.status.success() {
            true => numbers(&done.stdout),
            // Its optimizer proves that nothing is chosen.
            false if said.contains("rejects all packets") => Vec::new(),
            false => panic!("tcpdump refuses {text}: {said}"),
        };
        let filter: Filter = text
            .parse()
            .unwrap_or_else(|why: inhost_peep::filter::FilterError| panic!("{}", why.shown(&text)));
        let ours = ours(&file, &filter);
        assert_eq!(ours, theirs, "{text}, seed {seed}, {}", path.display());
        (chosen, empty) = (chosen + ours.len(), empty + usize::from(ours.is_empty()));
    }
    std::fs::remove_file(path).unwrap();
    // The grammar would be of no use if it chose nothing, or everything.
    assert!(chosen > FILTERS * 10 && empty < FILTERS / 2, "{chosen} frames, {empty} filters without one");
}

#[test]
fn what_is_wrong_is_shown_at_its_place() {
    for (text, at, part) in [
        ("prot 80", 0, "is not an address"),
        ("tcp port", 8, "a value is missing here"),
        ("tcp port 99999", 9, "is not a port"),
        ("host 10.0.0.1 port 80", 14, "and or or is missing before this"),
        ("(tcp and udp", 12, "a closing bracket is missing"),
        ("tcp)", 3, "no bracket was opened"),
        ("tcp[13 = 2", 7, "a closing square bracket"),
        ("tcp[13:3] = 2", 7, "a size is 1, 2 or 4 bytes"),
        ("net 10.9.0.1/24", 15, "has bits that its mask has not"),
        ("ip host fd00::1", 8, "is of the other family"),
        ("tcp host 10.0.0.1", 9, "an address has no transport"),
        ("len / 0 = 1", 8, "divides by zero"),
        ("len / 2 > x", 10, "is not a number"),
        ("ether src host x", 15, "is not a MAC address"),
        ("ip port 80", 8, "ports are of"),
        ("host a", 5, "names are not looked up"),
        ("tcp \u{e9}", 4, "has no meaning here"),
    ] {
        let why = text.parse::<Filter>().unwrap_err();
        assert!(why.at == at && why.text.contains(part), "{}", why.shown(text));
    }
    let deep = "(".repeat(100);
    assert!(deep.parse::<Filter>().unwrap_err().text.contains("levels"));
    assert!("not ".repeat(2000).parse::<Filter>().unwrap_err().text.contains("levels"));
}

#[test]
fn our_own_words_choose_a_connection_and_a_direction() {
    let mut random = Random(7);
    let file = capture(&mut random);
    let filter = |text: &str| ours(&file, &text.parse::<Filter>().unwrap());
    let of = |one: &str, other: &str| filter(&format!("conversation {one} {other}"));
    let both = of("10.9.0.1:80", "10.9.0.2:443");
    assert_eq!(both, of("10.9.0.2:443", "10.9.0.1:80"));
    let longer = "(tcp or udp or sctp) and (src host 10.9.0.1 and src port 80 and dst host 10.9.0.2 and dst port 443 or \
                  (src host 10.9.0.2 and src port 443 and dst host 10.9.0.1 and dst port 80))";
    assert_eq!(both, filter(longer));
    assert_eq!(filter(""), numbers(&file));
    assert_eq!(filter("inbound"), [0; 0]);
}
