//! `host.toml` and what holds without it.
//!
//! Flags go before the file, the file before the defaults. Every section refuses keys that it does not know.

mod check;
mod command;
mod dhcp;
mod file;
mod history;
mod instruments;
mod record;
mod schema;
mod tcp;

use crate::args::Serve;
use crate::failure::Failure;
use crate::log;
use crate::registry::{Kind, SERVICES};
use crate::user;
pub use check::note;
pub use command::run;
pub use dhcp::Dhcp;
pub use file::line_of;
use file::{File, Wrong};
pub use history::History;
use inhost_base::Duration;
use inhost_common::service::{HostFiles, Service, size_bytes};
use inhost_link::Spec;
pub use instruments::Instruments;
pub use record::Record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
pub use tcp::Tcp;
use toml::de::DeTable;

/// The name that is looked for in the current folder when `--config` names none.
pub const FILE_NAME: &str = "host.toml";

/// The configuration of `inhost serve`.
#[derive(Deserialize, Serialize, JsonSchema, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Cap on packets and queues, such as "64M". Default 256M.
    pub memory: String,
    /// Path of the control socket; the user's own runtime folder when absent.
    pub control: Option<PathBuf>,
    /// Links, each a SPEC such as "user,loss=5%" or "tap:in0,address=10.9.0.2/24". Default: `user`, with the services
    /// forwarded to this machine.
    pub link: Vec<String>,
    /// File of names and addresses, as /etc/hosts.
    pub hosts: Option<PathBuf>,
    /// Resolvers to ask; those of the link when empty.
    pub nameserver: Vec<std::net::IpAddr>,
    /// Seconds that connections get to close when the host ends. Default 5.
    pub shutdown_s: u64,
    /// Seconds that sessions get to end after another process took over (`inhost serve --take-over`). Default 3600.
    pub handover_s: u64,
    /// Seconds within which another process that takes over must be ready; else this one takes everything back. Default 30.
    pub take_over_s: u64,
    /// Microseconds after anything happened for which the host looks again instead of sleeping. Default 0: it sleeps.
    pub busy_poll_us: u64,
    /// Storage of leases.
    pub dhcp: Dhcp,
    /// Configuration of connections.
    pub tcp: Tcp,
    /// The flight recorder.
    pub record: Record,
    /// Records of closed connections.
    pub history: History,
    /// Instruments that measure the host itself.
    pub instruments: Instruments,
    /// Log filter.
    pub log: Log,
    /// The sections of the services, each key with its value.
    #[serde(skip)]
    pub services: BTreeMap<&'static str, toml::Table>,
    /// The users file that the command line names; it goes before that of `[telnet]`.
    #[serde(skip)]
    pub users: Option<PathBuf>,
}

/// Log filter for standard error.
#[derive(Deserialize, Serialize, JsonSchema, Clone, PartialEq, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// The least level, and other levels for parts, as in "info,telnet=debug". Default "info", or "warn" with `--quiet`.
    pub level: Option<String>,
    /// JSON, an object a line. Default false.
    pub json: bool,
}

/// The default link of a host: no privilege and no device, the services forwarded to this machine.
pub const DEFAULT_LINK: &str = "user,forward=127.0.0.1:2323->23,\
    forward=127.0.0.1:2007->7,forward=udp:127.0.0.1:2007->7,\
    forward=127.0.0.1:2009->9,forward=udp:127.0.0.1:2009->9,\
    forward=127.0.0.1:2013->13,forward=udp:127.0.0.1:2013->13,\
    forward=127.0.0.1:2019->19,forward=udp:127.0.0.1:2019->19";

/// Where the dashboard is reached by default.
const DASHBOARD_FORWARD: &str = "forward=127.0.0.1:2080->";

impl Default for Config {
    fn default() -> Self {
        Config {
            memory: "256M".into(),
            control: None,
            link: Vec::new(),
            hosts: None,
            nameserver: Vec::new(),
            shutdown_s: 5,
            handover_s: 3600,
            take_over_s: 30,
            busy_poll_us: 0,
            dhcp: Dhcp::default(),
            tcp: Tcp::default(),
            record: Record::default(),
            history: History::default(),
            instruments: Instruments::default(),
            log: Log::default(),
            services: default_sections(),
            users: None,
        }
    }
}
/// The section of every service by default.
fn default_sections() -> BTreeMap<&'static str, toml::Table> {
    // A default that cannot be written has no key.
    SERVICES.iter().map(|kind| (kind.name, (kind.section)(None).unwrap_or_default())).collect()
}

