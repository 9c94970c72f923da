//! Names on two hosts: one asks and connects, the other is name server and destination.

use crate::network::Network;
use hickory_proto::op::{Message, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use inhost_base::{Duration, Endpoint, IpAddr};
use inhost_names::{ConnectByNameError, Hosts, LookUpError, Names, NamesConfig, Servers};
use inhost_socket::{Ends, Host};
use inhost_stack::{ListenOptions, UdpOptions};
use std::cell::RefCell;
use std::rc::Rc;
use std::str::FromStr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What the fake server knows: name, address.
const ZONE: [(&str, &str); 8] = [
    ("both.example.", "10.9.0.2"),
    ("both.example.", "2001:db8:9::2"),
    ("four.example.", "10.9.0.2"),
    ("hole.example.", "10.9.0.2"),
    // Nobody has this address, and nobody says so.
    ("hole.example.", "2001:db8:9::99"),
    ("shut.example.", "10.9.0.2"),
    ("big.example.", "10.9.0.2"),
    ("host.search.example.", "10.9.0.2"),
];

/// What the server was asked, with the transport.
type Log = Rc<RefCell<Vec<String>>>;

fn answer(question: &[u8], over_tcp: bool, log: &Log) -> Vec<u8> {
    let asked = Message::from_vec(question).unwrap();
    let query = asked.queries[0].clone();
    let name = query.name().to_lowercase().to_string();
    log.borrow_mut().push(format!("{} {name} {}", if over_tcp { "tcp" } else { "udp" }, query.query_type()));
    let mut reply = Message::response(asked.id, OpCode::Query);
    reply.metadata.recursion_desired = true;
    reply.metadata.recursion_available = true;
    reply.add_query(query.clone());
    if name == "big.example." && !over_tcp {
        reply.metadata.truncation = true;
        return reply.to_vec().unwrap();
    }
    for (_, address) in ZONE.iter().filter(|(known, _)| *known == name) {
        let data = match address.parse::<IpAddr>().unwrap() {
            IpAddr::V4(a) => RData::A(A(a)),
            IpAddr::V6(a) => RData::AAAA(AAAA(a)),
        };
        if query.query_type() == data.record_type() {
            reply.add_answer(Record::from_rdata(Name::from_str(&name).unwrap(), 60, data));
        }
    }
    if !ZONE.iter().any(|(known, _)| *known == name) {
        reply.metadata.response_code = ResponseCode::NXDomain;
    }
    reply.to_vec().unwrap()
}

/// A name server on `host`, and a greeter at port 7777.
fn serve(host: &Host) -> Log {
    let log = Log::default();
    let any = Endpoint::new([0, 0, 0, 0], 53);
    let socket = host.udp(any, UdpOptions::default()).unwrap();
    let udp_log = log.clone();
    host.spawn(async move {
        let mut question = [0; 2048];
        loop {
            let received = socket.receive_from(&mut question).await.unwrap();
            let reply = answer(&question[..received.length_bytes], false, &udp_log);
            socket.send_between(&reply, Ends::back(&received)).await.unwrap();
        }
    })
    .detach();
    let listener = host.listen(any, ListenOptions::default()).unwrap();
    let (tcp_log, tcp_host) = (log.clone(), host.clone());
    host.spawn(async move {
        while let Ok(mut stream) = listener.accept().await {
            let log = tcp_log.clone();
            tcp_host
                .spawn(async move {
                    while let Ok(length) = stream.read_u16().await {
                        let mut question = vec![0; usize::from(length)];
                        stream.read_exact(&mut question).await.unwrap();
                        let reply = answer(&question, true, &log);
                        stream.write_all(&(reply.len() as u16).to_be_bytes()).await.unwrap();
                        stream.write_all(&reply).await.unwrap();
                    }
                })
                .detach();
        }
    })
    .detach();
    for any in ["0.0.0.0", "::"] {
        let any = Endpoint::new(any.parse::<IpAddr>().unwrap(), 7777);
        let listener = host.listen(any, ListenOptions::default()).unwrap();
        host.spawn(async move {
            while let Ok(mut stream) = listener.accept().await {
                let greeting = format!("hello from {}", stream.local().address);
                stream.write_all(greeting.as_bytes()).await.unwrap();
            }
        })
        .detach();
    }
    log
}

fn names(network: &Network, servers: Servers) -> Rc<Names> {
    let hosts = Hosts::parse("10.9.0.2 table\n");
    Rc::new(Names::new(&network.ends[0].host, NamesConfig::new(hosts, servers, [0; 32])))
}

fn server() -> Servers {
    Servers::of(["10.9.0.2".parse().unwrap()])
}

fn look_up(network: &mut Network, names: &Rc<Names>, name: &'static str) -> Result<Vec<String>, LookUpError> {
    let names = names.clone();
    let found = network.run(async move { names.look_up(name).await });
    found.map(|addresses| addresses.iter().map(ToString::to_string).collect())
}

fn greeting(
    network: &mut Network,
    names: &Rc<Names>,
    name: &'static str,
    port: u16,
) -> Result<String, ConnectByNameError> {
    let names = names.clone();
    network.run(async move {
        let mut stream = names.connect(name, port).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        Ok(text)
    })
}

#[test]
fn addresses_of_both_families_come_over_udp_and_are_remembered() {
    let mut network = Network::new();
    let log = serve(&network.ends[1].host);
    let names = names(&network, server());
    let found = look_up(&mut network, &names, "both.example").unwrap();
    assert_eq!(found, ["2001:db8:9::2", "10.9.0.2"]);
    assert_eq!(look_up(&mut network, &names, "four.example").unwrap(), ["10.9.0.2"]);
    let asked = log.borrow().len();
    assert_eq!(look_up(&mut network, &names, "Both.Example.").unwrap(), found);
    assert_eq!(log.borrow().len(), asked, "{log:?}");
    assert!(log.borrow().iter().all(|question| question.starts_with("udp")));
}

#[test]
fn a_truncated_answer_is_asked_for_over_tcp() {
    let mut network = Network::new();
    let log = serve(&network.ends[1].host);
    let names = names(&network, server());
    assert_eq!(look_up(&mut network, &names, "big.example").unwrap(), ["10.9.0.2"]);
    for kind in [RecordType::A, RecordType::AAAA] {
        for transport in ["udp", "tcp"] {
            assert!(log.borrow().contains(&format!("{transport} big.example. {kind}")), "{log:?}");
        }
    }
}

#[test]
fn what_is_not_there_is_said_clearly() {
    let mut network = Network::new();
    serve(&network.ends[1].host);
    let names = names(&network, server());
    let missing = look_up(&mut network, &names, "missing.example").unwrap_err();
    assert_eq!(missing.to_string(), "there is no host missing.example, says 10.9.0.2:53; check the spelling");
    let shut = greeting(&mut network, &names, "missing.example", 7777).unwrap_err();
    assert!(matches!(shut, ConnectByNameError::LookUp(LookUpError::NoSuchName { .. })), "{shut}");
    let alone = self::names(&network, Servers::default());
    let none = look_up(&mut network, &alone, "both.example").unwrap_err();
    assert!(matches!(none, LookUpError::NoServers { .. }), "{none}");
}

#[test]
fn a_search_domain_completes_a_short_name() {
    let mut network = Network::new();
    serve(&network.ends[1].host);
    let mut servers = server();
    servers.search = vec!["search.example".into()];
    let names = names(&network, servers);
    assert_eq!(look_up(&mut network, &names, "host").unwrap(), ["10.9.0.2"]);
}

#[test]
fn a_dead_server_is_given_up_in_its_time_and_another_one_asked() {
    let mut network = Network::new();
    serve(&network.ends[1].host);
    let asking = |servers: Vec<Endpoint>| {
        let mut asked = Servers::default();
        (asked.servers, asked.timeout, asked.attempts) = (servers, Duration::from_secs(2), 1);
        asked
    };
    let dead = Endpoint::new([10, 9, 0, 99], 53);
    let names_dead = names(&network, asking(vec![dead]));
    let started = network.now;
    let error = look_up(&mut network, &names_dead, "both.example").unwrap_err();
    assert!(matches!(error, LookUpError::NoAnswer { .. }), "{error}");
    let took = network.now.since(started);
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(12), "{took}");
    let second = vec![dead, Endpoint::new([10, 9, 0, 2], 53)];
    let names_second = names(&network, asking(second));
    assert_eq!(look_up(&mut network, &names_second, "four.example").unwrap(), ["10.9.0.2"]);
}

