use std::collections::BTreeSet;

use futures_lite::future::block_on;

use super::*;
use crate::body::Body;
use crate::client::Step;
use crate::codec::{MailFrom, Recipient, Reply};

fn message(to: &[&str], arrived_s: u64) -> NewMessage {
    let recipients = to.iter().map(|to| {
        let recipient = Recipient::new(to.parse().unwrap());
        NewRecipient { domain: recipient.mailbox.domain().to_owned(), recipient }
    });
    NewMessage {
        mail: MailFrom { sender: Some("a@here.example".parse().unwrap()), ..MailFrom::default() },
        recipients: recipients.collect(),
        body: Body::new("Subject: x\r\n\r\ntext\r\n").with_head("Received: y\r\n"),
        origin: "a test".into(),
        arrived_s,
        expires_s: arrived_s + 1000,
        is_signed: false,
    }
}

fn later(due_s: u64) -> Fate {
    let reply = Reply::new(450, "4.2.0", "Greylisted");
    let reason = Reason::Refused { server: "mx.b.example".into(), step: Step::Recipient, reply };
    Fate::Later { due_s, reason, is_warned: false }
}

fn claim(queue: &Queue, now_s: u64) -> Vec<Batch> {
    block_on(queue.claim(now_s, 10, 10, BTreeSet::new())).unwrap()
}

#[test]
fn recipients_leave_one_by_one_and_the_message_with_the_last() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempdir("leave");
    // One that was made before, for all to read.
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let queue = Queue::open(&folder).unwrap();
    let mode = std::fs::metadata(folder.join("queue.sqlite")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "messages are in it");
    let _lock = block_on(queue.lock()).unwrap();
    assert!(matches!(block_on(Queue::open(&folder).unwrap().lock()), Err(StoreError::Locked)));
    let id = block_on(queue.add(message(&["x@b.example", "y@c.example", "z@b.example"], 100))).unwrap();
    assert!(claim(&queue, 99).is_empty(), "nothing is due");
    let batches = claim(&queue, 100);
    let domains: Vec<_> = batches.iter().map(|batch| (&*batch.domain, batch.items.len())).collect();
    assert_eq!(domains, [("b.example", 2), ("c.example", 1)]);
    assert!(claim(&queue, 100).is_empty(), "what was given out is not given out again");
    let stored = block_on(queue.load(id)).unwrap().unwrap();
    assert_eq!(&*stored.body.read(1000).unwrap(), b"Received: y\r\nSubject: x\r\n\r\ntext\r\n");
    let ids: Vec<_> = batches.iter().flat_map(|batch| &batch.items).map(|item| item.id).collect();
    let fates = vec![(ids[0], Fate::Done), (ids[1], later(400)), (ids[2], Fate::Done)];
    block_on(queue.settle(Settlement { fates, ..Settlement::default() })).unwrap();
    assert_eq!(block_on(queue.next_due_s()).unwrap(), Some(400));
    let view = View::open(&folder).unwrap();
    let shown = &view.messages(&Selection::Message(id), 10, 200).unwrap()[0];
    assert_eq!((shown.recipients.len(), shown.recipients[0].attempts), (1, 1));
    assert_eq!(shown.recipients[0].why, "mx.b.example answered RCPT TO with \"450 4.2.0 Greylisted\"");
    assert!(claim(&queue, 399).is_empty());
    let [batch] = &claim(&queue, 400)[..] else { panic!() };
    let reason = Reason::NoDomain { what: "b.example does not exist".into() };
    let fates = vec![(batch.items[0].id, Fate::Failed(reason))];
    block_on(queue.settle(Settlement { fates, ..Settlement::default() })).unwrap();
    assert!(block_on(queue.load(id)).unwrap().is_none());
    assert_eq!(view.summary().unwrap().messages, 0);
    let [failed] = &view.failures(id).unwrap()[..] else { panic!() };
    assert_eq!((&*failed.address, &*failed.why), ("z@b.example", "b.example does not exist"));
    assert!(view.failures(id + 1).unwrap().is_empty());
}

#[test]
fn a_destination_that_fails_is_left_alone_with_all_that_wait_for_it() {
    let queue = Queue::in_memory().unwrap();
    for _ in 0..3 {
        block_on(queue.add(message(&["x@b.example"], 100))).unwrap();
    }
    let batch = block_on(queue.claim_of("b.example", 100, 1)).unwrap();
    let tried = vec![Attempted::new("mx.b.example", 25, "connection refused")];
    let reason = Reason::Unreachable { tried };
    let destination = DestinationFate::Failed { due_s: 400, failures: 1, reason: reason.clone() };
    let fates = batch.items.iter().map(|item| (item.id, Fate::Back)).collect();
    let settlement =
        Settlement { fates, destination: Some(("b.example".into(), destination)), ..Settlement::default() };
    block_on(queue.settle(settlement)).unwrap();
    assert_eq!(block_on(queue.failures("b.example")).unwrap(), 1);
    block_on(queue.add(message(&["x@b.example"], 200))).unwrap();
    assert!(claim(&queue, 399).is_empty(), "a new message does not wake it");
    assert_eq!(claim(&queue, 400)[0].items.len(), 4);
    block_on(queue.add(message(&["x@b.example"], 400))).unwrap();
    assert!(claim(&queue, 400).is_empty(), "one connection tries it");
    let destination = Some(("b.example".into(), DestinationFate::Reached));
    block_on(queue.settle(Settlement { destination, ..Settlement::default() })).unwrap();
    assert_eq!(block_on(queue.failures("b.example")).unwrap(), 0);
}

