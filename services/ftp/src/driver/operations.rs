//! Client operations: get, put, list, and copy from one server to another.
//!
//! A file is written beside the name that it will have, and gets it once its size, and where the server offers it its
//! hash, is that of the original.

use inhost_socket::both;

use super::files::hash;
use super::{Clock, Connection, Flow, Network};
use crate::client::{Answer, ClientError, DataVia, Listed, Listing, Operation, Transfer, parse_listing};
use crate::codec::{Parameters, UnixTime, parse_time, time_text};
use crate::server::Digest;
use inhost_common::storage::{Folder, Source, Storage, StorageError, Store, VirtualPath, fits_name};

/// A file no longer than this is moved anew in less time than it takes to look what is there of it.
const WORTH_RESUMING_BYTES: u64 = 64 * 1024;

/// What the name of a file that is being sent ends in.
const PART: &str = ".part";

/// Options of file transfers.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GetOptions {
    /// Go on where an earlier attempt was broken off.
    pub resume: bool,
    /// Compare hashes, where the server offers them.
    pub hash: bool,
    /// How data connections are opened: active or passive.
    pub via: DataVia,
    /// Upload under the final name, for servers that let nobody rename.
    pub in_place: bool,
}

impl Default for GetOptions {
    fn default() -> Self {
        GetOptions { resume: true, hash: true, via: DataVia::Passive, in_place: false }
    }
}

/// Transfer statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// Octets of the whole file.
    pub size_bytes: u64,
    /// Those that were there already.
    pub resumed_bytes: u64,
    /// Whether hashes were compared.
    pub hashed: bool,
}

pub(super) fn local(error: StorageError, name: &VirtualPath) -> ClientError {
    ClientError::Local(format!("{}: {error}", name.name().unwrap_or("/")))
}

fn transfer(command: String, options: GetOptions) -> Transfer {
    Transfer { command, parameters: Parameters::IMAGE, restart: None, size_bytes: None, via: options.via }
}

