//! A host without links, and endpoints on it.

use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr};
use inhost_socket::Host;
use inhost_stack::{Stack, StackConfig};
use inhost_xti::{Provider, TransportEndpoint};

/// The longest that anything here may take, in virtual time.
pub const DEADLINE: Duration = Duration::from_secs(120);

pub fn host() -> Host {
    Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO)
}

pub fn here(port: u16) -> Endpoint {
    Endpoint::new(Ipv4Addr::LOCALHOST, port)
}

/// Runs a test to its end, which must come within the deadline.
pub fn run<F: Future>(host: &Host, test: F) -> F::Output {
    let ran = host.run_alone(host.timeout(DEADLINE, test));
    ran.expect("something happens until the test ends").expect("the test ends within its deadline")
}

/// Lets everything that is on its way arrive.
pub async fn settle(host: &Host) {
    host.sleep(Duration::from_millis(500)).await;
}

/// An endpoint of TCP that is bound without a queue.
pub fn client(host: &Host) -> TransportEndpoint {
    let endpoint = TransportEndpoint::open(host, Provider::Tcp);
    endpoint.bind(None, 0).unwrap();
    endpoint
}

/// An endpoint of TCP that listens.
pub fn server(host: &Host, port: u16, queue_length: usize) -> TransportEndpoint {
    let endpoint = TransportEndpoint::open(host, Provider::Tcp);
    assert_eq!(endpoint.bind(Some(here(port)), queue_length).unwrap().queue_length, queue_length);
    endpoint
}

/// Two endpoints with a connection between them: the one that called, and the one that was called.
pub async fn connected(host: &Host) -> (TransportEndpoint, TransportEndpoint) {
    let (near, far) = (client(host), server(host, 700, 1));
    near.connect(here(700)).await.unwrap();
    let caller = far.listen().await.unwrap();
    far.accept(&far, caller.sequence).unwrap();
    (near, far)
}
