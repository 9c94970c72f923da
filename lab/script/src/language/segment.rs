//! A segment's words: flags in capitals, then fields and options by name, in any order.

use super::words::{FLAGS, Words, Wrong, duration, expected, span, window};
use super::{About, Cookie, Echo, Icmp, IcmpKind, Presence, Segment};
use inhost_wire::Ecn;
use inhost_wire::tcp::Flags;

/// The segments of one line: more than one when `each` cuts the data.
pub(super) fn segments(words: &mut Words<'_>, incoming: bool) -> Result<Vec<Segment>, Wrong> {
    let mut parser = Parser {
        segment: Segment { peer: 1, ..Segment::default() },
        incoming,
        each: None,
        acknowledges: None,
    };
    while words.peek().is_some_and(|word| word != "at") {
        parser.field(words)?;
    }
    words.end("a segment")?;
    parser.finish()
}

struct Parser {
    segment: Segment,
    incoming: bool,
    each: Option<i64>,
    /// `ACK` or `no ACK`, where it is said.
    acknowledges: Option<bool>,
}

const FIELDS: &str = "a flag (SYN FIN RST PSH ACK URG ECE CWR) or one of: seq data each ack win urgent ecn mss \
                      scale sackok sack ts ecr fo no peer isn raw badsum forged";

