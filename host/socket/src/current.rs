//! The host whose tasks run on this thread, for code that is given no handle.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::rc::{Rc, Weak};

use crate::host::{Host, Inner};
use crate::requests::Place;

thread_local! {
    static CURRENT: RefCell<Option<Weak<Inner>>> = const { RefCell::new(None) };
    /// The hosts of this thread that other threads can reach.
    static PLACES: RefCell<BTreeMap<Place, Weak<Inner>>> = const { RefCell::new(BTreeMap::new()) };
}

impl Host {
    /// The host whose task runs on this thread now, or that was [entered](Host::enter).
    ///
    /// ```
    /// use inhost_base::Instant;
    /// use inhost_socket::Host;
    /// use inhost_stack::{Stack, StackConfig};
    ///
    /// let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
    /// let own = host.clone();
    /// let task = host.spawn(async move { Host::current().is_some_and(|current| current.is(&own)) });
    /// assert_eq!(host.run_alone(task), Some(true));
    /// assert!(Host::current().is_none());
    /// ```
    pub fn current() -> Option<Host> {
        let inner = CURRENT.with(|current| current.borrow().as_ref().and_then(Weak::upgrade));
        inner.map(Host::from_inner)
    }
    /// Makes the host known to its thread by `place`.
    pub(crate) fn take_place(&self, place: Place) {
        PLACES.with(|places| {
            let mut places = places.borrow_mut();
            places.retain(|_, host| host.strong_count() > 0);
            places.insert(place, Rc::downgrade(self.inner()));
        });
    }
    /// The host with that place, if it lives on this thread.
    pub(crate) fn on_this_thread(place: Place) -> Option<Host> {
        let inner = PLACES.with(|places| places.borrow().get(&place).and_then(Weak::upgrade));
        inner.map(Host::from_inner)
    }
    /// The hosts of this thread that other threads can reach.
    pub(crate) fn all_on_this_thread() -> Vec<Host> {
        PLACES
            .with(|places| places.borrow().values().filter_map(Weak::upgrade).map(Host::from_inner).collect())
    }
    /// Makes this the current host of the thread until the guard is dropped.
    pub fn enter(&self) -> Entered {
        let inner = Some(Rc::downgrade(self.inner()));
        Entered { before: CURRENT.with(|current| current.replace(inner)), on_this_thread: PhantomData }
    }
}

/// While it lives, [`Host::current`] is the host that was entered.
#[must_use = "the host is left when the guard is dropped"]
#[derive(Debug)]
pub struct Entered {
    before: Option<Weak<Inner>>,
    on_this_thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.before.take();
        let left = CURRENT.with(|current| current.replace(before));
        drop(left);
    }
}