impl Config {
    /// The configuration that follows from the flags and the file they name, or `host.toml` if it is there.
    pub fn read(flags: &Serve) -> Result<Config, Failure> {
        let file = match &flags.config {
            Some(path) => Some(File::named(path)?),
            None => File::of_current_folder(Path::new(FILE_NAME))?,
        };
        Config::of(file.as_ref(), flags)
    }

    /// Whether a file has a say in it.
    pub fn has_file(flags: &Serve) -> bool {
        flags.config.is_some() || Path::new(FILE_NAME).exists()
    }
    /// The configuration that follows from the flags and a file.
    fn of(file: Option<&File>, flags: &Serve) -> Result<Config, Failure> {
        let read = match &file {
            Some(File { path, text }) => {
                let refused = |wrong| Failure::usage(format!("{}, {wrong}", path.display()));
                Config::parse(text).map_err(refused)?
            }
            None => Config::default(),
        };
        Config::with_flags(read, flags).map_err(|failure| match &file {
            Some(File { path, text }) => failure.at(path, text),
            None => failure,
        })
    }

    /// `config` as the flags change it, checked.
    fn with_flags(mut config: Config, flags: &Serve) -> Result<Config, Failure> {
        if !flags.link.is_empty() {
            config.link = flags.link.clone();
        }
        for link in &config.link {
            link.parse::<Spec>().map_err(|e| Failure::setting("link", link, e))?;
        }
        // `user` without forwards of its own gets the default ones, so that `--link user,loss=5%` serves as usual.
        if config.link.is_empty() {
            config.link = vec!["user".into()];
        }
        let forwards = config.default_link(flags);
        for link in &mut config.link {
            let is_user = link == "user" || link.starts_with("user,");
            if is_user && !link.contains("forward=") {
                *link = format!("{forwards}{}", link.strip_prefix("user").unwrap_or_default());
            }
        }
        if let Some(memory) = &flags.memory {
            config.memory.clone_from(memory);
        }
        if let Some(control) = &flags.control {
            config.control = Some(control.clone());
        }
        if let Some(users) = &flags.users {
            config.users = Some(users.clone());
        }
        if let Some(level) = &flags.log {
            config.log.level = Some(level.clone());
        }
        config.log.json |= flags.log_json;
        check::forwards(&config.link)?;
        check::ports(&config)?;
        config.memory_bytes()?;
        config.busy_poll()?;
        log::targets(&config.log, flags.quiet)?;
        config.tcp.connections()?;
        for kind in SERVICES {
            (kind.check)(config.section(kind))?;
        }
        config.dhcp.check()?;
        config.record.memory_bytes()?;
        config.record.traps()?;
        config.history.limits()?;
        config.instruments.check()?;
        Ok(config)
    }

    /// The default link, with the dashboard's forward where it runs; `--dashboard` has it run.
    fn default_link(&mut self, flags: &Serve) -> String {
        let Some(section) = self.services.get_mut(inhost_dashboard::Dashboard::NAME) else {
            return DEFAULT_LINK.to_owned();
        };
        if flags.dashboard {
            section.insert("enabled".to_owned(), true.into());
        }
        match (section.get("enabled"), section.get("port")) {
            (Some(toml::Value::Boolean(true)), Some(port)) => {
                format!("{DEFAULT_LINK},{DASHBOARD_FORWARD}{port}")
            }
            _ => DEFAULT_LINK.to_owned(),
        }
    }

