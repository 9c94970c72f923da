//! Batch jobs: submitted here and over the network, held, released, cancelled, followed, delivered.

use crate::common::mail::certificate;
use crate::common::{Folder, PASSWORD, Serve, add_ada, inhost, peers};
use inhost_interop::{Running, output, run, until};
use serde_json::Value;
use std::path::Path;

fn config(folder: &Folder) -> String {
    let path = folder.0.join("host.toml");
    let text = format!(
        "link = [\"user,forward=127.0.0.1:0->71\"]\n[jobs]\nenabled = true\ncleartext = true\nfolder = {:?}\n",
        folder.0.join("queue")
    );
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn script(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn state(serve: &Serve, config: &str, id: &str) -> String {
    let shown = run(serve.inhost().args(["job", "show", "--json", "--config", config, id]));
    let job: Value = serde_json::from_str(&shown).unwrap();
    job["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_job_is_submitted_held_released_followed_and_cancelled() {
    let folder = Folder::new("jobs-config");
    let config = config(&folder);
    let serve = Serve::start("jobs", &["--config", &config]);
    let job = |words: &[&str]| output(serve.inhost().arg("job").args(words).args(["--config", &config]));
    let text = |words: &[&str]| {
        let done = job(words);
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let counts = script(&folder.0, "count.sh", "for i in 1 2 3; do echo $NAME $i; done; echo no >&2\n");
    let out = folder.0.join("out-%j");
    let waited =
        text(&["submit", "--follow", "--env", "NAME=ada", "--deliver", out.to_str().unwrap(), &counts]);
    assert_eq!(waited, "ada 1\nada 2\nada 3\n");
    assert_eq!(text(&["log", "--error", "1"]), "no\n");
    until("delivery", || (folder.0.join("out-1").exists()).then_some(()));
    assert_eq!(std::fs::read_to_string(folder.0.join("out-1")).unwrap(), waited);

    // A variable is the script's, and not that of what watches over it. A retry's output follows that of the first attempt.
    let path = script(&folder.0, "path.sh", "echo $PATH\n");
    assert_eq!(text(&["submit", "--follow", "--env", "PATH=/nowhere", &path]), "/nowhere\n");
    let again = script(&folder.0, "again.sh", "echo $INHOST_JOB_ATTEMPT; [ $INHOST_JOB_ATTEMPT = 2 ]\n");
    let retried = text(&["submit", "--follow", "--retries", "1", "--retry-delay", "1s", &again]);
    assert_eq!(retried, "1\n2\n");
    // Held, it does not start; an array after it waits; released, both end.
    let held = text(&["submit", "--hold", &counts]);
    assert_eq!(held, "job 4\n");
    let array = script(&folder.0, "part.sh", "#!/bin/sh\necho part $INHOST_ARRAY_INDEX\n");
    assert_eq!(text(&["submit", "--array", "4-6%2", "--after", "afterok:4", &array]), "job 5\n");
    assert_eq!((state(&serve, &config, "4"), state(&serve, &config, "8")), ("held".into(), "waiting".into()));
    assert_eq!(text(&["show", "5"]).lines().count(), 4, "three elements and a title");
    assert_eq!(text(&["release", "4"]), "job 4 released\n");
    until("the array", || (state(&serve, &config, "8") == "done").then_some(()));
    assert_eq!(text(&["log", "--follow", "8"]), "part 6\n");

    // A status is the command's, and a job that does not end by itself is cancelled.
    let fails = script(&folder.0, "fails.sh", "exit 3\n");
    let failed = job(&["submit", "--follow", &fails]);
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    let hint = "inhost: job 9 failed: exit status 3; inhost job show 9 tells more\n";
    assert!(!failed.status.success() && said.ends_with(hint), "{said}");
    let sleeps = script(&folder.0, "sleeps.sh", "exec sleep 600\n");
    assert_eq!(text(&["submit", &sleeps]), "job 10\n");
    until("its start", || (state(&serve, &config, "10") == "running").then_some(()));
    let listed = text(&["list", "--state", "running"]);
    assert!(listed.contains("sleeps") && !listed.contains("count"), "{listed}");
    assert_eq!(text(&["cancel", "10"]), "job 10 cancelled\n");
    until("its end", || (state(&serve, &config, "10") == "cancelled").then_some(()));
    assert_eq!(serve.end().code(), Some(0));
}

#[test]
fn a_job_runs_at_another_host_and_its_output_comes_back() {
    let folder = Folder::new("jobs-there-config");
    let config = config(&folder);
    let serve = Serve::start("jobs-there", &["--config", &config]);
    let password = script(&folder.0, "password", PASSWORD);
    let at = format!("http://ada@{}", serve.forwarded(71));
    let caller = Folder::new("jobs-caller");
    let job = |words: &[&str]| {
        let there = ["--server", &at, "--password-file", &password, "--link", "user"];
        output(inhost(&caller.0).arg("job").args(words).args(there))
    };
    let says = script(&folder.0, "says.sh", "echo from $INHOST_JOB_NAME; sleep 1; echo and on\n");
    let waited = job(&["submit", "--follow", "--name", "afar", &says]);
    assert_eq!(String::from_utf8_lossy(&waited.stdout), "from afar\nand on\n", "{waited:?}");
    assert!(waited.status.success());
    // The same key again is the same job.
    for _ in 0..2 {
        let done = job(&["submit", "--hold", "--key", "k1", &says]);
        assert_eq!(String::from_utf8_lossy(&done.stdout), "job 2\n", "{done:?}");
    }
    let listed = job(&["list", "--json"]);
    let jobs: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(jobs.as_array().unwrap().len(), 2, "{jobs}");
    assert!(job(&["cancel", "2"]).status.success());
    let unknown = job(&["show", "99"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no job 99"), "{unknown:?}");
    let wrong = script(&folder.0, "wrong", "guess");
    let refused = output(inhost(&caller.0).args([
        "job",
        "list",
        "--server",
        &at,
        "--password-file",
        &wrong,
        "--link",
        "user",
    ]));
    assert!(!refused.status.success(), "{refused:?}");
    assert_eq!(serve.end().code(), Some(0));
}

#[test]
fn a_job_goes_on_while_its_host_is_replaced() {
    let folder = Folder::new("jobs-upgrade-config");
    let config = config(&folder);
    let serve = Serve::start("jobs-upgrade", &["--config", &config]);
    let go = folder.0.join("go");
    let text = format!("until [ -e {} ]; do sleep 0.1; done; echo went on\n", go.display());
    let waits = script(&folder.0, "waits.sh", &text);
    let submit = |path: &str| run(serve.inhost().args(["job", "submit", "--config", &config, path]));
    submit(&waits);
    until("the job", || (state(&serve, &config, "1") == "running").then_some(()));

    let mut new =
        Running::start(serve.inhost().args(["serve", "--take-over", "--log", "info", "--config", &config]));
    new.wait_for("taken over");
    submit(&script(&folder.0, "second.sh", "echo second\n"));
    until("a job of the new host", || (state(&serve, &config, "2") == "done").then_some(()));
    std::fs::write(&go, "").unwrap();
    until("the end of the old one's", || (state(&serve, &config, "1") == "done").then_some(()));
    let log = run(serve.inhost().args(["job", "log", "--config", &config, "1"]));
    assert_eq!(log, "went on\n");
}

#[test]
fn a_queue_hands_jobs_to_a_place_and_has_their_output() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("jobs-place-far");
    let far = Serve::start("jobs-place-far", &["--config", &config(&folder)]);
    let password = script(&folder.0, "password", PASSWORD);
    std::fs::set_permissions(&password, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (_, port) = far.forwarded(71).rsplit_once(':').unwrap();
    let section = format!(
        "link = [\"user,loopback=yes,forward=127.0.0.1:0->7\"]\n[jobs]\nenabled = true\nport = 0\nfolder = \"{}/near\"\n[jobs.places.big]\nkind = \"host\"\n\
         host = \"10.0.2.2\"\nport = {port}\nuser = \"ada\"\npassword_file = \"{password}\"\ncleartext = true\n",
        folder.0.display()
    );
    let near_config = script(&folder.0, "near.toml", &section);
    let near = Serve::start("jobs-place-near", &["--config", &near_config]);
    let says = script(
        &folder.0,
        "says.sh",
        "echo by $INHOST_JOB_USER: $INHOST_ARRAY_INDEX; exit $INHOST_ARRAY_INDEX\n",
    );
    let submit = |more: &[&str]| {
        let words = ["job", "submit", "--follow", "--config", &near_config];
        output(near.inhost().env("USER", "eve").args(words).args(more).arg(&says))
    };
    let done = submit(&["--to", "big", "--array", "0-1"]);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let shown = |id: &str| run(near.inhost().args(["job", "show", "--config", &near_config, id]));
    assert!(shown("3").contains("Runs at         big"), "{}", shown("3"));
    let log = |id: &str| run(near.inhost().args(["job", "log", "--config", &near_config, id]));
    assert_eq!((log("2"), log("3")), ("by ada: 0\n".into(), "by ada: 1\n".into()), "as its user there");
    let unknown = submit(&["--to", "nowhere"]);
    assert!(
        String::from_utf8_lossy(&unknown.stderr).contains("does not know the place nowhere"),
        "{unknown:?}"
    );
    assert_eq!((near.end().code(), far.end().code()), (Some(0), Some(0)));
}

/// A configuration with a queue and a certificate.
fn tls_config(folder: &Folder) -> String {
    certificate(&folder.0);
    let root = folder.0.to_str().unwrap();
    let section = format!(
        "link = [\"user,forward=127.0.0.1:0->71\"]\n[jobs]\nenabled = true\nfolder = \"{root}/queue\"\n\
         certificate = \"{root}/cert.pem\"\nkey = \"{root}/key.pem\"\n"
    );
    script(&folder.0, "host.toml", &section)
}

#[test]
fn a_password_goes_out_in_tls_unless_said_otherwise() {
    if !peers(&["openssl"]) {
        return;
    }
    let folder = Folder::new("jobs-tls-config");
    let config = tls_config(&folder);
    let serve = Serve::start("jobs-tls", &["--config", &config]);
    let password = script(&folder.0, "password", PASSWORD);
    let says = script(&folder.0, "says.sh", "head -c 3000000 /dev/zero\n");
    let submit = |server: &str, more: &[&str]| {
        let words =
            ["submit", "--follow", "--password-file", &password, "--link", "user", "--server", server];
        output(inhost(&folder.0).arg("job").args(words).args(more).arg(&says))
    };
    let at = format!("ada@{}", serve.forwarded(71));
    let done = submit(&at, &["--insecure"]);
    assert!(done.status.success() && done.stdout == vec![0; 3_000_000], "{:?}", done.stderr);
    let distrusted = submit(&at, &[]);
    assert!(String::from_utf8_lossy(&distrusted.stderr).contains("certificate"), "{distrusted:?}");
    let clear = submit(&format!("http://{at}"), &[]);
    assert!(!clear.status.success(), "{clear:?}");
    assert_eq!(serve.end().code(), Some(0));
}

#[test]
fn output_is_delivered_by_ftp_and_by_mail() {
    let folder = Folder::new("jobs-deliver-config");
    let root = folder.0.to_str().unwrap();
    std::fs::create_dir(folder.0.join("files")).unwrap();
    let config = format!(
        "link = [\"user,forward=127.0.0.1:0->7\"]\n[jobs]\nenabled = true\nport = 0\nfolder = \"{root}/jobs\"\n\
         [ftp]\nenabled = true\n[[ftp.user]]\nname = \"ada\"\nroot = \"{root}/files\"\nrights = \"write\"\n\
         [mail]\nenabled = true\ndomains = [\"example.net\"]\nmailboxes = [\"ada\"]\nfolder = \"{root}/boxes\"\n\
         queue = \"{root}/queue\"\n"
    );
    let path = script(&folder.0, "host.toml", &config);
    let serve = Serve::start("jobs-deliver", &["--config", &path]);
    let says = script(&folder.0, "says.sh", "echo tides are high\n");
    let ftp = format!("ftp://ada:{}@127.0.0.1/", PASSWORD.replace(' ', "%20"));
    let deliver =
        ["--deliver", &ftp, "--deliver", "ada@example.net", "--deliver", "ftp://ada@127.0.0.1/other"];
    run(serve.inhost().args(["job", "submit", "--config", &path]).args(deliver).arg(&says));
    let file = folder.0.join("files/job-1.txt");
    until("the file", || {
        std::fs::read_to_string(&file).is_ok_and(|text| text == "tides are high\n").then_some(())
    });
    let mail = until("the mail", || {
        let unread = std::fs::read_dir(folder.0.join("boxes/ada/new")).ok()?.next()?.ok()?;
        std::fs::read_to_string(unread.path()).ok()
    });
    // The output goes with it as a file, in base64.
    assert!(mail.contains("Subject: Job 1 (says): done") && mail.contains("dGlkZXMgYXJlIGhpZ2gK"), "{mail}");
    let why = until("the reason", || {
        let shown = run(serve.inhost().args(["job", "show", "--json", "--config", &path, "1"]));
        let job: Value = serde_json::from_str(&shown).unwrap();
        job["delivery"].as_str().filter(|why| why.starts_with("attempt")).map(str::to_owned)
    });
    assert!(why.contains("no password for ada"), "{why}");
    assert_eq!(serve.end().code(), Some(0));
}

#[test]
fn a_queue_that_nobody_serves_keeps_jobs_and_says_so() {
    let folder = Folder::new("jobs-unserved");
    let says = script(&folder.0, "says.sh", "echo hello\n");
    let queue = folder.0.join("queue");
    let queue = queue.to_str().unwrap();
    let submitted = output(inhost(&folder.0).args(["job", "submit", "--queue", queue, &says]));
    assert_eq!(String::from_utf8_lossy(&submitted.stdout), "job 1\n");
    assert!(String::from_utf8_lossy(&submitted.stderr).contains("no host runs"), "{submitted:?}");
    let config = folder.0.join("host.toml");
    std::fs::write(
        &config,
        format!(
            "link = [\"user,forward=127.0.0.1:0->7\"]\n[jobs]\nenabled = true\nport = 0\nfolder = {queue:?}\n"
        ),
    )
    .unwrap();
    let serve = Serve::start("jobs-unserved-host", &["--config", config.to_str().unwrap()]);
    until("its end", || (state(&serve, config.to_str().unwrap(), "1") == "done").then_some(()));
    assert_eq!(serve.end().code(), Some(0));
}

/// A host with a queue, and `inhost job` beside it.
struct Queue {
    serve: Serve,
    folder: Folder,
    config: String,
}

impl Queue {
    fn start(name: &str) -> Queue {
        let folder = Folder::new(&format!("{name}-config"));
        let config = config(&folder);
        Queue { serve: Serve::start(name, &["--config", &config]), folder, config }
    }
    /// Status, output and errors of a command.
    fn job(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let done = output(self.serve.inhost().arg("job").args(words).args(["--config", &self.config]));
        let text = |octets| String::from_utf8(octets).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    }
    fn script(&self, text: &str) -> String {
        script(&self.folder.0, "part.sh", text)
    }
}

#[test]
fn a_delivery_replaces_a_file_only_if_that_is_said() {
    let queue = Queue::start("jobs-replace");
    let keep = queue.folder.0.join("keep.txt");
    let (path, each) = (keep.to_str().unwrap(), queue.folder.0.join("part-%a"));
    std::fs::write(&keep, "mine\n").unwrap();
    let part = queue.script("echo part $INHOST_ARRAY_INDEX\n");
    let (status, _, said) = queue.job(&["submit", "--deliver", path, &part]);
    assert!(status == Some(1) && said.contains("keep.txt is there already; --replace"), "{said}");
    let (status, _, said) = queue.job(&["submit", "--array", "1-3", "--deliver", path, &part]);
    assert!(status == Some(2) && said.contains("write %a (the index) or %j"), "{said}");
    let each = ["submit", "--follow", "--array", "1-3", "--deliver", each.to_str().unwrap(), &part];
    assert_eq!(queue.job(&each).0, Some(0));
    for index in 1..=3 {
        let part = queue.folder.0.join(format!("part-{index}"));
        let delivered = || std::fs::read_to_string(&part).is_ok_and(|text| text == format!("part {index}\n"));
        until("the file of an element", || delivered().then_some(()));
    }
    // One that comes while the job runs stays, and that is told.
    let late = queue.folder.0.join("late.txt");
    let makes = queue.script(&format!("echo late >{}\n", late.display()));
    assert_eq!(queue.job(&["submit", "--deliver", late.to_str().unwrap(), &makes]).1, "job 5\n");
    until("the reason", || queue.job(&["list"]).1.contains("late.txt is there already").then_some(()));
    assert_eq!(std::fs::read_to_string(&late).unwrap(), "late\n");
    assert_eq!(std::fs::read_to_string(&keep).unwrap(), "mine\n");
    let part = queue.script("echo new\n");
    assert_eq!(queue.job(&["submit", "--replace", "--deliver", path, &part]).0, Some(0));
    until("the new file", || (std::fs::read_to_string(&keep).unwrap() == "new\n").then_some(()));
}

#[test]
fn all_that_a_job_says_is_followed_and_how_it_ended_is_told() {
    let queue = Queue::start("jobs-follow");
    let part = queue.script("echo part $INHOST_ARRAY_INDEX; echo no >&2; [ $INHOST_ARRAY_INDEX != 2 ]\n");
    let (status, out, said) = queue.job(&["submit", "--follow", "--array", "1-3", &part]);
    assert_eq!((status, out.as_str()), (Some(1), "part 1\npart 2\npart 3\n"), "{said}");
    let expected = "inhost: job 1\ninhost: job 2, element 1:\nno\ninhost: job 3, element 2:\nno\ninhost: job 4, element 3:\nno\n\
                    inhost: array 1: 1 of 3 jobs did not succeed; job 3, element 2, failed: exit status 1; inhost job show 1 tells more\n";
    assert_eq!(said, expected);
    // The number of the array is known to all.
    let (_, listed, _) = queue.job(&["list"]);
    assert!(listed.contains("     1       4 part[3]"), "{listed}");
    assert_eq!(queue.job(&["log", "1"]).1, out);
    assert_eq!(queue.job(&["log", "--error", "--follow", "1"]).1, "no\nno\nno\n");

    let long = queue.script("head -c 5000 /dev/zero\n");
    let (status, out, said) = queue.job(&["submit", "--follow", "--output", "1K", &long]);
    assert_eq!((status, out.len()), (Some(0), 1024));
    assert_eq!(said, "inhost: job 5\ninhost: job 5: its output was cut at 1024 bytes (--output)\n");

    let says = queue.script("echo high\n");
    let (status, out, said) = queue.job(&["submit", "--follow", "--json", &says]);
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((status, lines.len(), said.as_str()), (Some(0), 2, "high\n"));
    assert_eq!((&lines[0]["job"], &lines[1]["state"]), (&6.into(), &"done".into()), "{out}");
}

#[test]
fn wrong_passwords_are_logged_and_no_advice_leads_into_the_clear() {
    if !peers(&["openssl"]) {
        return;
    }
    let folder = Folder::new("jobs-guesses");
    let config = tls_config(&folder);
    add_ada(&folder.0, &[]);
    let mut serve = Running::start(inhost(&folder.0).args(["serve", "--config", &config]));
    let banner = serve.wait_for("to end.");
    let at =
        banner.lines().find_map(|line| line.trim().strip_prefix("forward   tcp ")?.strip_suffix(" -> 71"));
    let at = format!("ada@{}", at.unwrap());
    let wrong = script(&folder.0, "wrong", "guess");
    let guess = || {
        let words =
            ["job", "list", "--server", &at, "--insecure", "--password-file", &wrong, "--link", "user"];
        String::from_utf8(output(inhost(&folder.0).args(words)).stderr).unwrap()
    };
    assert!(guess().contains("the user or the password is wrong"));
    serve.wait_for("jobs: wrong password peer=127.0.0.1 user=\"ada\"");
    let said = until("the end of the guesses", || Some(guess()).filter(|said| !said.contains("is wrong")));
    // The link of the client may hear of the reset before its connection is made.
    let is_told = said.contains("turns callers away for a minute") || said.contains("connection refused");
    assert!(!said.contains("http://") && is_told, "{said}");
}

#[test]
fn a_job_whose_place_cannot_be_reached_is_queued() {
    let folder = Folder::new("jobs-unreachable");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let password = script(&folder.0, "password", PASSWORD);
    std::fs::set_permissions(&password, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let section = format!(
        "link = [\"user,loopback=yes,forward=127.0.0.1:0->7\"]\n[jobs]\nenabled = true\nport = 0\nfolder = \"{}/near\"\n\
         [jobs.places.big]\nkind = \"host\"\nhost = \"10.0.2.2\"\nport = {nobody}\nuser = \"ada\"\n\
         password_file = \"{password}\"\ncleartext = true\n",
        folder.0.display()
    );
    let config = script(&folder.0, "near.toml", &section);
    let serve = Serve::start("jobs-unreachable-host", &["--config", &config]);
    let says = script(&folder.0, "says.sh", "echo hello\n");
    run(serve.inhost().args(["job", "submit", "--config", &config, "--to", "big", &says]));
    let show = || -> Value {
        let shown = run(serve.inhost().args(["job", "show", "--json", "--config", &config, "1"]));
        serde_json::from_str(&shown).unwrap()
    };
    let job = until("the reason", || Some(show()).filter(|job| job["reason"] != ""));
    assert_eq!((&job["state"], &job["attempts"]), (&"queued".into(), &0.into()), "{job}");
    let why = job["reason"].as_str().unwrap();
    assert!(why.starts_with("waits for that host: no connection: ") && why.contains("refused"), "{why}");
    run(serve.inhost().args(["job", "cancel", "--config", &config, "1"]));
    assert_eq!(show()["state"], "cancelled", "at once");
}

#[test]
fn following_goes_on_when_the_host_was_started_anew() {
    let folder = Folder::new("jobs-again");
    let path = config(&folder);
    let serve = Serve::start("jobs-again-host", &["--config", &path]);
    let at = serve.forwarded(71).to_owned();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("127.0.0.1:0->71", &format!("{at}->71"))).unwrap();
    let (password, go) = (script(&folder.0, "password", PASSWORD), folder.0.join("go"));
    let waits = format!("echo begun; until [ -e {} ]; do sleep 0.1; done; echo ended\n", go.display());
    let waits = script(&folder.0, "waits.sh", &waits);
    let mut follow = inhost(&folder.0);
    follow.args(["job", "submit", "--follow", "--link", "user", "--server", &format!("http://ada@{at}")]);
    let mut follow = Running::start(follow.args(["--password-file", &password, &waits]));
    follow.wait_for("begun");
    // As by kill -9.
    drop(serve);
    follow.wait_for("it is asked again for up to 60 s");
    let _serve = Serve::start("jobs-again-host", &["--config", &path]);
    std::fs::write(&go, "").unwrap();
    assert_eq!(follow.wait().code(), Some(0), "{}", follow.printed());
    assert!(follow.printed().ends_with("ended\n"), "{}", follow.printed());
}
