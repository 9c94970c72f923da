//! Which requests a site gets: protection from DNS rebinding, from requests of other sites, and by a token.
//!
//! A page on a developer's machine is reached by every page that he opens in the same browser. So the name in `Host`
//! must be one that an attacker cannot let point here, and a request that a browser sends for another site is refused
//! unless the user follows a link.

use http::{HeaderMap, Method, StatusCode, Uri, header, uri::Authority};

use crate::{Config, Request, Response};

/// A browser's word on where a request comes from (Fetch Metadata).
const SEC_FETCH_SITE: &str = "sec-fetch-site";
/// The query's parameter, and the beginning of the cookie's name, that have the token.
const TOKEN: &str = "token";

/// The response to a request that the site does not get; `None` for one that it gets.
pub(crate) fn refuse(request: &Request, config: &Config) -> Option<Response> {
    let forbidden = |detail: &str| Some(Response::problem(StatusCode::FORBIDDEN, detail));
    let Some(host) = authority(&request.uri, &request.headers) else {
        return Some(Response::problem(StatusCode::BAD_REQUEST, "the field Host is missing or wrong"));
    };
    if !is_known_host(host.host(), &config.hosts) {
        return forbidden("this server does not go by that name; its configuration can allow it");
    }
    if is_cross_site(&request.method, &request.headers, &host) {
        return forbidden("the request comes from another site");
    }
    config.token.as_deref().and_then(|token| ask_for_token(request, &host, token))
}

/// Where the request is sent to: the target in absolute form, else the one field `Host` (RFC 9112 §3.2).
fn authority(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    let mut fields = headers.get_all(header::HOST).iter();
    let (first, second) = (fields.next()?, fields.next());
    if second.is_some() {
        return None;
    }
    uri.authority().cloned().or_else(|| first.to_str().ok()?.parse().ok())
}

/// Whether a name can be asked for. An address cannot be rebound, and `localhost` is not looked up.
fn is_known_host(name: &str, hosts: &[String]) -> bool {
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let name = bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<inhost_base::IpAddr>().is_ok()
        || hosts.iter().any(|host| host == "*" || host.eq_ignore_ascii_case(&name))
}

/// Whether a browser sends this for another site, and not because its user follows a link. A program that is not a browser
/// sends neither field.
fn is_cross_site(method: &Method, headers: &HeaderMap, host: &Authority) -> bool {
    let field = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let changes = !method.is_safe();
    match field(SEC_FETCH_SITE) {
        Some("same-origin") => false,
        Some("none") => changes,
        Some(_) => {
            let follows =
                field("sec-fetch-mode") == Some("navigate") && field("sec-fetch-dest") == Some("document");
            changes || !follows
        }
        None => match field("origin") {
            Some(origin) => {
                let from = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
                !from.is_some_and(|from| from.eq_ignore_ascii_case(host.as_str()))
            }
            None => false,
        },
    }
}

/// `None` for a client that knows the token, by `Authorization: Bearer` or the cookie. `?token=` is answered with the
/// cookie and the same page without the token, so that it stays in no history.
fn ask_for_token(request: &Request, host: &Authority, token: &str) -> Option<Response> {
    // Cookies are shared by all ports of a name.
    let cookie = format!("inhost-{TOKEN}-{}", host.port_u16().unwrap_or(80));
    let bearer = request.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.split_once(' '));
    // RFC 9110 §11.1: a scheme's name is case-insensitive.
    let bearer = bearer.and_then(|(scheme, given)| scheme.eq_ignore_ascii_case("bearer").then_some(given));
    let fields = request.headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = fields.flat_map(|field| field.split(';')).filter_map(|pair| pair.trim().split_once('='));
    if bearer.is_some_and(|given| is_same(given, token))
        || pairs.any(|(name, given)| name == cookie && is_same(given, token))
    {
        return None;
    }
    if request.method == Method::GET && request.query(TOKEN).is_some_and(|given| is_same(given, token)) {
        let rest = request.query.iter().filter(|(name, _)| name != TOKEN);
        let rest = form_urlencoded::Serializer::new(String::new()).extend_pairs(rest).finish();
        // A path that begins with two slashes would lead to another host.
        let path = format!("/{}", request.uri.path().trim_start_matches('/'));
        let to = if rest.is_empty() { path } else { format!("{path}?{rest}") };
        let set = format!("{cookie}={token}; Path=/; HttpOnly; SameSite=Strict");
        let response = Response::new(StatusCode::SEE_OTHER);
        return Some(response.with(header::LOCATION, &to).with(header::SET_COOKIE, &set));
    }
    let detail = "this server asks for the token of its configuration: add ?token=TOKEN to the address, or send \
                  Authorization: Bearer TOKEN";
    Some(Response::problem(StatusCode::UNAUTHORIZED, detail).with(header::WWW_AUTHENTICATE, "Bearer"))
}

