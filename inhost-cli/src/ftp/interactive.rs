//! Commands at a prompt, with history and completion.

use super::session::{Credentials, Opener, Session, credentials};
use super::show::{clean, moved_line, show_said, size};
use super::url::Url;
use crate::terminal::{ENDING, kept};
use inhost_common::storage::{Folder, VirtualPath};
use inhost_ftp::client::{ClientError, DataVia, Operation};
use inhost_ftp::codec::Kind;
use inhost_ftp::driver::{get, list, put};
use inhost_runtime::{Signal, Signals};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The commands, with what stands behind them and what they do.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("open", "HOST [PORT]", "connect to a server and log in"),
    ("user", "NAME", "log in as somebody else"),
    ("close", "", "leave the server"),
    ("ls", "[DIRECTORY]", "list, with sizes"),
    ("cd", "DIRECTORY", "go there"),
    ("pwd", "", "say where that is"),
    ("lcd", "DIRECTORY", "go there on this side"),
    ("lpwd", "", "say where that is"),
    ("get", "FILE [NAME]", "fetch; goes on where it was broken off"),
    ("mget", "FILE…", "fetch several"),
    ("put", "FILE [NAME]", "send"),
    ("mput", "FILE…", "send several"),
    ("delete", "FILE…", "remove files there"),
    ("rename", "FROM TO", "give another name there"),
    ("mkdir", "DIRECTORY", "make a directory there"),
    ("rmdir", "DIRECTORY", "remove an empty one there"),
    ("chmod", "MODE FILE", "set permissions there"),
    ("passive", "", "who connects for data: we, or the server"),
    ("verbose", "", "show what is said, or do not"),
    ("status", "", "what the server says of itself"),
    ("quote", "COMMAND…", "say it to the server as it stands"),
    ("help", "", "this"),
    ("quit", "", "leave"),
];

/// Reads commands until there are no more.
pub async fn run(opener: Opener, url: Option<Url>) -> Result<(), ClientError> {
    let names = Names::default();
    let mut prompt = Prompt { opener, session: None, here: PathBuf::from("."), names: names.clone() };
    if let Some(url) = url {
        prompt.open(&url).await?;
        if !url.path.is_empty() {
            prompt.command(&["cd".into(), url.path.clone()]).await?;
        }
    }
    let mut editor = Reader::new(names)?;
    let mut outcome = Ok(());
    loop {
        let (back, line) = blocking::unblock(move || editor.read()).await;
        editor = back;
        let Some(line) = line? else { break };
        let words = match shell_words::split(&line) {
            Ok(words) => words,
            Err(error) => {
                eprintln!("{error}; put a backslash before a quote or a # that is part of a name");
                continue;
            }
        };
        match words.first().map(String::as_str) {
            None => continue,
            Some("quit" | "bye" | "exit") => break,
            Some(_) => {}
        }
        let done = prompt.interruptible(&words).await;
        if let Err(error) = &done {
            eprintln!("{}", clean(&error.to_string()));
        }
        if matches!(done, Err(ClientError::Connection(_))) {
            prompt.session = None;
        }
        outcome = outcome.and(done);
    }
    if let Some(session) = prompt.session.take() {
        super::leave(session).await;
    }
    // Somebody who types sees each failure; a script stops at the first.
    if std::io::IsTerminal::is_terminal(&std::io::stdin()) { Ok(()) } else { outcome }
}

struct Prompt {
    opener: Opener,
    session: Option<Session>,
    here: PathBuf,
    names: Names,
}

impl Prompt {
    /// Does a command; the interrupt key ends a transfer, and not the client.
    async fn interruptible(&mut self, words: &[String]) -> Result<(), ClientError> {
        let signals = Signals::new(&self.opener.reactor, &[Signal::Interrupt]).ok();
        let Some(signals) = signals else { return self.command(words).await };
        let interrupted = async {
            signals.next().await;
            None
        };
        let done = futures_lite::future::or(async { Some(self.command(words).await) }, interrupted).await;
        match done {
            Some(done) => done,
            None => {
                if let Some(session) = &mut self.session {
                    session.perform(Operation::Abort).await?;
                }
                Err(ClientError::Local("interrupted".into()))
            }
        }
    }

