//! Where mail goes by the DNS: exchangers in their order, the domain itself, nobody.

use std::cell::RefCell;
use std::rc::Rc;

use inhost_base::{Duration, Endpoint};
use inhost_mail::Body;
use inhost_mail::codec::{MailFrom, Mailbox, Recipient};
use inhost_mail::driver::{Answer, TlsClient};
use inhost_mail::queue::{NewMessage, NewRecipient, Queue, Reason};
use inhost_mail::sender::{Mailboxes, Sender, SenderConfig};
use inhost_mail::server::ServerConfig;
use inhost_names::proto::op::{Message, OpCode, ResponseCode};
use inhost_names::proto::rr::rdata::{A, MX};
use inhost_names::proto::rr::{Name, RData, Record, RecordType};
use inhost_names::{Hosts, Names, NamesConfig, Servers};
use inhost_socket::{Ends, Host};
use inhost_stack::UdpOptions;

use crate::network::Network;
use crate::place;

/// The records; `None` is no answer.
fn records(name: &str, kind: RecordType) -> Option<(ResponseCode, Vec<RData>)> {
    let exchange = |preference, name: &str| RData::MX(MX::new(preference, name.parse::<Name>().unwrap()));
    let found = match (name, kind) {
        // The best one is a host that does not answer.
        ("full.here.example", RecordType::MX) => {
            vec![exchange(20, "mx.here.example."), exchange(10, "dead.here.example.")]
        }
        ("null.here.example", RecordType::MX) => vec![exchange(0, ".")],
        ("loop.here.example", RecordType::MX) => vec![exchange(10, "near.example.")],
        ("dead.here.example", RecordType::A) => vec![RData::A(A([10, 9, 0, 77].into()))],
        ("mx.here.example" | "direct.here.example", RecordType::A) => vec![RData::A(A([10, 9, 0, 2].into()))],
        ("silent.here.example", _) => return None,
        ("none.here.example", _) => return Some((ResponseCode::NXDomain, Vec::new())),
        _ => Vec::new(),
    };
    Some((ResponseCode::NoError, found))
}

/// A name server.
fn serve_names(host: &Host) {
    let socket = host.udp(Endpoint::new([0, 0, 0, 0], 53), UdpOptions::default()).unwrap();
    host.spawn(async move {
        let mut question = [0; 2048];
        loop {
            let received = socket.receive_from(&mut question).await.unwrap();
            let asked = Message::from_vec(&question[..received.length_bytes]).unwrap();
            let query = asked.queries[0].clone();
            let name = query.name().to_lowercase();
            let text = name.to_string();
            let Some((code, found)) = records(text.trim_end_matches('.'), query.query_type()) else {
                continue;
            };
            let mut reply = Message::response(asked.id, OpCode::Query);
            reply.metadata.recursion_available = true;
            reply.metadata.response_code = code;
            reply.add_query(query);
            reply.add_answers(found.into_iter().map(|data| Record::from_rdata(name.clone(), 60, data)));
            socket.send_between(&reply.to_vec().unwrap(), Ends::back(&received)).await.unwrap();
        }
    })
    .detach();
}

/// The mailboxes of the sender's host: they get the reports.
#[derive(Default)]
struct Reports(RefCell<Vec<String>>);

impl Mailboxes for Reports {
    fn deliver<'a>(
        &'a self,
        _: &Mailbox,
        _: Option<&Mailbox>,
        body: &Body,
    ) -> Answer<'a, Result<(), Reason>> {
        let text = body.read(1 << 20).unwrap();
        self.0.borrow_mut().push(String::from_utf8_lossy(&text).into_owned());
        Box::pin(std::future::ready(Ok(())))
    }
}

/// spec: RFC5321 §5.1, RFC7505 §3
#[test]
fn mail_goes_where_the_dns_says() {
    let mut network = Network::new();
    let far = network.ends[1].host.clone();
    serve_names(&far);
    let place = place::start(&far, ServerConfig::default());
    let near = network.ends[0].host.clone();
    let queue = Queue::in_memory().unwrap();
    let mut config = SenderConfig::new("near.example");
    config.routes.insert("near.example".into(), "local".parse().unwrap());
    config.connect = Duration::from_secs(20);
    let servers = Servers::parse("nameserver 10.9.0.2\noptions timeout:1 attempts:1\n");
    let names = Rc::new(Names::new(&near, NamesConfig::new(Hosts::default(), servers, [7; 32])));
    let reports = Rc::new(Reports::default());
    let tls = TlsClient::new(rustls::RootCertStore::empty()).unwrap();
    let unix_time = || std::time::Duration::from_secs(1_700_000_000);
    let sender = Rc::new(Sender::new(&near, names, queue.clone(), reports.clone(), tls, unix_time, config));
    near.spawn(sender.clone().run()).detach();
    let next_due_s = network.run(async move {
        for domain in ["full", "direct", "null", "none", "loop", "silent"] {
            let domain = format!("{domain}.here.example");
            let recipient = Recipient::new(format!("x@{domain}").parse().unwrap());
            let mut mail = MailFrom::default();
            mail.sender = Some("ada@near.example".parse().unwrap());
            let message = NewMessage {
                mail,
                recipients: vec![NewRecipient { recipient, domain }],
                body: Body::new("Subject: x\r\n\r\ntext\r\n"),
                origin: "test".into(),
                arrived_s: 1_700_000_000,
                expires_s: 1_800_000_000,
                is_signed: false,
            };
            queue.add(message).await.unwrap();
        }
        sender.poke();
        near.sleep(Duration::from_secs(60)).await;
        assert_eq!(sender.connections(), 0);
        queue.next_due_s().await.unwrap()
    });
    let mut arrived: Vec<_> = place.messages.borrow().iter().map(|(to, _)| to[0].clone()).collect();
    arrived.sort();
    assert_eq!(arrived, ["x@direct.here.example", "x@full.here.example"]);
    let reports = reports.0.borrow();
    assert_eq!(reports.len(), 3, "{reports:#?}");
    for (domain, why) in [
        ("null", "null.here.example takes no mail, says its MX record"),
        ("none", "there is no domain none.here.example"),
        ("loop", "the mail exchanger near.example is this host"),
    ] {
        let to = format!("Final-Recipient: rfc822; x@{domain}.here.example\r\nAction: failed");
        let report = reports.iter().find(|report| report.contains(&to)).unwrap();
        assert!(report.contains(why) && report.contains("To: <ada@near.example>"), "{report}");
    }
    assert_eq!(next_due_s, Some(1_700_000_300), "the one whose name server is silent waits");
}
