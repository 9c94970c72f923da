//! The whole client: several sessions, the command level behind the escape key, the screen, the typescript.

use std::collections::VecDeque;

use inhost_base::Instant;

use super::commands::{self, Order, Sending};
use super::connection::{Connection, write_lines};
use super::settings::{KeyName, Mode, Settings, Toggle};
use crate::codec::{Side, TelnetOption};
use crate::line::{Echo, Edited, LineEditor};
use crate::machine::Config;

/// Sessions at once.
const SESSIONS: usize = 8;
/// Octets of a session in the background that are kept for when it is shown; then it is not read.
const BACKLOG_BYTES: usize = 16 * 1024;
/// Octets that wait for the screen; then no session is read.
const SCREEN_BYTES: usize = 16 * 1024;
/// Octets that wait for the screen beyond which no keys are taken either, as they are echoed. There is room left above
/// [`SCREEN_BYTES`], for an interrupt must get through to a server whose output the screen is slow to take.
const ECHO_BYTES: usize = 4 * SCREEN_BYTES;
/// Keys that are kept for a session that is not open yet.
const AHEAD_BYTES: usize = 1024;
/// Octets of a command line.
const COMMAND_BYTES: usize = 256;
const PROMPT: &[u8] = b"telnet> ";
const TELNET_PORT: u16 = 23;

/// Names a session for its driver; never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionId(u64);

/// Actions for the driver, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientAction {
    /// Connect; [`Console::opened`] or [`Console::failed`] takes the outcome.
    Connect {
        /// For this session.
        id: SessionId,
        /// A name or an address, as typed.
        host: String,
        /// A port.
        port: u16,
    },
    /// Send this, which was pending for the session, then close its connection.
    Disconnect(SessionId, Vec<u8>),
    /// Send what is pending for the session, then close its sending half; the session goes on until the other end closes
    /// too.
    EndInput(SessionId),
    /// Stop the process; [`Console::resumed`] when it goes on.
    Suspend,
    /// Append to this file what sessions show; [`Console::typescript`] takes the outcome.
    OpenTypescript(String),
    /// End the typescript.
    CloseTypescript,
    /// Fetch the connection's statistics for [`Console::statistics`].
    Statistics(SessionId),
    /// End the client, once the screen is written.
    Quit,
}

/// Start options of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Start {
    /// Connect to this host and port first. Then the client ends with its last session.
    pub open: Option<(String, u16)>,
    /// Options that a connection requests and accepts; see [`Config::client`].
    pub config: Config,
    /// The settings to begin with.
    pub settings: Settings,
    /// Columns and rows.
    pub window: (u16, u16),
}

/// The client. Its driver hands it keys and octets, and takes the screen's octets, each session's, and
/// [`ClientAction`]s from it.
#[derive(Debug)]
pub struct Console {
    config: Config,
    settings: Settings,
    window: (u16, u16),
    slots: Vec<Slot>,
    current: Option<SessionId>,
    next_id: u64,
    command: Option<LineEditor>,
    ends_with_last: bool,
    screen: Vec<u8>,
    log: Option<Vec<u8>>,
    actions: VecDeque<ClientAction>,
    keys_ended: bool,
    over: bool,
    failure: Option<String>,
    /// The failure that it is if a pipe, which has not ended, has more for a session that has.
    cut_off: Option<String>,
}

#[derive(Debug)]
struct Slot {
    id: SessionId,
    host: String,
    port: u16,
    connection: Option<Connection>,
    /// Keys typed before it was open.
    ahead: Vec<u8>,
    backlog: Vec<u8>,
}

impl Slot {
    /// The user has had enough of it: what was typed before is still sent.
    fn disconnect(&mut self) -> ClientAction {
        let telnet = self.connection.as_mut().map(Connection::telnet);
        let mut last = Vec::new();
        if let Some(telnet) = telnet {
            while telnet.pending_bytes() > 0 {
                let (octets, _) = telnet.pending();
                last.extend_from_slice(octets);
                let count = octets.len();
                telnet.sent(count);
            }
        }
        ClientAction::Disconnect(self.id, last)
    }
}

