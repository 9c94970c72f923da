//! The grammar: pcap-filter(7), and `conversation END END` of our own.
//!
//! `and` and `or` have the same rank and are read from left to right, as tcpdump reads them. A value without qualifiers
//! has those of the value before it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::FilterError;
use super::lex::{Token, tokens};
use super::number::{Number, Operator, Relation};
use super::test::{Family, Layer, Ports, Shift, Side, Test};

/// Brackets and `not`s within each other.
const MAX_DEPTH: usize = 64;

/// Services by name, those of /etc/services that people write.
const SERVICES: [(&str, u16); 34] = [
    ("echo", 7),
    ("discard", 9),
    ("daytime", 13),
    ("chargen", 19),
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("time", 37),
    ("whois", 43),
    ("domain", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("finger", 79),
    ("http", 80),
    ("pop3", 110),
    ("sunrpc", 111),
    ("ntp", 123),
    ("imap2", 143),
    ("snmp", 161),
    ("bgp", 179),
    ("https", 443),
    ("submissions", 465),
    ("exec", 512),
    ("login", 513),
    ("shell", 514),
    ("syslog", 514),
    ("submission", 587),
    ("ipp", 631),
    ("imaps", 993),
    ("pop3s", 995),
    ("nfs", 2049),
];

/// Names of offsets and values.
const CONSTANTS: [(&str, u32); 30] = [
    ("tcpflags", 13),
    ("tcp-fin", 0x01),
    ("tcp-syn", 0x02),
    ("tcp-rst", 0x04),
    ("tcp-push", 0x08),
    ("tcp-ack", 0x10),
    ("tcp-urg", 0x20),
    ("tcp-ece", 0x40),
    ("tcp-cwr", 0x80),
    ("icmptype", 0),
    ("icmpcode", 1),
    ("icmp-echoreply", 0),
    ("icmp-unreach", 3),
    ("icmp-sourcequench", 4),
    ("icmp-redirect", 5),
    ("icmp-echo", 8),
    ("icmp-routeradvert", 9),
    ("icmp-routersolicit", 10),
    ("icmp-timxceed", 11),
    ("icmp-paramprob", 12),
    ("icmp-tstamp", 13),
    ("icmp-tstampreply", 14),
    ("icmp6type", 0),
    ("icmp6code", 1),
    ("icmp6-echo", 128),
    ("icmp6-echoreply", 129),
    ("icmp6-routersolicit", 133),
    ("icmp6-routeradvert", 134),
    ("icmp6-neighborsolicit", 135),
    ("icmp6-neighboradvert", 136),
];

/// IP protocols by name.
const PROTOCOLS: [(&str, u32); 9] = [
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmp6", 58),
    ("sctp", 132),
];

/// Protocols that qualify.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    Ether,
    Ip,
    Ip6,
    Arp,
    Rarp,
    Tcp,
    Udp,
    Sctp,
    Icmp,
    Icmp6,
}

const OF: [(&str, Of); 10] = [
    ("ether", Of::Ether),
    ("ip", Of::Ip),
    ("ip6", Of::Ip6),
    ("arp", Of::Arp),
    ("rarp", Of::Rarp),
    ("tcp", Of::Tcp),
    ("udp", Of::Udp),
    ("sctp", Of::Sctp),
    ("icmp", Of::Icmp),
    ("icmp6", Of::Icmp6),
];

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Host,
    Net,
    Port,
    PortRange,
    Protocol,
}

const KINDS: [(&str, Kind); 5] = [
    ("host", Kind::Host),
    ("net", Kind::Net),
    ("port", Kind::Port),
    ("portrange", Kind::PortRange),
    ("proto", Kind::Protocol),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Qualifiers {
    of: Option<Of>,
    side: Side,
    kind: Option<Kind>,
}

struct Parser<'a> {
    tokens: Vec<(usize, Token<'a>)>,
    next: usize,
    end: usize,
    depth: usize,
    shift: Shift,
    qualifiers: Qualifiers,
}

type Parsed<T> = Result<T, FilterError>;

fn named<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(name, _)| *name == word).map(|&(_, value)| value)
}

