//! The answer to a query. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use inhost_base::{Endpoint, Instant};
use inhost_common::Cleaner;
use inhost_common::service::ServiceSession;

use crate::codec::Request;

/// The most sessions in one answer.
const SESSIONS_LIMIT: usize = 256;
/// The most users in one answer.
const PEOPLE_LIMIT: usize = 16;

/// Policy of the server. RFC 1288 §3.2 leaves each choice to the administrator.
///
/// ```
/// use inhost_base::Instant;
/// use inhost_finger::codec::Request;
/// use inhost_finger::server::{Decision, Facts, Policy};
/// let facts = Facts { sessions: Vec::new(), users: vec!["ada".to_owned()], now: Instant::ZERO };
/// let request = Request::parse(b"ada");
/// assert!(matches!(Policy::default().decide(&request, &facts), Decision::Answer(_)), "ada is hidden");
/// let policy = Policy { users: true, ..Policy::default() };
/// assert!(matches!(policy.decide(&request, &facts), Decision::Describe(_)));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    /// Whether it lists who is logged in.
    pub sessions: bool,
    /// Whether it tells of users who are not logged in.
    pub users: bool,
    /// Whether `/W` shows from where users are logged in.
    pub addresses: bool,
    /// Full names by login name.
    pub full_names: BTreeMap<String, String>,
    /// Hosts to which queries are forwarded, by the name that the query gives.
    pub forward: BTreeMap<String, Endpoint>,
}

/// Facts about the host for one query.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Sessions of all services.
    pub sessions: Vec<ServiceSession>,
    /// Login names of all users.
    pub users: Vec<String>,
    /// The time.
    pub now: Instant,
}

/// The decision on a query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The answer.
    Answer(String),
    /// The answer is about these people; their notes are to be read for [`Policy::describe`].
    Describe(Vec<Person>),
    /// The query goes to another host, and its answer back.
    Forward(Endpoint, Request),
}

/// A user who matches a query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Person {
    /// The login name.
    pub login: String,
    /// The full name, if it is known.
    pub full_name: Option<String>,
    /// Sessions, the oldest first.
    pub sessions: Vec<ServiceSession>,
}

/// The `.plan` and `.project` of a user.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Notes {
    /// `.project`: one line.
    pub project: Option<String>,
    /// `.plan`.
    pub plan: Option<String>,
}

impl Policy {
    /// Decides on a query. A refusal is an answer that says so (RFC 1288 §2.4, 2.5).
    pub fn decide(&self, request: &Request, facts: &Facts) -> Decision {
        if let Some((next, request)) = request.forwarded() {
            return match self.forward.get(&next.to_lowercase()) {
                Some(&to) => Decision::Forward(to, request),
                None => Decision::Answer("Finger queries are not forwarded to that host.\n".into()),
            };
        }
        if request.user.is_empty() {
            return Decision::Answer(match self.sessions {
                true => self.list(facts, request.is_verbose),
                false => "This host does not list logged-in users.\n".into(),
            });
        }
        if !self.sessions && !self.users {
            return Decision::Answer("This host gives no information about users.\n".into());
        }
        let people = self.people(&request.user, facts);
        match people.is_empty() {
            // The same answer for a hidden user and for an unknown one.
            true => Decision::Answer(format!("{}: no such user.\n", request.user)),
            false => Decision::Describe(people),
        }
    }

    /// The logged-in user.
    fn list(&self, facts: &Facts, is_verbose: bool) -> String {
        let shows_address = is_verbose && self.addresses;
        let users = facts.sessions.iter().filter_map(|session| Some((session.user.as_deref()?, session)));
        let mut lines = String::new();
        let mut count = 0_usize;
        for (user, session) in users {
            count += 1;
            if count > SESSIONS_LIMIT {
                continue;
            }
            let name = self.full_name(user).unwrap_or_default();
            let age = age(session, facts.now);
            let from = if shows_address { format!("  {}", session.peer) } else { String::new() };
            let _ = writeln!(lines, "{user:<16}  {name:<24}  {:<8}  {age:>9}{from}", session.service);
        }
        if count == 0 {
            return "Nobody is logged in.\n".into();
        }
        let from = if shows_address { "  From" } else { "" };
        let title = format!("{:<16}  {:<24}  {:<8}  {:>9}{from}\n", "Login", "Name", "Service", "For");
        let more = match count.saturating_sub(SESSIONS_LIMIT) {
            0 => String::new(),
            more => format!("and {more} more\n"),
        };
        title + &lines + &more
    }

    /// Those whose login name is `name`, or whose full name has it as a word.
    fn people(&self, name: &str, facts: &Facts) -> Vec<Person> {
        let online = facts.sessions.iter().filter_map(|session| session.user.as_deref());
        let known: BTreeSet<&str> = match (self.sessions, self.users) {
            (true, true) => online.chain(facts.users.iter().map(String::as_str)).collect(),
            (true, false) => online.collect(),
            (false, _) => facts.users.iter().map(String::as_str).collect(),
        };
        let has_name = |login: &&str| {
            let is_word =
                |full: &str| full.split_whitespace().any(|w| w.to_lowercase() == name.to_lowercase());
            *login == name || self.full_names.get(*login).is_some_and(|full| is_word(full))
        };
        let person = |login: &str| {
            let own = |s: &&ServiceSession| self.sessions && s.user.as_deref() == Some(login);
            let sessions = facts.sessions.iter().filter(own).take(SESSIONS_LIMIT / PEOPLE_LIMIT);
            Person {
                login: login.to_owned(),
                full_name: self.full_name(login),
                sessions: sessions.cloned().collect(),
            }
        };
        known.into_iter().filter(has_name).take(PEOPLE_LIMIT).map(person).collect()
    }

