//! An axum server. By itself it is called by hyper-util's client in the same process; with `--link SPEC` it serves whoever
//! reaches it there, until it is stopped.

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use inhost::Host;
use inhost::net::TcpListener;
use inhost_example_web::{Connector, Listener};
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let link = match &arguments[..] {
        [] => None,
        [flag, spec] if flag == "--link" => Some(spec),
        _ => {
            return Err(
                "usage: axum [--link SPEC], such as --link tun:web0,address=10.9.0.2/24,host=10.9.0.1/24"
                    .into(),
            );
        }
    };
    let builder = Host::builder();
    let host = link.into_iter().fold(builder, |builder, spec| builder.link(spec)).start()?;
    host.make_default();

    let app = Router::new()
        .route("/hello/{name}", get(|Path(name): Path<String>| async move { format!("hello, {name}\n") }));
    let listener = Listener(TcpListener::bind("0.0.0.0:80").await?);
    if let Some(link) = link {
        println!("serving on {link}");
        return Ok(axum::serve(listener, app).await?);
    }
    tokio::spawn(async { axum::serve(listener, app).await });

    let client = Client::builder(TokioExecutor::new()).build::<_, Empty<Bytes>>(Connector);
    let response = client.get("http://127.0.0.1/hello/world".parse()?).await?;
    let (status, body) = (response.status(), response.into_body().collect().await?.to_bytes());
    print!("{status}: {}", String::from_utf8_lossy(&body));
    Ok(())
}
