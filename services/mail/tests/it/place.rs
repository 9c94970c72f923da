//! A server that keeps what it takes.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use inhost_base::Endpoint;
use inhost_common::{Admission, AdmissionLimits};
use inhost_mail::codec::Reply;
use inhost_mail::driver::{Answer, Mailroom, Server, serve};
use inhost_mail::server::{Client, Closing, Decision, Envelope, ServerConfig, Stage, Verdict};
use inhost_mail::{Body, SpoolFolder, Trace};
use inhost_socket::Host;
use inhost_stack::ListenOptions;

/// Its port.
pub const PORT: u16 = 25;

/// What it has.
#[derive(Default)]
pub struct Place {
    /// Recipients and text of each message.
    pub messages: RefCell<Vec<(Vec<String>, Vec<u8>)>>,
    /// How each session ended.
    pub ended: RefCell<Vec<Option<Closing>>>,
}

impl Mailroom for Place {
    fn stage<'a>(
        &'a self,
        stage: Stage,
        _: &Rc<Client>,
        envelope: Option<&Rc<Envelope>>,
    ) -> Answer<'a, Decision> {
        let is_foreign = envelope
            .and_then(|envelope| envelope.recipients.last())
            .is_some_and(|last| !last.mailbox.domain().ends_with("here.example"));
        let verdict = match stage {
            Stage::Recipient if is_foreign => Verdict::Refuse(Reply::new(550, "5.7.1", "Relaying denied")),
            _ => Verdict::Accept,
        };
        Box::pin(std::future::ready(verdict.into()))
    }
    fn authenticate<'a>(&'a self, _: &Rc<Client>, _: String, _: String) -> Answer<'a, Result<bool, Reply>> {
        Box::pin(std::future::ready(Ok(false)))
    }
    fn message<'a>(
        &'a self,
        _: &Rc<Client>,
        envelope: &Rc<Envelope>,
        body: Body,
        _: bool,
    ) -> Answer<'a, Result<String, Reply>> {
        let to = envelope.recipients.iter().map(|to| to.mailbox.to_string()).collect();
        let text = body.read(1 << 20).unwrap().to_vec();
        self.messages.borrow_mut().push((to, text));
        Box::pin(std::future::ready(Ok("kept".into())))
    }
    fn ended(&self, _: &Client, _: &Trace, closing: Option<Closing>) {
        self.ended.borrow_mut().push(closing);
    }
}

/// Serves on `host`.
pub fn start(host: &Host, config: ServerConfig) -> Rc<Place> {
    let place = Rc::new(Place::default());
    let listener = host.listen(Endpoint::new([0, 0, 0, 0], PORT), ListenOptions::default()).unwrap();
    let admission = Admission::new(AdmissionLimits::default());
    let server = Server { config: Rc::new(config), tls: None, spool: Arc::new(SpoolFolder::memory()) };
    let (owner, own) = (place.clone(), host.clone());
    host.spawn(async move {
        while let Ok(stream) = listener.accept().await {
            let caller = stream.remote();
            let permit = admission.admit(caller.address, own.now()).unwrap();
            let (server, owner, host) = (server.clone(), owner.clone(), own.clone());
            own.spawn(async move { serve(stream, caller, false, &server, &*owner, &permit, &host).await })
                .detach();
        }
    })
    .detach();
    place
}
