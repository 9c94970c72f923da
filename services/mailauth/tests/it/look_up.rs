//! Look-ups through a host's own resolver, and through nothing else.

use crate::network::Network;
use crate::zone::{NOW, RECEIVER, Zone};
use inhost_base::{Duration, Endpoint};
use inhost_mailauth::{
    Answer, CheckConfig, Envelope, Kind, Plan, Query, Report, SpfVerdict, Verdict, check, look_up,
};
use inhost_names::proto::op::{Message, OpCode, ResponseCode};
use inhost_names::proto::rr::rdata::{A, MX, TXT};
use inhost_names::proto::rr::{Name, RData, Record, RecordType};
use inhost_names::{Hosts, Names, NamesConfig, Servers};
use inhost_socket::{Ends, Host};
use inhost_stack::UdpOptions;
use std::cell::RefCell;
use std::net::UdpSocket;
use std::rc::Rc;
use std::str::FromStr;

const MESSAGE: &[u8] = b"From: ada@example.com\r\n\r\nx\r\n";

fn answer(question: &[u8], zone: &Zone) -> Option<Vec<u8>> {
    let asked = Message::from_vec(question).unwrap();
    let query = asked.queries[0].clone();
    let name = query.name().to_lowercase().to_string();
    let bare = name.trim_end_matches('.').to_owned();
    let mut reply = Message::response(asked.id, OpCode::Query);
    reply.metadata.recursion_available = true;
    reply.add_query(query.clone());
    let data = match query.query_type() {
        RecordType::A if bare == "mail.example.com" => vec![RData::A(A([192, 0, 2, 1].into()))],
        RecordType::MX if bare == "example.com" => {
            let exchange = |preference, name| RData::MX(MX::new(preference, Name::from_str(name).unwrap()));
            vec![exchange(20, "mail.example.com."), exchange(10, "gone.example.com.")]
        }
        RecordType::TXT => {
            match zone.answer(&plan_query(&bare)) {
                Answer::Failed => return None,
                Answer::Texts(texts) => {
                    // In two strings, which are one text.
                    let halves = |text: &Vec<u8>| RData::TXT(TXT::from_bytes(text.chunks(9).collect()));
                    texts.iter().map(halves).collect()
                }
                _ => {
                    reply.metadata.response_code = ResponseCode::NXDomain;
                    Vec::new()
                }
            }
        }
        _ => {
            reply.metadata.response_code = ResponseCode::NXDomain;
            Vec::new()
        }
    };
    reply.add_answers(
        data.into_iter().map(|data| Record::from_rdata(Name::from_str(&name).unwrap(), 60, data)),
    );
    reply.to_vec().ok()
}

/// A question as a plan asks it; only plans make them.
fn plan_query(name: &str) -> Query {
    let config = CheckConfig::new(RECEIVER);
    let envelope = Envelope::new([192, 0, 2, 1].into(), "", &format!("x@{name}"));
    let missing = Plan::new(&config, envelope, b"", NOW).missing();
    missing.into_iter().find(|query| query.kind == Kind::Txt).unwrap_or_else(|| panic!("{name}"))
}

/// A name server on `host`; gives the names that it is asked for.
fn serve(host: &Host, zone: Zone) -> Rc<RefCell<Vec<String>>> {
    let log = Rc::new(RefCell::new(Vec::new()));
    let socket = host.udp(Endpoint::new([0, 0, 0, 0], 53), UdpOptions::default()).unwrap();
    let asked = log.clone();
    host.spawn(async move {
        let mut question = [0; 2048];
        loop {
            let received = socket.receive_from(&mut question).await.unwrap();
            let question = &question[..received.length_bytes];
            let name = Message::from_vec(question).unwrap().queries[0].name().to_lowercase().to_string();
            asked.borrow_mut().push(name);
            if let Some(reply) = answer(question, &zone) {
                socket.send_between(&reply, Ends::back(&received)).await.unwrap();
            }
        }
    })
    .detach();
    log
}

fn zone(spf: &str) -> Zone {
    Zone::of(&[
        ("example.com", spf),
        ("_dmarc.example.com", "v=DMARC1; p=reject"),
        ("_dmarc.silent.com", "FAILED"),
    ])
}

fn checked(network: &mut Network, message: &'static [u8]) -> Report {
    let host = network.ends[0].host.clone();
    let servers = Servers::of(["10.9.0.2".parse().unwrap()]);
    let names = Names::new(&host, NamesConfig::new(Hosts::default(), servers, [3; 32]));
    network.run(async move {
        let envelope = Envelope::new([192, 0, 2, 1].into(), "client", "ada@example.com");
        let mut plan = Plan::new(&CheckConfig::new(RECEIVER), envelope, message, NOW);
        look_up(&mut plan, &names, &host).await;
        plan.verify(message)
    })
}

