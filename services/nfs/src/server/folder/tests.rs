use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

struct Place(PathBuf);
impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("inhost-nfs-tree-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("root")).unwrap();
        Place(path)
    }
    fn root(&self) -> PathBuf {
        self.0.join("root")
    }
    fn tree(&self) -> FolderTree {
        FolderTree::open(&self.root(), Durability::Later).unwrap()
    }
}
impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn walk(tree: &FolderTree, path: &str) -> TreeResult<Known> {
    path.split('/').try_fold(tree.root()?, |at, name| tree.lookup(&at.key, name.as_bytes()))
}

#[test]
fn a_key_survives_a_restart_a_rename_and_a_move() {
    let place = Place::new("restart");
    std::fs::create_dir_all(place.root().join("a/b/c")).unwrap();
    std::fs::create_dir_all(place.root().join("other")).unwrap();
    std::fs::write(place.root().join("a/b/c/file"), b"here").unwrap();
    let key = walk(&place.tree(), "a/b/c/file").unwrap().key;
    assert_eq!(place.tree().read(&key, 0, 9).unwrap().0, b"here", "after a restart");
    std::fs::rename(place.root().join("a/b"), place.root().join("a/renamed")).unwrap();
    assert_eq!(place.tree().read(&key, 0, 9).unwrap().0, b"here", "a directory was renamed");
    let tree = place.tree();
    assert_eq!(tree.read(&key, 0, 9).unwrap().0, b"here");
    std::fs::rename(place.root().join("a/renamed/c/file"), place.root().join("other/file")).unwrap();
    assert_eq!(tree.attributes(&key).unwrap().size_bytes, 4, "it was moved behind our back");
    assert_eq!(place.tree().attributes(&key).unwrap().size_bytes, 4, "and a restart came");
    std::fs::remove_file(place.root().join("other/file")).unwrap();
    std::fs::write(place.root().join("other/file"), b"new").unwrap();
    assert_eq!(tree.attributes(&key), Err(Status::STALE), "another file with the name is another file");
    assert_eq!(tree.read(&key, 0, 9).unwrap_err(), Status::STALE);
    let new = walk(&tree, "other/file").unwrap();
    for _ in 0..2 {
        assert_eq!(tree.attributes(&key), Err(Status::STALE));
        assert_eq!(tree.attributes(&new.key).unwrap(), new.attributes, "also if it has the same number");
    }
    assert_eq!(place.tree().attributes(&key), Err(Status::STALE));
}

#[test]
fn deep_files_are_found_again() {
    let place = Place::new("deep");
    let path = vec!["d"; 40].join("/");
    std::fs::create_dir_all(place.root().join(&path)).unwrap();
    std::fs::write(place.root().join(&path).join("file"), b"deep").unwrap();
    let known = walk(&place.tree(), &format!("{path}/file")).unwrap();
    assert_eq!(known.key.0.len(), super::super::tree::KEY_BYTES);
    let tree = place.tree();
    assert_eq!(tree.attributes(&known.key).unwrap(), known.attributes);
    let directory = walk(&tree, &path).unwrap();
    let above = place.tree().parent(&directory.key).unwrap();
    assert_eq!(above.attributes.fileid, walk(&tree, &vec!["d"; 39].join("/")).unwrap().attributes.fileid);
    let root = tree.root().unwrap();
    assert_eq!(tree.parent(&root.key).unwrap(), root, "above the root is the root");
    assert_eq!(tree.parent(&walk(&tree, "d").unwrap().key).unwrap().key, root.key);
}

