//! The router of the example, and hyper's client, in the simulator.

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::routing::get;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use inhost::sim::{LinkConfig, Loss, Simulation, net, task};
use tower_service::Service;

fn app() -> Router {
    // Long enough for losses to meet it.
    Router::new().route("/hello/{name}", get(|Path(name): Path<String>| async move { name.repeat(20_000) }))
}

#[inhost::sim_test(seeds = 20)]
fn axum_answers_under_loss(simulation: &mut Simulation) {
    simulation.set_link(LinkConfig { loss: Loss::per_mille(20), ..LinkConfig::default() });
    simulation.host("server", async |_| {
        let listener = net::TcpListener::bind("0.0.0.0:80").await?;
        loop {
            let (stream, _) = listener.accept().await?;
            let answer = service_fn(|request: Request<Incoming>| app().call(request.map(Body::new)));
            let server = hyper::server::conn::http1::Builder::new();
            task::spawn(async move { server.serve_connection(TokioIo::new(stream), answer).await });
        }
    });
    simulation.client("client", async |_| {
        let stream = net::TcpStream::connect("server:80").await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        task::spawn(connection);
        for name in ["ada", "grace"] {
            let request = Request::get(format!("/hello/{name}")).header("host", "server");
            let response = sender.send_request(request.body(http_body_util::Empty::<Bytes>::new())?).await?;
            let body = response.into_body().collect().await?.to_bytes();
            assert_eq!(body, name.repeat(20_000));
        }
        Ok(())
    });
}
