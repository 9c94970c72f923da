//! Embedded files.

use crate::{Request, Response};

/// An embedded file.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// The last segment of its path.
    pub name: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// Its contents.
    pub body: &'static [u8],
}

/// The style sheet and the script that all pages share; `assets/house.js` says what the script has.
pub const HOUSE: [Asset; 2] = [
    Asset::new("house.css", "text/css; charset=utf-8", include_bytes!("../assets/house.css")),
    Asset::new("house.js", "text/javascript; charset=utf-8", include_bytes!("../assets/house.js")),
];

impl Asset {
    /// An embedded file.
    pub const fn new(name: &'static str, media_type: &'static str, body: &'static [u8]) -> Asset {
        Asset { name, media_type, body }
    }
    /// The file as a response, with its entity tag.
    pub fn response(&self, request: &Request) -> Response {
        Response::bytes(self.media_type, self.body).with_tag(request)
    }
}

/// The file `name` among `assets` and those of [`HOUSE`] as a response; 404 if it is none.
pub fn respond(assets: &[Asset], name: &str, request: &Request) -> Response {
    match assets.iter().chain(&HOUSE).find(|asset| asset.name == name) {
        Some(asset) => asset.response(request),
        None => Response::not_found(),
    }
}
