//! Whole sessions: the server's driver with real shells, over a wire in memory.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration as Time, Instant as Start};

use futures_lite::future::{or, zip};
use inhost_base::Duration;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};

use super::testing::{Ada, RealClock, Wire, block_on, reactor, wire};
use super::*;
use crate::codec::{Charset, TelnetOption};
use crate::machine::{Config, Event, Telnet};
use crate::pty::Shell;
use crate::server::{Application, Applications, Closing, ServerConfig, Target};
use crate::translation::{Table, Translation};
use inhost_common::service::{Operator, Order};
use inhost_common::{Admission, AdmissionLimits, LocalFuture};

type Host = HostServices<RealClock, Ada>;

fn host() -> Host {
    // The same prompt for every user, also for root.
    let arguments = vec!["-c".into(), "PS1='$ ' exec /bin/sh".into()];
    let shell = ShellSettings { arguments, home: "/".into(), ..ShellSettings::default() };
    let admission = Admission::new(AdmissionLimits::default());
    HostServices::new(RealClock::new(), Ada, admission, shell, reactor())
        .with_news(|| "It rains.\nMore tomorrow.".into())
        .with_netstat(|| "all is well".into())
}

fn config() -> ServerConfig {
    ServerConfig { denial: Duration::from_millis(10), idle_time: None, ..ServerConfig::default() }
}

/// The other end, driven by a test: a client machine and what it shows.
struct Visitor {
    wire: Wire,
    telnet: Telnet,
    screen: String,
    received_bytes: usize,
}

impl Visitor {
    fn new(wire: Wire) -> Visitor {
        Visitor {
            wire,
            telnet: Telnet::new(Config::client("xterm-256color")),
            screen: String::new(),
            received_bytes: 0,
        }
    }
    async fn send(&mut self) {
        std::future::poll_fn(|cx| self.poll_send(cx)).await;
    }
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.telnet.pending_bytes() > 0 {
            let (bytes, urgent) = self.telnet.pending();
            let sent = match urgent {
                true => Pin::new(&mut self.wire).poll_send_urgent(cx, bytes),
                false => tokio::io::AsyncWrite::poll_write(Pin::new(&mut self.wire), cx, bytes),
            };
            match sent {
                Poll::Ready(Ok(count)) => self.telnet.sent(count),
                Poll::Ready(Err(_)) => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }
    async fn say(&mut self, text: &str) {
        self.telnet.send(text.as_bytes());
        self.send().await;
    }
    /// Reads once; false at the end.
    async fn read(&mut self) -> bool {
        if let Some(ahead) = self.wire.urgent_ahead() {
            self.telnet.urgent(ahead);
        }
        let mut bytes = [0; 1000];
        // Answers go out meanwhile: who reads only when its answers have left could wait for ever.
        let arrived = std::future::poll_fn(|cx| {
            let _ = self.poll_send(cx);
            let mut buf = ReadBuf::new(&mut bytes);
            let read = Pin::new(&mut self.wire).poll_read(cx, &mut buf);
            read.map_ok(|()| buf.filled().len())
        });
        let Ok(count @ 1..) = arrived.await else { return false };
        self.received_bytes += count;
        let mut input = &bytes[..count];
        while let Some(event) = self.telnet.receive(&mut input) {
            if let Event::Data(data) = event {
                self.screen.push_str(&String::from_utf8_lossy(data));
            }
        }
        let _ = std::future::poll_fn(|cx| Poll::Ready(self.poll_send(cx))).await;
        true
    }
    /// Reads until the screen, from where it was last left, shows `text`; what came up to there.
    async fn expect(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.screen.find(text) {
                let rest = self.screen.split_off(at + text.len());
                return std::mem::replace(&mut self.screen, rest);
            }
            assert!(self.read().await, "{text:?} never came, but {:?}", self.screen);
        }
    }
    async fn log_in(&mut self) {
        self.expect("inhost> ").await;
        self.say("logon\r\n").await;
        self.expect("User: ").await;
        self.say("ada\r\n").await;
        self.expect("Password: ").await;
        self.say("engine\r\n").await;
        self.expect("$ ").await;
    }
}

