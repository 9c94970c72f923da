//! Mail with the programs of others: swaks, msmtp, mutt, Python's smtplib, Postfix and OpenSMTPD. Needs root.

use crate::common::mail::{certificate, files, opensmtpd, postfix};
use crate::common::{Folder, PASSWORD, Serve, expect, inhost, output_given, peer, peers};
use inhost_interop::{Running, output, own_network, run, until};
use std::fs;
use std::process::Command;

/// A host `here.example` that takes mail at 2525 and 2587, in TLS where it is wanted.
struct Host {
    serve: Serve,
}

impl Host {
    fn start(name: &str, files: &Folder, more: &str) -> Host {
        let at = files.0.display();
        let config = format!(
            "link = [\"user,loopback=yes,forward=127.0.0.1:2525->25,forward=127.0.0.1:2587->587,forward=127.0.0.1:2465->465\"]\n[mail]\nenabled = true\n\
             host_name = \"here.example\"\nsubmission_port = 587\nsubmissions_port = 465\ndomains = [\"here.example\", \"lmtp.example\"]\n\
             queue = \"{at}/queue\"\nfolder = \"{at}/boxes\"\ncertificate = \"{at}/cert.pem\"\nkey = \"{at}/key.pem\"\n\
             retry_s = 1\n{more}"
        );
        let path = files.0.join("host.toml");
        fs::write(&path, config).unwrap();
        Host { serve: Serve::start(name, &["--config", path.to_str().unwrap()]) }
    }
    fn inhost(&self, files: &Folder, arguments: &[&str]) -> Command {
        let mut command = self.serve.inhost();
        command.arg("mail").args(arguments).arg("--config").arg(files.0.join("host.toml"));
        command
    }
}

