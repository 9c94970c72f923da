//! What `inhost mail why` says of a message that waits, for each reason that it can have.

use crate::common::mail::{certificate, scripted};
use crate::common::{Folder, Serve, inhost, output_given};
use inhost_interop::{output, run, until};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::process::Command;

/// A queue with its configuration.
struct Queue {
    folder: Folder,
}

impl Queue {
    fn new(name: &str) -> Queue {
        Queue { folder: Folder::new(name) }
    }
    fn mail(&self, arguments: &[&str]) -> Command {
        let mut command = inhost(&self.folder.0);
        command.arg("mail").args(arguments).arg("--config").arg(self.folder.0.join("host.toml"));
        command
    }
    fn configure(&self, section: &str, tables: &str) {
        let at = self.folder.0.display();
        fs::write(
            self.folder.0.join("host.toml"),
            format!(
                "link = [\"user,loopback=yes,forward=127.0.0.1:0->25\"]\nnameserver = [\"10.0.2.9\"]\n[mail]\nenabled = true\n\
                 host_name = \"here.example\"\ndomains = [\"here.example\"]\nmailboxes = [\"ada\", \"full\"]\nqueue = \"{at}/queue\"\n\
                 folder = \"{at}/boxes\"\nretry_s = 1000\nconnections_per_destination = 1\n{section}\n{tables}"
            ),
        )
        .unwrap();
    }
    fn send(&self, to: &str) {
        let done = output_given(&mut self.mail(&["send", "--from", "ada@here.example", to]), "text\n");
        assert!(done.status.success(), "{done:?}");
    }
    /// Cause and remedy of what waits for `domain`, once it has them.
    fn why(&self, domain: &str, is_meant: impl Fn(&str) -> bool) -> (String, String) {
        until(&format!("the reason of {domain}"), || {
            let done = output(&mut self.mail(&["why", domain, "--json"]));
            let told: Value = serde_json::from_slice(&done.stdout).ok()?;
            let one = &told["messages"][0]["recipients"][0];
            let text = |key: &str| one[key].as_str().unwrap().to_owned();
            is_meant(one["why"].as_str()?).then(|| (text("why"), text("remedy")))
        })
    }
}

