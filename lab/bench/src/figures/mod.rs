//! The published figures: inhost's TCP against the kernel's and against theory, its fairness, and its behaviour under
//! attack. Each command prints a table and draws its pictures into docs/figures.

mod bulk;
pub mod chart;
mod fairness;
mod files;
mod flood;
pub mod kernel;
mod layers;
pub mod machine;
pub mod options;
mod overload;
pub mod page;
mod response;
mod speed;
pub mod statistics;

use options::Options;

/// What the figures are called on the command line.
pub const USAGE: &str = "\
       inhost-bench figures kernel [--cells A,B] [--pairs N] [--subject cubic|bbr|ours] [--again] [--table]
                                   [--share MBIT] [--runs N] [--capture FOLDER] [--json]
                                             transfers beside the kernel's, through an emulated link (needs root)
       inhost-bench figures response [--rates GBIT,..] [--losses P,..] [--fill] [--json]
                                             one connection at 1 and 10 Gbit/s in simulation
       inhost-bench figures fairness [--repeats N] [--seconds N] [--simulated] [--mixed] [--json]
                                             ten of ours in simulation; five beside five of the kernel's (needs root)
       inhost-bench figures files [--only ftp,mirror,tftp] [--megabytes N] [--tftp-megabytes N] [--files N]
                                  [--repeats N] [--json]
                                             FTP and TFTP beside other servers and clients (needs root)
       inhost-bench figures flood [--rate SYNS] [--json]
                                             transfers beside a flood of SYNs, in simulation
       inhost-bench figures layers [--runs N] [--segments N] [--transfers N] [--json]
                                             for which layers the time of a segment goes, beside VPI's
       inhost-bench figures overload [--json]
                                             datagrams worked off when too many come, in virtual time
       inhost-bench figures speed [--segments N] [--runs N] [--json]
                                             segments that the simulator carries in a second of one core";

/// Runs one of the figures.
pub fn command(words: &[&str]) -> Result<(), String> {
    let (figure, rest) = words.split_first().ok_or("which figure?")?;
    let options = Options::new(rest);
    match *figure {
        "fairness" => fairness::command(options),
        "files" => files::command(options),
        "flood" => flood::command(options),
        "kernel" => kernel::command(options),
        "layers" => layers::command(options),
        "overload" => overload::command(options),
        "speed" => speed::command(options),
        "response" => response::command(options),
        _ => Err(format!("no figure is called {figure:?}")),
    }
}
