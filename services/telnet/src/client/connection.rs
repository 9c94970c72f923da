//! One session of the client: keys in, octets for the server out; octets from the server in, screen out.

use core::num::NonZeroU8;

use inhost_base::Instant;

use super::heath::{HeathKeys, HeathScreen};
use super::settings::{Emulation, Mode, Settings, Transmit};
use super::status;
use crate::codec::{Charset, Command, EditMode, FlowControl, Function, Side, TelnetOption};
use crate::line::{Echo, Edited, EditingKeys, LineEditor, show};
use crate::machine::{Config, Event, TabExpansion, Telnet, Violation};
use inhost_common::Cleaner;

/// Octets of a line that is edited here, or that waits for return.
const LINE_BYTES: usize = 1024;
const XON: u8 = 0x11;
const XOFF: u8 = 0x13;

/// One open connection.
#[derive(Debug)]
pub struct Connection {
    telnet: Telnet,
    editor: LineEditor,
    /// Data that waits for return.
    held: Vec<u8>,
    /// The last octet of a pipe was a CR.
    after_return: bool,
    /// TIMING-MARKs until which output is discarded.
    flushing: u32,
    /// The server has said that XOFF stops the output; what restarts it.
    flow: Option<FlowControl>,
    paused: bool,
    heath_screen: HeathScreen,
    heath_keys: HeathKeys,
    tabs: Option<TabExpansion>,
    violation: Option<Violation>,
    started: bool,
    /// The user knows that characters were replaced.
    substitutes_are_told: bool,
}

impl Connection {
    /// A connection that has just opened. `start`: the server is one of Telnet's port, so the negotiation
    /// is opened from here; elsewhere it waits for the server to open it.
    pub fn new(config: Config, settings: &Settings, window: (u16, u16), start: bool) -> Connection {
        let mut telnet = Telnet::new(config);
        telnet.set_window(window.0, window.1);
        telnet.set_special_characters(&settings.special_characters());
        if settings.is_terminal && settings.line_mode {
            telnet.accept(Side::Local, TelnetOption::LineMode);
        }
        if start {
            telnet.start();
            if settings.charset {
                telnet.ask_charset(true);
            }
            if settings.line_mode && settings.is_terminal {
                telnet.enable(Side::Local, TelnetOption::LineMode);
            }
        }
        Connection {
            telnet,
            editor: LineEditor::new(LINE_BYTES, settings.editing_keys()),
            held: Vec::new(),
            after_return: false,
            flushing: 0,
            flow: None,
            paused: false,
            heath_screen: HeathScreen::default(),
            heath_keys: HeathKeys::default(),
            tabs: settings.tabs.map(TabExpansion::new),
            violation: None,
            started: start,
            substitutes_are_told: false,
        }
    }
    /// The protocol machine, for what waits to be sent.
    pub fn telnet(&mut self) -> &mut Telnet {
        &mut self.telnet
    }
    /// Protocol violation of the server that ends the connection.
    pub fn violation(&self) -> Option<Violation> {
        self.violation
    }
    /// Whether octets from the server are taken.
    pub fn takes_input(&self) -> bool {
        self.telnet.is_synchronizing() || (!self.paused && self.telnet.has_room())
    }
    /// Whether keys are taken.
    pub fn takes_keys(&self) -> bool {
        self.telnet.has_room()
    }
    /// New settings hold from now on.
    pub fn set(&mut self, settings: &Settings) {
        self.telnet.set_special_characters(&settings.special_characters());
        self.edit_mode_changed(settings);
        self.tabs = settings.tabs.map(TabExpansion::new);
    }
    /// The user has gone to the command level: nothing holds the output from here on.
    pub fn release(&mut self) {
        (self.paused, self.flushing) = (false, 0);
    }

