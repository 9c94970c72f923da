//! hyper's server and client, with its timer: a caller that sends no header within a second is let go.

use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use inhost::Host;
use inhost::net::{TcpListener, TcpStream};
use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;
use tokio::io::AsyncReadExt;

async fn greet(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from(format!("hello, {}", request.uri().path().trim_start_matches('/')))))
}

async fn serve(listener: TcpListener) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let mut server = hyper::server::conn::http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(1));
        tokio::spawn(server.serve_connection(TokioIo::new(stream), service_fn(greet)));
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let host = Host::builder().start()?;
    host.make_default();
    tokio::spawn(serve(TcpListener::bind("127.0.0.1:80").await?));

    let stream = TcpStream::connect("127.0.0.1:80").await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::get("/world").header("host", "127.0.0.1").body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    let (status, body) = (response.status(), response.into_body().collect().await?.to_bytes());
    println!("{status}: {}", String::from_utf8_lossy(&body));

    let mut silent = TcpStream::connect("127.0.0.1:80").await?;
    let mut nothing = Vec::new();
    silent.read_to_end(&mut nothing).await?;
    println!("the caller who said nothing was let go");
    Ok(())
}
