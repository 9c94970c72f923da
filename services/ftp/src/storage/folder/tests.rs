use super::*;
use crate::storage::Sink;
use futures_lite::future::block_on;

struct Root(std::path::PathBuf, Folder);

impl Root {
    fn new(name: &str) -> Root {
        let path = std::env::temp_dir().join(format!("inhost-folder-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("root/sub")).unwrap();
        std::fs::write(path.join("secret"), "outside").unwrap();
        std::fs::write(path.join("root/file"), "inside").unwrap();
        std::os::unix::fs::symlink("../secret", path.join("root/relative")).unwrap();
        std::os::unix::fs::symlink(path.join("secret"), path.join("root/absolute")).unwrap();
        std::os::unix::fs::symlink("..", path.join("root/up")).unwrap();
        std::os::unix::fs::symlink("file", path.join("root/link")).unwrap();
        let folder = Folder::open(&path.join("root")).unwrap();
        Root(path, folder)
    }
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.0.join("root").join(name)).ok()
    }
    fn names(&self) -> Vec<String> {
        let mut listing = block_on(self.1.list(&VirtualPath::root())).unwrap();
        let mut names = Vec::new();
        loop {
            let (rest, batch) = block_on(listing.next());
            let batch = batch.unwrap();
            if batch.is_empty() {
                names.sort();
                return names;
            }
            names.extend(batch.into_iter().map(|(name, _)| name));
            listing = rest;
        }
    }
}
impl Drop for Root {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn path(text: &str) -> VirtualPath {
    VirtualPath::root().join(text)
}

fn store(folder: &Folder, name: &str, how: Store, bytes: &[u8]) -> Outcome<(Box<dyn Sink>, u64)> {
    let storing = block_on(folder.store(&path(name), how, 0o022))?;
    let (_, written) = block_on(storing.sink.write_at(storing.position, bytes.to_vec()));
    written?;
    Ok((storing.sink, storing.position + bytes.len() as u64))
}

fn whole(folder: &Folder, name: &str, how: Store, bytes: &[u8]) -> Outcome<()> {
    let (sink, size) = store(folder, name, how, bytes)?;
    block_on(sink.commit(size))
}

#[test]
fn no_link_leads_out() {
    let root = Root::new("links");
    let folder = &root.1;
    for outside in ["relative", "absolute", "up/secret", "up/root/file"] {
        assert!(block_on(folder.retrieve(&path(outside))).is_err(), "{outside}");
        assert!(block_on(folder.facts(&path(outside))).is_err(), "{outside}");
        assert!(block_on(folder.set_mode(&path(outside), 0o777)).is_err(), "{outside}");
    }
    assert!(store(folder, "up/new", Store::Replace, b"x").is_err());
    assert!(block_on(folder.rename(&path("file"), &path("up/file"))).is_err());
    assert!(block_on(folder.list(&path("up"))).is_err());
    // A link in the place of a file is replaced, and not written through.
    whole(folder, "relative2", Store::Replace, b"x").unwrap();
    assert_eq!(std::fs::read(root.0.join("secret")).unwrap(), b"outside");
    let source = block_on(folder.retrieve(&path("link"))).unwrap();
    let (buffer, count) = block_on(source.read_at(2, vec![0; 64]));
    assert_eq!((&buffer[..count.unwrap()], source.size_bytes()), (&b"side"[..], 6));
}

#[test]
fn a_file_has_its_name_when_it_is_whole() {
    let root = Root::new("whole");
    let folder = &root.1;
    let (half, _) = store(folder, "new", Store::Replace, b"half of").unwrap();
    assert_eq!((root.read("new"), root.names().contains(&"new".into())), (None, false));
    assert_eq!(block_on(folder.store(&path("new"), Store::Replace, 0)).err(), Some(StorageError::Busy));
    drop(half);
    assert_eq!(block_on(folder.size(&path("new"))), Ok(7));
    assert_eq!(block_on(folder.store(&path("new"), Store::At(8), 0)).err(), Some(StorageError::Position));
    whole(folder, "new", Store::At(7), b" it").unwrap();
    assert_eq!(root.read("new").unwrap(), b"half of it");
    // An upload that began anew keeps nothing of the old one, and one into a file leaves the rest of it behind.
    whole(folder, "new", Store::At(4), b"!").unwrap();
    assert_eq!(root.read("new").unwrap(), b"half!");
    whole(folder, "new", Store::Append, b"?").unwrap();
    assert_eq!(root.read("new").unwrap(), b"half!?");
    whole(folder, "new", Store::Unique, b"another").unwrap();
    assert_eq!((root.read("new.1").unwrap(), root.read("new").unwrap().len()), (b"another".to_vec(), 6));
    // What had nothing in it leaves nothing.
    drop(block_on(folder.store(&path("empty"), Store::Replace, 0)).unwrap());
    assert!(root.read(".empty.inhost-part").is_none());
    assert_eq!(block_on(folder.remove(&path(".x.inhost-part"))), Err(StorageError::Name));
}

#[test]
fn a_quota_holds() {
    let root = Root::new("quota");
    let quota = Quota::new(100);
    let folder = root.1.clone().with_quota(quota.clone());
    // 6 octets are there, and the links' own.
    assert!(whole(&folder, "a", Store::Replace, &[0; 200]).is_err());
    whole(&folder, "a", Store::Replace, &[0; 40]).unwrap();
    let used = quota.used_bytes();
    assert_eq!(store(&folder, "b", Store::Replace, &[0; 60]).err(), Some(StorageError::Quota));
    block_on(folder.remove(&path("a"))).unwrap();
    assert_eq!(quota.used_bytes(), used - 40);
}

#[test]
fn directories_and_times() {
    let root = Root::new("times");
    let folder = &root.1;
    block_on(folder.make_directory(&path("sub/deep"), 0o077)).unwrap();
    assert_eq!(block_on(folder.facts(&path("sub/deep"))).unwrap().mode.map(|m| m & 0o7777), Some(0o700));
    assert_eq!(block_on(folder.remove_directory(&path("sub"))), Err(StorageError::NotEmpty));
    assert_eq!(block_on(folder.remove(&path("sub"))), Err(StorageError::IsDirectory));
    for name in ["file", "sub"] {
        let time = UnixTime { seconds: 1_000_000_000, nanoseconds: 0 };
        block_on(folder.set_modified(&path(name), time)).unwrap();
        assert_eq!(block_on(folder.facts(&path(name))).unwrap().modified, Some(time));
    }
    block_on(folder.set_mode(&path("file"), 0o4755)).unwrap();
    assert_eq!(block_on(folder.facts(&path("file"))).unwrap().mode.map(|m| m & 0o7777), Some(0o755));
    block_on(folder.rename(&path("file"), &path("sub/renamed"))).unwrap();
    assert_eq!(root.read("sub/renamed").unwrap(), b"inside");
    assert_eq!(block_on(folder.remove_directory(&VirtualPath::root())), Err(StorageError::Name));
}
