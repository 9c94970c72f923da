//! The machines of the servers, octet by octet.

use inhost_base::{Cidr, Instant};
use inhost_common::users::{Account, Verdict};
use inhost_telnet::pty::TerminalKeys;

use super::*;

const NOW: Instant = Instant::from_millis(1);

/// What a client of ada's sends first.
const OPENING: &[u8] = b"\0ada\0charles\0xterm/38400\0";

fn session(octets: &[u8], piece: usize) -> Session {
    let mut session = Session::new(SessionConfig::default(), NOW);
    octets.chunks(piece).for_each(|octets| session.network(octets, TerminalKeys::default(), NOW));
    session
}

fn sent(session: &mut Session) -> Vec<(Vec<u8>, bool)> {
    let mut all = Vec::new();
    while session.pending_bytes() > 0 {
        let (octets, is_urgent) = session.pending();
        all.push((octets.to_vec(), is_urgent));
        let count = all.last().map_or(0, |(octets, _)| octets.len());
        session.sent(count);
    }
    all
}

fn actions(session: &mut Session) -> Vec<Action> {
    std::iter::from_fn(|| session.action()).collect()
}

/// A session whose user is in the table and whose shell runs.
fn in_shell() -> Session {
    let mut session = session(OPENING, 100);
    actions(&mut session);
    session.decide(Some(true));
    actions(&mut session);
    session.shell_started(false, NOW);
    sent(&mut session);
    actions(&mut session);
    session
}

#[test]
fn an_opening_in_any_pieces_asks_who_may_come() {
    for piece in 1..OPENING.len() {
        let mut session = session(OPENING, piece);
        let (client_user, server_user) = ("ada".to_owned(), "charles".to_owned());
        assert_eq!(actions(&mut session), [Action::Decide { client_user, server_user }]);
        assert!(sent(&mut session).is_empty(), "nothing is said before it is decided");
        session.decide(Some(true));
        let [Action::StartShell(request)] = &actions(&mut session)[..] else { panic!("no shell") };
        assert_eq!((&*request.account.name, &*request.terminal), ("charles", "xterm"));
        session.shell_started(false, NOW);
        assert_eq!(
            sent(&mut session),
            [(vec![0, 0x80], true)],
            "the first word, and the wish for the window"
        );
    }
}

#[test]
fn a_password_is_asked_for_and_checked() {
    let mut session = session(OPENING, 7);
    actions(&mut session);
    session.decide(Some(false));
    assert_eq!(sent(&mut session), [(b"\0Password: ".to_vec(), false)]);
    session.network(b"wrongx\x7f\x15engie\x08ne\r", TerminalKeys::default(), NOW);
    let (user, password) = ("charles".to_owned(), "engine".to_owned());
    assert_eq!(actions(&mut session), [Action::Authenticate { user, password }]);
    let account = Account { name: "charles".into(), shell: None, is_operator: false };
    let mut denied = session.clone();
    session.verdict(Verdict::Granted(account));
    assert!(matches!(actions(&mut session)[..], [Action::StartShell(_)]));
    session.shell_started(true, NOW);
    assert_eq!(sent(&mut session), [(b"\r\n\x80".to_vec(), true)]);

    denied.verdict(Verdict::Denied);
    assert!(matches!(actions(&mut denied)[..], [Action::Denied { .. }]));
    denied.denied();
    assert_eq!(actions(&mut denied), [Action::Close(Closing::Denied)]);
    assert_eq!(sent(&mut denied), [(b"\r\nLogin incorrect\r\n".to_vec(), false)]);
}

#[test]
fn who_may_not_come_is_told() {
    let mut session = session(OPENING, 7);
    actions(&mut session);
    session.decide(None);
    assert_eq!(sent(&mut session), [(b"\x01Permission denied.\r\n".to_vec(), false)]);
    assert_eq!(actions(&mut session), [Action::Close(Closing::Denied)]);
}

/// A name that would write to the terminal of a reader of the log.
const CONTROLS: &[u8] = b"\0ada\0\x1b]0;x\x07\0xterm/9600\0";

