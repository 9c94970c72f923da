//! From a name to addresses: literal, table, then the DNS.

use crate::answer::Answer;
use crate::asked::Question;
use crate::machine::{AttemptOutcome, Failed};
use crate::records::parse_name;
use crate::{Family, Hosts, LookUpError, Names, hosts, reverse_name};
use futures_lite::future;
use hickory_proto::rr::{Name, RData, RecordType};
use inhost_base::{Endpoint, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_common::Cleaner;

/// RFC 1035 §2.3.4.
const NAME_BYTES: usize = 255;

impl Names {
    /// The addresses of one family, from the DNS.
    pub(crate) async fn look_up_family(
        &self,
        name: &str,
        family: Family,
    ) -> Result<Vec<IpAddr>, LookUpError> {
        let kind = match family {
            Family::Six => RecordType::AAAA,
            Family::Four => RecordType::A,
        };
        let candidates = {
            let servers = self.servers.borrow();
            candidates(name, &servers.search, servers.dots)?
        };
        let mut failure = None;
        for candidate in candidates {
            let error = match self.ask(name, Question::new(candidate, kind)).await {
                Ok(answer) => {
                    let found: Vec<IpAddr> =
                        answer.wanted(kind).filter_map(|record| record.data.ip_addr()).collect();
                    if !found.is_empty() {
                        return Ok(found);
                    }
                    let (name, servers) = (name.to_owned(), self.asked_servers());
                    match answer.is_no_such_name() {
                        true => LookUpError::NoSuchName { name, servers },
                        false => LookUpError::NoAddress { name, servers },
                    }
                }
                Err(error) => error,
            };
            let is_final = !matches!(error, LookUpError::NoSuchName { .. } | LookUpError::NoAddress { .. });
            // A name without an address exists, whatever is said of the other candidates.
            if is_final || !matches!(failure, Some(LookUpError::NoAddress { .. })) {
                failure = Some(error);
            }
            // Servers that do not answer for one candidate do not for the next.
            if is_final {
                break;
            }
        }
        Err(failure.unwrap_or_else(|| LookUpError::NotAName { name: name.to_owned() }))
    }

    /// Both families at once; an error only when neither has an address.
    pub(crate) async fn look_up_both(&self, name: &str) -> Result<Vec<IpAddr>, LookUpError> {
        let six = self.look_up_family(name, Family::Six);
        let four = self.look_up_family(name, Family::Four);
        match future::zip(six, four).await {
            (Ok(mut six), Ok(four)) => {
                six.extend(four);
                Ok(six)
            }
            (Ok(found), Err(_)) | (Err(_), Ok(found)) => Ok(found),
            (Err(one), Err(other)) => Err(telling(one, other)),
        }
    }

    /// The name that the DNS gives to an address (RFC 1035 §3.5, RFC 3596 §2.5).
    pub(crate) async fn name_in_dns(&self, address: IpAddr) -> Option<String> {
        let question = Question::new(reverse_name(address), RecordType::PTR);
        let answer = self.ask("", question).await.ok()?;
        let name = answer.wanted(RecordType::PTR).find_map(|record| match &record.data {
            RData::PTR(name) => Some(&name.0),
            _ => None,
        })?;
        Some(Cleaner::line(name.to_ascii().trim_end_matches('.').as_bytes()))
    }

    /// The answer to a question: from the host's forwarder, from the cache, or from the servers. `name` is what the user
    /// asked for.
    async fn ask(&self, name: &str, question: Question) -> Result<Answer, LookUpError> {
        let started = self.host.now();
        let home = self.home.borrow().clone();
        let (result, attempts) = match home {
            Some(home) => {
                let looked = home.record(question, false).await;
                (looked.result, looked.attempts)
            }
            None => {
                if let Some((answer, _)) = self.cache.borrow_mut().look_up(&question, started) {
                    return Ok(answer);
                }
                let servers = self.servers.borrow().servers.clone();
                let report = self.asker.ask_to_the_end(question, &servers, false).await;
                // Answers of servers that have been replaced meanwhile are not kept.
                if let Ok(answer) = &report.result
                    && self.servers.borrow().servers == servers
                {
                    self.cache.borrow_mut().store(&report.question, answer, self.host.now());
                }
                (report.result, report.attempts)
            }
        };
        result.map_err(|why| {
            let (name, servers) = (name.to_owned(), self.asked_servers());
            let refusal = attempts.last().and_then(|attempt| match &attempt.outcome {
                AttemptOutcome::Unreachable(_) => Some(attempt.outcome.to_string()),
                _ => None,
            });
            match (why, refusal) {
                (Failed::NoServers, _) => LookUpError::NoServers { name },
                (Failed::NotAskable, _) => LookUpError::NotAName { name },
                (Failed::Silence, Some(what)) => LookUpError::Failed { name, servers, what },
                (Failed::Silence, None) => {
                    LookUpError::NoAnswer { name, servers, after: self.host.now().since(started) }
                }
                (Failed::AnswerError(why), _) => LookUpError::Failed { name, servers, what: why.to_string() },
            }
        })
    }
    /// The servers that look-ups ask.
    fn asked_servers(&self) -> Vec<Endpoint> {
        match &*self.home.borrow() {
            Some(home) => home.servers(),
            None => self.servers.borrow().servers.clone(),
        }
    }
}

/// The names to ask for, in order: a name with a final dot alone; else the name itself and the name in each search
/// domain, the name first where it has at least `dots` dots (resolv.conf(5)).
fn candidates(text: &str, search: &[String], dots: usize) -> Result<Vec<Name>, LookUpError> {
    let name = parse_name(text)?;
    if name.is_fqdn() {
        return Ok(vec![name]);
    }
    let in_domain = |domain: &String| name.clone().append_domain(&parse_name(domain).ok()?).ok();
    let mut names: Vec<Name> = search.iter().filter_map(in_domain).collect();
    let at = if usize::from(name.num_labels()) > dots { 0 } else { names.len() };
    names.insert(at, name);
    Ok(names)
}

/// Answer to a name that needs no server.
pub(crate) fn known(name: &str, table: &Hosts) -> Result<Option<Vec<IpAddr>>, LookUpError> {
    let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(Some(vec![address]));
    }
    if !may_be_a_name(name) {
        return Err(LookUpError::NotAName { name: name.to_owned() });
    }
    if let Some(addresses) = table.look_up(name) {
        return Ok(Some(addresses.to_vec()));
    }
    // spec: RFC6761 6.3 — localhost is never asked for.
    let folded = hosts::folded(name);
    if folded == "localhost" || folded.ends_with(".localhost") {
        return Ok(Some(vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()]));
    }
    Ok(None)
}