fn session<T>(host: &Host, config: &ServerConfig, talk: impl AsyncFnOnce(Visitor) -> T) -> (SessionEnd, T) {
    let (near, far) = wire(4096);
    let server = serve_session(near, [192, 0, 2, 1].into(), config, host);
    let too_long = async {
        RealClock::new().sleep_until(inhost_base::Instant::from_millis(15_000)).await;
        panic!("the session takes too long")
    };
    block_on(or(zip(server, talk(Visitor::new(far))), too_long))
}

#[test]
fn before_logging_in() {
    let ((end, ()), seen) = {
        let host = host();
        let outcome = session(&host, &config(), async |mut visitor| {
            visitor.expect("inhost> ").await;
            visitor.say("he\r\n").await;
            assert!(visitor.expect("inhost> ").await.contains("LOGON [name]"));
            visitor.say("news\r\n").await;
            assert!(visitor.expect("inhost> ").await.contains("It rains.\r\nMore tomorrow.\r\n"));
            visitor.say("nets\r\n").await;
            assert!(visitor.expect("inhost> ").await.contains("all is well"));
            visitor.say("n\r\nfrob\r\n").await;
            assert!(visitor.expect("inhost> ").await.contains("Ambiguous"));
            assert!(visitor.expect("inhost> ").await.contains("Unknown"));
            visitor.say("quit\r\n").await;
            visitor.expect("Good-bye.").await;
            while visitor.read().await {}
        });
        (outcome, host.admission().sessions())
    };
    assert!(matches!(end, SessionEnd::Closed(Closing::Quit)), "{end:?}");
    assert_eq!(seen, 0);
}

#[test]
fn wrong_passwords_are_limited_logged_and_never_shown() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let theirs = log.clone();
    let host = host().with_log(move |event| theirs.borrow_mut().push(format!("{event:?}")));
    let (end, all) = session(&host, &config(), async |mut visitor| {
        let mut all = String::new();
        for attempt in 0..3 {
            all += &visitor.expect("inhost> ").await;
            visitor.say("logon ada\r\n").await;
            all += &visitor.expect("Password: ").await;
            visitor.say(&format!("wrong{attempt}\r\n")).await;
            all += &visitor.expect("wrong name or password").await;
        }
        while visitor.read().await {}
        all + &visitor.screen
    });
    assert!(matches!(end, SessionEnd::Closed(Closing::Attempts)), "{end:?}");
    let log = log.borrow().join("\n");
    assert_eq!(log.matches("Denied").count(), 3, "{log}");
    assert!(!all.contains("wrong0") && !log.contains("wrong0"), "{all}{log}");
}

/// It says who ordered what.
struct Echoes;

impl Operator for Echoes {
    fn figures(&self) -> String {
        "Sessions 1".into()
    }
    fn carry_out(&self, user: &str, order: Order) -> LocalFuture<String> {
        let answer = format!("{user} orders {order:?}");
        Box::pin(async move {
            futures_lite::future::yield_now().await;
            answer
        })
    }
}

