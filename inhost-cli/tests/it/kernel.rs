//! A host on a TAP device against the Linux kernel, Debian's clients and Debian's Telnet servers, in its own network
//! namespace. Needs root.

use crate::common::{Serve, connect, echo_intact};
use inhost_interop::{Running, output, own_network, pause, run, until};
use std::process::{Command, Stdio};
use std::time::Duration;

const LINK: &str = "tap:inkern0,address=10.9.0.2/24,address=fd09::2/64,host=10.9.0.1/24,host=fd09::1/64";

/// Bytes sent through echo, each way: a sample here, a gigabyte with `make interop`.
fn bulk_bytes() -> u64 {
    std::env::var("INHOST_BULK_BYTES").ok().and_then(|text| text.parse().ok()).unwrap_or(50_000_000)
}

fn answers(host: &str) {
    let ping = || output(Command::new("ping").args(["-c1", "-W1", host])).status.success();
    until(&format!("an answer of {host} to the kernel's ping"), || ping().then_some(()));
}

#[test]
fn the_kernel_pings_echoes_and_logs_in_over_tap() {
    if !own_network() {
        return;
    }
    let serve = Serve::start("kernel", &["--link", LINK]);
    for host in ["10.9.0.2", "fd09::2"] {
        answers(host);
        // Fragments both ways: three of them make this echo.
        run(Command::new("ping").args(["-c3", "-i0.2", "-W2", "-s", "4000", host]));
        let daytime = run(Command::new("nc").args(["-w2", host, "13"]));
        assert!(daytime.contains("UTC"), "{daytime}");
    }
    echo_intact(connect("10.9.0.2:7"), bulk_bytes());
    echo_intact(connect("[fd09::2]:7"), bulk_bytes());

    let talk = format!(
        "spawn telnet 10.9.0.2\nwant inhost> 2\nsend \"logon ada\\r\"\nwant Password 3\nsend \"{}\\r\"\n\
         want {{[$#] $}} 4\nsend \"echo from-\\$((40+2))\\r\"\nwant from-42 5\nsend \"exit\\r\"\nended 6\n",
        crate::common::PASSWORD
    );
    crate::common::expect(&talk, &serve.folder.0);

    // A port where nobody listens refuses at once, over both families.
    for host in ["10.9.0.2", "fd09::2"] {
        let refused = output(Command::new("nc").args(["-w5", "-v", host, "4"]).stdin(Stdio::null()));
        assert!(String::from_utf8_lossy(&refused.stderr).contains("refused"), "{refused:?}");
    }
    let held = connect("10.9.0.2:7");
    let text = run(serve.inhost().arg("netstat"));
    assert!(text.lines().any(|l| l.contains("10.9.0.2:7 ") && l.contains(" ESTAB ")), "{text}");
    drop(held);
    assert!(serve.end().success());
}

/// Our client against a Telnet server of the kernel's side, driven as a person would.
fn our_client_logs_in(server: &mut Command, device: &str, net: u8) {
    let _server = Running::start(server);
    pause(Duration::from_millis(500));
    let folder = crate::common::Folder::new("client");
    let link = format!("tap:{device},address=10.{net}.0.2/24,host=10.{net}.0.1/24");
    let talk = format!(
        "spawn {} telnet 10.{net}.0.1 2300 --link {link}\nwant {{[$#] $}} 2\n\
         send \"echo from-\\$((40+2))\\r\"\nwant from-42 3\nsend \"yes\\r\"\nsleep 0.3\nsend \"\\003\"\n\
         sleep 1\nsend \"echo to-\\$((40+3))\\r\"\nwant to-43 4\nsend \"exit\\r\"\nended 5\n",
        env!("CARGO_BIN_EXE_inhost")
    );
    crate::common::expect(&talk, &folder.0);
}

#[test]
fn our_client_logs_in_to_busybox_telnetd() {
    if own_network() {
        let server = ["busybox", "telnetd", "-F", "-p", "2300", "-l", "/bin/sh"];
        our_client_logs_in(crate::common::with_own_signals().args(server), "inkern1", 10);
    }
}

#[test]
fn our_client_logs_in_to_inetutils_telnetd() {
    if own_network() {
        // The server expects to be started by inetd, with the connection as its standard streams.
        let accept = "import socket,subprocess\n\
                      s=socket.socket(); s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1)\n\
                      s.bind(('',2300)); s.listen(1); c,_=s.accept()\n\
                      subprocess.run(['/usr/sbin/telnetd','-h','-E','/bin/sh'],stdin=c,stdout=c,stderr=c)";
        our_client_logs_in(crate::common::with_own_signals().args(["python3", "-c", accept]), "inkern2", 11);
    }
}