    async fn command(&mut self, words: &[String]) -> Result<(), ClientError> {
        let listed = |word: &String| self.listed(word);
        let rest: Vec<String> = words[1..].iter().map(listed).collect();
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        match (&*words[0], &rest[..]) {
            ("open", [host]) => {
                let url = Url::parse(host).map_err(|e| ClientError::Local(e.to_string()))?;
                self.open(&url).await
            }
            ("open", [host, port]) => {
                let url = Url::parse(host).map_err(|e| ClientError::Local(e.to_string()))?;
                let port = port.parse().map_err(|_| ClientError::Local(format!("{port}: no port")))?;
                self.open(&Url { port, ..url }).await
            }
            ("user", [name]) => self.user(name).await,
            ("close", []) => {
                if let Some(session) = self.session.take() {
                    super::leave(session).await;
                }
                Ok(())
            }
            ("lcd", [folder]) => {
                let folder = self.here.join(folder);
                if !folder.is_dir() {
                    return Err(ClientError::Local(format!("{}: no such folder", folder.display())));
                }
                self.here = folder;
                Ok(())
            }
            ("lpwd", []) => {
                let full = std::fs::canonicalize(&self.here).unwrap_or_else(|_| self.here.clone());
                say!("{}", full.display());
                Ok(())
            }
            ("passive", []) => {
                self.opener.options.active ^= true;
                say!(
                    "{} for data",
                    if self.opener.options.active { "the server connects" } else { "we connect" }
                );
                Ok(())
            }
            ("verbose", []) => {
                self.opener.options.reach.common.verbose ^= true;
                let on = self.opener.options.reach.common.verbose;
                if let Some(session) = &mut self.session {
                    session.set_log(move |line| {
                        if on {
                            show_said(line);
                        }
                    });
                }
                Ok(())
            }
            ("help" | "?", _) => {
                for (name, argument, what) in COMMANDS {
                    say!("  {:<24} {what}", format!("{name} {argument}"));
                }
                Ok(())
            }
            _ => self.there(words, &rest).await,
        }
    }

    /// What was typed, or the name in the last listing that is shown so: one of other octets than it can be typed with.
    fn listed(&self, typed: &str) -> String {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let is_meant = |name: &&String| clean(name) == *typed;
        match names.iter().any(|name| name == typed) {
            true => typed.to_owned(),
            false => names.iter().find(is_meant).cloned().unwrap_or_else(|| typed.to_owned()),
        }
    }