#[test]
fn an_operator_orders_and_the_log_says_so() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let (theirs, notes) = (log.clone(), log.clone());
    let host = host()
        .with_operator(Rc::new(Echoes))
        .with_log(move |event| theirs.borrow_mut().push(format!("{event:?}")))
        .with_notes(move |event| notes.borrow_mut().push(format!("{event:?}")));
    let (end, ()) = session(&host, &config(), async |mut visitor| {
        visitor.expect("inhost> ").await;
        visitor.say("sysstat\r\noperator ada\r\nengine\r\n").await;
        visitor.expect("Sessions 1\r\n").await;
        visitor.expect("not an operator").await;
        visitor.say("operator grace\r\nwrong\r\n").await;
        visitor.expect("wrong name or password").await;
        visitor.say("operator grace\r\ncompiler\r\ndrop telnet.3\r\nser\r\nquit\r\n").await;
        visitor.expect("grace orders Drop(\"telnet.3\")\r\n").await;
        visitor.expect("grace orders Services\r\n").await;
        visitor.expect("Good-bye.").await;
        while visitor.read().await {}
    });
    assert!(matches!(end, SessionEnd::Closed(Closing::Quit)), "{end:?}");
    let log = log.borrow().join("\n");
    let events = ["NotOperator", "Denied", "Operating", "Drop(\"telnet.3\")", "Services", "Some(\"grace\")"];
    let mut rest = &*log;
    for event in events {
        let at = rest.find(event).unwrap_or_else(|| panic!("{event} in {log}"));
        rest = &rest[at + event.len()..];
    }
}

#[test]
fn a_session_is_ended_by_its_number() {
    let host = host();
    let (end, ()) = session(&host, &config(), async |mut visitor| {
        visitor.log_in().await;
        let sessions = host.admission().list("telnet");
        assert_eq!(sessions[0].user.as_deref(), Some("ada"));
        assert!(host.admission().end(sessions[0].number.unwrap()));
        visitor.expect("The operator has ended this session").await;
        while visitor.read().await {}
    });
    assert!(matches!(end, SessionEnd::Closed(Closing::Dropped)), "{end:?}");
}

#[test]
fn a_shell_with_its_window_and_little_environment() {
    let host = host();
    let (end, ()) = session(&host, &config(), async |mut visitor| {
        visitor.telnet.set_window(132, 43);
        visitor.log_in().await;
        visitor.say("echo hi; stty size; env; echo d''one\r\n").await;
        visitor.expect("hi\r\n43 132\r\n").await;
        let environment = visitor.expect("done\r\n").await;
        assert!(environment.contains("TERM=xterm-256color\r\n"), "{environment}");
        assert!(environment.contains("USER=ada\r\n") && !environment.contains("CARGO"), "{environment}");
        visitor.telnet.set_window(100, 30);
        visitor.say("stty size\r\n").await;
        visitor.expect("30 100\r\n").await;
        visitor.say("exit\r\n").await;
        while visitor.read().await {}
    });
    assert!(matches!(end, SessionEnd::Closed(Closing::ShellEnded)), "{end:?}");
}

/// `stop` is sent while `yes` runs, with some output unread; then the prompt must come soon.
fn runaway(stop: impl AsyncFnOnce(&mut Visitor)) -> usize {
    let host = host();
    let (_, shown) = session(&host, &config(), async |mut visitor| {
        visitor.log_in().await;
        visitor.say("yes\r\n").await;
        let start = Start::now();
        while start.elapsed() < Time::from_millis(300) {
            visitor.read().await;
        }
        visitor.screen.clear();
        let before = visitor.received_bytes;
        stop(&mut visitor).await;
        visitor.expect("$ ").await;
        let shown = visitor.received_bytes - before;
        println!("{shown} octets after the interrupt");
        visitor.say("echo still here\r\n").await;
        visitor.expect("\r\nstill here\r\n").await;
        drop(visitor);
        shown
    });
    shown
}

/// spec: RFC854 Synch
#[test]
fn the_interrupt_key_stops_a_runaway_at_once() {
    let shown = runaway(async |visitor| visitor.say("\x03").await);
    assert!(shown < 128 * 1024, "{shown} octets after the key");
}

/// spec: RFC854 commands
#[test]
fn interrupt_process_stops_a_runaway_at_once() {
    let shown = runaway(async |visitor| {
        visitor.telnet.send_command(crate::codec::Command::InterruptProcess);
        visitor.telnet.send_synch();
        visitor.send().await;
    });
    assert!(shown < 128 * 1024, "{shown} octets after the command");
}