    /// Whether the line is edited here: the server has not agreed to take single characters, which in
    /// practice is what SUPPRESS-GO-AHEAD says.
    /// spec: RFC858
    pub fn mode(&self) -> Mode {
        let edits_here = self.telnet.edit_mode().map(|mode| mode.contains(EditMode::EDIT));
        let is_character = self.telnet.is_active(Side::Remote, TelnetOption::SuppressGoAhead);
        match edits_here.map_or(is_character, |edits| !edits) {
            true => Mode::Character,
            false => Mode::Line,
        }
    }
    /// Asks the server for the other mode.
    pub fn ask_mode(&mut self, mode: Mode) {
        for option in [TelnetOption::SuppressGoAhead, TelnetOption::Echo] {
            match mode {
                Mode::Character => self.telnet.enable(Side::Remote, option),
                Mode::Line => self.telnet.disable(Side::Remote, option),
            }
        }
    }
    /// Offers LINEMODE, or ends it.
    /// spec: RFC1184
    pub fn ask_line_mode(&mut self, on: bool) {
        match on {
            true => {
                self.telnet.accept(Side::Local, TelnetOption::LineMode);
                self.telnet.enable(Side::Local, TelnetOption::LineMode);
            }
            false => self.telnet.disable(Side::Local, TelnetOption::LineMode),
        }
    }
    /// Asks for BINARY both ways, or for its end.
    /// spec: RFC856
    pub fn ask_binary(&mut self, on: bool) {
        for side in [Side::Local, Side::Remote] {
            match on {
                true => self.telnet.enable(side, TelnetOption::Binary),
                false => self.telnet.disable(side, TelnetOption::Binary),
            }
        }
    }
    /// Whether BINARY is in force, or asked for, on either side.
    pub fn is_binary(&self) -> bool {
        [Side::Local, Side::Remote]
            .into_iter()
            .any(|side| self.telnet.phase(side, TelnetOption::Binary).is_wanted())
    }

    fn echo(&self) -> Echo {
        match self.telnet.is_active(Side::Remote, TelnetOption::Echo) {
            true => Echo::Hidden,
            false => Echo::Shown,
        }
    }

    /// Keys for the server.
    pub fn typed(&mut self, keys: &[u8], settings: &Settings, screen: &mut Vec<u8>) {
        if !settings.is_terminal {
            keys.iter().for_each(|&octet| self.piped(octet));
            self.release_held();
            return self.tell_substitutes(screen);
        }
        if settings.emulation == Emulation::Heath19 {
            let mut translated = Vec::new();
            self.heath_keys.translate(keys, &mut translated);
            translated.iter().for_each(|&key| self.key(key, settings, screen));
        } else {
            keys.iter().for_each(|&key| self.key(key, settings, screen));
        }
        if settings.transmit == Transmit::Character {
            self.release_held();
        }
        self.tell_substitutes(screen);
    }

    /// Says, once, that the agreed charset lacks characters that were typed or shown.
    fn tell_substitutes(&mut self, screen: &mut Vec<u8>) {
        if self.substitutes_are_told || self.telnet.counters().substituted_characters == 0 {
            return;
        }
        self.substitutes_are_told = true;
        let name = self.telnet.charset().map_or("the charset", Charset::name);
        write_lines(&["", &format!("[{name} lacks a character; a substitute stands for it]")], screen);
    }

    /// One octet of a pipe, whose lines end as files have it.
    /// spec: RFC854 NVT
    fn piped(&mut self, octet: u8) {
        let after_return = core::mem::replace(&mut self.after_return, octet == b'\r');
        let binary = self.telnet.is_active(Side::Local, TelnetOption::Binary);
        if octet == b'\n' && !after_return && !binary {
            self.held.push(b'\r');
        }
        self.held.push(octet);
    }

    /// No key comes any more: what was typed and not sent yet is sent.
    pub fn keys_ended(&mut self) {
        let line = self.editor.take();
        self.held.extend_from_slice(&line);
        self.release_held();
    }

    fn key(&mut self, key: u8, settings: &Settings, screen: &mut Vec<u8>) {
        if self.flow_key(key) {
            return;
        }
        let mode = self.mode();
        if let Some(edit) = self.telnet.edit_mode() {
            return self.line_mode_key(key, edit, settings, screen);
        }
        if settings.local_characters.unwrap_or(mode == Mode::Line)
            && self.command_key(key, mode, settings, screen)
        {
            return;
        }
        match mode {
            Mode::Character => self.character(key, settings, screen),
            Mode::Line => self.line_key(key, settings, screen),
        }
    }

