//! Reading a script.

use core::fmt;

use crate::screen::Key;
use crate::transfer::{Direction, TransferCommand};

/// Lines of a script, at most.
pub const SCRIPT_LINES: usize = 10_000;

/// A condition on the terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Condition {
    Ready,
    Unlocked,
    Closed,
    Text(String),
    NoText(String),
    At(u16, u16, String),
    Cursor(u16, u16),
    Field(u16, u16, String),
}

/// One line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Line {
    Within(u64),
    Wait(Condition),
    Assert(Condition),
    Field(String),
    Move(u16, u16),
    Type(String),
    Press(Key),
    Attention,
    SysReq,
    Dump { is_json: bool },
    Transfer { local: String, command: TransferCommand },
}

/// A script that can be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Script {
    pub(super) lines: Vec<(usize, Line)>,
}

/// What is wrong with a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}
impl core::error::Error for ParseError {}

impl Script {
    /// Reads a script.
    pub fn parse(text: &str) -> Result<Script, ParseError> {
        let mut lines = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let error = |why: String| ParseError { line: index + 1, why };
            if index >= SCRIPT_LINES {
                return Err(error(format!("a script has at most {SCRIPT_LINES} lines")));
            }
            let words = words(line).map_err(error)?;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            if !words.is_empty() {
                lines.push((index + 1, parse(&words).map_err(error)?));
            }
        }
        Ok(Script { lines })
    }
}

/// The words of a line. A word in quotes may have blanks; in it, `\"` is a quote and `\\` a backslash. What follows `#` at
/// the beginning of a word is a comment.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let mut word = String::new();
        if first == '#' {
            break;
        }
        if first == '"' {
            let mut characters = rest.char_indices().skip(1);
            let end = loop {
                match characters.next() {
                    None => return Err("a quote is not closed".to_owned()),
                    Some((at, '"')) => break at + 1,
                    Some((_, '\\')) => word.extend(characters.next().map(|(_, character)| character)),
                    Some((_, character)) => word.push(character),
                }
            };
            rest = rest.get(end..).unwrap_or_default();
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let (plain, behind) = rest.split_at(end);
            word.push_str(plain);
            rest = behind;
        }
        words.push(word);
        rest = rest.trim_start();
    }
    Ok(words)
}

fn number<T: core::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word:?} is not a number"))
}

fn parse(words: &[&str]) -> Result<Line, String> {
    Ok(match words {
        ["within", seconds] => Line::Within(number(seconds)?),
        ["wait", condition @ ..] => Line::Wait(parse_condition(condition)?),
        ["assert", condition @ ..] => Line::Assert(parse_condition(condition)?),
        ["field", label] => Line::Field((*label).to_owned()),
        ["move", row, column] => Line::Move(number(row)?, number(column)?),
        ["type", text] => Line::Type((*text).to_owned()),
        ["press" | "key", key] => match key.to_ascii_lowercase().as_str() {
            "attn" => Line::Attention,
            "sysreq" => Line::SysReq,
            _ => Line::Press(key.parse().map_err(|error: crate::screen::UnknownKey| error.to_string())?),
        },
        ["dump"] => Line::Dump { is_json: false },
        ["dump", "json"] => Line::Dump { is_json: true },
        ["send", local, host, options @ ..] => {
            let command = transfer(Direction::Upload, host, options)?;
            Line::Transfer { local: (*local).to_owned(), command }
        }
        ["receive", host, local, options @ ..] => {
            let command = transfer(Direction::Download, host, options)?;
            Line::Transfer { local: (*local).to_owned(), command }
        }
        [verb, ..] => {
            let verbs = "within, wait, assert, field, move, type, press, dump, send and receive";
            return Err(format!("{verb:?} with these words is not a line of a script; there are {verbs}"));
        }
        [] => return Err("the line is empty".to_owned()),
    })
}

fn parse_condition(words: &[&str]) -> Result<Condition, String> {
    Ok(match words {
        ["ready"] => Condition::Ready,
        ["unlocked"] => Condition::Unlocked,
        ["closed"] => Condition::Closed,
        ["text", text] => Condition::Text((*text).to_owned()),
        ["no", "text", text] => Condition::NoText((*text).to_owned()),
        ["at", row, column, text] => Condition::At(number(row)?, number(column)?, (*text).to_owned()),
        ["cursor", row, column] => Condition::Cursor(number(row)?, number(column)?),
        ["field", row, column, text] => Condition::Field(number(row)?, number(column)?, (*text).to_owned()),
        _ => {
            let all = "ready, unlocked, closed, text, no text, at, cursor and field";
            return Err(format!("{:?} is not a condition; there are {all}", words.join(" ")));
        }
    })
}

fn transfer(direction: Direction, host: &str, options: &[&str]) -> Result<TransferCommand, String> {
    let mut command = TransferCommand::text(direction, host);
    for option in options {
        match *option {
            "text" => {}
            "binary" => (command.is_text, command.has_line_ends) = (false, false),
            "append" => command.is_append = true,
            other => return Err(format!("{other:?} is not text, binary or append")),
        }
    }
    Ok(command)
}
