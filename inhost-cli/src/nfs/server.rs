//! The server: its ports, its exports, and the one that is used.

use crate::args::{Common, NfsOptions};
use crate::client::ClientHost;
use crate::connection::{Connection, Connector};
use crate::failure::{Failure, print_error};
use crate::ftp::show::clean;
use crate::reserved::Caller;
use crate::target::{Schemes, Target};
use crate::through::interrupts;
use futures_lite::future::or;
use inhost_base::Duration;
use inhost_common::LocalFuture;
use inhost_common::storage::{name_octets, name_text};
use inhost_nfs::client::{self, CallError, CallSettings, ClientError, Listed, Remote, RemoteFile, Rpc};
use inhost_nfs::codec::nfs::FileType;
use inhost_nfs::codec::rpc::{AuthSys, Credentials, Machine};
use inhost_nfs::codec::{mount, nfs, portmap};
use inhost_nfs::driver::{Connect, carry_stream, drive};
use inhost_runtime::{Signals, entropy};
use inhost_socket::Host;
use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::io;
use std::rc::Rc;

const SCHEMES: Schemes = Schemes::Of(&["nfs"]);
/// How long a portmapper may take, where the port may be the usual one.
const PORTMAPPER_WITHIN: Duration = Duration::from_secs(5);
/// A server that is silent for so long is named.
const SILENT: Duration = Duration::from_secs(2);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long clearing up may take after something failed.
pub const CLEAR_WITHIN: Duration = Duration::from_secs(2);
/// Permission bits of a directory that is made.
const DIRECTORY_MODE: u32 = 0o755;

/// A path at a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub host: String,
    pub port: Option<u16>,
    /// It begins with a slash. Text as [`name_octets`] understands it.
    pub path: String,
}

impl Place {
    /// Reads `HOST:/PATH`, `host[:port]/path` and `nfs://host[:port]/path`.
    pub fn parse(text: &str) -> Result<Place, Failure> {
        let of_mount = (!text.contains("://")).then(|| text.split_once(":/")).flatten();
        let (target, path) = match of_mount {
            Some((host, path)) => (Target::parse(host, SCHEMES)?, Some(path.as_bytes().to_vec())),
            None => {
                let target = Target::parse(text, SCHEMES)?;
                let path = target.path.clone();
                (target, path)
            }
        };
        let path = path.ok_or_else(|| Failure::usage(format!("{text:?}: give HOST:/PATH")))?;
        let path = name_text(&path);
        Ok(Place { host: target.host, port: target.port, path: format!("/{}", path.trim_start_matches('/')) })
    }
    /// The new name of what this place is, for [`Server::rename`]: a path, or another place at the same server.
    pub fn new_name(&self, to: &str) -> Result<String, Failure> {
        let begins_as_own = self.port.is_some_and(|port| to.starts_with(&format!("{}:{port}/", self.host)));
        if to.starts_with('/') || !(begins_as_own || to.contains(":/")) {
            return Ok(name_text(to.as_bytes()));
        }
        let place = Place::parse(to)?;
        if (&place.host, place.port) != (&self.host, self.port) {
            let why = "a file is renamed within its server; get it and put it there instead";
            return Err(Failure::usage(format!("{to:?}: {why}")));
        }
        Ok(place.path)
    }
    /// A server alone.
    pub fn server(text: &str) -> Result<Place, Failure> {
        let target = Target::parse(text, SCHEMES)?;
        Ok(Place { host: target.host, port: target.port, path: "/".into() })
    }
    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }
}

/// How connections to a server are made.
#[derive(Clone)]
pub struct Calls {
    clock: Host,
    ports: Ports,
    /// A signal ends what is under way.
    signals: Rc<Signals>,
}

#[derive(Clone)]
enum Ports {
    Any(Rc<Connector>),
    Reserved(Rc<Caller>),
}

