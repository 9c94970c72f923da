//! Our client at the console of Hercules, which emulates a mainframe.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;

use inhost_interop::Running;
use inhost_tn3270::client::TerminalConfig;

use crate::kernel::script;
use crate::place::Scratch;

#[test]
fn our_client_sees_the_logo_of_hercules() {
    let scratch = Scratch::new("hercules");
    // A port that was free a moment ago.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let config = format!(
        "CPUSERIAL 000611\nCPUMODEL 3090\nMAINSIZE 2\nNUMCPU 1\nCNSLPORT {port}\nARCHMODE ESA/390\n\
         PANRATE SLOW\n0009 3215-C\n0700 3270\n0701 3270\n"
    );
    scratch.write("hercules.cnf", config.as_bytes());
    let mut hercules = Running::start(
        Command::new("hercules").args(["-d", "-f"]).arg(scratch.path("hercules.cnf")).current_dir(&scratch.0),
    );
    hercules.wait_for("Waiting for console connection");
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let text = "wait text \"Hercules\"\nassert text \"0700\"\ndump\ndump json\npress tab";
    let mut config = TerminalConfig::default();
    config.has_tn3270e = false;
    let shown = script(at, config, text);
    assert_eq!(shown.outcome, Ok(()), "{}\n{}", shown.text, hercules.printed());
    hercules.wait_for("connected to 3270 device 0:0700");
    // Hercules refuses TN3270E by not asking for it; a terminal that has it is served as well.
    let shown = script(at, TerminalConfig::default(), "wait text \"Hercules\"\nassert text \"070\"");
    assert_eq!(shown.outcome, Ok(()), "{}", shown.text);
}
