//! The mailboxes of this host: who has one, and where it is.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use inhost_base::{Duration, Instant};
use inhost_common::users::Users;

use crate::body::Body;
use crate::codec::Mailbox;
use crate::driver::Answer;
use crate::maildir::Maildir;
use crate::queue::Reason;
use crate::sender::Mailboxes;

use super::section::Section;

/// How long names that were read of the users file are believed.
const FRESH: Duration = Duration::from_secs(10);
/// Aliases of aliases that are followed.
const DEPTH: usize = 8;
/// Addresses that an alias leads to at most.
const MOST: usize = 100;

/// Names of this host.
pub(super) struct Boxes {
    folder: PathBuf,
    users_file: Option<PathBuf>,
    listed: BTreeSet<String>,
    aliases: BTreeMap<String, Vec<String>>,
    catch_all: Option<String>,
    own: String,
    users: RefCell<Option<(Instant, BTreeSet<String>)>>,
    unix_time: fn() -> std::time::Duration,
}

impl Boxes {
    pub fn new(
        section: &Section,
        users_file: Option<PathBuf>,
        unix_time: fn() -> std::time::Duration,
    ) -> Boxes {
        let lower = |names: &[String]| names.iter().map(|name| name.to_lowercase()).collect();
        let aliases = section.aliases.iter().map(|(name, to)| (name.to_lowercase(), to.clone()));
        Boxes {
            folder: section.mailbox_folder(),
            users_file,
            listed: lower(&section.mailboxes),
            aliases: aliases.collect(),
            catch_all: section.catch_all.as_ref().map(|name| name.to_lowercase()),
            own: section.name(),
            users: RefCell::default(),
            unix_time,
        }
    }
    /// Reads who the users are, unless that was done lately.
    pub async fn refresh(&self, now: Instant) {
        let is_fresh = self.users.borrow().as_ref().is_some_and(|(read, _)| now.since(*read) < FRESH);
        let Some(path) = self.users_file.clone().filter(|_| !is_fresh) else { return };
        let read = blocking::unblock(move || {
            let users = Users::read_or_empty(&path)?;
            Ok::<_, inhost_common::users::UserError>(
                users.accounts().map(|one| one.name.to_lowercase()).collect(),
            )
        });
        match read.await {
            Ok(names) => *self.users.borrow_mut() = Some((now, names)),
            Err(error) => tracing::error!(target: "mail", "the users file cannot be read: {error}"),
        }
    }
    /// Where mail for a local part goes: users of this host, and addresses elsewhere. Empty where the name is not known.
    pub fn resolve(&self, local: &str) -> Vec<Mailbox> {
        let mut found = Vec::new();
        self.follow(local, 0, &mut found);
        found.dedup();
        found
    }
    fn follow(&self, local: &str, depth: usize, found: &mut Vec<Mailbox>) {
        let name = local.to_lowercase();
        let bare = name.split_once('+').map_or(name.as_str(), |(bare, _)| bare);
        if found.len() >= MOST || depth > DEPTH {
            return;
        }
        if let Some(targets) = self.aliases.get(&name).or_else(|| self.aliases.get(bare)) {
            for target in targets {
                match target.parse::<Mailbox>() {
                    Ok(address) => found.push(address),
                    Err(_) => self.follow(target, depth + 1, found),
                }
            }
            return;
        }
        let is_user = self.users.borrow().as_ref().is_some_and(|(_, users)| users.contains(bare));
        let known = match is_user || self.listed.contains(bare) || bare == "postmaster" {
            true => Some(bare),
            false => self.catch_all.as_deref(),
        };
        let mailbox = known.and_then(|name| format!("{name}@{}", self.own).parse().ok());
        found.extend(mailbox.filter(|_| known.is_some_and(is_folder_name)));
    }
}

/// Whether a name can be that of a folder.
fn is_folder_name(name: &str) -> bool {
    !name.starts_with('.') && !name.contains('/') && !name.contains('\0') && name.len() <= 64
}

impl Mailboxes for Boxes {
    fn deliver<'a>(
        &'a self,
        recipient: &Mailbox,
        sender: Option<&Mailbox>,
        body: &Body,
    ) -> Answer<'a, Result<(), Reason>> {
        let sender = sender.map(ToString::to_string).unwrap_or_default();
        let head = format!("Return-Path: <{sender}>\r\nDelivered-To: {recipient}\r\n");
        let (local, body) = (recipient.local().to_lowercase(), body.clone());
        Box::pin(async move {
            let user = local.split_once('+').map_or(local.as_str(), |(bare, _)| bare).to_owned();
            if !is_folder_name(&user) {
                return Err(Reason::NoDomain { what: format!("there is no mailbox {user}") });
            }
            let maildir = Maildir::new(self.folder.join(user));
            let path = maildir.path().display().to_string();
            let unix = (self.unix_time)();
            let delivered = blocking::unblock(move || maildir.deliver(&head, &body, unix)).await;
            delivered.map(drop).map_err(|error| Reason::Mailbox { path, what: error.to_string() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_names_lead() {
        let mut section = Section { host_name: Some("here.example".into()), ..Section::default() };
        section.mailboxes = vec!["Ada".into(), "bob".into()];
        let alias = |to: &[&str]| to.iter().map(|to| (*to).to_owned()).collect::<Vec<_>>();
        section.aliases.insert("all".into(), alias(&["ada", "bob", "x@far.example"]));
        section.aliases.insert("loop".into(), alias(&["loop"]));
        section.aliases.insert("postmaster".into(), alias(&["ada"]));
        let to = |section: &Section, local: &str| {
            let boxes = Boxes::new(section, None, || std::time::Duration::ZERO);
            boxes.resolve(local).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(to(&section, "ADA+list"), ["ada@here.example"]);
        assert_eq!(to(&section, "all"), ["ada@here.example", "bob@here.example", "x@far.example"]);
        assert_eq!(to(&section, "Postmaster"), ["ada@here.example"]);
        for unknown in ["eve", "loop", "..", "ada/../bob"] {
            assert!(to(&section, unknown).is_empty(), "{unknown}");
        }
        section.catch_all = Some("bob".into());
        assert_eq!(to(&section, "eve"), ["bob@here.example"]);
    }
}