/// A client that reads a hundred kilobytes a second, behind queues of a megabyte that know no urgent data.
#[test]
fn a_slow_reader_is_never_far_behind() {
    let host = host();
    let (near, far) = wire(1 << 20);
    let config = config();
    let server = serve_session(near, [192, 0, 2, 1].into(), &config, &host);
    let talk = async {
        let mut visitor = Visitor::new(far);
        visitor.log_in().await;
        visitor.say("yes\r\n").await;
        let (start, mut interrupted) = (Start::now(), None);
        loop {
            visitor.read().await;
            let clock = RealClock::new();
            clock.sleep_until(inhost_base::Instant::from_millis(10)).await;
            if interrupted.is_none() && start.elapsed() > Time::from_secs(3) {
                visitor.screen.clear();
                visitor.say("\x03").await;
                interrupted = Some(Start::now());
            }
            if let Some(at) = interrupted
                && visitor.screen.contains("$ ")
            {
                return at.elapsed();
            }
            assert!(start.elapsed() < Time::from_secs(30), "the output never stops");
        }
    };
    let took = block_on(or(
        async {
            server.await;
            None
        },
        async { Some(talk.await) },
    ));
    let took = took.expect("the session ended");
    assert!(took < Time::from_millis(1500), "the prompt came after {took:?}");
}

#[test]
fn a_synch_gets_through_to_a_shell_that_does_not_read() {
    let host = host();
    session(&host, &config(), async |mut visitor| {
        visitor.log_in().await;
        visitor.say("stty raw isig; echo rea''dy; sleep 1000\r\n").await;
        visitor.expect("ready").await;
        // More than the terminal, the pump, the session and the wire hold together.
        let blocked = async {
            visitor.wire.write_all(&[b'x'; 64 * 1024]).await.unwrap();
        };
        let pause = RealClock::new();
        let pause = pause.sleep_until(inhost_base::Instant::from_millis(500));
        or(blocked, pause).await;
        // The wire is full, and urgent data can be announced all the same.
        visitor.wire.announce();
        visitor.telnet.send_command(crate::codec::Command::InterruptProcess);
        visitor.telnet.send_synch();
        visitor.send().await;
        visitor.expect("$ ").await;
    });
}

/// The client's answer to a mark stands behind what it pasted, and the shell takes no more before its output has gone.
#[test]
fn more_is_pasted_than_all_queues_hold_and_comes_back_whole() {
    let host = host();
    session(&host, &config(), async |mut visitor| {
        visitor.log_in().await;
        visitor.say("stty -echo; seq 3000; echo rea''dy; cat\r\n").await;
        visitor.expect("ready\r\n").await;
        visitor.telnet.send("all work and no play\r\n".repeat(20_000).as_bytes());
        visitor.telnet.send(b"the end\r\n");
        let came = visitor.expect("the end\r\n").await;
        assert_eq!(came.matches("all work and no play\r\n").count(), 20_000);
    });
}

/// Who has closed answers no mark.
#[test]
fn what_a_shell_says_after_the_end_of_input_comes_whole() {
    let host = host();
    session(&host, &config(), async |mut visitor| {
        visitor.log_in().await;
        visitor.say("seq 3000; read line; seq 30000; exit\r\n").await;
        visitor.expect("\r\n3000\r\n").await;
        visitor.say("\r\n").await;
        visitor.wire.shutdown().await.unwrap();
        visitor.expect("\r\n30000\r\n").await;
    });
}

#[test]
fn are_you_there_and_status() {
    let host = host();
    session(&host, &config(), async |mut visitor| {
        visitor.log_in().await;
        visitor.telnet.send_command(crate::codec::Command::AreYouThere);
        visitor.send().await;
        visitor.expect("[Yes]").await;
        visitor.say("\r\n").await;
        visitor.expect("$ ").await;
        assert!(visitor.telnet.is_active(crate::codec::Side::Remote, TelnetOption::Echo));
        assert!(visitor.telnet.is_active(crate::codec::Side::Remote, TelnetOption::SuppressGoAhead));
        assert!(visitor.telnet.ask_status());
        visitor.send().await;
    });
}

