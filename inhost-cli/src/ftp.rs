//! `inhost ftp`: files from and to servers.

mod interactive;
mod network;
mod session;
pub mod show;
mod url;

use crate::args::{Ftp, FtpCommand, FtpOptions};
use crate::client::ClientHost;
use crate::connection::Connector;
use crate::failure::Failure;
use crate::output::counted;
use crate::progress::Progress;
use crate::through::HostChoice;
use inhost_base::Duration;
use inhost_common::storage::{Folder, VirtualPath};
use inhost_ftp::client::ClientError;
use inhost_ftp::codec::{name_octets, name_text};
use inhost_ftp::driver::{MirrorPlan, Moved, copy, get, mirror, put};
use network::ClientNetwork;
use serde_json::json;
use session::{Credentials, Opener, Session, credentials};
use show::{clean, moved_json, moved_line};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::rc::Rc;
use url::Url;

pub use session::{CERTIFICATE_ADVICE, authorities};
pub use url::without_password as url_without_password;

/// How often the connections of a mirror are looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Runs what was asked.
pub fn run(arguments: &Ftp) -> Result<(), Failure> {
    match &arguments.command {
        None => interactive(arguments),
        Some(FtpCommand::Get { url, file, options }) => {
            let url = Url::parse(url)?;
            let own = || OsString::from_vec(name_octets(url.name()).into_owned()).into();
            let named = file.clone().unwrap_or_else(own);
            let (folder, name) = place(&named, url.name())?;
            let who = credentials(&url, options)?;
            on_host(options, url.implicit, async move |opener| {
                let mut session = opener.open(&url, &who).await?;
                let progress = opener.progress(url.name());
                let total = size_there(&mut session, &url.path, &progress).await;
                let (progress, moved) = (progress.of(total), session.moved());
                let got = get(&mut session, &url.path, &folder, &name, opener.how());
                let got = progress.during(moved, got).await?;
                tell(&opener, &progress, got);
                leave(session).await;
                Ok(())
            })
        }
        Some(FtpCommand::Put { file, url, options }) => {
            let mut url = Url::parse(url)?;
            let own = file.file_name().map(|name| name_text(name.as_encoded_bytes())).unwrap_or_default();
            if url.path.is_empty() || url.path.ends_with('/') {
                url.path += &own;
            }
            let (folder, name) = place(file, "")?;
            let who = credentials(&url, options)?;
            let total = size_here(file);
            on_host(options, url.implicit, async move |opener| {
                let mut session = opener.open(&url, &who).await?;
                let progress = opener.progress(&own).of(total);
                let moved = session.moved();
                let sent = put(&mut session, &folder, &name, &url.path, opener.how());
                let sent = progress.during(moved, sent).await?;
                tell(&opener, &progress, sent);
                leave(session).await;
                Ok(())
            })
        }
        Some(FtpCommand::Mirror { url, folder, reverse, connections, options }) => {
            let url = Url::parse(url)?;
            if !reverse {
                std::fs::create_dir_all(folder)
                    .map_err(|e| Failure::operation(format!("cannot make {}: {e}", folder.display())))?;
            }
            let (folder, who) = (open(folder)?, credentials(&url, options)?);
            let (reverse, connections) = (*reverse, usize::from(*connections));
            on_host(options, url.implicit, async move |opener| {
                let plan = MirrorPlan::new(folder, &url.path, reverse, opener.how());
                mirror_all(&opener, &url, &who, Rc::new(plan), connections).await
            })
        }
        Some(FtpCommand::Copy { from, to, options }) => {
            let (from, mut to) = (Url::parse(from)?, Url::parse(to)?);
            if to.path.is_empty() || to.path.ends_with('/') {
                to.path += from.name();
            }
            let (one, other) = (credentials(&from, options)?, credentials(&to, options)?);
            on_host(options, from.implicit || to.implicit, async move |opener| {
                let mut source = opener.open(&from, &one).await?;
                let mut target = opener.open(&to, &other).await?;
                let progress = opener.progress(from.name());
                let moved = copy(&mut source, &from.path, &mut target, &to.path, opener.how()).await?;
                tell(&opener, &progress, moved);
                leave(source).await;
                leave(target).await;
                Ok(())
            })
        }
    }
}

fn interactive(arguments: &Ftp) -> Result<(), Failure> {
    let url = arguments.host.as_deref().map(Url::parse).transpose()?;
    let implicit = url.as_ref().is_some_and(|url| url.implicit);
    on_host(&arguments.options, implicit, async move |opener| interactive::run(opener, url).await)
}

/// Has the work done on a private host, or through the running one.
fn on_host<F: Future<Output = Result<(), ClientError>>>(
    options: &FtpOptions,
    implicit: bool,
    work: impl FnOnce(Opener) -> F,
) -> Result<(), Failure> {
    let mut client = ClientHost::start(HostChoice::find(&options.reach)?)?;
    let (common, clock) = (options.reach.common.clone(), client.runtime.host().clone());
    let network = ClientNetwork(Connector { maker: client.maker.clone(), common, clock });
    let needs_trust = options.tls || implicit;
    let opener = Opener::new(network, &client.runtime, options, needs_trust)?;
    let done = client.runtime.run(work(opener));
    let done = done.map_err(|e| Failure::operation(format!("the client cannot wait: {e}")))?;
    client.end()?;
    done.map_err(|error| Failure::operation(format!("ftp: {}", clean(&error.to_string()))))
}

