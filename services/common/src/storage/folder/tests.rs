use super::*;
use crate::storage::{Quotas, Sink};
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
        names(&self.1)
    }
}

fn names(folder: &Folder) -> Vec<String> {
    let mut listing = block_on(folder.list(&VirtualPath::root())).unwrap();
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
impl Drop for Root {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn path(text: &str) -> VirtualPath {
    VirtualPath::root().join(text)
}

fn store(folder: &Folder, name: &str, how: Store, bytes: &[u8]) -> StorageResult<(Box<dyn Sink>, u64)> {
    let storing = block_on(folder.store(&path(name), how, 0o022))?;
    let (_, written) = block_on(storing.sink.write_at(storing.position, bytes.to_vec()));
    written?;
    Ok((storing.sink, storing.position + bytes.len() as u64))
}

fn whole(folder: &Folder, name: &str, how: Store, bytes: &[u8]) -> StorageResult<()> {
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
    for how in [Store::Replace, Store::Append] {
        let refused = block_on(folder.store(&path(".x.inhost-part"), how, 0)).err();
        assert_eq!(refused, Some(StorageError::Unfinished));
    }
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

/// A way that might get around a quota.
type Attempt = fn(&Folder);

/// What each of these leaves used is what is there, and what is there is within the quota.
#[test]
fn no_command_gets_around_a_quota() {
    let quotas = Quotas::default();
    let cases: [(&str, Attempt); 9] = [
        ("REST to the end and an empty STOR", |folder| {
            for _ in 0..3 {
                let at = block_on(folder.size(&path("file"))).unwrap();
                let _ = whole(folder, "file", Store::At(at), b"");
            }
        }),
        ("a rename to itself", |folder| {
            for _ in 0..3 {
                let _ = block_on(folder.rename(&path("file"), &path("file")));
            }
        }),
        ("a rename over an empty folder", |folder| {
            for name in ["one", "two"] {
                block_on(folder.make_directory(&path(name), 0)).unwrap();
            }
            let _ = block_on(folder.rename(&path("one"), &path("two")));
        }),
        ("a rename over a file", |folder| {
            whole(folder, "other", Store::Replace, &[0; 20]).unwrap();
            let _ = block_on(folder.rename(&path("other"), &path("file")));
        }),
        ("an upload in pieces that is broken off each time", |folder| {
            for _ in 0..9 {
                drop(store(folder, "part", Store::Append, &[0; 30]));
            }
        }),
        ("the same begun anew", |folder| {
            for _ in 0..9 {
                drop(store(folder, "part", Store::Replace, &[0; 30]));
            }
        }),
        ("removing what is added to", |folder| {
            for _ in 0..9 {
                let adding = store(folder, "file", Store::Append, &[0; 20]);
                let _ = block_on(folder.remove(&path("file")));
                let _ = whole(folder, "file", Store::Replace, &[0; 20]);
                let _ = block_on(folder.rename(&path("sub"), &path("file")));
                drop(adding);
            }
        }),
        ("names that nobody has", |folder| {
            for _ in 0..9 {
                let _ = whole(folder, "unique", Store::Unique, &[0; 30]);
            }
        }),
        ("a restart beyond the end, and what could not be written", |folder| {
            assert!(block_on(folder.store(&path("new"), Store::At(9), 0)).is_err());
            assert!(whole(folder, "new", Store::Replace, &[0; 200]).is_err());
        }),
    ];
    for (name, work) in cases {
        let root = Root::new("around");
        let folder = root.1.clone().limited(&quotas, 100).unwrap();
        let quota = folder.quota.clone().unwrap();
        std::fs::write(root.0.join("root/file"), [0; 40]).unwrap();
        folder.count().unwrap();
        work(&folder);
        let there = used_bytes(&root.1.root, COUNT_DEPTH).unwrap();
        assert_eq!((quota.used_bytes(), there <= 100), (there, true), "{name}");
        assert!(!root.0.join("root/.new.inhost-part").exists(), "{name}");
    }
}

/// Sessions before and after a reload, and users with one root, have one count; it is made anew once all have left.
#[test]
fn a_quota_is_the_folders() {
    let (root, quotas) = (Root::new("shared"), Quotas::default());
    std::fs::remove_file(root.0.join("root/file")).unwrap();
    let before = root.1.clone().limited(&quotas, 100).unwrap();
    whole(&before, "a", Store::Replace, &[0; 60]).unwrap();
    let again = Folder::open(&root.0.join("root")).unwrap();
    let after = again.clone().limited(&quotas, 100).unwrap();
    whole(&after, "b", Store::Replace, &[0; 30]).unwrap();
    assert_eq!(whole(&before, "c", Store::Replace, &[0; 30]), Err(StorageError::Quota));
    block_on(after.remove(&path("a"))).unwrap();
    whole(&before, "c", Store::Replace, &[0; 60]).unwrap();
    drop((before, after));
    // What others put there while nobody was logged in counts as well.
    std::fs::write(root.0.join("root/d"), [0; 9]).unwrap();
    let later = again.clone().limited(&quotas, 100).unwrap();
    assert_eq!(whole(&later, "e", Store::Replace, &[0; 2]), Err(StorageError::Quota));
    whole(&later, "e", Store::Replace, &[0; 1]).unwrap();
}

/// A folder that cannot be counted hides nothing.
#[test]
fn what_is_too_deep_to_count_is_not_free() {
    let root = Root::new("deep");
    let deep = vec!["d"; COUNT_DEPTH + 1].join("/");
    std::fs::create_dir_all(root.0.join("root").join(&deep)).unwrap();
    let folder = root.1.clone().with_quota(Quota::new(100));
    assert!(matches!(whole(&folder, "x", Store::Replace, b"x"), Err(StorageError::Other(_))));
    std::fs::remove_dir(root.0.join("root").join(&deep)).unwrap();
    whole(&folder, "x", Store::Replace, b"x").unwrap();
}

#[test]
fn directories_and_times() {
    let root = Root::new("times");
    let folder = &root.1;
    block_on(folder.make_directory(&path("sub/deep"), 0o077)).unwrap();
    assert_eq!(block_on(folder.facts(&path("sub/deep"))).unwrap().mode.map(|m| m & 0o7777), Some(0o700));
    assert_eq!(block_on(folder.remove_directory(&path("sub"))), Err(not_empty(&["deep"], false)));
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

fn not_empty(names: &[&str], has_more: bool) -> StorageError {
    StorageError::NotEmpty(Contents { names: names.iter().map(|&name| name.into()).collect(), has_more })
}

/// Who may write sees unfinished uploads, and can delete them and go on with them; who may only read sees none.
#[test]
fn an_unfinished_upload_is_its_owners() {
    let root = Root::new("unfinished");
    let owner = root.1.clone().with_quota(Quota::new(1000));
    let reader = root.1.clone().read_only();
    let unfinished = path(".new.inhost-part");
    let (half, _) = store(&owner, "new", Store::Replace, b"half of").unwrap();
    // It is listed while it is written too, and deleted only once nobody writes.
    assert!(names(&owner).contains(&".new.inhost-part".into()));
    assert_eq!(block_on(owner.remove(&unfinished)), Err(StorageError::Busy));
    drop(half);
    assert_eq!(block_on(owner.facts(&unfinished)).unwrap().size_bytes, 7);
    whole(&owner, "new", Store::At(7), b" it").unwrap();
    assert_eq!(root.read("new").unwrap(), b"half of it");
    // It is deleted by its own name, and by that which the file would have had.
    for name in [".other.inhost-part", "other"] {
        drop(store(&owner, "other", Store::Replace, b"half").unwrap());
        assert_eq!(block_on(owner.size(&path("other"))), Ok(4));
        for hidden in [".other.inhost-part", "other"] {
            assert_eq!(block_on(reader.size(&path(hidden))), Err(StorageError::NotFound), "{hidden}");
        }
        assert!(block_on(reader.facts(&path(".other.inhost-part"))).is_err());
        assert!(block_on(reader.retrieve(&path(".other.inhost-part"))).is_err());
        assert!(!names(&reader).iter().any(|name| is_partial(name)));
        block_on(owner.remove(&path(name))).unwrap();
        assert!(!names(&owner).iter().any(|name| is_partial(name)), "{name}");
    }
    assert_eq!(block_on(owner.remove(&path("other"))), Err(StorageError::NotFound));
    let there = used_bytes(&owner.root, COUNT_DEPTH).unwrap();
    assert_eq!(owner.quota.unwrap().used_bytes(), there, "what was deleted is given back to the quota");
}

#[test]
fn a_folder_that_is_not_empty_says_what_is_in_it() {
    let root = Root::new("contents");
    let folder = &root.1;
    drop(store(folder, "sub/new", Store::Replace, b"half of").unwrap());
    let refused = block_on(folder.remove_directory(&path("sub"))).unwrap_err();
    assert_eq!(refused, not_empty(&[".new.inhost-part"], false));
    let text = "The directory is not empty: .new.inhost-part (an unfinished upload)";
    assert_eq!(refused.to_string(), text);
    for number in 0..3 {
        whole(folder, &format!("sub/{number}"), Store::Replace, b"").unwrap();
    }
    let Err(StorageError::NotEmpty(contents)) = block_on(folder.remove_directory(&path("sub"))) else {
        panic!("it was removed");
    };
    assert_eq!((contents.names.len(), contents.has_more), (3, true));
}

/// The temporary name of a file is no longer than a name may be, and another one for each file.
#[test]
fn a_name_may_be_as_long_as_the_file_system_lets_it() {
    let root = Root::new("long");
    let folder = &root.1;
    for (letter, bytes) in [("n", 242), ("n", 243), ("n", 255), ("é", 254), ("東", 255), ("\u{efff}", 255)]
    {
        let name = letter.repeat(bytes / crate::storage::name_octets(letter).len());
        let half = store(folder, &name, Store::Replace, b"half").unwrap();
        let mut other = name.clone();
        other.pop();
        let another = store(folder, &format!("{other}x"), Store::Replace, b"other").unwrap();
        drop((half, another));
        assert_eq!(block_on(folder.size(&path(&name))), Ok(4), "{letter} {bytes}");
        whole(folder, &name, Store::At(4), b" and half").unwrap();
        assert_eq!(block_on(folder.size(&path(&name))), Ok(13));
        // Another name for the same: one that has a number at its end.
        whole(folder, &name, Store::Unique, b"unique").unwrap();
        assert!(names(folder).iter().any(|name| name.ends_with(".1")), "{letter} {bytes}");
        for name in names(folder).iter().filter(|name| name.starts_with(letter) || is_partial(name)) {
            block_on(folder.remove(&path(name))).unwrap();
        }
    }
    let refused = block_on(folder.store(&path(&"n".repeat(256)), Store::Replace, 0)).err();
    assert_eq!(refused, Some(StorageError::Name));
}

#[test]
fn an_upload_that_nobody_goes_on_with_expires() {
    let root = Root::new("expires");
    let folder = root.1.clone().with_quota(Quota::new(1000));
    let at = |seconds| UnixTime { seconds, nanoseconds: 0 };
    for name in ["old", "sub/old", "open", "young"] {
        drop(store(&folder, name, Store::Replace, b"half").unwrap());
    }
    for name in [".old.inhost-part", "sub/.old.inhost-part", ".open.inhost-part", "file"] {
        block_on(folder.set_modified(&path(name), at(1_000_000))).unwrap();
    }
    let (open, _) = store(&folder, "open", Store::Append, b"").unwrap();
    assert_eq!(block_on(folder.expire(at(1_000_000))), 0, "the last octet came just then");
    assert_eq!(block_on(folder.expire(at(1_000_001))), 2);
    assert_eq!(root.read(".old.inhost-part").or(root.read("sub/.old.inhost-part")), None);
    assert!(root.read("file").is_some(), "a file is not an unfinished upload");
    assert_eq!(folder.quota.as_ref().unwrap().used_bytes(), used_bytes(&folder.root, COUNT_DEPTH).unwrap());
    drop(open);
    assert_eq!(block_on(folder.size(&path("open"))), Ok(4));
    assert_eq!(block_on(folder.size(&path("young"))), Ok(4));
}
