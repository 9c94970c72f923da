//! The one-line form of a rule.

use std::fmt;
use std::str::FromStr;

use inhost_base::{Cidr, Duration, IpAddr};
use inhost_common::Pattern;
use inhost_common::service::size_bytes;

use super::rule::{Action, Frequency, Matches, Refusal, Rule, Stage};

/// The longest text of a rule.
pub const RULE_BYTES: usize = 1024;
/// The longest delay, and the longest time of a rate limit.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest text of a reply: with its codes it fits a line of 512 octets (RFC 5321 §4.5.3.1.5).
const REPLY_TEXT_BYTES: usize = 400;

/// What is wrong with the text of a rule or a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleError(String);

impl RuleError {
    pub(crate) fn new(text: impl Into<String>) -> RuleError {
        RuleError(text.into())
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for RuleError {}

/// The rule of a line: words with one space or more between them, each a key, `=` and a value, or `drop`. A value with
/// spaces stands in double quotes; within them `\"` and `\\` are a quote and a backslash.
///
/// ```
/// use inhost_mailcatch::rules::{Rule, Stage};
/// let rule: Rule = "recipient=*@full.example reply=\"452 4.2.2 Mailbox full\" first=3".parse()?;
/// assert_eq!((rule.matches.stage, rule.frequency.first), (Stage::Recipient, Some(3)));
/// assert_eq!(rule.to_string().parse(), Ok(rule));
/// # Ok::<(), inhost_mailcatch::rules::RuleError>(())
/// ```
impl FromStr for Rule {
    type Err = RuleError;
    fn from_str(text: &str) -> Result<Rule, RuleError> {
        if text.len() > RULE_BYTES {
            return Err(RuleError::new(format!("a rule has at most {RULE_BYTES} octets")));
        }
        let mut read = Read::default();
        for (key, value) in words(text)? {
            read.take(&key, value)?;
        }
        read.rule()
    }
}

/// The words of a line, in pieces.
pub(super) fn words(text: &str) -> Result<Vec<(String, Option<String>)>, RuleError> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let (key, behind) = rest.split_at(end);
        let Some(value) = behind.strip_prefix('=') else {
            words.push((key.to_owned(), None));
            rest = behind.trim_start();
            continue;
        };
        let (value, behind) =
            value_of(value).ok_or_else(|| RuleError::new(format!("{key}: a quote has no end")))?;
        words.push((key.to_owned(), Some(value)));
        rest = behind.trim_start();
    }
    Ok(words)
}

/// A value, and what is behind it; `None` where a quote has no end or more follows it.
fn value_of(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
        return Some((value.to_owned(), rest));
    };
    let (mut value, mut characters) = (String::new(), quoted.char_indices());
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let rest = quoted.get(at + 1..).unwrap_or_default();
                return (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some((value, rest));
            }
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

#[derive(Default)]
struct Read {
    stage: Option<Stage>,
    sender: Option<(String, Pattern)>,
    recipient: Option<(String, Pattern)>,
    client: Option<Cidr>,
    action: Action,
    frequency: Frequency,
}