#[test]
fn a_visitor_who_does_nothing_is_sent_away() {
    let config = ServerConfig { login_time: Duration::from_millis(100), ..config() };
    let (end, ()) = session(&host(), &config, async |mut visitor| {
        visitor.expect("Idle").await;
        while visitor.read().await {}
    });
    assert!(matches!(end, SessionEnd::Closed(Closing::Idle)), "{end:?}");
}

#[test]
fn a_peer_that_negotiates_without_end_is_cut_off() {
    let (end, received) = session(&host(), &config(), async |mut visitor| {
        let flood = [255, 253, 6].repeat(20_000);
        let _ = visitor.wire.write_all(&flood).await;
        while visitor.read().await {}
        visitor.received_bytes
    });
    assert!(matches!(end, SessionEnd::Closed(Closing::Violation(_))), "{end:?}");
    assert!(received < 10_000, "{received}");
}

/// A configuration with a menu of one program, at its port.
fn menu() -> ServerConfig {
    let program = Target::Program(
        ["/bin/sh", "-c", "echo the-$TERM-of-$USER; read name; echo bye $name"].map(str::to_owned).into(),
    );
    let all = vec![
        Application::new("greet", program),
        Application { needs_password: false, ..Application::new("main", Target::Menu(vec!["greet".into()])) },
    ];
    ServerConfig { applications: Rc::new(Applications::new(all)), contact: Some("main".into()), ..config() }
}

#[test]
fn a_program_of_a_menu_runs_and_the_menu_comes_back() {
    let host = host();
    let (end, ()) = session(&host, &menu(), async |mut visitor| {
        visitor.expect("to leave: ").await;
        visitor.say("1\r\n").await;
        visitor.expect("User: ").await;
        visitor.say("ada\r\n").await;
        visitor.expect("Password: ").await;
        visitor.say("engine\r\n").await;
        for name in ["one", "two"] {
            visitor.expect("the-xterm-256color-of-ada\r\n").await;
            visitor.say(&format!("{name}\r\n")).await;
            visitor.expect(&format!("bye {name}\r\n")).await;
            visitor.expect("to leave: ").await;
            visitor.say(if name == "one" { "greet\r\n" } else { "quit\r\n" }).await;
        }
        visitor.expect("Good-bye.").await;
        while visitor.read().await {}
    });
    assert!(matches!(end, SessionEnd::Closed(Closing::Quit)), "{end:?}");
}

/// `iconv` and a raw terminal are a program that speaks EBCDIC.
#[test]
fn a_program_that_speaks_ebcdic_is_met_in_utf_8() {
    let speak = "iconv -f UTF-8 -t IBM1047";
    let script = format!(
        "stty raw -echo; printf 'Who [é]?\\302\\205' | {speak}; \
         name=$(head -c 5 | iconv -f IBM1047 -t UTF-8); printf 'bye %s' \"$name\" | {speak}"
    );
    let program = Target::Program(["/bin/sh", "-c", &script].map(str::to_owned).into());
    let charset = Charset::from_name("IBM1047").unwrap();
    let translation = Translation { charset, tabs: None, table: Table::default() };
    let mut of = Application::new("old", program);
    (of.needs_password, of.translation) = (false, Some(Rc::new(translation)));
    let applications = Rc::new(Applications::new(vec![of]));
    let config = ServerConfig { applications, contact: Some("old".into()), ..config() };
    let (end, ()) = session(&host(), &config, async |mut visitor| {
        visitor.expect("Who [é]?\r\n").await;
        visitor.say("[Jö]\r\n").await;
        visitor.expect("bye [Jö]\r\n").await;
        while visitor.read().await {}
    });
    assert!(matches!(end, SessionEnd::Closed(Closing::ShellEnded)), "{end:?}");
}

