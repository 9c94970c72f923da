//! The sessions of a host's services.

use std::cell::RefCell;
use std::rc::Rc;

use crate::admission::ServiceSession;

type Lists = RefCell<Vec<Box<dyn Fn() -> Vec<ServiceSession>>>>;

/// Sessions of all services of a host. A clone is the same.
#[derive(Clone, Default)]
pub struct Sessions(Rc<Lists>);

impl Sessions {
    /// Adds a service by what lists its sessions.
    pub fn add(&self, list: impl Fn() -> Vec<ServiceSession> + 'static) {
        self.0.borrow_mut().push(Box::new(list));
    }
    /// All sessions, service by service, the oldest of each first.
    pub fn all(&self) -> Vec<ServiceSession> {
        self.0.borrow().iter().flat_map(|list| list()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Admission, AdmissionLimits};
    use inhost_base::{Instant, IpAddr};

    #[test]
    fn a_session_is_listed_while_it_exists_and_with_its_user_once_known() {
        let admission = Admission::new(AdmissionLimits::default());
        let (sessions, theirs) = (Sessions::default(), admission.clone());
        sessions.add(move || theirs.list("telnet"));
        let (peer, since) = (IpAddr::from([192, 0, 2, 9]), Instant::from_millis(7));
        let permit = admission.admit(peer, since).unwrap();
        let session = |user: Option<&str>| ServiceSession {
            service: "telnet",
            number: Some(1),
            peer,
            user: user.map(str::to_owned),
            since,
        };
        assert_eq!(sessions.all(), [session(None)]);
        permit.logged_in("ada");
        assert_eq!(sessions.all(), [session(Some("ada"))]);
        drop(permit);
        assert_eq!(sessions.all(), []);
    }
}
