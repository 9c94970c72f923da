//! Command-line arguments.

mod asking;
mod common;
mod debug;
mod explain;
mod ftp;
mod history;
mod inett;
mod job;
mod lab;
mod layers;
mod lookup;
mod mail;
mod netstat;
mod nfs;
mod peep;
mod rcommands;
mod setup;
#[cfg(test)]
mod tests;
mod tftp;
mod tn3270;
mod top;
mod traceroute;

pub use asking::{Asking, Finger, Whois};
use clap::{Args, Parser, Subcommand};
pub use common::{Common, Reach};
pub use debug::Debug;
pub use explain::{Explain, Of, Record, TrapWords};
pub use ftp::{Ftp, FtpCommand, FtpOptions};
pub use history::{By, Causes, History, Rate};
pub use inett::{Inett, InettFace, InettPlan};
pub use job::{Job, JobNamed, JobQueue, JobSubmit, Stands};
pub use lab::{Lab, LabPlace, LabRun};
pub use layers::{Layers, Measured};
pub use lookup::Lookup;
pub use mail::{Catch, Look, Mail, MailRead, MailSend, MailWrite, QueueFolder, Which};
pub use netstat::{Netstat, Part};
pub use nfs::{Nfs, NfsCommand, NfsOptions};
pub use peep::{Peep, Times};
pub use rcommands::{Calling, Rcp, Rlogin, Rsh};
pub use setup::{Check, Completions, ConfigCommand, Doctor, Man};
use std::path::PathBuf;
pub use tftp::{Tftp, TftpCommand, TftpOptions};
pub use tn3270::{System, Tn3270};
pub use top::{Sort, Top};
pub use traceroute::{Method, Traceroute};

/// An Internet host in a process.
#[derive(Parser, Debug)]
#[command(name = "inhost", version, about, max_term_width = 100, disable_help_subcommand = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a host: links, services and a control socket
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Serve),
    /// Log in to another host
    #[command(after_help = TELNET_EXAMPLES)]
    Telnet(Telnet),
    /// Fetch and send files
    #[command(after_help = ftp::FTP_EXAMPLES)]
    Ftp(Box<Ftp>),
    /// Fetch or send a file by the trivial protocol of boot loaders and network devices
    #[command(after_help = tftp::TFTP_EXAMPLES)]
    Tftp(Tftp),
    /// Fetch, send and list files of an NFS server
    #[command(after_help = nfs::NFS_EXAMPLES)]
    Nfs(Nfs),
    /// Ask whether a host answers, and how fast
    #[command(after_help = PING_EXAMPLES)]
    Ping(Ping),
    /// Say what a name stands for, who says so, and how long it took
    #[command(after_help = lookup::LOOKUP_EXAMPLES)]
    Lookup(Lookup),
    /// Show the routers on the way to a host, and how large a packet may be
    #[command(after_help = traceroute::TRACEROUTE_EXAMPLES)]
    Traceroute(Traceroute),
    /// Ask to whom a domain, an address or a number belongs
    #[command(after_help = asking::WHOIS_EXAMPLES)]
    Whois(Whois),
    /// Ask a host who is there, or who somebody is
    #[command(after_help = asking::FINGER_EXAMPLES)]
    Finger(Finger),
    /// Sit at a 3270, the full-screen terminal of mainframes, or be its printer
    #[command(after_help = tn3270::TN3270_EXAMPLES)]
    Tn3270(Box<Tn3270>),
    /// Log in to another host as rlogin does
    #[command(after_help = rcommands::RLOGIN_EXAMPLES)]
    Rlogin(Rlogin),
    /// Run a command on another host
    #[command(after_help = rcommands::RSH_EXAMPLES)]
    Rsh(Rsh),
    /// Copy files to and from another host
    #[command(after_help = rcommands::RCP_EXAMPLES)]
    Rcp(Rcp),
    /// Measure a network or a stack: throughput, transactions, connections; with iperf3's protocol, too
    #[command(after_help = inett::INETT_EXAMPLES)]
    Inett(Box<Inett>),
    /// Run experiments: those of the four papers, today's, and your own
    #[command(subcommand, after_help = lab::LAB_EXAMPLES)]
    Lab(Lab),
    /// Submit batch jobs, and see and change how they stand
    #[command(subcommand, after_help = job::JOB_EXAMPLES)]
    Job(Job),
    /// Send mail, and see and change what waits
    #[command(subcommand, after_help = mail::MAIL_EXAMPLES)]
    Mail(Mail),
    /// Show a running host: interfaces, sockets, and where each connection's time goes
    #[command(after_help = netstat::NETSTAT_EXAMPLES)]
    Netstat(Netstat),
    /// Watch a running host's connections, and what each waits for
    #[command(after_help = top::TOP_EXAMPLES)]
    Top(Top),
    /// Say why connections are slow: those of a capture, or of a running host
    #[command(after_help = explain::EXPLAIN_EXAMPLES)]
    Explain(Box<Explain>),
    /// Show frames as they pass, or those of captures, in words
    #[command(after_help = peep::PEEP_EXAMPLES)]
    Peep(Box<Peep>),
    /// Step two hosts frame by frame, or show all that a running host knows of a connection
    #[command(after_help = debug::DEBUG_EXAMPLES)]
    Debug(Debug),
    /// Ask the records of closed connections: how they went, and what they waited for
    #[command(after_help = history::HISTORY_EXAMPLES)]
    History(History),
    /// Say for which layer the processor works in a running host: link, IP, TCP, copies, checksums, applications
    #[command(after_help = layers::LAYERS_EXAMPLES)]
    Layers(Layers),
    /// Write what a running host's flight recorder holds, and set traps for it
    #[command(subcommand, after_help = explain::RECORD_EXAMPLES)]
    Record(Record),
    /// Manage the users who may log in by Telnet
    #[command(subcommand, after_help = USER_EXAMPLES)]
    User(User),
    /// Check host.toml, or print its schema for editors
    #[command(subcommand, after_help = setup::CONFIG_EXAMPLES)]
    Config(ConfigCommand),
    /// Say what works on this machine, and what to do about the rest
    #[command(after_help = setup::DOCTOR_EXAMPLES)]
    Doctor(Doctor),
    /// Write the manual pages into a folder
    #[command(after_help = setup::MAN_EXAMPLES)]
    Man(Man),
    /// Print the completions of a shell
    #[command(after_help = setup::COMPLETIONS_EXAMPLES)]
    Completions(Completions),
}

