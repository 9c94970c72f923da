//! What `inhost serve` makes of its configuration: errors name file and line, and the banner says how to reach
//! every service.

use crate::common::{Folder, inhost};
use inhost_interop::{Running, output, run, until};
use rustix::process::Signal;
use std::process::Command;

/// What `serve` says of a `host.toml` that it refuses.
fn refusal(text: &str) -> String {
    let folder = Folder::new("refused");
    let path = folder.0.join("host.toml");
    std::fs::write(&path, text).unwrap();
    let done = output(inhost(&folder.0).args(["serve", "--config"]).arg(&path));
    assert_eq!(done.status.code(), Some(2), "{text}");
    String::from_utf8(done.stderr).unwrap()
}

#[test]
fn a_wrong_value_is_told_with_file_and_line_and_what_could_stand_there() {
    let cases = [
        ("\nmemory = \"lots\"\n", "host.toml, line 2: memory", "64M"),
        ("link = [\n  \"user\",\n  \"user,los=5%\",\n]\n", "host.toml, line 3: link", "gso, gro, loopback"),
        ("link = [\"user,loss=150%\"]\n", "host.toml, line 1: link", "loss"),
        (
            "[ftp]\nenabled = false\nrights = \"all\"\n",
            "host.toml, line 3: ftp.rights",
            "\"read\" or \"write\"",
        ),
        (
            "[[ftp.user]]\nname = \"a\"\nroot = \"/\"\nrights = \"all\"\n",
            "line 4: ftp.user.rights",
            "\"read\"",
        ),
        ("[tftp]\nwindow = 0\n", "host.toml, line 2: tftp.window", "give 1 to"),
        ("[names]\n\nallow = [\"everybody\"]\n", "host.toml, line 3: names.allow", "192.0.2.0/24"),
        ("[log]\nlevel = \"loud\"\n", "host.toml, line 2: log.level", "telnet"),
        ("[telnet]\nprot = 23\n", "line 2", "`enabled`, `port`"),
    ];
    for (text, place, expected) in cases {
        let said = refusal(text);
        assert!(said.contains(place) && said.contains(expected), "{text}: {said}");
    }
}

#[test]
fn the_banner_says_how_to_reach_every_service_that_is_on() {
    let folder = Folder::new("banner");
    let root = folder.0.display();
    let text = format!(
        "link = [\"user,forward=127.0.0.1:0->23,forward=127.0.0.1:0->21\"]\n\
         [ftp]\nenabled = true\nroot = \"{root}\"\n[tftp]\nenabled = true\nroot = \"{root}\"\n[names]\nenabled = true\n"
    );
    std::fs::write(folder.0.join("host.toml"), text).unwrap();
    let banner = Running::start_showing_errors(inhost(&folder.0).arg("serve")).wait_for("to end.");
    let has = |words: &[&str]| banner.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(has(&["telnet 127.0.0.1", "log in"]), "{banner}");
    assert!(has(&["curl ftp://127.0.0.1:"]), "{banner}");
    assert!(has(&["port 69 cannot be reached", "forward=udp:127.0.0.1:2069->69"]), "{banner}");
    assert!(has(&["port 53 cannot be reached", "forward=udp:127.0.0.1:2053->53"]), "{banner}");
    assert!(has(&["port 7 cannot be reached", "forward=127.0.0.1:2007->7"]), "{banner}");
    assert!(!has(&["password"]) || has(&["not a terminal"]), "only a terminal is told a password: {banner}");
}

#[test]
fn a_host_whose_file_is_gone_at_a_reload_stays_as_it_was() {
    let folder = Folder::new("file-gone");
    let file = folder.0.join("host.toml");
    std::fs::write(&file, "link = [\"user,forward=127.0.0.1:0->23\"]\n[ftp]\nenabled = false\n").unwrap();
    let mut serve = Running::start(inhost(&folder.0).arg("serve"));
    serve.wait_for("to end.");
    std::fs::remove_file(&file).unwrap();
    serve.signal(Signal::HUP);
    let said = serve.wait_for("the configuration stays as it was: host.toml is gone");
    assert!(!said.contains("no longer set"), "{said}");
}

/// A host with `[ftp]` like this: its status and what it says when it is ended at its banner, or ends before.
fn ftp_log(folder: &Folder, ftp: &str) -> (Option<i32>, String) {
    let root = folder.0.display();
    let text =
        format!("link = [\"user,forward=127.0.0.1:0->21\"]\n[ftp]\nenabled = true\nroot = \"{root}\"\n{ftp}");
    std::fs::write(folder.0.join("host.toml"), text).unwrap();
    let mut host = Running::start(inhost(&folder.0).arg("serve"));
    let is_running = until("the banner or the end", || {
        let has_ended = host.child.try_wait().unwrap().is_some();
        (has_ended || host.printed().contains("to end.")).then_some(!has_ended)
    });
    if is_running {
        host.signal(Signal::TERM);
    }
    (host.wait().code(), host.printed())
}

#[test]
fn a_tls_key_that_others_can_read_is_refused() {
    if !crate::common::peers(&["openssl"]) {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("tls-key");
    let made = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
    let (key, certificate) = (made("key.pem"), made("cert.pem"));
    let request =
        ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=inhost.test"];
    run(Command::new("openssl").args([&request[..], &["-keyout", &key, "-out", &certificate]].concat()));
    let ftp = format!("certificate = \"{certificate}\"\nkey = \"{key}\"\n");
    for (mode, is_refused) in [(0o644, true), (0o640, true), (0o602, true), (0o600, false), (0o400, false)] {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        let (status, said) = ftp_log(&folder, &ftp);
        assert_eq!(status, Some(i32::from(is_refused)), "{mode:o}: {said}");
        let is_explained = said.contains("others may read this key") && said.contains("chmod 600");
        assert_eq!(is_explained, is_refused, "{mode:o}: {said}");
    }
}

#[test]
fn a_folder_for_a_user_who_is_none_is_warned_of() {
    let folder = Folder::new("no-user");
    crate::common::add_ada(&folder.0, &[]);
    let user = |name: &str| format!("[[ftp.user]]\nname = \"{name}\"\nroot = \"{}\"\n", folder.0.display());
    let (status, said) = ftp_log(&folder, &(user("ada") + &user("eve")));
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("WARN") && said.contains("inhost user add eve"), "{said}");
    assert!(!said.contains("inhost user add ada"), "{said}");
}
