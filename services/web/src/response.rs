//! A response as a site gives it, and errors as RFC 9457 has them.

use std::pin::Pin;

use bytes::Bytes;
use futures_lite::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;

/// A response.
pub struct Response {
    pub(crate) status: StatusCode,
    /// Boxed, for a response is the error of many functions.
    pub(crate) headers: Box<HeaderMap>,
    pub(crate) body: ResponseBody,
}

/// A response's body.
pub enum ResponseBody {
    /// All of it.
    Bytes(Bytes),
    /// Pieces as they are made. It ends early when the host goes down.
    Stream(Pin<Box<dyn Stream<Item = Bytes>>>),
}

/// Problem details (RFC 9457 §3.1).
#[derive(Serialize)]
struct Problem<'a> {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    detail: &'a str,
}

impl Response {
    /// A response without a body.
    pub fn new(status: StatusCode) -> Response {
        Response { status, headers: Box::default(), body: ResponseBody::Bytes(Bytes::new()) }
    }
    /// 200 with a body.
    pub fn bytes(media_type: &'static str, body: impl Into<Bytes>) -> Response {
        let mut response = Response::new(StatusCode::OK);
        response.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        response.body = ResponseBody::Bytes(body.into());
        response
    }
    /// 200 with a body that is made while it is sent.
    pub fn stream(media_type: &'static str, body: impl Stream<Item = Bytes> + 'static) -> Response {
        let mut response = Response::bytes(media_type, Bytes::new());
        response.body = ResponseBody::Stream(Box::pin(body));
        response
    }
    /// 200 with JSON.
    pub fn json(value: &(impl Serialize + ?Sized)) -> Response {
        match serde_json::to_vec(value) {
            Ok(body) => Response::bytes("application/json", body).with(header::CACHE_CONTROL, "no-store"),
            Err(error) => Response::problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }
    /// An error, as problem details in JSON (RFC 9457).
    pub fn problem(status: StatusCode, detail: &str) -> Response {
        let title = status.canonical_reason().unwrap_or("Error");
        let problem = Problem { r#type: "about:blank", title, status: status.as_u16(), detail };
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = Response::bytes("application/problem+json", body);
        response.status = status;
        response.with(header::CACHE_CONTROL, "no-store")
    }
    /// 404.
    pub fn not_found() -> Response {
        Response::problem(StatusCode::NOT_FOUND, "there is nothing at this path")
    }
    /// 405 for a path that takes `methods` alone, as `GET, DELETE`.
    pub fn method_not_allowed(methods: &'static str) -> Response {
        let detail = format!("this path takes {methods}");
        Response::problem(StatusCode::METHOD_NOT_ALLOWED, &detail).with(header::ALLOW, methods)
    }
    /// The same with another status.
    pub fn with_status(mut self, status: StatusCode) -> Response {
        self.status = status;
        self
    }
    /// The same with a header field. A value that no field can have is left out.
    pub fn with(mut self, name: HeaderName, value: &str) -> Response {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }
    /// The body.
    pub fn body(&self) -> &ResponseBody {
        &self.body
    }
}