/// Whether two tokens are the same, in a time that tells only their lengths.
fn is_same(given: &str, token: &str) -> bool {
    let differences = given.bytes().zip(token.bytes()).fold(0, |found, (a, b)| found | (a ^ b));
    given.len() == token.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Endpoint;

    fn request(method: &str, target: &str, fields: &[(&'static str, &str)]) -> Request {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        let peer = Endpoint::new([192, 0, 2, 9], 4000);
        let built = Request::new(method.parse().unwrap(), target.parse().unwrap(), headers, peer);
        built.unwrap_or_else(|_| panic!("{target} is refused"))
    }
    fn status(config: &Config, method: &str, target: &str, fields: &[(&'static str, &str)]) -> u16 {
        refuse(&request(method, target, fields), config).map_or(200, |response| response.status().as_u16())
    }

    #[test]
    fn a_name_that_can_be_rebound_is_refused() {
        let mut config = Config::default();
        config.hosts.push("box.example".into());
        for (host, expected) in [
            ("localhost:8025", 200),
            ("mail.localhost", 200),
            ("127.0.0.1:8025", 200),
            ("[::1]:8025", 200),
            ("BOX.example", 200),
            ("evil.example", 403),
            ("localhost.evil.example", 403),
            ("127.0.0.1.evil.example", 403),
            ("a b", 400),
        ] {
            assert_eq!(status(&config, "GET", "/", &[("host", host)]), expected, "{host}");
        }
        assert_eq!(status(&config, "GET", "/", &[]), 400);
        assert_eq!(status(&config, "GET", "/", &[("host", "localhost"), ("host", "localhost")]), 400);
        let absolute = [("host", "localhost")];
        assert_eq!(status(&config, "GET", "http://evil.example/", &absolute), 403, "the target counts");
    }

    #[test]
    fn another_site_may_link_here_and_do_nothing_else() {
        let config = Config::default();
        let with = |method: &str, fields: &[(&'static str, &str)]| {
            let fields: Vec<_> = [("host", "localhost:8025")].iter().chain(fields).copied().collect();
            status(&config, method, "/", &fields)
        };
        let (cross, same) = (("sec-fetch-site", "cross-site"), ("sec-fetch-site", "same-origin"));
        let navigate = [cross, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        assert_eq!((with("GET", &navigate), with("POST", &navigate)), (200, 403));
        assert_eq!((with("GET", &[cross]), with("GET", &[("sec-fetch-site", "same-site")])), (403, 403));
        assert_eq!((with("POST", &[same]), with("DELETE", &[cross])), (200, 403));
        assert_eq!((with("POST", &[]), with("POST", &[("origin", "http://localhost:8025")])), (200, 200));
        for origin in ["null", "http://localhost:3000", "http://evil.example", "file://"] {
            assert_eq!(with("POST", &[("origin", origin)]), 403, "{origin}");
        }
    }

    #[test]
    fn a_token_is_asked_for_and_becomes_a_cookie() {
        let config = Config { token: Some("s3cret".into()), ..Config::default() };
        let with = |target: &str, field: (&'static str, &str)| {
            refuse(&request("GET", target, &[("host", "localhost:8025"), field]), &config)
        };
        let nothing = ("accept", "*/*");
        assert_eq!(with("/", nothing).unwrap().status(), StatusCode::UNAUTHORIZED);
        assert!(with("/", ("authorization", "Bearer s3cret")).is_none());
        assert!(with("/", ("authorization", "bearer s3cret")).is_none());
        assert!(with("/", ("authorization", "Bearer s3creT")).is_some());
        assert!(with("/", ("authorization", "Basic s3cret")).is_some());
        assert!(with("/", ("cookie", "a=b; inhost-token-8025=s3cret")).is_none());
        assert!(with("/", ("cookie", "inhost-token-80=s3cret")).is_some());
        let moved = with("//evil.example/x?token=s3cret&a=b%26", nothing).unwrap();
        assert_eq!(moved.headers[header::LOCATION], "/evil.example/x?a=b%26");
        assert!(moved.headers[header::SET_COOKIE].to_str().unwrap().contains("SameSite=Strict"));
    }
}
