//! `inhost record`: the flight recorder of the running host.

use crate::args::{Of, Record, TrapWords};
use crate::failure::Failure;
use crate::output::{counted, print};
use crate::through::open_host;
use inhost_runtime::control;
use serde_json::{Value, json};
use std::fs::{File, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Runs the command.
pub fn run(command: &Record) -> Result<(), Failure> {
    match command {
        Record::Write { file, of, via } => write(via.as_ref(), file, of),
        Record::Traps { json, via } => {
            let traps = ask(via.as_ref(), &json!({"op": "traps"}))?.0["traps"].take();
            print(&if *json { format!("{traps}\n") } else { traps_text(&traps) })
        }
        Record::Arm(trap) => change("arm", trap),
        Record::Disarm(trap) => change("disarm", trap),
    }
}

fn ask(via: Option<&PathBuf>, request: &Value) -> Result<(Value, Option<std::os::fd::OwnedFd>), Failure> {
    let path = via.cloned().unwrap_or_else(control::default_path);
    let mut client = open_host(&path)?;
    client.request(request).map_err(|why| Failure::operation(why.to_string()))
}

fn write(via: Option<&PathBuf>, file: &Path, of: &Of) -> Result<(), Failure> {
    let mut only = json!({"address": of.host, "port": of.port});
    if let Some(text) = &of.connection {
        // A single hyphen stands in neither end.
        let ends: Option<Vec<SocketAddr>> = text.split('-').map(|end| end.parse().ok()).collect();
        let Some(ends) = ends.filter(|ends| ends.len() == 2) else {
            let expected = "give two ends with a hyphen, such as 10.9.0.1:23-10.9.0.2:1025";
            return Err(Failure::usage(format!("{text:?} is not a connection; {expected}")));
        };
        only["ends"] = json!(ends);
    }
    let (reply, recorded) = ask(via, &json!({"op": "record", "only": only}))?;
    let mut recorded = File::from(recorded.ok_or_else(|| Failure::operation("the host sent no file"))?);
    let failed = |e: io::Error| Failure::operation(format!("{}: {e}", file.display()));
    if file.to_str() == Some("-") {
        io::copy(&mut recorded, &mut io::stdout().lock()).map_err(failed)?;
        return Ok(());
    }
    // What users typed is in it.
    let mut private = File::options();
    private.write(true).create(true).truncate(true).mode(0o600);
    let mut to = private.open(file).map_err(failed)?;
    if to.metadata().map_err(failed)?.is_file() {
        to.set_permissions(Permissions::from_mode(0o600)).map_err(failed)?;
    }
    io::copy(&mut recorded, &mut to).map_err(failed)?;
    let frames = counted(reply["frames"].as_u64().unwrap_or_default(), "frame");
    print(&format!("{frames} written to {}\n", file.display()))
}

fn change(what: &str, trap: &TrapWords) -> Result<(), Failure> {
    let words = trap.words.join(" ");
    let traps = ask(trap.via.as_ref(), &json!({"op": "traps", what: words}))?.0["traps"].take();
    print(&traps_text(&traps))
}

fn traps_text(traps: &Value) -> String {
    let rows = traps.as_array().map_or(&[][..], Vec::as_slice);
    if rows.is_empty() {
        return "no trap is armed\n".to_owned();
    }
    let row = |trap: &Value| {
        let times = trap["times"].as_u64().unwrap_or(0);
        format!("{}: sprang {}\n", trap["trap"].as_str().unwrap_or_default(), counted(times, "time"))
    };
    rows.iter().map(row).collect()
}
