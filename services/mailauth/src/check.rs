//! One message, checked: plan, look-ups, verification.

use crate::dkim::{Bodies, DkimResult, DkimVerdict, Signature, SignatureError, key_of, verify};
use crate::dmarc::{Authenticated, DmarcResult, DmarcVerdict, Policy, evaluate, needs, organization};
use crate::dns::{Answer, Answers, Missing, Query};
use crate::domain::{domain, is_within, of_address};
use crate::message::{AUTHORS_LIMIT, Authors, Message, MessageError};
use crate::results;
use crate::spf::{SpfRequest, SpfResult, SpfVerdict, check_host};
use bytes::Bytes;
use inhost_base::{Duration, IpAddr};
use inhost_names::Names;
use inhost_socket::Host;

/// How a host checks messages.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckConfig {
    /// The name that results are given under (RFC 8601 §2.5), the host's own.
    pub authserv_id: String,
    /// Signatures of a message that are checked, the first ones; each may cost a pass over the body. Default 8.
    pub signatures: usize,
    /// Look-ups of a message. What lies beyond counts as not answered. Default 100.
    pub look_ups: usize,
    /// Time of all look-ups of a message. What has no answer then counts as not answered. Default 20 s (RFC 7208 §4.6.4).
    pub time: Duration,
}

impl CheckConfig {
    /// The defaults, for a host of this name.
    pub fn new(authserv_id: &str) -> CheckConfig {
        let authserv_id = authserv_id.to_owned();
        CheckConfig { authserv_id, signatures: 8, look_ups: 100, time: Duration::from_secs(20) }
    }
}

/// What SMTP says of a message's origin.
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

/// What to do with a message, as far as its author's domain has a say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The author's domain sent it.
    Pass,
    /// Nobody says anything against it.
    None,
    /// The author's domain finds it suspicious: it belongs into a folder of its own.
    Quarantine,
    /// The author's domain did not send it: SMTP answers 550 5.7.1 (RFC 7372).
    Reject,
    /// The DNS did not answer: SMTP answers 451 4.7.24 or accepts, as the operator wants it.
    TemporaryError,
}

/// A check on its way. It is pure: it says what it needs from the DNS ([`Plan::missing`]), is told the answers
/// ([`Plan::answer`]), until it needs nothing more, and then verifies ([`Plan::verify`]). It is `Send`: the verification of a
/// long message takes a while and belongs on another thread.
///
/// What it needs is known without the body. Calls in another order do no harm: a verification with answers missing takes
/// them for not answered, and answers that nobody asked for are kept.
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
    /// What has to be looked up next; empty when everything is there. What decides on the author's domain comes first, so
    /// that a stranger's records cannot use up its look-ups or its time.
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
    /// What the checks of some domains need.
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
    /// Looks nothing more up: what is missing counts as not answered.
    pub fn give_up(&mut self) {
        self.answers.close();
    }
    pub(crate) fn time_limit(&self) -> Duration {
        self.config.time
    }
    /// Verifies `message`, the same that the plan was made of: hashes and signatures. This is the part that takes time.
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
    /// Of MAIL FROM; of the null reverse-path, of the HELO name (RFC 7208 §2.4).
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
    /// The domain of MAIL FROM; of the null reverse-path, of HELO.
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
        // RFC 9989 §11.5: with several authors the strictest policy of those that fail.
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
                // Of a message like that nothing passes.
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

/// Everything that was found of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The name that the results are given under.
    pub authserv_id: String,
    /// What SMTP said.
    pub envelope: Envelope,
    /// SPF of the HELO name.
    pub spf_helo: SpfResult,
    /// SPF of MAIL FROM; with a null reverse-path, of the HELO name.
    pub spf: SpfResult,
    /// DKIM, a result for each signature in the order of their fields. Empty: the message is not signed.
    pub dkim: Vec<DkimResult>,
    /// DMARC of the author's domain.
    pub dmarc: DmarcResult,
    /// What follows.
    pub verdict: Verdict,
}

impl Report {
    /// The field `Authentication-Results` with its line end, for the front of the message (RFC 8601). It is ASCII, whatever
    /// strangers wrote.
    pub fn field(&self) -> String {
        results::field(self)
    }
    /// Whether DKIM speaks for `domain` or for one below.
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
