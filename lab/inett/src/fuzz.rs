//! Fuzz targets: the machines and the JSON of the control connection, datagrams, plans, sweeps.

use inhost_base::Random;

use crate::distribution::Distribution;
use crate::iperf3::{
    Arrivals, Client, ClientEvent, Header, Parameters, Results, Server, ServerEvent, Step, cookie, parameters,
};
use crate::plan::{Kind, Plan};
use crate::sweep::Sweep;

/// One input, to everything that reads from the network or from a file.
pub fn fuzz_inett(input: &[u8]) {
    let (first, rest) = input.split_first().unwrap_or((&0, &[]));
    fuzz_server(rest, usize::from(*first % 16) + 1);
    fuzz_client(rest, usize::from(*first % 16) + 1, first % 2 == 0);
    fuzz_datagrams(rest, first % 2 == 0);
    if let Ok(parameters) = parameters(rest)
        && let Ok(plan) = parameters.to_plan()
    {
        assert_eq!(plan.validate(), Ok(()));
    }
    let text = String::from_utf8_lossy(rest);
    if let Ok(plan) = toml::from_str::<Plan>(&text) {
        let _ = plan.validate();
    }
    if let Ok(sweep) = Sweep::from_toml(&text) {
        assert!(sweep.points().iter().all(|point| point.plan.validate().is_ok()));
    }
    if let Ok(table) = Distribution::from_trace(&text) {
        assert!(table.draw(&mut Random::from_number(1)) <= table.greatest());
    }
    if let Ok(of) = serde_json::from_slice::<Distribution>(rest)
        && of.validate().is_ok()
    {
        assert!(of.draw(&mut Random::from_number(1)) <= of.greatest());
    }
}

fn fuzz_server(input: &[u8], chunk: usize) {
    let mut server = Server::default();
    for piece in input.chunks(chunk) {
        let Ok(steps) = server.receive(piece) else { return };
        for step in steps {
            match step {
                Step::Event(ServerEvent::Parameters(parameters)) => match parameters.to_plan() {
                    Ok(plan) => {
                        server.accept(plan.kind.is_transaction());
                        if !plan.kind.is_transaction() {
                            server.start();
                        }
                    }
                    Err(code) => assert_eq!(server.refuse(code, 0).len(), 9),
                },
                Step::Event(ServerEvent::Results(results)) => {
                    assert!(server.results(&results).len() > 4);
                }
                _ => {}
            }
        }
    }
}

fn fuzz_client(input: &[u8], chunk: usize, is_stream: bool) {
    let kind = if is_stream { Kind::Stream } else { Kind::Echo };
    let plan = Plan { kind, ..Plan::default() };
    let cookie = cookie(&mut Random::from_number(1));
    let (mut client, hello) = Client::new(&cookie, Parameters::from_plan(&plan));
    assert_eq!(hello.len(), 37);
    for piece in input.chunks(chunk) {
        let Ok(steps) = client.receive(piece) else { return };
        for step in steps {
            match step {
                Step::Event(ClientEvent::Run | ClientEvent::OpenTransactions) => drop(client.end()),
                Step::Event(ClientEvent::GiveResults) => drop(client.results(&Results::default())),
                _ => {}
            }
        }
    }
}

fn fuzz_datagrams(input: &[u8], is_64_bit: bool) {
    let mut arrivals = Arrivals::default();
    for (at, datagram) in input.chunks(17).enumerate() {
        if let Some(header) = Header::read(datagram, is_64_bit) {
            arrivals.take(header, at as u64 * 1000);
            assert!(arrivals.jitter_s.is_finite());
        }
    }
    assert!(arrivals.out_of_order <= arrivals.received);
}