/// Mail of users' programs comes in, mail to Postfix and OpenSMTPD goes out, and theirs comes in.
#[test]
fn programs_of_others() {
    if !own_network() || !peers(&["swaks", "msmtp", "mutt", "python3"]) {
        return;
    }
    let folder = Folder::new("mail-others");
    certificate(&folder.0);
    let _postfix = postfix(&folder, 2602, 2525);
    let _opensmtpd = opensmtpd(&folder, 2601, 2525);
    let mut sink = Command::new(peer("postfix", "usr/sbin/smtp-sink"));
    sink.env("LD_LIBRARY_PATH", peer("postfix", "usr/lib/postfix")).args(["-L", "-u", "nobody"]);
    let _lmtp = Running::start(sink.args(["127.0.0.1:2603", "9"]));
    let routes = "[mail.routes]\n\"lmtp.example\" = \"lmtp://10.0.2.2:2603\"\n\"os.example\" = \"smtp://10.0.2.2:2601\"\n\"pf.example\" = \"smtp://10.0.2.2:2602\"\n\
        [mail.tls]\n\"pf.example\" = \"if-offered\"\n";
    let host = Host::start("mail-others-host", &folder, routes);
    let at = folder.0.display();
    let new = folder.0.join("boxes/ada/new");

    // swaks: in clear text and in TLS; as a user, to both servers, after a log-in.
    let swaks = |arguments: &[&str]| {
        run(Command::new("swaks").args(["--server", "127.0.0.1", "--helo", "client.example"]).args(arguments))
    };
    swaks(&[
        "-p",
        "2525",
        "--from",
        "x@far.example",
        "--to",
        "ada@here.example",
        "--header",
        "Subject: clear",
    ]);
    let tls = ["-p", "2587", "-tls", "--auth", "PLAIN", "--auth-user", "ada", "--auth-password", PASSWORD];
    let said =
        swaks(&[&tls[..], &["--from", "ada@here.example", "--to", "a@pf.example,b@os.example"]].concat());
    assert!(said.contains("235 2.7.0") && said.contains("queued as"), "{said}");
    let from_postfix = &files(folder.0.join("pf/box/all/new"), 1)[0];
    assert!(
        from_postfix.contains("with ESMTPSA") && from_postfix.contains("(Postfix) with ESMTPS"),
        "{from_postfix}"
    );
    assert!(files(folder.0.join("os/box/new"), 1)[0].contains("for <b@os.example>"));
    files(new.clone(), 1);

    // Python's smtplib: pipelined by hand, a large message, an address in UTF-8.
    let python = format!(
        "import smtplib, ssl\n\
         c = ssl.create_default_context(cafile='{at}/cert.pem')\n\
         s = smtplib.SMTP('localhost', 2587, timeout=30); s.starttls(context=c); s.login('ada', '{PASSWORD}')\n\
         s.sendmail('ada@here.example', ['ada@here.example'], 'Subject: large\\r\\n\\r\\n' + ('.x' * 35 + '\\r\\n') * 20000)\n\
         from email.message import EmailMessage\n\
         m = EmailMessage(); m['Subject'] = 'Grüße'; m['From'] = 'ü@here.example'; m['To'] = 'ada@here.example'\n\
         m.set_content('ü'); s.send_message(m, mail_options=['SMTPUTF8']); s.quit()\n\
         s = smtplib.SMTP_SSL('localhost', 2465, context=c, timeout=30); s.login('ada', '{PASSWORD}'); s.quit()\n"
    );
    run(Command::new("/usr/bin/python3").args(["-c", &python]));
    let large = files(new.clone(), 3).into_iter().find(|text| text.contains("Subject: large")).unwrap();
    assert_eq!(large.matches("\n.x.x").count(), 20_000, "points are doubled and undoubled");
    assert_eq!(fs::read_dir(folder.0.join("queue/text")).unwrap().count(), 0, "nothing is left of it");

    // msmtp, with a certificate that it checks.
    let config = folder.0.join("msmtprc");
    fs::write(&config, format!(
        "account default\nhost localhost\nport 2587\ntls on\ntls_starttls on\ntls_trust_file {at}/cert.pem\nauth plain\n\
         user ada\npassword {PASSWORD}\nfrom ada@here.example\n"
    )).unwrap();
    run(Command::new("chmod").arg("600").arg(&config));
    let mut msmtp = Command::new("msmtp");
    msmtp.arg("-C").arg(&config).arg("ada@here.example");
    let done = output_given(&mut msmtp, "Subject: msmtp\n\nhello\n");
    assert!(done.status.success(), "{done:?}");
    files(new.clone(), 4);

    // mutt through our sendmail, and on our Maildir.
    let sendmail = format!("{} mail send --raw --config {at}/host.toml", env!("CARGO_BIN_EXE_inhost"));
    let muttrc = folder.0.join("muttrc");
    fs::write(
        &muttrc,
        format!(
            "set folder={at}/boxes\nset sendmail=\"{sendmail}\"\nset from=ada@here.example\nset use_envelope_from=yes\n\
        set copy=no\nset realname=Ada\n"
        ),
    )
    .unwrap();
    let mut mutt = Command::new("mutt");
    mutt.arg("-F").arg(&muttrc).args(["-s", "from mutt", "ada@here.example"]).env("HOME", &folder.0);
    let done = output_given(&mut mutt, "line\n.\nline\n");
    assert!(done.status.success(), "{done:?}");
    let box_path = folder.0.join("boxes/ada");
    files(new.clone(), 5);
    let count = format!(
        "import mailbox; m = mailbox.Maildir('{}'); print(sorted(str(x['Subject']) for x in m))",
        box_path.display()
    );
    let subjects = run(Command::new("/usr/bin/python3").args(["-c", &count]));
    for subject in ["clear", "large", "msmtp", "from mutt"] {
        assert!(subjects.contains(subject), "{subjects}");
    }
    let talk = format!(
        "set env(HOME) {at}\nspawn mutt -R -F {} -f {}\nwant {{from mutt}} 1\nsend q\nended 2\n",
        muttrc.display(),
        box_path.display()
    );
    assert!(expect(&talk, &folder.0).contains("msmtp"));

    // LMTP, as Postfix's sink takes it.
    let arguments = ["send", "--now", "--from", "ada@here.example", "x@lmtp.example", "y@lmtp.example"];
    let done = output_given(&mut host.inhost(&folder, &arguments), "text\n");
    assert!(String::from_utf8_lossy(&done.stdout).contains("is gone"), "{done:?}");

    // A domain of ours whose mailboxes another server knows is taken from anybody; others are not.
    swaks(&["-p", "2525", "--from", "x@far.example", "--to", "anybody@lmtp.example"]);
    let mut relay = Command::new("swaks");
    relay.args(["--server", "127.0.0.1", "-p", "2525", "--from", "x@far.example", "--to", "a@pf.example"]);
    let refused = output(&mut relay);
    assert!(String::from_utf8_lossy(&refused.stdout).contains("550 5.7.1"), "{refused:?}");

    // Theirs to us, in TLS that both require.
    for (port, from) in [("2601", "b@os.example"), ("2602", "a@pf.example")] {
        swaks(&["-p", port, "--from", from, "--to", "ada@here.example", "--header", "Subject: theirs"]);
    }
    let theirs = || {
        let all = files(new.clone(), 5);
        let in_tls = |text: &&String| text.contains("Subject: theirs") && text.contains("with ESMTPS");
        Some(all.iter().filter(in_tls).count()).filter(|count| *count == 2)
    };
    until("mail of both servers", theirs);
    assert_eq!(run(&mut host.inhost(&folder, &["queue"])), "Nothing waits.\n");
    assert!(host.serve.end().success());
}

