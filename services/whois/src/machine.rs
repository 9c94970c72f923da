//! whois: to whom a name, an address or a number belongs (RFC 3912), from server to server as they refer.

use core::fmt;
use core::net::IpAddr;
use inhost_common::text::is_host;

/// The port of whois, and the only one that a server may refer to: an answer must not make this client talk to others.
pub const PORT: u16 = 43;
/// The server that knows the registry of each name (IANA).
pub const ROOT: &str = "whois.iana.org";
/// Servers that are asked at most.
pub const SERVERS_LIMIT: usize = 6;
/// The longest query.
const QUERY_BYTES: usize = 255;

/// The words before a server's name, by which servers refer to others: IANA, ARIN, registries of domains.
const REFERRALS: [&str; 6] = [
    "refer:",
    "referralserver:",
    "registrar whois server:",
    "whois server:",
    "whois:",
    "resourcelink: whois://",
];

/// One search, from server to server.
///
/// [`Search::question`] says whom to ask what; [`Search::answered`] takes the text of the answer, or
/// [`Search::failed`] that there was none. Nobody is asked twice.
#[derive(Clone, Debug)]
pub struct Search {
    query: String,
    follow: bool,
    asked: Vec<String>,
    state: State,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum State {
    Ask(Server),
    Waiting,
    Done,
}

/// Somebody to be asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Server {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// Why something is not a question for whois.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum QueryError {
    /// It is empty, too long, or holds a control character.
    BadQuery,
    /// The server's name cannot be one.
    BadServer,
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QueryError::BadQuery => {
                "ask for a domain, an address or a number, in one line of 255 octets at most"
            }
            QueryError::BadServer => "the server is to be the name or address of a host",
        })
    }
}
impl core::error::Error for QueryError {}

impl Search {
    /// For `query`, beginning with `server`; following what servers refer to, if wanted.
    pub fn new(query: &str, server: Server, follow: bool) -> Result<Search, QueryError> {
        let query = query.trim();
        if query.is_empty() || query.len() > QUERY_BYTES || query.chars().any(char::is_control) {
            return Err(QueryError::BadQuery);
        }
        if !is_host(&server.host) {
            return Err(QueryError::BadServer);
        }
        Ok(Search { query: query.to_owned(), follow, asked: Vec::new(), state: State::Ask(server) })
    }
    /// The next server and the line to send; `None` at the end or while an answer is awaited.
    pub fn question(&mut self) -> Option<(Server, String)> {
        let State::Ask(server) = &self.state else { return None };
        let server = server.clone();
        self.state = State::Waiting;
        self.asked.push(folded(&server.host));
        let line = format!("{}{}\r\n", form(&server.host, &self.query), self.query);
        Some((server, line))
    }
    /// The server has answered.
    pub fn answered(&mut self, text: &str) {
        if self.state != State::Waiting {
            return;
        }
        let referred = match self.follow && self.asked.len() < SERVERS_LIMIT {
            true => referral(text).filter(|server| !self.asked.contains(&folded(&server.host))),
            false => None,
        };
        self.state = referred.map_or(State::Done, State::Ask);
    }
    /// The server has not answered.
    pub fn failed(&mut self) {
        if self.state == State::Waiting {
            self.state = State::Done;
        }
    }
}

fn folded(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Query prefix that makes a server give one full answer.
fn form(host: &str, query: &str) -> &'static str {
    let is_domain = query.contains('.') && query.parse::<IpAddr>().is_err() && !query.contains(['/', ' ']);
    match folded(host).as_str() {
        // Else everything that begins like the query is listed.
        "whois.verisign-grs.com" | "whois.crsnic.net" if is_domain => "domain ",
        // Networks, and all of each.
        "whois.arin.net" if query.parse::<IpAddr>().is_ok() => "n + ",
        "whois.denic.de" if is_domain => "-T dn ",
        _ => "",
    }
}

/// The referral in an answer.
fn referral(text: &str) -> Option<Server> {
    for line in text.lines() {
        let line = line.trim();
        let lower = line.to_ascii_lowercase();
        let Some(words) = REFERRALS.iter().find(|words| lower.starts_with(**words)) else { continue };
        let named = line.get(words.len()..).unwrap_or_default().trim();
        if let Some(server) = server(named) {
            return Some(server);
        }
    }
    None
}