/// Datagrams and connections that left by sockets of the system, or tried to, in this thread's network namespace.
fn sent_by_the_system() -> u64 {
    let wanted = ["Udp: OutDatagrams", "Tcp: ActiveOpens", "Ip: OutNoRoutes", "Ip: OutRequests"];
    let four = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let lines: Vec<&str> = four.lines().collect();
    let mut sum = 0;
    for pair in lines.chunks(2) {
        let (names, values) = (pair[0].split(' '), pair[1].split(' '));
        let kind = pair[0].split(' ').next().unwrap();
        for (name, value) in names.zip(values) {
            if wanted.contains(&format!("{kind} {name}").as_str()) {
                sum += value.parse::<u64>().unwrap();
            }
        }
    }
    let six = std::fs::read_to_string("/proc/thread-self/net/snmp6").unwrap_or_default();
    let counts =
        six.lines().filter(|line| line.starts_with("Udp6OutDatagrams") || line.starts_with("Ip6OutNoRoutes"));
    sum + counts.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum::<u64>()
}

#[test]
fn look_ups_leave_by_the_hosts_own_resolver_and_by_no_socket_of_the_system() {
    if !inhost_interop::own_network() {
        return;
    }
    let before = sent_by_the_system();
    let mut network = Network::new();
    let log = serve(&network.ends[1].host, zone("v=spf1 mx include:gone.example.com -all"));
    let report = checked(&mut network, MESSAGE);
    assert_eq!((report.spf.verdict, report.verdict), (SpfVerdict::Pass, Verdict::Pass), "{report:?}");
    for name in
        ["example.com.", "mail.example.com.", "gone.example.com.", "_dmarc.example.com.", "_dmarc.com."]
    {
        assert!(log.borrow().iter().any(|asked| asked == name), "{name}: {:?}", log.borrow());
    }
    assert_eq!(sent_by_the_system(), before);
    // The counters do count: one datagram that goes, and one that has no way to go.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(b"x", "127.0.0.1:53").unwrap();
    let after = sent_by_the_system();
    assert!(after > before, "{after}");
    let other = UdpSocket::bind("0.0.0.0:0").unwrap();
    assert!(other.send_to(b"x", "192.0.2.53:53").is_err());
    assert!(sent_by_the_system() > after);
}

#[test]
fn silence_ends_in_a_temporary_error_in_time() {
    let mut network = Network::new();
    serve(&network.ends[1].host, zone("v=spf1 -all"));
    let report = checked(&mut network, b"From: ada@silent.com\r\n\r\n");
    assert_eq!(report.verdict, Verdict::TemporaryError, "{report:?}");
    assert!(network.now.since(inhost_base::Instant::ZERO) < Duration::from_secs(21), "{:?}", network.now);
}

/// RFC 6762 §22.1: names of the link are not in the DNS, and strangers do not have this host ask its link.
#[test]
fn a_strangers_record_asks_nobody_on_the_link() {
    let mut network = Network::new();
    let log = serve(&network.ends[1].host, zone("v=spf1 exists:printer.local a:10.9.0.2.local -all"));
    let report = checked(&mut network, MESSAGE);
    assert_eq!(report.spf.verdict, SpfVerdict::Fail, "{report:?}");
    assert!(!log.borrow().iter().any(|name| name.contains("local")), "{:?}", log.borrow());
    assert!(network.now.since(inhost_base::Instant::ZERO) < Duration::from_secs(1), "{:?}", network.now);
}

#[test]
fn a_whole_check_verifies_on_another_thread() {
    let mut network = Network::new();
    serve(&network.ends[1].host, zone("v=spf1 mx -all"));
    let host = network.ends[0].host.clone();
    let servers = Servers::of(["10.9.0.2".parse().unwrap()]);
    let names = Names::new(&host, NamesConfig::new(Hosts::default(), servers, [3; 32]));
    // The network's time is virtual; this keeps it going while the other thread works.
    let ticking = host.clone();
    host.spawn(async move {
        loop {
            ticking.sleep(Duration::from_millis(1)).await;
            inhost_interop::pause(std::time::Duration::from_micros(50));
        }
    })
    .detach();
    let report = network.run(async move {
        let envelope = Envelope::new([192, 0, 2, 1].into(), "client", "ada@example.com");
        check(&CheckConfig::new(RECEIVER), envelope, MESSAGE.into(), &names, &host, NOW).await
    });
    assert_eq!(report.verdict, Verdict::Pass, "{report:?}");
}

/// A name server on a socket of the system, for programs of others. It lives in the network namespace of the test.
pub struct System {
    asked: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
    ends: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl System {
    pub fn serve(zone: Zone) -> System {
        let socket = UdpSocket::bind("127.0.0.1:53").unwrap();
        socket.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
        let asked = std::sync::Arc::<std::sync::Mutex<Vec<String>>>::default();
        let ends = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
        let (log, is_over) = (asked.clone(), ends.clone());
        let thread = std::thread::spawn(move || {
            let mut question = [0; 2048];
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut question) else { continue };
                let question = &question[..length];
                log.lock().unwrap().push(Message::from_vec(question).unwrap().queries[0].name().to_string());
                if let Some(reply) = answer(question, &zone) {
                    socket.send_to(&reply, from).unwrap();
                }
            }
        });
        System { asked, ends, thread: Some(thread) }
    }
    /// Whether it was asked for a name that begins like that.
    pub fn asked(&self, beginning: &str) -> bool {
        self.asked.lock().unwrap().iter().any(|name| name.starts_with(beginning))
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.ends.store(true, std::sync::atomic::Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
