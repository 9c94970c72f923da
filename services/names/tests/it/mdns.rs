//! Names of the link: one host asks, the other has the name.

use crate::network::Network;
use hickory_proto::op::{Message, OpCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record, RecordType};
use inhost_base::{Duration, Endpoint, IpAddr};
use inhost_ip::InterfaceView;
use inhost_names::mdns::{GROUPS, MDNS_PORT};
use inhost_names::{LookUpError, Names, NamesConfig, RecordsRequest, Source};
use inhost_socket::Host;
use inhost_stack::UdpOptions;
use std::cell::Cell;
use std::rc::Rc;

/// Answers for `multics.local` over IPv4: by unicast or multicast. Returns the number of questions received.
fn responder(host: &Host, to_all: bool) -> Rc<Cell<u32>> {
    let link = host.with_stack(|stack, _| stack.links().last().unwrap());
    host.with_stack_and_sink(|stack, now, sink| {
        stack.with_ip(now, sink, |ip, environment| ip.join_group(link, GROUPS[0], environment)).unwrap();
    });
    let any = Endpoint::new([0, 0, 0, 0], MDNS_PORT);
    let mut options = UdpOptions::default();
    options.link = Some(link);
    let socket = host.udp(any, options).unwrap();
    let questions = Rc::new(Cell::new(0));
    let count = questions.clone();
    host.spawn(async move {
        let mut buffer = [0; 2048];
        loop {
            let Ok(received) = socket.receive_from(&mut buffer).await else { continue };
            let question = Message::from_vec(&buffer[..received.length_bytes]).unwrap();
            count.set(count.get() + 1);
            let query = question.queries[0].clone();
            if query.query_type() != RecordType::A || query.name().to_string() != "multics.local." {
                continue;
            }
            let mut reply = Message::response(if to_all { 0 } else { question.metadata.id }, OpCode::Query);
            let data = RData::A(A::new(10, 9, 0, 2));
            reply.add_answer(Record::from_rdata(query.name().clone(), 120, data));
            let to = if to_all { Endpoint::new(GROUPS[0], MDNS_PORT) } else { received.from };
            socket.send_to(&reply.to_vec().unwrap(), to).await.unwrap();
        }
    })
    .detach();
    questions
}

fn names(network: &Network) -> Rc<Names> {
    Rc::new(Names::new(&network.ends[0].host, NamesConfig::default()))
}

#[test]
fn an_answer_comes_to_whoever_asked_or_to_all() {
    for to_all in [false, true] {
        let mut network = Network::new();
        let questions = responder(&network.ends[1].host, to_all);
        let names = names(&network);
        let asking = names.clone();
        let mut request = RecordsRequest::new("multics.local");
        request.kinds = vec![RecordType::A];
        let found = network.run(async move { asking.records(&request).await.unwrap() });
        assert_eq!(found[0].source, Source::Link);
        let answer = found[0].result.as_ref().unwrap();
        assert_eq!(answer.records[0].data.to_string(), "10.9.0.2", "to all: {to_all}");
        assert_eq!(found[0].attempts[0].server, Endpoint::new([10, 9, 0, 2], MDNS_PORT));
        assert!(questions.get() > 0 && found[0].took < Duration::from_secs(1), "{}", found[0].took);
        let groups = network.ends[0].host.with_stack(|stack, _| {
            stack
                .ip()
                .interfaces()
                .flat_map(InterfaceView::groups)
                .filter(|group| GROUPS.contains(group))
                .count()
        });
        assert_eq!(groups, 0, "the groups are left");
    }
}

#[test]
fn names_of_the_link_are_looked_up_there_and_nowhere_else() {
    let mut network = Network::new();
    responder(&network.ends[1].host, false);
    let names = names(&network);
    let asking = names.clone();
    let found = network.run(async move { asking.look_up("multics.local").await });
    assert_eq!(found, Ok(vec![IpAddr::from([10, 9, 0, 2])]));
    let asking = names.clone();
    let nobody = network.run(async move { asking.look_up("nobody.local").await });
    assert_eq!(nobody, Err(LookUpError::NobodyHas { name: "nobody.local".into() }));
}