    /// Commands for a server.
    async fn there(&mut self, words: &[String], rest: &[&str]) -> Result<(), ClientError> {
        let via = if self.opener.options.active { DataVia::Active } else { DataVia::Passive };
        let Some(session) = &mut self.session else {
            return Err(ClientError::Local(
                "no server; open HOST connects to one, help lists commands".into(),
            ));
        };
        match (&*words[0], rest) {
            ("ls" | "dir", directory) => {
                let mut listed = list(session, directory.first().copied().unwrap_or(""), via).await?;
                listed.sort_by(|one, other| one.name.cmp(&other.name));
                if directory.is_empty() {
                    let names = listed.iter().map(|one| one.name.clone()).collect();
                    *self.names.lock().unwrap_or_else(PoisonError::into_inner) = names;
                }
                for one in listed {
                    let shown = if one.kind == Kind::File { size(one.size_bytes) } else { String::new() };
                    let end = if one.kind == Kind::Directory { "/" } else { "" };
                    say!("{shown:>12}  {}{end}", clean(&one.name));
                }
            }
            ("cd", [directory]) => {
                say!("{}", clean(session.command(format!("CWD {directory}")).await?.last()));
                self.learn().await;
            }
            ("pwd", []) => say!("{}", clean(session.command("PWD").await?.last())),
            ("get", [file]) => return self.get(file, base(file)).await,
            ("get", [file, name]) => return self.get(file, name).await,
            ("mget", files) if !files.is_empty() => {
                for file in files {
                    self.get(file, base(file)).await?;
                }
            }
            ("put", [file]) => return self.put(file, base(file)).await,
            ("put", [file, name]) => return self.put(file, name).await,
            ("mput", files) if !files.is_empty() => {
                for file in files {
                    self.put(file, base(file)).await?;
                }
            }
            ("delete" | "rm", files) if !files.is_empty() => {
                for file in files {
                    session.command(format!("DELE {file}")).await?;
                }
            }
            ("rename" | "mv", [from, to]) => {
                session.command(format!("RNFR {from}")).await?;
                session.command(format!("RNTO {to}")).await?;
            }
            ("mkdir", [directory]) => {
                say!("{}", clean(session.command(format!("MKD {directory}")).await?.last()))
            }
            ("rmdir", [directory]) => drop(session.command(format!("RMD {directory}")).await?),
            ("chmod", [mode, file]) => drop(session.command(format!("SITE CHMOD {mode} {file}")).await?),
            ("status", []) => {
                session.command("STAT").await?.lines.iter().for_each(|line| say!("{}", clean(line)));
            }
            ("quote", said) if !said.is_empty() => {
                let reply = session.command(said.join(" ")).await?;
                reply.lines.iter().for_each(|line| say!("{} {}", reply.code, clean(line)));
            }
            (other, _) => {
                let usage = COMMANDS.iter().find(|(name, ..)| *name == other);
                return Err(ClientError::Local(match usage {
                    Some((name, argument, _)) => format!("usage: {name} {argument}"),
                    None => format!("{other}: no such command; help lists them"),
                }));
            }
        }
        Ok(())
    }

    async fn open(&mut self, url: &Url) -> Result<(), ClientError> {
        let (asked, options) = (url.clone(), self.opener.options.clone());
        let mut session = self.opener.connect(url).await?;
        let who = blocking::unblock(move || credentials(&asked, &options)).await;
        let who = who.map_err(|e| ClientError::Local(e.to_string()))?;
        self.opener.log_in(&mut session, &who).await?;
        say!("logged in as {}{}", who.user, if session.is_protected() { ", in TLS" } else { "" });
        self.session = Some(session);
        self.learn().await;
        Ok(())
    }

    async fn user(&mut self, name: &str) -> Result<(), ClientError> {
        let Some(session) = &mut self.session else {
            return Err(ClientError::Local("no server; open HOST connects to one".into()));
        };
        let prompt = format!("Password of {name}: ");
        let password = blocking::unblock(move || crate::password::ask(&prompt)).await;
        let password = password.map_err(|e| ClientError::Local(e.to_string()))?;
        self.opener.log_in(session, &Credentials { user: name.into(), password }).await
    }

    /// Learns the names of the directory, to complete them.
    async fn learn(&mut self) {
        let Some(session) = &mut self.session else { return };
        if !std::io::IsTerminal::is_terminal(&std::io::stdin()) {
            return;
        }
        let listed = list(session, "", self.opener.how().via).await.unwrap_or_default();
        let names = listed.into_iter().map(|listed| listed.name).collect();
        *self.names.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    async fn get(&mut self, remote: &str, name: &str) -> Result<(), ClientError> {
        let (folder, name) = self.place(name)?;
        let Some(session) = &mut self.session else { return Ok(()) };
        let progress = self.opener.progress(remote);
        let total = super::size_there(session, remote, &progress).await;
        let (progress, moved) = (progress.of(total), session.moved());
        let got = progress.during(moved, get(session, remote, &folder, &name, self.opener.how())).await?;
        say!("{}", moved_line(&progress, got));
        Ok(())
    }

    async fn put(&mut self, file: &str, remote: &str) -> Result<(), ClientError> {
        let total = super::size_here(&self.here.join(file));
        let (folder, name) = self.place(file)?;
        let Some(session) = &mut self.session else { return Ok(()) };
        let progress = self.opener.progress(file).of(total);
        let moved = session.moved();
        let sent = progress.during(moved, put(session, &folder, &name, remote, self.opener.how())).await?;
        say!("{}", moved_line(&progress, sent));
        Ok(())
    }

    fn place(&self, file: &str) -> Result<(Folder, VirtualPath), ClientError> {
        super::place(&self.here.join(file), "").map_err(|e| ClientError::Local(e.to_string()))
    }
}

/// The last part of a path.
fn base(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

type Names = Arc<Mutex<Vec<String>>>;

/// Completes commands, names there, and files here behind `put` and `lcd`.
struct Completion {
    names: Names,
}

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
        let begun = &before[from..];
        let first = before.split(' ').next().unwrap_or_default();
        let candidates: Vec<String> = match (from, first) {
            (0, _) => COMMANDS.iter().map(|(name, ..)| (*name).to_owned()).collect(),
            (_, "put" | "mput" | "lcd") => local_names(begun),
            _ => self
                .names
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .iter()
                .map(|name| clean(name))
                .collect(),
        };
        let pair = |name: String| Pair { display: name.clone(), replacement: name };
        Ok((from, candidates.into_iter().filter(|name| name.starts_with(begun)).map(pair).collect()))
    }
}

