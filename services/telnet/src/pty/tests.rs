use super::*;
use crate::driver::testing::{block_on, reactor};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn command(script: &str) -> ShellCommand {
    ShellCommand {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        directory: None,
        identity: None,
        descriptor_limit: None,
        window: (80, 24),
    }
}

fn all_output(pty: &mut Pty) -> String {
    block_on(async {
        let mut bytes = Vec::new();
        pty.read_to_end(&mut bytes).await.unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn gone(session: i32) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(8) {
        if processes::members(of_session(session)).is_empty() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Waits until a process of the session runs this program.
fn runs(session: i32, program: &str) -> bool {
    let start = Instant::now();
    let name = |process: &Pid| std::fs::read_to_string(format!("/proc/{}/comm", process.as_raw_pid()));
    while start.elapsed() < Duration::from_secs(8) {
        let members = processes::members(of_session(session));
        if members.iter().any(|process| name(process).is_ok_and(|name| name.trim_end() == program)) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn only_the_given_environment_and_the_size() {
    let mut pty = Pty::spawn(&command("env; stty size; echo end"), &reactor()).unwrap();
    let output = all_output(&mut pty);
    assert!(output.contains("24 80\r\n") && output.ends_with("end\r\n"), "{output}");
    assert!(!output.contains("HOME=") && !output.contains("CARGO"), "{output}");
}

#[test]
fn a_shell_may_have_fewer_descriptors_than_the_host() {
    // It is set from outside once the shell runs.
    let script =
        "i=0; while [ $(ulimit -n) != 99 ] && [ $i -lt 500 ]; do i=$((i+1)); sleep 0.01; done; ulimit -n";
    let limited = ShellCommand { descriptor_limit: Some(99), ..command(script) };
    assert_eq!(all_output(&mut Pty::spawn(&limited, &reactor()).unwrap()), "99\r\n");
}

#[test]
fn input_and_resizing() {
    let mut pty = Pty::spawn(&command("read line; echo got $line; stty size"), &reactor()).unwrap();
    pty.resize(132, 50);
    block_on(pty.write_all(b"hello\r")).unwrap();
    let output = all_output(&mut pty);
    assert!(output.contains("got hello\r\n50 132\r\n"), "{output}");
}

#[test]
fn the_end_kills_those_who_ignore_the_hangup() {
    let mut pty =
        Pty::spawn(&command("trap '' HUP TERM; (sleep 100 & sleep 100) & sleep 100"), &reactor()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let session = pty.session_id();
    assert!(processes::members(of_session(session)).len() >= 3);
    pty.end();
    assert!(gone(session));
}

#[test]
fn a_shell_that_ends_ends_the_session_though_others_hold_the_pty() {
    let mut pty = Pty::spawn(&command("trap '' HUP; sleep 100 & echo bye"), &reactor()).unwrap();
    let session = pty.session_id();
    assert_eq!(all_output(&mut pty), "bye\r\n");
    assert!(gone(session));
}

#[test]
fn a_program_is_interrupted_though_it_reads_nothing() {
    let mut pty = Pty::spawn(&command("yes > /dev/null"), &reactor()).unwrap();
    assert!(runs(pty.session_id(), "yes"));
    assert!(pty.keys().signals && pty.keys().interrupt == 3);
    pty.interrupt();
    assert!(gone(pty.session_id()));
    assert_eq!(all_output(&mut pty), "");
}

#[test]
fn a_shell_has_no_descriptor_but_its_terminal() {
    // The parent process of the host may have left one open.
    let left = std::fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&left, rustix::io::FdFlags::empty()).unwrap();
    let mut pty = Pty::spawn(&command("ls -l /proc/$$/fd | sed 's/.*-> //'; echo end"), &reactor()).unwrap();
    let output = all_output(&mut pty);
    let others: Vec<&str> =
        output.lines().filter(|line| line.starts_with('/') && !line.contains("pts")).collect();
    assert!(output.contains("/dev/pts") && others.is_empty(), "{output}");
    drop(left);
}

#[test]
fn whoever_ends_waits_for_the_sessions_to_end() {
    let mut pty =
        Pty::spawn(&command("trap '' HUP TERM; (sleep 100 & sleep 100) & sleep 100"), &reactor()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let session = pty.session_id();
    assert!(!wait_for_sessions(Duration::from_millis(10)));
    pty.end();
    // Those of the other tests end as well.
    wait_for_sessions(Duration::from_secs(8));
    assert!(processes::members(of_session(session)).is_empty());
}

fn of_session(number: i32) -> Together {
    Together::Session(Pid::from_raw(number).unwrap())
}