impl Calling {
    /// What a server does that has not answered for a while.
    fn trouble(&self, limit: Duration) -> String {
        let (host, port, failure) = (clean(&self.host), self.port, self.attempts.failure.borrow());
        let until = format!("trying for up to {} s (--timeout)", limit.as_secs_f64());
        match self.attempts.made.get() {
            0 if failure.is_empty() => format!("{host} port {port}: no connection yet; {until}"),
            0 => format!("{failure}; {until}"),
            1 => format!("{host} port {port}: no answer yet; {until}"),
            _ => format!(
                "{host} port {port} closes connections unanswered, as a server does that had too many of them; {until}"
            ),
        }
    }
}

impl Calls {
    /// No calls yet. The first has a number that nobody can foretell.
    fn rpc(&self, credentials: &Credentials, settings: CallSettings) -> Result<Rpc<Host>, ClientError> {
        let drawn = entropy().map_err(|e| CallError::Unreachable(format!("no entropy: {e}")))?;
        let first = u32::from_ne_bytes([drawn[0], drawn[1], drawn[2], drawn[3]]);
        Ok(Rpc::new(self.clock.clone(), credentials.clone(), settings, first))
    }
    /// Does `work`, whose calls go to a port. A server that does not answer is named, and a signal ends the operation
    /// that is under way.
    async fn carry<T>(
        &self,
        rpc: &Rpc<Host>,
        host: &str,
        port: u16,
        settings: CallSettings,
        work: impl Future<Output = T>,
    ) -> T {
        let calling = Calling { calls: self.clone(), host: host.to_owned(), port, attempts: Rc::default() };
        let watch = async {
            let mut silent = Duration::ZERO;
            loop {
                self.clock.sleep(LOOK_EVERY).await;
                silent = if rpc.is_waiting() { silent + LOOK_EVERY } else { Duration::ZERO };
                if silent == SILENT {
                    print_error(format_args!("nfs: {}", calling.trouble(settings.give_up_after)));
                }
            }
        };
        let stop = async {
            loop {
                self.signals.next().await;
                rpc.interrupt();
            }
        };
        drive(carry_stream(rpc, &calling), or(work, or(watch, stop))).await
    }
    /// Those of the host on which the client runs.
    pub fn of(client: &ClientHost, options: &NfsOptions) -> Result<Calls, Failure> {
        let (clock, common) = (client.runtime.host().clone(), options.reach.common.clone());
        let ports = match options.reserved_port {
            true => Ports::Reserved(Rc::new(Caller::new(client, common))),
            false => {
                let maker = client.maker.clone();
                Ports::Any(Rc::new(Connector { maker, common, clock: clock.clone() }))
            }
        };
        Ok(Calls { clock, ports, signals: Rc::new(interrupts(&client.runtime)?) })
    }
    async fn call(self, host: &str, port: u16) -> io::Result<Connection> {
        use inhost_telnet::driver::Connect as _;
        match self.ports {
            Ports::Any(connector) => {
                let connected = connector.connect(host, port).await.map_err(io::Error::other)?;
                Ok(connected.stream)
            }
            Ports::Reserved(caller) => {
                let called = caller.call(host, port).await;
                Ok(called.map_err(|why| io::Error::other(why.to_string()))?.stream)
            }
        }
    }
}

/// Makes connections to one port of a server, and knows how that went.
struct Calling {
    calls: Calls,
    host: String,
    port: u16,
    attempts: Rc<Attempts>,
}

/// How connecting went.
#[derive(Default)]
struct Attempts {
    made: Cell<u32>,
    failure: RefCell<String>,
}

impl Connect for Calling {
    type Stream = Connection;
    fn connect(&self) -> LocalFuture<io::Result<Connection>> {
        let (calls, host, port) = (self.calls.clone(), self.host.clone(), self.port);
        let attempts = self.attempts.clone();
        Box::pin(async move {
            let called = calls.call(&host, port).await;
            match &called {
                Ok(_) => attempts.made.set(attempts.made.get() + 1),
                Err(why) => {
                    attempts.failure.replace(why.to_string());
                }
            }
            called
        })
    }
}

