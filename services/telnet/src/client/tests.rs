//! Transcripts: what is typed, what goes to the server, what is shown.

use inhost_base::Instant;

use super::*;
use crate::machine::Config;

struct World {
    console: Console,
    ids: Vec<SessionId>,
}

impl World {
    fn new(settings: Settings) -> World {
        let start = Start {
            open: Some(("host".into(), 23)),
            config: Config::client("vt100"),
            settings,
            window: (80, 24),
        };
        let mut world = World { console: Console::new(start), ids: Vec::new() };
        world.connect();
        world
    }
    fn connect(&mut self) {
        match self.console.action() {
            Some(ClientAction::Connect { id, .. }) => {
                self.ids.push(id);
                self.console.opened(id, "192.0.2.1");
                self.sent();
            }
            other => panic!("{other:?}"),
        }
        self.shown();
    }
    /// What went to the current session's server, of the last `index` opened.
    fn sent_to(&mut self, index: usize) -> Vec<u8> {
        let telnet = self.console.connection(self.ids[index]).unwrap().telnet();
        let mut sent = Vec::new();
        while telnet.pending_bytes() > 0 {
            let (bytes, urgent) = telnet.pending();
            sent.extend_from_slice(bytes);
            let count = bytes.len();
            telnet.sent(count);
            if urgent {
                sent.push(b'!');
            }
        }
        sent
    }
    fn sent(&mut self) -> Vec<u8> {
        self.sent_to(self.ids.len() - 1)
    }
    fn shown(&mut self) -> String {
        let shown = String::from_utf8_lossy(self.console.screen()).into_owned();
        self.console.shown(usize::MAX);
        shown
    }
    fn server(&mut self, octets: &[u8]) {
        self.console.network(*self.ids.last().unwrap(), octets, Instant::from_millis(1));
    }
    fn order(&mut self, line: &str) -> String {
        self.console.typed(format!("\x1d{line}\r").as_bytes());
        self.shown()
    }
}

/// The server takes single characters and echoes.
const CHARACTERS: &[u8] = &[255, 251, 3, 255, 251, 1];

#[test]
fn line_mode_edits_here() {
    let mut world = World::new(Settings::default());
    world.console.typed(b"lx\x7fs");
    assert_eq!((world.sent(), world.shown()), (vec![], "lx\x08 \x08s".into()));
    world.console.typed(b"\r");
    assert_eq!((world.sent(), world.shown()), (b"ls\r\n".to_vec(), "\r\n".into()));
    // A password: the server says that it echoes, and does not.
    world.server(&[255, 251, 1]);
    world.sent();
    world.console.typed(b"secret\r");
    assert_eq!((world.sent(), world.shown()), (b"secret\r\n".to_vec(), "\r\n".into()));
}

#[test]
fn character_mode_sends_each_key() {
    let mut world = World::new(Settings::default());
    world.server(CHARACTERS);
    // SUPPRESS-GO-AHEAD was asked for already; ECHO is answered.
    assert_eq!(world.sent(), [255, 253, 1]);
    assert_eq!(world.console.mode(), Some(Mode::Character));
    world.console.typed(b"a\xff\xe9\x03\r");
    assert_eq!((world.sent(), world.shown()), (b"a\xff\xff\xe9\x03\r\0".to_vec(), String::new()));
    world.order("toggle crlf");
    world.console.typed(b"\r");
    assert_eq!(world.sent(), b"\r\n");
    world.order("toggle binary");
    assert_eq!(world.sent(), [255, 251, 0, 255, 253, 0]);
    world.server(&[255, 253, 0, 255, 251, 0]);
    world.console.typed(b"\r");
    assert_eq!(world.sent(), b"\r");
}

/// MIT §5.8
#[test]
fn transmission_on_return() {
    let mut world = World::new(Settings::default());
    world.server(CHARACTERS);
    world.sent();
    world.order("set transmit return");
    world.console.typed(b"l");
    world.console.typed(b"s");
    assert_eq!(world.sent(), b"");
    world.console.typed(b"\r");
    assert_eq!(world.sent(), b"ls\r\0");
    world.console.typed(b"x\x03");
    assert_eq!(world.sent(), b"x\x03");
}

/// spec: RFC854 Synch
/// spec: RFC860
#[test]
fn interrupts_as_commands_with_synch_and_flush() {
    let mut world = World::new(Settings::default());
    world.console.typed(b"par\x03");
    assert_eq!(world.sent(), b"\xff\xf4\xff\xf2!\xff\xfd\x06");
    assert_eq!(world.shown(), "par^C\r\n");
    world.server(b"old output");
    assert_eq!(world.shown(), "");
    world.server(b"more\xff\xfb\x06new");
    assert_eq!(world.shown(), "new");
    world.order("unset autoflush");
    world.order("unset autosynch");
    world.console.typed(b"\x0f\x1c\x04");
    assert_eq!(world.sent(), b"\xff\xf5\xff\xee\xff\xec");
}