#[test]
fn each_reason_has_its_sentences() {
    let queue = Queue::new("mail-why");
    let at = queue.folder.0.display().to_string();
    certificate(&queue.folder.0);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let slow = TcpListener::bind("127.0.0.1:0").unwrap();
    // The domain, its server, what `why` says, what is to be done.
    let cases: [(&str, u16, &str, &str); 11] = [
        (
            "refused",
            closed,
            "no mail exchanger can be reached: 10.0.2.2: ",
            &*format!("inhost telnet 10.0.2.2 {closed}"),
        ),
        (
            "busy",
            scripted(&[("", "421 4.3.2 too busy")]),
            "answered greeting with \"421 4.3.2 too busy\"",
            "connections_per_destination",
        ),
        (
            "grey",
            scripted(&[("RCPT", "450 4.7.1 Greylisted, come back")]),
            "10.0.2.2 answered RCPT TO with \"450 4.7.1 Greylisted, come back\"",
            "nothing is to be done",
        ),
        (
            "full",
            scripted(&[("RCPT", "452 4.2.2 Mailbox full")]),
            "answered RCPT TO with \"452 4.2.2 Mailbox full\"",
            "only they can make room",
        ),
        (
            "policy",
            scripted(&[("MAIL", "451 4.7.23 no SPF")]),
            "answered MAIL FROM with \"451 4.7.23 no SPF\"",
            "SPF, DKIM or a reverse name",
        ),
        (
            "disk",
            scripted(&[(".", "452 4.3.1 disk full")]),
            "answered the end of the message with",
            "the server's words",
        ),
        ("notls", scripted(&[("EHLO", "250 mx")]), "no TLS with 10.0.2.2", "the server's owner"),
        (
            "badtls",
            scripted(&[("EHLO", "250-mx\r\n250 STARTTLS"), ("STARTTLS", "220 go")]),
            "no TLS with 10.0.2.2",
            "mail.tls",
        ),
        (
            "breaks",
            scripted(&[("DATA", "")]),
            "the dialogue with 10.0.2.2 broke off: it closed the connection at DATA",
            "see the dialogue",
        ),
        (
            "ssh",
            scripted(&[("", "SSH-2.0-OpenSSH_9.2")]),
            "what it says is not a reply of SMTP",
            "see the dialogue",
        ),
        (
            "slow",
            slow.local_addr().unwrap().port(),
            "others to slow.example are before it",
            "connections_per_destination",
        ),
    ];
    let gone = scripted(&[("RCPT", "550 5.1.1 No such user")]);
    let routes: String = cases
        .iter()
        .map(|(name, port, ..)| format!("\"{name}.example\" = \"smtp://10.0.2.2:{port}\"\n"))
        .collect();
    let tables = format!(
        "[mail.routes]\n\"gone.example\" = \"smtp://10.0.2.2:{gone}\"\n{routes}[mail.tls]\n\"notls.example\" = \"required\"\n\"badtls.example\" = \"required\"\n"
    );
    queue.configure("", &tables);
    // A folder stands where the mailbox is a file.
    fs::create_dir_all(format!("{at}/boxes")).unwrap();
    fs::write(format!("{at}/boxes/full"), "").unwrap();
    queue.send("x@refused.example");
    let (why, remedy) = queue.why("refused.example", |_| true);
    assert_eq!(why, "no host sends from this queue");
    assert!(remedy.contains("inhost serve"), "{remedy}");
    queue.send("held@held.example");
    run(&mut queue.mail(&["hold", "held.example"]));

    let serve = Serve::start("mail-why-host", &["--config", &format!("{at}/host.toml")]);
    let held = queue.why("held.example", |_| true);
    assert_eq!((&*held.0, &*held.1), ("it is held", "`inhost mail retry` lets it go"));
    for (name, ..) in &cases {
        queue.send(&format!("x@{name}.example"));
    }
    // More of them than a connection is given at a time.
    for _ in 0..25 {
        queue.send("y@slow.example");
    }
    for (name, _, cause, cure) in &cases {
        let domain = format!("{name}.example");
        let (why, remedy) = match *name {
            "slow" => {
                let shown = until("one that waits behind others", || {
                    let told = run(&mut queue.mail(&["queue", &domain, "--json", "--limit", "99"]));
                    let told: Value = serde_json::from_str(&told).unwrap();
                    let all = told["messages"].as_array().unwrap().clone();
                    all.into_iter()
                        .map(|one| one["recipients"][0].clone())
                        .find(|one| one["state"] == "waiting")
                });
                (shown["why"].as_str().unwrap().to_owned(), shown["remedy"].as_str().unwrap().to_owned())
            }
            _ => queue.why(&domain, |why| why != "it is being sent now" && !why.starts_with("others")),
        };
        assert!(why.contains(cause), "{name}: {why}");
        assert!(remedy.contains(cure), "{name}: {remedy}");
    }
    // The name server at this address does not answer.
    queue.send("x@nowhere.example");
    let (why, remedy) = queue.why("nowhere.example", |why| why.contains("name servers"));
    assert!(why.starts_with("the name servers did not answer for nowhere.example: "), "{why}");
    assert!(remedy.contains("inhost lookup nowhere.example mx"), "{remedy}");
    queue.send("full@here.example");
    let (why, remedy) = queue.why("here.example", |why| why.contains("mailbox"));
    assert!(why.starts_with(&format!("the mailbox {at}/boxes/full cannot be written: ")), "{why}");
    assert!(remedy.contains("owner, mode"), "{remedy}");
    // One that is refused for ever does not wait: its sender has a report.
    queue.send("x@gone.example");
    let report = &crate::common::mail::files(queue.folder.0.join("boxes/ada/new"), 1)[0];
    for part in [
        "Return-Path: <>\n",
        "Final-Recipient: rfc822; x@gone.example\nAction: failed\nStatus: 5.1.1\n",
        "Diagnostic-Code: smtp; 550 5.1.1 No such user\n",
    ] {
        assert!(report.contains(part), "{part}\n{report}");
    }
    let now = |to: &str| {
        output_given(
            &mut queue.mail(&["send", "--now", "--json", "--from", "ada@here.example", to]),
            "text\n",
        )
    };
    let failed = now("y@gone.example");
    let said = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{said}");
    assert!(
        said.contains("not sent to y@gone.example: 10.0.2.2 answered RCPT TO with \"550 5.1.1"),
        "{said}"
    );
    let told: Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!((&told["is_gone"], &told["failed"][0]["address"]), (&true.into(), &"y@gone.example".into()));
    let why = output(&mut queue.mail(&["why", told["message"].as_str().unwrap()]));
    assert!(
        String::from_utf8_lossy(&why.stderr).contains("does not wait: not sent to y@gone.example"),
        "{why:?}"
    );
    assert!(now("ada@here.example").status.success());
    // For people, with the dialogue.
    let told = run(&mut queue.mail(&["why", "grey.example", "--dialogue"]));
    for part in [
        "1 attempt; next in 16 min",
        "  why     10.0.2.2",
        "C: RCPT TO:<x@grey.example>",
        "given up in 4 days",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    let told = run(&mut queue.mail(&["queue"]));
    assert!(told.contains("slow.example") && told.contains("at 14 destinations"), "{told}");
    assert!(run(&mut queue.mail(&["drop", "all"])).ends_with("recipients removed\n"));
    assert_eq!(run(&mut queue.mail(&["queue"])), "Nothing waits.\n");
    drop(slow);
    assert!(serve.end().success());
}