/// A server as others name it: bare, or as a URL of whois.
fn server(named: &str) -> Option<Server> {
    let bare = match named.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("whois") => rest,
        // Another protocol: rwhois, a page of the web.
        Some(_) => return None,
        None => named,
    };
    let bare = bare.split(['/', ' ']).next().unwrap_or_default();
    let (host, port) = match bare.split_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (bare, PORT),
    };
    // A name, with a dot: neither an address nor a neighbour's nickname is what a registry refers to.
    let may_be = port == PORT && is_host(host) && host.contains('.') && host.parse::<IpAddr>().is_err();
    may_be.then(|| Server { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(query: &str, host: &str) -> Search {
        Search::new(query, Server { host: host.to_owned(), port: PORT }, true).unwrap()
    }
    /// Queries, given these answers.
    fn asks(query: &str, answers: &[&str]) -> Vec<String> {
        let mut search = start(query, ROOT);
        let mut asked = Vec::new();
        let mut answers = answers.iter();
        while let Some((server, line)) = search.question() {
            asked.push(format!("{}: {}", server.host, line.trim_end()));
            assert!(search.question().is_none(), "an answer is waited for");
            match answers.next() {
                Some(answer) => search.answered(answer),
                None => search.failed(),
            }
        }
        asked
    }

    #[test]
    fn servers_refer_to_servers() {
        let iana = "% IANA WHOIS server\r\n\r\nrefer:        whois.verisign-grs.com\r\n\r\ndomain: COM\n";
        let verisign =
            "   Domain Name: EXAMPLE.COM\r\n   Registrar WHOIS Server: whois.registrar.example\r\n";
        let own = "Domain Name: example.com\nRegistrar WHOIS Server: whois.registrar.example\n";
        assert_eq!(
            asks("example.com", &[iana, verisign, own]),
            [
                "whois.iana.org: example.com",
                "whois.verisign-grs.com: domain example.com",
                "whois.registrar.example: example.com"
            ]
        );
        let arin = "NetRange: 193.0.0.0 - 193.255.255.255\nReferralServer:  whois://whois.ripe.net\n";
        assert_eq!(
            asks("193.0.6.139", &["refer: whois.arin.net", arin, "inetnum: 193.0.0.0\n"]),
            ["whois.iana.org: 193.0.6.139", "whois.arin.net: n + 193.0.6.139", "whois.ripe.net: 193.0.6.139"]
        );
    }

    #[test]
    fn nobody_is_asked_twice_and_not_too_many_are_asked() {
        assert_eq!(asks("x.example", &["refer: a.example", "refer: WHOIS.IANA.ORG."]).len(), 2);
        let answers: Vec<String> = (0..20).map(|number| format!("refer: s{number}.example")).collect();
        let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
        assert_eq!(asks("x.example", &answers).len(), SERVERS_LIMIT);
    }

    #[test]
    fn a_referral_leads_to_whois_servers_only() {
        for bad in [
            "refer: 127.0.0.1",
            "refer: localhost",
            "ReferralServer: whois://mail.example:25",
            "ReferralServer: rwhois://rwhois.example:4321",
            "Registrar WHOIS Server: https://www.registrar.example/whois",
            "refer: -oProxyCommand.example",
            "refer:",
            "whois: a b\u{7}.example",
        ] {
            assert_eq!(asks("x.example", &[bad]).len(), 1, "{bad}");
        }
        assert_eq!(asks("x.example", &["ReferralServer: whois://whois.apnic.net:43/"]).len(), 2);
    }

    #[test]
    fn without_following_one_server_is_asked() {
        let server = Server { host: "whois.example".to_owned(), port: 4343 };
        let mut search = Search::new("ada", server.clone(), false).unwrap();
        assert_eq!(search.question(), Some((server, "ada\r\n".to_owned())));
        search.answered("refer: whois.iana.org");
        assert_eq!(search.question(), None);
    }

    #[test]
    fn what_is_no_question_is_not_sent() {
        let server = || Server { host: ROOT.to_owned(), port: PORT };
        for bad in ["", "  ", "a\r\nb", &"a".repeat(256)] {
            assert_eq!(Search::new(bad, server(), true).unwrap_err(), QueryError::BadQuery);
        }
        let nobody = Server { host: "-x".to_owned(), port: PORT };
        assert_eq!(Search::new("a", nobody, true).unwrap_err(), QueryError::BadServer);
    }

    /// The whole matrix: what each phase makes of each thing that may happen.
    const TABLE: &str = "\
asking | question -> waiting
asking | no referral -> asking a.example
asking | refers to b -> asking a.example
asking | refers back -> asking a.example
asking | no answer -> asking a.example
waiting | question -> waiting
waiting | no referral -> done
waiting | refers to b -> asking b.example
waiting | refers back -> done
waiting | no answer -> done
waiting for the last | question -> waiting
waiting for the last | no referral -> done
waiting for the last | refers to b -> done
waiting for the last | refers back -> done
waiting for the last | no answer -> done
done | question -> done
done | no referral -> done
done | refers to b -> done
done | refers back -> done
done | no answer -> done
";

    #[test]
    fn every_phase_takes_everything_that_may_happen() {
        let asking = start("ada", "a.example");
        let after = |mut search: Search, answers: &[&str]| {
            for answer in answers {
                search.question();
                search.answered(answer);
            }
            search
        };
        let waiting = |mut search: Search| {
            search.question();
            search
        };
        let others: Vec<String> = (2..=SERVERS_LIMIT).map(|n| format!("refer: s{n}.example")).collect();
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        let phases = [
            ("asking", asking.clone()),
            ("waiting", waiting(asking.clone())),
            ("waiting for the last", waiting(after(asking.clone(), &others))),
            ("done", after(asking, &["nothing"])),
        ];
        let mut table = String::new();
        for (phase, search) in phases {
            for input in ["question", "no referral", "refers to b", "refers back", "no answer"] {
                let mut search = search.clone();
                match input {
                    "question" => drop(search.question()),
                    "no referral" => search.answered("nothing is known"),
                    "refers to b" => search.answered("refer: b.example"),
                    "refers back" => search.answered("refer: A.example."),
                    _ => search.failed(),
                }
                let now = match &search.state {
                    State::Ask(server) => format!("asking {}", server.host),
                    State::Waiting => "waiting".to_owned(),
                    State::Done => "done".to_owned(),
                };
                table.push_str(&format!("{phase} | {input} -> {now}\n"));
            }
        }
        assert_eq!(table, TABLE);
    }
}
