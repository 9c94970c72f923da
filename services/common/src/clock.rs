//! The clock of drivers: real, or simulated.

use inhost_base::Instant;
use inhost_socket::Host;

use crate::future::LocalFuture;

/// The clock of drivers: real, or simulated.
pub trait Clock {
    /// Now.
    fn now(&self) -> Instant;
    /// Ready at `at`, or soon after.
    fn sleep_until(&self, at: Instant) -> LocalFuture<()>;
}

impl Clock for Host {
    fn now(&self) -> Instant {
        Host::now(self)
    }
    fn sleep_until(&self, at: Instant) -> LocalFuture<()> {
        Box::pin(Host::sleep_until(self, at))
    }
}
