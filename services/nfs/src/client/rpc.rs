//! Calls as futures. A driver carries their messages.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use inhost_common::Clock;

use super::{CallError, CallSettings, Calls, ClientError};
use crate::codec::nfs::{self, Failed, Outcome, Procedure, Status, procedure_name};
use crate::codec::rpc::{Credentials, Target};
use crate::codec::xdr::{Xdr, from_octets};
use inhost_base::Duration;

/// How long a client waits that was asked to try later.
const LATER: Duration = Duration::from_secs(1);
/// How often it tries.
const TRIES: usize = 30;

/// Calls of one server. Clones are the same.
pub struct Rpc<C> {
    inner: Rc<Inner<C>>,
}

struct Inner<C> {
    clock: C,
    credentials: Credentials,
    calls: RefCell<Calls>,
    callers: RefCell<Vec<(u32, Waker)>>,
    driver: RefCell<Option<Waker>>,
}

impl<C> Clone for Rpc<C> {
    fn clone(&self) -> Rpc<C> {
        Rpc { inner: self.inner.clone() }
    }
}

/// A call that is forgotten when its future is dropped.
struct Waiting<'a, C> {
    inner: &'a Inner<C>,
    xid: u32,
}

impl<C> Drop for Waiting<'_, C> {
    fn drop(&mut self) {
        self.inner.calls.borrow_mut().forget(self.xid);
        self.inner.callers.borrow_mut().retain(|(xid, _)| *xid != self.xid);
    }
}

impl<C: Clock> Rpc<C> {
    /// Calls with these credentials; the first has the number `xid`.
    pub fn new(clock: C, credentials: Credentials, settings: CallSettings, xid: u32) -> Rpc<C> {
        let calls = RefCell::new(Calls::new(settings, xid));
        let (callers, driver) = Default::default();
        Rpc { inner: Rc::new(Inner { clock, credentials, calls, callers, driver }) }
    }
    /// The clock.
    pub fn clock(&self) -> &C {
        &self.inner.clock
    }
    /// Messages that were sent more than once.
    pub fn retransmitted(&self) -> u64 {
        self.inner.calls.borrow().retransmitted()
    }
    /// Whether calls wait for a server that has not answered since the connection was made, or for a connection.
    pub fn is_waiting(&self) -> bool {
        self.inner.calls.borrow().is_waiting()
    }
    /// Ends the operation that is under way, which may make more calls to clear up. See [`Calls::interrupt`].
    pub fn interrupt(&self) {
        self.with_calls(Calls::interrupt);
    }
    /// Calls a procedure.
    pub async fn call<R: Xdr>(&self, target: Target, arguments: &impl Xdr) -> Result<R, ClientError> {
        let inner = &*self.inner;
        let now = inner.clock.now();
        let xid = inner.calls.borrow_mut().begin(target, &inner.credentials, arguments, now)?;
        let _waiting = Waiting { inner, xid };
        self.wake_driver();
        let results: Result<Vec<u8>, CallError> = poll_fn(|cx| {
            if let Some(result) = inner.calls.borrow_mut().take(xid) {
                return Poll::Ready(result);
            }
            let mut callers = inner.callers.borrow_mut();
            match callers.iter_mut().find(|(own, _)| *own == xid) {
                Some((_, waker)) => waker.clone_from(cx.waker()),
                None => callers.push((xid, cx.waker().clone())),
            }
            Poll::Pending
        })
        .await;
        Ok(from_octets(&results?)?)
    }
    /// Calls a procedure of NFS, later again if the server asks for that.
    pub async fn files<P, T, F>(&self, arguments: &P::Arguments) -> Result<T, ClientError>
    where
        P: Procedure<Results = Outcome<T, F>>,
        T: Xdr,
        F: Xdr,
    {
        let target = Target { program: nfs::PROGRAM, version: nfs::VERSION, procedure: P::NUMBER };
        for _ in 0..TRIES {
            match self.call::<Outcome<T, F>>(target, arguments).await? {
                Ok(done) => return Ok(done),
                Err(Failed { status: Status::JUKEBOX, .. }) => {
                    self.inner.clock.sleep_until(self.inner.clock.now() + LATER).await;
                }
                Err(Failed { status, .. }) => {
                    return Err(ClientError::Refused { procedure: procedure_name(P::NUMBER), status });
                }
            }
        }
        Err(ClientError::Refused { procedure: procedure_name(P::NUMBER), status: Status::JUKEBOX })
    }

    /// Does something with the calls, for a driver; wakes those whose result may be there.
    pub(crate) fn with_calls<T>(&self, work: impl FnOnce(&mut Calls) -> T) -> T {
        let done = work(&mut self.inner.calls.borrow_mut());
        for (_, waker) in self.inner.callers.take() {
            waker.wake();
        }
        done
    }
    /// Does something with the calls that brings no result.
    pub(crate) fn with_unsent<T>(&self, work: impl FnOnce(&mut Calls) -> T) -> T {
        work(&mut self.inner.calls.borrow_mut())
    }
    /// The driver is woken when there is something to send.
    pub(crate) fn set_driver(&self, waker: &Waker) {
        match &mut *self.inner.driver.borrow_mut() {
            Some(own) => own.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }
    fn wake_driver(&self) {
        if let Some(driver) = &*self.inner.driver.borrow() {
            driver.wake_by_ref();
        }
    }
}
