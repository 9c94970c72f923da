//! One message, checked: plan, look-ups, verification.

use crate::dkim::{Bodies, DkimResult, DkimVerdict, Signature, SignatureError, key_of, verify};
use crate::dmarc::{Authenticated, DmarcResult, DmarcVerdict, Policy, evaluate, needs, organization};
use crate::dns::{Answer, Answers, Missing, Query};
use crate::domain::{domain, is_within, of_address};
use crate::message::{AUTHORS_LIMIT, Authors, Message, MessageError};
use crate::spf::{SpfRequest, SpfResult, SpfVerdict, check_host};
use bytes::Bytes;
use inhost_base::{Duration, IpAddr};
use inhost_names::Names;
use inhost_socket::Host;

/// How a host checks messages.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckConfig {
    /// The authserv-id of the results (RFC 8601 §2.5): the host's name.
    pub authserv_id: String,
    /// Signatures of a message that are checked, the first ones; each may cost a pass over the body. Default 8.
    pub signatures: usize,
    /// Look-ups of a message. Further queries count as temporary failures. Default 100.
    pub look_ups: usize,
    /// Time of all look-ups of a message. Queries without an answer by then count as temporary failures. Default 20 s (RFC 7208 §4.6.4).
    pub time: Duration,
}

impl CheckConfig {
    /// The defaults, for a host of this name.
    pub fn new(authserv_id: &str) -> CheckConfig {
        let authserv_id = authserv_id.to_owned();
        CheckConfig { authserv_id, signatures: 8, look_ups: 100, time: Duration::from_secs(20) }
    }
}

/// What the SMTP session says about a message's origin.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Envelope {
    /// The client's address; its outer one behind a forward.
    pub client: IpAddr,
    /// The name in HELO or EHLO.
    pub helo: String,
    /// The address in MAIL FROM, without brackets. Empty for the null reverse-path.
    pub sender: String,
}

impl Envelope {
    /// An envelope from `client`.
    pub fn new(client: IpAddr, helo: &str, sender: &str) -> Envelope {
        Envelope { client, helo: helo.to_owned(), sender: sender.to_owned() }
    }
}

/// What the author's domain wants done with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The author's domain sent it.
    Pass,
    /// No policy applies, or the policy is `none`.
    None,
    /// The check failed and the policy is `quarantine`: deliver to a separate folder.
    Quarantine,
    /// The check failed and the policy is `reject`: reply 550 5.7.1 (RFC 7489 §10.3).
    Reject,
    /// The DNS did not answer: reply 451 4.4.3, or accept; the operator decides.
    TemporaryError,
}

/// A check in progress. It is pure. Call [`Plan::missing`] for the queries that it needs and [`Plan::answer`] with each answer,
/// until nothing is missing; then call [`Plan::verify`]. It is `Send`: verifying a long message takes time and belongs on
/// another thread.
///
/// The queries depend on the header only. Calls in another order are harmless: [`Plan::verify`] treats missing answers as
/// temporary failures, and answers to other queries are ignored.
#[derive(Debug)]
pub struct Plan {
    config: CheckConfig,
    envelope: Envelope,
    now_seconds: u64,
    signatures: Vec<Result<Signature, SignatureError>>,
    authors: Result<Authors, MessageError>,
    answers: Answers,
}

