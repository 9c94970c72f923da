//! tonic at both ends. The service is written out by hand, so that no `protoc` is needed; what `tonic-build` makes is used in
//! the same way.

use futures_util::stream;
use inhost::Host;
use inhost::net::TcpListener;
use inhost_example_web::{Connector, Stream};
use prost::Message;
use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::http;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::server::{NamedService, UnaryService};
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

#[derive(Clone, PartialEq, Message)]
struct Name {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Greeting {
    #[prost(string, tag = "1")]
    text: String,
}

/// The method `Hello`.
struct Hello;

impl UnaryService<Name> for Hello {
    type Response = Greeting;
    type Future = Ready<Result<Response<Greeting>, Status>>;
    fn call(&mut self, request: Request<Name>) -> Self::Future {
        ready(Ok(Response::new(Greeting { text: format!("hello, {}", request.into_inner().name) })))
    }
}

/// The service, with its one method.
#[derive(Clone)]
struct Greeter;

impl NamedService for Greeter {
    const NAME: &'static str = "example.Greeter";
}

impl tower_service::Service<http::Request<Body>> for Greeter {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let codec = ProstCodec::<Greeting, Name>::default();
            Ok(tonic::server::Grpc::new(codec).unary(Hello, request).await)
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let host = Host::builder().start()?;
    host.make_default();
    let listener = TcpListener::bind("127.0.0.1:50051").await?;
    // The stream ends with the host: a server would take an error for one caller's and ask again at once, for ever.
    let calls = stream::unfold(listener, |listener| async {
        let (stream, _) = listener.accept().await.ok()?;
        Some((Ok::<_, std::io::Error>(Stream(stream)), listener))
    });
    tokio::spawn(Server::builder().add_service(Greeter).serve_with_incoming(calls));

    let channel = Endpoint::from_static("http://127.0.0.1:50051").connect_with_connector(Connector).await?;
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await?;
    let codec = ProstCodec::<Name, Greeting>::default();
    let request = Request::new(Name { name: "world".to_owned() });
    let path = PathAndQuery::from_static("/example.Greeter/Hello");
    println!("{}", client.unary(request, path, codec).await?.into_inner().text);
    Ok(())
}
