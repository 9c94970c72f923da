//! What a configuration names beside the services' own resources, and what it names twice.

use super::Config;
use crate::failure::Failure;
use crate::registry::{Kind, SERVICES};
use inhost_common::service::Service as _;
use inhost_common::tls::read_secret;
use inhost_ftp::service::{Ftp, Section};
use inhost_link::{Spec, Transport};
use inhost_little::{Little, Service};
use rustix::fs::{Access, access};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use toml::Value;

/// Refuses two forwards of one port of the system.
pub fn forwards(links: &[String]) -> Result<(), Failure> {
    let mut seen = Vec::new();
    for link in links {
        let forwards = link.parse::<Spec>().map(|spec| spec.forwards).unwrap_or_default();
        for forward in forwards.into_iter().filter(|forward| forward.from.port() != 0) {
            let outside = (forward.transport, forward.from);
            if seen.contains(&outside) {
                return Err(Failure::setting("link", link, format!("{} is forwarded twice", forward.from)));
            }
            seen.push(outside);
        }
    }
    Ok(())
}

/// What is allowed and hardly meant: FTP behind forwards that bring callers to it, and no transfer of theirs.
pub fn note(config: &Config) -> Option<String> {
    let kind = SERVICES.iter().find(|kind| kind.name == Ftp::NAME && is_on(config, kind))?;
    let section = config.section(kind);
    let specs: Vec<Spec> = config.link.iter().filter_map(|link| link.parse().ok()).collect();
    let forwards = specs.iter().flat_map(|spec| &spec.forwards);
    let forwarded: Vec<u16> =
        forwards.filter(|of| of.transport == Transport::Tcp).map(|forward| forward.to).collect();
    let mut ports = ports_of(Ftp::NAME, section).into_iter();
    if !ports.any(|(_, port)| forwarded.contains(&port)) {
        return None;
    }
    let passive = section.clone().try_into::<Section>().ok()?.ports().ok()?;
    let what = match passive {
        None => "ftp.passive_ports is not set".to_owned(),
        Some(mut ports) => {
            format!("no link forwards {} of ftp.passive_ports", ports.find(|port| !forwarded.contains(port))?)
        }
    };
    Some(format!(
        "{what}, but a link forwards FTP: passive transfers of its callers fail; give passive_ports = \"50000-50001\" and \
         forward=127.0.0.1:50000->50000,forward=127.0.0.1:50001->50001"
    ))
}

/// Keys whose 0 means that nothing listens.
const MAY_BE_NONE: [&str; 8] = [
    "ftp.implicit_port",
    "jobs.port",
    "mail.port",
    "mail.submission_port",
    "mail.submissions_port",
    "nfs.portmapper_port",
    "tn3270.port",
    "tn3270.tls_port",
];

/// Refuses two services at one port, and a service without one.
pub fn ports(config: &Config) -> Result<(), Failure> {
    // By TCP, and by UDP where that is true.
    let mut taken: BTreeMap<(bool, u16), String> = BTreeMap::new();
    let is_little_on = SERVICES.iter().any(|kind| kind.name == Little::NAME && is_on(config, kind));
    for kind in SERVICES.iter().filter(|kind| is_on(config, kind)) {
        for (key, port) in ports_of(kind.name, config.section(kind)) {
            if port == 0 && MAY_BE_NONE.contains(&&*key) {
                continue;
            }
            if port == 0 {
                return Err(Failure::setting(&key, port, "give a port from 1 to 65535"));
            }
            let are_udp = match kind.name {
                "tftp" => &[true][..],
                "names" | "nfs" => &[false, true],
                _ => &[false],
            };
            if is_little_on && Service::ALL.iter().any(|little| little.port() == port) {
                return Err(Failure::setting(&key, port, "little has this port, too"));
            }
            for is_udp in are_udp {
                if let Some(other) = taken.insert((*is_udp, port), key.clone()) {
                    return Err(Failure::setting(&key, port, format!("{other} has this port, too")));
                }
            }
        }
    }
    Ok(())
}

fn is_on(config: &Config, kind: &Kind) -> bool {
    config.section(kind).get("enabled").and_then(Value::as_bool).unwrap_or_default()
}

