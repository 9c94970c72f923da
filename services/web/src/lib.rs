//! HTTP/1.1 server for the pages of a host's services: JSON, Server-Sent Events and embedded files, over any stream.
//!
//! HTTP itself is hyper's. This crate adds what a page on a developer's machine needs:
//!
//! - [`Site`], [`Request`], [`Response`]: a page's own code, as local futures;
//! - [`driver`]: one connection, with its time limits by the host's clock; [`server`]: connections of a host;
//! - [`guard`]: DNS rebinding, requests of other sites, the token; [`Config`]: limits;
//! - [`events`]: events to many subscribers, bounded for each;
//! - [`assets`]: embedded files with entity tags, among them the style sheet and the script that all pages share.
//!
//! ```
//! use inhost_base::{Endpoint, Instant};
//! use inhost_common::service::Doors;
//! use inhost_common::{Admission, LocalFuture};
//! use inhost_socket::Host;
//! use inhost_stack::{Stack, StackConfig};
//! use inhost_web::{Config, Request, Response, Site, server};
//! use std::rc::Rc;
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! struct Hello;
//! impl Site for Hello {
//!     fn respond(self: Rc<Self>, request: Request) -> LocalFuture<Response> {
//!         let response = match (request.method().as_str(), &*request.path()) {
//!             ("GET", ["hello", name]) => Response::json(&format!("hello, {name}")),
//!             _ => Response::not_found(),
//!         };
//!         Box::pin(std::future::ready(response))
//!     }
//! }
//!
//! let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
//! let here = Endpoint::new([127, 0, 0, 1], 80);
//! let doors = Doors::new("hello", &host, &Default::default(), Admission::new(server::LIMITS), |_| ());
//! doors.listen(80, server::sessions(&host, Rc::new(Hello), Config::default()))?;
//! let answer = host.run_alone(async {
//!     let mut stream = host.connect(here).await.unwrap();
//!     let request = b"GET /hello/ada HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
//!     stream.write_all(request).await.unwrap();
//!     let mut answer = String::new();
//!     stream.read_to_string(&mut answer).await.unwrap();
//!     answer
//! });
//! assert!(answer.unwrap().ends_with("\r\n\r\n\"hello, ada\""));
//! # Ok::<(), inhost_common::service::Problem>(())
//! ```
#![forbid(unsafe_code)]

pub mod assets;
mod body;
pub mod config;
pub mod driver;
pub mod events;
pub mod guard;
mod io;
mod request;
mod response;
pub mod server;
mod tag;
mod watch;

use std::rc::Rc;

use inhost_common::LocalFuture;

pub use assets::Asset;
pub use config::Config;
pub use events::{EventLimits, Events};
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
pub use request::Request;
pub use response::{Response, ResponseBody};

/// A site: the code that answers requests.
///
/// A request has passed the [`guard`], and its body is whole, when it comes here. A HEAD request comes as GET, and the
/// body of its response is not sent.
pub trait Site: 'static {
    /// The response to a request. The future is dropped when the client is gone.
    fn respond(self: Rc<Self>, request: Request) -> LocalFuture<Response>;
}
