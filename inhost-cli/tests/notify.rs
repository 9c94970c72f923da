//! What a service manager is told of `inhost serve`, by the protocol of `sd_notify`.

mod common;

use common::{Folder, Running, inhost};
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn the_manager_hears_of_the_start_each_reload_and_the_end() {
    let folder = Folder::new("notify");
    let path = folder.0.join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    // Not a measure: a test that hears nothing is to fail.
    manager.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let hear = || {
        let mut place = [0; 512];
        let count = manager.recv(&mut place).unwrap();
        String::from_utf8(place[..count].to_vec()).unwrap()
    };
    std::fs::write(folder.0.join("host.toml"), "link = [\"user,forward=127.0.0.1:0->7\"]\n").unwrap();
    common::run("chmod", &["600", folder.0.join("host.toml").to_str().unwrap()]);
    let mut serve = inhost(&folder.0);
    serve.args(["serve", "--quiet"]).env("NOTIFY_SOCKET", &path).stdin(Stdio::null());
    let mut host = Running(serve.spawn().unwrap());
    let id = host.0.id().to_string();
    assert_eq!(hear().trim(), "READY=1");
    common::run("kill", &["-HUP", &id]);
    let reload = hear();
    assert!(reload.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reload}");
    assert_eq!(hear().trim(), "READY=1");
    // A reload that fails leaves the host as it was: ready.
    std::fs::write(folder.0.join("host.toml"), "memory = \"lots\"\n").unwrap();
    common::run("kill", &["-HUP", &id]);
    assert!(hear().starts_with("RELOADING=1"));
    assert_eq!(hear().trim(), "READY=1");
    common::run("kill", &[&id]);
    assert_eq!(hear().trim(), "STOPPING=1");
    assert!(host.0.wait().unwrap().success());
}