impl Plan {
    /// Reads the header of `message`. `now_seconds` is Unix time.
    pub fn new(config: &CheckConfig, envelope: Envelope, message: &[u8], now_seconds: u64) -> Plan {
        let message = Message::parse(message);
        let signatures = message.as_ref().map_or_else(
            |_| Vec::new(),
            |message| {
                message.fields_of("DKIM-Signature").take(config.signatures).map(Signature::parse).collect()
            },
        );
        let authors = message.map(|message| message.authors());
        let config = config.clone();
        Plan { config, envelope, now_seconds, signatures, authors, answers: Answers::default() }
    }
    /// The queries to look up next; empty when nothing is missing. Queries about the author's domain come first, so that a
    /// stranger's records cannot use up its look-ups or its time.
    pub fn missing(&mut self) -> Vec<Query> {
        let room = self.config.look_ups.saturating_sub(self.answers.len());
        if room == 0 {
            self.give_up();
        }
        let organizations: Result<Vec<String>, Missing> =
            self.author_domains().iter().map(|author| organization(author, &self.answers)).collect();
        let missing = match organizations {
            Err(missing) => missing,
            Ok(organizations) => {
                let is_own =
                    |domain: &str| organizations.iter().any(|organization| is_within(domain, organization));
                let of_authors = self.needs_of(&is_own);
                if of_authors.is_empty() { self.needs_of(&|_| true) } else { of_authors }
            }
        };
        missing.into_iter().take(room).collect()
    }
    /// The missing queries of the wanted domains.
    fn needs_of(&self, is_wanted: &dyn Fn(&str) -> bool) -> Missing {
        let mut missing = Missing::new();
        let mut add = |more: Option<Missing>| missing.extend(more.unwrap_or_default());
        let sender = self.spf_domain();
        if is_wanted(&sender) {
            add(self.spf().err());
        }
        if is_wanted(&self.envelope.helo) {
            add(self.spf_helo().err());
        }
        for signature in self.signatures.iter().flatten().filter(|signature| is_wanted(&signature.domain)) {
            add(key_of(signature, &self.answers).err());
        }
        let candidates: Vec<_> = self.candidates().into_iter().filter(|one| is_wanted(&one.domain)).collect();
        for author in self.author_domains() {
            add(needs(author, &candidates, &self.answers).err());
        }
        missing
    }
    /// Takes the answer to a question.
    pub fn answer(&mut self, query: Query, answer: Answer) {
        self.answers.insert(query, answer);
    }
    /// Ends the look-ups: missing answers count as temporary failures.
    pub fn give_up(&mut self) {
        self.answers.close();
    }
    pub(crate) fn time_limit(&self) -> Duration {
        self.config.time
    }
    /// Verifies `message`, which must be the one the plan was made from. This hashes the body and checks signatures, so it takes
    /// time.
    pub fn verify(mut self, message: &[u8]) -> Report {
        self.give_up();
        let spf_helo = self.spf_helo().unwrap_or_else(|_| no_answer());
        let spf = self.spf().unwrap_or_else(|_| no_answer());
        let dkim = Message::parse(message).map(|message| self.dkim(&message)).unwrap_or_default();
        let mut authenticated = Vec::new();
        if matches!(spf.verdict, SpfVerdict::Pass | SpfVerdict::TempError) {
            let is_pass = spf.verdict == SpfVerdict::Pass;
            authenticated.push(Authenticated { domain: spf.domain.clone(), is_spf: true, is_pass });
        }
        for (signature, result) in self.signatures.iter().zip(&dkim) {
            if let (Ok(signature), DkimVerdict::Pass | DkimVerdict::TempError) = (signature, result.verdict) {
                let is_pass = result.verdict == DkimVerdict::Pass;
                let domain = signature.domain.clone();
                authenticated.push(Authenticated { domain, is_spf: false, is_pass });
            }
        }
        let (dmarc, verdict) = self.dmarc(&authenticated);
        let Plan { config, envelope, .. } = self;
        Report { authserv_id: config.authserv_id, envelope, spf_helo, spf, dkim, dmarc, verdict }
    }
    fn spf_helo(&self) -> Result<SpfResult, Missing> {
        let helo = &self.envelope.helo;
        self.spf_of(helo, &format!("postmaster@{helo}"))
    }
    /// SPF of MAIL FROM; for the null reverse-path, of the HELO name (RFC 7208 §2.4).
    fn spf(&self) -> Result<SpfResult, Missing> {
        let Envelope { sender, .. } = &self.envelope;
        match sender.rsplit_once('@') {
            None => self.spf_helo(),
            Some(("", domain)) => self.spf_of(domain, &format!("postmaster@{domain}")),
            Some((_, domain)) => self.spf_of(domain, sender),
        }
    }
    fn spf_of(&self, domain: &str, sender: &str) -> Result<SpfResult, Missing> {
        let request = SpfRequest {
            client: self.envelope.client,
            domain,
            sender,
            helo: &self.envelope.helo,
            receiver: &self.config.authserv_id,
            now_seconds: self.now_seconds,
        };
        check_host(&request, &self.answers)
    }
    fn dkim(&self, message: &Message<'_>) -> Vec<DkimResult> {
        let mut bodies = Bodies::default();
        let fields = message.fields_of("DKIM-Signature").zip(&self.signatures);
        let check = |(field, signature): (_, &Result<Signature, SignatureError>)| {
            let no_answer = || Err((DkimVerdict::TempError, "no answer for the key"));
            let key = signature.as_ref().map_or_else(
                |_| no_answer(),
                |signature| key_of(signature, &self.answers).unwrap_or_else(|_| no_answer()),
            );
            verify(field, signature, key, message, &mut bodies, self.now_seconds)
        };
        fields.map(check).collect()
    }
    fn author_domains(&self) -> &[String] {
        self.authors
            .as_ref()
            .map_or(&[], |authors| &authors.domains[..authors.domains.len().min(AUTHORS_LIMIT)])
    }
    /// The domain of MAIL FROM; for the null reverse-path, of HELO.
    fn spf_domain(&self) -> String {
        let sender = match of_address(&self.envelope.sender) {
            "" => &self.envelope.helo,
            sender => sender,
        };
        domain(sender).unwrap_or_default()
    }
    /// The domains that SPF and DKIM could speak for.
    fn candidates(&self) -> Vec<Authenticated> {
        let of_spf = domain(&self.spf_domain());
        let of_spf = of_spf.map(|domain| Authenticated { domain, is_spf: true, is_pass: false });
        let of_dkim = self.signatures.iter().flatten().map(|signature| Authenticated {
            domain: signature.domain.clone(),
            is_spf: false,
            is_pass: false,
        });
        of_spf.into_iter().chain(of_dkim).collect()
    }
    /// DMARC, and what follows from it.
    fn dmarc(&self, authenticated: &[Authenticated]) -> (DmarcResult, Verdict) {
        let permanent = |reason: String| DmarcResult {
            verdict: DmarcVerdict::PermError,
            domain: String::new(),
            policy_domain: String::new(),
            policy: Policy::None,
            reason,
        };
        let authors = match &self.authors {
            Ok(authors) => authors,
            Err(error) => return (permanent(error.to_string()), Verdict::Reject),
        };
        let each = self.author_domains().iter().map(|author| {
            evaluate(author, authenticated, &self.answers)
                .unwrap_or_else(|_| permanent("no answer".to_owned()))
        });
        let mut each: Vec<DmarcResult> = each.collect();
        // RFC 9989 §11.5: with several authors, the strictest policy among those that fail.
        let verdict = each.iter().map(verdict_of).max_by_key(|verdict| strictness(*verdict));
        let is_one = authors.fields == 1 && authors.domains.len() == 1 && authors.unreadable == 0;
        match (is_one, each.pop()) {
            (true, Some(result)) => (result, verdict.unwrap_or(Verdict::None)),
            _ if authors.domains.len() > AUTHORS_LIMIT => {
                (permanent(format!("there are more than {AUTHORS_LIMIT} author domains")), Verdict::Reject)
            }
            _ => {
                let domains = authors.domains.len();
                let reason =
                    format!("there are {} fields From with {domains} author domains", authors.fields);
                // Such a message never passes.
                let verdict = verdict.filter(|verdict| *verdict != Verdict::Pass).unwrap_or(Verdict::None);
                (permanent(reason), verdict)
            }
        }
    }
}

