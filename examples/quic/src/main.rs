//! Moves megabytes over QUIC between two hosts of one process: `inhost-example-quic [MEGABYTES]`.

use std::error::Error;
use std::sync::Arc;

use inhost::Host;
use inhost::link::memory;
use inhost_example_quic::{Counts, QuicSocket, endpoint_on};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::{ClientConfig, Endpoint, ServerConfig};

type Anyhow<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes of one write.
const PIECE_BYTES: usize = 64 * 1024;
const MEGABYTE: u64 = 1_000_000;

#[tokio::main]
async fn main() -> Anyhow<()> {
    let megabytes: u64 = std::env::args().nth(1).map_or(Ok(50), |text| text.parse())?;
    let (near, far) = hosts()?;
    let (server_config, client_config) = certificates()?;

    let server_socket = Arc::new(QuicSocket::bind(&far, "10.9.0.2:443".parse()?).await?);
    let server = endpoint_on(server_socket.clone(), Some(server_config))?;
    let serving = tokio::spawn(serve(server));

    let client_socket = Arc::new(QuicSocket::bind(&near, "10.9.0.1:0".parse()?).await?);
    let mut client = endpoint_on(client_socket.clone(), None)?;
    client.set_default_client_config(client_config);

    let connection = client.connect("10.9.0.2:443".parse()?, "server")?.await?;
    let begin = tokio::time::Instant::now();
    let (mut send, mut receive) = connection.open_bi().await?;
    let mut left = megabytes * MEGABYTE;
    let mut sum = 0;
    while left > 0 {
        let piece: Vec<u8> = (0..left.min(PIECE_BYTES as u64)).map(|at| (left + at) as u8).collect();
        sum = checksum(sum, &piece);
        send.write_all(&piece).await?;
        left -= piece.len() as u64;
    }
    send.finish()?;
    let answer = receive.read_to_end(16).await?;
    let seconds = begin.elapsed().as_secs_f64();
    if answer != [(megabytes * MEGABYTE).to_be_bytes(), sum.to_be_bytes()].concat() {
        return Err("the server received something else".into());
    }
    let path = connection.stats().path;
    connection.close(0u32.into(), b"done");
    client.wait_idle().await;
    serving.await??;

    println!("{megabytes} MB over QUIC in {seconds:.2} s, {:.0} MB/s", megabytes as f64 / seconds);
    println!("client: {}", line(client_socket.sent(), client_socket.received()));
    println!("server: {}", line(server_socket.sent(), server_socket.received()));
    println!("lost packets: {}", path.lost_packets);
    println!("dropped by our sockets: {}", client_socket.dropped() + server_socket.dropped());
    near.shutdown().await;
    far.shutdown().await;
    Ok(())
}

fn line(sent: Counts, received: Counts) -> String {
    let one = |what: &str, counts: Counts| {
        let Counts { calls, datagrams, marked } = counts;
        format!("{what} {datagrams} datagrams in {calls} calls, {marked} marked for ECN")
    };
    format!("{}; {}", one("sent", sent), one("received", received))
}

/// Two hosts on threads of their own, joined by a link of memory.
fn hosts() -> Anyhow<(Host, Host)> {
    let config = memory::Config { doorbell: true, ..memory::Config::default() };
    let (near, far) = memory::pair(&config)?;
    let (near_address, far_address) = ("10.9.0.1/24".parse()?, "10.9.0.2/24".parse()?);
    let near = Host::builder().name("near").driver(near, move |link| link.with_address(near_address));
    let far = Host::builder().name("far").driver(far, move |link| link.with_address(far_address));
    Ok((near.start()?, far.start()?))
}

/// A server that signs for itself, and a client that trusts it.
fn certificates() -> Anyhow<(ServerConfig, ClientConfig)> {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["server".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone())?;
    let server = ServerConfig::with_single_cert(vec![cert.der().clone()], key.into())?;
    Ok((server, ClientConfig::with_root_certificates(Arc::new(roots))?))
}

/// Serves one connection: says of each stream how long it was, and its sum.
async fn serve(endpoint: Endpoint) -> Anyhow<()> {
    let incoming = endpoint.accept().await.ok_or("the endpoint was closed")?;
    let connection = incoming.await?;
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let (mut bytes, mut sum) = (0, 0);
        while let Some(chunk) = receive.read_chunk(PIECE_BYTES, true).await? {
            bytes += chunk.bytes.len() as u64;
            sum = checksum(sum, &chunk.bytes);
        }
        send.write_all(&[bytes.to_be_bytes(), sum.to_be_bytes()].concat()).await?;
        send.finish()?;
    }
    endpoint.wait_idle().await;
    Ok(())
}

/// A sum that depends on the order of the bytes.
fn checksum(begin: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(begin, |sum, &byte| sum.rotate_left(5).wrapping_add(byte.into()))
}
