//! Many callers log in at once: the limit on wrong passwords holds for all of a peer's sessions together, and right
//! ones are never taken for wrong.

use std::cell::Cell;
use std::io;

use futures_lite::future::zip;
use inhost_base::{Duration, IpAddr};
use inhost_common::{Admission, AdmissionLimits, Refusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::testing::{RealClock, block_on, wire};
use super::*;
use crate::pty::Pty;
use crate::server::{Closing, ServerConfig, ShellRequest};
use inhost_common::LocalFuture;
use inhost_common::service::Order;
use inhost_common::users::{Account, Verdict};

/// Verifies "engine" in five milliseconds, any number at once, and has no shells.
struct Doors {
    clock: RealClock,
    admission: Admission,
    verdicts: Cell<usize>,
    log_ins: Cell<usize>,
    denials: Cell<usize>,
    refusals: Cell<usize>,
    is_busy: Cell<bool>,
}

impl Doors {
    fn new(limits: AdmissionLimits) -> Doors {
        Doors {
            clock: RealClock::new(),
            admission: Admission::new(limits),
            verdicts: Cell::new(0),
            log_ins: Cell::new(0),
            denials: Cell::new(0),
            refusals: Cell::new(0),
            is_busy: Cell::new(false),
        }
    }
}

impl Services for Doors {
    type Clock = RealClock;
    type Shell = Pty;
    fn clock(&self) -> &RealClock {
        &self.clock
    }
    fn admission(&self) -> &Admission {
        &self.admission
    }
    fn authenticate(&self, name: String, password: String) -> LocalFuture<Verdict> {
        let taken = self.clock.sleep_until(self.clock.now() + Duration::from_millis(5));
        self.verdicts.set(self.verdicts.get() + 1);
        let verdict = match password == "engine" {
            _ if self.is_busy.replace(false) => Verdict::Busy,
            true => Verdict::Granted(Account { name, shell: None, is_operator: false }),
            false => Verdict::Denied,
        };
        Box::pin(async move {
            taken.await;
            verdict
        })
    }
    fn shell(&self, _: &ShellRequest) -> io::Result<Pty> {
        self.log_ins.set(self.log_ins.get() + 1);
        Err(io::ErrorKind::Unsupported.into())
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
    fn record(&self, event: SessionEvent<'_>) {
        match event {
            SessionEvent::Denied { .. } => self.denials.set(self.denials.get() + 1),
            SessionEvent::Refused { refusal: Refusal::TooManyDenials, .. } => {
                self.refusals.set(self.refusals.get() + 1);
            }
            _ => {}
        }
    }
}

/// One caller who types `lines` at once and reads to the end; gives what was shown.
async fn caller(doors: &Doors, config: &ServerConfig, peer: IpAddr, lines: &str) -> String {
    let (near, mut far) = wire(4096);
    let talk = async {
        far.write_all(lines.as_bytes()).await.unwrap();
        let mut shown = Vec::new();
        far.read_to_end(&mut shown).await.unwrap();
        String::from_utf8_lossy(&shown).into_owned()
    };
    zip(serve_session(near, peer, config, doors), talk).await.1
}

/// All at once, as tasks of one thread.
fn all_at_once<T>(futures: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    let mut done: Vec<_> = running.iter().map(|_| None).collect();
    block_on(std::future::poll_fn(|cx| {
        for (place, result) in running.iter_mut().zip(&mut done) {
            if let Some(future) = place
                && let Poll::Ready(value) = future.as_mut().poll(cx)
            {
                (*place, *result) = (None, Some(value));
            }
        }
        if running.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    }));
    done.into_iter().flatten().collect()
}

fn config() -> ServerConfig {
    ServerConfig { denial: Duration::from_millis(1), ..ServerConfig::default() }
}

fn limits() -> AdmissionLimits {
    let mut limits = AdmissionLimits::default();
    limits.sessions_per_peer = 256;
    limits.connections_per_window = 1000;
    limits
}

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

#[test]
fn wrong_passwords_at_once_share_the_limit_of_a_minute() {
    let (doors, config) = (Doors::new(limits()), ServerConfig { attempts: 1, ..config() });
    let shown = all_at_once((0..96).map(|_| caller(&doors, &config, PEER, "logon ada\r\nwrong\r\n")));
    assert_eq!(doors.verdicts.get(), 12, "verdicts of 96 sessions with a wrong password each");
    assert_eq!(doors.denials.get(), 12);
    let refused = shown.iter().filter(|text| text.contains("Too many wrong passwords")).count();
    assert_eq!((refused, doors.refusals.get()), (84, 84));
    // Another peer is not concerned.
    let other = block_on(caller(&doors, &config, [192, 0, 2, 2].into(), "logon ada\r\nengine\r\n"));
    assert!(other.contains("No shell could be started"), "{other}");
}

#[test]
fn right_passwords_at_once_all_get_in_and_are_no_attack() {
    let (doors, config) = (Doors::new(limits()), config());
    let shown = all_at_once((0..200).map(|_| caller(&doors, &config, PEER, "logon ada\r\nengine\r\n")));
    assert_eq!(doors.log_ins.get(), 200, "{}", shown.iter().find(|text| !text.contains("No shell")).unwrap());
    assert_eq!((doors.denials.get(), doors.refusals.get()), (0, 0));
}

#[test]
fn busy_is_no_denial_and_the_next_try_may_succeed() {
    let (doors, config) = (Doors::new(limits()), ServerConfig { attempts: 1, ..config() });
    doors.is_busy.set(true);
    let (near, mut far) = wire(4096);
    let talk = async {
        far.write_all(b"logon ada\r\nengine\r\nlogon ada\r\nengine\r\n").await.unwrap();
        let mut shown = Vec::new();
        far.read_to_end(&mut shown).await.unwrap();
        String::from_utf8_lossy(&shown).into_owned()
    };
    let (end, shown) = block_on(zip(serve_session(near, PEER, &config, &doors), talk));
    assert!(matches!(end, SessionEnd::Closed(Closing::NoShell)), "{end:?}");
    assert!(shown.contains("Busy, try again.") && !shown.contains("wrong name"), "{shown}");
    assert_eq!((doors.denials.get(), doors.log_ins.get()), (0, 1));
}