    /// A key in LINEMODE, with the characters that both ends agreed on.
    /// spec: RFC1184 client
    fn line_mode_key(&mut self, key: u8, edit: EditMode, settings: &Settings, screen: &mut Vec<u8>) {
        let edits = edit.contains(EditMode::EDIT);
        let traps = edit.contains(EditMode::TRAP_SIGNALS);
        let is_function = |function: &Function| {
            let is_used = match function {
                Function::EndOfFile | Function::Forward | Function::Forward2 => edits,
                Function::Synch => traps,
                // Where nobody traps it, it goes at once, with the line so far.
                _ => function.command().is_some() && (traps || edits),
            };
            is_used && self.telnet.special_character(*function).character() == Some(key)
        };
        let function = Function::ALL.into_iter().find(is_function).filter(|_| !self.editor.is_literal());
        match function {
            None if edits => self.line_key(key, settings, screen),
            None => self.character(key, settings, screen),
            Some(Function::EndOfFile) => {
                let line = self.editor.take();
                match line.is_empty() {
                    true => self.telnet.send_command(Command::EndOfFile),
                    false => self.telnet.send(&line),
                }
            }
            Some(function) if traps && function.command().is_some() || function == Function::Synch => {
                self.signal_key(function, key, screen);
            }
            Some(_) => {
                let mut line = self.editor.take();
                line.push(key);
                if self.echo() == Echo::Shown {
                    show(key, screen);
                }
                self.telnet.send(&line);
            }
        }
    }
    /// A key that is a command in LINEMODE: what was typed of the line is dropped, as a terminal drops it.
    fn signal_key(&mut self, function: Function, key: u8, screen: &mut Vec<u8>) {
        let setting = self.telnet.special_character(function);
        if matches!(function, Function::Interrupt | Function::Abort | Function::Suspend) {
            self.editor.clear();
            if self.echo() == Echo::Shown {
                show(key, screen);
                screen.extend_from_slice(b"\r\n");
            }
        }
        self.release_held();
        if let Some(command) = function.command() {
            self.telnet.send_command(command);
        }
        if setting.flushes_input || function == Function::Synch {
            self.telnet.send_synch();
        }
        if setting.flushes_output && self.telnet.send_timing_mark() {
            self.flushing += 1;
        }
    }
    /// The editor's keys, and how it echoes, follow LINEMODE where that is in force.
    fn edit_mode_changed(&mut self, settings: &Settings) {
        let mode = self.telnet.edit_mode();
        let of = |function| self.telnet.special_character(function).character().unwrap_or(0);
        let keys = match mode {
            None => settings.editing_keys(),
            Some(_) => EditingKeys {
                erase: of(Function::EraseCharacter),
                kill: of(Function::EraseLine),
                word_erase: of(Function::EraseWord),
                reprint: of(Function::Reprint),
                literal: of(Function::LiteralNext),
                // Both are functions of their own.
                interrupt: 0,
                end_of_file: 0,
            },
        };
        self.editor.set_keys(keys);
        let has = |flag| mode.is_some_and(|mode| mode.contains(flag));
        self.editor.set_literal_echo(has(EditMode::LITERAL_ECHO));
        let stops = settings.tabs.or(NonZeroU8::new(8).filter(|_| has(EditMode::SOFT_TABS)));
        if stops.is_some() != self.tabs.is_some() {
            self.tabs = stops.map(TabExpansion::new);
        }
    }

    /// XOFF and XON, where the server leaves them to us.
    /// spec: RFC1372
    fn flow_key(&mut self, key: u8) -> bool {
        let restarts_on_any = self.flow == Some(FlowControl::RestartAny);
        match key {
            _ if self.flow.is_none() => false,
            XOFF => {
                self.paused = true;
                true
            }
            XON => {
                self.paused = false;
                true
            }
            _ => {
                if restarts_on_any {
                    self.paused = false;
                }
                false
            }
        }
    }

    /// A key that is a Telnet command.
    fn command_key(&mut self, key: u8, mode: Mode, settings: &Settings, screen: &mut Vec<u8>) -> bool {
        let is = |wanted: Option<u8>| wanted == Some(key);
        let (command, flushes) = match key {
            _ if is(settings.interrupt) => (Command::InterruptProcess, true),
            _ if is(settings.quit) => (Command::Abort, true),
            _ if is(settings.flush_output) => (Command::AbortOutput, true),
            _ if mode == Mode::Line => return false,
            _ if is(settings.erase) => (Command::EraseCharacter, false),
            _ if is(settings.kill) => (Command::EraseLine, false),
            _ => return false,
        };
        if mode == Mode::Line && is(settings.interrupt) {
            let _ = self.editor.key(key, self.echo(), screen);
        }
        self.release_held();
        self.telnet.send_command(command);
        if flushes && settings.auto_synch {
            self.telnet.send_synch();
        }
        if flushes && settings.auto_flush && self.telnet.send_timing_mark() {
            self.flushing += 1;
        }
        true
    }

    fn character(&mut self, key: u8, settings: &Settings, screen: &mut Vec<u8>) {
        let line = self.editor.take();
        self.held.extend_from_slice(&line);
        let binary = self.telnet.is_active(Side::Local, TelnetOption::Binary);
        match key {
            b'\r' if settings.return_is_cr_lf && !binary => self.held.extend_from_slice(b"\r\n"),
            _ => self.held.push(key),
        }
        if self.echo() == Echo::Shown {
            match key {
                b'\r' | b'\n' => screen.extend_from_slice(b"\r\n"),
                _ => show(key, screen),
            }
        }
        let own_meaning = key < 0x20 && key != b'\t';
        if own_meaning || self.held.len() >= LINE_BYTES {
            self.release_held();
        }
    }

