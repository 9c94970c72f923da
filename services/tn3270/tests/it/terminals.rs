//! Debian's s3270 at our server: panels, sizes, TLS, file transfers.

use crate::kernel::Served;
use crate::place::Scratch;
use crate::s3270::S3270;

fn walk(terminal: &mut S3270) {
    terminal.command("Wait(20,InputField)");
    let screen = terminal.wait_for("The Menu");
    assert!(screen.contains("Terminal  LU0"), "{screen}");
    terminal.command("String(\"1\")");
    terminal.command("Enter()");
    terminal.wait_for("A Form äöü [x]");
    // What the rules of the fields refuse comes back with a message, and with the values.
    terminal.command("Enter()");
    terminal.wait_for("Enter a name");
    terminal.command("String(\"Ada\")");
    terminal.command("Tab()");
    terminal.command("String(\"200\")");
    terminal.command("Enter()");
    let screen = terminal.wait_for("enter a number from 1 to 150");
    assert!(screen.contains("Ada") && screen.contains("200"), "{screen}");
    terminal.command("EraseEOF()");
    terminal.command("String(\"36\")");
    terminal.command("Tab()");
    terminal.command("String(\"hidden\")");
    assert!(!terminal.screen().contains("hidden"));
    terminal.command("PF(5)");
    terminal.wait_for("PF5 does nothing here");
    terminal.command("Enter()");
    terminal.wait_for("Hello, Ada");
    terminal.command("String(\"2\")");
    terminal.command("Enter()");
    let screen = terminal.wait_for("of 100");
    assert!(screen.contains("line number 1"), "{screen}");
    terminal.command("PF(8)");
    let rows = screen.lines().count();
    terminal.wait_for(&format!("line number {}", rows - 5 + 1));
    terminal.command("PF(7)");
    terminal.wait_for("Lines 1 to");
    terminal.command("Clear()");
    terminal.wait_for("Lines 1 to");
    terminal.command("Attn()");
    terminal.wait_for("Lines 1 to");
    terminal.command("PF(3)");
    terminal.wait_for("The Menu");
    terminal.command("String(\"x\")");
    terminal.command("Enter()");
    terminal.wait_for("x is not an option");
}

fn leave(terminal: &mut S3270) {
    terminal.command("PF(3)");
    terminal.command("Wait(20,Disconnect)");
}

#[test]
fn s3270_walks_the_panels_in_all_sizes_and_protocols() {
    let served = Served::start(None, None);
    for (model, rows, columns) in [("2", 24, 80), ("3", 32, 80), ("4", 43, 80), ("5", 27, 132)] {
        // N: is without TN3270E; a model without -E has no extended attributes.
        for (prefix, family, extended) in [("", "3279", "-E"), ("N:", "3278", "-E"), ("", "3278", "")] {
            let host = format!("{prefix}127.0.0.1:{}", served.port());
            let mut terminal = S3270::start(&["-model", &format!("{family}-{model}{extended}"), &host]);
            terminal.wait_for("The Menu");
            let screen = terminal.command("Ascii()");
            assert_eq!(
                (screen.len(), screen[0].chars().count()),
                (rows, columns),
                "{family}-{model}{extended}"
            );
            walk(&mut terminal);
            leave(&mut terminal);
        }
    }
}

#[test]
fn c3270_walks_the_panels_and_transfers_a_file() {
    let scratch = Scratch::new("c3270");
    scratch.write("host", b"from the host\n");
    let served = Served::start(Some(&scratch.0), None);
    let mut terminal = S3270::start_c3270(&format!("127.0.0.1:{}", served.port()));
    terminal.wait_for("The Menu");
    let local = scratch.path("local").display().to_string();
    terminal.command(&format!("Transfer(Direction=receive,Host=tso,HostFile=host,LocalFile={local})"));
    assert_eq!(scratch.read("local"), b"from the host\n");
    terminal.command(&format!("Transfer(Direction=send,Host=tso,HostFile=back,LocalFile={local})"));
    assert_eq!(scratch.read("back"), b"from the host\n");
    terminal.wait_for("bytes transferred");
    terminal.command("EraseInput()");
    // c3270 ends with its connection, so that it is not left.
    walk(&mut terminal);
}

