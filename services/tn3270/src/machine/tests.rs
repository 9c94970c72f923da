use inhost_base::{Instant, Random};
use inhost_telnet::codec::{DO, IAC, SB, SE, TelnetOption, WILL, WONT};

use super::*;
use crate::codec::*;

/// Carries octets both ways, in pieces, until both are silent.
struct Wire {
    server: Tn3270,
    client: Tn3270,
    events: [Vec<Event>; 2],
    piece: usize,
    decide: fn(&mut Tn3270, &Option<Resource>),
}

fn accept(server: &mut Tn3270, _: &Option<Resource>) {
    server.accept_device("LU001");
}

impl Wire {
    fn new(server: ServerConfig, client: ClientConfig) -> Wire {
        let (server, client) = (Tn3270::server(server), Tn3270::client(client));
        Wire { server, client, events: Default::default(), piece: usize::MAX, decide: accept }
    }
    fn run(&mut self) {
        loop {
            let before = (self.server.pending().len(), self.client.pending().len());
            for turn in 0..2 {
                let (from, to) = match turn {
                    0 => (&mut self.server, &mut self.client),
                    _ => (&mut self.client, &mut self.server),
                };
                let octets = from.pending().to_vec();
                from.sent(octets.len());
                for piece in octets.chunks(self.piece.min(octets.len().max(1))) {
                    let mut input = piece;
                    while let Some(event) = to.receive(&mut input) {
                        if let Event::DeviceRequested { resource, .. } = &event {
                            (self.decide)(to, resource);
                        }
                        self.events[turn].push(event);
                    }
                }
            }
            if before == (0, 0) {
                return;
            }
        }
    }
}

fn client() -> ClientConfig {
    ClientConfig::new("IBM-3279-4-E", "IBM-3278-4-E")
}

/// spec: RFC2355 7
#[test]
fn tn3270e_is_negotiated_in_any_pieces() {
    for piece in [1, 2, 3, 7, usize::MAX] {
        let mut wire = Wire::new(ServerConfig::default(), client());
        wire.piece = piece;
        wire.server.start();
        wire.run();
        assert_eq!(wire.events[0], [Event::Ready(Protocol::Tn3270e)]);
        assert!(matches!(
            wire.events[1][..],
            [Event::DeviceRequested { .. }, Event::Ready(Protocol::Tn3270e)]
        ));
        assert_eq!((wire.server.device_type(), wire.client.name()), ("IBM-3278-4-E", Some("LU001")));
        // The data streams of printers are not what a terminal asks for.
        let both = Functions::of(&[Function::BindImage, Function::Responses, Function::SysReq]);
        assert_eq!((wire.server.functions(), wire.client.functions()), (both, both));
    }
}

/// spec: RFC1576 3
#[test]
fn tn3270_is_negotiated_when_either_side_has_no_tn3270e() {
    for (server, piece) in [(true, 1), (true, usize::MAX), (false, 2)] {
        let config = ServerConfig { has_tn3270e: server, ..ServerConfig::default() };
        let mut ours = client();
        ours.has_tn3270e = !server;
        let mut wire = Wire::new(config, ours);
        wire.piece = piece;
        wire.server.start();
        wire.run();
        assert_eq!(wire.events, [vec![Event::Ready(Protocol::Tn3270)], vec![Event::Ready(Protocol::Tn3270)]]);
        assert_eq!(wire.server.device_type(), "IBM-3279-4-E");
        // A record with every octet, in both directions.
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(wire.server.send_record(DataType::Data3270, RESPONSE_ALWAYS, &all), None);
        wire.client.send_record(DataType::Data3270, RESPONSE_NONE, &all);
        wire.run();
        let record = Event::Record { header: Header::new(DataType::Data3270), data: all };
        assert_eq!((wire.events[0].last(), wire.events[1].last()), (Some(&record), Some(&record)));
    }
}

