use std::cell::Cell;
use std::future::ready;

use futures_lite::future::block_on;
use inhost_base::{Instant, IpAddr};
use inhost_common::service::NoOperator;
use inhost_common::{Admission, AdmissionLimits};

use super::*;

/// A clock that is where it is wanted.
#[derive(Clone)]
struct Jumping(Rc<Cell<Instant>>);

impl Clock for Jumping {
    fn now(&self) -> Instant {
        self.0.get()
    }
    fn sleep_until(&self, at: Instant) -> LocalFuture<()> {
        self.0.set(self.0.get().max(at));
        Box::pin(ready(()))
    }
}

/// A host whose one password is "right".
struct OneUser;

impl HostText for OneUser {
    fn news(&self) -> LocalFuture<String> {
        Box::pin(ready(String::new()))
    }
    fn netstat(&self) -> String {
        String::new()
    }
    fn operator(&self) -> Rc<dyn Operator> {
        Rc::new(NoOperator)
    }
    fn authenticate(&self, user: String, password: String) -> LocalFuture<Verdict> {
        let account = Account { name: user, shell: None, is_operator: false };
        Box::pin(ready(if password == "right" { Verdict::Granted(account) } else { Verdict::Denied }))
    }
    fn files(&self) -> Option<Rc<dyn Storage>> {
        None
    }
}

/// The title of the panel that follows; `None` at the end.
fn title(next: Next) -> Option<String> {
    match next {
        Next::Show(panel) => Some(panel.name.clone()),
        _ => None,
    }
}

#[test]
fn wrong_passwords_pause_as_at_the_telnet_server() {
    let clock = Jumping(Rc::new(Cell::new(Instant::ZERO)));
    let peer = IpAddr::from([10, 9, 0, 2]);
    let permit = Admission::new(AdmissionLimits::default()).admit(peer, Instant::ZERO).unwrap();
    let mut talk = Talk {
        host: Rc::new(OneUser),
        clock: clock.clone(),
        permit: Rc::new(permit),
        title: String::new(),
        visitor: Visitor::new(peer, "IBM-3278-2", "LU001"),
        attempts: 3,
        wrong: 0,
        user: None,
        shown: None,
    };
    let mut log_on = |password: &str| {
        let next = block_on(talk.log_on_as("ada".into(), password.into()));
        (title(next), clock.now().since(Instant::ZERO).as_secs())
    };
    assert_eq!(log_on("right"), (Some("MENU".into()), 0));
    assert_eq!(log_on("wrong"), (Some("LOGON".into()), 1));
    assert_eq!(log_on("wrong"), (Some("LOGON".into()), 3));
    assert_eq!(log_on("wrong"), (None, 7));
}