impl Parser {
    fn field(&mut self, words: &mut Words<'_>) -> Result<(), Wrong> {
        let word = words.word(FIELDS)?;
        let segment = &mut self.segment;
        if word == "PSH" {
            segment.push = Some(true);
        } else if word == "ACK" {
            self.acknowledges = Some(true);
        } else if let Some(flag) = flag(word) {
            segment.flags |= flag;
        } else {
            match word {
                "no" => return self.absent(words),
                "seq" => segment.sequence = Some(words.number("a sequence number")?),
                "data" => segment.data = Some(spanned(words, "the data's numbers, such as 1..1001")?),
                "each" => self.each = Some(words.number("bytes of each segment")?),
                "ack" => segment.acknowledgment = Some(words.number("an acknowledgment number")?),
                "win" => {
                    let word = words.word("a window")?;
                    let any = "a window in bytes, a range such as 1000..2000, or `any`";
                    segment.window = Some(window(word).map_or_else(|| expected(any, Some(word)), Ok)?);
                }
                "urgent" => segment.urgent_pointer = Some(words.number("the urgent pointer")?),
                "ecn" => segment.ecn = Some(ecn(words.word("ce, ect0, ect1 or none")?)?),
                "peer" => segment.peer = words.number("a peer's number")?,
                _ if self.incoming => return self.incoming_field(word, words),
                _ => return self.option(word, words),
            }
        }
        Ok(())
    }
    /// Words that only the peer's segments know.
    fn incoming_field(&mut self, word: &str, words: &mut Words<'_>) -> Result<(), Wrong> {
        let segment = &mut self.segment;
        match word {
            "isn" => segment.initial_sequence = Some(words.number("an initial sequence number")?),
            "badsum" => segment.bad_checksum = true,
            "forged" => segment.forged = true,
            "raw" => {
                let word = words.word("an option's bytes in hexadecimal")?;
                segment.options.raw = hexadecimal(word)
                    .map_or_else(|| expected("an option's bytes in hexadecimal", Some(word)), Ok)?;
            }
            _ => return self.option(word, words),
        }
        Ok(())
    }
    fn option(&mut self, word: &str, words: &mut Words<'_>) -> Result<(), Wrong> {
        let any = !self.incoming && words.peek() == Some("any");
        let options = &mut self.segment.options;
        match word {
            "mss" if any => options.mss = Presence::Any,
            "scale" if any => options.scale = Presence::Any,
            "sack" if any => options.sack = Presence::Any,
            "mss" => options.mss = Presence::Is(words.number("a segment size in bytes")?),
            "scale" => options.scale = Presence::Is(words.number("a window scale")?),
            "sackok" => options.sack_permitted = Presence::Is(()),
            "sack" => options.sack = Presence::Is(blocks(words)?),
            "ts" => {
                options.timestamps = Presence::Is(());
                if let Some(Ok(value)) = words.peek().map(str::parse) {
                    words.next();
                    if !self.incoming {
                        return Err("the value of our own timestamp is not known ahead; write `ts`".into());
                    }
                    options.timestamp_value = Some(value);
                }
                return Ok(());
            }
            "ecr" => options.timestamp_echo = Some(echo(words.word(ECHO)?, self.incoming)?),
            "fo" if any => options.fast_open = Presence::Any,
            "fo" => options.fast_open = Presence::Is(cookie(words.word("request, cookie or bytes")?)?),
            _ => return expected(FIELDS, Some(word)),
        }
        if any {
            words.next();
        }
        Ok(())
    }
    fn absent(&mut self, words: &mut Words<'_>) -> Result<(), Wrong> {
        let what = "PSH, ACK, mss, scale, sackok, sack, ts or fo after `no`";
        let options = &mut self.segment.options;
        match words.word(what)? {
            "PSH" => self.segment.push = Some(false),
            "ACK" => self.acknowledges = Some(false),
            "mss" => options.mss = Presence::Absent,
            "scale" => options.scale = Presence::Absent,
            "sackok" => options.sack_permitted = Presence::Absent,
            "sack" => options.sack = Presence::Absent,
            "ts" => options.timestamps = Presence::Absent,
            "fo" => options.fast_open = Presence::Absent,
            other => return expected(what, Some(other)),
        }
        Ok(())
    }
    fn finish(mut self) -> Result<Vec<Segment>, Wrong> {
        let flags = self.segment.flags;
        // What is neither the first segment nor a reset acknowledges, unless it says otherwise.
        let usual = !flags.syn() && !flags.rst();
        if self.acknowledges.unwrap_or(usual || self.segment.acknowledgment.is_some()) {
            self.segment.flags |= Flags::ACK;
        }
        if !self.segment.flags.ack() && self.segment.acknowledgment.is_some() {
            return Err("`ack` says a number, `no ACK` denies it".into());
        }
        if let (Some(sequence), Some((from, _))) = (self.segment.sequence, self.segment.data)
            && sequence != from
            && !flags.syn()
        {
            return Err(format!("`seq {sequence}` contradicts data that begins at {from}"));
        }
        match (self.each, self.segment.data) {
            (None, _) => Ok(vec![self.segment]),
            (Some(each), Some((from, to))) if each > 0 && (to - from) / each < 1000 => {
                let cut = |start| Segment {
                    data: Some((start, (start + each).min(to))),
                    // The flags of the end belong to the last piece.
                    flags: if start + each < to {
                        flags_of_middle(&self.segment)
                    } else {
                        self.segment.flags
                    },
                    push: if start + each < to && self.incoming { None } else { self.segment.push },
                    ..self.segment.clone()
                };
                Ok((0..).map(|n| from + n * each).take_while(|&start| start < to).map(cut).collect())
            }
            (Some(_), _) => Err("`each` needs data to cut, into at most 1000 segments".into()),
        }
    }
}

fn flags_of_middle(segment: &Segment) -> Flags {
    segment.flags.difference(Flags::FIN)
}
fn flag(word: &str) -> Option<Flags> {
    FLAGS.iter().find(|(_, name)| *name == word).map(|&(flag, _)| flag)
}
fn spanned(words: &mut Words<'_>, what: &str) -> Result<(i64, i64), Wrong> {
    let word = words.word(what)?;
    span(word).map_or_else(|| expected(what, Some(word)), Ok)
}
fn blocks(words: &mut Words<'_>) -> Result<Vec<(i64, i64)>, Wrong> {
    let mut blocks = vec![spanned(words, "a block's numbers, such as 1001..2001, or `any`")?];
    while let Some(block) = words.peek().and_then(span) {
        words.next();
        blocks.push(block);
    }
    Ok(blocks)
}
fn ecn(word: &str) -> Result<Ecn, Wrong> {
    Ok(match word {
        "none" => Ecn::NotCapable,
        "ect0" => Ecn::Capable0,
        "ect1" => Ecn::Capable1,
        "ce" => Ecn::CongestionExperienced,
        other => return expected("ce, ect0, ect1 or none", Some(other)),
    })
}
const ECHO: &str =
    "the timestamp that is echoed, or in an `in` an earlier one of the host's, such as last-100";
