use super::*;
use cap_std::ambient_authority;

/// Another session may have opened the file while it was an upload, and lock it when it is whole.
#[test]
fn a_file_that_got_its_name_before_it_was_locked_is_not_written_to() {
    let path = std::env::temp_dir().join(format!("inhost-partial-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    let open_folder = || Dir::open_ambient_dir(&path, ambient_authority()).unwrap();
    let folder = open_folder();
    let storing = open(open_folder(), "file", Store::Replace, 0, None).unwrap();
    let early = std::fs::File::open(path.join(partial_name("file"))).unwrap();
    assert_eq!(lock(&folder, &partial_name("file"), &early), Err(StorageError::Busy));
    let writing = storing.sink.write_at(0, b"whole".to_vec());
    futures_lite::future::block_on(async {
        writing.await.1.unwrap();
        storing.sink.commit(5).await.unwrap();
    });
    assert_eq!(lock(&folder, &partial_name("file"), &early), Ok(false));
    drop(early);
    // The next upload has its own file, and the whole one stays as it is until then.
    let next = open(open_folder(), "file", Store::Replace, 0, None).unwrap();
    assert_eq!(std::fs::read(path.join("file")).unwrap(), b"whole");
    drop(next);
    std::fs::remove_dir_all(&path).unwrap();
}

/// The last octets count for the quota like all others, and a file that is too long gets no name by them.
#[test]
fn what_is_written_with_the_commit_counts_for_the_quota() {
    let path = std::env::temp_dir().join(format!("inhost-behind-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    let quota = Quota::new(8);
    let store = |name| {
        let folder = Dir::open_ambient_dir(&path, ambient_authority()).unwrap();
        open(folder, name, Store::Replace, 0, Some(quota.clone())).unwrap()
    };
    futures_lite::future::block_on(async {
        let storing = store("file");
        storing.sink.write_at(0, b"wh".to_vec()).await.1.unwrap();
        storing.sink.commit_behind(2, b"ole".to_vec()).await.unwrap();
        let outcome = store("more").sink.commit_behind(0, b"four".to_vec()).await;
        assert_eq!(outcome, Err(StorageError::Quota));
    });
    assert_eq!(std::fs::read(path.join("file")).unwrap(), b"whole");
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1, "the refused one left something");
    assert_eq!(quota.used_bytes(), 5);
    std::fs::remove_dir_all(&path).unwrap();
}

/// A failed append takes back its own octets, and none of those that were there.
#[test]
fn a_discarded_append_leaves_the_file_as_it_was() {
    let path = std::env::temp_dir().join(format!("inhost-append-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    let quota = Quota::new(16);
    let store = |how| {
        let folder = Dir::open_ambient_dir(&path, ambient_authority()).unwrap();
        open(folder, "file", how, 0, Some(quota.clone())).unwrap()
    };
    futures_lite::future::block_on(async {
        store(Store::Replace).sink.commit_behind(0, b"whole".to_vec()).await.unwrap();
        let storing = store(Store::Append);
        assert_eq!(storing.position, 5);
        storing.sink.write_at(5, b" and more".to_vec()).await.1.unwrap();
        storing.sink.discard().await;
    });
    assert_eq!(std::fs::read(path.join("file")).unwrap(), b"whole");
    assert_eq!(quota.used_bytes(), 5);
    futures_lite::future::block_on(async {
        let storing = store(Store::Replace);
        storing.sink.write_at(0, b"half".to_vec()).await.1.unwrap();
        storing.sink.discard().await;
    });
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1, "the discarded upload left something");
    assert_eq!(quota.used_bytes(), 5);
    std::fs::remove_dir_all(&path).unwrap();
}

/// A file that its owner keeps from others stays so when a new one takes its place.
#[test]
fn a_file_that_is_replaced_gives_its_permissions() {
    let path = std::env::temp_dir().join(format!("inhost-mode-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    let mode_after_storing = || {
        let folder = Dir::open_ambient_dir(&path, ambient_authority()).unwrap();
        let storing = open(folder, "file", Store::Replace, 0o022, None).unwrap();
        futures_lite::future::block_on(storing.sink.commit(0)).unwrap();
        std::fs::metadata(path.join("file")).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode_after_storing(), 0o644);
    std::fs::set_permissions(path.join("file"), std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(mode_after_storing(), 0o600);
    std::fs::remove_dir_all(&path).unwrap();
}
