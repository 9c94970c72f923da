//! The whole state of a running host's connections.

use crate::args::Debug;
use crate::explain::Choice;
use crate::failure::Failure;
use crate::output::print;
use crate::through::{no_host, open_host};
use inhost_debug::show;
use inhost_runtime::control::{self, ClientError};
use serde_json::{Value, json};

/// Connections that are shown at once.
const MOST_SHOWN: usize = 10;

/// Shows the connections with the end `of`, or the only one.
pub fn show(arguments: &Debug, of: &str) -> Result<(), Failure> {
    let choice = Choice::parse(of)?;
    let path = arguments.via.clone().unwrap_or_else(control::default_path);
    let mut client = open_host(&path)?;
    let state = client.netstat().map_err(|why| no_host(&path, why))?;
    let sockets = state["sockets"].as_array().map_or(&[][..], Vec::as_slice);
    let meant: Vec<&Value> = sockets
        .iter()
        .filter(|socket| socket["kind"] == "connection")
        .filter(|socket| choice.has(text(&socket["local"]), text(&socket["remote"])))
        .collect();
    match meant.as_slice() {
        [] => {
            return Err(Failure::operation(
                "no such connection is open; inhost netstat lists those that are",
            ));
        }
        several if several.len() > 1 && (of.is_empty() || several.len() > MOST_SHOWN) => {
            let ends = several.iter().take(MOST_SHOWN);
            let ends: Vec<&str> = ends.map(|socket| text(&socket["remote"])).collect();
            let more = if several.len() > ends.len() { ", …" } else { "" };
            return Err(Failure::operation(format!(
                "{} connections are open, with {}{more}; say which: inhost debug --live {}",
                several.len(),
                ends.join(", "),
                ends[0]
            )));
        }
        _ => {}
    }
    for socket in meant {
        match client.request(&json!({"op": "debug", "socket": socket["socket"]})) {
            Ok((answer, _)) if arguments.json => {
                let object = json!({
                    "local": answer["local"],
                    "remote": answer["remote"],
                    "connection": answer["connection"],
                    "host": answer["host"],
                });
                print(&format!("{object}\n"))?;
            }
            Ok((answer, _)) => {
                let title = format!("{} > {}", text(&answer["local"]), text(&answer["remote"]));
                let connection = &answer["connection"];
                print(&show::connection(&title, connection))?;
                print(&show::host(&answer["host"], connection["now_ns"].as_u64().unwrap_or(0)))?;
            }
            Err(ClientError::Refused { text, .. }) => {
                return Err(Failure::operation(format!("{}: {text}", self::text(&socket["remote"]))));
            }
            Err(why) => return Err(no_host(&path, why)),
        }
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