fn echo(word: &str, incoming: bool) -> Result<Echo, Wrong> {
    let read = match word.strip_prefix("last-") {
        Some(earlier) if incoming => earlier.parse().ok().map(Echo::Earlier),
        _ => word.parse().ok().map(Echo::Value),
    };
    read.map_or_else(|| expected(ECHO, Some(word)), Ok)
}
fn cookie(word: &str) -> Result<Cookie, Wrong> {
    match word {
        "request" => Ok(Cookie::Request),
        "cookie" => Ok(Cookie::Known),
        bytes => hexadecimal(bytes).map(Cookie::Bytes).map_or_else(
            || expected("`request`, `cookie`, or a cookie's bytes in hexadecimal", Some(bytes)),
            Ok,
        ),
    }
}
fn hexadecimal(word: &str) -> Option<Vec<u8>> {
    let pairs = word.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.1.is_empty().then(|| pairs.0.iter().map(byte).collect())?
}

/// The words after `in icmp`.
pub(super) fn icmp(words: &mut Words<'_>) -> Result<Icmp, Wrong> {
    let kind = icmp_kind(words)?;
    let mut icmp = Icmp { kind, about: About::Segment(0), peer: 1 };
    let word = words.word("`about`")?;
    if word != "about" {
        return expected("`about` and the sequence number of the segment quoted", Some(word));
    }
    icmp.about = if words.take("datagram") {
        About::Datagram(words.number("the port of ours that the datagram quoted came from")?)
    } else if words.take("sent") {
        About::Sent(words.number("which of the host's datagrams is quoted, from 1")?)
    } else {
        About::Segment(words.number("the sequence number of the segment quoted")?)
    };
    if words.take("peer") {
        icmp.peer = words.number("a peer's number")?;
    }
    words.end("an ICMP message")?;
    Ok(icmp)
}
/// Type of an ICMP error.
pub(super) fn icmp_kind(words: &mut Words<'_>) -> Result<IcmpKind, Wrong> {
    const KINDS: &str = "network-unreachable, host-unreachable, protocol-unreachable, port-unreachable, prohibited, \
                         time-exceeded, parameter-problem, source-quench or too-big";
    Ok(match words.word(KINDS)? {
        "network-unreachable" => IcmpKind::NetworkUnreachable,
        "host-unreachable" => IcmpKind::HostUnreachable,
        "protocol-unreachable" => IcmpKind::ProtocolUnreachable,
        "port-unreachable" => IcmpKind::PortUnreachable,
        "prohibited" => IcmpKind::Prohibited,
        "time-exceeded" => IcmpKind::TimeExceeded,
        "parameter-problem" => IcmpKind::ParameterProblem,
        "source-quench" => IcmpKind::SourceQuench,
        "too-big" => {
            let word = words.word("`mtu`")?;
            if word != "mtu" {
                return expected("`mtu`", Some(word));
            }
            IcmpKind::TooBig(words.number("an MTU in bytes")?)
        }
        other => return expected(KINDS, Some(other)),
    })
}

/// When a line happens: `after 200ms`, `after 200ms ~5ms`, `after 180..220ms`.
pub(super) fn when(words: &mut Words<'_>) -> Result<super::When, Wrong> {
    const WHAT: &str = "a time such as 200ms, 1.5s or 180ms..220ms";
    let word = words.word(WHAT)?;
    if let Some((from, to)) = word.split_once("..") {
        return match (duration(from), duration(to)) {
            (Some(from), Some(to)) if from <= to => Ok(super::When::Between(from, to)),
            _ => expected(WHAT, Some(word)),
        };
    }
    let delay = duration(word).map_or_else(|| expected(WHAT, Some(word)), Ok)?;
    let tolerance = match words.peek().and_then(|word| word.strip_prefix('~')) {
        Some(word) => {
            words.next();
            Some(duration(word).map_or_else(|| expected("a tolerance such as ~5ms", Some(word)), Ok)?)
        }
        None => None,
    };
    Ok(super::When::After { delay, tolerance })
}
