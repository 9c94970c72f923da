//! Shared fixtures of the tests of names: BIND's programs, and a host that forwards.

use super::{Folder, Serve};
use inhost_interop::{output, until};
use std::fs;
use std::process::Command;

pub fn dig(arguments: &[&str]) -> String {
    let done = output(Command::new("dig").args(["+tries=1", "+time=8"]).args(arguments));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Waits for the server at `port` of this machine to answer about `name`.
pub fn until_up(port: &str, name: &str) {
    let is_up = || !dig(&["@127.0.0.1", "-p", port, name]).contains("no servers could be reached");
    until(&format!("an answer of the server at port {port}"), || is_up().then_some(()));
}

/// Our forwarder, at port 5300 of this machine by way of the user link.
pub fn forwarder(name: &str, servers: &[&str], more: &str) -> Serve {
    let folder = Folder::new(&format!("{name}-config"));
    let servers: Vec<String> = servers.iter().map(|server| format!("{server:?}")).collect();
    let config = format!(
        "link = [\"user,loopback=yes,forward=udp:127.0.0.1:5300->53,forward=127.0.0.1:5300->53\"]\n\
         [telnet]\nenabled = false\n[little]\nenabled = false\n\
         [names]\nenabled = true\nservers = [{}]\n{more}\n",
        servers.join(", ")
    );
    let path = folder.0.join("host.toml");
    fs::write(&path, config).unwrap();
    Serve::start(name, &["--config", path.to_str().unwrap()])
}

pub const FORWARDER: [&str; 3] = ["@127.0.0.1", "-p", "5300"];

pub fn asks(arguments: &[&str]) -> String {
    dig(&[&FORWARDER[..], arguments].concat())
}
