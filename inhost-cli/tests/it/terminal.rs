//! `inhost telnet` on a real terminal: its state is restored at every kind of exit.

use crate::common::{Folder, PASSWORD, Serve};

/// A shell on a terminal of 90 by 30 that knows how the terminal was; `same` says whether it still is.
const SHELL: &str = "set stty_init \"rows 30 columns 90\"\n\
    set env(PS1) \"ready> \"\n\
    spawn bash --norc --noprofile -i\nwant {ready> $} 2\n\
    proc run {line status} {\n send \"$line\\r\"\n want {\\n(\\x1b\\[\\?2004[hl]\\r?)*ready> $} $status\n}\n\
    proc same {status} {\n send {[ \"$(stty -g)\" = \"$BEFORE\" ] && echo terminal-is-$((40+2))}\n\
      send \"\\r\"\n want terminal-is-42 $status\n want {ready> $} $status\n}\n\
    run {BEFORE=$(stty -g)} 3\n";

/// The client, logged in; its shell's prompt is `inside> `.
fn log_in() -> String {
    format!(
        "send \"{} telnet 127.0.0.1\\r\"\nwant inhost> 4\nsend \"logon ada\\r\"\nwant Password 5\n\
         send \"{PASSWORD}\\r\"\nwant {{[$#] $}} 6\nsend \"PS1='inside> '\\r\"\nwant {{inside> $}} 7\n",
        env!("CARGO_BIN_EXE_inhost")
    )
}

fn serve() -> Serve {
    Serve::start("terminal", &["--link", "user,forward=127.0.0.1:0->23"])
}

/// The client of the shell that `expect` spawned.
const CLIENT: &str = "set client [exec pgrep -P [exp_pid] -x inhost]\n";

#[test]
fn the_terminal_is_restored_at_an_ordinary_end_and_around_a_suspension() {
    if !crate::common::peers(&["expect"]) {
        return;
    }
    let serve = serve();
    let talk = format!(
        "{SHELL}{}\
         send \"stty size\\r\"\nwant {{30 90}} 10\nwant {{inside> $}} 10\n\
         stty rows 40 columns 100 < $spawn_out(slave,name)\n\
         send \"sleep 0.5; stty size\\r\"\nwant {{40 100}} 11\nwant {{inside> $}} 11\n\
         send \"\\x1d\"\nwant {{telnet> $}} 12\nsend \"z\\r\"\nwant Stopped 13\nwant {{ready> $}} 13\nsame 14\n\
         send \"fg\\r\"\nwant telnet 15\nsend \"\\r\"\nwant {{inside> $}} 16\n\
         send \"echo back-\\$((40+2))\\r\"\nwant back-42 17\nwant {{inside> $}} 17\n\
         send \"exit\\r\"\nwant {{closed by the server.*ready> $}} 18\nsame 19\nsend \"exit\\r\"\nended 20\n",
        log_in()
    );
    crate::common::expect(&talk, &serve.folder.0);
    assert!(serve.end().success());
}

#[test]
fn the_terminal_is_restored_when_a_signal_ends_the_client() {
    if !crate::common::peers(&["expect"]) {
        return;
    }
    let serve = serve();
    for signal in ["TERM", "HUP", "INT", "QUIT"] {
        let talk = format!(
            "{SHELL}{}{CLIENT}exec kill -{signal} $client\nwant {{ready> $}} 10\nsame 11\nsend \"exit\\r\"\nended 12\n",
            log_in()
        );
        crate::common::expect(&talk, &serve.folder.0);
    }
    assert!(serve.end().success());
}

/// A shell that, unlike bash, leaves the terminal as a program that was killed left it.
const PLAIN_SHELL: &str = "set env(PS1) \"ready> \"\nspawn dash -i\nwant {ready> $} 2\n\
    proc same {status} {\n send {[ \"$(stty -g)\" = \"$BEFORE\" ] && echo terminal-is-$((40+2))}\n\
      send \"\\r\"\n want terminal-is-42 $status\n want {ready> $} $status\n}\n\
    send {BEFORE=$(stty -g)}\nsend \"\\r\"\nwant {\\n(\\r)?ready> $} 3\n";

#[test]
fn the_terminal_is_restored_when_a_signal_ends_a_prompt() {
    if !crate::common::peers(&["expect"]) {
        return;
    }
    let folder = Folder::new("prompts");
    let at = folder.0.display();
    for part in ["box/new", "box/cur", "box/tmp"] {
        std::fs::create_dir_all(folder.0.join(part)).unwrap();
    }
    let prompts = [
        (format!("user add bob --users {at}/users"), "Password for bob: $", &["TERM", "HUP", "INT"][..]),
        ("ftp".to_owned(), "ftp> ", &["TERM", "HUP"]),
        ("debug".to_owned(), "debug> ", &["TERM", "HUP"]),
        (format!("mail read {at}/box"), "mail> ", &["TERM", "HUP"]),
    ];
    for (command, prompt, signals) in prompts {
        for signal in signals {
            let talk = format!(
                "{PLAIN_SHELL}send \"{} {command}\\r\"\nwant {{{prompt}}} 4\n{CLIENT}\
                 exec kill -{signal} $client\nwant {{ready> $}} 5\nsame 6\nsend \"exit\\r\"\nended 7\n",
                env!("CARGO_BIN_EXE_inhost")
            );
            crate::common::expect(&talk, &folder.0);
        }
    }
}

#[test]
fn the_terminal_is_restored_when_the_host_goes_away() {
    if !crate::common::peers(&["expect"]) {
        return;
    }
    let serve = serve();
    let folder = serve.folder.0.clone();
    let talk = format!(
        "{SHELL}{}send \"\\x1dstatus\\r\"\nwant {{NAWS.*round trip.*receiving}} 8\n\
         exec kill -KILL {}\nwant {{Session with 127.0.0.1.*ready> $}} 10\nsame 11\nsend \"exit\\r\"\nended 12\n",
        log_in(),
        serve.process.id()
    );
    crate::common::expect(&talk, &folder);
}
