//! Operations on names and attributes.

use std::collections::VecDeque;

use inhost_common::Clock;
use inhost_common::storage::name_octets;

use super::{ClientError, Rpc};
use crate::codec::nfs::{
    self, Attributes, CreateArguments, FileType, Handle, How, Information, MakeDirectoryArguments, Name,
    Named, Object, Place, ReadDirArguments, ReadDirPlusArguments, RenameArguments, SetAttributes,
    SetAttributesArguments, Status,
};

/// Symbolic links that are followed in one path.
const LINKS_LIMIT: usize = 16;
/// Names in a path, those of links among them.
const NAMES_LIMIT: usize = 1024;
/// Names of a directory that are listed.
const LIST_LIMIT: usize = 1 << 20;
/// Octets of names and cookies that one reply has.
const NAMES_BYTES: u32 = 8 * 1024;
/// Octets of one reply of names.
const REPLY_BYTES: u32 = 32 * 1024;

/// A file of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteFile {
    /// Its handle.
    pub handle: Handle,
    /// Its attributes.
    pub attributes: Attributes,
}

/// A name in a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The name; it is a stranger's text.
    pub name: Vec<u8>,
    /// Attributes; none if the file went away meanwhile.
    pub attributes: Option<Attributes>,
}

/// An export that is mounted. Paths have slashes, begin at the export, and are text as
/// [`name_octets`] understands it.
pub struct Remote<C> {
    pub(super) rpc: Rpc<C>,
    root: Handle,
    pub(super) information: Information,
}

fn names(path: &[u8]) -> VecDeque<Vec<u8>> {
    let names = path.split(|&octet| octet == b'/').filter(|name| !name.is_empty() && *name != b".");
    names.map(<[u8]>::to_vec).collect()
}

fn refused(procedure: &'static str, status: Status) -> ClientError {
    ClientError::Refused { procedure, status }
}

