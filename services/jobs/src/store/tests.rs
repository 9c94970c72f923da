use super::worker::Store;
use super::*;
use crate::codec::{After, Array, Submission};
use crate::machine::{Need, Shares, State};

fn store() -> (tempdir::Folder, Store) {
    let folder = tempdir::Folder::new();
    let store = Store::in_memory(folder.path()).unwrap();
    (folder, store)
}

/// A folder that is removed with its test.
mod tempdir {
    pub struct Folder(std::path::PathBuf);
    impl Folder {
        pub fn new() -> Folder {
            static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("inhost-jobs-{}-{number}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }
        pub fn path(&self) -> &std::path::Path {
            &self.0
        }
    }
    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    futures_lite::future::block_on(future)
}

fn submit(store: &Store, submission: Submission) -> i64 {
    run(store.submit("ada", None, submission, Quotas::default(), 100)).unwrap().id
}

fn state(store: &Store, id: i64) -> State {
    run(store.job(Scope::All, id)).unwrap().state()
}

fn plan(store: &Store, now_s: u64) -> Vec<i64> {
    run(store.plan("local", Shares::default(), now_s)).unwrap().start.iter().map(|task| task.id).collect()
}

fn end(store: &Store, id: i64, outcome: Outcome, now_s: u64) {
    let attempt = run(store.job(Scope::All, id)).unwrap().attempts;
    run(store.settle(vec![End { id, attempt, outcome, output_bytes: 7 }], now_s)).unwrap();
}

#[test]
fn the_same_submission_twice_is_one_job() {
    let (_folder, store) = store();
    let send = |key: &str, script: &str, user: &str| {
        run(store.submit(user, Some(key), Submission::new("a", script), Quotas::default(), 1))
    };
    let first = send("k", "x", "ada").unwrap();
    let again = send("k", "x", "ada").unwrap();
    assert_eq!((first.id, first.is_new, again.id, again.is_new), (1, true, 1, false));
    assert!(matches!(send("k", "y", "ada"), Err(StoreError::KeyUsed)));
    assert_ne!(send("k", "y", "bob").unwrap().id, first.id, "keys are each user's own");
    assert!(matches!(run(store.job(Scope::User("bob".into()), 1)), Err(StoreError::Unknown(1))));
}

#[test]
fn a_chain_waits_and_ends_with_its_first_failure() {
    let (_folder, store) = store();
    let first = submit(&store, Submission::new("a", "x"));
    let mut last = first;
    for _ in 0..200 {
        let after = vec![After { need: Need::AfterOk, job: last }];
        last = submit(&store, Submission { after, ..Submission::new("b", "x") });
    }
    let after = vec![After { need: Need::AfterNotOk, job: last }];
    let rescue = submit(&store, Submission { after, ..Submission::new("c", "x") });
    assert_eq!(plan(&store, 100), [first]);
    end(&store, first, Outcome::Exit(3, String::new()), 110);
    assert_eq!((state(&store, first), state(&store, last)), (State::Failed, State::Cancelled));
    assert_eq!(plan(&store, 110), [rescue]);
    let unknown =
        Submission { after: vec![After { need: Need::AfterOk, job: 999_999 }], ..Submission::new("d", "x") };
    assert!(run(store.submit("ada", None, unknown, Quotas::default(), 1)).is_err());
}

#[test]
fn arrays_retries_holds_and_cancels() {
    let (_folder, store) = store();
    let array = Some(Array { first: 3, last: 7, at_a_time: Some(2) });
    let id = submit(&store, Submission { array, retries: 1, ..Submission::new("a", "x") });
    let started = plan(&store, 100);
    assert_eq!(started, [id + 1, id + 2]);
    assert_eq!(run(store.job(Scope::All, id + 1)).unwrap().index, Some(3));
    end(&store, id + 1, Outcome::Vanished("gone".into()), 100);
    assert_eq!(state(&store, id + 1), State::Queued, "it has a retry");
    assert_eq!(plan(&store, 105), [id + 3], "the retry waits");
    assert_eq!(run(store.plan("local", Shares::default(), 105)).unwrap().next_s, Some(110));
    end(&store, id + 2, Outcome::NeverStarted, 106);
    assert_eq!(state(&store, id + 2), State::Queued);
    let scope = || Scope::User("ada".into());
    assert_eq!(run(store.change(scope(), id, Change::Hold, 107)).unwrap(), 4);
    assert!(plan(&store, 200).is_empty());
    assert_eq!(run(store.change(scope(), id, Change::Release, 107)).unwrap(), 4);
    assert_eq!(plan(&store, 200), [id + 1]);
    assert_eq!(run(store.change(scope(), id, Change::Cancel, 210)).unwrap(), 5);
    assert_eq!((state(&store, id + 1), state(&store, id + 5)), (State::Running, State::Cancelled));
    end(&store, id + 1, Outcome::Exit(143, String::new()), 211);
    end(&store, id + 3, Outcome::Vanished(String::new()), 211);
    assert_eq!((state(&store, id + 1), state(&store, id + 3)), (State::Cancelled, State::Cancelled));
    assert_eq!(run(store.change(scope(), id, Change::Cancel, 212)).unwrap(), 0, "the same again");
    assert!(matches!(run(store.change(scope(), id, Change::Release, 212)), Err(StoreError::State(_))));
}

#[test]
fn quotas_and_retention_hold() {
    let (_folder, store) = store();
    let quotas = Quotas { jobs: 3, output_bytes: 6 };
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(run(store.submit("ada", None, Submission::new("a", "x"), quotas, 1)).unwrap().id);
    }
    let refused = |store: &Store| run(store.submit("ada", None, Submission::new("a", "x"), quotas, 1));
    assert!(matches!(refused(&store), Err(StoreError::Quota(_))));
    plan(&store, 1);
    std::fs::create_dir_all(store.folder(ids[0], 1)).unwrap();
    for &id in &ids {
        end(&store, id, Outcome::Exit(0, String::new()), 10);
    }
    assert!(matches!(refused(&store), Err(StoreError::Quota(_))), "his output is kept");
    assert_eq!(run(store.expire(Retention { age_s: 100, jobs: 2 }, 50)).unwrap(), 1);
    assert_eq!(run(store.expire(Retention { age_s: 100, jobs: 2 }, 110)).unwrap(), 2);
    assert!(refused(&store).is_ok());
}

#[test]
fn what_is_acknowledged_is_there_when_it_is_opened_again() {
    let folder = tempdir::Folder::new();
    let store = Store::open(folder.path()).unwrap();
    let id = submit(&store, Submission::new("a", "x"));
    let lock = store.lock().unwrap();
    let other = Store::open(folder.path()).unwrap();
    assert!(matches!(other.lock(), Err(StoreError::Locked)));
    drop((lock, store));
    assert!(other.lock().is_ok());
    assert_eq!(state(&other, id), State::Queued);
}

#[test]
fn a_full_disk_is_named_with_its_folder() {
    let folder = tempdir::Folder::new();
    let store = Store::open(folder.path()).unwrap();
    let long = "x".repeat(20_000);
    let send = || run(store.submit("ada", None, Submission::new("a", &long), Quotas::default(), 1));
    send().unwrap();
    run(store.call(false, |tables| tables.limit_pages(1))).unwrap();
    let why = send().unwrap_err().to_string();
    assert_eq!(why, format!("the queue {}: database or disk is full", folder.path().display()));
    run(store.call(false, |tables| tables.limit_pages(1 << 20))).unwrap();
    assert_eq!(send().unwrap().id, 2, "there is room again");
}

#[test]
fn a_file_that_is_there_is_delivered_to_only_if_that_is_said() {
    let folder = tempdir::Folder::new();
    let store = Store::open(folder.path()).unwrap();
    let path = folder.path().join("out-2");
    let mut job = Submission::new("a", "x");
    job.array = Some(Array { first: 1, last: 3, at_a_time: None });
    job.deliver = vec![crate::deliver::Deliver::File(folder.path().join("out-%a"))];
    let send =
        |key: &str, job: &Submission| run(store.submit("ada", Some(key), job.clone(), Quotas::default(), 1));
    let first = send("k", &job).unwrap();
    std::fs::write(&path, "mine").unwrap();
    let why = send("l", &job).unwrap_err().to_string();
    assert_eq!(why, format!("deliver: {} is there already; --replace lets it be replaced", path.display()));
    assert_eq!(send("k", &job).unwrap().id, first.id, "the same again is the same");
    job.replace = true;
    assert!(send("l", &job).unwrap().is_new);
}
