//! HTML of strangers as a document that can be shown.
//!
//! Three layers keep it harmless, each enough by itself against scripts: ammonia leaves only elements and attributes
//! that are known to be harmless, the page's frame is a sandbox, and the document's own policy allows nothing to load.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use ammonia::{Builder, UrlRelative};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::message::{cut, inline_images, is_safe_image};

/// The most octets of HTML that are shown.
const HTML_BYTES: usize = 512 << 10;
/// The most octets of inline images that are shown.
const IMAGES_BYTES: usize = 8 << 20;
/// The most elements that may be open at once: browsers and sanitizers slow down beyond.
const DEPTH: usize = 256;

/// The policy of a document without remote images.
pub const POLICY: &str = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src data:; \
     style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";
/// The policy of a document whose reader has asked for remote images.
pub const POLICY_WITH_IMAGES: &str = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; \
     img-src data: http: https:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/// Elements beyond those that ammonia allows: layout of mails.
const ELEMENTS: [&str; 3] = ["font", "style", "big"];
/// Attributes of every element.
const ATTRIBUTES: [&str; 14] = [
    "align",
    "bgcolor",
    "border",
    "cellpadding",
    "cellspacing",
    "class",
    "color",
    "dir",
    "face",
    "height",
    "id",
    "size",
    "style",
    "valign",
];

/// What stands around the HTML of a message. Links open beside the page.
const HEAD: &str = "<!doctype html><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light\">\
    <style>html{background:#fff;color:#111;font:15px/1.5 system-ui,sans-serif}body{margin:16px;overflow-wrap:anywhere}\
    img{max-width:100%}</style><body>";

/// The HTML of the message `raw` as a document. `with_images` leaves remote images in it, for a reader who has asked.
pub fn document(raw: &[u8], html: &str, with_images: bool) -> String {
    let html = cut(html, HTML_BYTES);
    if depth(html) > DEPTH {
        return format!("{HEAD}<p>This HTML is nested too deeply to be shown. The source shows it.");
    }
    let images = Images::of(raw);
    let mut builder = Builder::default();
    builder
        .add_tags(ELEMENTS)
        .rm_clean_content_tags(["style"])
        .add_generic_attributes(ATTRIBUTES)
        .url_schemes(HashSet::from(["http", "https", "mailto", "tel", "cid", "data"]))
        .url_relative(UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer"))
        .set_tag_attribute_value("a", "target", "_blank")
        .attribute_filter(move |element, attribute, value| {
            attribute_of(element, attribute, value, &images, with_images)
        });
    format!("{HEAD}{}", builder.clean(html))
}

/// The inline images of a message as `data:` addresses. An image may be asked for any number of times, so the sum counts.
struct Images {
    data: HashMap<String, String>,
    left_bytes: AtomicUsize,
}

impl Images {
    fn of(raw: &[u8]) -> Images {
        let data = |(id, media_type, octets): (String, String, Vec<u8>)| {
            (id, format!("data:{media_type};base64,{}", STANDARD.encode(octets)))
        };
        let data = inline_images(raw, IMAGES_BYTES).into_iter().map(data).collect();
        Images { data, left_bytes: AtomicUsize::new(2 * IMAGES_BYTES) }
    }
    fn take(&self, id: &str) -> Option<String> {
        let data = self.data.get(id)?;
        let left = |left: usize| left.checked_sub(data.len());
        self.left_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok().then(|| data.clone())
    }
}

/// An attribute as it may stay: only images load anything, and of their sources the inline ones stay.
fn attribute_of<'v>(
    element: &str,
    attribute: &str,
    value: &'v str,
    images: &Images,
    with_images: bool,
) -> Option<std::borrow::Cow<'v, str>> {
    let trimmed = value.trim_start().to_ascii_lowercase();
    let is_of = |schemes: &[&str]| schemes.iter().any(|scheme| trimmed.starts_with(scheme));
    match (element, attribute) {
        ("img", "src") => {
            if let Some(id) = value.trim().get(..4).filter(|scheme| scheme.eq_ignore_ascii_case("cid:")) {
                let id = value.trim().strip_prefix(id)?;
                return images.take(id).map(Into::into);
            }
            let media_type = trimmed.strip_prefix("data:").and_then(|rest| rest.split([';', ',']).next());
            let stays =
                media_type.is_some_and(is_safe_image) || with_images && is_of(&["http://", "https://"]);
            stays.then(|| value.into())
        }
        (_, "href" | "src" | "cite") => {
            is_of(&["http://", "https://", "mailto:", "tel:"]).then(|| value.into())
        }
        (_, "style") => {
            let fetches =
                ["url", "image", "\\", "/*", "expression"].iter().any(|word| trimmed.contains(word));
            (!fetches).then(|| value.into())
        }
        _ => Some(value.into()),
    }
}