/// `inhost mail catch`: a message comes by smtplib, is told on the terminal and by the interface; a rule fails to order.
#[test]
fn the_catcher_takes_and_refuses() {
    let folder = Folder::new("mail-catch");
    let port = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (smtp, page) = (port(), port());
    let mut catch = inhost(&folder.0);
    catch.args([
        "mail",
        "catch",
        "--smtp",
        &format!("127.0.0.1:{smtp}"),
        "--page",
        &format!("127.0.0.1:{page}"),
    ]);
    let mut catch =
        Running::start(catch.args(["--rule", "recipient=full@* reply=\"452 4.2.2 Mailbox full\" first=1"]));
    catch.wait_for("page");
    let python = format!(
        "import smtplib\ns = smtplib.SMTP('127.0.0.1', {smtp}, timeout=30)\n\
         try: s.sendmail('a@b.example', ['full@c.example'], 'x'); print('taken')\n\
         except smtplib.SMTPRecipientsRefused as e: print(e.recipients)\n\
         s.sendmail('shop@b.example', ['ada@c.example'], 'Subject: Your order\\r\\n\\r\\nThanks\\x1b[2J\\r\\n')\ns.quit()\n"
    );
    let said = run(Command::new("/usr/bin/python3").args(["-c", &python]));
    assert!(said.contains("452") && said.contains("Mailbox full"), "{said}");
    let line = catch.wait_for("Your order");
    assert!(line.contains("shop@b.example > ada@c.example"), "{line}");
    let url = format!("http://127.0.0.1:{page}/api/v1/messages/latest/text");
    assert!(run(Command::new("curl").args(["-s", &url])).starts_with("Thanks"));
    catch.signal(rustix::process::Signal::INT);
    assert!(catch.wait().success());
}

