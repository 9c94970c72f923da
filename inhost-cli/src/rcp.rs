//! `inhost rcp`: files to and from another host.

use crate::args::Rcp;
use crate::connection::Connection;
use crate::failure::{Failure, print_error};
use crate::reserved::{self, Caller, local_user};
use crate::target::{Schemes, Target};
use futures_lite::future::or;
use inhost_names::check_host;
use inhost_rcommands::rcp::{CopySummary, Expected, Folder, Options, fetch, send};
use inhost_rcommands::rsh::{PORT, Request, begin_alone};
use inhost_runtime::{Signal, Signals};
use std::path::PathBuf;

/// Something on another host.
#[derive(Clone, PartialEq, Eq, Debug)]
struct There {
    user: Option<String>,
    host: String,
    port: Option<u16>,
    path: String,
}

/// Copies, and says what was left out.
pub fn run(arguments: &Rcp) -> Result<(), Failure> {
    let options = Options::new(arguments.recursive, arguments.preserve);
    let Some((target, sources)) = arguments.paths.split_last() else {
        return Err(Failure::usage("give what to copy, and where to"));
    };
    let from = sources.iter().map(|source| there(source)).collect::<Result<Vec<Option<There>>, Failure>>()?;
    let to = there(target)?;
    let local_user = local_user(&arguments.common)?;
    let report = reserved::run(&arguments.common, async |caller| {
        let signals = Signals::new(&caller.reactor, &[Signal::Interrupt, Signal::Terminate])
            .map_err(|e| Failure::operation(format!("signals cannot be received: {e}")))?;
        let interrupted = async {
            signals.next().await;
            Err(Failure::operation("interrupted"))
        };
        let copying = Copying { arguments, options, caller: &caller, local_user: &local_user };
        let work = async {
            match (&to, from.iter().flatten().count()) {
                (Some(to), 0) => copying.send(to, sources).await,
                (None, remote) if remote == sources.len() => copying.fetch(&from, target).await,
                _ => Err(Failure::usage(
                    "one of both sides is to be here: either all that is copied, or where it goes",
                )),
            }
        };
        or(work, interrupted).await
    })?;
    if arguments.json {
        let CopySummary { files, bytes, left_out, .. } = report;
        say!("{}", serde_json::json!({ "files": files, "bytes": bytes, "left_out": left_out }));
    }
    match report.left_out {
        0 => Ok(()),
        1 => Err(Failure::operation("one thing was left out")),
        more => Err(Failure::operation(format!("{more} things were left out"))),
    }
}

/// What is not here: `user@host:path`, where the colon stands before any slash and an IPv6 address in brackets, or a URL.
fn there(text: &str) -> Result<Option<There>, Failure> {
    if !text.starts_with("rcp://") {
        let there = host_and_path(text);
        if let Some(There { host, .. }) = &there {
            check_host(host).map_err(|why| Failure::usage(why.to_string()))?;
        }
        return Ok(there);
    }
    let target = Target::parse(text, Schemes::Of(&["rcp"]))?;
    let user = target.user_name()?;
    let path = String::from_utf8(target.path.unwrap_or_default());
    let path = path.map_err(|_| Failure::usage(format!("{text:?}: the path is not UTF-8")))?;
    Ok(Some(There { user, host: target.host, port: target.port, path }))
}

fn host_and_path(text: &str) -> Option<There> {
    let from = text.find(']').filter(|_| text.contains('[')).unwrap_or(0);
    let colon = from + text.get(from..)?.find(':')?;
    let (front, path) = (text.get(..colon)?, text.get(colon + 1..)?);
    if front.is_empty() || front.contains('/') {
        return None;
    }
    let (user, host) = match front.rsplit_once('@') {
        Some((user, host)) => (Some(user.to_owned()), host),
        None => (None, front),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some(There { user, host: host.to_owned(), port: None, path: path.to_owned() })
}

struct Copying<'a> {
    arguments: &'a Rcp,
    options: Options,
    caller: &'a Caller,
    local_user: &'a str,
}

impl Copying<'_> {
    async fn send(&self, to: &There, sources: &[String]) -> Result<CopySummary, Failure> {
        let paths: Vec<PathBuf> = sources.iter().map(PathBuf::from).collect();
        let command = self.options.send_command(&to.path, paths.len() > 1);
        let mut stream = self.begin(to, command).await?;
        send(&mut stream, self.options, &paths, tell).await.map_err(|why| of(to, &why))
    }
    async fn fetch(&self, from: &[Option<There>], target: &str) -> Result<CopySummary, Failure> {
        let mut all = CopySummary::default();
        let several = from.len() > 1;
        for from in from.iter().flatten() {
            let (place, preserve) = (PathBuf::from(target), self.options.preserve);
            let folder = blocking::unblock(move || Folder::open(&place, several, preserve)).await;
            let folder = folder.map_err(|e| Failure::operation(format!("{target}: {e}")))?;
            let path = match from.path.trim_end_matches('/') {
                "" if from.path.starts_with('/') => "/",
                path => path,
            };
            let mut stream = self.begin(from, self.options.fetch_command(path)).await?;
            let done = fetch(&mut stream, self.options, Expected::of(path), folder, tell).await;
            all = all.and(done.map_err(|why| of(from, &why))?);
        }
        Ok(all)
    }
    async fn begin(&self, there: &There, command: String) -> Result<Connection, Failure> {
        let port = Target { port: there.port, ..Target::default() }.port_or(self.arguments.common.port)?;
        let mut called = self.caller.call(&there.host, port.unwrap_or(PORT)).await?;
        let user = there.user.clone().or_else(|| self.arguments.user.clone());
        let remote_user = user.unwrap_or_else(|| self.local_user.to_owned());
        let request = Request { local_user: self.local_user.to_owned(), remote_user, command };
        // What rcp has to say it says in its own protocol: no second connection is needed.
        begin_alone(&mut called.stream, &request).await.map_err(|e| of(there, &e))?;
        Ok(called.stream)
    }
}

fn tell(why: &str) {
    print_error(why);
}

fn of(there: &There, why: &dyn std::fmt::Display) -> Failure {
    let There { host, path, .. } = there;
    Failure::operation(if path.is_empty() {
        format!("{host}: {why}")
    } else {
        format!("{host}:{path}: {why}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_and_what_is_here() {
        let parts = |text: &str| {
            let There { user, host, path, .. } = there(text).unwrap()?;
            Some((user.unwrap_or_default(), host, path))
        };
        let some = |user: &str, host: &str, path: &str| Some((user.into(), host.into(), path.into()));
        assert_eq!(parts("vax:notes"), some("", "vax", "notes"));
        assert_eq!(parts("ada@vax:"), some("ada", "vax", ""));
        assert_eq!(parts("ada@[fd09::1]:a:b"), some("ada", "fd09::1", "a:b"));
        assert_eq!(parts("rcp://ada@[fd09::1]:514//etc/a%20b"), some("ada", "fd09::1", "/etc/a b"));
        assert_eq!(there("rcp://vax:514/x").unwrap().unwrap().port, Some(514));
        assert!(there("rcp://vax:x/").is_err());
        assert_eq!([parts("notes"), parts("./a:b"), parts("/x:y"), parts(":x")], [None, None, None, None]);
    }
}
