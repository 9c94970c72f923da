//! File commands without a data connection: CWD, DELE, MKD, RNFR, SIZE and others.

use inhost_base::{Duration, Instant};

use super::action::{Action, FileReply, FileRequest};
use super::login::FACTS;
use super::machine::{Session, quoted};
use super::state::Waiting;
use crate::codec::{Command, Representation, Verb, facts_line, parse_time, time_text};
use inhost_common::storage::{StorageError, VirtualPath};

impl Session {
    pub(super) fn path(&self, text: &str) -> VirtualPath {
        self.settings.directory.join(text)
    }

    fn ask(&mut self, request: FileRequest) {
        self.waiting = Waiting::File(request.clone());
        self.act(Action::File(request));
    }

    pub(super) fn file(&mut self, command: &Command) {
        let path = self.path(&command.argument);
        let umask = self.settings.umask;
        let request = match command.verb {
            Verb::Cwd => FileRequest::Enter(path),
            Verb::Cdup => FileRequest::Enter(self.settings.directory.parent()),
            Verb::Mkd => FileRequest::Make { path, umask },
            Verb::Rmd => FileRequest::RemoveDirectory(path),
            Verb::Dele => FileRequest::Remove(path),
            Verb::Rnfr => FileRequest::RenameFrom(path),
            Verb::Rnto => match self.settings.rename_from.take() {
                Some(from) => FileRequest::Rename(from, path),
                None => return self.reply(503, "Say RNFR first."),
            },
            Verb::Size => {
                let text = self.settings.parameters.representation.is_text();
                FileRequest::Size { path, text }
            }
            Verb::Mdtm => FileRequest::Modified(path),
            Verb::Mlst => FileRequest::Facts(path),
            Verb::Hash => FileRequest::Digest { path, digest: self.settings.digest },
            Verb::Mfmt => {
                let (time, name) = command.argument.split_once(' ').unwrap_or((&command.argument, ""));
                match parse_time(time).filter(|_| !name.is_empty()) {
                    Some(time) => FileRequest::SetModified(self.path(name), time),
                    None => return self.reply(501, "MFMT takes YYYYMMDDHHMMSS and a name."),
                }
            }
            _ => return self.reply(502, "Not implemented."),
        };
        self.ask(request);
    }

    /// STAT with a name: a listing on the control connection.
    pub(super) fn stat_file(&mut self, name: &str) {
        self.ask(FileRequest::List(self.path(name)));
    }

    pub(super) fn site(&mut self, argument: &str) {
        let (verb, rest) = argument.split_once(' ').unwrap_or((argument, ""));
        let octal = |text: &str| u32::from_str_radix(text, 8).ok().filter(|&mode| mode <= 0o777);
        match &*verb.to_ascii_uppercase() {
            "CHMOD" => {
                let (mode, name) = rest.split_once(' ').unwrap_or((rest, ""));
                match octal(mode).filter(|_| !name.is_empty()) {
                    Some(_) if !self.may_write() => {
                        self.reply(550, "You may read here, and not change anything.");
                    }
                    Some(mode) => self.ask(FileRequest::SetMode(self.path(name), mode)),
                    None => self.reply(501, "SITE CHMOD takes an octal mode up to 777 and a name."),
                }
            }
            "UMASK" if rest.is_empty() => {
                self.reply(200, &format!("UMASK is {:03o}.", self.settings.umask));
            }
            "UMASK" => match octal(rest) {
                Some(umask) => {
                    let old = core::mem::replace(&mut self.settings.umask, umask);
                    self.reply(200, &format!("UMASK is {umask:03o}, it was {old:03o}."));
                }
                None => self.reply(501, "SITE UMASK takes an octal mask up to 777."),
            },
            "IDLE" if rest.is_empty() => {
                let (now, limit) = (self.settings.idle.as_secs(), self.config.idle_limit.as_secs());
                self.reply(200, &format!("IDLE is {now} s; it can be {limit} s at most."));
            }
            "IDLE" => match rest.parse::<u64>() {
                Ok(seconds) if (30..=self.config.idle_limit.as_secs()).contains(&seconds) => {
                    self.settings.idle = Duration::from_secs(seconds);
                    self.reply(200, &format!("IDLE is {seconds} s."));
                }
                _ => {
                    let limit = self.config.idle_limit.as_secs();
                    self.reply(501, &format!("SITE IDLE takes 30 to {limit} seconds."));
                }
            },
            "HELP" => self.help_site(rest.trim()),
            _ => self.reply(504, "SITE has CHMOD, UMASK, IDLE and HELP."),
        }
    }

    /// Result of a file operation.
    pub fn file_done(&mut self, outcome: Result<FileReply, StorageError>, now: Instant) {
        if !matches!(self.waiting, Waiting::File(_)) {
            return;
        }
        let Waiting::File(request) = core::mem::replace(&mut self.waiting, Waiting::Nothing) else { return };
        match outcome {
            Ok(reply) => self.file_reply(request, reply),
            Err(error) => self.file_error(&request, &error),
        }
        self.process(now);
    }

