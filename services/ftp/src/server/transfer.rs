//! Transfers: RETR to MLSD, ABOR, and STAT while one runs.

use inhost_base::Instant;

use super::action::{Action, Channel, ListStyle, Task, TransferError, TransferEvent, TransferRequest};
use super::config::TlsPolicy;
use super::data::FORWARDED;
use super::machine::Session;
use super::state::{Phase, Running};
use crate::codec::{Command, Mode, Structure, Verb};
use inhost_common::storage::{StorageError, Store, VirtualPath};

impl Session {
    pub(super) fn may_write(&self) -> bool {
        matches!(self.phase, Phase::User { rights, .. } if rights.write)
    }

    /// RETR, STOR, STOU, APPE.
    pub(super) fn transfer_file(&mut self, command: &Command) {
        let restart = self.settings.restart.take();
        let expected_bytes = self.settings.allocated.take();
        let name = if command.argument.is_empty() { "upload" } else { &*command.argument };
        let path = self.path(name);
        let task = match command.verb {
            Verb::Retr => Task::Retrieve { path: path.clone(), start: restart.unwrap_or(0) },
            verb => {
                let how = match (verb, restart) {
                    (Verb::Appe, _) => Store::Append,
                    (Verb::Stou, _) => Store::Unique,
                    (_, Some(at)) => Store::At(at),
                    (_, None) => Store::Replace,
                };
                // Octets of text are counted before they are translated, so ALLO says nothing of what we store.
                let expected_bytes =
                    expected_bytes.filter(|_| !self.settings.parameters.representation.is_text());
                Task::Store { path: path.clone(), how, umask: self.settings.umask, expected_bytes }
            }
        };
        self.transfer(task, &path);
    }

