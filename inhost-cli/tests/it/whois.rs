//! `inhost whois` from one server to another, in their own network namespace. Needs root.

use crate::common::{Folder, socat};
use inhost_interop::{own_network, run};
use std::process::Command;

const LINK: &str = "address=10.9.0.2/24,address=fd09::2/64,host=10.9.0.1/24,host=fd09::1/64";

#[test]
fn whois_goes_where_it_is_referred_to() {
    if !own_network() {
        return;
    }
    let folder = Folder::new("whois");
    let hosts = folder.0.join("hosts");
    std::fs::write(&hosts, "10.9.0.1 whois.first.example\nfd09::1 whois.second.example\n").unwrap();
    // Who is asked over IPv4 refers to who is asked over IPv6, who says something for a terminal.
    let answer = folder.0.join("answer");
    std::fs::write(
        &answer,
        "#!/bin/sh\nread -r line\nline=$(printf %s \"$line\" | tr -d '\\r')\n\
         case $SOCAT_SOCKADDR in\n*fd09*) printf 'domain: %s\\r\\nholder: \\033[31mAda M\\374ller\\r\\n' \"$line\";;\n\
         *) printf 'refer: whois.second.example\\r\\n';;\nesac\n",
    )
    .unwrap();
    run(Command::new("chmod").arg("+x").arg(&answer));
    let _server = socat(43, &format!("EXEC:{}", answer.display()));
    let link = format!("tap:inwho0,{LINK}");
    let ask = |arguments: &[&str]| {
        let script = "mount --bind \"$1\" /etc/hosts && shift && exec \"$@\"";
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", script, "sh", hosts.to_str().unwrap()])
            .args([env!("CARGO_BIN_EXE_inhost"), "whois", "--link", &link])
            .args(["--server", "whois.first.example"])
            .args(arguments)
            .env("XDG_RUNTIME_DIR", &folder.0);
        run(&mut command)
    };
    let answer = ask(&["lovelace.example"]);
    let expected = "# whois.first.example\nrefer: whois.second.example\n# whois.second.example\n\
                    domain: lovelace.example\nholder: \u{fffd}[31mAda Müller\n";
    assert_eq!(answer, expected);
    let answer = ask(&["lovelace.example", "--no-referral"]);
    assert_eq!(answer, "refer: whois.second.example\n");
    let report: serde_json::Value = serde_json::from_str(&ask(&["x.example", "--json"])).unwrap();
    let servers: Vec<_> = report["answers"].as_array().unwrap().iter().map(|a| a["server"].clone()).collect();
    assert_eq!(servers, ["whois.first.example", "whois.second.example"]);
}