/// The folder of a file here, and its name in there.
pub fn place(file: &Path, otherwise: &str) -> Result<(Folder, VirtualPath), Failure> {
    if file.as_os_str() == "-" {
        let why = "a transfer goes into a file, where it can go on; name one, or ./- for a file of this name";
        return Err(Failure::usage(format!("-: {why}")));
    }
    let is_folder = file.is_dir() || file.as_os_str().is_empty();
    let (folder, name) = match is_folder {
        true => (file, otherwise.to_owned()),
        false => (
            file.parent().unwrap_or(Path::new("")),
            file.file_name().map(|name| name_text(name.as_encoded_bytes())).unwrap_or_default(),
        ),
    };
    if name.is_empty() {
        let named = if file.as_os_str().is_empty() { "the address" } else { &*file.to_string_lossy() };
        return Err(Failure::usage(format!("{named}: name a file")));
    }
    Ok((open(folder)?, VirtualPath::root().join(&name)))
}

fn open(folder: &Path) -> Result<Folder, Failure> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Folder::open(folder)
        .map_err(|e| Failure::operation(format!("cannot open the folder {}: {e}", folder.display())))
}

/// Says what was moved.
fn tell(opener: &Opener, progress: &Progress, moved: Moved) {
    match (opener.options.json, opener.options.quiet) {
        (true, _) => say!("{}", moved_json(progress, moved)),
        (false, true) => {}
        (false, false) => say!("{}", moved_line(progress, moved)),
    }
}

/// The size of a file here, for the display.
pub fn size_here(file: &Path) -> Option<u64> {
    std::fs::metadata(file).ok().map(|found| found.len())
}

/// The size of a file there, for the display alone: a server that does not tell it is not asked again.
async fn size_there(session: &mut Session, path: &str, progress: &Progress) -> Option<u64> {
    if !progress.is_shown() {
        return None;
    }
    session.command("TYPE I").await.ok()?;
    session.command(format!("SIZE {path}")).await.ok()?.last().trim().parse().ok()
}

/// Sends QUIT and closes the connection even without a reply.
async fn leave(mut session: Session) {
    let _ = session.command("QUIT").await;
}

async fn mirror_all(
    opener: &Opener,
    url: &Url,
    who: &Credentials,
    plan: Rc<MirrorPlan>,
    connections: usize,
) -> Result<(), ClientError> {
    let first = opener.open(url, who).await?;
    let progress = opener.progress(url.name());
    let mut workers =
        vec![opener.host.spawn(work(opener.clone(), first, url.clone(), who.clone(), plan.clone()))];
    for _ in 1..connections {
        let (theirs, url, who, plan) = (opener.clone(), url.clone(), who.clone(), plan.clone());
        workers.push(opener.host.spawn(async move {
            // A server that gives one user fewer connections is served with those.
            match theirs.open(&url, &who).await {
                Ok(session) => work(theirs, session, url, who, plan).await,
                Err(_) => Ok(()),
            }
        }));
    }
    let moved = Rc::new(std::cell::Cell::new(0));
    let all = async {
        let mut outcome = Ok(());
        for worker in workers {
            while !worker.is_finished() {
                moved.set(plan.bytes.get());
                opener.host.sleep(LOOK_AGAIN).await;
            }
            outcome = outcome.and(worker.await);
        }
        outcome
    };
    progress.during(moved.clone(), all).await?;
    let (files, kept) = (plan.files.get(), plan.kept.get());
    match (opener.options.json, opener.options.quiet) {
        (true, _) => {
            let left_out: Vec<String> = plan.left_out.borrow().iter().map(|what| clean(what)).collect();
            let report = json!({
                "files": files, "bytes": plan.bytes.get(), "unchanged": kept, "seconds": progress.seconds(),
                "left_out": left_out, "failed": plan.failures.borrow().len(),
            });
            say!("{report}");
        }
        (false, true) => {}
        (false, false) => {
            let (moved, rate) = (counted(files, "file"), progress.rate(plan.bytes.get()));
            let were = if kept == 1 { "was" } else { "were" };
            say!("{moved} moved, {rate}; {kept} {were} there already");
        }
    }
    plan.left_out.borrow().iter().for_each(|what| eprintln!("inhost: ftp: left out: {}", clean(what)));
    let failures = plan.failures.borrow();
    match failures.first() {
        None => Ok(()),
        Some(first) => {
            failures.iter().skip(1).for_each(|failure| eprintln!("inhost: ftp: {}", clean(failure)));
            Err(ClientError::Verify(format!(
                "not moved: {}: {first}",
                counted(failures.len() as u64, "file")
            )))
        }
    }
}

async fn work(
    opener: Opener,
    mut session: Session,
    url: Url,
    who: Credentials,
    plan: Rc<MirrorPlan>,
) -> Result<(), ClientError> {
    loop {
        let done = mirror(&mut session, &opener.host, &plan).await;
        leave(session).await;
        match done {
            Err(ClientError::Data(_)) => session = opener.open(&url, &who).await?,
            done => return done,
        }
    }
}