/// Reads a filter; an empty one chooses all.
pub(super) fn parse(text: &str) -> Parsed<Option<Test>> {
    let tokens = tokens(text)?;
    if tokens.is_empty() {
        return Ok(None);
    }
    let (end, qualifiers) = (text.trim_end().len(), Qualifiers::default());
    let mut parser = Parser { tokens, next: 0, end, depth: 0, shift: 0, qualifiers };
    let root = parser.expression()?;
    match parser.peek() {
        None => Ok(Some(root)),
        Some(Token::Symbol(")")) => parser.fail("no bracket was opened for this one"),
        Some(_) => parser.fail("and or or is missing before this"),
    }
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }
    fn peek_at(&self, ahead: usize) -> Option<&Token<'a>> {
        self.tokens.get(self.next + ahead).map(|(_, token)| token)
    }
    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |&(at, _)| at)
    }
    fn fail<T>(&self, text: impl Into<String>) -> Parsed<T> {
        Err(FilterError { at: self.at(), text: text.into() })
    }
    /// Takes one of these words or symbols.
    fn take(&mut self, any: &[&str]) -> bool {
        let is_there = match self.peek() {
            Some(Token::Word(word)) => any.contains(word),
            Some(Token::Symbol(symbol)) => any.contains(symbol),
            None => false,
        };
        self.next += usize::from(is_there);
        is_there
    }
    fn word(&self) -> Option<&'a str> {
        match self.peek() {
            Some(&Token::Word(word)) => Some(word),
            _ => None,
        }
    }
    fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return self.fail(format!("more than {MAX_DEPTH} levels"));
        }
        self.depth += 1;
        let done = work(self);
        self.depth -= 1;
        done
    }

    fn expression(&mut self) -> Parsed<Test> {
        let mut test = self.term()?;
        loop {
            if self.take(&["and", "&&"]) {
                test = Test::And(Box::new(test), Box::new(self.term()?));
            } else if self.take(&["or", "||"]) {
                test = Test::Or(Box::new(test), Box::new(self.term()?));
            } else {
                return Ok(test);
            }
        }
    }
    fn term(&mut self) -> Parsed<Test> {
        if self.take(&["not", "!"]) {
            return self.deeper(|parser| Ok(Test::Not(Box::new(parser.term()?))));
        }
        // Numbers and hosts may begin alike, and so may brackets of both kinds: the comparison decides.
        let (before, shift) = (self.next, self.shift);
        let relation = self.relation();
        if let Ok(test) = relation {
            return Ok(test);
        }
        let far = self.next;
        (self.next, self.shift) = (before, shift);
        // An offset or an operator behind the first word says that a comparison was meant.
        let operators =
            ["[", "=", "==", "!=", "<", ">", "<=", ">=", "+", "-", "*", "%", "&", "|", "^", "<<", ">>"];
        let is_length = self.word() == Some("len");
        if is_length || matches!(self.peek_at(1), Some(Token::Symbol(symbol)) if operators.contains(symbol)) {
            self.next = far;
            return relation;
        }
        if self.take(&["("]) {
            let test = self.deeper(Parser::expression)?;
            return match self.take(&[")"]) {
                true => Ok(test),
                false => self.fail("a closing bracket is missing here"),
            };
        }
        self.primitive()
    }

    fn relation(&mut self) -> Parsed<Test> {
        let one = self.sum(0)?;
        let relations = [
            ("=", Relation::Equal),
            ("==", Relation::Equal),
            ("!=", Relation::Unequal),
            ("<", Relation::Less),
            (">", Relation::Greater),
            ("<=", Relation::AtMost),
            (">=", Relation::AtLeast),
        ];
        let relation = match self.peek() {
            Some(&Token::Symbol(symbol)) => named(&relations, symbol),
            _ => None,
        };
        let Some(relation) = relation else {
            return self.fail("a comparison is missing here: = != < > <= >=");
        };
        self.next += 1;
        let other = self.sum(0)?;
        Ok(Test::Relation { relation, one, other, shift: self.shift })
    }
    /// Operators by rank, as in C and as libpcap has them.
    fn sum(&mut self, rank: usize) -> Parsed<Number> {
        const RANKS: [&[(&str, Operator)]; 5] = [
            &[("|", Operator::Or), ("^", Operator::ExclusiveOr)],
            &[("&", Operator::And)],
            &[("<<", Operator::Left), (">>", Operator::Right)],
            &[("+", Operator::Plus), ("-", Operator::Minus)],
            &[("*", Operator::Times), ("/", Operator::Over), ("%", Operator::Modulo)],
        ];
        let Some(operators) = RANKS.get(rank) else { return self.value() };
        let mut number = self.sum(rank + 1)?;
        while let Some(&Token::Symbol(symbol)) = self.peek()
            && let Some(operator) = named(operators, symbol)
        {
            self.next += 1;
            let other = self.sum(rank + 1)?;
            if matches!(operator, Operator::Over | Operator::Modulo) && other.constant() == Some(0) {
                return self.fail("this divides by zero");
            }
            number = Number::Two(operator, Box::new(number), Box::new(other));
        }
        Ok(number)
    }
    fn value(&mut self) -> Parsed<Number> {
        if self.take(&["-"]) {
            return self.deeper(|parser| Ok(Number::Negative(Box::new(parser.value()?))));
        }
        if self.take(&["("]) {
            let number = self.deeper(|parser| parser.sum(0))?;
            return match self.take(&[")"]) {
                true => Ok(number),
                false => self.fail("a closing bracket is missing here"),
            };
        }
        let Some(word) = self.word() else { return self.fail("a number is missing here") };
        if word == "len" {
            self.next += 1;
            return Ok(Number::Length);
        }
        if let Some(value) = integer(word).or_else(|| named(&CONSTANTS, word)) {
            self.next += 1;
            return Ok(Number::Constant(value));
        }
        let layers = [
            ("ether", Layer::Link),
            ("link", Layer::Link),
            ("arp", Layer::Arp),
            ("rarp", Layer::Rarp),
            ("ip", Layer::Ip),
            ("ip6", Layer::Ip6),
            ("tcp", Layer::Tcp),
            ("udp", Layer::Udp),
            ("icmp", Layer::Icmp),
            ("icmp6", Layer::Icmp6),
        ];
        let Some(layer) = named(&layers, word) else {
            return self.fail(format!("{word:?} is not a number, nor a protocol with bytes"));
        };
        self.next += 1;
        if !self.take(&["["]) {
            return self.fail("an offset in square brackets is missing here, as in tcp[13]");
        }
        let at = self.deeper(|parser| parser.sum(0))?;
        let mut bytes = 1;
        if self.take(&[":"]) {
            bytes = match self.word() {
                Some("1") => 1,
                Some("2") => 2,
                Some("4") => 4,
                _ => return self.fail("a size is 1, 2 or 4 bytes"),
            };
            self.next += 1;
        }
        match self.take(&["]"]) {
            true => Ok(Number::Load { layer, at: Box::new(at), bytes }),
            false => self.fail("a closing square bracket is missing here"),
        }
    }

    fn primitive(&mut self) -> Parsed<Test> {
        let Some(word) = self.word() else {
            return self.fail("a test is missing here, such as host 10.9.0.2 or tcp port 80");
        };
        if let Some(test) = self.special(word)? {
            return Ok(test);
        }
        let mut found = Qualifiers { of: named(&OF, word), ..Qualifiers::default() };
        self.next += usize::from(found.of.is_some());
        let side = self.side();
        found.side = side.unwrap_or_default();
        found.kind = self.word().and_then(|word| named(&KINDS, word));
        self.next += usize::from(found.kind.is_some());
        if side.is_some() || found.kind.is_some() {
            self.qualifiers = found;
            return self.qualified();
        }
        match (found.of, self.word()) {
            (None, Some(_)) => self.identifier(),
            // An address behind a protocol: `ip 10.9.0.2`.
            (Some(_), Some(word)) if is_address(word) => {
                self.qualifiers = found;
                self.identifier()
            }
            (Some(of), _) => {
                // A value that follows has it, as in `tcp or port 80` it has not.
                self.qualifiers = Qualifiers::default();
                self.protocol(of)
            }
            (None, None) => self.fail("a value is missing here"),
        }
    }
    /// One value, or several in brackets: `port (80 or 443)`.
    fn qualified(&mut self) -> Parsed<Test> {
        if !self.take(&["("]) {
            return self.identifier();
        }
        let test = self.deeper(Parser::expression)?;
        match self.take(&[")"]) {
            true => Ok(test),
            false => self.fail("a closing bracket is missing here"),
        }
    }
    fn side(&mut self) -> Option<Side> {
        let words = [self.peek(), self.peek_at(1), self.peek_at(2)].map(|token| match token {
            Some(&Token::Word(word)) => word,
            Some(&Token::Symbol(symbol)) => symbol,
            None => "",
        });
        let (side, taken) = match words {
            ["src", "or" | "||", "dst"] | ["dst", "or" | "||", "src"] => (Side::Either, 3),
            ["src", "and" | "&&", "dst"] | ["dst", "and" | "&&", "src"] => (Side::Both, 3),
            ["src", ..] => (Side::Source, 1),
            ["dst", ..] => (Side::Destination, 1),
            _ => return None,
        };
        self.next += taken;
        Some(side)
    }
    /// Tests that are a word of their own.
    fn special(&mut self, word: &str) -> Parsed<Option<Test>> {
        let before = self.next;
        let (of, word) = match (word, self.peek_at(1)) {
            ("ether" | "ip" | "ip6", Some(&Token::Word(second @ ("broadcast" | "multicast")))) => {
                self.next += 1;
                (word, second)
            }
            _ => ("ether", word),
        };
        self.next += 1;
        let byte = |layer, at| Box::new(Number::Load { layer, at: Box::new(Number::Constant(at)), bytes: 1 });
        let compare = |relation, one: Number, other| Test::Relation {
            relation,
            one,
            other: Number::Constant(other),
            shift: self.shift,
        };
        let test = match (of, word) {
            ("ether", "broadcast") => Test::Mac(Side::Destination, [0xff; 6]),
            ("ether", "multicast") => {
                let one = Number::Two(Operator::And, byte(Layer::Link, 0), Box::new(Number::Constant(1)));
                compare(Relation::Unequal, one, 0)
            }
            ("ip", "multicast") => compare(Relation::AtLeast, *byte(Layer::Ip, 16), 224),
            ("ip6", "multicast") => compare(Relation::Equal, *byte(Layer::Ip6, 24), 255),
            ("ip", "broadcast") => {
                return self.fail("the network's mask is not known; write ip dst host ADDRESS");
            }
            (_, "inbound") => Test::Inbound(true),
            (_, "outbound") => Test::Inbound(false),
            (_, "less" | "greater") => {
                let relation = if word == "less" { Relation::AtMost } else { Relation::AtLeast };
                let Some(length) = self.word().and_then(integer) else {
                    return self.fail("a length is missing here");
                };
                self.next += 1;
                compare(relation, Number::Length, length)
            }
            (_, "vlan") => {
                let id = self.word().and_then(integer);
                self.next += usize::from(id.is_some());
                let shift = self.shift;
                // All that is said from here on is of what the tag carries.
                self.shift += 4;
                Test::Tag { id, shift }
            }
            (_, "conversation") => {
                let mut end = || match self.word().and_then(|word| word.parse().ok()) {
                    Some(end) => {
                        self.next += 1;
                        Ok(end)
                    }
                    None => self.fail("an end is missing here, such as 10.9.0.2:80"),
                };
                Test::Between(end()?, end()?, self.shift)
            }
            (_, name) => match PROTOCOLS.iter().find(|(known, _)| *known == name) {
                // Those that are not qualifiers.
                Some(&(_, number)) if named(&OF, name).is_none() => {
                    Test::Protocol { number, ip: true, ip6: true, shift: self.shift }
                }
                _ => {
                    self.next = before;
                    return Ok(None);
                }
            },
        };
        Ok(Some(test))
    }
    fn protocol(&self, of: Of) -> Parsed<Test> {
        let shift = self.shift;
        let transport = |number, ip, ip6| Test::Protocol { number, ip, ip6, shift };
        Ok(match of {
            Of::Ip => Test::Type(0x0800, shift),
            Of::Ip6 => Test::Type(0x86dd, shift),
            Of::Arp => Test::Type(0x0806, shift),
            Of::Rarp => Test::Type(0x8035, shift),
            Of::Tcp => transport(6, true, true),
            Of::Udp => transport(17, true, true),
            Of::Sctp => transport(132, true, true),
            Of::Icmp => transport(1, true, false),
            Of::Icmp6 => transport(58, false, true),
            Of::Ether => {
                return self.fail("ether needs host, src, dst, proto, broadcast or multicast behind it");
            }
        })
    }
    /// A value with the qualifiers that hold.
    fn identifier(&mut self) -> Parsed<Test> {
        let Some(word) = self.word() else {
            return self.fail("a value is missing here: an address, a network or a port");
        };
        let Qualifiers { of, side, kind } = self.qualifiers;
        match kind.unwrap_or(Kind::Host) {
            Kind::Host if of == Some(Of::Ether) => self.mac(word, side),
            Kind::Host => self.host(word, of, side),
            Kind::Net => self.net(word, of, side),
            Kind::Port | Kind::PortRange => self.port(word, of, side),
            Kind::Protocol => self.protocol_number(word, of),
        }
    }
    fn mac(&mut self, word: &str, side: Side) -> Parsed<Test> {
        let bytes: Option<Vec<u8>> =
            word.split([':', '-']).map(|part| u8::from_str_radix(part, 16).ok()).collect();
        match bytes.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok()) {
            Some(address) => {
                self.next += 1;
                Ok(Test::Mac(side, address))
            }
            None => self.fail(format!("{word:?} is not a MAC address, such as 02:00:00:00:00:01")),
        }
    }
    fn family(&self, of: Option<Of>) -> Parsed<Family> {
        match of {
            None | Some(Of::Ether) => Ok(Family::Any),
            Some(Of::Ip | Of::Ip6) => Ok(Family::Ip),
            Some(Of::Arp) => Ok(Family::Arp),
            Some(Of::Rarp) => Ok(Family::Rarp),
            Some(_) => self.fail("an address has no transport; write tcp and host ADDRESS"),
        }
    }
    fn host(&mut self, word: &str, of: Option<Of>, side: Side) -> Parsed<Test> {
        let family = self.family(of)?;
        let Ok(net) = word.parse::<IpAddr>() else {
            let what = match named(&KINDS, word).is_some() || named(&OF, word).is_some() {
                true => format!("{word:?} is a keyword; a value is missing before it"),
                false => format!(
                    "{word:?} is not an address, and names are not looked up; is it a word that is misspelt?"
                ),
            };
            return self.fail(what);
        };
        if net.is_ipv4() && of == Some(Of::Ip6) || net.is_ipv6() && of.is_some_and(|of| of != Of::Ip6) {
            return self.fail(format!("{word} is of the other family"));
        }
        self.next += 1;
        let mask: IpAddr =
            if net.is_ipv4() { Ipv4Addr::BROADCAST.into() } else { Ipv6Addr::from([0xff; 16]).into() };
        Ok(Test::Net { family, side, net, mask, shift: self.shift })
    }
    fn net(&mut self, word: &str, of: Option<Of>, side: Side) -> Parsed<Test> {
        let family = self.family(of)?;
        let shift = self.shift;
        if let Ok(net) = word.parse::<Ipv6Addr>() {
            self.next += 1;
            let bits = self.prefix(128)?.unwrap_or(128);
            let mask = Ipv6Addr::from(u128::MAX.checked_shl(128 - bits).unwrap_or(0));
            if net.to_bits() & !mask.to_bits() != 0 {
                return self.fail(format!("{word} has bits behind its prefix"));
            }
            return Ok(Test::Net { family, side, net: net.into(), mask: mask.into(), shift });
        }
        let parts: Option<Vec<u8>> = word.split('.').map(|part| part.parse().ok()).collect();
        let Some(parts) = parts.filter(|parts| parts.len() <= 4) else {
            return self.fail(format!("{word:?} is not a network, such as 10.9.0.0/24 or fd00::/8"));
        };
        self.next += 1;
        let known_bits = 8 * parts.len() as u32;
        let mut octets = [0; 4];
        octets[..parts.len()].copy_from_slice(&parts);
        let net = u32::from_be_bytes(octets);
        let mask = if self.take(&["mask"]) {
            let Some(mask) = self.word().and_then(|word| word.parse::<Ipv4Addr>().ok()) else {
                return self.fail("a mask is missing here, such as 255.255.255.0");
            };
            self.next += 1;
            mask.to_bits()
        } else {
            let bits = self.prefix(32)?.unwrap_or(known_bits);
            u32::MAX.checked_shl(32 - bits).unwrap_or(0)
        };
        if net & !mask != 0 {
            return self.fail(format!("{word} has bits that its mask has not"));
        }
        let (net, mask) = (Ipv4Addr::from_bits(net).into(), Ipv4Addr::from_bits(mask).into());
        Ok(Test::Net { family, side, net, mask, shift })
    }
    /// The length behind a slash.
    fn prefix(&mut self, most: u32) -> Parsed<Option<u32>> {
        if !self.take(&["/"]) {
            return Ok(None);
        }
        match self.word().and_then(integer).filter(|&bits| bits <= most) {
            Some(bits) => {
                self.next += 1;
                Ok(Some(bits))
            }
            None => self.fail(format!("a prefix has up to {most} bits")),
        }
    }
    fn port(&mut self, word: &str, of: Option<Of>, side: Side) -> Parsed<Test> {
        let of = match of {
            None => Ports::Any,
            Some(Of::Tcp) => Ports::Tcp,
            Some(Of::Udp) => Ports::Udp,
            Some(Of::Sctp) => Ports::Sctp,
            Some(_) => return self.fail("ports are of tcp, udp and sctp"),
        };
        let number = |word: &str| named(&SERVICES, word).or_else(|| integer(word)?.try_into().ok());
        let is_range = self.qualifiers.kind == Some(Kind::PortRange);
        let ends = match word.split_once('-').filter(|_| is_range) {
            Some((least, most)) => number(least).zip(number(most)),
            None => number(word).map(|port| (port, port)),
        };
        let Some((least, most)) = ends else {
            let right = if is_range {
                "a range of ports, such as 6000-6010"
            } else {
                "a port or the name of a service"
            };
            return self.fail(format!("{word:?} is not {right}"));
        };
        self.next += 1;
        Ok(Test::Port { of, side, least: least.min(most), most: least.max(most), shift: self.shift })
    }
    fn protocol_number(&mut self, word: &str, of: Option<Of>) -> Parsed<Test> {
        let shift = self.shift;
        let types = [("ip", 0x0800), ("arp", 0x0806), ("rarp", 0x8035), ("ip6", 0x86dd)];
        let number = match of {
            Some(Of::Ether) => {
                named(&types, word).or_else(|| integer(word)).filter(|&number| number < 0x10000)
            }
            _ => named(&PROTOCOLS, word).or_else(|| integer(word)).filter(|&number| number < 256),
        };
        let Some(number) = number else {
            return self.fail(format!("{word:?} is not a protocol, a name or a number"));
        };
        self.next += 1;
        Ok(match of {
            Some(Of::Ether) => Test::Type(number, shift),
            Some(Of::Ip) => Test::Protocol { number, ip: true, ip6: false, shift },
            Some(Of::Ip6) => Test::Protocol { number, ip: false, ip6: true, shift },
            None => Test::Protocol { number, ip: true, ip6: true, shift },
            Some(_) => return self.fail("a protocol is of ether, ip or ip6"),
        })
    }
}

fn is_address(word: &str) -> bool {
    word.parse::<IpAddr>().is_ok()
}

/// A number in decimal, octal (0…) or hexadecimal (0x…).
fn integer(word: &str) -> Option<u32> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if word.len() > 1 && word.starts_with('0') => u32::from_str_radix(&word[1..], 8).ok(),
        None => word.parse().ok(),
    }
}
