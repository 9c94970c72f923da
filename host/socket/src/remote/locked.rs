//! State that several threads change, and whom a change wakes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::waiters::wake_all;

/// State under a lock. A panic under it leaves nothing that a later call cannot use.
#[derive(Default)]
pub(super) struct Locked<T>(Mutex<T>);

impl<T> Locked<T> {
    pub(super) fn new(state: T) -> Locked<T> {
        Locked(Mutex::new(state))
    }
    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Works on the state. The tasks that `work` gives are woken when it is unlocked.
    pub(super) fn change<R, W: IntoIterator<Item = Waker>>(&self, work: impl FnOnce(&mut T) -> (R, W)) -> R {
        let (result, woken) = work(&mut self.lock());
        wake_all(woken);
        result
    }
}
