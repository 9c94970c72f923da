//! What sets the command up: doctor, configuration check and schema, manual pages, completions.

use crate::common::{Folder, inhost};
use inhost_interop::{output, run};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a program of others, with what it has to say of a failure.
fn runs(program: &str, arguments: &[&str]) -> String {
    let done = output(Command::new(program).args(arguments).stdin(Stdio::null()));
    assert!(done.status.success(), "{program} {arguments:?}: {}{}", text(&done.stdout), text(&done.stderr));
    text(&done.stdout) + &text(&done.stderr)
}

fn doctor(command: &mut Command) -> (Output, serde_json::Value) {
    let done = output(command.stdin(Stdio::null()));
    let report = serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"));
    (done, report)
}

fn state<'a>(report: &'a serde_json::Value, subject: &str) -> &'a serde_json::Value {
    report["findings"].as_array().unwrap().iter().find(|found| found["subject"] == subject).unwrap()
}

#[test]
fn a_full_disk_behind_standard_output_is_told() {
    let folder = Folder::new("full");
    let commands = [
        &["lab", "list"][..],
        &["lab", "show", "mit-6-4"],
        &["mail", "queue"],
        &["--help"],
        &["mail", "send", "--help"],
        &["--version"],
        &["config", "schema"],
    ];
    for arguments in commands {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let child = inhost(&folder.0).args(arguments).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let done = child.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{arguments:?}: {done:?}");
        assert!(
            text(&done.stderr).contains("cannot write to standard output: No space"),
            "{arguments:?}: {done:?}"
        );
    }
}

#[test]
fn the_doctor_says_of_everything_whether_it_works() {
    let folder = Folder::new("doctor");
    // The mode of a folder made here depends on the caller's umask.
    run(Command::new("chmod").arg("700").arg(&folder.0));
    let (done, report) = doctor(inhost(&folder.0).args(["doctor", "--json", "--timeout", "1"]));
    let subjects = [
        "privileges",
        "tap and tun",
        "ping",
        "descriptors",
        "XDG_RUNTIME_DIR",
        "control socket",
        "link user",
        "resolver",
    ];
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.iter().map(|found| found["subject"].as_str().unwrap()).collect::<Vec<_>>(), subjects);
    for found in findings {
        assert_eq!(found["advice"].is_null(), found["state"] == "ok", "{found}");
    }
    let fails = findings.iter().any(|found| found["state"] == "fails");
    assert_eq!(report["ok"], !fails);
    assert_eq!(done.status.code(), Some(i32::from(fails)));
    for subject in ["XDG_RUNTIME_DIR", "control socket", "link user"] {
        assert_eq!(state(&report, subject)["state"], "ok", "{report:#}");
    }
    let shown = output(inhost(&folder.0).args(["doctor", "-W", "1"]));
    let shown = text(&shown.stdout);
    assert!(subjects.iter().all(|subject| shown.contains(subject)), "{shown}");
    assert!(!shown.contains('\x1b'), "a pipe gets no colours: {shown}");
}

#[test]
fn the_doctor_sees_a_folder_that_others_can_write_and_too_few_descriptors() {
    let folder = Folder::new("doctor-ill");
    run(Command::new("chmod").arg("770").arg(&folder.0));
    let (done, report) = doctor(inhost(&folder.0).args(["doctor", "--json", "--timeout", "1"]));
    assert_eq!(done.status.code(), Some(1));
    let found = state(&report, "XDG_RUNTIME_DIR");
    assert_eq!(found["state"], "fails", "{report:#}");
    assert!(found["advice"].as_str().unwrap().contains("chmod 700"), "{found}");
    assert_eq!(state(&report, "control socket")["state"], "fails", "{report:#}");
    assert!(text(&done.stderr).contains("XDG_RUNTIME_DIR"), "{done:?}");
    let limited = format!("ulimit -n 50; exec {} doctor --json --timeout 1", env!("CARGO_BIN_EXE_inhost"));
    let (_, report) = doctor(Command::new("sh").args(["-c", &limited]).env("XDG_RUNTIME_DIR", &folder.0));
    assert_eq!(state(&report, "descriptors")["state"], "fails", "{report:#}");
}

