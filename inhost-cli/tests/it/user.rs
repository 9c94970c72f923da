//! A host on the `user` link, as anybody may run it: Debian's telnet, nc, and many connections at once.

use crate::common::{PASSWORD, Serve, connect, connect_from, echo_intact, output_given};
use inhost_interop::{Running, output, pause, run, until};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn port(at: &str) -> &str {
    at.rsplit(':').next().unwrap()
}

/// Debian's telnet logs in, runs top, resizes, and stops a runaway `yes` with the interrupt key.
fn a_person_works(link: &str) {
    let serve = Serve::start("user", &["--link", link]);
    let at = serve.forwarded(23);
    let talk = format!(
        "set stty_init \"rows 24 columns 80\"\n\
         spawn telnet 127.0.0.1 {}\nwant inhost> 2\nsend \"help\\r\"\nwant LOGON 3\nsend \"netstat\\r\"\n\
         want listeners 4\nsend \"logon ada\\r\"\nwant Password 5\nsend \"wrong\\r\"\nwant Not 6\n\
         send \"logon ada\\r\"\nwant Password 7\nsend \"{PASSWORD}\\r\"\nwant {{[$#] $}} 8\n\
         send \"stty size\\r\"\nwant {{24 80}} 9\nsend \"top -d 0.3\\r\"\nwant {{load average}} 10\n\
         stty rows 40 columns 100 < $spawn_out(slave,name)\nsleep 1\nsend \"q\"\nsleep 1\n\
         send \"stty size\\r\"\nwant {{40 100}} 11\n\
         send \"yes\\r\"\nwant {{y\\r\\ny}} 12\nsleep 1\nsend \"\\003\"\n\
         set began [clock milliseconds]\nwant {{\\^C}} 13\nsend \"echo alive-\\$((40+2))\\r\"\nwant alive-42 14\n\
         set took [expr {{[clock milliseconds]-$began}}]\nputs \"TOOK $took\"\nif {{$took > 5000}} {{exit 15}}\n\
         send \"env\\r\"\nwant TERM= 16\nsend \"exit\\r\"\nended 17\n",
        port(at)
    );
    crate::common::expect(&talk, &serve.folder.0);
    assert!(serve.end().success());
}

#[test]
fn debians_telnet_logs_in_and_works() {
    if !crate::common::peers(&["expect", "telnet", "top"]) {
        return;
    }
    a_person_works("user,forward=127.0.0.1:0->23");
}

#[test]
fn a_session_survives_a_twentieth_of_its_packets() {
    if !crate::common::peers(&["expect", "telnet", "top"]) {
        return;
    }
    a_person_works("user,forward=127.0.0.1:0->23,loss=5%,seed=7");
}

/// What `netstat` prints once it lists `count` echo connections. A caller whom the system connected while the queue
/// before our forward was full gets through a second later, so that it is asked more than once.
fn listed_whole(serve: &Serve, count: usize) -> String {
    until(&format!("{count} listed connections"), || {
        let text = run(serve.inhost().arg("netstat"));
        let established = text.lines().filter(|l| l.contains(":7 ") && l.contains(" ESTAB ")).count();
        (established >= count).then_some(text)
    })
}

#[test]
fn a_thousand_connections_are_listed_at_once() {
    let folder = crate::common::Folder::new("thousand-file");
    let file = folder.0.join("all-from-here.toml");
    std::fs::write(&file, "[little.limits]\nsessions_per_peer = 1024\n").unwrap();
    let links = "user,forward=127.0.0.1:0->7,forward=127.0.0.1:0->13,per-caller=1024";
    let serve = Serve::start("thousand", &["--link", links, "--config", file.to_str().unwrap()]);
    let at = serve.forwarded(7).to_owned();
    let held: Vec<TcpStream> = (0..1000).map(|_| connect(&at)).collect();
    echo_intact(connect(&at), 100_000);
    let text = listed_whole(&serve, 1000);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "lines fit a hundred columns");
    assert!(run(serve.inhost().args(["netstat", "ledgers"])).contains("application idle"));
    drop(held);
    let mut daytime = String::new();
    connect(serve.forwarded(13)).read_to_string(&mut daytime).unwrap();
    assert!(daytime.contains("UTC"), "{daytime}");
    assert!(serve.end().success());
}