impl Console {
    /// A client that has done nothing yet, but may have an action at once.
    pub fn new(start: Start) -> Console {
        let mut console = Console {
            config: start.config,
            settings: start.settings,
            window: start.window,
            slots: Vec::new(),
            current: None,
            next_id: 1,
            command: None,
            ends_with_last: start.open.is_some(),
            screen: Vec::new(),
            log: None,
            actions: VecDeque::new(),
            keys_ended: false,
            over: false,
            failure: None,
            cut_off: None,
        };
        match start.open {
            Some((host, port)) => console.open(host, port),
            None => console.command_level(),
        }
        console
    }

    /// The next thing to do.
    pub fn action(&mut self) -> Option<ClientAction> {
        self.actions.pop_front()
    }
    /// Octets for the screen; the driver says with [`shown`](Console::shown) how many it wrote.
    pub fn screen(&self) -> &[u8] {
        &self.screen
    }
    /// `count` octets of [`screen`](Console::screen) are written.
    pub fn shown(&mut self, count: usize) {
        self.screen.drain(..count.min(self.screen.len()));
    }
    /// Takes the octets to append to the typescript.
    pub fn take_log(&mut self) -> Vec<u8> {
        self.log.as_mut().map(core::mem::take).unwrap_or_default()
    }
    /// Whether keys are taken.
    pub fn takes_keys(&self) -> bool {
        if self.keys_ended || self.screen.len() >= ECHO_BYTES {
            return false;
        }
        match self.current() {
            Some(Slot { connection: Some(connection), .. }) if self.command.is_none() => {
                connection.takes_keys()
            }
            // A person can type on and interrupt the wait; nothing of a pipe must be lost.
            Some(Slot { connection: None, ahead, .. }) if !self.settings.is_terminal => {
                ahead.len() < AHEAD_BYTES
            }
            _ => true,
        }
    }
    /// Whether octets of a session are taken.
    pub fn takes_input(&self, id: SessionId) -> bool {
        let Some(slot) = self.slots.iter().find(|slot| slot.id == id) else { return false };
        let room = self.screen.len() < SCREEN_BYTES && slot.backlog.len() < BACKLOG_BYTES;
        slot.connection.as_ref().is_some_and(|connection| room && connection.takes_input())
    }
    /// A session's connection, for what waits to be sent.
    pub fn connection(&mut self, id: SessionId) -> Option<&mut Connection> {
        self.slots.iter_mut().find(|slot| slot.id == id)?.connection.as_mut()
    }

    /// Keys.
    pub fn typed(&mut self, keys: &[u8]) {
        let mut rest = keys;
        while !rest.is_empty() && !self.over {
            if let Some(slot) = self.waiting_for_a_pipe() {
                slot.ahead.extend_from_slice(rest);
                return;
            }
            if self.command.is_some() {
                let Some((&key, after)) = rest.split_first() else { return };
                rest = after;
                self.command_key(key);
                continue;
            }
            let escape = rest.iter().position(|&key| Some(key) == self.settings.escape);
            let run = rest.get(..escape.unwrap_or(rest.len())).unwrap_or_default();
            rest = rest.get(run.len() + usize::from(escape.is_some())..).unwrap_or_default();
            self.session_keys(run);
            if escape.is_some() {
                self.screen.extend_from_slice(b"\r\n");
                self.command_level();
            }
        }
    }

    /// The session that is not open yet, where keys come from a pipe: commands in it wait for the session, too.
    fn waiting_for_a_pipe(&mut self) -> Option<&mut Slot> {
        let is_piped = !self.settings.is_terminal && self.command.is_none();
        let id = self.current.filter(|_| is_piped)?;
        self.slots.iter_mut().find(|slot| slot.id == id && slot.connection.is_none())
    }

