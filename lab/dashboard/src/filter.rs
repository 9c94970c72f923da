//! Which connections are meant, in the manner of `ss`.
//!
//! `state S`, `src NET`, `dst NET`, `sport N`, `dport N`, `port N`, `cause C`; joined by `and` (which may be left out), `or`,
//! `not` and parentheses. `=` or `eq` may stand after a name, and `:` before a port. Other words are looked for in the ends.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use inhost_base::{Cidr, Endpoint};
use inhost_event::{SendCause, TcpState};

/// Parentheses and negations within each other.
const DEEPEST: usize = 32;
/// Characters of a filter.
const LONGEST: usize = 1000;

/// What a filter looks at.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Our end.
    pub local: Endpoint,
    /// The other end.
    pub remote: Endpoint,
    /// The state.
    pub state: TcpState,
    /// What sending waits for.
    pub cause: SendCause,
}

/// Which connections are meant. The empty filter means all.
#[derive(Clone, Debug, Default)]
pub struct Filter(Option<Node>);

#[derive(Clone, Debug)]
enum Node {
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Is(Test),
}

#[derive(Clone, Debug)]
enum Test {
    States(Vec<TcpState>),
    Local(Cidr),
    Peer(Cidr),
    LocalPort(u16),
    PeerPort(u16),
    Port(u16),
    Cause(SendCause),
    Text(String),
}

/// Why a text is not a filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilterError(String);

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for FilterError {}

impl Filter {
    /// Whether `subject` is meant.
    pub fn has(&self, subject: &Subject) -> bool {
        self.0.as_ref().is_none_or(|node| node.has(subject))
    }
}

impl Node {
    fn has(&self, subject: &Subject) -> bool {
        match self {
            Node::And(one, other) => one.has(subject) && other.has(subject),
            Node::Or(one, other) => one.has(subject) || other.has(subject),
            Node::Not(node) => !node.has(subject),
            Node::Is(test) => test.has(subject),
        }
    }
}

impl Test {
    fn has(&self, subject: &Subject) -> bool {
        let Subject { local, remote, state, cause } = subject;
        match self {
            Test::States(states) => states.contains(state),
            Test::Local(network) => network.contains(local.address),
            Test::Peer(network) => network.contains(remote.address),
            Test::LocalPort(port) => local.port == *port,
            Test::PeerPort(port) => remote.port == *port,
            Test::Port(port) => local.port == *port || remote.port == *port,
            Test::Cause(wanted) => cause == wanted,
            Test::Text(text) => [local, remote].iter().any(|end| end.to_string().contains(text.as_str())),
        }
    }
}

impl FromStr for Filter {
    type Err = FilterError;
    fn from_str(text: &str) -> Result<Filter, FilterError> {
        if text.len() > LONGEST {
            return Err(FilterError(format!("a filter has at most {LONGEST} characters")));
        }
        let mut parser = Parser { words: words(text)?, next: 0 };
        if parser.words.is_empty() {
            return Ok(Filter(None));
        }
        let node = parser.any(0)?;
        match parser.peek() {
            None => Ok(Filter(Some(node))),
            Some(word) => Err(FilterError(format!("{word:?} stands where the filter could end"))),
        }
    }
}

/// The words of a text; quotes keep blanks.
fn words(text: &str) -> Result<Vec<String>, FilterError> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, behind) = match first {
            '(' | ')' | '!' | '=' => rest.split_at(1),
            '"' => {
                let (word, behind) = rest[1..]
                    .split_once('"')
                    .ok_or_else(|| FilterError("a quote is not closed".to_owned()))?;
                (word, behind)
            }
            _ => {
                let end =
                    rest.find(|c: char| c.is_whitespace() || "()!=\"".contains(c)).unwrap_or(rest.len());
                rest.split_at(end)
            }
        };
        words.push(word.to_owned());
        rest = behind.trim_start();
    }
    Ok(words)
}

struct Parser {
    words: Vec<String>,
    next: usize,
}