    fn full_name(&self, login: &str) -> Option<String> {
        self.full_names.get(login).map(|name| Cleaner::line(name.as_bytes()))
    }

    /// The answer about people, each with the notes that were read.
    pub fn describe(&self, people: &[(Person, Notes)], is_verbose: bool, now: Instant) -> String {
        let mut text = String::new();
        for (person, notes) in people {
            if !text.is_empty() {
                text.push('\n');
            }
            let name = person.full_name.as_deref().unwrap_or("(not known)");
            let _ = writeln!(text, "Login: {:<24} Name: {name}", person.login);
            for session in &person.sessions {
                let from = match is_verbose && self.addresses {
                    true => format!(", from {}", session.peer),
                    false => String::new(),
                };
                let _ = writeln!(text, "Logged in by {} for {}{from}", session.service, age(session, now));
            }
            if person.sessions.is_empty() && self.sessions {
                text.push_str("Not logged in.\n");
            }
            if let Some(project) = &notes.project {
                let _ = writeln!(text, "Project: {project}");
            }
            if let Some(plan) = &notes.plan {
                let _ = writeln!(text, "Plan:\n{}", plan.trim_end());
            }
        }
        text
    }
}

/// Duration of a session.
fn age(session: &ServiceSession, now: Instant) -> String {
    let seconds = now.since(session.since).as_secs();
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::IpAddr;

    fn facts() -> Facts {
        let session = |service, user: Option<&str>, seconds: u64| ServiceSession {
            service,
            number: None,
            peer: IpAddr::from([192, 0, 2, 9]),
            user: user.map(str::to_owned),
            since: Instant::from_millis(seconds * 1000),
        };
        Facts {
            sessions: vec![
                session("telnet", Some("ada"), 1),
                session("telnet", None, 2),
                session("ftp", Some("bob"), 3),
            ],
            users: ["ada", "bob", "eve"].map(str::to_owned).to_vec(),
            now: Instant::from_millis(3_663_000),
        }
    }
    fn policy() -> Policy {
        let full_names =
            BTreeMap::from([("ada".into(), "Ada Lovelace".into()), ("eve".into(), "Eve\x1b Love".into())]);
        let forward = BTreeMap::from([("inside.example".into(), Endpoint::new([10, 9, 0, 7], 79))]);
        Policy { sessions: true, users: true, addresses: true, full_names, forward }
    }
    fn answer(policy: &Policy, line: &str) -> String {
        let request = Request::parse(line.as_bytes());
        match policy.decide(&request, &facts()) {
            Decision::Answer(text) => text,
            Decision::Describe(people) => {
                let people: Vec<_> = people.into_iter().map(|person| (person, Notes::default())).collect();
                policy.describe(&people, request.is_verbose, facts().now)
            }
            Decision::Forward(to, request) => format!("{to} {}", request.line()),
        }
    }

    /// spec: RFC1288 §2.5.1, §2.5.2, §2.5.3, §2.5.4
    #[test]
    fn what_is_answered() {
        let all = policy();
        let list = answer(&all, "");
        assert!(
            list.contains("Ada Lovelace") && list.contains("1:01:02") && list.lines().count() == 3,
            "{list}"
        );
        assert!(!list.contains("192.0.2.9") && answer(&all, "/W").contains("192.0.2.9"));
        let ada = answer(&all, "ada");
        assert!(ada.starts_with("Login: ada ") && ada.contains("Logged in by telnet for 1:01:02\n"), "{ada}");
        assert!(answer(&all, "/W ada").contains(", from 192.0.2.9"));
        // A part of the name that two have, and what a terminal would obey.
        let love = answer(&all, "LOVE");
        assert!(
            love.starts_with("Login: eve")
                && love.contains("Eve\u{fffd} Love")
                && love.contains("Not logged in")
        );
        assert_eq!(answer(&all, "root"), "root: no such user.\n");
    }

    /// spec: RFC1288 §2.4, §3.2
    #[test]
    fn what_is_not_to_be_told_is_refused() {
        let online = Policy { users: false, ..policy() };
        assert_eq!(answer(&online, "eve"), "eve: no such user.\n", "as if she were not there");
        assert!(answer(&online, "ada").contains("Ada Lovelace"));
        let users = Policy { sessions: false, ..policy() };
        assert!(answer(&users, "").contains("does not list"));
        assert!(!answer(&users, "ada").contains("ogged in"));
        assert!(answer(&Policy::default(), "ada").contains("no information"));
        assert!(answer(&policy(), "ada@elsewhere.example").contains("not forwarded"));
        assert_eq!(answer(&policy(), "/W ada@x@Inside.Example"), "10.9.0.7:79 /W ada@x\r\n");
        let quiet = Facts { sessions: Vec::new(), ..facts() };
        assert_eq!(
            policy().decide(&Request::default(), &quiet),
            Decision::Answer("Nobody is logged in.\n".into())
        );
    }

    #[test]
    fn an_answer_has_an_end() {
        let mut many = facts();
        many.sessions = vec![many.sessions[0].clone(); 10_000];
        let Decision::Answer(text) = policy().decide(&Request::default(), &many) else { panic!() };
        assert_eq!(text.lines().count(), SESSIONS_LIMIT + 2);
        assert!(text.ends_with("and 9744 more\n"));
        let Decision::Describe(people) = policy().decide(&Request::parse(b"ada"), &many) else { panic!() };
        assert_eq!(people[0].sessions.len(), SESSIONS_LIMIT / PEOPLE_LIMIT);
    }
}