#[test]
fn commands_are_sent() {
    let mut world = World::new(Settings::default());
    assert_eq!(
        world.order("send ayt brk ip ao ec el ga nop eor synch"),
        "\r\ntelnet> send ayt brk ip ao ec el ga nop eor synch\r\n"
    );
    assert_eq!(
        world.sent(),
        b"\xff\xf6\xff\xf3\xff\xf4\xff\xf5\xff\xf7\xff\xf8\xff\xf9\xff\xf1\xff\xef\xff\xf2!"
    );
    world.console.typed(b"\x1d\x1d");
    assert_eq!(world.sent(), b"\x1d");
    assert!(world.order("send status").contains("has not agreed"));
    assert!(world.order("frob").contains("no command"));
}

#[test]
fn several_sessions() {
    let mut world = World::new(Settings::default());
    world.console.typed(b"\x1dopen other\r");
    world.connect();
    world.console.typed(b"two\r");
    assert_eq!((world.sent_to(0), world.sent_to(1)), (vec![], b"two\r\n".to_vec()));
    world.shown();
    world.console.network(world.ids[0], b"first", Instant::from_millis(1));
    assert_eq!(world.shown(), "");
    let list = world.order("sessions");
    assert!(list.contains(" 1 host port 23: open, 5 octets unseen") && list.contains("*2 other"), "{list}");
    assert!(world.order("session 1").ends_with("Session with host.\r\nfirst"));
    world.console.typed(b"one\r");
    assert_eq!(world.sent_to(0), b"one\r\n");
    world.shown();
    assert!(world.order("close").contains("Session with other."));
    assert_eq!(world.console.action(), Some(ClientAction::Disconnect(world.ids[0], vec![])));
    world.console.closed(world.ids[1], "closed by the server", false);
    assert_eq!(world.console.action(), Some(ClientAction::Disconnect(world.ids[1], vec![])));
    assert_eq!(world.console.action(), Some(ClientAction::Quit));
}

#[test]
fn status_typescript_and_suspension() {
    let mut world = World::new(Settings::default());
    world.server(CHARACTERS);
    let status = world.order("status");
    assert!(status.contains("a character at a time, echoed by the server"), "{status}");
    assert!(status.contains("  server   ECHO\r\n") && status.contains("asked, not answered"), "{status}");
    assert_eq!(world.console.action(), Some(ClientAction::Statistics(world.ids[0])));
    world.console.statistics(&["round trip   3 ms".into()]);
    assert_eq!(world.shown(), "round trip   3 ms\r\n");
    world.order("log typescript");
    assert_eq!(world.console.action(), Some(ClientAction::OpenTypescript("typescript".into())));
    world.console.typescript(Ok(()));
    world.server(b"hello\r\n");
    assert_eq!(world.console.take_log(), b"hello\r\n");
    world.order("z");
    assert_eq!(world.console.action(), Some(ClientAction::Suspend));
    world.console.resumed();
    world.server(b"x");
    assert_eq!(world.shown(), "hello\r\nx".trim_start_matches("hello\r\n"));
    world.console.keys_ended();
    // The answer to what the server offered goes first.
    let asked = vec![255, 253, 1];
    assert_eq!(world.console.action(), Some(ClientAction::Disconnect(world.ids[0], asked)));
    assert_eq!(world.console.action(), Some(ClientAction::Quit));
}

/// spec: RFC1372
#[test]
fn flow_control_as_the_server_says() {
    let mut world = World::new(Settings::default());
    world.server(CHARACTERS);
    world.server(&[255, 253, 33, 255, 250, 33, 1, 255, 240]);
    world.sent();
    world.console.typed(b"\x13");
    assert!(!world.console.takes_input(world.ids[0]) && world.sent().is_empty());
    world.console.typed(b"\x11");
    assert!(world.console.takes_input(world.ids[0]) && world.sent().is_empty());
    world.server(&[255, 250, 33, 0, 255, 240]);
    world.console.typed(b"\x13");
    assert_eq!(world.sent(), b"\x13");
}

