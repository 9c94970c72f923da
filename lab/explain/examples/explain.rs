//! Prints why the connections of a capture are slow: `cargo run -p inhost-explain --example explain -- FILE [--json]`.

use std::fs::File;
use std::process::ExitCode;

use inhost_explain::{Options, explain};

/// Connections that are printed.
const PRINTED: usize = 10;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_json = arguments.iter().any(|argument| argument == "--json");
    let Some(path) = arguments.iter().find(|argument| !argument.starts_with("--")) else {
        eprintln!("explain FILE [--json]");
        return ExitCode::from(2);
    };
    let report = File::open(path)
        .map_err(|why| why.to_string())
        .and_then(|file| explain(file, &Options::default()).map_err(|why| why.to_string()));
    let report = match report {
        Ok(report) => report,
        Err(why) => {
            eprintln!("{path}: {why}");
            return ExitCode::FAILURE;
        }
    };
    if is_json {
        match serde_json::to_string_pretty(&report) {
            Ok(text) => println!("{text}"),
            Err(why) => eprintln!("{why}"),
        }
        return ExitCode::SUCCESS;
    }
    for warning in &report.warnings {
        println!("warning: {} ({})", warning.text, warning.count);
    }
    for verdict in report.conversations.iter().take(PRINTED) {
        println!("{}", verdict.text());
    }
    if report.conversations.len() > PRINTED {
        println!("and {} more connections", report.conversations.len() - PRINTED);
    }
    ExitCode::SUCCESS
}