#[test]
fn literal_addresses_and_the_table_ask_no_one() {
    let mut network = Network::new();
    let log = serve(&network.ends[1].host);
    let names = names(&network, server());
    assert_eq!(look_up(&mut network, &names, "table").unwrap(), ["10.9.0.2"]);
    assert_eq!(greeting(&mut network, &names, "[2001:db8:9::2]", 7777).unwrap(), "hello from 2001:db8:9::2");
    assert_eq!(greeting(&mut network, &names, "table", 7777).unwrap(), "hello from 10.9.0.2");
    assert!(log.borrow().is_empty());
}

/// spec: RFC8305
#[test]
fn the_race_prefers_ipv6_and_passes_a_black_hole_after_a_quarter_second() {
    let mut network = Network::new();
    serve(&network.ends[1].host);
    let names = names(&network, server());
    let started = network.now;
    assert_eq!(greeting(&mut network, &names, "both.example", 7777).unwrap(), "hello from 2001:db8:9::2");
    assert!(network.now.since(started) < Duration::from_millis(50), "{:?}", network.now);
    let started = network.now;
    assert_eq!(greeting(&mut network, &names, "hole.example", 7777).unwrap(), "hello from 10.9.0.2");
    let took = network.now.since(started);
    assert!(took >= Duration::from_millis(250) && took < Duration::from_millis(400), "{took}");
}

#[test]
fn when_every_address_refuses_each_is_named() {
    let mut network = Network::new();
    serve(&network.ends[1].host);
    let names = names(&network, server());
    let error = greeting(&mut network, &names, "both.example", 9).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("cannot connect to both.example port 9: 2001:db8:9::2: "), "{text}");
    assert!(text.contains("10.9.0.2: "), "{text}");
    assert!(network.now < inhost_base::Instant::from_millis(200), "a refusal is not waited out");
}