#[test]
fn windows_and_tabs_and_a_heath() {
    let mut world = World::new(Settings { emulation: Emulation::Heath19, ..Settings::default() });
    world.server(CHARACTERS);
    world.server(&[255, 253, 31]);
    let sent = world.sent();
    assert!(sent.ends_with(b"\xff\xfa\x1f\x00\x50\x00\x18\xff\xf0"), "{sent:?}");
    world.console.resized(255, 50);
    assert_eq!(world.sent(), b"\xff\xfa\x1f\x00\xff\xff\x00\x32\xff\xf0");
    world.server(b"\x1bE\x1bZ");
    assert_eq!((world.shown(), world.sent()), ("\x1b[H\x1b[2J".into(), b"\x1b/K".to_vec()));
    world.console.typed(b"\x1b[A");
    assert_eq!(world.sent(), b"\x1bA");
    world.order("set tabs 4");
    world.server(b"a\tb");
    assert_eq!(world.shown(), "a   b");
}

#[test]
fn the_interrupt_key_gives_up_a_connection_that_is_not_there_yet() {
    let start = Start {
        open: Some(("far".into(), 23)),
        config: Config::client("vt100"),
        settings: Settings::default(),
        window: (80, 24),
    };
    let mut world = World { console: Console::new(start), ids: Vec::new() };
    let Some(ClientAction::Connect { id, .. }) = world.console.action() else { panic!() };
    world.console.typed(b"ls\x03");
    assert_eq!(world.console.action(), Some(ClientAction::Disconnect(id, vec![])));
    assert_eq!(world.console.action(), Some(ClientAction::Quit));
    let failure = world.console.take_failure().unwrap();
    assert!(failure.contains("far port 23: interrupted"), "{failure}");
}

#[test]
fn what_a_pipe_brings_waits_for_the_session_commands_too() {
    let start = Start {
        open: Some(("far".into(), 23)),
        config: Config::client("vt100"),
        settings: Settings { is_terminal: false, ..Settings::default() },
        window: (80, 24),
    };
    let mut world = World { console: Console::new(start), ids: Vec::new() };
    world.console.typed(b"a\n\x1dsend ayt\nquit\n");
    let Some(ClientAction::Connect { id, .. }) = world.console.action() else { panic!() };
    world.ids.push(id);
    world.console.opened(id, "192.0.2.1");
    let sent = world.sent();
    assert!(sent.ends_with(b"a\r\n\xff\xf6quit\r\n"), "{sent:?}");
}

#[test]
fn a_pipe_that_has_more_for_a_session_that_has_ended_is_cut_off() {
    for (has_ended, has_more) in [(true, false), (false, false), (false, true)] {
        let mut world = World::new(Settings { is_terminal: false, ..Settings::default() });
        world.console.typed(b"a\n");
        world.sent();
        if has_ended {
            world.console.keys_ended();
        }
        world.console.closed(world.ids[0], "closed by the server", false);
        assert_eq!(world.console.awaits_rest(), !has_ended);
        world.console.rest(has_more);
        let failure = world.console.take_failure();
        let is_told =
            failure.as_deref() == Some("session with host: closed by the server before the end of the input");
        assert_eq!(is_told, has_more, "{failure:?}");
        assert!(!world.console.awaits_rest());
    }
}

/// spec: RFC2066
#[test]
fn a_charset_is_asked_for_and_its_substitute_told_once() {
    let mut world = World::new(Settings::default());
    world.server(b"\xff\xfb\x01\xff\xfb\x03");
    world.sent();
    world.console.typed(b"\x1dtoggle charset\r");
    assert_eq!(world.sent(), b"\xff\xfb\x2a", "WILL CHARSET");
    world.server(b"\xff\xfd\x2a");
    let request =
        [&b"\xff\xfa\x2a\x01"[..], b";UTF-8;ISO-8859-1;US-ASCII;IBM1047;IBM037;IBM500;IBM273\xff\xf0"];
    assert_eq!(world.sent(), request.concat());
    world.server(b"\xff\xfa\x2a\x02IBM037\xff\xf0\xc1\x51\x0d\x25");
    world.console.typed("é\r".as_bytes());
    assert_eq!(world.sent(), b"\x51\x0d\x00");
    let shown = world.shown();
    assert!(shown.ends_with("Aé\r\n"), "{shown:?}");
    world.console.typed("€€".as_bytes());
    assert_eq!(world.sent(), b"\x3f\x3f");
    assert_eq!(world.shown(), "\r\n[IBM037 lacks a character; a substitute stands for it]\r\n");
    world.console.typed("€".as_bytes());
    assert_eq!((world.sent(), world.shown()), (vec![0x3f], String::new()));
    // A server that asks gets what it likes best.
    world.server(b"\xff\xfa\x2a\x01 KOI8-R ISO-8859-1 UTF-8\xff\xf0\xe9");
    assert_eq!(
        (world.sent(), world.shown()),
        (b"\xff\xfa\x2a\x02ISO-8859-1\xff\xf0".to_vec(), "é".to_owned())
    );
}
