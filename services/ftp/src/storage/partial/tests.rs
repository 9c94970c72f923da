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
    // The next upload has a file of its own, and the whole one stays as it is until then.
    let next = open(open_folder(), "file", Store::Replace, 0, None).unwrap();
    assert_eq!(std::fs::read(path.join("file")).unwrap(), b"whole");
    drop(next);
    std::fs::remove_dir_all(&path).unwrap();
}
