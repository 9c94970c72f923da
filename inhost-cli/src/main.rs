//! The command: arguments and configuration, and nothing of a protocol.
#![forbid(unsafe_code)]

/// Prints a line.
macro_rules! say {
    ($($part:tt)*) => {
        $crate::output::show(&format!("{}\n", format_args!($($part)*)))
    };
}

mod args;
mod asking;
mod causes;
mod client;
mod completions;
mod config;
mod connection;
mod debug;
mod dhcp;
mod doctor;
mod explain;
mod failure;
mod finger;
mod ftp;
mod history;
mod inett;
mod job;
mod lab;
mod layers;
mod links;
mod log;
mod lookup;
mod mail;
mod man;
mod netstat;
mod news;
mod nfs;
mod output;
mod password;
mod peep;
mod ping;
mod progress;
mod rcp;
mod record;
mod registry;
mod reserved;
mod rlogin;
mod rsh;
mod serve;
mod style;
mod target;
mod telnet;
mod terminal;
mod tftp;
mod through;
mod time;
mod tn3270;
mod top;
mod traceroute;
mod user;
mod views;
mod whois;

use args::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return output::of_parser(&error),
    };
    let done = match &arguments.command {
        Command::Serve(serve) => serve::run(serve),
        Command::Telnet(telnet) => telnet::run(telnet),
        Command::Ftp(ftp) => ftp::run(ftp),
        Command::Tftp(tftp) => tftp::run(tftp),
        Command::Nfs(nfs) => nfs::run(nfs),
        Command::Ping(ping) => ping::run(ping),
        Command::Lookup(lookup) => lookup::run(lookup),
        Command::Traceroute(traceroute) => traceroute::run(traceroute),
        Command::Whois(whois) => whois::run(whois),
        Command::Finger(finger) => finger::run(finger),
        Command::Tn3270(tn3270) => tn3270::run(tn3270),
        Command::Rlogin(rlogin) => rlogin::run(rlogin),
        Command::Rsh(rsh) => rsh::run(rsh),
        Command::Rcp(rcp) => rcp::run(rcp),
        Command::Inett(arguments) => inett::run(arguments),
        Command::Lab(lab) => lab::run(lab),
        Command::Job(job) => job::run(job),
        Command::Mail(mail) => mail::run(mail),
        Command::Top(top) => top::run(top),
        Command::Explain(explain) => explain::run(explain),
        Command::Peep(peep) => peep::run(peep),
        Command::Debug(debug) => debug::run(debug),
        Command::History(history) => history::run(history),
        Command::Layers(layers) => layers::run(layers),
        Command::Record(record) => record::run(record),
        Command::Netstat(netstat) => netstat::run(netstat),
        Command::User(user) => user::run(user),
        Command::Config(command) => config::run(command),
        Command::Doctor(doctor) => doctor::run(doctor),
        Command::Man(man) => man::run(man),
        Command::Completions(completions) => completions::run(completions),
    };
    match done.and_then(|()| output::told()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