/// Arguments of `inhost serve`.
#[derive(Args, Clone, Debug, Default)]
pub struct Serve {
    /// Configuration file [default: host.toml in the current folder, if there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A link, such as user, tap:in0,key=value or serial:/dev/ttyS0; may be given several times
    #[arg(long, value_name = "SPEC")]
    pub link: Vec<String>,
    /// Cap on the host's memory for packets and queues, such as 64M
    #[arg(long, value_name = "LIMIT")]
    pub memory: Option<String>,
    /// Path of the control socket
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// File of users and their password hashes
    #[arg(long, value_name = "FILE")]
    pub users: Option<PathBuf>,
    /// Log this much: off, error, warn, info, debug or trace, and other levels for parts, such as info,telnet=debug
    /// [default: info; warn with --quiet]
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,
    /// Log JSON, an object a line
    #[arg(long)]
    pub log_json: bool,
    /// Say less: no banner, and warnings only
    #[arg(long, short)]
    pub quiet: bool,
    /// Serve the dashboard, too: a page that shows this host, for this machine's own users
    #[arg(long)]
    pub dashboard: bool,
    /// Take links and listeners over from the running host, which keeps its sessions until they end, and then ends itself
    #[arg(long)]
    pub take_over: bool,
}

/// Choice of the host that a client uses.
#[derive(Args, Debug, Clone, Default)]
pub struct Through {
    /// Make a private host on this link, such as user, instead of using the running one
    #[arg(long, value_name = "SPEC", conflicts_with = "via")]
    pub link: Option<String>,
    /// Control socket of the running host to use [default: that of `inhost serve`]
    #[arg(long, value_name = "PATH")]
    pub via: Option<PathBuf>,
}

/// Arguments of `inhost telnet`.
#[derive(Args, Debug)]
pub struct Telnet {
    /// [user@]host[:port] or telnet:// URL; without it, start at the command level
    pub host: Option<String>,
    /// Port number [default: 23]
    pub port: Option<u16>,
    /// Tell the server this user name, where it asks for one (NEW-ENVIRON)
    #[arg(long, short, visible_alias = "login", short_alias = 'l', value_name = "NAME")]
    pub user: Option<String>,
    #[command(flatten)]
    pub reach: Reach,
    /// Translate the sequences of a Heath 19 terminal
    #[arg(long, value_name = "TERMINAL", value_parser = ["h19"])]
    pub emulate: Option<String>,
    /// Character that leads to the command level, such as ^] or none
    #[arg(long, short, value_name = "CHARACTER", default_value = "^]")]
    pub escape: String,
    /// Send on each return rather than on each character
    #[arg(long)]
    pub line: bool,
}