    fn file_reply(&mut self, request: FileRequest, reply: FileReply) {
        match (request, reply) {
            (FileRequest::Enter(path), _) => {
                self.reply(250, &format!("{} is the current directory.", quoted(&path)));
                self.settings.directory = path;
            }
            (FileRequest::Size { .. }, FileReply::Size(size)) => self.reply(213, &size.to_string()),
            (FileRequest::Modified(_), FileReply::Facts(facts)) => match facts.modified {
                Some(time) => self.reply(213, &time_text(time)),
                None => self.reply(550, "Its time is not known."),
            },
            (FileRequest::Facts(path), FileReply::Facts(facts)) => {
                let bits = self.settings.facts;
                let wanted = move |fact: &str| {
                    FACTS.iter().enumerate().any(|(bit, name)| *name == fact && bits & 1 << bit != 0)
                };
                let line = facts_line(&facts, &path.to_string(), &wanted);
                self.reply_lines(250, &["Facts:".to_owned(), format!(" {line}"), "End".to_owned()]);
            }
            (FileRequest::SetModified(path, time), _) => {
                self.reply(213, &format!("Modify={}; {path}", time_text(time)));
            }
            (FileRequest::Make { path, .. }, _) => {
                self.reply(257, &format!("{} is made.", quoted(&path)));
            }
            (FileRequest::RenameFrom(path), _) => {
                self.settings.rename_from = Some(path);
                self.reply(350, "Say RNTO.");
            }
            (FileRequest::Digest { path, digest }, FileReply::Digest(hash, size)) => {
                // draft-bryan-ftpext-hash: the range is that of the octets that were hashed.
                let end = size.saturating_sub(1);
                self.reply(213, &format!("{} 0-{end} {hash} {}", digest.name(), path.name().unwrap_or("/")));
            }
            (FileRequest::List(path), FileReply::Lines(lines)) => {
                let mut all = vec![format!("Status of {path}:")];
                all.extend(lines.into_iter().map(|line| format!(" {line}")));
                all.push("End".to_owned());
                self.reply_lines(213, &all);
            }
            (FileRequest::SetMode(..), _) => self.reply(200, "The mode is set."),
            _ => self.reply(250, "Done."),
        }
    }

    fn file_error(&mut self, request: &FileRequest, error: &StorageError) {
        let code = match (request, error) {
            (
                FileRequest::Rename(..) | FileRequest::Make { .. },
                StorageError::Name | StorageError::Unfinished,
            ) => 553,
            (FileRequest::Rename(..), StorageError::Exists | StorageError::Denied) => 553,
            (_, StorageError::Busy) => 450,
            (_, StorageError::Full | StorageError::DiskQuota) => 452,
            (FileRequest::Digest { .. }, StorageError::NotFile | StorageError::IsDirectory) => 553,
            _ => 550,
        };
        self.reply(code, &format!("{error}."));
    }

    /// TYPE, STRU, MODE, ALLO, REST.
    pub(super) fn parameter(&mut self, command: &Command) {
        use crate::codec::{Mode, Structure};
        let argument = command.argument.trim().to_ascii_uppercase();
        let parameters = &mut self.settings.parameters;
        match command.verb {
            Verb::Type => match Representation::parse(&argument) {
                Some(representation) => {
                    parameters.representation = representation;
                    self.reply(200, &format!("TYPE is {representation}."));
                }
                None => self.reply(504, "TYPE is A, E, I or L 8 here."),
            },
            Verb::Stru => match &*argument {
                "F" | "R" => {
                    parameters.structure = if argument == "F" { Structure::File } else { Structure::Record };
                    self.reply(200, &format!("STRU is {argument}."));
                }
                _ => self.reply(504, "STRU is F or R here."),
            },
            Verb::Mode => match &*argument {
                "S" | "B" | "C" => {
                    parameters.mode = match &*argument {
                        "S" => Mode::Stream,
                        "B" => Mode::Block,
                        _ => Mode::Compressed,
                    };
                    self.reply(200, &format!("MODE is {argument}."));
                }
                _ => self.reply(504, "MODE is S, B or C here."),
            },
            Verb::Allo => match argument.split(' ').next().and_then(|size| size.parse().ok()) {
                Some(size) => {
                    self.settings.allocated = Some(size);
                    self.reply(200, "So much is expected.");
                }
                None => self.reply(501, "ALLO takes a number."),
            },
            // Our markers are numbers too, so REST is the same in every mode.
            _ => match argument.parse::<u64>() {
                Ok(start) if argument.bytes().all(|b| b.is_ascii_digit()) => {
                    self.settings.restart = Some(start);
                    self.reply(350, &format!("The next transfer begins at {start}."));
                }
                _ => self.reply(501, "REST takes a number."),
            },
        }
    }
}
