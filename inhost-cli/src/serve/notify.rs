//! What the service manager is told by `sd_notify`: ready, reloading, stopping. Without one, nothing is sent.

use sd_notify::NotifyState;
use tracing::warn;

/// The host serves; a reload is done, too.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The configuration is read again; [`ready`] ends that.
pub fn reloading() {
    // With the time, which systemd wants from version 253 on to tell this reload from others.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => warn!(target: "host", "the service manager is not told of the reload: {error}"),
    }
}

/// The host ends.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    // A manager that is gone is no reason to end.
    if let Err(error) = sd_notify::notify(states) {
        warn!(target: "host", "the service manager cannot be told: {error}");
    }
}
