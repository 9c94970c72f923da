//! Commands at a prompt, with history and completion.

use super::Output;
use crate::failure::{Failure, print_error};
use crate::terminal::{ENDING, kept};
use inhost_debug::{Session, completions, goes_on};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};

const PROMPT: &str = "debug> ";

const WELCOME: &str = "A client and a server, 10 ms apart, on a virtual clock. connect opens a connection, step goes on, \
                       help has the rest.\n";

/// Reads commands until there are no more. An empty line repeats the last one that went on.
pub fn run(mut session: Session, output: Output) -> Result<(), Failure> {
    let failed = |why: ReadlineError| Failure::operation(format!("the terminal cannot be used: {why}"));
    let mut editor: Editor<Completion, FileHistory> = Editor::new().map_err(failed)?;
    editor.set_helper(Some(Completion));
    let history = inhost_common::state_folder("debug_history");
    // The first time there is none.
    let _ = editor.load_history(&history);
    if !output.is_json {
        crate::output::print(WELCOME)?;
    }
    let mut repeated = String::new();
    loop {
        let typed = match kept(ENDING, || editor.readline(PROMPT)) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(why) => return Err(failed(why)),
        };
        let _ = editor.add_history_entry(&typed);
        let line = if typed.trim().is_empty() { repeated.clone() } else { typed };
        let outcome = session.line(&line);
        // Somebody who types sees the failure, and goes on.
        if let Err(why) = output.give(None, &outcome) {
            print_error(why);
        }
        if outcome.is_over {
            break;
        }
        repeated = if goes_on(&line) { line } else { String::new() };
    }
    if let Some(folder) = history.parent()
        && std::fs::create_dir_all(folder).is_ok()
    {
        let _ = editor.save_history(&history);
    }
    Ok(())
}

/// Completes commands, ends and settings.
struct Completion;

impl Helper for Completion {}
impl Highlighter for Completion {}
impl Validator for Completion {}
impl Hinter for Completion {
    type Hint = String;
}

impl Completer for Completion {
    type Candidate = Pair;
    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..at];
        let from = before.rfind(' ').map_or(0, |space| space + 1);
        let pair = |name: String| Pair { replacement: format!("{name} "), display: name };
        Ok((from, completions(before).into_iter().map(pair).collect()))
    }
}
