//! LINEMODE with a program that does not read its lines: how often the server looks whether it has.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::Waker;

use inhost_base::{Duration, Instant};
use inhost_common::service::Order;
use inhost_common::users::Verdict;
use inhost_common::{Admission, AdmissionLimits, LocalFuture};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::testing::wire;
use super::*;
use crate::pty::{Shell, TerminalKeys};
use crate::server::{Application, Applications, ServerConfig, ShellRequest, Target};

/// A clock that a test moves.
#[derive(Clone, Default)]
struct Hand(Rc<Cell<Instant>>);

impl Clock for Hand {
    fn now(&self) -> Instant {
        self.0.get()
    }
    fn sleep_until(&self, at: Instant) -> LocalFuture<()> {
        let now = self.0.clone();
        Box::pin(std::future::poll_fn(move |_| if now.get() >= at { Poll::Ready(()) } else { Poll::Pending }))
    }
}

/// A program that reads a line only when the test says so.
#[derive(Clone, Default)]
struct Program {
    has_unread: Rc<Cell<bool>>,
    looks: Rc<Cell<u32>>,
    lines: Rc<RefCell<Vec<u8>>>,
}

impl AsyncRead for Program {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}
impl AsyncWrite for Program {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.has_unread.set(true);
        self.lines.borrow_mut().extend(bytes);
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
impl Shell for Program {
    fn resize(&self, _: u16, _: u16) {}
    fn keys(&self) -> TerminalKeys {
        TerminalKeys { external: true, ..TerminalKeys::default() }
    }
    fn interrupt(&self) {}
    fn discard_output(&self) {}
    fn end(&mut self) {}
    fn input_waits(&self) -> bool {
        self.looks.set(self.looks.get() + 1);
        self.has_unread.get()
    }
}

struct Doors {
    clock: Hand,
    admission: Admission,
    program: Program,
}

impl Services for Doors {
    type Clock = Hand;
    type Shell = Program;
    fn clock(&self) -> &Hand {
        &self.clock
    }
    fn admission(&self) -> &Admission {
        &self.admission
    }
    fn authenticate(&self, _: String, _: String) -> LocalFuture<Verdict> {
        Box::pin(std::future::ready(Verdict::Denied))
    }
    fn shell(&self, _: &ShellRequest) -> io::Result<Program> {
        Ok(self.program.clone())
    }
    fn news(&self) -> String {
        String::new()
    }
    fn netstat(&self) -> String {
        String::new()
    }
    fn figures(&self) -> String {
        String::new()
    }
    fn carry_out(&self, _: &str, _: Order) -> LocalFuture<String> {
        Box::pin(std::future::ready(String::new()))
    }
    fn record(&self, _: SessionEvent<'_>) {}
}

/// WILL LINEMODE, and the mode that the server asks for: EDIT and TRAPSIG.
const LINE_MODE: &[u8] = &[255, 251, 34, 255, 250, 34, 1, 7, 255, 240];

#[test]
fn a_program_that_does_not_read_is_looked_at_ever_less_often() {
    let mut application = Application::new("mute", Target::Program(vec!["/bin/mute".into()]));
    application.needs_password = false;
    let config = ServerConfig {
        applications: Rc::new(Applications::new(vec![application])),
        contact: Some("mute".into()),
        line_mode: true,
        idle_time: None,
        ..ServerConfig::default()
    };
    let (clock, program) = (Hand::default(), Program::default());
    let admission = Admission::new(AdmissionLimits::default());
    let doors = Doors { clock: clock.clone(), admission, program: program.clone() };
    let (near, mut far) = wire(4096);
    let mut session = Box::pin(serve_session(near, [192, 0, 2, 1].into(), &config, &doors));
    let mut cx = Context::from_waker(Waker::noop());
    let mut pass = |milliseconds: u64| {
        for _ in 0..milliseconds {
            clock.0.set(clock.now() + Duration::from_millis(1));
            for _ in 0..3 {
                assert!(session.as_mut().poll(&mut cx).is_pending());
            }
        }
    };
    pass(1);
    let mut cx = Context::from_waker(Waker::noop());
    let mut types = |text: &[u8]| assert!(Pin::new(&mut far).poll_write(&mut cx, text).is_ready());
    types(LINE_MODE);
    pass(1);
    types(b"one\r\ntwo\r\nthree\r\n");
    pass(1);
    assert_eq!(program.lines.borrow().as_slice(), b"one\n");
    program.looks.set(0);
    pass(10_000);
    let looks = program.looks.get();
    assert!((90..=110).contains(&looks), "{looks} looks in ten seconds");
    // The next line follows, and the looks are frequent again.
    program.has_unread.set(false);
    let waited = (0..100).take_while(|_| {
        pass(1);
        program.lines.borrow().as_slice() != b"one\ntwo\n"
    });
    assert!(waited.count() < 100, "a line was read, and the next one did not follow");
    program.has_unread.set(false);
    pass(6);
    assert_eq!(program.lines.borrow().as_slice(), b"one\ntwo\nthree\n");
}