/// A server, as far as it is known.
pub struct Server {
    calls: Calls,
    name: String,
    mount_port: u16,
    files_port: u16,
    credentials: Credentials,
    settings: CallSettings,
    export: Option<String>,
    /// Calls to the port of files.
    files: Rpc<Host>,
}

impl Server {
    /// Finds the ports of the server of `place`, and does `work` with it. There is one connection to each port.
    pub async fn during<T>(
        calls: Calls,
        place: &Place,
        options: &NfsOptions,
        work: impl AsyncFnOnce(&Server) -> Result<T, String>,
    ) -> Result<T, String> {
        let common: Common = options.reach.common.clone();
        let (user, group) = options.user.unwrap_or_else(own_ids);
        let machine = Machine::default();
        let credentials =
            Credentials::Sys(AuthSys { stamp: 0, machine, uid: user, gid: group, groups: Vec::new() });
        let mut settings = CallSettings::connection();
        settings.give_up_after = common.limit().unwrap_or(settings.give_up_after);
        let given = Target { port: place.port, ..Target::default() };
        let given = given.port_or(options.port).map_err(|why| why.to_string())?;
        let port = given.unwrap_or(nfs::PORT);
        let files = calls.rpc(&credentials, settings).map_err(|why| why.to_string())?;
        let mut server = Server {
            calls,
            name: place.host.clone(),
            mount_port: port,
            files_port: port,
            credentials,
            settings,
            export: options.export.as_ref().map(|path| name_text(path.as_bytes())),
            files: files.clone(),
        };
        let calls = server.calls.clone();
        let name = server.name.clone();
        let all = async {
            if given.is_none() {
                server.find_ports(&common).await.map_err(|why| format!("{}: {why}", server.name))?;
            }
            if server.files_port == port {
                return work(&server).await;
            }
            server.files = server.calls.rpc(&server.credentials, settings).map_err(|why| why.to_string())?;
            server.calls.carry(&server.files, &server.name, server.files_port, settings, work(&server)).await
        };
        calls.carry(&files, &name, port, settings, all).await
    }
    /// Finds the ports: both are the usual one if the server has MOUNT there, or else what its portmapper says.
    async fn find_ports(&mut self, common: &Common) -> Result<(), ClientError> {
        let within = self.settings.give_up_after.min(PORTMAPPER_WITHIN);
        match self.calls.clock.timeout(within, client::ping_mount(&self.files)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(ClientError::Call(CallError::Interrupted))) => return Err(CallError::Interrupted.into()),
            _ => {}
        }
        match self.ask_portmapper().await {
            Ok(ports) => (self.files_port, self.mount_port) = ports,
            Err(ClientError::Call(CallError::Interrupted)) => return Err(CallError::Interrupted.into()),
            Err(why) => {
                common.note(format_args!("its portmapper says nothing ({why}): port {} it is", nfs::PORT));
            }
        }
        Ok(())
    }
    async fn ask_portmapper(&self) -> Result<(u16, u16), ClientError> {
        let mut settings = self.settings;
        settings.give_up_after = settings.give_up_after.min(PORTMAPPER_WITHIN);
        self.with(portmap::PORT, settings, async |rpc| {
            let files = client::port_of(&rpc, nfs::PROGRAM, nfs::VERSION, portmap::TCP).await?;
            let mount = client::port_of(&rpc, mount::PROGRAM, mount::VERSION, portmap::TCP).await?;
            Ok((files, mount))
        })
        .await
    }
    /// Does `work` with calls to a port: those of files, or others on a connection of their own.
    async fn with<T>(
        &self,
        port: u16,
        settings: CallSettings,
        work: impl AsyncFnOnce(Rpc<Host>) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        if port == self.files_port {
            return work(self.files.clone()).await;
        }
        let rpc = self.calls.rpc(&self.credentials, settings)?;
        self.calls.carry(&rpc, &self.name, port, settings, work(rpc.clone())).await
    }
    /// Its exports, and to whom, as text that [`name_octets`] understands.
    pub async fn exports(&self) -> Result<Vec<(String, Vec<String>)>, String> {
        let found = self.with(self.mount_port, self.settings, async |rpc| client::exports(&rpc).await).await;
        let found = found.map_err(|why| format!("{}: {why}", self.name))?;
        Ok(found
            .iter()
            .map(|of| (name_text(&of.path.0), of.groups.iter().map(|group| name_text(&group.0)).collect()))
            .collect())
    }
    /// Does `work` with the export that has `path`, and the path in it.
    pub async fn mounted<T, E: From<ClientError> + Display>(
        &self,
        path: &str,
        work: impl AsyncFnOnce(&Remote<Host>, &str) -> Result<T, E>,
    ) -> Result<T, String> {
        let export = self.export_for(path).await?;
        self.mounted_at(&export, path, work).await
    }
    /// The export that is used for `path`, without a slash at its end.
    async fn export_for(&self, path: &str) -> Result<String, String> {
        let export = match &self.export {
            Some(export) => export.clone(),
            None => self.export_of(path).await?,
        };
        Ok(export.trim_end_matches('/').to_owned())
    }
    /// The same in an export that is known.
    async fn mounted_at<T, E: From<ClientError> + Display>(
        &self,
        export: &str,
        path: &str,
        work: impl AsyncFnOnce(&Remote<Host>, &str) -> Result<T, E>,
    ) -> Result<T, String> {
        let inside = inside(export, path)?.to_owned();
        let mount_path = if export.is_empty() { "/" } else { export };
        let handle = self
            .with(self.mount_port, self.settings, async |rpc| client::mount(&rpc, mount_path).await)
            .await
            .map_err(|why| format!("{}:{}: {why}", self.name, clean(mount_path)))?;
        let done = match Remote::open(self.files.clone(), handle).await {
            Ok(remote) => work(&remote, &inside).await.map_err(|why| why.to_string()),
            Err(why) => Err(why.to_string()),
        };
        let done = done.map_err(|why| format!("{}:{}: {why}", self.name, clean(path)));
        // The server's list of who has mounted what is for people; it may be wrong.
        let unmounting =
            self.with(self.mount_port, self.settings, async |rpc| client::unmount(&rpc, mount_path).await);
        let _ = self.calls.clock.timeout(CLEAR_WITHIN, unmounting).await;
        done
    }
    /// The longest export that `path` begins with.
    async fn export_of(&self, path: &str) -> Result<String, String> {
        let all = self.exports().await?;
        let found = all
            .iter()
            .map(|(export, _)| export)
            .filter(|export| inside(export.trim_end_matches('/'), path).is_ok())
            .max_by_key(|export| export.len());
        found.cloned().ok_or_else(|| {
            let known: Vec<_> = all.iter().map(|(export, _)| export.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            format!("{}: no export has {}; there is {}", self.name, clean(path), clean(&known))
        })
    }
    /// What a directory has, or the one file.
    pub async fn list(&self, place: &Place) -> Result<Vec<Listed>, String> {
        let name = name_octets(place.name()).into_owned();
        self.mounted(&place.path, async |remote, inside| {
            let RemoteFile { attributes, .. } = remote.file_or_link(inside).await?;
            if attributes.kind == FileType::Directory {
                let mut found = remote.list(inside).await?;
                found.sort_by(|one, other| one.name.cmp(&other.name));
                return Ok::<_, ClientError>(found);
            }
            Ok(vec![Listed { name, attributes: Some(attributes) }])
        })
        .await
    }
    pub async fn make_directory(&self, place: &Place) -> Result<(), String> {
        self.mounted(&place.path, async |remote, inside| remote.make_directory(inside, DIRECTORY_MODE).await)
            .await
    }
    /// Removes a file or an empty directory.
    pub async fn remove(&self, place: &Place) -> Result<(), String> {
        self.mounted(&place.path, async |remote, inside| {
            match remote.file_or_link(inside).await?.attributes.kind {
                FileType::Directory => remote.remove_directory(inside).await,
                _ => remote.remove(inside).await,
            }
        })
        .await
    }
    /// Renames within the export; `to` is a path of the server's, or a name beside the old one.
    pub async fn rename(&self, place: &Place, to: &str) -> Result<(), String> {
        let export = self.export_for(&place.path).await?;
        let target = new_path(&export, inside(&export, &place.path)?, to)?;
        let renaming = async |remote: &Remote<Host>, inside: &str| remote.rename(inside, &target).await;
        self.mounted_at(&export, &place.path, renaming).await
    }
}

