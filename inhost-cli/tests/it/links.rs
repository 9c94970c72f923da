//! A link of a running host that dies: the log and `netstat` say so, and the host takes it up again.

use crate::common::{Folder, inhost};
use inhost_interop::{DEADLINE, Running, output, own_network, run, within};
use std::process::Command;

#[test]
fn a_deleted_device_is_told_shown_and_made_again() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("links");
    let link = "tap:inlink0,address=10.9.0.2/24,host=10.9.0.1/24";
    let mut host = Running::start(inhost(&folder.0).args(["serve", "--link", link]));
    host.wait_for("to end.");
    let netstat = || run(inhost(&folder.0).arg("netstat"));
    let is_reached = || output(Command::new("ping").args(["-c1", "-W1", "10.9.0.2"])).status.success();
    let until = |what: &str, is: &dyn Fn() -> bool| {
        let found = within(DEADLINE, || is().then_some(()));
        assert!(found.is_some(), "never {what}: {}\n{}", netstat(), host.printed());
    };
    until("up", &|| netstat().contains("inlink0"));
    // The duplicate test of a new address takes some seconds.
    until("reached", &is_reached);
    // Something else has its name for a while, so that it cannot be opened again.
    run(Command::new("ip").args(["link", "delete", "inlink0"]));
    run(Command::new("ip").args(["link", "add", "inlink0", "type", "veth", "peer", "name", "inlink1"]));
    until("shown as down", &|| netstat().contains("is down for"));
    run(Command::new("ip").args(["link", "delete", "inlink0"]));
    until("logged as up again", &|| host.printed().contains("up again after"));
    assert!(host.printed().contains("down: "), "the log tells of the end, too");
    until("reached again", &is_reached);
    assert!(!netstat().contains("is down for"));
}
