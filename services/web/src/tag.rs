//! Entity tags: a client that has a response already is told so (RFC 9110 §13.1.2).

use bytes::Bytes;
use http::{StatusCode, header};

use crate::request::Request;
use crate::response::{Response, ResponseBody};

impl Response {
    /// The same with an entity tag; 304 without a body if the client has that already (RFC 9110 §13.1.2).
    pub fn with_tag(mut self, request: &Request) -> Response {
        let ResponseBody::Bytes(body) = &self.body else { return self };
        let tag = format!("\"{:016x}\"", digest(body));
        let known = request.headers.get_all(header::IF_NONE_MATCH).iter().any(|value| {
            let tags = value.to_str().unwrap_or_default().split(',').map(str::trim);
            let mut tags = tags.map(|known| known.strip_prefix("W/").unwrap_or(known));
            tags.any(|known| known == "*" || known == tag)
        });
        if known {
            self.status = StatusCode::NOT_MODIFIED;
            self.headers.remove(header::CONTENT_TYPE);
            self.body = ResponseBody::Bytes(Bytes::new());
        }
        self.with(header::ETAG, &tag).with(header::CACHE_CONTROL, "no-cache")
    }
}

/// FNV-1a, 64 bits: tells the versions of an embedded file apart.
fn digest(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