/// The part of `path` that is in `export`, which has no slash at its end.
fn inside<'a>(export: &str, path: &'a str) -> Result<&'a str, String> {
    let rest = path.strip_prefix(export).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    rest.ok_or_else(|| format!("{} is not in the export {}", clean(path), clean(export)))
}

/// The path in `export` of `to`, a path of the server's or a name beside the file `old` of the export.
fn new_path(export: &str, old: &str, to: &str) -> Result<String, String> {
    if to.starts_with('/') {
        return inside(export, to).map(str::to_owned);
    }
    let directory = old.trim_end_matches('/').rsplit_once('/').map_or("", |(directory, _)| directory);
    Ok(format!("{directory}/{to}"))
}

fn own_ids() -> (u32, u32) {
    (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_in_each_form() {
        let place = |text: &str| Place::parse(text).map(|of| (of.host, of.port, of.path)).map_err(drop);
        let is = |host: &str, port, path: &str| Ok((host.to_owned(), port, path.to_owned()));
        assert_eq!(place("vax:/files/a"), is("vax", None, "/files/a"));
        assert_eq!(place("[fd09::2]:/files"), is("fd09::2", None, "/files"));
        assert_eq!(place("vax:12049/files"), is("vax", Some(12_049), "/files"));
        assert_eq!(place("nfs://vax/files/a%20b"), is("vax", None, "/files/a b"));
        assert_eq!(place("nfs://vax:2050/"), is("vax", Some(2050), "/"));
        assert_eq!(place("nfs://vax/files/M%e4dchen"), is("vax", None, &name_text(b"/files/M\xe4dchen")));
        assert!(place("vax").is_err() && place("http://vax/").is_err());
        assert_eq!(Place::parse("vax:/files/a/").unwrap().name(), "a");
    }

    #[test]
    fn a_new_name_may_have_the_same_server() {
        let name = |place: &str, to| Place::parse(place).unwrap().new_name(to).map_err(|why| why.to_string());
        let all =
            [("vax:/a", "b"), ("vax:/a", "vax:/b"), ("vax:2050/a", "vax:2050/b"), ("vax:/a", "nfs://vax/b")];
        assert_eq!(all.map(|(place, to)| name(place, to).unwrap()), ["b", "/b", "/b", "/b"]);
        assert_eq!(name("vax:/a", "/b:/c").unwrap(), "/b:/c");
        for to in ["pdp:/b", "nfs://vax:2050/b"] {
            assert!(name("vax:/a", to).unwrap_err().contains("renamed within its server"), "{to}");
        }
    }

    #[test]
    fn a_new_name_is_in_the_export() {
        let path = |export, to| new_path(export, "/a/old", to).map_err(drop);
        assert_eq!(path("/files", "new"), Ok("/a/new".into()));
        assert_eq!(path("/files", "b/new"), Ok("/a/b/new".into()));
        assert_eq!(path("/files", "/files/new"), Ok("/new".into()));
        assert_eq!(path("", "/new"), Ok("/new".into()));
        assert_eq!(new_path("/files", "/old", "new"), Ok("/new".into()));
        let why = new_path("/files", "/a", "/filesb").unwrap_err();
        assert_eq!(why, "/filesb is not in the export /files");
    }
}
