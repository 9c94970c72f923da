//! Where mail for a domain goes (RFC 5321 §5, RFC 7505).

use std::fmt;

use inhost_names::proto::op::ResponseCode;
use inhost_names::proto::rr::{RData, RecordType};
use inhost_names::{Names, RecordsRequest};

use crate::client::TlsWish;
use crate::queue::Reason;

/// The port of SMTP.
pub const SMTP_PORT: u16 = 25;
/// Exchangers of a domain that are tried.
const EXCHANGERS: usize = 10;

/// Where mail for a domain goes, as it was configured.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Route {
    /// To mailboxes of this host.
    Local,
    /// To a server, whatever the DNS says.
    Server {
        /// Its name or address.
        host: String,
        /// Its port.
        port: u16,
        /// Whether it speaks LMTP.
        is_lmtp: bool,
        /// Whether TLS begins with the connection.
        is_implicit: bool,
    },
}

/// Why a text is not a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouteError;

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("write local, smtp://HOST[:PORT], smtps://HOST[:PORT] or lmtp://HOST[:PORT]")
    }
}
impl std::error::Error for RouteError {}

impl std::str::FromStr for Route {
    type Err = RouteError;
    /// `local`, `smtp://host[:port]`, `smtps://host[:port]`, `lmtp://host[:port]`.
    ///
    /// ```
    /// use inhost_mail::sender::Route;
    /// let Ok(Route::Server { host, port, is_lmtp: true, .. }) = "lmtp://[fd00::1]:24".parse() else { panic!() };
    /// assert_eq!((host.as_str(), port), ("fd00::1", 24));
    /// ```
    fn from_str(text: &str) -> Result<Route, RouteError> {
        if text == "local" {
            return Ok(Route::Local);
        }
        let (scheme, rest) = text.split_once("://").ok_or(RouteError)?;
        let (is_lmtp, is_implicit, port) = match scheme {
            "smtp" => (false, false, SMTP_PORT),
            "smtps" => (false, true, 465),
            "lmtp" => (true, false, 24),
            _ => return Err(RouteError),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, port),
            Some((host, rest)) => {
                let rest = rest.strip_prefix(':').ok_or(RouteError)?;
                (host, rest.parse().map_err(|_| RouteError)?)
            }
            None => match rest.rsplit_once(':') {
                Some((host, port)) => (host, port.parse().map_err(|_| RouteError)?),
                None => (rest, port),
            },
        };
        match inhost_names::check_host(host) {
            Ok(()) => Ok(Route::Server { host: host.to_owned(), port, is_lmtp, is_implicit }),
            Err(_) => Err(RouteError),
        }
    }
}

/// A server that takes mail for a domain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchanger {
    /// Its name or address.
    pub host: String,
    /// Its preference; the lowest is tried first.
    pub preference: u16,
}

/// The mail exchangers of a domain in the order in which they are tried, or why there are none, and whether that is
/// final. Equal ones are turned by `turn`, so that load is shared. Those that are no better than this host, `own`, are
/// left out (RFC 5321 §5.1).
pub async fn exchangers(
    names: &Names,
    domain: &str,
    own: &str,
    turn: usize,
) -> Result<Vec<Exchanger>, (Reason, bool)> {
    if let Some(literal) = domain.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let host = literal.strip_prefix("ipv6:").unwrap_or(literal).to_owned();
        return Ok(vec![Exchanger { host, preference: 0 }]);
    }
    let no_answer = |what: String| Reason::Names { name: domain.to_owned(), what };
    let mut request = RecordsRequest::new(domain);
    request.kinds = vec![RecordType::MX];
    let results = names.records(&request).await;
    let Some(result) = results.map_err(|error| (no_domain(error.to_string()), true))?.pop() else {
        return Err((no_answer("no answer".into()), false));
    };
    let answer = result.result.map_err(|failed| (no_answer(failed.to_string()), false))?;
    let found = answer.records.iter().filter_map(|record| match &record.data {
        RData::MX(mx) => {
            let host = mx.exchange.to_string();
            let host = host.strip_suffix('.').unwrap_or(&host).to_lowercase();
            Some(Exchanger { host, preference: mx.preference })
        }
        _ => None,
    });
    let found: Vec<_> = found.collect();
    match (answer.code, found.as_slice()) {
        (ResponseCode::NXDomain, _) => {
            Err((no_domain(format!("there is no domain {domain}, say the name servers")), true))
        }
        // RFC 7505 §3.
        (_, [only]) if only.host.is_empty() => {
            Err((no_domain(format!("{domain} takes no mail, says its MX record")), true))
        }
        // RFC 5321 §5.1: the domain is its own exchanger.
        (_, []) => Ok(vec![Exchanger { host: domain.to_owned(), preference: 0 }]),
        _ => order(found, own, turn),
    }
}

fn no_domain(what: String) -> Reason {
    Reason::NoDomain { what }
}

fn order(mut found: Vec<Exchanger>, own: &str, turn: usize) -> Result<Vec<Exchanger>, (Reason, bool)> {
    found.retain(|exchanger| !exchanger.host.is_empty());
    found.sort_by(|a, b| (a.preference, &a.host).cmp(&(b.preference, &b.host)));
    if let Some(own) = found.iter().find(|exchanger| exchanger.host.eq_ignore_ascii_case(own)).cloned() {
        found.retain(|exchanger| exchanger.preference < own.preference);
        if found.is_empty() {
            return Err((Reason::Loop { server: own.host }, true));
        }
    }
    for equal in found.chunk_by_mut(|a, b| a.preference == b.preference) {
        equal.rotate_left(turn % equal.len());
    }
    found.truncate(EXCHANGERS);
    Ok(found)
}

/// Whether TLS is wanted, as a word of the configuration.
pub(crate) fn wish(text: &str) -> Option<TlsWish> {
    match text {
        "never" => Some(TlsWish::Never),
        "if-offered" => Some(TlsWish::IfOffered),
        "required" => Some(TlsWish::Required),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes() {
        assert_eq!("local".parse(), Ok(Route::Local));
        for text in ["smtp://mx.example:2525", "smtps://[::1]", "lmtp://10.0.0.1/"] {
            assert!(text.parse::<Route>().is_ok(), "{text}");
        }
        for text in
            ["", "mx.example", "http://mx.example", "smtp://", "smtp://a:b", "smtp://a b", "smtp://[::1]x"]
        {
            assert_eq!(text.parse::<Route>(), Err(RouteError), "{text}");
        }
    }

    /// spec: RFC5321 §5.1
    #[test]
    fn the_order_of_exchangers() {
        let found = |list: &[(&str, u16)]| {
            list.iter()
                .map(|(host, preference)| Exchanger { host: (*host).into(), preference: *preference })
                .collect()
        };
        let hosts = |list: &[(&str, u16)], own, turn| {
            order(found(list), own, turn)
                .map(|found| found.into_iter().map(|one| one.host).collect::<Vec<_>>())
        };
        let four = [("d", 20), ("b", 10), ("a", 10), ("c", 20)];
        assert_eq!(hosts(&four, "x", 0).unwrap(), ["a", "b", "c", "d"]);
        assert_eq!(hosts(&four, "x", 1).unwrap(), ["b", "a", "d", "c"]);
        assert_eq!(hosts(&four, "C", 0).unwrap(), ["a", "b"], "only better ones than oneself");
        assert!(matches!(hosts(&four, "a", 0), Err((Reason::Loop { .. }, true))));
    }
}