/// The ports at which a service listens, with their keys.
fn ports_of(name: &str, section: &toml::Table) -> Vec<(String, u16)> {
    let port = |value: &Value| value.as_integer().and_then(|port| u16::try_from(port).ok());
    let is_ours = |key: &str| (key == "port" || key.ends_with("_port")) && key != "remote_port";
    section
        .iter()
        .filter(|(key, _)| is_ours(key))
        .filter_map(|(key, value)| Some((format!("{name}.{key}"), port(value)?)))
        .collect()
}

/// Opens what a running host opens later or in vain. What it makes itself need not be there.
pub fn files(config: &Config) -> Result<(), Failure> {
    if let Some(hosts) = &config.hosts {
        readable("hosts", hosts)?;
    }
    if let Some(folder) = &config.record.folder {
        folder_can_be("record.folder", folder)?;
    }
    if config.history.enabled
        && let Some(folder) = &config.history.folder
    {
        folder_can_be("history.folder", folder)?;
    }
    if let Some(folder) = &config.dhcp.state {
        folder_can_be("dhcp.state", folder)?;
    }
    for kind in SERVICES.iter().filter(|kind| is_on(config, kind)) {
        for (key, value) in config.section(kind) {
            let (named, Some(path)) = (format!("{}.{key}", kind.name), value.as_str().map(Path::new)) else {
                continue;
            };
            match &*named {
                "telnet.shell" | "rlogin.shell" | "rsh.shell" => program(&named, path)?,
                "telnet.news" | "tn3270.news" => readable(&named, path)?,
                "mail.queue" | "mail.folder" | "jobs.folder" | "nfs.state" => folder_can_be(&named, path)?,
                _ => {}
            }
        }
        let places = config.section(kind).get("places").and_then(Value::as_table);
        for (name, place) in places.into_iter().flatten() {
            let path = |key: &str| place.get(key).and_then(Value::as_str).map(Path::new);
            if let Some(path) = path("password_file") {
                let key = format!("{}.places.{name}.password_file", kind.name);
                read_secret(kind.name, "password", path).map_err(|error| failed(&key, path, error))?;
            }
            if let Some(path) = path("ca") {
                readable(&format!("{}.places.{name}.ca", kind.name), path)?;
            }
        }
        let applications = config.section(kind).get("applications").and_then(Value::as_table);
        for (name, application) in applications.into_iter().flatten() {
            let first = application.get("program").and_then(|words| words.get(0)).and_then(Value::as_str);
            if let Some(path) = first {
                program(&format!("{}.applications.{name}.program", kind.name), Path::new(path))?;
            }
        }
    }
    Ok(())
}

fn failed(key: &str, path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::operation(format!("{key} = {:?}: {why}", path.display().to_string()))
}

fn readable(key: &str, path: &Path) -> Result<(), Failure> {
    let file = File::open(path).and_then(|file| file.metadata());
    match file {
        Ok(about) if about.is_dir() => Err(failed(key, path, "it is a folder; name a file")),
        Ok(_) => Ok(()),
        Err(error) => Err(failed(key, path, error)),
    }
}

fn program(key: &str, path: &Path) -> Result<(), Failure> {
    let is_file = path.metadata().map(|about| about.is_file());
    match is_file.and_then(|is_file| access(path, Access::EXEC_OK).map(|()| is_file).map_err(io::Error::from))
    {
        Ok(true) => Ok(()),
        Ok(false) => Err(failed(key, path, "it is not a program")),
        Err(error) => Err(failed(key, path, error)),
    }
}

/// A folder that is there, or can be made.
fn folder_can_be(key: &str, path: &Path) -> Result<(), Failure> {
    let there = path.ancestors().map(|at| if at.as_os_str().is_empty() { Path::new(".") } else { at });
    let Some(there) = there.into_iter().find(|at| at.exists()) else { return Ok(()) };
    if !there.is_dir() {
        return Err(failed(key, path, format_args!("{} is not a folder", there.display())));
    }
    let may_write = access(there, Access::WRITE_OK | Access::EXEC_OK);
    may_write
        .map_err(|error| failed(key, path, format_args!("{}: {}", there.display(), io::Error::from(error))))
}