#[test]
fn a_configuration_is_checked_with_what_it_names() {
    let folder = Folder::new("check");
    let root = folder.0.display();
    let check = |content: Option<&str>, arguments: &[&str]| {
        let path = folder.0.join("host.toml");
        let _ = std::fs::remove_file(&path);
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
            run(Command::new("chmod").arg("600").arg(&path));
        }
        let done = output(inhost(&folder.0).args(["config", "check"]).args(arguments));
        (done.status.code().unwrap(), text(&done.stdout), text(&done.stderr))
    };
    let served = format!("[ftp]\nenabled = true\nroot = \"{root}\"\n");
    let (status, said, _) = check(Some(&served), &[]);
    assert!(status == 0 && said.contains("host.toml is right") && said.contains("telnet, ftp"), "{said}");
    let (status, said, _) = check(Some("link = [\"tap:in0\"]\n[telnet]\nenabled = false\n"), &["--json"]);
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (status, &report["ok"], &report["services"][0]),
        (0, &true.into(), &"little".into()),
        "{said}"
    );
    let (status, _, why) = check(Some("[ftp]\nenabled = true\nroot = \"/nowhere/at/all\"\n"), &[]);
    assert!(status == 1 && why.contains("/nowhere/at/all"), "{status}: {why}");
    let (status, said, why) = check(Some("\n[tftp]\nwindow = 0\n"), &["host.toml", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(status == 2 && why.contains("host.toml, line 3: tftp.window"), "{status}: {why}");
    assert!(report["ok"] == false && report["error"].as_str().unwrap().contains("line 3"), "{said}");
    let (status, _, why) = check(None, &[]);
    assert!(status == 2 && why.contains("name a file"), "{status}: {why}");
}

/// What a running host would open later or in vain is opened; what it makes itself need not be there.
#[test]
fn a_configuration_is_wrong_that_names_what_is_not_there_or_a_thing_twice() {
    let folder = Folder::new("check-more");
    let path = folder.0.join("host.toml");
    std::fs::write(folder.0.join("file"), "").unwrap();
    std::fs::write(folder.0.join("hosts"), "10.9.0.5 far\n").unwrap();
    let check = |content: &str| {
        std::fs::write(&path, content.replace("HERE", folder.0.to_str().unwrap())).unwrap();
        let done = output(inhost(&folder.0).args(["config", "check"]).arg(&path));
        (done.status.code().unwrap(), text(&done.stderr))
    };
    let made = "hosts = \"HERE/hosts\"\n[record]\nfolder = \"HERE/new/records\"\n[history]\nenabled = true\nfolder = \"HERE/h\"\n\
                [telnet]\nshell = \"/bin/sh\"\n[mail]\nenabled = true\nqueue = \"HERE/q\"\n";
    assert_eq!(check(made), (0, String::new()));
    let ftp =
        "link = [\"user,forward=127.0.0.1:2121->21FORWARDS\"]\n[ftp]\nenabled = true\nanonymous = \"HERE\"\n";
    for (forwards, ports, note) in [
        ("", "", Some("ftp.passive_ports is not set")),
        (",forward=127.0.0.1:5000->5000", "passive_ports = \"5000-5001\"\n", Some("no link forwards 5001")),
        (",forward=127.0.0.1:5000->5000", "passive_ports = \"5000\"\n", None),
    ] {
        std::fs::write(
            &path,
            ftp.replace("FORWARDS", forwards).replace("HERE", &folder.0.to_string_lossy()) + ports,
        )
        .unwrap();
        let said = run(inhost(&folder.0).args(["config", "check"]).arg(&path));
        assert_eq!(note.is_some(), said.contains("  note "), "{said}");
        assert!(said.contains(note.unwrap_or_default()), "{said}");
    }
    let missing = [
        ("\nhosts = \"HERE/none\"\n", "line 2: hosts = "),
        ("[telnet]\nshell = \"HERE/none\"\n", "line 2: telnet.shell = "),
        ("[telnet]\nshell = \"HERE/file\"\n", "line 2: telnet.shell = "),
        ("[telnet]\nnews = \"HERE/none\"\n", "line 2: telnet.news = "),
        ("[record]\nfolder = \"HERE/file\"\n", "file is not a folder"),
        ("[history]\nenabled = true\nfolder = \"HERE/file/h\"\n", "line 3: history.folder = "),
        ("[mail]\nenabled = true\nqueue = \"HERE/file\"\n", "line 3: mail.queue = "),
        (
            "[telnet.applications.edit]\nprogram = [\"/none/edit\"]\n",
            "line 2: telnet.applications.edit.program = ",
        ),
        ("[finger]\nenabled = true\n\nplans = \"HERE/none\"\n", "line 4: finger.plans"),
        (
            "[jobs]\nenabled = true\nport = 0\n[jobs.places.big]\nkind = \"host\"\nhost = \"h\"\nuser = \"u\"\n\
             password_file = \"HERE/none\"\n",
            "line 8: jobs.places.big.password_file = ",
        ),
    ];
    for (content, said) in missing {
        let (status, why) = check(content);
        assert!(
            status == 1 && why.contains("host.toml, ") && why.contains(said),
            "{content}: {status}: {why}"
        );
    }
    let wrong = [
        ("[finger]\nenabled = true\nport = 23\n", "line 3: finger.port = \"23\": telnet.port has this port"),
        ("[tftp]\nenabled = true\nroot = \"/\"\nport = 7\n", "tftp.port = \"7\": little has this port"),
        ("[telnet]\nport = 0\n", "line 2: telnet.port = \"0\": give a port from 1"),
        (
            "link = [\n\"user,forward=127.0.0.1:2323->23,forward=127.0.0.1:2323->7\",\n]\n",
            "line 2: link = \"user,forward=127.0.0.1:2323->23,forward=127.0.0.1:2323->7\": 127.0.0.1:2323 is forwarded twice",
        ),
        ("\nlink = []\n", "line 2: link = []: a host needs a link"),
        (
            "memory = \"64M\"\nlink = \"user\"\n",
            "line 2: link: invalid type: string \"user\", expected a list",
        ),
        ("\n[telnt]\nport = 23\n", "line 2: unknown key `telnt`"),
        ("\n[telnt]\nport = 23\n", "or a service: `telnet`, "),
    ];
    for (content, said) in wrong {
        let (status, why) = check(content);
        assert!(
            status == 2 && why.contains("host.toml, ") && why.contains(said),
            "{content}: {status}: {why}"
        );
        assert_eq!(why.lines().count(), 1, "{why}");
    }
}

/// The schema as an independent validator reads it, with every example of the pages.
#[test]
fn the_schema_takes_the_examples_of_the_pages_and_refuses_what_the_host_refuses() {
    let module = output(Command::new("sh").args(["-c", "/usr/bin/python3 -c 'import jsonschema'"]));
    if !module.status.success() && !crate::common::peers(&["python3 with jsonschema"]) {
        return;
    }
    let folder = Folder::new("schema");
    let printed = run(inhost(&folder.0).args(["config", "schema"]));
    std::fs::write(folder.0.join("schema.json"), printed).unwrap();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut examples = Vec::new();
    for page in ["serve", "ftp", "tftp", "names", "finger", "dhcp"] {
        let page = std::fs::read_to_string(docs.join(format!("{page}.md"))).unwrap();
        let blocks = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
        examples.extend(blocks.map(|block| (block, true)));
    }
    let shown = examples.len();
    assert!(shown >= 8, "{shown}");
    for wrong in [
        "memory = 5",
        "[telnet]\nprot = 23",
        "[telnet]\nport = 70000",
        "[tcp]\nprofile = \"bsd\"",
        "[ftp]\nrights = \"all\"",
    ] {
        examples.push((wrong.to_owned(), false));
    }
    let judge = "import json, sys, tomllib, jsonschema\n\
        schema = json.load(open(sys.argv[1]))\n\
        jsonschema.Draft7Validator.check_schema(schema)\n\
        validator = jsonschema.Draft7Validator(schema)\n\
        print(not list(validator.iter_errors(tomllib.loads(sys.argv[2]))))";
    let schema = folder.0.join("schema.json");
    for (example, is_right) in examples {
        let said = runs("/usr/bin/python3", &["-c", judge, schema.to_str().unwrap(), &example]);
        assert_eq!(said.trim() == "True", is_right, "{example}");
    }
}

fn completions(folder: &Folder, shell: &str) -> PathBuf {
    let printed = run(inhost(&folder.0).args(["completions", shell]));
    assert!(!printed.is_empty());
    let path = folder.0.join(shell);
    std::fs::write(&path, printed).unwrap();
    path
}

#[test]
fn shells_complete_the_command() {
    if !crate::common::peers(&["bash", "fish", "zsh"]) {
        return;
    }
    let folder = Folder::new("completions");
    let bash = completions(&folder, "bash");
    let script = format!(
        "source {}; COMP_WORDS=(inhost tel); COMP_CWORD=1; _inhost inhost tel inhost; echo \"${{COMPREPLY[@]}}\";\
         COMP_WORDS=(inhost telnet --vi); COMP_CWORD=2; _inhost inhost --vi telnet; echo \"${{COMPREPLY[@]}}\"",
        bash.display()
    );
    assert_eq!(runs("bash", &["--norc", "-c", &script]), "telnet\n--via\n");
    let fish = completions(&folder, "fish");
    let script =
        format!("source {}; complete -C 'inhost tel'; complete -C 'inhost telnet --vi'", fish.display());
    let said = runs("fish", &["--no-config", "-c", &script]);
    assert!(said.contains("telnet") && said.contains("--via"), "{said}");
    let zsh = completions(&folder, "zsh");
    runs("zsh", &["-f", "-n", zsh.to_str().unwrap()]);
    let text = std::fs::read_to_string(zsh).unwrap();
    assert!(text.starts_with("#compdef inhost") && text.contains("(telnet)"), "{text}");
}

#[test]
fn manual_pages_are_set_without_a_warning() {
    if !crate::common::peers(&["man"]) {
        return;
    }
    let folder = Folder::new("man");
    run(inhost(&folder.0).args(["man", "man1"]));
    let pages: Vec<_> =
        std::fs::read_dir(folder.0.join("man1")).unwrap().map(|page| page.unwrap().path()).collect();
    assert!(pages.len() > 20, "{pages:?}");
    for page in &pages {
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"]).arg(page).env("LC_ALL", "C.UTF-8");
        let done = output(man.env("MANROFFSEQ", "").env("MANWIDTH", "100"));
        assert!(
            done.status.success() && done.stderr.is_empty(),
            "{}: {}",
            page.display(),
            text(&done.stderr)
        );
    }
    let mut man = Command::new("man");
    man.args(["-l", "man1/inhost-telnet.1"]).current_dir(&folder.0);
    let shown = text(&output(man.env("MANPAGER", "cat").env("MANWIDTH", "100")).stdout);
    assert!(shown.contains("  inhost telnet 192.0.2.7\n") && shown.contains("EXAMPLES"), "{shown}");
}

#[test]
fn the_configuration_of_the_package_is_right() {
    let folder = Folder::new("packaged");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/debian/host.toml");
    let said = run(inhost(&folder.0).args(["config", "check", file]));
    assert!(said.contains("services  little\n"), "no login before a user is made");
}