#[test]
fn stale_handles_do_not_occupy_the_server() {
    let place = Place::new("stale");
    std::fs::write(place.root().join("file"), b"here").unwrap();
    let key = walk(&place.tree(), "file").unwrap().key;
    let mut tree = place.tree();
    let searching = tree.searching.lock().unwrap();
    assert_eq!(tree.attributes(&key), Err(Status::JUKEBOX), "another search runs");
    drop(searching);
    // A search that reaches its limit.
    tree.names_limit = 0;
    assert_eq!(tree.attributes(&key), Err(Status::STALE));
    tree.names_limit = search::NAMES_LIMIT;
    let searching = tree.searching.lock().unwrap();
    assert_eq!(tree.attributes(&key), Err(Status::STALE), "and is not repeated, nor waited for");
    drop(searching);
    for _ in 1..places::GIVEN_UP_CALLS {
        assert_eq!(tree.attributes(&key), Err(Status::STALE));
    }
    assert_eq!(tree.attributes(&key).unwrap().size_bytes, 4, "until many calls later");
    let mut tree = place.tree();
    tree.names_limit = 0;
    assert_eq!(tree.attributes(&key), Err(Status::STALE));
    walk(&tree, "file").unwrap();
    assert_eq!(tree.attributes(&key).unwrap().size_bytes, 4, "or until its name is looked up");
}

#[test]
fn nothing_leads_out() {
    let place = Place::new("out");
    std::fs::write(place.0.join("secret"), b"secret").unwrap();
    symlink("../secret", place.root().join("link")).unwrap();
    symlink("..", place.root().join("up")).unwrap();
    std::fs::create_dir(place.root().join("sub")).unwrap();
    let tree = place.tree();
    let root = tree.root().unwrap().key;
    for name in [&b".."[..], b".", b"", b"../secret", b"sub/..", b"/etc/passwd", b"a\0b"] {
        assert_eq!(tree.lookup(&root, name).unwrap_err(), Status::INVAL, "{name:?}");
        assert_eq!(tree.remove(&root, name, false), Err(Status::INVAL));
        assert!(tree.make(&root, name, Make::File, 0o644, (0, 0)).is_err());
    }
    assert_eq!(tree.lookup(&root, &[b'x'; 256]).unwrap_err(), Status::NAMETOOLONG);
    let link = tree.lookup(&root, b"link").unwrap();
    assert_eq!(
        (link.attributes.kind, tree.read_link(&link.key).unwrap()),
        (FileType::Link, b"../secret".into())
    );
    assert_eq!(tree.read(&link.key, 0, 9).unwrap_err(), Status::INVAL);
    assert_eq!(tree.write(&link.key, 0, b"x", Stable::File), Err(Status::INVAL));
    let up = tree.lookup(&root, b"up").unwrap().key;
    assert_eq!(tree.lookup(&up, b"secret").unwrap_err(), Status::NOTDIR);
    assert_eq!(tree.entries(&up, 0, 100), Err(Status::NOTDIR));
    let set = SetAttributes { mode: Some(0o777), ..SetAttributes::default() };
    assert_eq!(tree.set_attributes(&link.key, &set), Err(Status::INVAL));
    // A directory that is a link all of a sudden.
    let sub = tree.lookup(&root, b"sub").unwrap().key;
    std::fs::remove_dir(place.root().join("sub")).unwrap();
    symlink("..", place.root().join("sub")).unwrap();
    assert_eq!(tree.lookup(&sub, b"secret").unwrap_err(), Status::STALE);
    assert_eq!(std::fs::read(place.0.join("secret")).unwrap(), b"secret");
}

