//! The state of an rlogin session: input, output, screen, and the server's urgent control octets.

use crate::codec::{Reply, ReplyReader};

/// RFC 1282: throw away what was not shown yet.
const FLUSH: u8 = 0x02;
/// The server wants ^S and ^Q for itself.
const RAW: u8 = 0x10;
/// The client is to stop and to start output at ^S and ^Q.
const COOKED: u8 = 0x20;
/// Tell the window's size, now and whenever it changes.
const WINDOW: u8 = 0x80;

const STOP: u8 = 0x13;
const START: u8 = 0x11;
/// Ends the session, behind the escape character at the beginning of a line: as `.` does.
const END_OF_INPUT: u8 = 0x04;
const SUSPEND: u8 = 0x1a;

/// Limit of unshown output; beyond it the network is not read.
const SCREEN_BYTES: usize = 64 * 1024;
/// Limit of unsent input; beyond it the keyboard is not read.
const OUTPUT_BYTES: usize = 16 * 1024;
/// The longest name of a user or a terminal.
const NAME_BYTES: usize = 255;

/// Start options of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opening {
    /// The user's name here.
    pub local_user: String,
    /// The user's name there.
    pub remote_user: String,
    /// The kind of terminal, such as xterm.
    pub terminal: String,
    /// Its speed in bits a second.
    pub speed: u32,
    /// Columns and rows of its window.
    pub window: (u16, u16),
    /// The character that, at the beginning of a line, leads to commands; `None` for none.
    pub escape: Option<u8>,
    /// Whether the connection tells where urgent data is. Where it does not, a window-size signal is still known by where
    /// servers send it: before anything else.
    pub has_urgent: bool,
}

/// Actions for the driver besides moving octets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Give the terminal back to the shell for a while.
    Suspend,
    /// End: the user wants it so.
    Quit,
    /// End: the server refuses, in these words.
    Refused(String),
}

/// A session.
///
/// In: [`Login::urgent`], [`Login::network`], [`Login::typed`], [`Login::resized`]. Out: [`Login::output`] until it is
/// empty, with [`Login::sent`]; [`Login::screen`] with [`Login::shown`]; [`Login::action`].
#[derive(Clone, Debug)]
pub struct Login {
    phase: Phase,
    output: Vec<u8>,
    screen: Vec<u8>,
    action: Option<Action>,
    /// Octets up to and with the one that is a signal.
    urgent_in: Option<usize>,
    window: (u16, u16),
    tells_window: bool,
    cooked: bool,
    stopped: bool,
    has_urgent: bool,
    escape: Option<u8>,
    typing: Typing,
}

#[derive(Clone, Debug)]
enum Phase {
    /// The server has not answered yet.
    Starting(ReplyReader),
    /// It has, and nothing else has come yet.
    Fresh,
    Open,
    Over,
}

/// Position of the keys within a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Typing {
    LineStart,
    Escaped,
    Within,
}

impl Login {
    /// A session that is to begin so. Names hold no octet of zero, and are cut to what is usual.
    pub fn new(opening: &Opening) -> Login {
        let mut output = vec![0];
        for name in [&opening.local_user, &opening.remote_user] {
            output.extend(plain(name));
            output.push(0);
        }
        output.extend(plain(&opening.terminal));
        output.extend(format!("/{}\0", opening.speed).into_bytes());
        Login {
            phase: Phase::Starting(ReplyReader::default()),
            output,
            screen: Vec::new(),
            action: None,
            urgent_in: None,
            window: opening.window,
            tells_window: false,
            cooked: true,
            stopped: false,
            has_urgent: opening.has_urgent,
            escape: opening.escape,
            typing: Typing::LineStart,
        }
    }

