//! The DNS tree walk from a domain to its organizational domain (RFC 9989 §4.10).

use super::Record;
use crate::dns::{Answer, Answers, Kind, Missing};

/// A domain with this many labels or more is cut to one label less than this on the first step.
const LABELS: usize = 8;

/// The records found on the way up from a domain, the longest name first.
pub(crate) struct Walk<'a> {
    start: &'a str,
    pub(crate) found: Vec<(&'a str, Record)>,
    /// The DNS did not answer for some name: records may be missing.
    pub(crate) is_cut: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(start: &'a str, answers: &Answers) -> Result<Walk<'a>, Missing> {
        let mut walk = Walk { start, found: Vec::new(), is_cut: false };
        let mut missing = Missing::new();
        let mut target = Some(start);
        while let Some(name) = target {
            match answers.ask(&format!("_dmarc.{name}"), Kind::Txt) {
                Ok(Answer::Texts(texts)) => {
                    let mut records = texts.iter().filter_map(|text| Record::parse(text));
                    // Several records count as none.
                    if let (Some(record), None) = (records.next(), records.next()) {
                        walk.found.push((name, record));
                        if record.is_suffix.is_some() {
                            break;
                        }
                    }
                }
                Ok(Answer::Failed) => {
                    walk.is_cut = true;
                    break;
                }
                Ok(_) => {}
                // Few walks end before the top, so all names are asked for at once.
                Err(more) => missing.extend(more),
            }
            target = up(name);
        }
        if missing.is_empty() { Ok(walk) } else { Err(missing) }
    }
    /// The organizational domain (RFC 9989 §4.10.2).
    pub(crate) fn organization(&self) -> &'a str {
        for (name, record) in &self.found {
            match record.is_suffix {
                Some(false) => return name,
                Some(true) if *name != self.start => return one_below(self.start, name),
                _ => {}
            }
        }
        self.found.last().map_or(self.start, |(name, _)| name)
    }
    /// The policy record for the domain where the walk began: its own, that of its organizational domain, or that of its
    /// public suffix (RFC 9989 §4.10.1).
    pub(crate) fn record(&self) -> Option<(&'a str, Record)> {
        let of = |name: &str| self.found.iter().find(|(found, _)| *found == name);
        let suffix = || self.found.last().filter(|(_, record)| record.is_suffix == Some(true));
        of(self.start).or_else(|| of(self.organization())).or_else(suffix).copied()
    }
}

/// The next name on the way up.
fn up(name: &str) -> Option<&str> {
    let labels = name.split('.').count();
    let dropped = if labels >= LABELS { labels - (LABELS - 1) } else { 1 };
    name.splitn(dropped + 1, '.').nth(dropped)
}

/// The name one label longer than `parent` on the way to `name`.
fn one_below<'a>(name: &'a str, parent: &str) -> &'a str {
    let front = &name[..name.len().saturating_sub(parent.len() + 1)];
    &name[front.rfind('.').map_or(0, |dot| dot + 1)..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::Query;

    fn answers(records: &[(&str, &str)]) -> Answers {
        let mut answers = Answers::default();
        for (name, text) in records {
            let query = Query::new(&format!("_dmarc.{name}"), Kind::Txt);
            answers.insert(query, Answer::Texts(vec![text.as_bytes().to_vec()]));
        }
        answers
    }

    /// RFC 9989 §4.10. spec: RFC9989 4.10
    #[test]
    fn a_long_name_takes_eight_questions() {
        let Err(missing) = Walk::new("a.b.c.d.e.f.g.h.i.j.mail.example.com", &answers(&[])) else { panic!() };
        let asked: Vec<_> = missing.iter().filter_map(|query| query.name.strip_prefix("_dmarc.")).collect();
        let wanted = "a.b.c.d.e.f.g.h.i.j.mail.example.com com example.com g.h.i.j.mail.example.com \
                      h.i.j.mail.example.com i.j.mail.example.com j.mail.example.com mail.example.com";
        assert_eq!(asked.join(" "), wanted);
    }

    /// RFC 9989 appendix B.3. spec: RFC9989 4.10.2
    #[test]
    fn organizations_are_those_of_the_examples() {
        let organization = |records: &[(&str, &str)], start: &str| {
            let mut answers = answers(records);
            for query in Walk::new(start, &answers).err().unwrap_or_default() {
                answers.insert(query, Answer::NoSuchName);
            }
            Walk::new(start, &answers).ok().unwrap().organization().to_owned()
        };
        let plain = [("example.com", "v=DMARC1; p=none"), ("signing.example.com", "v=DMARC1; p=none")];
        assert_eq!(organization(&plain, "signing.example.com"), "example.com");
        assert_eq!(organization(&plain, "a.b.c.d.e.f.g.h.i.j.k.example.com"), "example.com");
        let bank =
            [("bank.example", "v=DMARC1; p=reject; psd=y"), ("giant.bank.example", "v=DMARC1; p=none")];
        assert_eq!(organization(&bank, "mail.giant.bank.example"), "giant.bank.example");
        assert_eq!(organization(&bank, "mail.mega.bank.example"), "mega.bank.example");
        assert_eq!(organization(&bank, "bank.example"), "bank.example");
        let cut = [("mail.example.com", "v=DMARC1; p=none; psd=n"), ("example.com", "v=DMARC1; p=none")];
        assert_eq!(organization(&cut, "a.mail.example.com"), "mail.example.com");
        assert_eq!(organization(&[], "a.example.com"), "a.example.com");
    }
}
