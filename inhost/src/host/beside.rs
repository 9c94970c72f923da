//! What a host has beside its stack: its flight recorder, and the outer callers of what its `user` links forward. It lives on the
//! host's thread, where handles find it by the host.

use std::cell::RefCell;
use std::rc::Rc;

#[cfg(feature = "user")]
use inhost_base::Endpoint;
#[cfg(feature = "user")]
use inhost_common::{Callers, Transport};
use inhost_record::Recorder;
use inhost_runtime::Recording;
#[cfg(feature = "user")]
use inhost_socket::RemoteHost;

use crate::local;

thread_local! {
    static HOSTS: RefCell<Vec<(local::Host, Rc<Beside>)>> = const { RefCell::new(Vec::new()) };
}

/// What one host has.
pub(super) struct Beside {
    pub(super) recorder: Option<Recorder>,
    /// It ends the file when the host's driver has dropped its own share.
    pub(super) recording: Option<Rc<Recording>>,
    #[cfg(feature = "user")]
    pub(super) callers: Callers,
}

/// Has it found until this is dropped.
pub(super) struct Found(local::Host);

impl Found {
    /// What `host` has, found from now on.
    pub(super) fn new(
        host: &local::Host,
        recorder: Option<Recorder>,
        recording: Option<Rc<Recording>>,
    ) -> Found {
        let beside = Rc::new(Beside {
            recorder,
            recording,
            #[cfg(feature = "user")]
            callers: Callers::default(),
        });
        HOSTS.with_borrow_mut(|hosts| hosts.push((host.clone(), beside)));
        Found(host.clone())
    }
}

impl Drop for Found {
    fn drop(&mut self) {
        // The thread may be at its end.
        let _ = HOSTS.try_with(|hosts| hosts.borrow_mut().retain(|(host, _)| !host.is(&self.0)));
    }
}

/// What `host`, whose thread this is, has; nothing once it went down.
pub(super) fn find(host: &local::Host) -> Option<Rc<Beside>> {
    HOSTS
        .with_borrow(|hosts| hosts.iter().find(|(known, _)| known.is(host)).map(|(_, beside)| beside.clone()))
}

/// The caller outside of what reaches `host` from `peer`, where a gateway forwards it.
#[cfg(feature = "user")]
pub(crate) async fn outer_caller(
    host: &RemoteHost,
    transport: Transport,
    peer: Endpoint,
) -> Option<Endpoint> {
    let look = async move |host: local::Host| find(&host)?.callers.forwarded(transport, peer);
    host.call(look).await.ok().flatten()
}
