//! The finger server as a service of a host: configuration, users, log.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::path::PathBuf;
use std::rc::Rc;

use futures_lite::future::or;
use inhost_base::{Duration, Endpoint};
use inhost_common::ask::ask;
use inhost_common::service::{
    Description, Doors, HostFiles, Limits, Problem, Reach, Service, ServiceContext, Sessions, endpoint,
};
use inhost_common::users::Users;
use inhost_common::{Admission, AdmissionLimits, Over, Permit, Transport, session_log};
use inhost_socket::{Host, Stream};
use serde::{Deserialize, Serialize};
use tracing::{error, info};

use crate::client::PORT;
use crate::codec::Request;
use crate::driver::serve_session;
use crate::notes::{NotesFolder, clean};
use crate::server::{Decision, Facts, Notes, Person, Policy};

/// The time limit for another host's answer.
const FORWARD_WITHIN: Duration = Duration::from_secs(30);
/// The most octets of another host's answer that are forwarded.
const FORWARD_BYTES: usize = 64 << 10;

/// Callers that are taken where `limits` does not say.
const LIMITS: AdmissionLimits = AdmissionLimits::per_minute(64, 8, 60);

/// `[finger]` of `host.toml`.
#[derive(Deserialize, Serialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Section {
    /// Whether it runs. Default false: it tells of users.
    pub enabled: bool,
    /// Its port. Default 79.
    pub port: u16,
    /// Whether it lists who is logged in. Default true.
    pub sessions: bool,
    /// Whether it tells of users who are not logged in. Default false.
    pub users: bool,
    /// Whether `/W` shows from where users are logged in. Default false.
    pub addresses: bool,
    /// Folder with `NAME/.plan` and `NAME/.project`. Default: none is shown.
    pub plans: Option<PathBuf>,
    /// How many callers it takes. Default: 64 sessions, 8 of one peer, 60 connections of one peer in a minute.
    pub limits: Limits,
    /// Full names by login name.
    pub full_names: BTreeMap<String, String>,
    /// Hosts to which queries are forwarded: their names in queries, and ADDRESS or ADDRESS:PORT. Default: none.
    pub forward: BTreeMap<String, String>,
}

impl Default for Section {
    fn default() -> Self {
        Section {
            enabled: false,
            port: PORT,
            sessions: true,
            users: false,
            addresses: false,
            plans: None,
            limits: Limits::default(),
            full_names: BTreeMap::new(),
            forward: BTreeMap::new(),
        }
    }
}

impl Section {
    fn policy(&self) -> Result<Policy, Problem> {
        let forward = self.forward.iter().map(|(name, text)| {
            let expected = "give an address such as 10.9.0.1 or [fd00::1]:79";
            let to = endpoint(text, PORT)
                .ok_or_else(|| Problem::setting(&format!("finger.forward.{name}"), text, expected))?;
            Ok((name.to_lowercase(), to))
        });
        Ok(Policy {
            sessions: self.sessions,
            users: self.users,
            addresses: self.addresses,
            full_names: self.full_names.clone(),
            forward: forward.collect::<Result<_, _>>()?,
        })
    }
    fn limits(&self) -> Result<AdmissionLimits, Problem> {
        self.limits.or(Finger::NAME, LIMITS)
    }
}

/// The running server.
pub struct Finger {
    shared: Rc<Shared>,
    doors: Doors,
    port: u16,
}

struct Shared {
    host: Host,
    sessions: Sessions,
    users: Option<PathBuf>,
    disclosure: RefCell<Rc<Disclosure>>,
}

/// The current policy and notes.
struct Disclosure {
    policy: Policy,
    plans: Option<NotesFolder>,
}

impl Service for Finger {
    const NAME: &'static str = "finger";
    type Section = Section;
    type Prepared = Option<NotesFolder>;

    fn check(section: &Section) -> Result<(), Problem> {
        section.limits()?;
        section.policy().map(drop)
    }
    fn is_enabled(section: &Section) -> bool {
        section.enabled
    }
    fn prepare(section: &Section, _: &HostFiles) -> Result<Option<NotesFolder>, Problem> {
        let Some(path) = &section.plans else { return Ok(None) };
        let refused = |e| Problem::operation(format!("finger.plans: {}: {e}", path.display()));
        NotesFolder::open(path).map(Some).map_err(refused)
    }
    fn start(
        section: &Section,
        plans: Option<NotesFolder>,
        context: &ServiceContext,
    ) -> Result<Finger, Problem> {
        let (host, port) = (&context.host, section.port);
        let shared = Rc::new(Shared {
            host: host.clone(),
            sessions: context.sessions.clone(),
            users: context.files.users.clone(),
            disclosure: RefCell::new(Rc::new(Disclosure { policy: section.policy()?, plans })),
        });
        let admission = Admission::new(section.limits()?);
        let doors = Doors::new(Self::NAME, host, &context.callers, admission, session_log!("finger"));
        let own = shared.clone();
        doors.listen(port, move |stream, caller, permit| session(own.clone(), stream, caller, permit))?;
        Ok(Finger { shared, doors, port })
    }
    fn reload(&self, section: &Section, plans: Option<NotesFolder>) -> Result<(), Problem> {
        let (policy, limits) = (section.policy()?, section.limits()?);
        self.doors.admission().set_limits(limits);
        self.shared.disclosure.replace(Rc::new(Disclosure { policy, plans }));
        Ok(())
    }
    fn effect(key: &str) -> Option<&'static str> {
        (!matches!(key, "enabled" | "port")).then_some("at once")
    }
    fn describe(&self) -> Description {
        let command = |at: std::net::SocketAddr| match at.port() {
            PORT => format!("finger @{}", at.ip()),
            // Without the link the running host, which is this one, would call itself.
            port => format!("inhost finger --link user --port {port} @{}", at.ip()),
        };
        Description {
            summary: format!("port {}", self.port),
            reach: vec![Reach::new(Transport::Tcp, self.port, "who is logged in", command)],
            notice: None,
        }
    }
    fn doors(&self) -> &Doors {
        &self.doors
    }
}