/// The size of a file there, where the server tells it.
async fn remote_size<N: Network, C: Clock + Clone + 'static>(
    connection: &mut Connection<N, C>,
    remote: &str,
) -> Result<Option<u64>, ClientError> {
    connection.set_image().await?;
    match connection.command(format!("SIZE {remote}")).await {
        Ok(reply) => Ok(reply.last().trim().parse().ok()),
        Err(ClientError::Refused(..)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// When a file there was changed, where the server tells it.
async fn remote_time<N: Network, C: Clock + Clone + 'static>(
    connection: &mut Connection<N, C>,
    remote: &str,
) -> Result<Option<UnixTime>, ClientError> {
    if !connection.features().has("MDTM") {
        return Ok(None);
    }
    match connection.command(format!("MDTM {remote}")).await {
        Ok(reply) => Ok(parse_time(reply.last().trim())),
        Err(ClientError::Refused(..)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The hash of a file there, where the server offers one that we know.
async fn remote_hash<N: Network, C: Clock + Clone + 'static>(
    connection: &mut Connection<N, C>,
    remote: &str,
) -> Result<Option<(Digest, String)>, ClientError> {
    let Some(offered) = connection.features().argument("HASH").map(str::to_owned) else { return Ok(None) };
    let known = |digest: &Digest| offered.split(';').any(|name| name.trim_end_matches('*') == digest.name());
    let Some(digest) = Digest::ALL.into_iter().find(known) else { return Ok(None) };
    if !offered.split(';').any(|name| name.strip_suffix('*') == Some(digest.name())) {
        connection.command(format!("OPTS HASH {}", digest.name())).await?;
    }
    match connection.command(format!("HASH {remote}")).await {
        Ok(reply) => {
            let hash = reply.last().split_ascii_whitespace().nth(2).unwrap_or_default();
            Ok(Some((digest, hash.to_ascii_lowercase())))
        }
        Err(ClientError::Refused(..)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the hash there is that of `source`; false when the server tells none.
async fn verified<N: Network, C: Clock + Clone + 'static>(
    connection: &mut Connection<N, C>,
    remote: &str,
    source: &dyn Source,
) -> Result<bool, ClientError> {
    let Some((digest, theirs)) = remote_hash(connection, remote).await? else { return Ok(false) };
    let (ours, _) = hash(source, digest).await.map_err(|error| ClientError::Local(error.to_string()))?;
    match ours == theirs {
        true => Ok(true),
        false => Err(ClientError::Verify(format!(
            "{} of {remote} is {theirs} there and {ours} here",
            digest.name()
        ))),
    }
}

/// Fetches `remote` to `name` in `folder`. A file that was resumed and turns out to be another one is fetched anew.
pub async fn get<N: Network, C: Clock + Clone + 'static>(
    connection: &mut Connection<N, C>,
    remote: &str,
    folder: &Folder,
    name: &VirtualPath,
    options: GetOptions,
) -> Result<Moved, ClientError> {
    let size = remote_size(connection, remote).await?;
    let time = remote_time(connection, remote).await?;
    let file = Remote { path: remote, size, time };
    match get_known(connection, &file, folder, name, options).await {
        Err(ClientError::Verify(_)) if options.resume => {
            get_known(connection, &file, folder, name, GetOptions { resume: false, ..options }).await
        }
        other => other,
    }
}

/// A file there, with what is known of it.
pub(super) struct Remote<'a> {
    pub(super) path: &'a str,
    pub(super) size: Option<u64>,
    pub(super) time: Option<UnixTime>,
}

pub(super) async fn get_known<N: Network, C: Clock + Clone + 'static>(
    connection: &mut Connection<N, C>,
    remote: &Remote<'_>,
    folder: &Folder,
    name: &VirtualPath,
    options: GetOptions,
) -> Result<Moved, ClientError> {
    let Remote { path, size, time } = *remote;
    let there = match options.resume && size.is_none_or(|size| size > WORTH_RESUMING_BYTES) {
        true => folder.partial_bytes(name).await.unwrap_or(0),
        false => 0,
    };
    // A part longer than the original belongs to another file.
    let start = if size.is_some_and(|size| there <= size) { there } else { 0 };
    let how = if start > 0 { Store::At(start) } else { Store::Replace };
    let storing = folder.store(name, how, 0o022).await.map_err(|error| local(error, name))?;
    let (storing, end) = if start > 0 && size == Some(start) {
        (storing, start)
    } else {
        let request =
            Transfer { restart: (start > 0).then_some(start), ..transfer(format!("RETR {path}"), options) };
        let flowed = connection.transfer(request, Flow::Down(storing)).await;
        let flowed = flowed.map_err(|error| match error {
            ClientError::Local(why) => ClientError::Local(format!("{}: {why}", name.name().unwrap_or("/"))),
            other => other,
        })?;
        flowed.stored.ok_or_else(|| ClientError::Data("nothing came".into()))?
    };
    if let Some(size) = size.filter(|&size| size != end) {
        return Err(ClientError::Verify(format!("{path} has {size} bytes there and {end} came")));
    }
    let hashed = options.hash && verified(connection, path, &*storing.sink.read_back()).await?;
    storing.sink.commit(end).await.map_err(|error| local(error, name))?;
    if let Some(time) = time {
        folder.set_modified(name, time).await.map_err(|error| local(error, name))?;
    }
    Ok(Moved { size_bytes: end, resumed_bytes: start, hashed })
}

/// Sends `name` of `folder` to `remote`.
pub async fn put<N: Network, C: Clock + Clone + 'static>(
    connection: &mut Connection<N, C>,
    folder: &Folder,
    name: &VirtualPath,
    remote: &str,
    options: GetOptions,
) -> Result<Moved, ClientError> {
    match put_once(connection, folder, name, remote, options).await {
        Err(ClientError::Verify(_)) if options.resume => {
            put_once(connection, folder, name, remote, GetOptions { resume: false, ..options }).await
        }
        other => other,
    }
}

async fn put_once<N: Network, C: Clock + Clone + 'static>(
    connection: &mut Connection<N, C>,
    folder: &Folder,
    name: &VirtualPath,
    remote: &str,
    options: GetOptions,
) -> Result<Moved, ClientError> {
    let source = folder.retrieve(name).await.map_err(|error| local(error, name))?;
    let size = source.size_bytes();
    let beside = beside(remote, options);
    let there = match options.resume && size > WORTH_RESUMING_BYTES {
        true => remote_size(connection, &beside).await?.unwrap_or(0),
        false => 0,
    };
    let start = if there <= size { there } else { 0 };
    if start == 0 || start < size {
        let request = Transfer {
            restart: (start > 0).then_some(start),
            size_bytes: Some(size - start),
            ..transfer(format!("STOR {beside}"), options)
        };
        connection.transfer(request, Flow::Up(source, start)).await?;
    }
    let mut hashed = false;
    if options.hash && connection.features().has("HASH") {
        let source = folder.retrieve(name).await.map_err(|error| local(error, name))?;
        hashed = verified(connection, &beside, &*source).await?;
    }
    // The same hash is of the same size; a size unknown to the server was taken from its 226 reply.
    if !hashed && let Some(stored) = remote_size(connection, &beside).await?.filter(|&stored| stored != size)
    {
        return Err(ClientError::Verify(format!("{remote} has {size} bytes here and {stored} there")));
    }
    if let Some(time) = folder.facts(name).await.ok().and_then(|facts| facts.modified)
        && connection.features().has("MFMT")
    {
        // The time is not a part of the file; a server may refuse it.
        let _ = connection.command(format!("MFMT {} {beside}", time_text(time))).await;
    }
    if beside != remote {
        rename(connection, &beside, remote).await?;
    }
    Ok(Moved { size_bytes: size, resumed_bytes: start, hashed })
}

/// The name under which a file is sent to a server: beside the one that it will have, where file systems take that.
fn beside(remote: &str, options: GetOptions) -> String {
    let name = remote.rsplit('/').next().unwrap_or(remote);
    match !options.in_place && fits_name(&format!("{name}{PART}")) {
        true => format!("{remote}{PART}"),
        false => remote.to_owned(),
    }
}

async fn rename<N: Network, C: Clock + Clone + 'static>(
    connection: &mut Connection<N, C>,
    from: &str,
    to: &str,
) -> Result<(), ClientError> {
    connection.command(format!("RNFR {from}")).await?;
    if let Err(ClientError::Refused(..)) = connection.command(format!("RNTO {to}")).await {
        // Some servers rename to no name that there is.
        connection.command(format!("DELE {to}")).await?;
        connection.command(format!("RNFR {from}")).await?;
        connection.command(format!("RNTO {to}")).await?;
    }
    Ok(())
}