    /// Reads the text of a configuration file.
    pub fn parse(text: &str) -> Result<Config, Wrong> {
        let wrong = |error| Wrong::of(text, &error);
        let mut table = DeTable::parse(text).map_err(wrong)?;
        if let Some((name, link)) = table.get_ref().get_key_value("link")
            && link.get_ref().as_array().is_some_and(|links| links.is_empty())
        {
            let words = "link = []: a host needs a link; without this key it is \"user\"";
            return Err(Wrong::at(text, Some(name.span()), words));
        }
        let mut services = BTreeMap::new();
        for kind in SERVICES {
            let section = table.get_mut().remove(kind.name);
            services.insert(kind.name, (kind.section)(section).map_err(wrong)?);
        }
        // An unknown section may be a misspelt service, which the struct does not know. It knows its own first keys.
        let is_section =
            |error: &toml::de::Error| error.message().contains("expected one of `memory`, `control`");
        let with_services = |error| match is_section(&error) {
            true => {
                let names: Vec<_> = SERVICES.iter().map(|kind| format!("`{}`", kind.name)).collect();
                wrong(error).and(&format!(", or a service: {}", names.join(", ")))
            }
            false => wrong(error),
        };
        let host = Config::deserialize(toml::de::Deserializer::from(table)).map_err(with_services)?;
        Ok(Config { services, ..host })
    }

    /// The section of a service.
    pub fn section(&self, kind: &Kind) -> &toml::Table {
        static NONE: LazyLock<toml::Table> = LazyLock::new(toml::Table::new);
        self.services.get(kind.name).unwrap_or(&NONE)
    }

    /// The users file that is named, by the command line or by `[telnet]`.
    pub fn named_users(&self) -> Option<PathBuf> {
        let section = || Some(self.services.get("telnet")?.get("users")?.as_str()?.into());
        self.users.clone().or_else(section)
    }

    /// The files that services share.
    pub fn files(&self) -> HostFiles {
        let named = self.named_users();
        HostFiles {
            are_users_named: named.is_some(),
            users: user::file(named.as_deref()).ok(),
            hosts: self.hosts.clone().unwrap_or_else(|| "/etc/hosts".into()),
        }
    }

    /// The memory limit in bytes.
    pub fn memory_bytes(&self) -> Result<usize, Failure> {
        match size_bytes(&self.memory) {
            Some(bytes) if bytes >= LEAST_MEMORY_BYTES => Ok(bytes),
            _ => Err(Failure::setting(
                "memory",
                &self.memory,
                "give a number with K, M or G, at least 1M, such as 64M",
            )),
        }
    }

    /// How long the host looks again after anything happened, instead of sleeping.
    pub fn busy_poll(&self) -> Result<Duration, Failure> {
        match self.busy_poll_us {
            us @ 0..=MOST_BUSY_POLL_US => Ok(Duration::from_micros(us)),
            us => Err(Failure::setting(
                "busy_poll_us",
                us,
                format_args!("give microseconds from 0 to {MOST_BUSY_POLL_US}"),
            )),
        }
    }

    /// Changed keys, each with its old and new value.
    pub fn changes_from(&self, old: &Config) -> Vec<Change> {
        let (before, after) = (old.leaves(), self.leaves());
        let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let value = |of: &BTreeMap<String, String>, key: &String| of.get(key).cloned().unwrap_or_default();
        keys.into_iter()
            .map(|key| Change { key: key.clone(), old: value(&before, key), new: value(&after, key) })
            .filter(|change| change.old != change.new)
            .collect()
    }

    /// Every key that is set, as `telnet.port`, with its value.
    fn leaves(&self) -> BTreeMap<String, String> {
        let mut leaves = BTreeMap::new();
        let host = toml::Table::try_from(self).unwrap_or_default();
        let section =
            |(name, section): (&&str, &toml::Table)| (name.to_string(), toml::Value::Table(section.clone()));
        for (key, value) in host.into_iter().chain(self.services.iter().map(section)) {
            collect_leaves(key, value, &mut leaves);
        }
        leaves
    }
}

fn collect_leaves(key: String, value: toml::Value, leaves: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            for (inner, value) in table {
                collect_leaves(format!("{key}.{inner}"), value, leaves);
            }
        }
        value => drop(leaves.insert(key, value.to_string())),
    }
}

/// A key whose value has changed; an empty value is none.
#[derive(PartialEq, Eq, Debug)]
pub struct Change {
    /// As it is written in the file, behind its section's name.
    pub key: String,
    /// What it was.
    pub old: String,
    /// What it is.
    pub new: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { key, old, new } = self;
        match (old.is_empty(), new.is_empty()) {
            (true, _) => write!(f, "{key} = {new}"),
            (_, true) => write!(f, "{key} is no longer set, it was {old}"),
            _ => write!(f, "{key} = {new}, it was {old}"),
        }
    }
}

