//! The host to which a new socket belongs.

use std::cell::RefCell;
use std::io;
use std::marker::PhantomData;
use std::sync::{PoisonError, RwLock};

use inhost_socket::RemoteHost;

use crate::Host;

thread_local! {
    static ENTERED: RefCell<Option<RemoteHost>> = const { RefCell::new(None) };
}

/// The host of code that runs in the scope of none.
static DEFAULT: RwLock<Option<Host>> = RwLock::new(None);

/// The host that was entered on this thread, else the one whose task runs, else the default.
pub(crate) fn host() -> io::Result<RemoteHost> {
    let entered = ENTERED.with(|entered| entered.borrow().clone());
    entered
        .or_else(|| inhost_socket::Host::current().map(|host| host.remote()))
        .or_else(|| {
            let default = DEFAULT.read().unwrap_or_else(PoisonError::into_inner).clone();
            default.map(|host| host.remote().clone()).filter(|host| !host.is_stopped())
        })
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotConnected,
                "no host is current here: use Host::block_on, scope, enter or make_default",
            )
        })
}

/// Makes `host` the default of the process, or none. Gives the one before, which is dropped without the lock.
pub(crate) fn set_default(host: Option<Host>) -> Option<Host> {
    std::mem::replace(&mut *DEFAULT.write().unwrap_or_else(PoisonError::into_inner), host)
}

/// While it lives, its host is current on this thread.
#[must_use = "the host is left when the guard is dropped"]
#[derive(Debug)]
pub struct Entered {
    before: Option<RemoteHost>,
    on_this_thread: PhantomData<*const ()>,
}

pub(crate) fn enter(host: RemoteHost) -> Entered {
    Entered { before: ENTERED.with(|entered| entered.replace(Some(host))), on_this_thread: PhantomData }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.before.take();
        drop(ENTERED.with(|entered| entered.replace(before)));
    }
}
