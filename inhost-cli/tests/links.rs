//! A link of a running host that dies: the log and `netstat` say so, and the host takes it up again.

mod common;

use common::{Folder, Running, inhost, own_namespace, run, wait};
use std::process::Stdio;

#[test]
fn a_deleted_device_is_told_shown_and_made_again() {
    if !own_namespace() {
        return;
    }
    let folder = Folder::new("links");
    let log = folder.0.join("log");
    let link = "tap:inlink0,address=10.9.0.2/24,host=10.9.0.1/24";
    let mut serve = inhost(&folder.0);
    serve.args(["serve", "--link", link]).stdin(Stdio::null()).stdout(Stdio::null());
    let _host = Running(serve.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap());
    let netstat = || {
        let done = inhost(&folder.0).arg("netstat").stdin(Stdio::null()).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    let until = |what: &str, is: &dyn Fn() -> bool| {
        for _ in 0..300 {
            if is() {
                return;
            }
            wait(50);
        }
        panic!("never {what}: {}\n{}", netstat(), std::fs::read_to_string(&log).unwrap());
    };
    until("up", &|| netstat().contains("inlink0"));
    // The duplicate test of a new address takes some seconds.
    until("reached", &|| common::output("ping", &["-c1", "-W1", "10.9.0.2"]).status.success());
    // Something else has its name for a while, so that it cannot be opened again.
    run("ip", &["link", "delete", "inlink0"]);
    run("ip", &["link", "add", "inlink0", "type", "veth", "peer", "name", "inlink1"]);
    until("shown as down", &|| netstat().contains("is down for"));
    run("ip", &["link", "delete", "inlink0"]);
    until("logged as up again", &|| std::fs::read_to_string(&log).unwrap().contains("up again after"));
    assert!(std::fs::read_to_string(&log).unwrap().contains("down: "), "the log tells of the end, too");
    until("reached again", &|| common::output("ping", &["-c1", "-W1", "10.9.0.2"]).status.success());
    assert!(!netstat().contains("is down for"));
}
