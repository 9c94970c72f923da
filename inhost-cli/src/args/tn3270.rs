//! Command-line arguments of `inhost tn3270`.

use super::Reach;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `inhost tn3270`.
#[derive(Args, Debug)]
pub struct Tn3270 {
    /// The host, as host[:port] or tn3270://host:port; the port is 23 unless it says another
    #[arg(value_name = "HOST")]
    pub host: String,
    /// The terminal's model: 2 (24 by 80), 3 (32 by 80), 4 (43 by 80) or 5 (27 by 132)
    #[arg(long, short, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=5))]
    pub model: u8,
    /// EBCDIC code page of the host, such as 037, 1047, 273 or 500
    #[arg(long, value_name = "NUMBER", default_value = "037")]
    pub code_page: String,
    /// Ask for this device (LU), in TN3270E
    #[arg(long, value_name = "NAME")]
    pub lu: Option<String>,
    /// Speak TN3270 without E
    #[arg(long)]
    pub no_tn3270e: bool,
    /// A terminal without colours (3278)
    #[arg(long)]
    pub mono: bool,
    /// Begin with TLS, as at port 992
    #[arg(long)]
    pub tls: bool,
    /// Certificates in PEM that are trusted, instead of the system's
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub ca: Option<PathBuf>,
    /// Encrypt, and trust any certificate
    #[arg(long, requires = "tls", conflicts_with = "ca")]
    pub insecure: bool,
    /// Do what this file says instead of showing the screen; - is standard input
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["once", "printer"])]
    pub script: Option<PathBuf>,
    /// Print the first screen as text, and end
    #[arg(long, conflicts_with = "printer")]
    pub once: bool,
    /// Print screens as JSON
    #[arg(long, conflicts_with = "printer")]
    pub json: bool,
    /// Be a printer: that of the terminal --lu names, or any; what is printed goes to standard output
    #[arg(long)]
    pub printer: bool,
    /// What the other end runs, for the command of file transfers
    #[arg(long, value_enum, default_value_t = System::Tso)]
    pub system: System,
    /// Give a key another meaning, such as ctrl-d=dup, f12=pf3 or shift-enter=newline; may be given several times
    #[arg(long, value_name = "KEY=MEANING")]
    pub key: Vec<String>,
    #[command(flatten)]
    pub reach: Reach,
}

/// Systems with IND$FILE.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum System {
    /// MVS with TSO
    Tso,
    /// VM with CMS
    Vm,
    /// CICS
    Cics,
}

/// Commands that work as they stand.
pub const TN3270_EXAMPLES: &str = "\
Examples:
  inhost tn3270 127.0.0.1:3270
      the menu of the running host; Ctrl-Q ends
  inhost tn3270 --model 4 --lu LU0042 mainframe.example
  inhost tn3270 --once 127.0.0.1:3270
  inhost tn3270 --script tour.3270 --json 127.0.0.1:3270
  inhost tn3270 --printer --lu LU001 127.0.0.1:3270
  inhost tn3270 --tls mainframe.example:992
Keys: Enter, F1 to F12 and with Shift PF13 to 24, Alt-1 to Alt-3 PA1 to 3, Tab, Home, End, arrows, Insert, Delete; Ctrl-C is
Clear, Ctrl-R Reset, Ctrl-E erases to the end of the field, Ctrl-U all input, Ctrl-N New Line, Ctrl-D Dup, Ctrl-F Field Mark, Ctrl-A
Attn, Ctrl-S SysReq. A click of the mouse moves the cursor. A script is read line by line:
  wait unlocked; field \"User\"; type \"ada\"; press enter; wait text \"Menu\"; dump; send notes.txt report text
--timeout is how long the connection and the first screen may take, 30 s by default.";
