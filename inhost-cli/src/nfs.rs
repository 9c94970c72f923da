//! `inhost nfs`: files of an NFS server.

mod server;
mod tree;

use crate::args::{Nfs, NfsCommand, NfsOptions};
use crate::client::ClientHost;
use crate::failure::Failure;
use crate::ftp::show::clean;
use crate::output::print;
use crate::through::HostChoice;
use inhost_common::storage::name_octets;
use inhost_nfs::client::Listed;
use inhost_nfs::codec::nfs::{Attributes, FileType};
use jiff::Timestamp;
use serde_json::{Value, json};
use server::{Calls, Place, Server};
use std::fmt::Write as _;
use tree::Moved;

/// Runs what was asked.
pub fn run(arguments: &Nfs) -> Result<(), Failure> {
    match &arguments.command {
        NfsCommand::Ls { remote, long, options } => {
            let place = Place::parse(remote)?;
            let found = on_host(options, &place, async |server| server.list(&place).await)?;
            print(&listing(&found, *long, options.json))
        }
        NfsCommand::Get { remote, file, recursive, options } => {
            let place = Place::parse(remote)?;
            let to = file.clone().unwrap_or_else(|| ".".into());
            let moved = on_host(options, &place, async |server| {
                tree::get(server, &place, &to, *recursive, options).await
            })?;
            report(&moved, options)
        }
        NfsCommand::Put { file, remote, recursive, options } => {
            let place = Place::parse(remote)?;
            let moved = on_host(options, &place, async |server| {
                tree::put(server, file, &place, *recursive, options).await
            })?;
            report(&moved, options)
        }
        NfsCommand::Mkdir { remote, options } => {
            let place = Place::parse(remote)?;
            on_host(options, &place, async |server| server.make_directory(&place).await)
        }
        NfsCommand::Rm { remote, options } => {
            let place = Place::parse(remote)?;
            on_host(options, &place, async |server| server.remove(&place).await)
        }
        NfsCommand::Mv { remote, to, options } => {
            let place = Place::parse(remote)?;
            let to = place.new_name(to)?;
            on_host(options, &place, async |server| server.rename(&place, &to).await)
        }
        NfsCommand::Exports { remote, options } => {
            let place = Place::server(remote)?;
            let found = on_host(options, &place, async |server| server.exports().await)?;
            let text = match options.json {
                true => {
                    let row = |(path, groups): &(String, Vec<String>)| {
                        let groups: Value = groups.iter().map(|group| unicode(group)).collect();
                        json!({"path": unicode(path), "clients": groups})
                    };
                    format!("{}\n", found.iter().map(row).collect::<Value>())
                }
                false if found.is_empty() => "no exports\n".to_owned(),
                false => found.iter().fold(String::new(), |mut text, (path, groups)| {
                    let whom = if groups.is_empty() { "everybody".to_owned() } else { groups.join(" ") };
                    let _ = writeln!(text, "{}  {}", clean(path), clean(&whom));
                    text
                }),
            };
            print(&text)
        }
    }
}

/// Does `work` with the server of `place`.
fn on_host<T>(
    options: &NfsOptions,
    place: &Place,
    work: impl AsyncFnOnce(&Server) -> Result<T, String>,
) -> Result<T, Failure> {
    let mut client = ClientHost::start(HostChoice::find(&options.reach)?)?;
    let calls = Calls::of(&client, options)?;
    let done = client.runtime.run(Server::during(calls, place, options, work));
    let done = done.map_err(|e| Failure::operation(format!("the client cannot wait: {e}")))?;
    client.end()?;
    done.map_err(|why| Failure::operation(format!("nfs: {why}")))
}

fn report(moved: &Moved, options: &NfsOptions) -> Result<(), Failure> {
    match (options.json, options.quiet) {
        (true, _) => print(&format!("{}\n", moved.json())),
        (false, true) => Ok(()),
        (false, false) => print(&moved.sentence()),
    }?;
    moved.told()
}

fn listing(found: &[Listed], is_long: bool, as_json: bool) -> String {
    if as_json {
        return format!("{}\n", found.iter().map(row).collect::<Value>());
    }
    let mut text = String::new();
    for of in found {
        let name = clean(&String::from_utf8_lossy(&of.name));
        match (&of.attributes, is_long) {
            (Some(of), true) => {
                let Attributes { links, uid, gid, size_bytes, .. } = of;
                let (mode, time) = (mode(of), time(of));
                let _ = writeln!(text, "{mode} {links:>3} {uid:>6} {gid:>6} {size_bytes:>12} {time} {name}");
            }
            (None, true) => {
                let _ = writeln!(text, "?{:>59} {name}", "");
            }
            (Some(of), false) if of.kind == FileType::Directory => {
                let _ = writeln!(text, "{name}/");
            }
            _ => {
                let _ = writeln!(text, "{name}");
            }
        }
    }
    text
}

/// A name as JSON has it.
fn unicode(name: &str) -> String {
    String::from_utf8_lossy(&name_octets(name)).into_owned()
}

fn row(of: &Listed) -> Value {
    let name = String::from_utf8_lossy(&of.name);
    let Some(of) = &of.attributes else { return json!({"name": name}) };
    json!({
        "name": name, "kind": kind(of.kind), "mode": of.mode, "links": of.links, "uid": of.uid, "gid": of.gid,
        "bytes": of.size_bytes, "modified": time(of),
    })
}

fn kind(of: FileType) -> &'static str {
    match of {
        FileType::Regular => "file",
        FileType::Directory => "directory",
        FileType::Link => "link",
        FileType::Block => "block device",
        FileType::Character => "character device",
        FileType::Socket => "socket",
        FileType::Fifo => "pipe",
    }
}

/// The first column of `ls -l`.
fn mode(of: &Attributes) -> String {
    let kind = match of.kind {
        FileType::Regular => '-',
        FileType::Directory => 'd',
        FileType::Link => 'l',
        FileType::Block => 'b',
        FileType::Character => 'c',
        FileType::Socket => 's',
        FileType::Fifo => 'p',
    };
    let bits = (0..9).rev().zip("rwxrwxrwx".chars());
    std::iter::once(kind)
        .chain(bits.map(|(bit, letter)| if of.mode >> bit & 1 == 1 { letter } else { '-' }))
        .collect()
}

fn time(of: &Attributes) -> String {
    let at = Timestamp::new(i64::from(of.modified.seconds), 0).unwrap_or_default();
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(mode: u32, kind: FileType) -> Attributes {
        let mut of = Attributes::default();
        (of.mode, of.kind, of.size_bytes, of.modified.seconds) = (mode, kind, 1234, 1_790_000_000);
        of
    }

    #[test]
    fn a_listing_shows_what_is_there_and_nothing_that_a_terminal_obeys() {
        let found = [
            Listed { name: b"a\x1b[2J".to_vec(), attributes: Some(file(0o644, FileType::Regular)) },
            Listed { name: b"src".to_vec(), attributes: Some(file(0o755, FileType::Directory)) },
            Listed { name: b"gone".to_vec(), attributes: None },
        ];
        assert_eq!(listing(&found, false, false), "a\u{fffd}[2J\nsrc/\ngone\n");
        let long = listing(&found, true, false);
        assert!(
            long.starts_with("-rw-r--r--   0      0      0         1234 2026-09-21T14:13:20Z a"),
            "{long}"
        );
        assert!(long.contains("\ndrwxr-xr-x "), "{long}");
        let all: Value = serde_json::from_str(&listing(&found, true, true)).unwrap();
        assert_eq!((&all[1]["kind"], &all[1]["bytes"]), (&json!("directory"), &json!(1234)));
    }
}
