//! The sender and a server over a link that loses packets, with a server that goes away in the middle.

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint};
use inhost_mail::Body;
use inhost_mail::codec::{MailFrom, Mailbox, Recipient};
use inhost_mail::driver::{Answer, TlsClient};
use inhost_mail::queue::{NewMessage, NewRecipient, Queue, Reason};
use inhost_mail::sender::{Mailboxes, Sender, SenderConfig};
use inhost_mail::server::ServerConfig;
use inhost_names::{Names, NamesConfig};
use inhost_stack::ListenOptions;

use crate::network::Network;
use crate::place;

const MESSAGES: usize = 60;

thread_local! {
    /// The wall's clock of the sender, which follows the virtual one.
    static UNIX_S: Cell<u64> = const { Cell::new(1_700_000_000) };
}

fn unix_time() -> std::time::Duration {
    std::time::Duration::from_secs(UNIX_S.get())
}

struct None_;

impl Mailboxes for None_ {
    fn deliver<'a>(&'a self, _: &Mailbox, _: Option<&Mailbox>, _: &Body) -> Answer<'a, Result<(), Reason>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[test]
fn all_arrive_once_over_a_bad_link_and_past_a_dead_server() {
    let mut network = Network::losing(0.08);
    let far = network.ends[1].host.clone();
    // For the first minutes something else answers there: it greets and says nothing more.
    let listener = far.listen(Endpoint::new([0, 0, 0, 0], place::PORT), ListenOptions::default()).unwrap();
    let own = far.clone();
    let place = Rc::new(Cell::new(None));
    let opened = place.clone();
    far.spawn(async move {
        let until = own.now() + Duration::from_secs(400);
        let mut silent = Vec::new();
        let accepting = async {
            while let Ok(stream) = listener.accept().await {
                silent.push(stream);
            }
        };
        futures_lite::future::or(accepting, own.sleep_until(until)).await;
        drop((silent, listener));
        opened.set(Some(place::start(&own, ServerConfig::default())));
    })
    .detach();
    let near = network.ends[0].host.clone();
    let queue = Queue::in_memory().unwrap();
    let mut config = SenderConfig::new("near.example");
    config.routes.insert("*".into(), "smtp://10.9.0.2".parse().unwrap());
    config.replies = [60, 60, 60].map(Duration::from_secs);
    let names = Rc::new(Names::new(&near, NamesConfig::default()));
    let tls = TlsClient::new(rustls::RootCertStore::empty()).unwrap();
    let sender = Rc::new(Sender::new(&near, names, queue.clone(), Rc::new(None_), tls, unix_time, config));
    near.spawn(sender.clone().run()).detach();
    let clock = near.clone();
    near.spawn(async move {
        let (start, began) = (UNIX_S.get(), clock.now());
        loop {
            clock.sleep(Duration::from_millis(500)).await;
            UNIX_S.set(start + clock.now().since(began).as_secs());
        }
    })
    .detach();
    let told = network.run(async move {
        for number in 0..MESSAGES {
            let recipient = Recipient::new(format!("x{number}@here.example").parse().unwrap());
            let domain = "here.example".to_owned();
            let message = NewMessage {
                mail: MailFrom::default(),
                recipients: vec![NewRecipient { recipient, domain }],
                body: Body::new(format!("Subject: {number}\r\n\r\n{}", ".line\r\n".repeat(number * 100))),
                origin: "test".into(),
                arrived_s: unix_time().as_secs(),
                expires_s: unix_time().as_secs() + 86_400,
                is_signed: false,
            };
            queue.add(message).await.unwrap();
        }
        sender.poke();
        while queue.next_due_s().await.unwrap().is_some() || sender.connections() > 0 {
            near.sleep(Duration::from_secs(1)).await;
        }
        UNIX_S.get()
    });
    let place = place.take().unwrap();
    let mut arrived: Vec<_> = place.messages.borrow().iter().map(|(to, _)| to[0].clone()).collect();
    arrived.sort();
    let mut expected: Vec<_> = (0..MESSAGES).map(|number| format!("x{number}@here.example")).collect();
    expected.sort();
    assert_eq!(arrived, expected, "each of them once");
    for (to, text) in place.messages.borrow().iter() {
        let number: usize = to[0][1..to[0].find('@').unwrap()].parse().unwrap();
        let expected = format!("Subject: {number}\r\n\r\n{}", ".line\r\n".repeat(number * 100));
        assert_eq!(String::from_utf8_lossy(text), expected);
    }
    let took = told - 1_700_000_000;
    assert!((400..4000).contains(&took), "the retries follow the schedule: {took} s");
}