impl<C: Clock> Remote<C> {
    /// What the [handle](super::mount) of an export leads to. Asks the server what it can do.
    pub async fn open(rpc: Rpc<C>, root: Handle) -> Result<Remote<C>, ClientError> {
        let information = rpc.files::<nfs::FsInfo, _, _>(&Object { handle: root.clone() }).await?;
        Ok(Remote { rpc, root, information })
    }
    /// The calls of the server.
    pub fn rpc(&self) -> &Rpc<C> {
        &self.rpc
    }
    /// Attributes of a file.
    async fn attributes_of(&self, handle: &Handle) -> Result<Attributes, ClientError> {
        let told = self.rpc.files::<nfs::GetAttr, _, _>(&Object { handle: handle.clone() }).await?;
        Ok(told.attributes)
    }
    async fn lookup(&self, directory: &Handle, name: &[u8]) -> Result<RemoteFile, ClientError> {
        let place = Place { directory: directory.clone(), name: Name(name.to_vec()) };
        let found = self.rpc.files::<nfs::Lookup, _, _>(&Named { place }).await?;
        let attributes = match found.attributes {
            Some(attributes) => attributes,
            None => self.attributes_of(&found.object).await?,
        };
        Ok(RemoteFile { handle: found.object, attributes })
    }
    /// The file of a path; attributes are not known of the export itself. Symbolic links are followed, the last one if
    /// `follows_last`.
    async fn walk(
        &self,
        path: &str,
        follows_last: bool,
    ) -> Result<(Handle, Option<Attributes>), ClientError> {
        let mut way = vec![(self.root.clone(), None)];
        let mut left = names(&name_octets(path));
        let (mut links, mut steps) = (0, 0);
        while let Some(name) = left.pop_front() {
            steps += 1;
            if steps > NAMES_LIMIT {
                return Err(ClientError::Links);
            }
            if name == b".." {
                // Above the export is the export.
                way.truncate((way.len() - 1).max(1));
                continue;
            }
            let Some((directory, _)) = way.last() else { return Err(ClientError::Links) };
            let found = self.lookup(directory, &name).await?;
            if found.attributes.kind != FileType::Link || (left.is_empty() && !follows_last) {
                way.push((found.handle, Some(found.attributes)));
                continue;
            }
            links += 1;
            let link = self.rpc.files::<nfs::ReadLink, _, _>(&Object { handle: found.handle }).await?;
            // An absolute one is a path of the server's or of another client's.
            if links > LINKS_LIMIT || link.target.0.starts_with(b"/") {
                return Err(ClientError::Links);
            }
            for name in names(&link.target.0).into_iter().rev() {
                left.push_front(name);
            }
        }
        way.pop().ok_or(ClientError::Links)
    }
    async fn known(&self, path: &str, follows_last: bool) -> Result<RemoteFile, ClientError> {
        let (handle, attributes) = self.walk(path, follows_last).await?;
        let attributes = match attributes {
            Some(attributes) => attributes,
            None => self.attributes_of(&handle).await?,
        };
        Ok(RemoteFile { handle, attributes })
    }
    /// The file of a path; symbolic links are followed.
    pub async fn file(&self, path: &str) -> Result<RemoteFile, ClientError> {
        self.known(path, true).await
    }
    /// The file of a path; a symbolic link at its end is not followed.
    pub async fn file_or_link(&self, path: &str) -> Result<RemoteFile, ClientError> {
        self.known(path, false).await
    }
    /// The directory of a path and the last name in it.
    async fn place(&self, path: &str) -> Result<Place, ClientError> {
        let path = path.trim_end_matches('/');
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name.is_empty() || name == "." || name == ".." {
            return Err(refused("Lookup", Status::INVAL));
        }
        let (directory, _) = self.walk(above, true).await?;
        Ok(Place { directory, name: Name(name_octets(name).into_owned()) })
    }
    /// The names of a directory, without `.` and `..`; in no order. Of a file itself.
    pub async fn list(&self, path: &str) -> Result<Vec<Listed>, ClientError> {
        let file = self.file(path).await?;
        if file.attributes.kind != FileType::Directory {
            let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            let name = name_octets(name).into_owned();
            return Ok(vec![Listed { name, attributes: Some(file.attributes) }]);
        }
        match self.list_with_attributes(&file.handle).await {
            Err(ClientError::Refused { status: Status::NOTSUPP, .. }) => self.list_names(&file.handle).await,
            other => other,
        }
    }
    async fn list_with_attributes(&self, directory: &Handle) -> Result<Vec<Listed>, ClientError> {
        let (mut list, mut cookie, mut verifier) = (Vec::new(), 0, [0; 8]);
        loop {
            let asked = ReadDirPlusArguments {
                directory: directory.clone(),
                cookie,
                verifier,
                names_bytes: NAMES_BYTES,
                count: REPLY_BYTES,
            };
            let told = self.rpc.files::<nfs::ReadDirPlus, _, _>(&asked).await?;
            verifier = told.verifier;
            let is_end = told.is_end;
            let last = told.entries.last().map(|last| last.entry.cookie);
            let entries = told.entries.into_iter().map(|plus| (plus.entry.name.0, plus.attributes));
            keep(&mut list, entries)?;
            match last {
                _ if is_end => return Ok(list),
                Some(last) if last != cookie => cookie = last,
                _ => return Err(ClientError::Nonsense("a directory without end")),
            }
        }
    }
    /// The same of a server that tells names alone.
    async fn list_names(&self, directory: &Handle) -> Result<Vec<Listed>, ClientError> {
        let (mut list, mut cookie, mut verifier) = (Vec::new(), 0, [0; 8]);
        loop {
            let asked =
                ReadDirArguments { directory: directory.clone(), cookie, verifier, count: NAMES_BYTES };
            let told = self.rpc.files::<nfs::ReadDir, _, _>(&asked).await?;
            verifier = told.verifier;
            let last = told.entries.last().map(|last| last.cookie);
            keep(&mut list, told.entries.into_iter().map(|entry| (entry.name.0, None)))?;
            match last {
                _ if told.is_end => break,
                Some(last) if last != cookie => cookie = last,
                _ => return Err(ClientError::Nonsense("a directory without end")),
            }
        }
        for listed in &mut list {
            listed.attributes = self.lookup(directory, &listed.name).await.ok().map(|file| file.attributes);
        }
        Ok(list)
    }
    /// Makes a directory.
    pub async fn make_directory(&self, path: &str, mode: u32) -> Result<(), ClientError> {
        let attributes = SetAttributes { mode: Some(mode), ..SetAttributes::default() };
        let asked = MakeDirectoryArguments { place: self.place(path).await?, attributes };
        self.rpc.files::<nfs::Mkdir, _, _>(&asked).await.map(drop)
    }
    /// Removes a file or a link.
    pub async fn remove(&self, path: &str) -> Result<(), ClientError> {
        let place = self.place(path).await?;
        self.rpc.files::<nfs::Remove, _, _>(&Named { place }).await.map(drop)
    }
    /// Removes an empty directory.
    pub async fn remove_directory(&self, path: &str) -> Result<(), ClientError> {
        let place = self.place(path).await?;
        self.rpc.files::<nfs::Rmdir, _, _>(&Named { place }).await.map(drop)
    }
    /// Gives another name, in the place of a file that has it.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), ClientError> {
        let asked = RenameArguments { from: self.place(from).await?, to: self.place(to).await? };
        self.rpc.files::<nfs::Rename, _, _>(&asked).await.map(drop)
    }
    /// Sets attributes of a file; symbolic links are followed.
    pub async fn set_attributes(&self, path: &str, attributes: SetAttributes) -> Result<(), ClientError> {
        let object = self.file(path).await?.handle;
        let asked = SetAttributesArguments { object, attributes, guard: None };
        self.rpc.files::<nfs::SetAttr, _, _>(&asked).await.map(drop)
    }
    /// An empty file with this name; one that is there is emptied.
    pub(super) async fn create(&self, path: &str, mode: u32) -> Result<Handle, ClientError> {
        let place = self.place(path).await?;
        let set = SetAttributes { mode: Some(mode), size_bytes: Some(0), ..SetAttributes::default() };
        let asked = CreateArguments { place: place.clone(), how: How::Unchecked(set) };
        let made = self.rpc.files::<nfs::Create, _, _>(&asked).await?;
        match made.object {
            Some(handle) => Ok(handle),
            None => Ok(self.lookup(&place.directory, &place.name.0).await?.handle),
        }
    }
}

/// Adds entries to a list that has a limit.
fn keep(
    list: &mut Vec<Listed>,
    entries: impl Iterator<Item = (Vec<u8>, Option<Attributes>)>,
) -> Result<(), ClientError> {
    let entries = entries.filter(|(name, _)| !matches!(name.as_slice(), b"." | b".." | b""));
    list.extend(entries.map(|(name, attributes)| Listed { name, attributes }));
    if list.len() > LIST_LIMIT { Err(ClientError::Nonsense("a directory without end")) } else { Ok(()) }
}