fn local_names(begun: &str) -> Vec<String> {
    let folder = begun.rfind('/').map_or("", |slash| &begun[..=slash]);
    let read = std::fs::read_dir(if folder.is_empty() { Path::new(".") } else { Path::new(folder) });
    let names = read.into_iter().flatten().flatten();
    names.map(|entry| format!("{folder}{}", entry.file_name().to_string_lossy())).collect()
}

/// Reads lines, on whichever thread.
struct Reader {
    editor: Editor<Completion, FileHistory>,
    history: Option<PathBuf>,
}

impl Reader {
    fn new(names: Names) -> Result<Reader, ClientError> {
        let failed = |e: ReadlineError| ClientError::Local(format!("the terminal cannot be used: {e}"));
        let mut editor = Editor::new().map_err(failed)?;
        editor.set_helper(Some(Completion { names }));
        let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
        let history = state.filter(|path| path.is_absolute()).or_else(home).map(|base| base.join("inhost"));
        let history = history.filter(|folder| std::fs::create_dir_all(folder).is_ok());
        let history = history.map(|folder| folder.join("ftp_history"));
        if let Some(path) = &history {
            // The first time there is none.
            let _ = editor.load_history(path);
        }
        Ok(Reader { editor, history })
    }

    /// The next line; `None` when there are no more.
    fn read(mut self) -> (Reader, Result<Option<String>, ClientError>) {
        let line = match kept(ENDING, || self.editor.readline("ftp> ")) {
            Ok(line) => {
                if !has_password(&line) {
                    let _ = self.editor.add_history_entry(&line);
                }
                if let Some(path) = &self.history {
                    let _ = self.editor.save_history(path);
                }
                Ok(Some(line))
            }
            Err(ReadlineError::Interrupted) => Ok(Some(String::new())),
            Err(ReadlineError::Eof) => Ok(None),
            Err(error) => Err(ClientError::Local(error.to_string())),
        };
        (self, line)
    }
}

/// Whether a line has a password in it, as `quote PASS WORD` has, or `user NAME WORD` in other clients.
fn has_password(line: &str) -> bool {
    let words: Vec<String> = line.split_whitespace().map(str::to_ascii_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["user", _, _, ..] => true,
        ["quote" | "site", word, ..] | [word, ..] => matches!(*word, "pass" | "acct"),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_passwords_are_told_from_others() {
        for line in ["quote PASS x", "QUOTE acct x", "user ada x", "pass x"] {
            assert!(has_password(line), "{line}");
        }
        for line in ["", "user ada", "get pass", "quote SYST", "passive"] {
            assert!(!has_password(line), "{line}");
        }
    }

    #[test]
    fn words_and_names() {
        let words = |line| shell_words::split(line).unwrap();
        assert_eq!(words("get \"a b\" c\\ d ''"), ["get", "a b", "c d", ""]);
        assert_eq!(words("  "), Vec::<String>::new());
        assert_eq!((base("a/b/"), base("x"), base("/")), ("b", "x", "/"));
    }
}
