//! The connections of the servers, between two hosts in virtual time.

use super::network::Network;
use super::*;
use inhost_stack::ListenOptions;

const HERE: [u8; 4] = [10, 9, 0, 1];
const CLIENT: [u8; 4] = [10, 9, 0, 2];

/// A client that is gone says nothing and closes nothing: only probes find it out.
#[test]
fn callers_are_probed_while_they_say_nothing() {
    let mut network = Network::new();
    let (near, far) = (network.ends[0].host.clone(), network.ends[1].host.clone());
    let caller = far.clone();
    far.spawn(async move {
        let _stream = caller.connect(Endpoint::new(HERE, RSH_PORT)).await.unwrap();
        caller.sleep(Duration::from_secs(1)).await;
    })
    .detach();
    let keep_alive = network.run(async move {
        let listener = near.listen(Endpoint::new(HERE, RSH_PORT), ListenOptions::default()).unwrap();
        let stream = listener.accept().await.unwrap();
        assert_eq!(probe(&stream), KEEP_ALIVE);
        stream.options().unwrap().tcp.keep_alive
    });
    assert_eq!(keep_alive, Some(KEEP_ALIVE));
}

#[test]
fn a_reserved_port_that_is_taken_is_passed_over() {
    let mut network = Network::new();
    let (near, far) = (network.ends[0].host.clone(), network.ends[1].host.clone());
    let to = Endpoint::new(CLIENT, 1000);
    let listener = far.listen(to, ListenOptions::default()).unwrap();
    let ports = network.run(async move {
        let mut streams = Vec::new();
        for _ in 0..2 {
            streams.push(calls_back(&near, to, Some(KEEP_ALIVE)).await.unwrap());
        }
        assert_eq!(streams[0].options().unwrap().tcp.keep_alive, Some(KEEP_ALIVE));
        streams.iter().map(|stream| stream.local().port).collect::<Vec<_>>()
    });
    drop(listener);
    assert_eq!(ports, [1023, 1022]);
}

/// A client that refuses is not asked again and again.
#[test]
fn a_client_that_refuses_the_connection_for_errors_is_called_once() {
    let mut network = Network::new();
    let near = network.ends[0].host.clone();
    let took = network.run(async move {
        let begin = near.now();
        assert!(calls_back(&near, Endpoint::new(CLIENT, 1000), None).await.is_err());
        near.now().since(begin)
    });
    assert!(took < Duration::from_micros(100), "{took:?}");
}
