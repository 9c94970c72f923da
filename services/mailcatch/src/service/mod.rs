//! The SMTP server and the page as a service of a host.

mod section;

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use inhost_base::{Endpoint, Ipv6Addr};
use inhost_common::service::{
    Description, Doors, HostFiles, Notice, Problem, Reach, Service, ServiceContext,
};
use inhost_common::tls::read_certificate;
use inhost_common::{Admission, Permit, Transport, session_log};
use inhost_mail::SpoolFolder;
use inhost_mail::driver::{Server, TlsServer};
use inhost_socket::{Host, Stream};
use inhost_web::{Config, server};

use crate::api::CatcherSite;
use crate::catcher::{Catcher, CatcherConfig};
use crate::mailroom::Room;
use crate::rules::{Rulebook, Script};
use crate::store::{Folder, Kept};

pub use section::Section;

/// What a catcher reads from disk before it starts.
pub struct Prepared {
    folder: Option<Folder>,
    kept: Vec<Kept>,
    rules: Rulebook,
    tls: Option<TlsServer>,
    spool: SpoolPlace,
}

/// A folder for messages that are under way, which goes with the service.
struct SpoolPlace(Option<PathBuf>);

impl SpoolPlace {
    /// A folder of its own below that for temporary files. Without one, messages stay in memory.
    fn new() -> SpoolPlace {
        let place = |number: u32| {
            let name = format!("inhost-mail-catcher-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            // One that is there already is somebody else's.
            fs::DirBuilder::new().mode(0o700).create(&path).is_ok().then_some(path)
        };
        SpoolPlace((0..64).find_map(place))
    }
    fn folder(&self) -> SpoolFolder {
        self.0.clone().map_or_else(SpoolFolder::memory, |path| SpoolFolder::new(path, "message".into()))
    }
}

impl Drop for SpoolPlace {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// The running mail catcher.
pub struct MailCatcher {
    catcher: Rc<Catcher>,
    doors: Doors,
    section: RefCell<Section>,
    _spool: SpoolPlace,
}

impl MailCatcher {
    /// The catcher, for what is printed when something happens: [`Catcher::listen`].
    pub fn catcher(&self) -> &Rc<Catcher> {
        &self.catcher
    }
}

impl Service for MailCatcher {
    const NAME: &'static str = "mail-catcher";
    type Section = Section;
    type Prepared = Prepared;