#[test]
fn after_a_crash_nothing_is_under_way_and_strays_are_removed() {
    let folder = tempdir("crash");
    let queue = Queue::open(&folder).unwrap();
    let lock = block_on(queue.lock()).unwrap();
    block_on(queue.add(message(&["x@b.example"], 100))).unwrap();
    assert_eq!(claim(&queue, 100).len(), 1);
    std::fs::write(folder.join("text/young"), "x").unwrap();
    let stray = std::fs::File::create(folder.join("text/stray")).unwrap();
    stray.set_modified(std::time::UNIX_EPOCH).unwrap();
    drop((lock, queue));
    let queue = Queue::open(&folder).unwrap();
    assert!(claim(&queue, 100).is_empty(), "another process might have it");
    let _lock = block_on(queue.lock()).unwrap();
    assert_eq!(claim(&queue, 100)[0].items.len(), 1);
    assert!(folder.join("text/young").exists());
    assert!(!folder.join("text/stray").exists());
}

#[test]
fn by_hand() {
    let folder = tempdir("hand");
    let mut view = View::open(&folder).unwrap();
    let name = view.add(&message(&["x@b.example", "y@c.example"], 100)).unwrap();
    let id = name[1..].parse().unwrap();
    let why = |view: &View| {
        let shown = view.messages(&Selection::All, 10, 200).unwrap();
        shown[0].recipients.iter().map(|one| one.why.clone()).collect::<Vec<_>>()
    };
    assert_eq!(why(&view)[0], "no host sends from this queue");
    let queue = Queue::open(&folder).unwrap();
    let _lock = block_on(queue.lock()).unwrap();
    assert!(why(&view)[0].starts_with("others to b.example are before it"));
    assert_eq!(view.hold(&Selection::Domain("B.example".into())).unwrap(), 1);
    assert_eq!(why(&view)[0], "it is held");
    let [batch] = &claim(&queue, 200)[..] else { panic!() };
    assert_eq!(batch.domain, "c.example");
    assert_eq!(why(&view)[1], "it is being sent now");
    assert_eq!(view.retry(&Selection::Message(id), 300).unwrap(), 1, "what is under way is left alone");
    assert_eq!(claim(&queue, 300)[0].domain, "b.example");
    assert_eq!(view.summary().unwrap().recipients, 2);
    assert!(view.summary().unwrap().is_served);
    assert_eq!(view.drop(&Selection::Sender("a@here.example".into())).unwrap(), 2);
    assert_eq!(view.summary().unwrap().messages, 0);
}

fn tempdir(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("inhost-queue-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_note_that_fails_takes_nothing_and_its_message_is_given_out_again() {
    let folder = tempdir("note");
    let queue = Queue::open(&folder).unwrap();
    let _lock = block_on(queue.lock()).unwrap();
    let spooled = std::sync::Arc::new(crate::SpoolFolder::new(queue.text_folder().unwrap(), "a".into()));
    let mut spool = crate::Spool::new(&spooled);
    block_on(spool.write(&vec![b'x'; 2 * crate::MEMORY_BYTES])).unwrap();
    let body = block_on(spool.finish()).unwrap();
    assert!(!body.is_in_memory());
    let id = block_on(queue.add(NewMessage { body, ..message(&["x@b.example"], 100) })).unwrap();
    let settle = |queue: &Queue| {
        let item = claim(queue, 100)[0].items[0].id;
        let settlement = Settlement {
            fates: vec![(item, Fate::Done)],
            reports: vec![message(&["a@here.example"], 100)],
            ..Settlement::default()
        };
        block_on(queue.settle(settlement))
    };
    // A disk that is full for the report.
    let other = rusqlite::Connection::open(folder.join("queue.sqlite")).unwrap();
    let full = "CREATE TRIGGER full BEFORE INSERT ON message BEGIN SELECT RAISE(ABORT, 'full'); END";
    other.execute_batch(full).unwrap();
    assert!(settle(&queue).is_err());
    let stored = block_on(queue.load(id)).unwrap().unwrap();
    assert_eq!(stored.body.read(1 << 20).unwrap().len(), 2 * crate::MEMORY_BYTES, "its file is there");
    assert!(claim(&queue, 100).is_empty(), "it is under way");
    block_on(queue.release("b.example")).unwrap();
    other.execute_batch("DROP TRIGGER full").unwrap();
    settle(&queue).unwrap();
    assert!(block_on(queue.load(id)).unwrap().is_none());
    // The thread removes files behind its answer.
    assert!(block_on(queue.next_due_s()).is_ok());
    assert_eq!(std::fs::read_dir(folder.join("text")).unwrap().count(), 0);
}