#[test]
fn s3270_asks_for_a_device() {
    let served = Served::start(None, None);
    let host = format!("LU007@127.0.0.1:{}", served.port());
    let mut terminal = S3270::start(&[&host]);
    assert!(terminal.wait_for("The Menu").contains("LU007"));
    assert_eq!(terminal.command("Query(LuName)"), ["LU007"]);
    assert_eq!(terminal.command("Query(BindPluName)"), ["INHOST"]);
    // The device is in use, so that the next one goes on without TN3270E, and gets another.
    let mut other = S3270::start(&[&host]);
    assert!(other.wait_for("The Menu").contains("LU001"));
}

#[test]
fn s3270_comes_by_tls() {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let tls = (certified.cert.pem(), certified.signing_key.serialize_pem());
    let served = Served::start(None, Some(tls));
    let mut terminal = S3270::start(&["-noverifycert", &format!("L:127.0.0.1:{}", served.port())]);
    terminal.wait_for("The Menu");
    let security = terminal.command("Query(Tls)").join(" ");
    assert!(security.contains("secure"), "{security}");
    walk(&mut terminal);
    leave(&mut terminal);
}

/// Octets of every value, more than one piece of them.
fn octets(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
}

fn transfers(scratch: &Scratch, local: &Scratch, terminal: &mut S3270, length: usize) {
    terminal.wait_for("The Menu");
    let file = |name: &str| local.path(name).display().to_string();
    let text = "Ünïcode [brackets] {braces} ^~|\\ ¢¬\n".repeat(length / 40 + 1);
    scratch.write("down.bin", &octets(length));
    scratch.write("down.txt", text.as_bytes());
    scratch.write("empty", b"");
    local.write("up.bin", &octets(length + 1));
    local.write("up.txt", text.as_bytes());
    let mut transfer = |direction: &str, host: &str, name: &str, more: &str| {
        terminal.attempt(&format!(
            "Transfer(Direction={direction},Host=cics,HostFile={host},LocalFile={},{more})",
            file(name)
        ))
    };
    transfer("receive", "down.bin", "got.bin", "Mode=binary,Exist=replace").unwrap();
    assert!(local.read("got.bin") == scratch.read("down.bin"));
    transfer("receive", "down.txt", "got.txt", "Mode=ascii,Exist=replace").unwrap();
    assert_eq!(String::from_utf8(local.read("got.txt")).unwrap(), text);
    transfer("receive", "empty", "got.empty", "Mode=binary,Exist=replace").unwrap();
    assert_eq!(local.read("got.empty"), b"");
    transfer("send", "put.bin", "up.bin", "Mode=binary").unwrap();
    assert!(scratch.read("put.bin") == local.read("up.bin"));
    transfer("send", "put.txt", "up.txt", "Mode=ascii").unwrap();
    assert_eq!(String::from_utf8(scratch.read("put.txt")).unwrap(), text);
    // s3270 does not always say that a transfer failed at once; the panel does, and works.
    let _ = transfer("receive", "missing", "got.missing", "Mode=binary,Exist=replace");
    let screen = terminal.wait_for("No such file");
    assert!(screen.contains("The Menu"), "{screen}");
    leave(terminal);
}

#[test]
fn s3270_transfers_files_in_dft_mode() {
    let (scratch, local) = (Scratch::new("dft-host"), Scratch::new("dft-local"));
    let served = Served::start(Some(&scratch.0), None);
    for prefix in ["", "N:"] {
        let mut terminal =
            S3270::start(&["-model", "3279-2-E", &format!("{prefix}127.0.0.1:{}", served.port())]);
        transfers(&scratch, &local, &mut terminal, 100_000);
    }
}

#[test]
fn s3270_transfers_files_in_cut_mode() {
    let (scratch, local) = (Scratch::new("cut-host"), Scratch::new("cut-local"));
    let served = Served::start(Some(&scratch.0), None);
    let mut terminal = S3270::start(&["-model", "3278-2", &format!("N:127.0.0.1:{}", served.port())]);
    transfers(&scratch, &local, &mut terminal, 10_000);
}