/// Names of hosts are letters, digits, hyphens and dots (RFC 1123 §2.1); underscores occur, and other letters than
/// ASCII's are for the DNS client to translate. All digits and dots would be an address, and a wrong one.
fn may_be_a_name(name: &str) -> bool {
    let labels = name.strip_suffix('.').unwrap_or(name);
    !labels.is_empty()
        && labels.len() <= NAME_BYTES
        && labels.split('.').all(|label| !label.is_empty())
        && labels.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_'))
        && !labels.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Of two reasons the one that says more: a name that does not exist has no address of any family, and a silence may
/// hide an address where the other answer says only that one family has none.
pub(crate) fn telling(one: LookUpError, other: LookUpError) -> LookUpError {
    let weight = |error: &LookUpError| match error {
        LookUpError::NoAddress { .. } => 0,
        LookUpError::Failed { .. } => 1,
        LookUpError::NoAnswer { .. } => 2,
        LookUpError::NoSuchName { .. } | LookUpError::NobodyHas { .. } => 3,
        LookUpError::NoServers { .. } | LookUpError::NotAName { .. } => 4,
    };
    if weight(&other) > weight(&one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_no_server() {
        let table = Hosts::parse("10.0.0.7 multics\n");
        let known = |name: &str| known(name, &table).map(|k| k.map(|a| a[0].to_string()));
        assert_eq!(known("10.1.2.3"), Ok(Some("10.1.2.3".into())));
        assert_eq!(known("fd00::1"), Ok(Some("fd00::1".into())));
        assert_eq!(known("[fd00::1]"), Ok(Some("fd00::1".into())));
        assert_eq!(known("MULTICS."), Ok(Some("10.0.0.7".into())));
        assert_eq!(known("a.localhost"), Ok(Some("::1".into())));
        assert_eq!(known("mit.edu"), Ok(None));
        assert_eq!(known("bücher.example"), Ok(None));
        for bad in ["", ".", "a..b", "1.2.3", "10.0.0.256", "a b", "a/b", &"x".repeat(300)] {
            assert!(matches!(known(bad), Err(LookUpError::NotAName { .. })), "{bad:?}");
        }
    }

    #[test]
    fn search_domains_complete_short_names() {
        let search = ["a.example".to_owned(), "example".to_owned()];
        let texts = |name: &str, dots: usize| -> Vec<String> {
            candidates(name, &search, dots)
                .unwrap()
                .iter()
                .map(|name| name.to_ascii().trim_end_matches('.').to_owned())
                .collect()
        };
        assert_eq!(texts("host", 1), ["host.a.example", "host.example", "host"]);
        assert_eq!(texts("host.sub", 1), ["host.sub", "host.sub.a.example", "host.sub.example"]);
        assert_eq!(texts("host.sub", 2), ["host.sub.a.example", "host.sub.example", "host.sub"]);
        assert_eq!(texts("host.", 1), ["host"]);
        assert_eq!(texts(&"x.".repeat(125)[..249], 1).len(), 1, "a name that grows too long is left out");
    }
}
