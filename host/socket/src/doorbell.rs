//! The doorbell: how another thread wakes a host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};

/// Wakes the thread that drives a host. Anyone may ring; ringing twice is ringing once, and ringing a thread that is
/// awake costs two atomic operations and no system call.
///
/// The driver of the host calls [`Doorbell::begin_sleep`] before it sleeps and [`Doorbell::end_sleep`] after.
#[derive(Clone)]
pub struct Doorbell(Arc<Bell>);

struct Bell {
    rung: AtomicBool,
    sleeping: AtomicBool,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Default for Doorbell {
    fn default() -> Self {
        Doorbell::new()
    }
}

impl Doorbell {
    /// A bell that has been rung once, so that the first round looks at everything.
    pub fn new() -> Doorbell {
        Doorbell(Arc::new(Bell {
            rung: AtomicBool::new(true),
            sleeping: AtomicBool::new(false),
            waker: OnceLock::new(),
        }))
    }
    /// Says what wakes the thread from its sleep, such as a write to an eventfd. Only the first call counts; false
    /// for a later one.
    pub fn set_waker(&self, waker: impl Fn() + Send + Sync + 'static) -> bool {
        self.0.waker.set(Box::new(waker)).is_ok()
    }
    /// Rings.
    pub fn ring(&self) {
        self.0.ring();
    }
    /// Whether it was rung since it was last answered.
    pub fn is_rung(&self) -> bool {
        self.0.rung.load(Ordering::SeqCst)
    }
    /// Takes note of the ringing.
    pub fn answer(&self) -> bool {
        self.0.rung.swap(false, Ordering::SeqCst)
    }
    /// Announces sleep. False when it was rung in the meantime: then do not sleep.
    pub fn begin_sleep(&self) -> bool {
        self.0.sleeping.store(true, Ordering::SeqCst);
        if self.is_rung() {
            self.end_sleep();
            return false;
        }
        true
    }
    /// Ends the announcement.
    pub fn end_sleep(&self) {
        self.0.sleeping.store(false, Ordering::SeqCst);
    }
    /// The bell as a waker.
    pub fn waker(&self) -> Waker {
        Waker::from(self.0.clone())
    }
}

impl Bell {
    fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
        if self.sleeping.swap(false, Ordering::SeqCst)
            && let Some(waker) = self.waker.get()
        {
            waker();
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn only_a_sleeper_is_roused_and_only_once() {
        let bell = Doorbell::new();
        let roused = Arc::new(AtomicUsize::new(0));
        let count = roused.clone();
        assert!(bell.set_waker(move || {
            count.fetch_add(1, Ordering::SeqCst);
        }));
        assert!(!bell.begin_sleep());
        assert!(bell.answer());
        bell.ring();
        assert_eq!(roused.load(Ordering::SeqCst), 0);
        bell.answer();
        assert!(bell.begin_sleep());
        bell.waker().wake();
        bell.ring();
        assert_eq!(roused.load(Ordering::SeqCst), 1);
        assert!(bell.is_rung());
    }
}