#[test]
fn what_is_no_opening_ends() {
    let long = [&b"\0"[..], &[b'a'; 300]].concat();
    for octets in [&b"GET / HTTP/1.0\0"[..], b"\0\0charles\0vt100/9600\0", b"\0\xff\xfe\0", &long, CONTROLS] {
        let mut session = session(octets, 3);
        assert_eq!(actions(&mut session), [Action::Close(Closing::Malformed)], "{octets:?}");
        assert!(sent(&mut session).concat_octets().starts_with(b"\x01rlogin: "));
    }
    let mut silent = session(b"\0ada", 1);
    silent.timeout(silent.deadline().unwrap());
    assert_eq!(actions(&mut silent), [Action::Close(Closing::Idle)]);
}

trait Octets {
    fn concat_octets(&self) -> Vec<u8>;
}
impl Octets for Vec<(Vec<u8>, bool)> {
    fn concat_octets(&self) -> Vec<u8> {
        self.iter().flat_map(|(octets, _)| octets.clone()).collect()
    }
}

#[test]
fn the_windows_size_is_not_typed_and_what_looks_like_one_is() {
    let size = [0xff, 0xff, b's', b's', 0, 43, 0, 132, 0, 0, 0, 0];
    let typed = [&b"ls\xff\xffsx\xff\xff"[..], &size, b"\xffs\xff\xff\xffss\0\x18\0\x50\0\0\0\0y"].concat();
    for piece in 1..typed.len() {
        let mut session = in_shell();
        typed.chunks(piece).for_each(|octets| session.network(octets, TerminalKeys::default(), NOW));
        let all: Vec<u8> = session.typed().to_vec();
        assert_eq!(all, b"ls\xff\xffsx\xff\xff\xffs\xffy", "in pieces of {piece}");
        assert_eq!(
            actions(&mut session),
            [Action::Resize { columns: 80, rows: 24 }],
            "only the last matters"
        );
    }
}

#[test]
fn an_interrupt_flushes_here_and_at_the_client() {
    let mut session = in_shell();
    session.output(b"much that nobody wants to see", TerminalKeys::default(), NOW);
    session.network(b"\x03", TerminalKeys::default(), NOW);
    assert_eq!(actions(&mut session), [Action::DiscardOutput]);
    assert_eq!(sent(&mut session), [(vec![0x02], true)]);
    assert_eq!(session.typed(), b"\x03");
}

#[test]
fn flow_control_follows_the_terminal() {
    let mut session = in_shell();
    let raw = TerminalKeys { flow_control: false, ..TerminalKeys::default() };
    session.output(b"vi", raw, NOW);
    session.output(b"shell", TerminalKeys::default(), NOW);
    assert_eq!(sent(&mut session), [(vec![0x10, b'v', b'i', 0x20], true), (b"shell".to_vec(), false)]);
}

#[test]
fn output_to_a_client_that_reads_nothing_has_a_bound() {
    let mut session = in_shell();
    let mut said = 0;
    while session.takes_output() && said < 10_000_000 {
        session.output(&[b'x'; 2048], TerminalKeys::default(), NOW);
        said += 2048;
    }
    assert!(said < 64 * 1024, "{said}");
    // Neither keys nor windows make it more.
    for _ in 0..10_000 {
        session.network(&[0xff, 0xff, b's', b's', 0, 1, 0, 1, 0, 0, 0, 0], TerminalKeys::default(), NOW);
        session.network(b"\x03", TerminalKeys::default(), NOW);
        let count = session.typed().len();
        session.taken(count);
        actions(&mut session);
    }
    assert!(session.pending_bytes() < 64 * 1024);
}