    fn check(section: &Section) -> Result<(), Problem> {
        section.check()
    }
    fn is_enabled(section: &Section) -> bool {
        section.enabled
    }
    fn prepare(section: &Section, _: &HostFiles) -> Result<Prepared, Problem> {
        let refused = |path: &Path| {
            let path = path.display().to_string();
            move |error: std::io::Error| Problem::operation(format!("mail-catcher: {path}: {error}"))
        };
        let (mut folder, mut kept) = (None, Vec::new());
        if let Some(path) = &section.folder {
            let opened = Folder::open(path).map_err(refused(path))?;
            kept = opened.read(section.store()?).map_err(refused(path))?;
            folder = Some(opened);
        }
        let script = match &section.script {
            Some(path) => {
                let text = fs::read_to_string(path).map_err(refused(path))?;
                let wrong = |error| Problem::operation(format!("mail-catcher: {}: {error}", path.display()));
                Some(text.parse::<Script>().map_err(wrong)?)
            }
            None => None,
        };
        let tls = match (&section.certificate, &section.key) {
            (Some(certificate), Some(key)) => Some(certificate_of(certificate, key)?),
            _ => None,
        };
        Ok(Prepared { folder, kept, rules: section.rulebook(script)?, tls, spool: SpoolPlace::new() })
    }
    fn start(
        section: &Section,
        prepared: Prepared,
        context: &ServiceContext,
    ) -> Result<MailCatcher, Problem> {
        let Prepared { folder, kept, rules, tls, spool } = prepared;
        let host = &context.host;
        let config = CatcherConfig { store: section.store()?, sessions: section.sessions, folder, rules };
        let catcher = Catcher::new(host, context.unix_time, config);
        let restored = catcher.clone();
        host.spawn(async move { restored.restore(kept).await }).detach();

        let mut pages = Config::default();
        pages.hosts.clone_from(&section.hosts);
        pages.token.clone_from(&section.token);
        pages.unix_time = Some(context.unix_time);
        let site = CatcherSite::new(catcher.clone());
        let admission = Admission::sharing(section.limits()?, &context.denials);
        let doors = Doors::new(Self::NAME, host, &context.callers, admission, session_log!("mail-catcher"));
        let page = Endpoint::new(Ipv6Addr::UNSPECIFIED, section.web_port);
        doors.listen_at(page, &Admission::new(server::LIMITS), server::sessions(host, site, pages))?;

        let smtp = Smtp {
            catcher: catcher.clone(),
            server: Server { config: Rc::new(section.server()?), tls, spool: Arc::new(spool.folder()) },
            message_bytes: section.message_bytes()?,
            host: host.clone(),
        };
        let smtp = Rc::new(smtp);
        doors.listen(section.port, move |stream, caller, permit| {
            session(smtp.clone(), stream, caller, permit)
        })?;
        Ok(MailCatcher { catcher, doors, section: RefCell::new(section.clone()), _spool: spool })
    }
    fn reload(&self, section: &Section, prepared: Prepared) -> Result<(), Problem> {
        let (store, limits) = (section.store()?, section.limits()?);
        self.doors.admission().set_limits(limits);
        self.catcher.set_limits(store);
        let old = self.section.replace(section.clone());
        let rules = |section: &Section| (section.rules.clone(), section.script.clone(), section.seed);
        // Rules that were given by the page stay, unless the file has others now.
        if rules(&old) != rules(section) {
            self.catcher.with_rules(|book| *book = prepared.rules);
        }
        Ok(())
    }
    fn effect(key: &str) -> Option<&'static str> {
        let at_once = ["messages", "bytes", "rules", "script", "seed"];
        (at_once.contains(&key) || key.starts_with("limits")).then_some("at once")
    }
    fn describe(&self) -> Description {
        let section = self.section.borrow();
        let send = |at: std::net::SocketAddr| format!("smtp://{at}");
        let page = |at: std::net::SocketAddr| format!("http://{at}/");
        let notice = section.token.as_ref().map(|token| Notice {
            on_terminal: format!(
                "the mail catcher's page asks for a token: add ?token={token} to its address"
            ),
            elsewhere: "the mail catcher's page asks for the token of [mail-catcher]".into(),
        });
        Description {
            summary: format!("SMTP port {}, page port {}", section.port, section.web_port),
            reach: vec![
                Reach::new(Transport::Tcp, section.port, "send mail, which is shown and not delivered", send),
                Reach::new(Transport::Tcp, section.web_port, "see the mail that was sent", page),
            ],
            notice,
        }
    }
    fn doors(&self) -> &Doors {
        &self.doors
    }
}

fn certificate_of(certificate: &Path, key: &Path) -> Result<TlsServer, Problem> {
    let (chain, key) = read_certificate("mail-catcher", certificate, key)?;
    TlsServer::from_pem(&chain, &key)
        .map_err(|error| Problem::operation(format!("mail-catcher: {}: {error}", certificate.display())))
}

/// What SMTP sessions share.
struct Smtp {
    catcher: Rc<Catcher>,
    server: Server,
    message_bytes: usize,
    host: Host,
}

async fn session(smtp: Rc<Smtp>, stream: Stream, caller: Endpoint, permit: Permit) {
    // Each reply is one write.
    stream.set_nagle(false);
    let room = Room { catcher: &smtp.catcher, stream: &stream, message_bytes: smtp.message_bytes };
    inhost_mail::driver::serve(&stream, caller, false, &smtp.server, &room, &permit, &smtp.host).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[test]
    fn the_page_on_the_mail_catcher_is_right() {
        #[derive(Deserialize)]
        struct File {
            #[serde(rename = "mail-catcher")]
            section: Section,
        }
        let page = include_str!("../../../../docs/mailcatch.md");
        let (_, rest) = page.split_once("```toml\n[mail-catcher]").unwrap();
        let example = format!("[mail-catcher]{}", rest.split_once("```").unwrap().0);
        let section = |text: &str| toml::from_str::<File>(text).unwrap().section;
        assert_eq!(section(&example), Section::default(), "what stands there is the default");
        let all: String =
            example.lines().map(|line| line.strip_prefix("# ").unwrap_or(line).to_owned() + "\n").collect();
        let all = section(&all);
        assert!(
            all.folder.is_some() && all.token.is_some() && all.script.is_some() && all.certificate.is_some()
        );
        assert!(MailCatcher::check(&all).is_ok());
        assert!(all.limits().is_ok_and(|limits| Ok(limits) == Section::default().limits()));
        for wrong in [
            "bytes = \"1K\"",
            "bytes = \"much\"",
            "rules = [\"dorp\"]",
            "token = \"a b\"",
            "certificate = \"x.pem\"",
        ] {
            let section = section(&format!("[mail-catcher]\n{wrong}\n"));
            assert!(MailCatcher::check(&section).is_err(), "{wrong}");
        }
    }
}