/// spec: RFC2355 10.4
#[test]
fn records_have_numbers_and_responses() {
    let mut wire = Wire::new(ServerConfig::default(), client());
    wire.server.start();
    wire.run();
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(wire.server.send_record(DataType::Data3270, RESPONSE_ALWAYS, &all), Some(0));
    assert_eq!(wire.server.send_record(DataType::Data3270, RESPONSE_ERROR, &[0xff]), Some(1));
    assert_eq!(wire.server.send_record(DataType::Data3270, RESPONSE_NONE, &[]), None);
    wire.run();
    let records: Vec<_> = wire.events[0]
        .iter()
        .filter_map(|event| match event {
            Event::Record { header, data } => Some((*header, data.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(records.iter().map(|(header, _)| header.sequence).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((&records[0].1, &records[1].1), (&all, &vec![0xff]));
    wire.client.respond(records[0].0, Ok(()));
    wire.client.respond(records[1].0, Ok(()));
    wire.client.respond(records[1].0, Err(Sense::OperationCheck));
    wire.client.respond(records[2].0, Err(Sense::CommandReject));
    assert!(wire.client.send_sys_req());
    wire.client.send_attention();
    wire.run();
    assert_eq!(
        wire.events[1][2..],
        [
            Event::Response { sequence: 0, outcome: Ok(()) },
            Event::Response { sequence: 1, outcome: Err(Sense::OperationCheck) },
            Event::SysReq,
            Event::Attention,
        ]
    );
}

#[test]
fn numbers_go_back_to_zero() {
    let mut wire = Wire::new(ServerConfig::default(), client());
    wire.server.start();
    wire.run();
    for number in 0..=32_767 {
        assert_eq!(wire.server.send_record(DataType::Data3270, RESPONSE_ERROR, &[]), Some(number));
        wire.server.sent(usize::MAX);
    }
    assert_eq!(wire.server.send_record(DataType::Data3270, RESPONSE_ERROR, &[]), Some(0));
}

#[test]
fn a_client_whose_device_is_refused_goes_on_without_tn3270e() {
    let mut ours = client();
    ours.resource = Some(Resource::Connect("BUSY".into()));
    let mut wire = Wire::new(ServerConfig::default(), ours);
    wire.decide = |server, resource| {
        assert_eq!(*resource, Some(Resource::Connect("BUSY".into())));
        server.reject_device(DeviceReason::DeviceInUse);
    };
    wire.server.start();
    wire.run();
    assert_eq!(
        wire.events[0],
        [Event::DeviceRejected(DeviceReason::DeviceInUse), Event::Ready(Protocol::Tn3270)]
    );
}

fn feed(machine: &mut Tn3270, octets: &[u8]) -> Vec<Event> {
    let mut input = octets;
    core::iter::from_fn(|| machine.receive(&mut input)).collect()
}

#[test]
fn a_client_that_is_not_a_3270_is_known() {
    let terminal_type = TelnetOption::TerminalType.code();
    let mut server = Tn3270::server(ServerConfig::default());
    server.start();
    assert_eq!(server.pending(), [IAC, DO, TN3270E]);
    assert_eq!(feed(&mut server, &[IAC, WONT, TN3270E]), []);
    assert_eq!(feed(&mut server, &[IAC, WONT, terminal_type]), [Event::NotA3270(String::new())]);

    let mut server = Tn3270::server(ServerConfig::default());
    server.start();
    feed(&mut server, &[IAC, WONT, TN3270E, IAC, WILL, terminal_type]);
    let name = [&[IAC, SB, terminal_type, 0], &b"VT220"[..], &[IAC, SE]].concat();
    assert_eq!(feed(&mut server, &name), [Event::NotA3270("VT220".into())]);

    // One that asks for a device behind its type.
    let mut server = Tn3270::server(ServerConfig::default());
    server.start();
    feed(&mut server, &[IAC, WONT, TN3270E, IAC, WILL, terminal_type]);
    let name = [&[IAC, SB, terminal_type, 0], &b"ibm-3278-2@lu9"[..], &[IAC, SE]].concat();
    name.chunks(1).for_each(|octet| assert_eq!(feed(&mut server, octet), []));
    assert_eq!((server.device_type(), server.wanted_name()), ("IBM-3278-2", Some("LU9")));

    // One that says so, and then refuses END-OF-RECORD.
    let mut server = Tn3270::server(ServerConfig::default());
    server.start();
    feed(&mut server, &[IAC, WONT, TN3270E, IAC, WILL, terminal_type]);
    let name = [&[IAC, SB, terminal_type, 0], &b"IBM-3278-2"[..], &[IAC, SE]].concat();
    assert_eq!(feed(&mut server, &name), []);
    assert_eq!(feed(&mut server, &[IAC, WONT, 25]), [Event::NotA3270("IBM-3278-2".into())]);
    assert_eq!(feed(&mut server, b"hello"), [Event::Nvt(b"hello".to_vec())]);
}

#[test]
fn limits_hold() {
    let mut wire = Wire::new(ServerConfig::default(), client());
    wire.server.start();
    wire.run();
    let mut events = Vec::new();
    for _ in 0..=RECORD_BYTES / 1024 {
        events.extend(feed(&mut wire.server, &[0; 1024]));
    }
    assert_eq!(events, [Event::Violation(Violation::Record)]);
    assert_eq!(feed(&mut wire.server, &[IAC, 239]), []);

    // Devices without end.
    let mut server = Tn3270::server(ServerConfig::default());
    server.start();
    feed(&mut server, &[IAC, WILL, TN3270E]);
    let request = [&[IAC, SB, TN3270E, 2, 7], &b"IBM-3278-2"[..], &[IAC, SE]].concat();
    for _ in 0..DEVICE_ATTEMPTS {
        assert!(matches!(feed(&mut server, &request)[..], [Event::DeviceRequested { .. }]));
        server.reject_device(DeviceReason::InvalidName);
    }
    assert_eq!(feed(&mut server, &request), [Event::Violation(Violation::Negotiation)]);

    // Options without end draw replies until the budget is used up, and earn some back.
    let mut client = Tn3270::client(client());
    client.advance(Instant::from_millis(1));
    let mut count = 0;
    let violated = core::iter::repeat_with(|| feed(&mut client, &[IAC, DO, 99, IAC, WILL, TN3270E]))
        .inspect(|_| count += 1)
        .find(|events| !events.is_empty());
    assert_eq!(violated, Some(vec![Event::Violation(Violation::Negotiation)]));
    assert!((500..1000).contains(&count), "{count}");
    assert!(client.pending().len() <= 4200);
}

#[test]
fn nothing_that_comes_panics() {
    let mut random = Random::from_number(2355);
    for round in 0..3000 {
        let mut machine = match round % 2 {
            0 => Tn3270::server(ServerConfig::default()),
            _ => Tn3270::client(client()),
        };
        machine.start();
        for _ in 0..20 {
            let length = random.public_below(30);
            let some = [IAC, SB, SE, WILL, WONT, DO, 254, 239, 40, 24, 25, 0, 2, 3, 4, 7, 8];
            let octets: Vec<u8> = (0..length)
                .map(|_| match random.public_below(4) {
                    0 => random.public_below(256) as u8,
                    _ => some[random.public_below(some.len() as u32) as usize],
                })
                .collect();
            for event in feed(&mut machine, &octets) {
                if matches!(event, Event::DeviceRequested { .. }) {
                    machine.accept_device("LU001");
                }
            }
            machine.send_record(DataType::Data3270, RESPONSE_ALWAYS, &octets);
        }
    }
}