    fn line_key(&mut self, key: u8, settings: &Settings, screen: &mut Vec<u8>) {
        let binary = self.telnet.is_active(Side::Local, TelnetOption::Binary);
        match self.editor.key(key, self.echo(), screen) {
            Some(Edited::Line(line)) => {
                self.telnet.send(&line);
                self.telnet.send(if binary { b"\r" } else { b"\r\n" });
                self.telnet.end_record();
            }
            Some(Edited::Interrupt) => self.telnet.send(settings.interrupt.as_slice()),
            Some(Edited::EndOfFile) => self.telnet.send_command(Command::EndOfFile),
            None => {}
        }
    }

    fn release_held(&mut self) {
        self.telnet.send(&self.held);
        self.held.clear();
    }

    /// Octets as they are: the escape key typed twice.
    pub fn send(&mut self, octets: &[u8]) {
        self.release_held();
        self.telnet.send(octets);
    }

    /// Octets from the server.
    pub fn network(&mut self, input: &[u8], settings: &Settings, now: Instant, screen: &mut Vec<u8>) {
        self.telnet.advance(now);
        let mut rest = input;
        while let Some(event) = self.telnet.receive(&mut rest) {
            match event {
                Event::Data(data) if self.flushing == 0 => self.show(data, settings, screen),
                Event::Text(text) if self.flushing == 0 => {
                    self.show(&text, settings, screen);
                    self.tell_substitutes(screen);
                }
                Event::Charset(charset) if settings.options => {
                    write_lines(&[format!("[charset {charset}]")], screen);
                }
                Event::CharsetRejected if settings.options => write_lines(&["[charset rejected]"], screen),
                Event::TimingMark => self.flushing = self.flushing.saturating_sub(1),
                Event::FlowControl(FlowControl::Off) => (self.flow, self.paused) = (None, false),
                Event::FlowControl(flow) => self.flow = Some(flow),
                Event::OptionChanged { side, option, active } => {
                    self.option_changed(side, option, active);
                    if option == TelnetOption::LineMode {
                        self.edit_mode_changed(settings);
                    }
                    if settings.options {
                        write_lines(&[status::change_line(side, option, active)], screen);
                    }
                }
                Event::EditMode(_) | Event::SpecialCharacters => self.edit_mode_changed(settings),
                Event::Status(entries) => write_lines(&status::report_lines(&entries), screen),
                Event::Violation(violation) => {
                    self.violation = Some(violation);
                    return;
                }
                _ => {}
            }
        }
    }

    fn option_changed(&mut self, side: Side, option: TelnetOption, active: bool) {
        // A server on another port that negotiates does speak Telnet.
        if !self.started {
            self.started = true;
            self.telnet.start();
        }
        if (side, option, active) == (Side::Local, TelnetOption::RemoteFlowControl, false) {
            (self.flow, self.paused) = (None, false);
        }
    }

    fn show(&mut self, data: &[u8], settings: &Settings, screen: &mut Vec<u8>) {
        let mut expanded = Vec::new();
        let data = match &mut self.tabs {
            Some(tabs) => {
                tabs.expand(data, &mut expanded);
                &expanded
            }
            None => data,
        };
        match settings.emulation {
            Emulation::None => screen.extend_from_slice(data),
            Emulation::Heath19 => {
                self.heath_screen.translate(data, screen);
                let answer = self.heath_screen.answer();
                if !answer.is_empty() && self.telnet.spend_reply(answer.len()) {
                    self.telnet.send(&answer);
                }
            }
        }
    }

    /// Lines of `status`.
    pub fn status(&self) -> Vec<String> {
        let mode = match (self.mode(), self.echo()) {
            (Mode::Character, Echo::Hidden) => "a character at a time, echoed by the server",
            (Mode::Character, Echo::Shown) => "a character at a time, echoed here",
            (Mode::Line, Echo::Hidden) => "line by line, not echoed here",
            (Mode::Line, Echo::Shown) => "line by line, echoed here",
        };
        let counters = self.telnet.counters();
        let mut lines = vec![format!("mode         {mode}")];
        lines.push(format!(
            "received     {} octets, {} discarded by {} synchs",
            counters.received_bytes, counters.discarded_bytes, counters.synchs
        ));
        if let Some(charset) = self.telnet.charset() {
            lines.push(format!("charset      {charset}"));
        }
        lines.extend(status::option_lines(&self.telnet));
        lines
    }
}

/// Lines for a raw screen.
pub(super) fn write_lines<L: AsRef<str>>(lines: &[L], screen: &mut Vec<u8>) {
    for line in lines {
        screen.extend_from_slice(Cleaner::line(line.as_ref().as_bytes()).as_bytes());
        screen.extend_from_slice(b"\r\n");
    }
}
