//! Authentication and encryption: USER, PASS, ACCT, AUTH, PBSZ, PROT, CCC; and FEAT, OPTS and HELP.

use inhost_base::Instant;

use super::action::{Action, Closing, Digest, LogIn};
use super::config::TlsPolicy;
use super::machine::Session;
use super::state::{Phase, Settings, Waiting};
use crate::codec::Verb;

/// The facts that MLST tells, each with the bit that stands for it.
pub(crate) const FACTS: [&str; 6] = ["type", "size", "modify", "perm", "unique", "UNIX.mode"];

impl Session {
    pub(super) fn user_named(&mut self, name: &str) {
        if !self.security.encrypted && self.config.tls == TlsPolicy::Required {
            return self.reply(530, "Say AUTH TLS first: passwords are not taken in clear text.");
        }
        if matches!(self.phase, Phase::User { .. }) {
            // RFC 959 §4.1.1: a new user may come at any time, and begins anew.
            self.settings = Settings::new(&self.config);
            self.act(Action::StopListening);
        }
        self.phase = Phase::Named(name.to_owned());
        // The same reply for existing and unknown users.
        self.reply(331, "Give the password with PASS.");
    }

    pub(super) fn password(&mut self, password: &str) {
        let Phase::Named(user) = &self.phase else {
            return self.reply(503, "Say USER first.");
        };
        let user = user.clone();
        self.waiting = Waiting::Verdict(user.clone());
        self.act(Action::Authenticate { user, password: password.to_owned() });
    }

    /// Whether the password was right.
    pub fn authenticated(&mut self, verdict: LogIn, now: Instant) {
        let Waiting::Verdict(user) = &self.waiting else { return };
        let user = user.clone();
        self.waiting = Waiting::Nothing;
        match verdict {
            LogIn::Granted { rights, account: None } => {
                self.phase = Phase::User { user, rights };
                self.reply(230, "You are logged in.");
            }
            LogIn::Granted { rights, account: Some(account) } => {
                self.phase = Phase::Account { user, account, rights };
                self.reply(332, "Give the account with ACCT.");
            }
            LogIn::Denied => self.hold_denial(now),
            // RFC 959 §5.4 has 421 for PASS where the fault is ours: 530 would say that the password is wrong.
            LogIn::Busy => {
                self.reply(421, "Busy, too many log in at once; try again.");
                self.close(Closing::Busy);
            }
            LogIn::Unavailable => {
                self.reply(421, "Passwords cannot be verified now; try later.");
                self.close(Closing::Busy);
            }
            LogIn::TooMany => {
                self.reply(421, "Too many wrong passwords from your address; try later.");
                self.close(Closing::Attempts);
            }
        }
        self.process(now);
    }

    pub(super) fn account(&mut self, given: &str, now: Instant) {
        match &self.phase {
            Phase::Account { user, account, rights } if account == given => {
                self.phase = Phase::User { user: user.clone(), rights: *rights };
                self.reply(230, "You are logged in.");
            }
            Phase::Account { .. } => {
                self.act(Action::Denied);
                self.hold_denial(now);
            }
            Phase::User { .. } => self.reply(202, "No account is needed."),
            _ => self.reply(503, "Say USER and PASS first."),
        }
    }

    /// A wrong password is answered late, to slow down guessing.
    fn hold_denial(&mut self, now: Instant) {
        let doubled = self.config.denial.times(1 << self.failures.min(6));
        self.failures = self.failures.saturating_add(1);
        self.phase = Phase::Visitor;
        self.waiting = Waiting::Denial(now + doubled);
    }

    pub(super) fn denied(&mut self, _now: Instant) {
        if self.failures >= self.config.attempts {
            // Not 421, which makes clients repeat the same password later.
            self.reply(530, "Wrong name or password, too often; closing.");
            return self.close(Closing::Attempts);
        }
        self.reply(530, "Wrong name or password.");
    }