/// All that comes until the other end closes or says nothing for a second.
fn all_that_comes(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let (mut all, mut bytes) = (Vec::new(), [0; 1000]);
    until("the end of what comes", || match stream.read(&mut bytes) {
        Ok(count @ 1..) => {
            all.extend_from_slice(&bytes[..count]);
            None
        }
        _ => Some(()),
    });
    String::from_utf8_lossy(&all).into_owned()
}

/// Behind one forward, each caller has limits of its own.
#[test]
fn callers_from_outside_are_limited_each_for_itself() {
    let links = "user,forward=127.0.0.1:0->23,forward=127.0.0.1:0->7";
    let config = "[telnet.limits]\nsessions_per_peer = 2\nconnections_per_minute = 4\n\
                  [little.limits]\nsessions_per_peer = 2\n";
    let folder = crate::common::Folder::new("limits-file");
    let file = folder.0.join("limits.toml");
    std::fs::write(&file, config).unwrap();
    let serve = Serve::start("limits", &["--link", links, "--config", file.to_str().unwrap()]);
    let (telnet, echo) = (serve.forwarded(23).to_owned(), serve.forwarded(7).to_owned());
    let (one, other) = ([127, 0, 0, 2], [127, 0, 0, 3]);
    let called = |from| {
        let mut stream = connect_from(from, &telnet);
        let shown = all_that_comes(&mut stream);
        (stream, shown)
    };
    let mut held: Vec<_> = [one, one, other, other].into_iter().map(called).collect();
    assert!(held.iter().all(|(_, shown)| shown.contains("inhost>")), "{held:?}");
    assert!(called(one).1.contains("too many sessions from your address"));
    for (mut stream, _) in held.drain(..2) {
        // The server has ended the session when its end of the connection is closed.
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        all_that_comes(&mut stream);
    }
    pause(Duration::from_millis(500));
    // The fourth of the minute, and the fifth.
    assert!(called(one).1.contains("inhost>"));
    assert!(called(one).1.contains("too many connections from your address"));
    assert!(called([127, 0, 0, 4]).1.contains("inhost>"));

    let echoes = |from| {
        let mut stream = connect_from(from, &echo);
        let _ = stream.write_all(b"x");
        let back = all_that_comes(&mut stream);
        (stream, back)
    };
    let held: Vec<_> = [one, one, one, other].into_iter().map(echoes).collect();
    let back: Vec<&str> = held.iter().map(|(_, back)| &**back).collect();
    assert_eq!(back, ["x", "x", "", "x"]);
    assert!(serve.end().success());
}

/// A peer that has used up its wrong passwords at one service is refused at all others.
#[test]
fn wrong_passwords_count_at_all_services_together() {
    let folder = crate::common::Folder::new("guesses-file");
    let file = folder.0.join("guesses.toml");
    std::fs::write(&file, format!("[ftp]\nenabled = true\nroot = \"{}\"\n", folder.0.display())).unwrap();
    let links = "user,forward=127.0.0.1:0->23,forward=127.0.0.1:0->21";
    let serve = Serve::start("guesses", &["--link", links, "--config", file.to_str().unwrap()]);
    let (telnet, ftp) = (serve.forwarded(23).to_owned(), serve.forwarded(21).to_owned());
    let (guesser, other) = ([127, 0, 0, 2], [127, 0, 0, 3]);
    let guesses: Vec<_> = (0..12)
        .map(|_| {
            let mut stream = connect_from(guesser, &ftp);
            stream.write_all(b"USER ada\r\nPASS guess\r\n").unwrap();
            stream
        })
        .collect();
    for stream in guesses {
        let denied = BufReader::new(stream).lines().map(Result::unwrap).any(|line| line.starts_with("530 "));
        assert!(denied, "a guess was not judged");
    }
    let shown = all_that_comes(&mut connect_from(guesser, &telnet));
    assert!(shown.contains("too many wrong passwords from your address"), "{shown}");
    assert!(all_that_comes(&mut connect_from(other, &telnet)).contains("inhost>"));
    assert!(serve.end().success());
}