/// Elements that have no end tag, or need none: they do not nest in themselves.
const UNNESTED: [&str; 27] = [
    "area", "base", "br", "col", "colgroup", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta",
    "option", "p", "param", "source", "tbody", "td", "tfoot", "th", "thead", "tr", "track", "wbr", "o:p",
];

/// An upper bound of how deep elements are nested: tags that open, less those that close.
fn depth(html: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    for tag in html.split('<').skip(1) {
        let (is_end, tag) = tag.strip_prefix('/').map_or((false, tag), |tag| (true, tag));
        let name =
            tag.split(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/')).next().unwrap_or_default();
        let is_tag = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !is_tag || UNNESTED.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            continue;
        }
        depth = if is_end { depth.saturating_sub(1) } else { depth + 1 };
        most = most.max(depth);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::contents;

    fn shown(html: &str, with_images: bool) -> String {
        document(b"", html, with_images).strip_prefix(HEAD).unwrap().to_owned()
    }

    #[test]
    fn nothing_that_acts_or_loads_stays() {
        for hostile in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "<svg onload=alert(1)><script>alert(1)</script></svg>",
            "<a href=\"javascript:alert(1)\">x</a>",
            "<a href=\"data:text/html,<script>alert(1)</script>\">x</a>",
            "<iframe src=//evil.example></iframe><object data=//evil.example></object><embed src=//evil.example>",
            "<form action=//evil.example><input autofocus onfocus=alert(1)><button formaction=//evil.example>",
            "<meta http-equiv=refresh content=0;url=//evil.example><base href=//evil.example>",
            "<link rel=stylesheet href=//evil.example><link rel=dns-prefetch href=//evil.example>",
            "<img src=http://evil.example/a.png><img srcset=http://evil.example/b.png>",
            "<div style=\"background:url(//evil.example)\">x</div><div style=\"background:u\\72l(//evil.example)\">",
            "<table background=http://evil.example>",
            "<video poster=http://evil.example src=http://evil.example></video><audio src=http://evil.example>",
            "<img src=\"data:image/svg+xml,<svg onload=alert(1)>\">",
            "<math><mtext></form><form><mglyph><style></math><img src=x onerror=alert(1)>",
            "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
            "</style><img src=x onerror=alert(1)>",
        ] {
            let html = shown(hostile, false);
            // What a quoted attribute or text says does nothing.
            let bare =
                html.replace("&lt;img src=x onerror=alert(1)&gt;", "").replace("&lt;/noscript&gt;", "");
            for word in
                ["<script", "evil.example", "onerror", "onload", "onfocus", "javascript:", "svg", "data:text"]
            {
                assert!(!bare.contains(word), "{hostile}: {html}");
            }
        }
    }

    #[test]
    fn what_people_send_stays() {
        let html = shown(
            "<style>p{color:red}</style><p class=a style=\"color: blue\">Hi <b>you</b> <a href=\"https://x.example/?a=b\">go</a>",
            false,
        );
        for kept in [
            "<style>p{color:red}</style>",
            "class=\"a\"",
            "style=\"color: blue\"",
            "target=\"_blank\"",
            "rel=\"noopener noreferrer\"",
        ] {
            assert!(html.contains(kept), "{kept}: {html}");
        }
        let remote = "<img src=\"https://x.example/a.png\">";
        assert!(shown(remote, true).contains("x.example") && !shown(remote, false).contains("x.example"));
        let raw = b"Content-Type: multipart/related; boundary=x\r\n\r\n--x\r\nContent-Type: text/html\r\n\r\n<img src=\"CID:i@1\">\r\n\
            --x\r\nContent-Type: image/png\r\nContent-ID: <i@1>\r\nContent-Transfer-Encoding: base64\r\n\r\niVBORw==\r\n--x--\r\n";
        let html = document(raw, &contents(raw).html.unwrap(), false);
        assert!(html.contains("src=\"data:image/png;base64,iVBORw==\""), "{html}");
        let images =
            Images { data: [("a".into(), "x".repeat(6 << 20))].into(), left_bytes: (16 << 20).into() };
        assert_eq!((0..9).filter(|_| images.take("a").is_some()).count(), 2, "the sum is bounded");
    }

    #[test]
    fn deep_html_is_not_shown() {
        assert!(shown(&"<div>".repeat(100_000), false).contains("too deeply"));
        assert!(shown(&"<b>x</b>".repeat(10_000), false).len() > 10_000);
        assert!(!shown(&"<P>x<br><img alt=y><tr><td>".repeat(1000), false).contains("too deeply"));
    }
}
