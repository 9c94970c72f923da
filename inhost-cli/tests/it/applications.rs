//! Named applications of the Telnet server, from Debian's telnet: by LOGON, by a menu at a port, and through to another host.

use crate::common::{Folder, PASSWORD, Serve, expect, inhost, peers};
use inhost_interop::output;

const CONFIG: &str = r#"
link = ["user,forward=127.0.0.1:0->23,forward=127.0.0.1:0->2300"]

[telnet.applications.greeter]
about = "It greets"
program = ["/bin/sh", "-c", "echo hello to $USER; read line; echo you said $line"]

[telnet.applications.again]
about = "This host again"
host = "127.0.0.1"

[telnet.applications.main]
about = "What would you like?"
menu = ["greeter", "again"]
port = 2300
"#;

fn port(at: &str) -> &str {
    at.rsplit(':').next().unwrap()
}

#[test]
fn a_name_a_menu_and_a_port_lead_to_applications() {
    if !peers(&["expect", "telnet"]) {
        return;
    }
    let folder = Folder::new("applications-config");
    let path = folder.0.join("host.toml");
    std::fs::write(&path, CONFIG).unwrap();
    let serve = Serve::start("applications", &["--config", path.to_str().unwrap()]);
    assert!(serve.banner.contains("2300"), "{}", serve.banner);

    let by_menu = format!(
        "spawn telnet 127.0.0.1 {}\nwant {{What would you like}} 2\nwant {{to leave: $}} 3\nsend \"1\\r\"\n\
         want User: 4\nsend \"ada\\r\"\nwant Password: 5\nsend \"{PASSWORD}\\r\"\nwant {{hello to ada}} 6\n\
         send \"aye\\r\"\nwant {{you said aye}} 7\nwant {{to leave: $}} 8\nsend \"quit\\r\"\nwant Good-bye 9\nended 10\n",
        port(serve.forwarded(2300))
    );
    let shown = expect(&by_menu, &serve.folder.0);
    assert!(!shown.contains("LOGON"), "a port leads to nothing else: {shown}");

    // Through to another host's Telnet, and to a program of it.
    let through = format!(
        "spawn telnet 127.0.0.1 {}\nwant {{inhost> $}} 2\nsend \"help\\r\"\nwant {{This host again}} 3\n\
         want {{inhost> $}} 4\nsend \"logon again\\r\"\nwant {{HELP for help}} 5\nwant {{inhost> $}} 6\n\
         send \"logon greeter\\r\"\nwant User: 7\nsend \"ada\\r\"\nwant Password: 8\nsend \"{PASSWORD}\\r\"\n\
         want {{hello to ada}} 9\nsend \"well\\r\"\nwant {{you said well}} 10\nended 11\n",
        port(serve.forwarded(23))
    );
    expect(&through, &serve.folder.0);
}

#[test]
fn an_application_that_leads_nowhere_is_refused() {
    let folder = Folder::new("applications-wrong");
    let path = folder.0.join("host.toml");
    for (section, said) in [
        ("[telnet.applications.a]\nmenu = [\"b\"]\n", "no application has this name"),
        ("[telnet.applications.a]\nprogram = [\"cal\"]\n", "give the program's whole path"),
        ("[telnet.applications.a]\nhost = \"over there\"\n", "give an address such as"),
        ("[telnet.applications.a]\nhost = \"10.0.0.1\"\nmenu = [\"a\"]\n", "exactly one of"),
        ("[telnet.applications.\"a b\"]\nhost = \"10.0.0.1\"\n", "a name has letters"),
    ] {
        std::fs::write(&path, section).unwrap();
        let checked = output(inhost(&folder.0).args(["config", "check", path.to_str().unwrap()]));
        let error = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(!checked.status.success() && error.contains(said), "{section}{error}");
    }
}