/// Reads from a passage until it has said `text`; all of it.
async fn hears(passage: &mut Passage<Wire>, text: &str) -> String {
    let mut all = String::new();
    while !all.contains(text) {
        let mut bytes = [0; 700];
        let count = tokio::io::AsyncReadExt::read(passage, &mut bytes).await.unwrap();
        assert!(count > 0, "{text:?} never came, but {all:?}");
        all.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    all
}

#[test]
fn a_passage_leads_to_another_host() {
    let other = host();
    let (near, far) = wire(4096);
    let config = config();
    let server = serve_session(near, [192, 0, 2, 1].into(), &config, &other);
    let clock = RealClock::new();
    let opening = Box::pin(async { Ok(far) });
    let mut passage = Passage::new(opening, "vt220", (132, 43), true, move || clock.now());
    let talk = async {
        hears(&mut passage, "inhost> ").await;
        passage.write_all(b"logon ada\r").await.unwrap();
        hears(&mut passage, "Password: ").await;
        passage.write_all(b"engine\r").await.unwrap();
        hears(&mut passage, "$ ").await;
        // The other host knows terminal and window, and a window that changes.
        passage.resize(90, 30);
        passage.write_all(b"echo $TERM; while test \"$(stty size)\" != '30 90'; do sleep 0.05; done; echo is-$((6*7))\r").await.unwrap();
        let said = hears(&mut passage, "is-42").await;
        assert!(said.contains("vt220\r\n"), "{said:?}");
        passage.write_all(b"exit\r").await.unwrap();
        let mut rest = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut passage, &mut rest).await.unwrap();
        assert!(passage.write_all(b"x").await.is_err());
    };
    let too_long = async {
        RealClock::new().sleep_until(inhost_base::Instant::from_millis(15_000)).await;
        panic!("the passage takes too long")
    };
    let (end, ()) = block_on(or(zip(server, talk), too_long));
    assert!(matches!(end, SessionEnd::Closed(Closing::ShellEnded)), "{end:?}");
}

#[test]
fn a_host_that_cannot_be_reached_is_said_and_that_is_the_end() {
    let opening: LocalFuture<std::io::Result<Wire>> =
        Box::pin(async { Err(std::io::ErrorKind::ConnectionRefused.into()) });
    let mut passage = Passage::new(opening, "vt100", (80, 24), true, || inhost_base::Instant::ZERO);
    let mut said = String::new();
    block_on(tokio::io::AsyncReadExt::read_to_string(&mut passage, &mut said)).unwrap();
    assert_eq!(said, "The host cannot be reached: connection refused.\r\n");
}

/// A host that says what it likes, and reads nothing, costs a bounded amount.
#[test]
fn a_host_that_reads_nothing_stops_what_is_typed() {
    let (near, far) = wire(4096);
    let opening: LocalFuture<std::io::Result<Wire>> = Box::pin(async { Ok(far) });
    let mut passage = Passage::new(opening, "vt100", (80, 24), false, || inhost_base::Instant::ZERO);
    let taken = block_on(async {
        let mut taken = 0;
        std::future::poll_fn(|cx| {
            let mut bytes = [0; 64];
            let _ = Pin::new(&mut passage).poll_read(cx, &mut ReadBuf::new(&mut bytes));
            for _ in 0..10_000 {
                match tokio::io::AsyncWrite::poll_write(Pin::new(&mut passage), cx, &[7; 100]) {
                    Poll::Ready(Ok(count)) => taken += count,
                    _ => return Poll::Ready(()),
                }
            }
            Poll::Ready(())
        })
        .await;
        taken
    });
    drop(near);
    assert!((4096..200_000).contains(&taken), "{taken}");
}