impl Read {
    fn take(&mut self, key: &str, value: Option<String>) -> Result<(), RuleError> {
        let wrong = |expected: &str| {
            let value = value.as_deref().unwrap_or_default();
            RuleError::new(format!("{key}={value}: give {expected}"))
        };
        let text = value.as_deref().unwrap_or_default();
        let number = || text.parse::<u64>().map_err(|_| wrong("a number"));
        let positive = || {
            number().and_then(|number| if number == 0 { Err(wrong("a number above 0")) } else { Ok(number) })
        };
        match key {
            "drop" if value.is_none() => self.action.drops = true,
            _ if value.is_none() => return Err(RuleError::new(format!("{key}: a word is KEY=VALUE, or drop"))),
            "stage" => {
                let names = "connect, hello, auth, mail, recipient, data or message";
                self.stage = Some(Stage::named(text).ok_or_else(|| wrong(names))?);
            }
            "sender" => self.sender = Some(pattern(text)),
            "recipient" => self.recipient = Some(pattern(text)),
            "client" => self.client = Some(network(text).ok_or_else(|| wrong("an address or a network such as 10.0.0.0/8"))?),
            "reply" => self.action.refusal = Some(refusal(text).ok_or_else(|| wrong("such as \"452 4.2.2 Mailbox full\": a code 400 to 599, an enhanced code of the same class or none, text"))?),
            "delay" => self.action.delay = duration(text).ok_or_else(|| wrong("a time up to a day, such as 500ms, 10s or 2m"))?,
            "speed" => {
                let speed = size_bytes(text).filter(|&bytes| bytes > 0);
                self.action.bytes_per_second = Some(speed.ok_or_else(|| wrong("bytes a second, such as 200 or 10K"))? as u64);
            }
            "after" => self.frequency.after = number()?,
            "first" => self.frequency.first = Some(positive()?),
            "every" => self.frequency.every = Some(positive()?),
            "rate" => {
                let rate = text.parse().ok().filter(|rate| (0.0..=1.0).contains(rate));
                self.frequency.rate = Some(rate.ok_or_else(|| wrong("a probability from 0 to 1"))?);
            }
            "over" => self.frequency.over = Some(over(text).ok_or_else(|| wrong("a number in a time, such as 10/1m"))?),
            "sessions-over" => self.frequency.sessions_over = Some(number()?),
            _ => return Err(RuleError::new(format!("{key}: not a key of a rule"))),
        }
        Ok(())
    }
    fn rule(self) -> Result<Rule, RuleError> {
        let Read { stage, sender, recipient, client, action, frequency } = self;
        if action == Action::default() {
            return Err(RuleError::new("a rule needs reply=, drop, delay= or speed="));
        }
        // What a rule asks for tells where, if it does not say so.
        let stage = stage.unwrap_or(match (&recipient, &sender, client) {
            (Some(_), _, _) => Stage::Recipient,
            (None, Some(_), _) => Stage::Mail,
            (None, None, Some(_)) => Stage::Connect,
            (None, None, None) => Stage::Message,
        });
        if recipient.is_some() && stage < Stage::Recipient || sender.is_some() && stage < Stage::Mail {
            let stage = stage.name();
            return Err(RuleError::new(format!("at the stage {stage} no sender and no recipient is known")));
        }
        Ok(Rule { matches: Matches { stage, sender, recipient, client }, action, frequency })
    }
}

fn pattern(text: &str) -> (String, Pattern) {
    let text = text.to_lowercase();
    let pattern = Pattern::new(&text);
    (text, pattern)
}

fn network(text: &str) -> Option<Cidr> {
    let alone = || text.parse::<IpAddr>().ok().map(Cidr::whole);
    text.parse().ok().or_else(alone)
}

fn refusal(text: &str) -> Option<Refusal> {
    let (code, rest) = text.split_once(' ').unwrap_or((text, ""));
    let number: u16 = code.parse().ok().filter(|number| (400..600).contains(number) && code.len() == 3)?;
    let (first, behind) = rest.split_once(' ').unwrap_or((rest, ""));
    let mut parts = first.split('.');
    let is_enhanced = first.split('.').count() == 3
        && parts
            .all(|part| (1..=3).contains(&part.len()) && part.bytes().all(|octet| octet.is_ascii_digit()));
    let (enhanced, text) = if is_enhanced { (first, behind) } else { ("", rest) };
    let is_of_class = enhanced.is_empty()
        || enhanced.starts_with(code.get(..1)?) && enhanced.as_bytes().get(1) == Some(&b'.');
    let is_text = text.len() <= REPLY_TEXT_BYTES && text.bytes().all(|octet| (b' '..0x7f).contains(&octet));
    (is_of_class && is_text).then(|| Refusal {
        code: number,
        enhanced: enhanced.to_owned(),
        text: text.to_owned(),
    })
}

fn duration(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let number: u64 = digits.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let duration = Duration::from_millis(number.checked_mul(millis)?);
    (duration <= LONGEST).then_some(duration)
}

