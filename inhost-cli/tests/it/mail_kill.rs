//! A host that is killed (SIGKILL) while mail comes in and goes out loses none that it acknowledged.
//!
//! Half of the messages go into a mailbox, half to another server. A message that was not acknowledged may be sent again
//! by its client; one that a server acknowledged just before the kill is sent to it again: those are the duplicates.

use crate::common::{Folder, Serve, with_deadline};
use inhost_interop::{join, pause, within};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Clients at once.
const CLIENTS: usize = 8;

/// `make mail-kills` asks for more.
fn asked(name: &str, else_: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(else_)
}

/// A server that counts the messages that it acknowledged, by their numbers.
fn sink() -> (u16, Arc<Mutex<BTreeMap<usize, usize>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, taken) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(BTreeMap::new())));
    let all = taken.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let taken = all.clone();
            std::thread::spawn(move || take(with_deadline(stream), &taken));
        }
    });
    (port, taken)
}

fn take(stream: TcpStream, taken: &Mutex<BTreeMap<usize, usize>>) -> Option<()> {
    let mut to = stream.try_clone().ok()?;
    to.write_all(b"220 sink\r\n").ok()?;
    let (mut is_text, mut number) = (false, None);
    for line in BufReader::new(stream).lines() {
        let line = line.ok()?;
        let reply: &[u8] = match (is_text, line.as_str()) {
            (true, ".") => {
                is_text = false;
                *taken.lock().unwrap().entry(number.take()?).or_default() += 1;
                b"250 2.0.0 taken\r\n"
            }
            (true, _) => {
                number = number.or_else(|| line.strip_prefix("X-Number: ")?.parse().ok());
                continue;
            }
            (false, "DATA") => {
                is_text = true;
                b"354 go\r\n"
            }
            (false, line) if line.starts_with("EHLO") => b"250-sink\r\n250 PIPELINING\r\n",
            (false, _) => b"250 Ok\r\n",
        };
        to.write_all(reply).ok()?;
    }
    Some(())
}

/// Sends the messages of `numbers` until each is acknowledged; how many attempts it took beyond.
fn client(port: u16, numbers: impl Iterator<Item = usize>, acknowledged: &AtomicUsize) -> usize {
    let (mut again, mut connection) = (0, None);
    for number in numbers {
        while send(port, number, &mut connection).is_none() {
            connection = None;
            again += 1;
            pause(Duration::from_millis(20));
        }
        acknowledged.fetch_add(1, Ordering::Relaxed);
    }
    again
}

fn send(port: u16, number: usize, connection: &mut Option<BufReader<TcpStream>>) -> Option<()> {
    if connection.is_none() {
        let stream = with_deadline(TcpStream::connect(("127.0.0.1", port)).ok()?);
        let mut reader = BufReader::new(stream);
        expect(&mut reader, "220")?;
        reader.get_mut().write_all(b"EHLO client\r\n").ok()?;
        expect(&mut reader, "250")?;
        *connection = Some(reader);
    }
    let reader = connection.as_mut()?;
    let to = if number.is_multiple_of(2) { "ada@here.example" } else { "x@sink.example" };
    write!(reader.get_mut(), "MAIL FROM:<a@b.example>\r\nRCPT TO:<{to}>\r\nDATA\r\n").ok()?;
    for code in ["250", "250", "354"] {
        expect(reader, code)?;
    }
    write!(reader.get_mut(), "X-Number: {number}\r\n\r\n{}.\r\n", "some text\r\n".repeat(50)).ok()?;
    expect(reader, "250")
}

fn expect(reader: &mut BufReader<TcpStream>, code: &str) -> Option<()> {
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if !line.starts_with(code) {
            return None;
        }
        if line.as_bytes().get(3) == Some(&b' ') {
            return Some(());
        }
    }
}

fn in_mailbox(path: &Path) -> BTreeMap<usize, usize> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap();
        let number = text.lines().find_map(|line| line.strip_prefix("X-Number: ")?.parse().ok());
        *found.entry(number.unwrap()).or_default() += 1;
    }
    found
}

#[test]
fn nothing_that_was_acknowledged_is_lost() {
    let (kills, messages) = (asked("INHOST_MAIL_KILLS", 3), asked("INHOST_MAIL_MESSAGES", 1200));
    let folder = Folder::new("mail-kill");
    let (sink_port, taken) = sink();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at = folder.0.display();
    let path = folder.0.join("host.toml");
    let config = format!(
        "link = [\"user,loopback=yes,forward=127.0.0.1:{port}->25\"]\n[mail]\nenabled = true\nhost_name = \"here.example\"\n\
         domains = [\"here.example\"]\nmailboxes = [\"ada\"]\nqueue = \"{at}/queue\"\nfolder = \"{at}/boxes\"\nretry_s = 1\n\
         relay_networks = [\"127.0.0.0/8\"]\nlimits = {{ connections_per_minute = 100000 }}\ncheck = \"off\"\n[mail.routes]\n\
         \"sink.example\" = \"smtp://10.0.2.2:{sink_port}\"\n"
    );
    fs::write(&path, config).unwrap();
    let start = || Serve::start("mail-kill-host", &["--log", "error", "--config", path.to_str().unwrap()]);
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let mut serve = Some(start());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|first| {
            let acknowledged = acknowledged.clone();
            std::thread::spawn(move || client(port, (first..messages).step_by(CLIENTS), &acknowledged))
        })
        .collect();
    for kill in 1..=kills {
        // In the middle of the next part.
        let until = messages * kill / (kills + 1);
        let reached = within(Duration::from_secs(300), || {
            (acknowledged.load(Ordering::Relaxed) >= until).then_some(())
        });
        assert!(
            reached.is_some(),
            "only {} of {messages} are acknowledged",
            acknowledged.load(Ordering::Relaxed)
        );
        let mut killed = serve.take().unwrap();
        killed.process.signal(Signal::KILL);
        killed.process.wait();
        serve = Some(start());
    }
    let again: usize = clients.into_iter().map(join).sum();
    let new = folder.0.join("boxes/ada/new");
    let all_there = || {
        let there = in_mailbox(&new).len() + taken.lock().unwrap().len();
        (there == messages).then_some(())
    };
    let is_complete = within(Duration::from_secs(120), all_there).is_some();
    let (boxed, sent) = (in_mailbox(&new), taken.lock().unwrap().clone());
    let lost: Vec<_> =
        (0..messages).filter(|number| !boxed.contains_key(number) && !sent.contains_key(number)).collect();
    let twice = |all: &BTreeMap<usize, usize>| all.values().map(|count| count - 1).sum::<usize>();
    println!(
        "{messages} messages, {kills} kills: {} lost, {} twice in the mailbox, {} twice at the server, {again} attempts again",
        lost.len(),
        twice(&boxed),
        twice(&sent)
    );
    assert!(is_complete && lost.is_empty(), "lost: {lost:?}");
    // Each kill can meet what was under way, and no more.
    let under_way = kills * (CLIENTS + 2 * 5 * 20);
    assert!(twice(&boxed) + twice(&sent) <= under_way, "{} and {}", twice(&boxed), twice(&sent));
    assert!(serve.take().unwrap().end().success());
}