/// Whatever is read again at a signal is read by another thread: a disk that does not answer holds nobody up.
#[test]
fn a_disk_that_is_slow_at_a_reload_holds_nobody_up() {
    let folder = crate::common::Folder::new("slow-disk");
    let file = folder.0.join("slow.toml");
    std::fs::write(&file, "").unwrap();
    let links = "user,forward=127.0.0.1:0->7";
    let serve = Serve::start("slow-disk", &["--link", links, "--config", file.to_str().unwrap()]);
    let echo = serve.forwarded(7).to_owned();
    std::fs::remove_file(&file).unwrap();
    run(Command::new("mkfifo").arg(&file));
    serve.process.signal(Signal::HUP);
    // It can be opened once the host has it open, too, and waits for what it will say.
    let to_write = OFlags::WRONLY | OFlags::NONBLOCK;
    let disk = until("the host at the other end", || rustix::fs::open(&file, to_write, Mode::empty()).ok());
    echo_intact(connect(&echo), 1000);
    // Asked again, it still takes notice of a signal.
    serve.process.signal(Signal::HUP);
    pause(Duration::from_millis(500));
    assert!(serve.end().success());
    drop(disk);
}

/// A pipe into the client goes through the running host to its end, comes back whole, and is not echoed.
#[test]
fn a_pipe_arrives_whole_through_the_running_host() {
    let serve = Serve::start("pipe", &["--link", "user,forward=127.0.0.1:0->23"]);
    let talk = |port: &str, input: Vec<u8>| {
        let mut client = serve.inhost();
        let done = output_given(client.args(["telnet", "10.0.2.15", port]), input);
        (String::from_utf8_lossy(&done.stdout).into_owned(), done.status)
    };
    let lines: String = (0..12_000).map(|number| format!("{number:09}\n")).collect();
    for _ in 0..3 {
        let (shown, status) = talk("7", lines.clone().into_bytes());
        let back = shown.matches("\r\n").count();
        assert!(shown.contains(&lines.replace('\n', "\r\n")), "{back} of 12000 lines came back");
        assert!(status.success(), "{status}");
    }
    // What is typed before the end of the input is obeyed, and its answer comes.
    let typed = format!("logon ada\n{PASSWORD}\necho las''t\n");
    let (shown, status) = talk("23", typed.into_bytes());
    assert!(shown.contains("last") && status.success(), "{status}: {shown}");
    // A close before the end of the input is a failure.
    let (shown, status) = talk("13", vec![b'x'; 1 << 20]);
    assert!(shown.contains("UTC") && !status.success(), "{status}: {shown}");
    assert!(serve.end().success());
}