/// A host that never sleeps for longer than this is asked for something else than a quick answer.
const MOST_BUSY_POLL_US: u64 = 1_000_000;
/// A host with less cannot hold one batch of large frames.
const LEAST_MEMORY_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_common::service::Service;
    use inhost_ftp::service::Ftp;
    use inhost_names::service::NameServer;
    use inhost_telnet::service::Telnet;
    use inhost_tftp::service::Tftp;

    fn section<S: Service>(config: &Config) -> S::Section {
        config.services[S::NAME].clone().try_into().unwrap()
    }
    fn checks<S: Service>(config: &Config) -> bool {
        S::check(&section::<S>(config)).is_ok()
    }

    #[test]
    fn an_empty_file_is_the_default_and_an_unknown_key_is_refused() {
        assert_eq!(Config::parse("").unwrap(), Config::default());
        let wrong = Config::parse("[telnet]\nprot = 23\n").unwrap_err().to_string();
        assert!(wrong.contains("prot") && wrong.contains("port"), "{wrong}");
        let text = "memory = \"64M\"\nlink = [\"user\"]\n[telnet]\nport = 2323\nlimits = { sessions = 3 }\n";
        let config = Config::parse(text).unwrap();
        assert_eq!((section::<Telnet>(&config).port, config.memory_bytes().unwrap()), (2323, 64 << 20));
        let polls = |us: u64| Config { busy_poll_us: us, ..Config::default() }.busy_poll();
        assert_eq!(polls(50).unwrap(), Duration::from_micros(50));
        assert!(polls(MOST_BUSY_POLL_US + 1).is_err());
        let changes: Vec<String> =
            config.changes_from(&Config::default()).iter().map(ToString::to_string).collect();
        let expected = [
            "link = [\"user\"], it was []",
            "memory = \"64M\", it was \"256M\"",
            "telnet.limits.sessions = 3",
            "telnet.port = 2323, it was 23",
        ];
        assert_eq!(changes, expected);
    }

    #[test]
    fn the_page_on_running_a_host_is_right() {
        let page = include_str!("../../docs/serve.md");
        let (_, rest) = page.split_once("```toml\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let config = Config::parse(example).unwrap();
        for link in &config.link {
            link.parse::<inhost_link::Spec>().unwrap();
        }
        assert_eq!(
            Config { link: Vec::new(), ..config },
            Config::default(),
            "what stands there is the default"
        );
        // What is commented out is as right as the rest.
        let all: String =
            example.lines().map(|line| line.strip_prefix("# ").unwrap_or(line).to_owned() + "\n").collect();
        let config = Config::parse(&all).unwrap();
        assert!(config.control.is_some() && config.hosts.is_some() && config.nameserver.len() == 1);
        assert!(config.dhcp.state.is_some());
        let telnet = section::<Telnet>(&config);
        assert_ne!(config.tcp, Tcp::default());
        assert!(telnet.users.is_some() && telnet.shell.is_some() && telnet.news.is_some());
    }

    #[test]
    fn the_page_on_ftp_is_right() {
        let page = include_str!("../../docs/ftp.md");
        let mut examples = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        let minute = Config::parse(examples.next().unwrap()).unwrap();
        assert!(checks::<Ftp>(&minute));
        let ftp = section::<Ftp>(&minute);
        assert!(ftp.enabled && ftp.user[0].quota_bytes().unwrap() == Some(10 << 30));
        minute.link[0].parse::<inhost_link::Spec>().unwrap();
        let all = examples.next().unwrap();
        assert_eq!(Config::parse(all).unwrap(), Config::default(), "what stands there is the default");
        let all: String =
            all.lines().map(|line| line.strip_prefix("# ").unwrap_or(line).to_owned() + "\n").collect();
        let ftp = section::<Ftp>(&Config::parse(&all).unwrap());
        ftp.check().unwrap();
        assert_eq!(ftp.limits(), inhost_ftp::service::Section::default().limits());
        assert!(ftp.root.is_some() && ftp.anonymous.is_some() && ftp.key.is_some());
        assert_eq!(ftp.ports().unwrap(), Some(50_000..=50_099));
        for wrong in ["passive_ports = \"9-1\"", "tls = \"required\"", "rights = \"all\"", "key = \"x\""] {
            let config = Config::parse(&format!("[ftp]\n{wrong}\n")).unwrap();
            assert!(!checks::<Ftp>(&config), "{wrong}");
        }
    }

    #[test]
    fn the_page_on_tftp_is_right() {
        let page = include_str!("../../docs/tftp.md");
        let mut examples = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        let minute = Config::parse(examples.next().unwrap()).unwrap();
        assert!(section::<Tftp>(&minute).enabled && checks::<Tftp>(&minute));
        minute.link[0].parse::<inhost_link::Spec>().unwrap();
        let all = examples.next().unwrap();
        assert_eq!(Config::parse(all).unwrap(), Config::default(), "what stands there is the default");
        for wrong in
            ["rights = \"all\"", "block_size = 7", "upload = \"much\"", "rollover = 2", "enabled = true"]
        {
            let config = Config::parse(&format!("[tftp]\n{wrong}\n")).unwrap();
            assert!(!checks::<Tftp>(&config), "{wrong}");
        }
    }

    #[test]
    fn the_page_on_names_is_right() {
        let page = include_str!("../../docs/names.md");
        let mut examples = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        let minute = Config::parse(examples.next().unwrap()).unwrap();
        assert!(checks::<NameServer>(&minute));
        let names = section::<NameServer>(&minute);
        assert!(names.enabled && names.table("").look_up("printer").is_some());
        minute.link[0].parse::<inhost_link::Spec>().unwrap();
        let all = examples.next().unwrap();
        assert_eq!(Config::parse(all).unwrap(), Config::default(), "what stands there is the default");
        let all: String =
            all.lines().map(|line| line.strip_prefix("# ").unwrap_or(line).to_owned() + "\n").collect();
        let names = section::<NameServer>(&Config::parse(&all).unwrap());
        names.check().unwrap();
        let forward = names.forward(&[]).unwrap();
        assert_eq!((forward.servers.len(), forward.allow.len()), (2, 1));
    }

    #[test]
    fn the_page_on_dhcp_is_right() {
        let page = include_str!("../../docs/dhcp.md");
        let (_, rest) = page.split_once("```toml\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let config = Config::parse(example).unwrap();
        assert!(config.dhcp.state.is_some());
        let link: inhost_link::Spec = config.link[0].parse().unwrap();
        assert!(link.dhcp && link.addresses.is_empty());
        for wrong in ["tun:in0,address=dhcp", "user,address=dhcp", "tap:in0,address=dhcp,address=10.9.0.2/24"]
        {
            assert!(wrong.parse::<inhost_link::Spec>().is_err(), "{wrong}");
        }
        let both = "tap:in0,address=fd00::2/64,address=dhcp";
        assert_eq!(both.parse::<inhost_link::Spec>().unwrap().to_string(), both);
    }

    #[test]
    fn every_link_that_the_pages_show_is_one() {
        let pages = [
            include_str!("../../README.md"),
            include_str!("../../docs/serve.md"),
            include_str!("../../docs/dhcp.md"),
            crate::args::SERVE_EXAMPLES,
        ];
        let words = pages.iter().flat_map(|page| page.split("--link ").skip(1));
        let specs: Vec<&str> = words
            .map(|rest| match rest.strip_prefix('\'') {
                Some(quoted) => quoted.split('\'').next().unwrap(),
                None => rest.split([' ', '\n', '`']).next().unwrap(),
            })
            .collect();
        assert!(specs.len() > 6, "{specs:?}");
        for spec in specs {
            spec.parse::<inhost_link::Spec>().unwrap_or_else(|e| panic!("{spec}: {e}"));
        }
    }

    #[test]
    fn a_bare_user_link_serves_the_default_forwards() {
        let flags =
            Serve { link: vec!["user,loss=5%".into()], config: Some("/dev/null".into()), ..Serve::default() };
        let config = Config::read(&flags).unwrap();
        assert!(config.link[0].contains("2323->23") && config.link[0].ends_with(",loss=5%"));
        let flags =
            Serve { memory: Some("lots".into()), config: Some("/dev/null".into()), ..Serve::default() };
        assert!(Config::read(&flags).is_err());
    }
}
