//! A request as a site gets it.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use inhost_base::{Endpoint, Ipv6Addr};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use crate::Response;

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) segments: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) peer: Endpoint,
}

impl Request {
    /// A request without a body. A path that is not UTF-8 once decoded is refused.
    pub(crate) fn new(
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        peer: Endpoint,
    ) -> Result<Request, Response> {
        let decoded = |segment: &str| percent_decode_str(segment).decode_utf8().map(|text| text.into_owned());
        let path = uri.path().strip_prefix('/').unwrap_or(uri.path());
        let segments = match path {
            "" => Ok(Vec::new()),
            path => path.split('/').map(decoded).collect(),
        };
        let Ok(segments) = segments else {
            return Err(Response::problem(StatusCode::BAD_REQUEST, "the path is not UTF-8"));
        };
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let query = pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        // The response to HEAD is that to GET without its body, which hyper leaves out.
        let method = if method == Method::HEAD { Method::GET } else { method };
        Ok(Request { method, uri, segments, query, headers, body: Bytes::new(), peer })
    }
    /// A request for what is at a path with its query, from nobody over a network: a site's other callers have the same answers
    /// as a browser.
    ///
    /// # Errors
    /// The response that a browser would get.
    pub fn get(target: &str) -> Result<Request, Response> {
        let uri = target
            .parse()
            .map_err(|_| Response::problem(StatusCode::BAD_REQUEST, "that is not a path with a query"))?;
        Request::new(Method::GET, uri, HeaderMap::new(), Endpoint::new(Ipv6Addr::LOCALHOST, 0))
    }
    /// The method; HEAD comes as GET.
    pub fn method(&self) -> &Method {
        &self.method
    }
    /// The path by its segments, decoded. That of `/` has none.
    pub fn path(&self) -> Vec<&str> {
        self.segments.iter().map(String::as_str).collect()
    }
    /// The first value of a parameter of the query.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
    /// A parameter of the query as a number or the like; the response says which one is wrong.
    pub fn query_as<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Response> {
        let wrong = |_| {
            let detail = format!("the parameter {name:?} cannot be understood");
            Response::problem(StatusCode::BAD_REQUEST, &detail)
        };
        self.query(name).map(|text| text.parse().map_err(wrong)).transpose()
    }
    /// The header fields.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }
    /// The body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }
    /// The body as JSON; the response says what is wrong with it.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Response> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Response::problem(StatusCode::BAD_REQUEST, &format!("the body: {error}")))
    }
    /// The outer caller.
    pub fn peer(&self) -> Endpoint {
        self.peer
    }
}