    /// RFC 4217 §4.
    pub(super) fn auth(&mut self, mechanism: &str, now: Instant) {
        let protects_data = match &*mechanism.to_ascii_uppercase() {
            "TLS" | "TLS-C" => false,
            "SSL" | "TLS-P" => true,
            _ => return self.reply(504, "AUTH TLS is what there is."),
        };
        if self.config.tls == TlsPolicy::Off {
            return self.reply(502, "There is no certificate here, so no TLS.");
        }
        if self.security.encrypted {
            return self.reply(503, "TLS is on already.");
        }
        if self.running.is_some() {
            return self.reply(503, "Not while a transfer runs.");
        }
        // A command pipelined behind AUTH would count as sent in TLS (command injection).
        if self.has_input() {
            self.reply(421, "Something was said behind AUTH and before TLS; closing.");
            return self.close(Closing::Tls);
        }
        self.reply(234, "Begin TLS.");
        // RFC 4217 §4.2: AUTH ends the login.
        self.phase = Phase::Visitor;
        self.settings = Settings::new(&self.config);
        self.act(Action::StopListening);
        (self.security.sized, self.security.data) = (protects_data, protects_data);
        self.waiting = Waiting::Tls(now + self.config.handshake_time);
        self.act(Action::StartTls);
    }

    pub(super) fn pbsz(&mut self, size: &str) {
        if !self.security.encrypted {
            return self.reply(503, "Say AUTH TLS first.");
        }
        if size.parse::<u32>().is_err() {
            return self.reply(501, "PBSZ takes a number.");
        }
        // RFC 4217 §8: TLS has its own sizes.
        self.security.sized = true;
        self.reply(200, "PBSZ=0");
    }

    pub(super) fn prot(&mut self, level: &str) {
        if !self.security.encrypted {
            return self.reply(503, "Say AUTH TLS first.");
        }
        if !self.security.sized {
            return self.reply(503, "Say PBSZ 0 first.");
        }
        match &*level.to_ascii_uppercase() {
            "P" => {
                self.security.data = true;
                self.reply(200, "Data connections are in TLS.");
            }
            "C" if self.config.tls == TlsPolicy::Required => {
                self.reply(534, "Data does not move without TLS here.");
            }
            "C" => {
                self.security.data = false;
                self.reply(200, "Data connections are in clear text.");
            }
            "S" | "E" => self.reply(536, "TLS has P and C."),
            _ => self.reply(504, "PROT takes P or C."),
        }
    }

    pub(super) fn ccc(&mut self, now: Instant) {
        if !self.security.encrypted {
            return self.reply(533, "The control connection is in clear text.");
        }
        if self.config.tls == TlsPolicy::Required || !matches!(self.phase, Phase::User { .. }) {
            return self.reply(534, "The control connection stays in TLS.");
        }
        if self.running.is_some() {
            return self.reply(503, "Not while a transfer runs.");
        }
        self.forget_input();
        self.reply(200, "The control connection goes on in clear text.");
        // Whether the client ends TLS too shows only in what it says next.
        self.waiting = Waiting::Clear(now + self.settings.idle);
        self.act(Action::EndTls);
    }

    /// RFC 2389 §3.
    pub(super) fn feat(&mut self) {
        let mut lines = vec!["Extensions:".to_owned()];
        if self.config.tls != TlsPolicy::Off {
            lines.extend(["AUTH TLS", "CCC", "PBSZ", "PROT"].map(|feature| format!(" {feature}")));
        }
        lines.extend([" EPRT", " EPSV"].map(str::to_owned));
        let digests = Digest::ALL.map(|digest| {
            format!("{}{}", digest.name(), if digest == self.settings.digest { "*" } else { "" })
        });
        lines.push(format!(" HASH {}", digests.join(";")));
        lines.extend([" MDTM", " MFMT"].map(str::to_owned));
        let facts = FACTS.iter().enumerate().map(|(bit, fact)| {
            format!("{fact}{};", if self.settings.facts & 1 << bit != 0 { "*" } else { "" })
        });
        lines.push(format!(" MLST {}", facts.collect::<String>()));
        lines.extend([" REST STREAM", " SIZE", " TVFS", " UTF8"].map(str::to_owned));
        lines.push("End".to_owned());
        self.reply_lines(211, &lines);
    }