/// Arguments of `inhost ping`.
#[derive(Args, Debug)]
pub struct Ping {
    /// Host name or address, or a URL with one
    pub host: String,
    /// Stop after so many requests; 0 goes on until interrupted
    #[arg(long, short, value_name = "REQUESTS", default_value_t = 4)]
    pub count: u32,
    /// Seconds between requests
    #[arg(long, short, value_name = "SECONDS", default_value_t = 1.0)]
    pub interval: f64,
    /// Payload bytes
    #[arg(long, short, value_name = "BYTES", default_value_t = 56)]
    pub size: u16,
    #[command(flatten)]
    pub reach: Reach,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Commands of `inhost user`.
#[derive(Subcommand, Debug)]
pub enum User {
    /// Add a user or change the password; asks for it, or reads one line of standard input
    Add {
        /// Login name
        name: String,
        /// File of users
        #[arg(long, value_name = "FILE")]
        users: Option<PathBuf>,
        /// Absolute path of the shell of this user, instead of the host's
        #[arg(long, value_name = "PATH")]
        shell: Option<String>,
        /// Let this user look after the host, at the Telnet server's command OPERATOR; a new password leaves that as it is
        #[arg(long)]
        operator: bool,
    },
    /// Let a user look after the host, or no longer; the password stays
    #[command(after_help = OPERATOR_EXAMPLES)]
    Operator {
        /// Login name
        name: String,
        /// No longer
        #[arg(long)]
        no: bool,
        /// File of users
        #[arg(long, value_name = "FILE")]
        users: Option<PathBuf>,
    },
    /// Remove a user
    Remove {
        /// Login name
        name: String,
        /// File of users
        #[arg(long, value_name = "FILE")]
        users: Option<PathBuf>,
    },
    /// List the users
    List {
        /// File of users
        #[arg(long, value_name = "FILE")]
        users: Option<PathBuf>,
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
}

/// Commands that work as they stand.
pub const SERVE_EXAMPLES: &str = "\
Examples:
  inhost serve
      no privilege, no device: the services are forwarded to 127.0.0.1
  inhost serve --link tap:in0,address=10.9.0.2/24,host=10.9.0.1/24
      as root: a host at 10.9.0.2 that the kernel reaches through the device in0
  inhost serve --link tap:in0,address=dhcp
      as root: the device is the kernel's to bridge, and a DHCP server of that network lends the address
  inhost serve --link serial:/dev/ttyS0,baud=9600,framing=slip,address=10.0.5.2/24
      a serial line with SLIP
  inhost serve --link user,loss=5%,seed=7
      the first again, losing one packet in twenty
  inhost serve --link 'user,forward=127.0.0.1:8023->23'
      only Telnet, at another port; the quotes keep > from the shell
  inhost serve --quiet --log info,telnet=debug --log-json
      no banner; the log as JSON, an object a line
  inhost serve --take-over
      an upgrade: with the links of the running host, whose sessions go on in the old process until they end

SIGHUP reads the configuration again; SIGINT and SIGTERM end the host within its deadline.";

const TELNET_EXAMPLES: &str = "\
Examples:
  inhost telnet 192.0.2.7
      through the running host, or a private one that uses the system's sockets
  inhost telnet ada@vax.example:2323 --timeout 5
      where the server asks for it, it is told the user's name
  inhost telnet 127.0.0.1 2323 --link user
      from a private host to this machine, also while a host runs
  inhost telnet 10.9.0.1 --link tap:in0,address=10.9.0.2/24,host=10.9.0.1/24
      from a private host on a TAP device
--timeout is for the connection to be made. Type ^] for the command level, then help.";

const PING_EXAMPLES: &str = "\
Examples:
  inhost ping 10.9.0.1
  inhost ping fd00::1 --count 10 --interval 0.2 --json
  inhost ping 10.9.0.1 --via /run/inhost/control
      from that running host; without --via and --link from the one that runs for this user, if there is one
  inhost ping 10.9.0.1 --link tap:in0,address=10.9.0.2/24,host=10.9.0.1/24
      from a private host
--timeout is for the last answer, 2 s by default. On the link user a request can go as far as the system lets its users ping.
Exit status: 0 when at least one answer came, 1 when none did.";

const OPERATOR_EXAMPLES: &str = "\
Examples:
  inhost user operator ada
      at the Telnet server OPERATOR asks for her password, and gives the operator's prompt
  inhost user operator ada --no
      she may no longer; an operator who is there stays until the end of the session";

const USER_EXAMPLES: &str = "\
Examples:
  inhost user add ada
  inhost user add grace --operator
      she may also look after the host, by OPERATOR at the Telnet server
  inhost user list
The file is $XDG_CONFIG_HOME/inhost/users (or ~/.config/inhost/users) unless --users names another.";
