//! Echo requests and traces that a running host makes for clients of its control socket.

use crate::links::Links;
use crate::news;
use crate::ping::requests::{EchoNews, Requests, send};
use crate::traceroute::asked::Asked;
use inhost_names::Names;
use inhost_runtime::control::{Failure as Refusal, Server};
use inhost_runtime::{Reactor, Runtime};
use std::rc::Rc;

/// Answers `{"op":"ping",…}` and `{"op":"traceroute",…}`, each with a stream of news.
pub fn answer(runtime: &Runtime, control: &Server, links: &Links, names: &Rc<Names>) {
    let reactor: Reactor = runtime.handle().clone();
    let there = reactor.clone();
    control.handle("ping", move |host, request| {
        let reactor = there.clone();
        async move {
            let requests = Requests::of(&request).map_err(Refusal::new)?;
            let sender = host.clone();
            let work = async move |mut teller: news::Teller| {
                let done = send(&sender, &requests, async |news| teller.tell(&news).await).await;
                teller.tell(&EchoNews::Over { error: done.err() }).await;
            };
            news::start(&host, &reactor, work).map_err(|e| Refusal::new(e.to_string()))
        }
    });
    let (names, user) = (names.clone(), Rc::new(links.user.clone()));
    control.handle("traceroute", move |host, request| {
        let (reactor, names, user) = (reactor.clone(), names.clone(), user.clone());
        async move {
            let asked: Asked = serde_json::from_value(request).map_err(|e| Refusal::new(e.to_string()))?;
            let sender = host.clone();
            let work = async move |mut teller: news::Teller| {
                asked.trace(&sender, &names, &user, async |news| teller.tell(&news).await).await;
            };
            news::start(&host, &reactor, work).map_err(|e| Refusal::new(e.to_string()))
        }
    });
}