#[test]
fn the_table_lets_in_whom_it_names() {
    let net: Cidr = "10.9.0.0/24".parse().unwrap();
    let mut named = Rule::new(vec![net]);
    (named.users, named.names) = (vec!["ada".into()], vec!["charles".into(), "guest".into()]);
    let table = Table::new(vec![Rule::new(vec!["fd09::/64".parse().unwrap()]), named]);
    let lets = |address: &str, one: &str, other: &str| table.lets_in(address.parse().unwrap(), one, other);
    assert!(lets("10.9.0.7", "ada", "guest") && lets("fd09::1", "eve", "eve"));
    assert!(!lets("10.9.0.7", "ada", "ada"), "as whom is named");
    assert!(!lets("10.9.0.7", "eve", "guest") && !lets("10.9.1.7", "ada", "guest"));
    assert!(!lets("fd09::1", "eve", "ada") && !Table::default().lets_in([10, 9, 0, 7].into(), "a", "a"));
    assert!(is_reserved(512) && is_reserved(1023) && !is_reserved(511) && !is_reserved(1024));
}

/// A command may have control characters: a shell reads it.
#[test]
fn a_command_of_two_lines() {
    let (mut request, mut input) = (Request::default(), &b"\0ada\0ada\0cd x\nls\t*\0"[..]);
    assert_eq!((request.take(&mut input), request.take(&mut input)), (Ok(true), Ok(true)));
    assert_eq!(request.who_and_what(), Some(("ada", "ada", "cd x\nls\t*")));
}

#[test]
fn a_request_in_any_pieces() {
    let asked = b"1022\0ada\0charles\0cat > x\0input";
    for piece in 1..asked.len() {
        let (mut request, mut steps, mut rest) = (Request::default(), 0, Vec::new());
        for octets in asked.chunks(piece) {
            rest.extend_from_slice(octets);
            while steps < 2 {
                let mut input = &rest[..];
                let is_there = request.take(&mut input).unwrap();
                let left = input.len();
                rest.drain(..rest.len() - left);
                if !is_there {
                    break;
                }
                steps += 1;
            }
        }
        assert_eq!(
            (request.port(), request.who_and_what()),
            (Some(1022), Some(("ada", "charles", "cat > x")))
        );
        assert_eq!(rest, b"input");
    }
}

#[test]
fn a_request_that_is_none() {
    let wrong = |octets: &[u8]| {
        let (mut request, mut input) = (Request::default(), octets);
        loop {
            match request.take(&mut input) {
                Ok(true) if request.who_and_what().is_some() => panic!("taken"),
                Ok(true) => {}
                Ok(false) => return None,
                Err(why) => return Some(why),
            }
        }
    };
    assert_eq!(wrong(b"80\0ada\0ada\0id\0"), Some(RequestError::Port), "a port that anybody may use");
    assert_eq!(wrong(b"eighty\0"), Some(RequestError::Port));
    assert_eq!(wrong(b"\0\0ada\0id\0"), Some(RequestError::Empty));
    assert_eq!(wrong(b"\0ada\0\xff\0"), Some(RequestError::Text));
    assert_eq!(wrong(b"\0\x1b[2J\0ada\0id\0"), Some(RequestError::Text));
    assert_eq!(wrong(b"\0ada\0a\nda\0id\0"), Some(RequestError::Text));
    assert_eq!(wrong(&[&b"\0"[..], &[b'a'; 256]].concat()), Some(RequestError::Text));
    assert_eq!(wrong(&[&b"\0ada\0ada\0"[..], &[b'a'; 70_000]].concat()), Some(RequestError::Text));
    assert_eq!(wrong(b"\0ada\0ada\0uptime"), None);
}

#[test]
fn the_fuzz_target_holds_on_mutations_of_what_clients_say() {
    let mut state = 7u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let seeds: [&[u8]; 3] = [
        b"\0ada\0charles\0xterm/38400\0ls\xff\xffss\0\x18\0\x50\0\0\0\0\x03",
        b"1022\0ada\0ada\0id\0",
        b"\0ada\0ada\0id\0x",
    ];
    for round in 0..20_000 {
        let mut input = seeds[round % 3].to_vec();
        for _ in 0..random() % 4 {
            let at = random() % input.len();
            match random() % 3 {
                0 => input[at] = random() as u8,
                1 => input.insert(at, random() as u8),
                _ => drop(input.drain(at..(at + random() % 5).min(input.len()))),
            }
            if input.is_empty() {
                input.push(0);
            }
        }
        crate::fuzz::fuzz_rservers(&input);
    }
}
