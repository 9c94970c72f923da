//! TLS by tokio-rustls at both ends, with a certificate that is made here.

use inhost::Host;
use inhost::net::{TcpListener, TcpStream};
use std::error::Error;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let host = Host::builder().start()?;
    host.make_default();
    let made = rcgen::generate_simple_self_signed(["greeter.example".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone())?;

    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())?;
    let listener = TcpListener::bind("127.0.0.1:443").await?;
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await?;
        let mut stream = TlsAcceptor::from(Arc::new(server)).accept(stream).await?;
        stream.write_all(b"hello, over TLS").await?;
        stream.shutdown().await
    });

    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect("127.0.0.1:443").await?;
    let name = ServerName::try_from("greeter.example")?;
    let mut stream = TlsConnector::from(Arc::new(client)).connect(name, stream).await?;
    let mut greeting = String::new();
    stream.read_to_string(&mut greeting).await?;
    println!("{greeting}");
    Ok(())
}