/// `inhost mail read` and `write`: a mailbox that Python made is read, a message answered with an editor, one deleted;
/// Python sees what was done, and the answer waits in the queue.
#[test]
fn a_person_reads_and_answers() {
    let folder = Folder::new("mail-read");
    let at = folder.0.display();
    let python = |script: &str| run(Command::new("/usr/bin/python3").args(["-c", script]));
    python(&format!(
        "import mailbox\nm = mailbox.Maildir('{at}/box')\n\
         def add(s, text, more=''): m.add('From: Ada <ada@example.net>\\nTo: bob@here.example\\nMessage-ID: <' + s + '@x>\\n'\
          + more + 'Date: Wed, 25 Nov 2026 0' + str(len(m)) + ':00:00 +0000\\nSubject: ' + s + '\\n\\n' + text + '\\n')\n\
         add('one', 'At one?'); add('two', 'x\\x1b[2J'); add('three', 'so?', 'References: <one@x>\\n')"
    ));
    let editor = folder.0.join("editor");
    fs::write(&editor, "#!/bin/sh\necho 'Yes, at one.' >> \"$1\"\n").unwrap();
    run(Command::new("chmod").arg("+x").arg(&editor));
    let queue = folder.0.join("queue");
    let mail = |arguments: &[&str]| {
        let mut command = inhost(&folder.0);
        command.arg("mail").args(arguments).arg("--queue").arg(&queue);
        command
    };
    let boxed = folder.0.join("box");
    let boxed = boxed.to_str().unwrap();
    let listed: serde_json::Value =
        serde_json::from_str(&run(&mut mail(&["read", boxed, "--json"]))).unwrap();
    let subjects: Vec<_> =
        listed.as_array().unwrap().iter().map(|one| one["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects, ["two", "one", "three"], "the thread with the latest message is last");
    let printed = run(&mut mail(&["read", boxed, "--print", "1"]));
    assert!(printed.contains("Subject: two\n") && printed.contains("x\u{fffd}[2J"), "{printed}");
    let talk = format!(
        "set env(EDITOR) {}\nspawn {} mail read {boxed} --from bob@here.example --queue {}\nwant {{3 unread.*mail> }} 1\n\
         send \"2\\r\"\nwant {{At one.*mail> }} 2\nsend \"r\\r\"\nwant {{Subject: Re: one}} 3\nwant {{send, edit}} 4\nsend \"s\\r\"\n\
         want {{queued as m1.*mail> }} 5\nsend \"1\\r\"\nwant {{Subject: two.*mail> }} 6\nsend \"d\\r\"\nwant {{takes that back.*mail> }} 6\nsend \"/so\\r\"\nwant {{1 message,.*mail> }} 7\n\
         send \"q\\r\"\nwant {{1 removed}} 8\nended 9\n",
        editor.display(),
        env!("CARGO_BIN_EXE_inhost"),
        queue.display()
    );
    expect(&talk, &folder.0);
    let seen = python(&format!(
        "import mailbox\nfor m in sorted(mailbox.Maildir('{at}/box'), key=lambda m: m['Subject']): print(m['Subject'], m.get_flags())"
    ));
    assert_eq!(seen, "one RS\nthree \n");
    let text = python(&format!(
        "import sqlite3\nprint(sqlite3.connect('{at}/queue/queue.sqlite').execute('SELECT body FROM message').fetchone()[0].decode())"
    ));
    for part in ["In-Reply-To: <one@x>", "> At one?", "Yes, at one.", "<ada@example.net>"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let mut write = mail(&["write", "ada@example.net", "--from", "bob@here.example", "--subject", "New"]);
    let done = output_given(write.env("EDITOR", &editor), "s\n");
    assert!(String::from_utf8_lossy(&done.stdout).contains("queued as m2"), "{done:?}");
    // An editor that fails the second time takes nothing away.
    fs::write(&editor, "#!/bin/sh\n[ -e once ] && { echo more >> \"$1\"; exit 1; }\ntouch once\necho 'An hour of work.' >> \"$1\"\n").unwrap();
    let mut write = mail(&["write", "ada@example.net", "--from", "bob@here.example", "--subject", "Kept"]);
    let done = output_given(write.env("EDITOR", &editor), "e\nw draft\n");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && said.contains("what you wrote is in "), "{done:?}");
    assert!(fs::read_to_string(folder.0.join("draft")).unwrap().contains("An hour of work."));
}

#[test]
fn a_subject_is_one_line() {
    let folder = Folder::new("mail-subject");
    let mut send = inhost(&folder.0);
    send.args([
        "mail",
        "send",
        "--from",
        "bob@here.example",
        "--subject",
        "Lunch\r\nX-Evil: yes",
        "--queue",
        "queue",
    ]);
    let done = output_given(send.arg("ada@example.net"), "x\n");
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stderr).contains("--subject: a subject is one line"), "{done:?}");
}

/// A stranger's message that bears the result of a check in this host's name is delivered without it, checked or not.
#[test]
fn forged_results_of_checks_are_removed() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("mail-forged");
    certificate(&folder.0);
    let host = Host::start("mail-forged-host", &folder, "check = \"off\"\n");
    let forged = "Authentication-Results: here.example; dmarc=pass header.from=bank.example\r\n";
    let message =
        format!("{forged}Authentication-Results: far.example; spf=pass\r\nSubject: x\r\n\r\ntext\r\n");
    let path = folder.0.join("message");
    let mut curl = Command::new("curl");
    curl.args([
        "-sS",
        "smtp://127.0.0.1:2525",
        "--mail-from",
        "x@far.example",
        "--mail-rcpt",
        "ada@here.example",
        "-T",
    ]);
    fs::write(&path, &message).unwrap();
    run(curl.arg(&path));
    let delivered = &files(folder.0.join("boxes/ada/new"), 1)[0];
    assert!(
        !delivered.contains("bank.example") && delivered.contains("far.example; spf=pass"),
        "{delivered}"
    );
    // The certificate is nobody's but its own, and named.
    fs::write(folder.0.join("pw"), PASSWORD).unwrap();
    run(Command::new("chmod").arg("600").arg(folder.0.join("pw")));
    let mut send = inhost(&folder.0);
    send.args(["mail", "send", "--server", "smtps://ada@localhost:2465", "--password-file", "pw"]);
    send.args(["--authorities", "cert.pem", "--from", "ada@here.example", "ada@here.example"]);
    let done = output_given(&mut send, "in TLS\n");
    assert!(done.status.success(), "{done:?}");
    // A header that cannot be looked through is not taken.
    fs::write(&path, "A: b\r\n".repeat(5001) + &message).unwrap();
    let refused = output(&mut curl);
    assert!(!refused.status.success(), "{refused:?}");
    assert!(host.serve.end().success());
}