fn no_answer() -> SpfResult {
    let reason = "no answer".to_owned();
    SpfResult { verdict: SpfVerdict::TempError, domain: String::new(), reason, explanation: None }
}

fn verdict_of(result: &DmarcResult) -> Verdict {
    match (result.verdict, result.policy) {
        (DmarcVerdict::Pass, _) => Verdict::Pass,
        (DmarcVerdict::TempError, _) => Verdict::TemporaryError,
        (DmarcVerdict::Fail, Policy::Quarantine) => Verdict::Quarantine,
        (DmarcVerdict::Fail, Policy::Reject) => Verdict::Reject,
        _ => Verdict::None,
    }
}

fn strictness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Pass => 0,
        Verdict::None => 1,
        Verdict::TemporaryError => 2,
        Verdict::Quarantine => 3,
        Verdict::Reject => 4,
    }
}

/// The results for a message.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The authserv-id of the results.
    pub authserv_id: String,
    /// The envelope that was checked.
    pub envelope: Envelope,
    /// SPF of the HELO name.
    pub spf_helo: SpfResult,
    /// SPF of MAIL FROM; for a null reverse-path, of the HELO name.
    pub spf: SpfResult,
    /// DKIM, a result for each signature in the order of their fields. Empty: the message is not signed.
    pub dkim: Vec<DkimResult>,
    /// DMARC of the author's domain.
    pub dmarc: DmarcResult,
    /// What to do with the message.
    pub verdict: Verdict,
}

impl Report {
    /// Whether a valid DKIM signature is from `domain` or a subdomain.
    pub fn is_signed_by(&self, domain: &str) -> bool {
        self.dkim
            .iter()
            .any(|result| result.verdict == DkimVerdict::Pass && is_within(&result.domain, domain))
    }
}

/// Checks a message: look-ups through `names` on this thread, hashes and signatures on another. `now_seconds` is Unix time.
pub async fn check(
    config: &CheckConfig,
    envelope: Envelope,
    message: Bytes,
    names: &Names,
    host: &Host,
    now_seconds: u64,
) -> Report {
    let mut plan = Plan::new(config, envelope, &message, now_seconds);
    crate::look_up(&mut plan, names, host).await;
    blocking::unblock(move || plan.verify(&message)).await
}
