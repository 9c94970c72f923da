//! What a service manager is told of `inhost serve`, by the protocol of `sd_notify`.

use crate::common::{Folder, inhost};
use inhost_interop::{DEADLINE, Running, run};
use rustix::process::Signal;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

#[test]
fn the_manager_hears_of_the_start_each_reload_and_the_end() {
    let folder = Folder::new("notify");
    let path = folder.0.join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(DEADLINE)).unwrap();
    let hear = || {
        let mut place = [0; 512];
        let count = manager.recv(&mut place).unwrap();
        String::from_utf8(place[..count].to_vec()).unwrap()
    };
    std::fs::write(folder.0.join("host.toml"), "link = [\"user,forward=127.0.0.1:0->7\"]\n").unwrap();
    run(Command::new("chmod").arg("600").arg(folder.0.join("host.toml")));
    let mut serve = inhost(&folder.0);
    serve.args(["serve", "--quiet"]).env("NOTIFY_SOCKET", &path);
    let mut host = Running::start_showing_errors(&mut serve);
    assert_eq!(hear().trim(), "READY=1");
    host.signal(Signal::HUP);
    let reload = hear();
    assert!(reload.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reload}");
    assert_eq!(hear().trim(), "READY=1");
    // A reload that fails leaves the host as it was: ready.
    std::fs::write(folder.0.join("host.toml"), "memory = \"lots\"\n").unwrap();
    host.signal(Signal::HUP);
    assert!(hear().starts_with("RELOADING=1"));
    assert_eq!(hear().trim(), "READY=1");
    host.signal(Signal::TERM);
    assert_eq!(hear().trim(), "STOPPING=1");
    assert!(host.wait().success());
}