    fn session_keys(&mut self, keys: &[u8]) {
        let Some(id) = self.current else { return };
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.id == id) else { return };
        let Some(connection) = &mut slot.connection else {
            // Nobody is there yet who could be interrupted: the wait itself is.
            let room = AHEAD_BYTES.saturating_sub(slot.ahead.len());
            slot.ahead.extend(keys.iter().take(room));
            if keys.iter().any(|&key| Some(key) == self.settings.interrupt) {
                let reason = format!("cannot connect to {} port {}: interrupted", slot.host, slot.port);
                self.failed(id, &reason);
            }
            return;
        };
        let mut echoed = Vec::new();
        connection.typed(keys, &self.settings, &mut echoed);
        self.show(&echoed);
    }

    /// Output of a session goes to the screen and the typescript.
    fn show(&mut self, octets: &[u8]) {
        self.screen.extend_from_slice(octets);
        if let Some(log) = &mut self.log {
            log.extend_from_slice(octets);
        }
    }

    fn say(&mut self, text: &str) {
        write_lines(&[text], &mut self.screen);
    }

    fn command_level(&mut self) {
        self.command = Some(LineEditor::new(COMMAND_BYTES, self.settings.editing_keys()));
        self.screen.extend_from_slice(PROMPT);
        if let Some(connection) = self.current.and_then(|id| self.connection(id)) {
            connection.release();
        }
    }

    fn command_key(&mut self, key: u8) {
        let Some(editor) = &mut self.command else { return };
        if Some(key) == self.settings.escape && editor.line().is_empty() {
            self.screen.extend_from_slice(b"\r\n");
            if let Some(connection) = self.current.and_then(|id| self.connection(id)) {
                connection.send(&[key]);
            }
            return self.back();
        }
        match editor.key(key, Echo::Shown, &mut self.screen) {
            Some(Edited::Line(line)) => match commands::parse(&String::from_utf8_lossy(&line)) {
                Ok(order) => self.obey(order),
                Err(error) => {
                    self.say(&error.to_string());
                    self.back();
                }
            },
            Some(Edited::Interrupt) => self.back(),
            Some(Edited::EndOfFile) => {
                self.screen.extend_from_slice(b"\r\n");
                self.obey(Order::Quit);
            }
            None => {}
        }
    }

    /// From the command level to the session, or to the next command where there is none.
    fn back(&mut self) {
        let Some(id) = self.current.filter(|_| !self.over) else {
            if !self.over {
                self.command_level();
            }
            return;
        };
        self.command = None;
        let backlog =
            self.slots.iter_mut().find(|slot| slot.id == id).map(|slot| core::mem::take(&mut slot.backlog));
        self.show(&backlog.unwrap_or_default());
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Nothing => {}
            Order::Open { host, port } => self.open(host, port),
            Order::Close => match self.current {
                Some(id) => {
                    self.command = None;
                    return self.end(id, "closed");
                }
                None => self.say("There is no session to close."),
            },
            Order::Quit => return self.quit(),
            Order::Suspend => {
                self.actions.push_back(ClientAction::Suspend);
                // The prompt or the session comes back when the process does.
                return;
            }
            Order::Status => return self.status(),
            Order::Display => {
                let lines = self.settings.lines();
                write_lines(&lines, &mut self.screen);
            }
            Order::Help => write_lines(&commands::HELP.lines().collect::<Vec<_>>(), &mut self.screen),
            Order::Mode(mode) => self.with_connection(|connection| connection.ask_mode(mode)),
            Order::Send(sendings) => self.send(&sendings),
            Order::SetKey(name, key) => self.set_key(name, key),
            Order::SetTransmit(transmit) => self.settings.transmit = transmit,
            Order::SetTabs(tabs) => {
                self.settings.tabs = tabs;
                self.apply();
            }
            Order::Switch(toggle, on) => self.switch(toggle, on),
            Order::Log(file) => self.set_log(file),
            Order::Sessions => self.list(),
            Order::Session(number) => self.change_session(number),
        }
        self.back();
    }

    fn with_connection(&mut self, act: impl FnOnce(&mut Connection)) {
        match self.current.and_then(|id| self.connection(id)) {
            Some(connection) => act(connection),
            None => self.say("There is no open session."),
        }
    }

    fn open(&mut self, host: String, port: u16) {
        if self.slots.len() >= SESSIONS {
            return self.say("There are as many sessions as there can be; close one first.");
        }
        let id = SessionId(self.next_id);
        self.next_id += 1;
        self.say(&format!("Trying {host} port {port} ..."));
        self.slots.push(Slot {
            id,
            host: host.clone(),
            port,
            connection: None,
            ahead: Vec::new(),
            backlog: Vec::new(),
        });
        self.current = Some(id);
        self.command = None;
        self.actions.push_back(ClientAction::Connect { id, host, port });
    }

    /// A session's connection is open; `address` is what it led to.
    pub fn opened(&mut self, id: SessionId, address: &str) {
        let (config, window) = (self.config.clone(), self.window);
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.id == id) else { return };
        let start = slot.port == TELNET_PORT;
        slot.connection = Some(Connection::new(config, &self.settings, window, start));
        let escape = match self.settings.escape {
            Some(key) => format!(" Escape is {}.", super::settings::key_text(key)),
            None => String::new(),
        };
        let host = slot.host.clone();
        let literal =
            host.parse().is_ok_and(|ip| std::net::SocketAddr::new(ip, slot.port).to_string() == address);
        let to = if literal || host == address { address.to_owned() } else { format!("{host} ({address})") };
        let ahead = core::mem::take(&mut slot.ahead);
        self.notice(&format!("Connected to {to}.{escape}"));
        if self.current == Some(id) {
            if self.settings.is_terminal { self.session_keys(&ahead) } else { self.typed(&ahead) }
        }
        if self.keys_ended {
            self.keys_ended();
        }
    }
    /// A session's connection could not be opened.
    pub fn failed(&mut self, id: SessionId, reason: &str) {
        let is_last = self.slots.len() == 1 && self.command.is_none();
        if is_last && self.ends_with_last {
            self.failure = Some(reason.to_owned());
            return self.quit();
        }
        self.end(id, reason);
        if self.keys_ended {
            self.keys_ended();
        }
    }
    /// A session's connection has ended from the other side. It is a failure of the client if the connection broke, or
    /// if the other side did not take all that has come from a pipe. The driver reads the keys once more before.
    pub fn closed(&mut self, id: SessionId, reason: &str, is_broken: bool) {
        let is_left = self.connection(id).is_some_and(|connection| connection.telnet().pending_bytes() > 0);
        if self.ends_with_last {
            let host = self.slots.iter().find(|slot| slot.id == id).map_or("?", |slot| &*slot.host);
            let why = format!("session with {host}: {reason}");
            match () {
                () if is_broken => self.failure = Some(why),
                () if self.settings.is_terminal => {}
                () if is_left => self.failure = Some(why + " before the end of the input"),
                () if !self.keys_ended => self.cut_off = Some(why + " before the end of the input"),
                () => {}
            }
        }
        self.end(id, reason);
    }
    /// Whether it matters that a pipe has more: [`Console::rest`] takes the answer.
    pub fn awaits_rest(&self) -> bool {
        self.cut_off.is_some()
    }
    /// Whether the pipe has more for a session that has ended.
    pub fn rest(&mut self, has_more: bool) {
        let cut_off = self.cut_off.take();
        self.failure = self.failure.take().or(cut_off.filter(|_| has_more));
    }

    /// Something that happens while a command may be half typed.
    fn notice(&mut self, text: &str) {
        let Some(editor) = &self.command else { return self.say(text) };
        let line = editor.line().to_vec();
        self.screen.extend_from_slice(b"\r\n");
        self.say(text);
        self.screen.extend_from_slice(PROMPT);
        self.screen.extend_from_slice(&line);
    }

    /// Takes a session away; the client goes on with another, at the command level, or not at all.
    fn end(&mut self, id: SessionId, reason: &str) {
        let Some(index) = self.slots.iter().position(|slot| slot.id == id) else { return };
        let mut slot = self.slots.remove(index);
        let was_current = self.current == Some(id);
        let at_command = self.command.is_some();
        if was_current && !at_command {
            self.show(&slot.backlog);
            self.screen.extend_from_slice(b"\r\n");
        }
        self.actions.push_back(slot.disconnect());
        self.notice(&format!("Session with {}: {reason}.", slot.host));
        if !was_current {
            return;
        }
        self.current = self.slots.last().map(|slot| slot.id);
        match self.current {
            None if self.ends_with_last || self.keys_ended => self.quit(),
            None if !at_command => self.command_level(),
            Some(_) if !at_command => {
                self.announce_current();
                self.back();
            }
            _ => {}
        }
    }

    fn quit(&mut self) {
        for mut slot in core::mem::take(&mut self.slots) {
            self.actions.push_back(slot.disconnect());
        }
        self.actions.push_back(ClientAction::Quit);
        (self.over, self.current, self.command) = (true, None, None);
    }

    fn send(&mut self, sendings: &[Sending]) {
        let escape = self.settings.escape;
        let mut refused = None;
        self.with_connection(|connection| {
            for sending in sendings {
                match sending {
                    Sending::Command(command) => connection.telnet().send_command(*command),
                    Sending::Synch => connection.telnet().send_synch(),
                    Sending::Escape => connection.send(escape.as_slice()),
                    Sending::Status if connection.telnet().ask_status() => {}
                    Sending::Status => refused = Some("The server has not agreed to tell its status."),
                    Sending::TimingMark if connection.telnet().send_timing_mark() => {}
                    Sending::TimingMark => refused = Some("Too many marks are unanswered."),
                }
            }
        });
        if let Some(text) = refused {
            self.say(text);
        }
    }

    fn set_key(&mut self, name: KeyName, key: Option<u8>) {
        *self.settings.key_mut(name) = key;
        self.apply();
        let key = key.map_or_else(|| "off".to_owned(), super::settings::key_text);
        self.say(&format!("{} is {key}.", commands::key_name(name)));
    }
    fn apply(&mut self) {
        for connection in self.slots.iter_mut().filter_map(|slot| slot.connection.as_mut()) {
            connection.set(&self.settings);
        }
    }

    fn switch(&mut self, toggle: Toggle, on: Option<bool>) {
        let settings = &mut self.settings;
        let place = match toggle {
            Toggle::ReturnIsCrLf => &mut settings.return_is_cr_lf,
            Toggle::Options => &mut settings.options,
            Toggle::AutoFlush => &mut settings.auto_flush,
            Toggle::AutoSynch => &mut settings.auto_synch,
            Toggle::LocalCharacters => settings.local_characters.get_or_insert(false),
            Toggle::LineMode => {
                let on = on.unwrap_or(!settings.line_mode);
                settings.line_mode = on;
                if let Some(connection) = self.current.and_then(|id| self.connection(id)) {
                    connection.ask_line_mode(on);
                }
                return self.say(if on { "linemode is on." } else { "linemode is off." });
            }
            Toggle::Charset => {
                let on = on.unwrap_or(!settings.charset);
                settings.charset = on;
                if let Some(connection) = self.current.and_then(|id| self.connection(id)) {
                    connection.telnet().ask_charset(on);
                }
                return self.say(if on { "charset is on." } else { "charset is off." });
            }
            Toggle::Binary => {
                return self.with_connection(|connection| {
                    let on = on.unwrap_or(!connection.is_binary());
                    connection.ask_binary(on);
                });
            }
        };
        *place = on.unwrap_or(!*place);
        let state = if *place { "on" } else { "off" };
        self.say(&format!("{} is {state}.", commands::toggle_name(toggle)));
    }

    fn set_log(&mut self, file: Option<String>) {
        match file {
            Some(file) => self.actions.push_back(ClientAction::OpenTypescript(file)),
            None => {
                let had = self.log.take().is_some();
                self.say(if had { "The typescript ends here." } else { "There is no typescript." });
                self.actions.push_back(ClientAction::CloseTypescript);
            }
        }
    }
    /// The typescript could be opened, or not.
    pub fn typescript(&mut self, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => {
                self.log = Some(Vec::new());
                self.notice("The typescript begins here.");
            }
            Err(error) => self.notice(&format!("No typescript: {error}.")),
        }
    }

    fn list(&mut self) {
        let line = |(index, slot): (usize, &Slot)| {
            let mark = if Some(slot.id) == self.current { '*' } else { ' ' };
            let state = if slot.connection.is_some() { "open" } else { "opening" };
            let unseen = slot.backlog.len();
            let unseen = if unseen > 0 { format!(", {unseen} octets unseen") } else { String::new() };
            format!("{mark}{} {} port {}: {state}{unseen}", index + 1, slot.host, slot.port)
        };
        let lines: Vec<String> = self.slots.iter().enumerate().map(line).collect();
        write_lines(&lines, &mut self.screen);
        if lines.is_empty() {
            self.say("There are no sessions.");
        }
    }

    fn change_session(&mut self, number: Option<usize>) {
        let place = self.slots.iter().position(|slot| Some(slot.id) == self.current).unwrap_or(0);
        let wanted = match number {
            Some(number) => number - 1,
            None => (place + 1) % self.slots.len().max(1),
        };
        match self.slots.get(wanted) {
            Some(slot) => {
                self.current = Some(slot.id);
                self.announce_current();
            }
            None => self.say("There is no such session; sessions lists them."),
        }
    }
    fn announce_current(&mut self) {
        if let Some(text) = self.current().map(|slot| format!("Session with {}.", slot.host)) {
            self.say(&text);
        }
    }
    fn current(&self) -> Option<&Slot> {
        self.slots.iter().find(|slot| Some(slot.id) == self.current)
    }

    fn status(&mut self) {
        let Some(slot) = self.current() else {
            self.say("There is no session.");
            return self.back();
        };
        let mut lines = vec![format!("session      {} port {}", slot.host, slot.port)];
        match &slot.connection {
            Some(connection) => lines.extend(connection.status()),
            None => lines.push("state        opening".to_owned()),
        }
        let id = slot.id;
        write_lines(&lines, &mut self.screen);
        self.actions.push_back(ClientAction::Statistics(id));
    }
    /// The connection's status, for `status`.
    pub fn statistics(&mut self, lines: &[String]) {
        write_lines(lines, &mut self.screen);
        self.back();
    }

    /// What is wrong with a session's connection, which goes on all the same; `None` when it is right again.
    pub fn trouble(&mut self, id: SessionId, what: Option<&str>) {
        let text = match what {
            Some(what) => format!("\r\n[{what}; the session goes on, and waits]\r\n"),
            None => "\r\n[the other host answers again]\r\n".to_owned(),
        };
        let is_visible = self.current == Some(id) && self.command.is_none();
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.id == id) else { return };
        match is_visible {
            true => self.show(text.as_bytes()),
            false => slot.backlog.extend_from_slice(text.as_bytes()),
        }
    }

    /// Octets of a session.
    pub fn network(&mut self, id: SessionId, input: &[u8], now: Instant) {
        let visible = self.current == Some(id) && self.command.is_none();
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.id == id) else { return };
        let Some(connection) = &mut slot.connection else { return };
        let mut shown = Vec::new();
        connection.network(input, &self.settings, now, &mut shown);
        let violation = connection.violation();
        match visible {
            true => self.show(&shown),
            false => slot.backlog.extend_from_slice(&shown),
        }
        if let Some(violation) = violation {
            self.end(id, &violation.to_string());
        }
    }

    /// The window has this size now.
    pub fn resized(&mut self, columns: u16, rows: u16) {
        self.window = (columns, rows);
        for connection in self.slots.iter_mut().filter_map(|slot| slot.connection.as_mut()) {
            connection.telnet().set_window(columns, rows);
        }
    }
    /// The process goes on after [`ClientAction::Suspend`].
    pub fn resumed(&mut self) {
        if self.command.is_some() {
            self.back();
        }
    }
    /// Keys have ended. Where a terminal is gone, the sessions are closed. Where a pipe is empty, each session is sent all
    /// that came, and told that nothing more comes; the client ends with the last of them. A session that is not open yet
    /// has its turn as soon as it is, for that it could be opened is something to know.
    pub fn keys_ended(&mut self) {
        self.keys_ended = true;
        if self.over {
            return;
        }
        if self.settings.is_terminal {
            if self.slots.iter().all(|slot| slot.connection.is_some()) {
                self.quit();
            }
            return;
        }
        for slot in &mut self.slots {
            if let Some(connection) = &mut slot.connection {
                connection.keys_ended();
                self.actions.push_back(ClientAction::EndInput(slot.id));
            }
        }
        match self.current {
            Some(_) if self.command.is_some() => self.back(),
            Some(_) => {}
            None => self.quit(),
        }
    }
    /// Why the connection that the client was to begin with could not be opened, or how it broke; taken.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }
    /// The mode of the session on the screen, for tests and for showing.
    pub fn mode(&self) -> Option<Mode> {
        self.current()?.connection.as_ref().map(Connection::mode)
    }
    /// Whether `option` is in force in the session on the screen.
    pub fn is_active(&mut self, side: Side, option: TelnetOption) -> bool {
        self.current
            .and_then(|id| self.connection(id))
            .is_some_and(|connection| connection.telnet().is_active(side, option))
    }
}