#[test]
fn files_are_made_written_and_removed() {
    let place = Place::new("made");
    let tree = FolderTree::open(&place.root(), Durability::Answered).unwrap();
    let (root, owner) = (tree.root().unwrap().key, tree.owner());
    let file = tree.make(&root, b"f", Make::File, 0o6750, owner).unwrap();
    assert_eq!(file.attributes.mode, 0o750, "no set-user-ID bit");
    assert_eq!(tree.make(&root, b"f", Make::File, 0o644, owner).unwrap_err(), Status::EXIST);
    assert_eq!(tree.write(&file.key, 3, b"abc", Stable::File), Ok(Stable::File));
    assert_eq!(tree.write(&file.key, u64::MAX - 1, b"abc", Stable::File), Err(Status::FBIG));
    tree.commit(&file.key).unwrap();
    assert_eq!(tree.read(&file.key, 0, 100).unwrap().0, b"\0\0\0abc");
    assert_eq!(tree.read(&file.key, u64::MAX, 100).unwrap().0, b"");
    let time = crate::codec::nfs::Time { seconds: 1_000_000_000, nanoseconds: 7 };
    let set = SetAttributes {
        size_bytes: Some(4),
        mode: Some(0o600),
        modified: SetTime::To(time),
        ..SetAttributes::default()
    };
    tree.set_attributes(&file.key, &set).unwrap();
    let metadata = std::fs::metadata(place.root().join("f")).unwrap();
    assert_eq!((metadata.len(), metadata.permissions().mode() & 0o7777), (4, 0o600));
    assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (1_000_000_000, 7));
    let directory = tree.make(&root, b"d", Make::Directory, 0o755, owner).unwrap();
    tree.link(&file.key, &directory.key, b"second").unwrap();
    assert_eq!(tree.attributes(&file.key).unwrap().links, 2);
    assert_eq!(tree.remove(&root, b"d", true), Err(Status::NOTEMPTY));
    assert_eq!(tree.remove(&root, b"d", false), Err(Status::ISDIR));
    assert_eq!(tree.remove(&root, b"f", true), Err(Status::NOTDIR));
    tree.rename((&root, b"f"), (&directory.key, b"moved")).unwrap();
    tree.remove(&directory.key, b"second", false).unwrap();
    assert_eq!(tree.read(&file.key, 0, 100).unwrap().0, b"\0\0\0a");
    let pipe = tree.make(&root, b"p", Make::Node(FileType::Fifo), 0o600, owner).unwrap();
    assert_eq!(pipe.attributes.kind, FileType::Fifo);
    assert_eq!(tree.read(&pipe.key, 0, 1).unwrap_err(), Status::INVAL, "a pipe is not waited for");
    let block = Make::Node(FileType::Block);
    assert_eq!(tree.make(&root, b"b", block, 0o600, owner).unwrap_err(), Status::NOTSUPP);
    let link = tree.make(&root, b"l", Make::Link(b"any where"), 0o777, owner).unwrap();
    assert_eq!(tree.read_link(&link.key).unwrap(), b"any where");
    tree.remove(&directory.key, b"moved", false).unwrap();
    assert_eq!(tree.attributes(&file.key), Err(Status::STALE));
    assert_eq!(tree.write(&file.key, 0, b"x", Stable::Unstable), Err(Status::STALE));
}

#[test]
fn cookies_hold_while_a_directory_changes() {
    let place = Place::new("cookies");
    for number in 0..1000 {
        std::fs::write(place.root().join(format!("f{number}")), b"").unwrap();
    }
    let tree = place.tree();
    let root = tree.root().unwrap();
    let (mut cookie, mut seen, mut rounds) = (0, Vec::new(), 0);
    loop {
        let list = tree.entries(&root.key, cookie, 1000).unwrap();
        cookie = list.entries.last().map_or(cookie, |entry| entry.cookie);
        for entry in &list.entries {
            if entry.name == b".." {
                assert_eq!(entry.fileid, root.attributes.fileid);
            }
            seen.push(entry.name.clone());
            // What was listed goes away; the rest is neither left out nor told twice.
            let _ = std::fs::remove_file(place.root().join(String::from_utf8_lossy(&entry.name).as_ref()));
        }
        rounds += 1;
        if list.is_end {
            break;
        }
    }
    seen.sort();
    seen.dedup();
    assert!(rounds > 10 && seen.len() == 1002, "{rounds} rounds, {} names", seen.len());
    assert_eq!(tree.entries(&root.key, u64::MAX, 1000), Err(Status::BAD_COOKIE));
}