fn over(text: &str) -> Option<(u64, Duration)> {
    let (number, time) = text.split_once('/')?;
    let time = duration(time).filter(|time| *time > Duration::ZERO)?;
    Some((number.parse().ok()?, time))
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { matches, action, frequency } = self;
        write!(f, "stage={}", matches.stage.name())?;
        for (key, pattern) in [("sender", &matches.sender), ("recipient", &matches.recipient)] {
            if let Some((text, _)) = pattern {
                write!(f, " {key}=")?;
                quoted(f, text)?;
            }
        }
        if let Some(client) = matches.client {
            write!(f, " client={client}")?;
        }
        if action.delay > Duration::ZERO {
            write!(f, " delay={}", Time(action.delay))?;
        }
        if let Some(speed) = action.bytes_per_second {
            write!(f, " speed={speed}")?;
        }
        if let Some(refusal) = &action.refusal {
            f.write_str(" reply=")?;
            quoted(f, &refusal.to_string())?;
        }
        if action.drops {
            f.write_str(" drop")?;
        }
        let Frequency { after, first, every, rate, over, sessions_over } = frequency;
        if *after > 0 {
            write!(f, " after={after}")?;
        }
        for (key, number) in [("first", first), ("every", every), ("sessions-over", sessions_over)] {
            if let Some(number) = number {
                write!(f, " {key}={number}")?;
            }
        }
        if let Some(rate) = rate {
            write!(f, " rate={rate}")?;
        }
        if let Some((number, time)) = over {
            write!(f, " over={number}/{}", Time(*time))?;
        }
        Ok(())
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c == '"' || c == '\\') {
        return write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    }
    f.write_str(text)
}

/// A time in the largest unit that is exact.
struct Time(Duration);
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let units = [(3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];
        let fits = units.into_iter().find(|(unit, _)| millis.is_multiple_of(*unit));
        let (unit, name) = fits.unwrap_or((1, "ms"));
        write!(f, "{}{name}", millis / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_rule_and_the_rule_that_line() {
        for (text, canonical) in [
            ("drop", "stage=message drop"),
            ("  reply=450  every=3 ", "stage=message reply=450 every=3"),
            (
                "sender=*@Spam.example reply=\"550 5.7.1 Go away\"",
                "stage=mail sender=*@spam.example reply=\"550 5.7.1 Go away\"",
            ),
            ("sender=\"\" delay=90s", "stage=mail sender=\"\" delay=90s"),
            (
                "client=10.0.0.9 reply=\"421 4.7.0 Busy\" over=10/60s",
                "stage=connect client=10.0.0.9/32 reply=\"421 4.7.0 Busy\" over=10/1m",
            ),
            ("stage=connect reply=421 sessions-over=4", "stage=connect reply=421 sessions-over=4"),
            (
                "stage=data speed=1K rate=0.25 first=2 after=1",
                "stage=data speed=1024 after=1 first=2 rate=0.25",
            ),
            ("reply=\"550 say \\\"no\\\" \\\\\"", "stage=message reply=\"550 say \\\"no\\\" \\\\\""),
        ] {
            let rule: Rule = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(rule.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(rule));
        }
    }

    #[test]
    fn what_is_no_rule_is_refused_with_a_word() {
        for (text, word) in [
            ("", "needs reply="),
            ("first=3", "needs reply="),
            ("reply=250", "400 to 599"),
            ("reply=\"450 5.1.1 other class\"", "same class"),
            ("reply=\"450 a\nb\"", "reply="),
            ("reply=\"450", "no end"),
            ("reply=\"450\"x", "no end"),
            ("drop rate=2", "0 to 1"),
            ("drop rate=NaN", "0 to 1"),
            ("drop every=0", "above 0"),
            ("drop delay=99h", "up to a day"),
            ("drop over=1/0s", "10/1m"),
            ("drop colour=red", "not a key"),
            ("drop now", "KEY=VALUE"),
            ("stage=hello recipient=* drop", "no recipient is known"),
        ] {
            let error = text.parse::<Rule>().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!("x".repeat(RULE_BYTES + 1).parse::<Rule>().is_err());
    }
}