async fn session(shared: Rc<Shared>, mut stream: Stream, caller: Endpoint, permit: Permit) {
    // The answer is one write, and nothing follows it.
    stream.set_nagle(false);
    let answer = async |request| shared.answer(request, caller).await;
    let served = serve_session(&mut stream, &shared.host, answer);
    let dropped = async {
        match poll_fn(|cx| permit.poll_over(cx)).await {
            Over::Dropped => false,
            // An answer does not take long.
            Over::HostEnds => std::future::pending().await,
        }
    };
    if !or(served, dropped).await {
        stream.abort();
    }
}

impl Shared {
    async fn answer(&self, request: Request, caller: Endpoint) -> String {
        let query = request.line();
        info!(target: "finger", peer = %caller.address, query = query.trim_end(), "asked");
        let disclosure = self.disclosure.borrow().clone();
        let facts = Facts {
            sessions: self.sessions.all(),
            users: if disclosure.policy.users && !request.user.is_empty() {
                self.users().await
            } else {
                Vec::new()
            },
            now: self.host.now(),
        };
        match disclosure.policy.decide(&request, &facts) {
            Decision::Answer(text) => text,
            Decision::Describe(people) => {
                let people = described(people, disclosure.plans.clone()).await;
                disclosure.policy.describe(&people, request.is_verbose, self.host.now())
            }
            Decision::Forward(to, request) => self.forward(to, &request).await,
        }
    }
    /// The login names of the users file.
    async fn users(&self) -> Vec<String> {
        let Some(path) = self.users.clone() else { return Vec::new() };
        let names = move || {
            let users = Users::read_or_empty(&path)?;
            Ok(users.accounts().map(|account| account.name.clone()).collect())
        };
        let read: Result<_, inhost_common::users::UserError> = blocking::unblock(names).await;
        read.unwrap_or_else(|error| {
            error!(target: "finger", "cannot read the users file: {error}");
            Vec::new()
        })
    }
    /// Another host's answer, made fit for a terminal.
    async fn forward(&self, to: Endpoint, request: &Request) -> String {
        let mut octets = Vec::new();
        let exchange = async {
            let mut stream = self.host.connect(to).await.map_err(|e| e.to_string())?;
            let line = request.line();
            let take = |piece: &[u8]| {
                let room = FORWARD_BYTES.saturating_sub(octets.len());
                octets.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
            };
            ask(&mut stream, &line, take).await.map_err(|e| e.to_string())
        };
        let late = async {
            self.host.sleep(FORWARD_WITHIN).await;
            Err("it takes too long".to_owned())
        };
        let done = or(exchange, late).await;
        let text = clean(&octets);
        match done {
            Ok(()) => text,
            Err(why) => {
                info!(target: "finger", %to, "a query that was forwarded failed: {why}");
                format!("{text}\nThat host gives no whole answer.\n")
            }
        }
    }
}

/// Reads the notes of users on another thread.
async fn described(people: Vec<Person>, plans: Option<NotesFolder>) -> Vec<(Person, Notes)> {
    let Some(plans) = plans else {
        return people.into_iter().map(|person| (person, Notes::default())).collect();
    };
    let read = move || {
        let described = people.into_iter().map(|person| {
            let notes = plans.read(&person.login);
            (person, notes)
        });
        described.collect()
    };
    blocking::unblock(read).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_on_finger_is_right() {
        #[derive(Deserialize)]
        struct File {
            finger: Section,
        }
        let page = include_str!("../../../docs/finger.md");
        let (_, rest) = page.split_once("```toml\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let section = |text: &str| toml::from_str::<File>(text).unwrap().finger;
        assert_eq!(section(example), Section::default(), "what stands there is the default");
        let all: String =
            example.lines().map(|l| l.strip_prefix("# ").unwrap_or(l).to_owned() + "\n").collect();
        let all = section(&all);
        assert!(all.plans.is_some() && all.full_names.len() == 1);
        assert!(all.limits != Limits::default() && all.limits().unwrap() == LIMITS);
        assert_eq!(all.policy().unwrap().forward.len(), 1);
        let wrong = Section { forward: BTreeMap::from([("a".into(), "b".into())]), ..Section::default() };
        assert!(Finger::check(&wrong).unwrap_err().to_string().contains("finger.forward.a"));
    }
}
