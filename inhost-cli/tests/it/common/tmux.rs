//! A terminal on which a command is watched.

use super::Serve;
use inhost_interop::{Running, run, until};
use std::process::Command;

/// A terminal by tmux, whose server is this test's.
pub struct Tmux {
    _server: Running,
    socket: String,
}

impl Tmux {
    /// A host's terminal in which `inhost command` runs.
    pub fn start(serve: &Serve, command: &str) -> Tmux {
        let socket = serve.folder.0.join("tmux").display().to_string();
        let mut server = Command::new("tmux");
        // A C locale would have no box characters.
        server.args(["-D", "-f", "/dev/null", "-S", &socket]).env("LC_ALL", "C.UTF-8").env_remove("TMUX");
        let terminal = Tmux { _server: Running::start(&mut server), socket };
        until("tmux listens", || std::path::Path::new(&terminal.socket).exists().then_some(()));
        let shell = format!("{} {command}; echo ended with $?; exec cat", env!("CARGO_BIN_EXE_inhost"));
        let folder = format!("XDG_RUNTIME_DIR={}", serve.folder.0.display());
        terminal.tmux(&["new-session", "-d", "-x", "120", "-y", "32", "-e", &folder, "sh", "-c", &shell]);
        terminal
    }
    /// Gives tmux a command.
    pub fn tmux(&self, arguments: &[&str]) -> String {
        run(Command::new("tmux").args(["-S", &self.socket]).args(arguments))
    }
    /// Presses keys, by tmux's names.
    pub fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }
    /// Waits until the screen shows something; the screen.
    pub fn wait(&self, what: &str) -> String {
        let mut shown = String::new();
        until(what, || {
            shown = self.tmux(&["capture-pane", "-p"]);
            shown.contains(what).then(|| shown.clone())
        })
    }
}
