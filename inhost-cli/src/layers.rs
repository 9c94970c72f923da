//! `inhost layers`: for which layer the processor works in the running host.

use crate::args::{Layers, Measured};
use crate::failure::Failure;
use crate::output::print;
use crate::peep::ending::Ending;
use crate::through::open_host;
use inhost_layers::draw::{self, Line};
use inhost_layers::{Mode, ONE_ROUND_IN, Report};
use inhost_runtime::control::{self, Client};
use serde_json::{Value, json};
use std::path::Path;

/// Runs the command.
pub fn run(arguments: &Layers) -> Result<(), Failure> {
    if arguments.schema {
        return print(&format!("{:#}\n", schemars::schema_for!(Report).as_value()));
    }
    let path = arguments.via.clone().unwrap_or_else(control::default_path);
    let mut client = open_host(&path)?;
    let mode = arguments.mode.map(|mode| match mode {
        Measured::Off => Mode::Off,
        Measured::Sampled => Mode::Sampled,
        Measured::Full => Mode::Full,
    });
    let report = match arguments.for_s {
        None => {
            let seen = ask(&mut client, &change(arguments, mode, arguments.reset))?;
            // What was measured until now is of the mode before.
            Report {
                mode: mode.unwrap_or(seen.mode),
                one_in: arguments.one_in.unwrap_or(seen.one_in),
                ..seen
            }
        }
        Some(seconds) => {
            let before = ask(&mut client, &json!({"op": "layers"}))?;
            // A signal ends the measurement early, and the instrument is as it was before then, too.
            let ending = Ending::new(Some(seconds))?;
            let one_in = arguments.one_in.unwrap_or(ONE_ROUND_IN);
            let measured = Layers { one_in: Some(one_in), ..arguments.clone() };
            ask(&mut client, &change(&measured, Some(mode.unwrap_or(Mode::Sampled)), true))?;
            ending.pass();
            let again = Layers { one_in: Some(before.one_in), ..arguments.clone() };
            ask(&mut client, &change(&again, Some(before.mode), false))?
        }
    };
    let mut is_written = false;
    let mut write = |to: &Option<std::path::PathBuf>, text: &dyn Fn() -> String| match to {
        None => Ok(()),
        Some(to) => {
            is_written = true;
            put(to, &text())
        }
    };
    write(&arguments.svg, &|| draw::segments("Nanoseconds a segment", &report))?;
    write(&arguments.flame, &|| draw::flame("The time of the host", &report))?;
    write(&arguments.folded, &|| report.folded())?;
    if arguments.time_line.is_some() && report.transitions.is_empty() {
        return Err(Failure::operation(
            "no transitions were kept; measure with --mode full, such as --for 1 --mode full",
        ));
    }
    let end_ns = report.transitions.last().map_or(0, |seen| seen.at_ns);
    let lines = [Line { title: "this host", transitions: &report.transitions }];
    let from_ns = end_ns.saturating_sub(arguments.last.saturating_mul(1_000));
    write(&arguments.time_line, &|| draw::time_line("Layers over time", &lines, from_ns, end_ns))?;
    match arguments.json {
        true => {
            let json = serde_json::to_string(&report).map_err(|why| Failure::operation(why.to_string()))?;
            print(&format!("{json}\n"))
        }
        false if is_written => Ok(()),
        false => print(&report.text()),
    }
}

/// The request that changes what is measured and gives what was.
fn change(arguments: &Layers, mode: Option<Mode>, reset: bool) -> Value {
    let mut request = json!({"op": "layers", "reset": reset, "transitions": arguments.time_line.is_some()});
    if let Some(mode) = mode {
        request["mode"] = json!(mode);
    }
    if let Some(one_in) = arguments.one_in {
        request["one_in"] = json!(one_in);
    }
    request
}

fn ask(client: &mut Client, request: &Value) -> Result<Report, Failure> {
    let (mut reply, _) = client.request(request).map_err(|why| Failure::operation(why.to_string()))?;
    serde_json::from_value(reply["layers"].take())
        .map_err(|why| Failure::operation(format!("the host's answer is not understood: {why}")))
}

fn put(to: &Path, text: &str) -> Result<(), Failure> {
    if to.as_os_str() == "-" {
        return print(text);
    }
    std::fs::write(to, text).map_err(|why| Failure::operation(format!("{}: {why}", to.display())))
}
