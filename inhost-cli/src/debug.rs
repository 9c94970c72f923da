//! `inhost debug`: two hosts that are stepped, and the whole state of a running host's connections.

mod live;
mod prompt;

use crate::args::Debug;
use crate::failure::Failure;
use crate::output::print;
use crate::style::Style;
use inhost_debug::{Outcome, Record, Session};
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};

/// Bytes of a script that are read: some 100,000 lines.
const MOST_SCRIPT_BYTES: u64 = 4 << 20;

/// Runs the command.
pub fn run(arguments: &Debug) -> Result<(), Failure> {
    if arguments.schema {
        return print(&format!("{:#}\n", schemars::schema_for!(Record).as_value()));
    }
    if let Some(of) = &arguments.live {
        return live::show(arguments, of);
    }
    let output = Output { is_json: arguments.json, style: Style::of(&io::stdout()) };
    let session = Session::new().map_err(Failure::operation)?;
    match &arguments.script {
        Some(path) if path.as_os_str() != "-" => {
            let shown = path.display().to_string();
            let file = File::open(path).map_err(|why| Failure::operation(format!("{shown}: {why}")))?;
            play(session, file, &shown, output)
        }
        None if io::stdin().is_terminal() => prompt::run(session, output),
        _ => play(session, io::stdin().lock(), "standard input", output),
    }
}

/// How what a command gave is printed.
#[derive(Clone, Copy)]
struct Output {
    is_json: bool,
    style: Style,
}

impl Output {
    /// What a line gave; in a script the line itself comes first.
    fn text(self, line: Option<&str>, outcome: &Outcome) -> String {
        if self.is_json {
            // A value of ours is always written.
            let objects = outcome.records.iter().filter_map(|record| serde_json::to_string(record).ok());
            return objects.map(|object| object + "\n").collect();
        }
        let line = line.map_or(String::new(), |line| format!("{}\n", format!("> {line}").trim_end()));
        line + &outcome.text.split_inclusive('\n').map(|line| self.coloured(line)).collect::<String>()
    }
    /// A line, in the colour of what it begins with.
    fn coloured(self, line: &str) -> String {
        let text = line.trim_end_matches('\n');
        let text = match () {
            () if text.starts_with('#') => self.style.one_of_many(0, text),
            () if text.contains("retransmits") || text.contains("a rule is broken") => self.style.bad(text),
            () if text.starts_with("  *  ") || text.starts_with("  due") => self.style.warning(text),
            () if text.starts_with("  in ") || text.starts_with("  out") => self.style.good(text),
            () => return line.to_owned(),
        };
        text + "\n"
    }
    /// Prints what a line gave, and writes the file that it asks for.
    fn give(self, line: Option<&str>, outcome: &Outcome) -> Result<(), Failure> {
        print(&self.text(line, outcome))?;
        let Some((path, script)) = &outcome.save else { return Ok(()) };
        let written = File::create_new(path).and_then(|mut file| file.write_all(script.as_bytes()));
        written.map_err(|why| match why.kind() {
            io::ErrorKind::AlreadyExists => {
                Failure::operation(format!("{path} is there already; save under another name"))
            }
            _ => Failure::operation(format!("{path}: {why}")),
        })
    }
}

/// Plays a script; ends at the first command that fails.
fn play(mut session: Session, source: impl Read, shown: &str, output: Output) -> Result<(), Failure> {
    let mut script = String::new();
    let read = source.take(MOST_SCRIPT_BYTES).read_to_string(&mut script);
    read.map_err(|why| Failure::operation(format!("{shown}: {why}")))?;
    let failed = session.play(&script, |line, outcome| output.give(Some(line), outcome))?;
    match failed {
        Some(number) => Err(Failure::operation(format!("{shown}, line {number}: see above"))),
        None => Ok(()),
    }
}