    /// LIST, NLST, MLSD.
    pub(super) fn transfer_listing(&mut self, command: &Command) {
        let mut argument = &*command.argument;
        let mut all = false;
        // Many clients take LIST for `ls`.
        if command.verb != Verb::Mlsd {
            while let Some(rest) = argument.strip_prefix('-') {
                let (flags, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                all |= flags.contains('a');
                argument = rest;
            }
        }
        let style = match command.verb {
            Verb::List => ListStyle::Long { all },
            Verb::Nlst => ListStyle::Names,
            _ => ListStyle::Facts(self.settings.facts),
        };
        let mut path = self.path(argument);
        let mut pattern = None;
        if command.verb != Verb::Mlsd
            && let Some(name) = path.name().filter(|name| name.contains(['*', '?']))
        {
            pattern = Some(name.to_owned());
            path = path.parent();
        }
        let shown = path.clone();
        self.transfer(Task::List { path, pattern, style }, &shown);
    }

    fn transfer(&mut self, task: Task, path: &VirtualPath) {
        let channel = self.settings.data.take();
        if self.config.tls == TlsPolicy::Required && !self.security.data {
            self.act(Action::StopListening);
            return self.reply(522, "Say PROT P: data does not move without TLS here.");
        }
        let channel = match channel {
            Some(channel) => channel,
            None if self.settings.data.extended_only => return self.reply(425, "Say EPSV first."),
            None if self.outer.is_some() => return self.reply(425, FORWARDED),
            // RFC 959 §5.2: by default the port of the client's control connection.
            None => Channel::Active(self.peer),
        };
        let mut parameters = self.settings.parameters;
        if matches!(task, Task::List { .. }) {
            // RFC 959 §4.1.3 has listings in text; they have no records.
            parameters.structure = Structure::File;
            if !parameters.representation.is_text() {
                parameters.representation = Default::default();
            }
        }
        let protected = self.security.data;
        self.running =
            Some(Running { name: path.to_string(), opened: false, size_bytes: None, moved_bytes: 0 });
        self.act(Action::Transfer(TransferRequest { task, channel, parameters, protected }));
    }

    /// So many octets of the file were moved so far.
    pub fn progress(&mut self, moved_bytes: u64) {
        if let Some(running) = &mut self.running {
            running.moved_bytes = moved_bytes;
        }
    }

    /// Something happened to the transfer.
    pub fn transfer_event(&mut self, event: TransferEvent, now: Instant) {
        let Some(running) = &mut self.running else { return };
        match event {
            TransferEvent::Opened { size_bytes, name } => {
                (running.opened, running.size_bytes) = (true, size_bytes);
                let shown = match (name, size_bytes) {
                    // RFC 1123 §4.1.2.9 has this form for STOU.
                    (Some(name), _) => format!("FILE: {name}"),
                    (None, Some(size)) => {
                        format!("Opening data connection for {} ({size} bytes).", running.name)
                    }
                    (None, None) => format!("Opening data connection for {}.", running.name),
                };
                self.reply(150, &shown);
            }
            // RFC 959 §4.2.2.
            TransferEvent::Marker { theirs, ours } => self.reply(110, &format!("MARK {theirs} = {ours}")),
            TransferEvent::Ended(outcome) => {
                let opened = running.opened;
                self.running = None;
                // The time of a transfer does not count as idle.
                self.touched(now);
                match outcome {
                    Ok(bytes) => self.reply(226, &format!("Done, {bytes} bytes of the file.")),
                    Err(error) => self.transfer_failed(&error, opened),
                }
                if self.quitting {
                    self.reply(221, "Good-bye.");
                    self.close(super::Closing::Quit);
                }
            }
        }
        self.process(now);
    }

    fn transfer_failed(&mut self, error: &TransferError, opened: bool) {
        let code = match error {
            TransferError::Storage(StorageError::Quota) => 552,
            TransferError::Storage(StorageError::Full | StorageError::DiskQuota) => 452,
            TransferError::Storage(StorageError::Busy) => 450,
            TransferError::Storage(StorageError::Name | StorageError::Unfinished) => 553,
            TransferError::Storage(StorageError::Position) => 554,
            TransferError::Storage(_) if opened => 451,
            TransferError::Storage(_) => 550,
            // RFC 3659 §7.2.1.
            TransferError::NoDirectory => 501,
            TransferError::NoConnection(_) => 425,
            // RFC 4217 §10: the data connection's TLS was not what it has to be.
            TransferError::Tls(_) | TransferError::NotResumed => 522,
            TransferError::Lost(_) | TransferError::Stalled | TransferError::Incomplete => 426,
            TransferError::Decode(_) => 451,
        };
        self.reply(code, &format!("{error}."));
    }

    pub(super) fn abort(&mut self) {
        self.settings.data.channel = None;
        self.act(Action::StopListening);
        if self.running.take().is_none() {
            return self.reply(226, "No transfer runs.");
        }
        self.act(Action::AbortTransfer);
        // RFC 959 §4.1.3: first the transfer's end, then ABOR's.
        self.reply(426, "The transfer is aborted.");
        self.reply(226, "Aborted.");
    }

    pub(super) fn stat(&mut self, name: &str) {
        let is_user = matches!(self.phase, Phase::User { .. });
        if !name.is_empty() && is_user && self.running.is_none() {
            return self.stat_file(name);
        }
        if let Some(running) = &self.running {
            let of = running.size_bytes.map(|size| format!(" of {size}")).unwrap_or_default();
            let text = format!("{}: {}{of} bytes are moved.", running.name, running.moved_bytes);
            return self.reply(213, &text);
        }
        let parameters = self.settings.parameters;
        let mut lines = vec![format!("{} FTP server:", self.config.host_name)];
        lines.push(format!(" You come from {}", self.outer.unwrap_or(self.peer.address).to_canonical()));
        lines.push(match self.user() {
            Some(user) => format!(" You are {user}, in {}", self.settings.directory),
            None => " You are not logged in".to_owned(),
        });
        lines.push(format!(
            " TYPE {}, STRU {}, MODE {}",
            parameters.representation,
            parameters.structure.letter(),
            parameters.mode.letter()
        ));
        let secure = |on: bool| if on { "TLS" } else { "clear text" };
        lines.push(format!(
            " Control connection in {}, data connections in {}",
            secure(self.security.encrypted),
            secure(self.security.data)
        ));
        lines.push("End".to_owned());
        self.reply_lines(211, &lines);
    }
}

/// Whether restart markers count octets of the file itself.
pub(crate) fn restarts_by_file(parameters: &crate::codec::Parameters) -> bool {
    parameters.mode != Mode::Stream || !parameters.representation.is_text()
}