    /// Urgent data is announced: `ahead` octets from here its last one is a signal.
    pub fn urgent(&mut self, ahead: usize) {
        if ahead > 0 && self.has_urgent {
            self.urgent_in = Some(ahead);
        }
    }
    /// Octets from the server.
    pub fn network(&mut self, mut octets: &[u8]) {
        while !octets.is_empty() {
            match (&mut self.phase, self.urgent_in) {
                (Phase::Over, _) => return,
                (_, Some(1)) => {
                    self.urgent_in = None;
                    self.signal(octets.first().copied().unwrap_or_default());
                    octets = octets.get(1..).unwrap_or_default();
                }
                (Phase::Starting(replies), urgent_in) => {
                    let limit = urgent_in.map_or(octets.len(), |ahead| (ahead - 1).min(octets.len()));
                    let (mut front, rest) = octets.split_at(limit);
                    let reply = replies.take(&mut front);
                    let taken = limit - front.len();
                    octets = octets.get(taken..).unwrap_or(rest);
                    self.urgent_in = urgent_in.map(|ahead| ahead - taken);
                    if let Some(reply) = reply {
                        self.replied(reply);
                    }
                }
                // What servers send before anything else is this signal, though it is not marked any more where another
                // has followed it: TCP has one mark.
                (Phase::Fresh, urgent_in) if octets.first() == Some(&WINDOW) => {
                    self.urgent_in = urgent_in.map(|ahead| ahead - 1);
                    self.phase = Phase::Open;
                    self.signal(WINDOW);
                    octets = octets.get(1..).unwrap_or_default();
                }
                (_, urgent_in) => {
                    let limit = urgent_in.map_or(octets.len(), |ahead| (ahead - 1).min(octets.len()));
                    let (front, rest) = octets.split_at(limit);
                    self.screen.extend_from_slice(front);
                    self.urgent_in = urgent_in.map(|ahead| ahead - limit);
                    self.phase = Phase::Open;
                    octets = rest;
                }
            }
        }
    }
    fn replied(&mut self, reply: Reply) {
        match reply {
            Reply::Ok => self.phase = Phase::Fresh,
            Reply::Warning(why) | Reply::Fatal(why) => self.end(Action::Refused(why)),
        }
    }
    /// The server has closed. What it said without an end is why, where it had not begun.
    pub fn network_ended(&mut self) {
        match &mut self.phase {
            Phase::Starting(replies) => match replies.end() {
                Some(reply) => self.replied(reply),
                None => {
                    self.end(Action::Refused("closed without a word; it may want a reserved port".into()))
                }
            },
            Phase::Over => {}
            Phase::Fresh | Phase::Open => self.end(Action::Quit),
        }
    }
    fn end(&mut self, how: Action) {
        self.phase = Phase::Over;
        self.stopped = false;
        self.action = Some(how);
    }
    /// RFC 1282: what the urgent octet asks for. Its bits may stand together.
    fn signal(&mut self, bits: u8) {
        if bits & FLUSH != 0 {
            self.screen.clear();
        }
        if bits & RAW != 0 {
            (self.cooked, self.stopped) = (false, false);
        }
        if bits & COOKED != 0 {
            self.cooked = true;
        }
        if bits & WINDOW != 0 {
            self.tells_window = true;
            self.tell_window();
        }
    }
    /// `FF FF "ss"`, then rows, columns and the pixels of both, which are not known.
    fn tell_window(&mut self) {
        let (columns, rows) = self.window;
        self.output.extend([0xff, 0xff, b's', b's']);
        for number in [rows, columns, 0, 0] {
            self.output.extend(number.to_be_bytes());
        }
    }

    /// The window has another size.
    pub fn resized(&mut self, columns: u16, rows: u16) {
        let changed = self.window != (columns, rows);
        self.window = (columns, rows);
        if changed && self.tells_window && !matches!(self.phase, Phase::Over) {
            self.tell_window();
        }
    }
    /// Keys of the user's.
    pub fn typed(&mut self, keys: &[u8]) {
        for &key in keys {
            if matches!(self.phase, Phase::Over) {
                return;
            }
            self.key(key);
        }
    }
    fn key(&mut self, key: u8) {
        match (self.typing, key) {
            (Typing::LineStart, key) if self.escape == Some(key) => {
                self.typing = Typing::Escaped;
                return;
            }
            (Typing::Escaped, b'.' | END_OF_INPUT) => return self.end(Action::Quit),
            (Typing::Escaped, SUSPEND) => {
                (self.typing, self.action) = (Typing::LineStart, Some(Action::Suspend));
                return;
            }
            // The escape character twice is that character.
            (Typing::Escaped, key) if self.escape != Some(key) => self.output.extend(self.escape),
            _ => {}
        }
        self.typing = if matches!(key, b'\r' | b'\n') { Typing::LineStart } else { Typing::Within };
        match key {
            STOP if self.cooked => self.stopped = true,
            START if self.cooked => self.stopped = false,
            key => self.output.push(key),
        }
    }

    /// Octets to send to the server.
    pub fn output(&self) -> &[u8] {
        &self.output
    }
    /// So much of it was sent.
    pub fn sent(&mut self, count: usize) {
        self.output.drain(..count.min(self.output.len()));
    }
    /// Octets to show next; none while the user has stopped output.
    pub fn screen(&self) -> &[u8] {
        if self.stopped { &[] } else { &self.screen }
    }
    /// So much of it was shown.
    pub fn shown(&mut self, count: usize) {
        self.screen.drain(..count.min(self.screen.len()));
    }
    /// Whether the network is to be read: what waits to be shown is bounded. A signal on its way gets through, and with
    /// it what stands before it, as far again.
    pub fn takes_network(&self) -> bool {
        let limit = if self.urgent_in.is_some() { 2 * SCREEN_BYTES } else { SCREEN_BYTES };
        self.screen.len() < limit && !matches!(self.phase, Phase::Over)
    }
    /// Whether the keyboard is to be read. ^Q has to get in when output is stopped, so only what is unsent counts.
    pub fn takes_keys(&self) -> bool {
        self.output.len() < OUTPUT_BYTES
    }
    /// Further actions.
    pub fn action(&mut self) -> Option<Action> {
        self.action.take()
    }
}

fn plain(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().filter(|&octet| octet != 0).take(NAME_BYTES)
}
