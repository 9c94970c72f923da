//! The page: its assets over HTTP, its views as JSON below `/api`, `/metrics`.

use std::rc::Rc;

use inhost_common::LocalFuture;
use inhost_web::{Asset, Request, Response, Site, assets, header};

use crate::views::Views;

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
macro_rules! assets {
    ($($name:literal $kind:expr),* $(,)?) => {
        [$(Asset::new($name, $kind, include_bytes!(concat!("../assets/", $name)))),*]
    };
}

const INDEX: Asset =
    Asset::new("index.html", "text/html; charset=utf-8", include_bytes!("../assets/index.html"));
const ASSETS: [Asset; 21] = assets![
    "causes.js" JAVASCRIPT,
    "chart.js" JAVASCRIPT,
    "connection.js" JAVASCRIPT,
    "connections.js" JAVASCRIPT,
    "dashboard.js" JAVASCRIPT,
    "explain.js" JAVASCRIPT,
    "format.js" JAVASCRIPT,
    "grid.js" JAVASCRIPT,
    "histograms.js" JAVASCRIPT,
    "links.js" JAVASCRIPT,
    "live.js" JAVASCRIPT,
    "log.js" JAVASCRIPT,
    "morph.js" JAVASCRIPT,
    "packets.js" JAVASCRIPT,
    "sessions.js" JAVASCRIPT,
    "tail.js" JAVASCRIPT,
    "uplot.js" JAVASCRIPT,
    "verdict.js" JAVASCRIPT,
    "dashboard.css" CSS,
    "uplot.css" CSS,
    "icon.svg" "image/svg+xml",
];

impl Site for Views {
    fn respond(self: Rc<Self>, request: Request) -> LocalFuture<Response> {
        Box::pin(async move {
            let path = request.path();
            match (request.method().as_str(), &path[..]) {
                ("GET", []) => INDEX.response(&request),
                ("GET", ["assets", name]) => assets::respond(&ASSETS, name, &request),
                ("GET", ["metrics"]) => {
                    Response::bytes("text/plain; version=0.0.4; charset=utf-8", self.metrics().await)
                        .with(header::CACHE_CONTROL, "no-store")
                }
                (_, ["api", path @ ..]) => self.answer(&request, path).await.unwrap_or_else(|error| error),
                _ => Response::not_found(),
            }
        })
    }
}