    pub(super) fn opts(&mut self, argument: &str) {
        let (name, rest) = argument.split_once(' ').unwrap_or((argument, ""));
        match &*name.to_ascii_uppercase() {
            // RFC 3659 §7.9.
            "MLST" if !is_fact_list(rest) => {
                self.reply(501, "OPTS MLST takes facts, each with a ; behind it.")
            }
            "MLST" => {
                let wanted = |fact: &str| rest.split(';').any(|word| word.trim().eq_ignore_ascii_case(fact));
                let bits = FACTS.iter().enumerate().filter(|(_, fact)| wanted(fact));
                self.settings.facts = bits.clone().map(|(bit, _)| 1 << bit).sum();
                let selected: String = bits.map(|(_, fact)| format!("{fact};")).collect();
                self.reply(200, format!("MLST OPTS {selected}").trim_end());
            }
            "UTF8" => match rest.eq_ignore_ascii_case("OFF") {
                true => self.reply(504, "Names are UTF-8."),
                false => self.reply(200, "Names are UTF-8."),
            },
            "HASH" if rest.is_empty() => self.reply(200, self.settings.digest.name()),
            "HASH" => match Digest::parse(rest) {
                Some(digest) => {
                    self.settings.digest = digest;
                    self.reply(200, digest.name());
                }
                None => self.reply(504, "That hash is not known."),
            },
            _ => self.reply(501, "It has no options."),
        }
    }

    pub(super) fn help(&mut self, about: &str) {
        let about = about.trim();
        let (first, rest) = about.split_once(' ').unwrap_or((about, ""));
        if first.eq_ignore_ascii_case("SITE") {
            return self.help_site(rest);
        }
        if let Some(verb) = Verb::parse(&about.to_ascii_uppercase()) {
            return self.reply(214, &format!("{} is understood.", verb.name()));
        }
        if !about.is_empty() {
            return self.reply(501, "There is no such command.");
        }
        let names: Vec<&str> = Verb::ALL.iter().map(|verb| verb.name()).collect();
        let mut lines = vec!["Commands:".to_owned()];
        lines.extend(names.chunks(12).map(|row| format!(" {}", row.join(" "))));
        lines.push("End".to_owned());
        self.reply_lines(214, &lines);
    }

    /// HELP SITE, which SITE HELP is as well.
    pub(super) fn help_site(&mut self, about: &str) {
        let is_meant = |name: &str| about.eq_ignore_ascii_case(name);
        let known = SITE_COMMANDS.iter().find(|(name, _)| is_meant(name));
        match known {
            Some((_, usage)) => self.reply(214, usage),
            None if about.is_empty() => {
                let all: Vec<&str> = SITE_COMMANDS.iter().map(|(_, usage)| *usage).collect();
                self.reply(214, &all.join(", "));
            }
            None => self.reply(501, "There is no such SITE command."),
        }
    }
}

/// SITE commands with their syntax.
const SITE_COMMANDS: [(&str, &str); 4] = [
    ("CHMOD", "SITE CHMOD mode name"),
    ("UMASK", "SITE UMASK [mask]"),
    ("IDLE", "SITE IDLE [seconds]"),
    ("HELP", "SITE HELP [command]"),
];

/// Whether this is a list of facts as RFC 3659 §7.8 has it, which may be empty: each has a semicolon behind it.
fn is_fact_list(text: &str) -> bool {
    text.is_empty() || text.ends_with(';') && !text.contains(' ')
}