/// PuTTY's plink, whose reader takes a hundred kilobytes a second, interrupts a runaway program.
#[test]
#[allow(clippy::disallowed_methods, reason = "a real host takes real time")]
fn plink_interrupts_runaway_output_at_once() {
    if !crate::common::peers(&["plink"]) {
        return;
    }
    let serve = Serve::start("plink", &["--link", "user,forward=127.0.0.1:0->23"]);
    let at = serve.forwarded(23).to_owned();
    let mut plink = Command::new("plink");
    plink.args(["-telnet", "-P", port(&at), "127.0.0.1"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut plink = Running::spawn(plink.env("HOME", &serve.folder.0));
    let (mut keys, mut screen) = (plink.child.stdin.take().unwrap(), plink.child.stdout.take().unwrap());
    rustix::fs::fcntl_setfl(&screen, OFlags::NONBLOCK).unwrap();
    // What lies in the pipe is the reader's own.
    rustix::pipe::fcntl_setpipe_size(&screen, 4096).unwrap();
    let (mut seen, mut began) = (String::new(), Instant::now());
    let steps = [("inhost> ", "logon ada\r"), ("Password: ", PASSWORD), ("", "\r"), ("# $ ", "yes\r")];
    let mut steps = steps.into_iter();
    let mut step = steps.next();
    let (mut interrupted, mut bytes) = (None, [0; 1000]);
    let took = loop {
        while let Some((prompt, answer)) = step
            && (prompt.is_empty()
                || prompt.split(' ').any(|end| !end.is_empty() && seen.trim_end().ends_with(end)))
        {
            keys.write_all(answer.as_bytes()).unwrap();
            (step, began) = (steps.next(), Instant::now());
        }
        let count = until("output of plink", || match screen.read(&mut bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => None,
            read => Some(read.unwrap()),
        });
        assert!(count > 0, "plink ended: {seen}");
        assert!(began.elapsed() < Duration::from_secs(40), "it never stops");
        seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        if step.is_some() {
            continue;
        }
        std::thread::sleep(Duration::from_millis(10));
        match interrupted {
            None if began.elapsed() > Duration::from_secs(4) => {
                assert!(seen.contains("y\r\ny"), "{seen}");
                seen.clear();
                keys.write_all(b"\x03echo al''ive\r").unwrap();
                interrupted = Some(Instant::now());
            }
            Some(at) if seen.contains("alive") => break at.elapsed(),
            _ => {}
        }
    };
    assert!(took < Duration::from_millis(1500), "the next command's output came after {took:?}");
    assert!(serve.end().success());
}

/// Many who ask for NETSTAT again and again, before they have logged in, hold nobody else up.
#[test]
#[allow(clippy::disallowed_methods, reason = "a real host takes real time")]
fn netstat_before_login_holds_nobody_up() {
    let links = "user,forward=127.0.0.1:0->23,forward=127.0.0.1:0->7,per-caller=1024";
    let config = "[telnet.limits]\nsessions = 256\nsessions_per_peer = 256\nconnections_per_minute = 1000\n\
                  [little.limits]\nsessions_per_peer = 1024\n";
    let folder = crate::common::Folder::new("netstat-file");
    let file = folder.0.join("many.toml");
    std::fs::write(&file, config).unwrap();
    let serve = Serve::start("netstat", &["--link", links, "--config", file.to_str().unwrap()]);
    let (telnet, echo) = (serve.forwarded(23).to_owned(), serve.forwarded(7).to_owned());
    let held: Vec<TcpStream> = (0..500).map(|_| connect(&echo)).collect();
    let asking: Vec<TcpStream> = (0..190).map(|_| connect(&telnet)).collect();
    for mut stream in &asking {
        stream.write_all(&b"netstat\r\n".repeat(199)).unwrap();
    }
    let began = Instant::now();
    echo_intact(connect(&echo), 1000);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "an echo took {took:?}");
    drop((held, asking));
    assert!(serve.end().success());
}

#[test]
fn errors_say_what_failed_where_and_what_to_try() {
    let serve = Serve::start("errors", &["--link", "user,forward=127.0.0.1:0->7"]);
    let says = |arguments: &[&str], status: i32, word: &str| {
        let done = output(serve.inhost().args(arguments));
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(status), "{arguments:?}: {text}");
        assert!(text.contains(word), "{arguments:?}: {text}");
        assert!(status == 2 || text.trim_end().lines().count() == 1, "one line: {text}");
    };
    says(&["serve"], 1, "--control PATH");
    says(&["serve", "--link", "tab:x"], 2, "user, tap, tun");
    says(&["serve", "--config", "/nowhere.toml"], 2, "/nowhere.toml");
    says(&["serve", "--memory", "lots"], 2, "64M");
    says(&["netstat", "--via", "/nowhere"], 1, "inhost serve");
    says(&["user", "remove", "nobody-here"], 1, "nobody-here");
    says(&["telnet", "10.0.2.15", "4"], 1, "10.0.2.15");
    says(&["frobnicate"], 2, "frobnicate");
}

/// Asked to end, the host says good-bye, and waits for nobody who has gone.
#[test]
#[allow(clippy::disallowed_methods, reason = "a real host takes real time")]
fn a_host_that_ends_tells_its_users() {
    let serve = Serve::start("goodbye", &["--link", "user,forward=127.0.0.1:0->23"]);
    let talk = format!(
        "spawn telnet 127.0.0.1 {}\nwant inhost> 2\nsend \"logon ada\\r\"\nwant Password 3\n\
         send \"{PASSWORD}\\r\"\nwant {{[$#] $}} 4\nexec kill {}\nwant {{host goes down}} 5\nexpect eof\n",
        port(serve.forwarded(23)),
        serve.process.id()
    );
    crate::common::expect(&talk, &serve.folder.0);
    let began = Instant::now();
    assert!(serve.end().success());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// A second signal while it ends does not cut its end off.
#[test]
fn a_host_that_is_asked_to_end_again_and_again_ends_well() {
    let serve = Serve::start("again-and-again", &["--link", "user,forward=127.0.0.1:0->7"]);
    // More than its end takes. To a process that has ended and was not waited for, a signal does nothing.
    for _ in 0..300_000 {
        serve.process.signal(Signal::TERM);
    }
    let status = serve.end();
    assert!(status.success(), "{status}");
}
