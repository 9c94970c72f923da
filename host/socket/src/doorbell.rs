//! How another thread gets a host's attention.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};

/// Wakes the thread that drives a host. Anyone may ring; ringing twice is ringing once, and ringing a thread that is
/// awake costs two atomic operations and no system call.
///
/// Whoever drives the host calls [`Doorbell::doze`] before it sleeps and [`Doorbell::awake`] after.
#[derive(Clone)]
pub struct Doorbell(Arc<Bell>);

struct Bell {
    rung: AtomicBool,
    dozing: AtomicBool,
    rouse: OnceLock<Box<dyn Fn() + Send + Sync>>,
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
            dozing: AtomicBool::new(false),
            rouse: OnceLock::new(),
        }))
    }
    /// Says what wakes the thread from its sleep, such as a write to an eventfd. Only the first call counts; false
    /// for a later one.
    pub fn set_rouse(&self, rouse: impl Fn() + Send + Sync + 'static) -> bool {
        self.0.rouse.set(Box::new(rouse)).is_ok()
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
    pub fn doze(&self) -> bool {
        self.0.dozing.store(true, Ordering::SeqCst);
        if self.is_rung() {
            self.awake();
            return false;
        }
        true
    }
    /// Ends the announcement.
    pub fn awake(&self) {
        self.0.dozing.store(false, Ordering::SeqCst);
    }
    /// The bell as a waker.
    pub fn waker(&self) -> Waker {
        Waker::from(self.0.clone())
    }
}

impl Bell {
    fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
        if self.dozing.swap(false, Ordering::SeqCst)
            && let Some(rouse) = self.rouse.get()
        {
            rouse();
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
        assert!(bell.set_rouse(move || {
            count.fetch_add(1, Ordering::SeqCst);
        }));
        assert!(!bell.doze());
        assert!(bell.answer());
        bell.ring();
        assert_eq!(roused.load(Ordering::SeqCst), 0);
        bell.answer();
        assert!(bell.doze());
        bell.waker().wake();
        bell.ring();
        assert_eq!(roused.load(Ordering::SeqCst), 1);
        assert!(bell.is_rung());
    }
}