/// A remote directory's contents.
pub async fn list<N: Network, C: Clock + Clone + 'static>(
    connection: &mut Connection<N, C>,
    directory: &str,
    via: DataVia,
) -> Result<Vec<Listed>, ClientError> {
    Ok(look(connection, directory, via).await?.listed)
}

/// Lists a directory there.
pub(super) async fn look<N: Network, C: Clock + Clone + 'static>(
    connection: &mut Connection<N, C>,
    directory: &str,
    via: DataVia,
) -> Result<Listing, ClientError> {
    let facts = connection.features().has("MLST");
    let verb = if facts { "MLSD" } else { "LIST" };
    let command = format!("{verb} {directory}").trim_end().to_owned();
    let request =
        Transfer { command, parameters: Parameters::default(), restart: None, size_bytes: None, via };
    let text = connection.transfer(request, Flow::Text).await?.text;
    Ok(parse_listing(&text, facts))
}

/// Moves a file between two servers, neither of which is here; one of them has to allow it.
pub async fn copy<N: Network, C: Clock + Clone + 'static>(
    from: &mut Connection<N, C>,
    source: &str,
    to: &mut Connection<N, C>,
    target: &str,
    options: GetOptions,
) -> Result<Moved, ClientError> {
    let size = remote_size(from, source).await?;
    let beside = beside(target, options);
    let parameters = Parameters::IMAGE;
    // The passive server listens and the other connects; if that fails, the roles are exchanged.
    match offered(to.perform(Operation::Offer(parameters)).await) {
        Ok(at) if called(from, at).await.is_ok() => {}
        _ => {
            let at = offered(from.perform(Operation::Offer(parameters)).await)?;
            to.perform(Operation::Call(parameters, at)).await?;
        }
    }
    // Each may wait for the other before it says 150.
    let (storing, sending) = both(
        to.perform(Operation::Begin(format!("STOR {beside}"))),
        from.perform(Operation::Begin(format!("RETR {source}"))),
    )
    .await;
    storing?;
    sending?;
    let (stored, sent) = both(to.perform(Operation::Finish), from.perform(Operation::Finish)).await;
    sent?;
    stored?;
    let arrived = remote_size(to, &beside).await?;
    if let (Some(size), Some(arrived)) = (size, arrived)
        && size != arrived
    {
        return Err(ClientError::Verify(format!("{source} has {size} bytes, and {arrived} arrived")));
    }
    let mut hashed = false;
    if options.hash
        && let (Some((one, here)), Some((other, there))) =
            (remote_hash(from, source).await?, remote_hash(to, &beside).await?)
        && one == other
    {
        if here != there {
            return Err(ClientError::Verify(format!(
                "{source} is {here} there and {there} where it arrived"
            )));
        }
        hashed = true;
    }
    if beside != target {
        rename(to, &beside, target).await?;
    }
    Ok(Moved { size_bytes: size.or(arrived).unwrap_or(0), resumed_bytes: 0, hashed })
}

fn offered(answer: Result<Answer, ClientError>) -> Result<inhost_base::Endpoint, ClientError> {
    match answer? {
        Answer::Offered(at) => Ok(at),
        Answer::Reply(reply) => Err(ClientError::Protocol(format!("no address in {reply}"))),
    }
}

async fn called<N: Network, C: Clock + Clone + 'static>(
    connection: &mut Connection<N, C>,
    at: inhost_base::Endpoint,
) -> Result<(), ClientError> {
    connection.perform(Operation::Call(Parameters::IMAGE, at)).await.map(|_| ())
}
