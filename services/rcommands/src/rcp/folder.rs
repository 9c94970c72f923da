//! The target folder of a copy. Names from the other end cannot lead out of it, and a file gets its name only once it is
//! complete.

use super::Times;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use std::ffi::{OsStr, OsString};
use std::fs::FileTimes;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The target folder of a copy.
#[derive(Debug)]
pub struct Folder {
    root: Dir,
    /// The name that the one thing fetched is to have, where the target is not a folder yet.
    rename: Option<OsString>,
    /// Folders entered.
    within: Vec<Entered>,
    part: Option<Part>,
    preserve: bool,
}

#[derive(Debug)]
struct Entered {
    folder: Dir,
    mode: u32,
    times: Option<Times>,
}

/// A file that is being written under a temporary name.
#[derive(Debug)]
struct Part {
    file: File,
    name: OsString,
    part_name: OsString,
    mode: u32,
    times: Option<Times>,
}

impl Folder {
    /// For a target: a folder that is there, or the name that the one thing fetched is to have.
    pub fn open(target: &Path, must_be_folder: bool, preserve: bool) -> io::Result<Folder> {
        let folder = |root, rename| Folder { root, rename, within: Vec::new(), part: None, preserve };
        if target.is_dir() {
            return Ok(folder(Dir::open_ambient_dir(target, ambient_authority())?, None));
        }
        let name = target.file_name().filter(|_| !must_be_folder).ok_or(io::ErrorKind::NotADirectory)?;
        let parent = match target.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => Path::new("."),
        };
        Ok(folder(Dir::open_ambient_dir(parent, ambient_authority())?, Some(name.to_owned())))
    }
    fn here(&self) -> &Dir {
        self.within.last().map_or(&self.root, |entered| &entered.folder)
    }
    /// The name that something has here.
    fn named(&mut self, name: &[u8]) -> io::Result<OsString> {
        let sent = OsStr::from_bytes(name).to_owned();
        if !self.within.is_empty() {
            return Ok(sent);
        }
        match &mut self.rename {
            None => Ok(sent),
            // Taken once: a second thing would replace the first.
            Some(name) if name.is_empty() => {
                Err(io::Error::other("several things were sent, and the target is one name"))
            }
            Some(name) => Ok(core::mem::take(name)),
        }
    }
    /// A folder begins; it is made if it is not there.
    pub fn enter(&mut self, name: &[u8], mode: u32, times: Option<Times>) -> io::Result<()> {
        let name = self.named(name)?;
        match self.here().create_dir(&name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let folder = self.here().open_dir(&name)?;
        self.within.push(Entered { folder, mode, times });
        Ok(())
    }
    /// It ends. Its times are set now that nothing more is written in it.
    pub fn leave(&mut self) -> io::Result<()> {
        let Some(Entered { folder, mode, times }) = self.within.pop() else { return Ok(()) };
        if self.preserve {
            // The handle that leads to what is inside cannot be asked for this.
            let own = folder.open(".")?;
            own.set_permissions(Permissions::from_mode(mode))?;
            if let Some(times) = times {
                own.into_std().set_times(file_times(times))?;
            }
        }
        Ok(())
    }
    /// A file begins.
    pub fn begin(&mut self, name: &[u8], mode: u32, times: Option<Times>) -> io::Result<()> {
        self.abandon();
        let name = self.named(name)?;
        match self.here().symlink_metadata(&name) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if !there.is_file() && !there.is_symlink() => {
                return Err(io::Error::other("something that is not a file bears that name"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut random = [0; 6];
        getrandom::fill(&mut random).map_err(|_| io::Error::other("the system has no entropy"))?;
        let mut part_name = OsString::from(".rcp-");
        part_name.push(random.iter().map(|octet| format!("{octet:02x}")).collect::<String>());
        let mut options = OpenOptions::new();
        // The owner can write it, whatever it is to be in the end; the umask of who fetches it counts.
        options.write(true).create_new(true).mode(mode | 0o200);
        let file = self.here().open_with(&part_name, &options)?;
        self.part = Some(Part { file, name, part_name, mode, times });
        Ok(())
    }
    /// Some of it.
    pub fn write(&mut self, data: &[u8]) -> io::Result<()> {
        match &mut self.part {
            Some(part) => part.file.write_all(data),
            None => Ok(()),
        }
    }
    /// It is whole, and gets its name.
    pub fn finish(&mut self) -> io::Result<()> {
        let Some(part) = self.part.take() else { return Ok(()) };
        let done = self.settle(&part);
        if done.is_err() {
            let _ = self.here().remove_file(&part.part_name);
        }
        done
    }
    fn settle(&self, part: &Part) -> io::Result<()> {
        if self.preserve {
            part.file.set_permissions(Permissions::from_mode(part.mode))?;
        } else if part.mode & 0o200 == 0 {
            let mode = part.file.metadata()?.permissions().mode();
            part.file.set_permissions(Permissions::from_mode(mode & !0o200))?;
        }
        if let Some(times) = part.times {
            part.file.try_clone()?.into_std().set_times(file_times(times))?;
        }
        self.here().rename(&part.part_name, self.here(), &part.name)
    }
    /// It will not be whole, and leaves nothing behind.
    pub fn abandon(&mut self) {
        if let Some(part) = self.part.take() {
            let _ = self.here().remove_file(&part.part_name);
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.abandon();
    }
}

fn file_times(times: Times) -> FileTimes {
    // Beyond what a clock can say, it is not set.
    let at = |seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    let mut set = FileTimes::new();
    if let Some(modified) = at(times.modified_seconds) {
        set = set.set_modified(modified);
    }
    if let Some(accessed) = at(times.accessed_seconds) {
        set = set.set_accessed(accessed);
    }
    set
}