impl Parser {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.next).map(String::as_str)
    }
    fn take(&mut self) -> Option<String> {
        let word = self.words.get(self.next).cloned();
        self.next += usize::from(word.is_some());
        word
    }
    fn takes(&mut self, words: &[&str]) -> bool {
        let found = self.peek().is_some_and(|word| words.contains(&word));
        self.next += usize::from(found);
        found
    }
    fn any(&mut self, depth: usize) -> Result<Node, FilterError> {
        let mut node = self.all(depth)?;
        while self.takes(&["or", "||"]) {
            node = Node::Or(Box::new(node), Box::new(self.all(depth)?));
        }
        Ok(node)
    }
    fn all(&mut self, depth: usize) -> Result<Node, FilterError> {
        let mut node = self.one(depth)?;
        while self.peek().is_some_and(|word| !["or", "||", ")"].contains(&word)) {
            self.takes(&["and", "&&"]);
            node = Node::And(Box::new(node), Box::new(self.one(depth)?));
        }
        Ok(node)
    }
    fn one(&mut self, depth: usize) -> Result<Node, FilterError> {
        if depth > DEEPEST {
            return Err(FilterError("too many parentheses".to_owned()));
        }
        if self.takes(&["not", "!"]) {
            return Ok(Node::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.takes(&["("]) {
            let node = self.any(depth + 1)?;
            return match self.takes(&[")"]) {
                true => Ok(node),
                false => Err(FilterError("a parenthesis is not closed".to_owned())),
            };
        }
        self.test().map(Node::Is)
    }
    fn test(&mut self) -> Result<Test, FilterError> {
        let word = self.take().ok_or_else(|| FilterError("something is missing at the end".to_owned()))?;
        let known = ["state", "src", "local", "dst", "peer", "sport", "dport", "port", "cause"];
        if !known.contains(&word.as_str()) {
            return match word.as_str() {
                ")" | "=" | "and" | "or" | "&&" | "||" => {
                    Err(FilterError(format!("{word:?} stands at the wrong place")))
                }
                _ => Ok(Test::Text(word)),
            };
        }
        self.takes(&["=", "eq", "is"]);
        let missing = || FilterError(format!("{word} needs a value, such as {}", example(&word)));
        let value = self.take().ok_or_else(missing)?;
        let wrong = || FilterError(format!("{word} {value:?}: give {}", example(&word)));
        let network = || network(&value).ok_or_else(wrong);
        let port = || value.trim_start_matches(':').parse().map_err(|_| wrong());
        match word.as_str() {
            "state" => states(&value).map(Test::States).ok_or_else(wrong),
            "src" | "local" => network().map(Test::Local),
            "dst" | "peer" => network().map(Test::Peer),
            "sport" => port().map(Test::LocalPort),
            "dport" => port().map(Test::PeerPort),
            "port" => port().map(Test::Port),
            _ => {
                let found =
                    SendCause::ALL.iter().find(|cause| cause.text() == value || cause.word() == value);
                found.copied().map(Test::Cause).ok_or_else(wrong)
            }
        }
    }
}

fn example(word: &str) -> String {
    match word {
        "state" => "established, syn-sent, time-wait, closing, connected or another state of TCP".to_owned(),
        "src" | "local" | "dst" | "peer" => "an address or a network, such as 10.9.0.0/16".to_owned(),
        "cause" => SendCause::ALL.iter().map(|cause| cause.word()).collect::<Vec<_>>().join(", "),
        _ => "a port, such as 80".to_owned(),
    }
}

fn network(text: &str) -> Option<Cidr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    text.parse().ok().or_else(|| bare.parse::<IpAddr>().ok().map(Cidr::whole))
}

/// States by name; `connected` is all but those of the handshake and of the end, as `ss` has it.
fn states(text: &str) -> Option<Vec<TcpState>> {
    const ALL: [TcpState; 10] = [
        TcpState::SynSent,
        TcpState::SynReceived,
        TcpState::Established,
        TcpState::FinWait1,
        TcpState::FinWait2,
        TcpState::CloseWait,
        TcpState::Closing,
        TcpState::LastAck,
        TcpState::TimeWait,
        TcpState::Closed,
    ];
    let name = text.to_ascii_uppercase().replace('_', "-");
    let states: Vec<TcpState> = match name.as_str() {
        "ALL" => ALL.to_vec(),
        "CONNECTED" => ALL[1..9].to_vec(),
        "SYNCHRONIZED" | "SYNCHRONISED" => ALL[2..9].to_vec(),
        "SYN-RECV" => vec![TcpState::SynReceived],
        name => ALL
            .into_iter()
            .filter(|state| state.text() == name || state.text().replace("-", "") == name.replace("-", ""))
            .collect(),
    };
    (!states.is_empty()).then_some(states)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_ss_choose() {
        let subject = Subject {
            local: Endpoint::new([10, 9, 0, 1], 80),
            remote: Endpoint::new([192, 0, 2, 7], 40_000),
            state: TcpState::Established,
            cause: SendCause::ReceiverWindow,
        };
        let has =
            |text: &str| text.parse::<Filter>().unwrap_or_else(|why| panic!("{text}: {why}")).has(&subject);
        for text in [
            "",
            "state established",
            "state connected sport = :80",
            "src 10.9.0.0/16 and dst 192.0.2.7",
            "dport 40000 or dport 1",
            "not port 81",
            "! ( port 81 or port 82 )",
            "cause receivers-window",
            "cause \"receiver's window\"",
            "192.0.2",
            "state FIN_WAIT_1 or sport eq :80",
        ] {
            assert!(has(text), "{text}");
        }
        for text in ["state time-wait", "port 80 port 81", "not 10.9", "cause pacing", "peer 10.0.0.0/8"] {
            assert!(!has(text), "{text}");
        }
        let deep = "(".repeat(200) + "port 1";
        for text in [
            "port",
            "port x",
            "( port 1",
            "port 1 )",
            "state open",
            "and",
            "\"open",
            "cause x",
            deep.as_str(),
        ] {
            assert!(text.parse::<Filter>().is_err(), "{text}");
        }
        assert!("cause x".parse::<Filter>().unwrap_err().to_string().contains("receivers-window"));
    }
}
