//! Command-line arguments of `inhost mail`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Commands of `inhost mail`.
#[derive(Subcommand, Debug)]
pub enum Mail {
    /// Put a message into the queue, or give it to a server at once; the text is standard input
    #[command(after_help = SEND_EXAMPLES)]
    Send(Box<MailSend>),
    /// Read a mailbox, and answer
    #[command(after_help = READ_EXAMPLES)]
    Read(Box<MailRead>),
    /// Write a message with your editor, and send it
    #[command(after_help = WRITE_EXAMPLES)]
    Write(Box<MailWrite>),
    /// Show what waits
    #[command(after_help = QUEUE_EXAMPLES)]
    Queue(Look),
    /// Say why a message waits, and what to do about it
    #[command(after_help = WHY_EXAMPLES)]
    Why {
        #[command(flatten)]
        which: Which,
        /// Show the last dialogues that went wrong
        #[arg(long)]
        dialogue: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Try messages at once, held ones too
    #[command(after_help = RETRY_EXAMPLES)]
    Retry(Which),
    /// Hold messages until `retry`
    #[command(after_help = HOLD_EXAMPLES)]
    Hold(Which),
    /// Remove messages; nobody is told
    #[command(after_help = DROP_EXAMPLES)]
    Drop(Which),
    /// Take every message, show it and deliver none: a server to test against
    #[command(after_help = CATCH_EXAMPLES)]
    Catch(Box<Catch>),
    /// Make a key that signs mail of a domain, and say what to publish
    #[command(after_help = KEY_EXAMPLES)]
    Key {
        /// The domain of senders
        domain: String,
        /// Name of the key in the DNS: SELECTOR._domainkey.DOMAIN
        selector: String,
        /// File for the private key; it must not exist
        file: PathBuf,
        /// Make an Ed25519 key, which not every receiver knows, instead of one of RSA
        #[arg(long)]
        ed25519: bool,
    },
}

/// Arguments of `inhost mail catch`.
#[derive(Args, Debug)]
pub struct Catch {
    /// Where SMTP is reached
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:1025")]
    pub smtp: String,
    /// Where the page is reached
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8025")]
    pub page: String,
    /// A failure to order, such as 'recipient=*@full.example reply="452 4.2.2 Mailbox full"'; may be given several times
    #[arg(long, value_name = "RULE", conflicts_with = "script")]
    pub rule: Vec<String>,
    /// A file with rules that change with time
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Seed of what rules leave to chance
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Keep messages in this folder, so that they survive
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Keep this many messages [default: 500]
    #[arg(long, value_name = "COUNT")]
    pub messages: Option<usize>,
    /// Token that the page asks for
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// Certificate chain in PEM, for STARTTLS
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,
    /// Print an object of JSON for each message and each rule that fires
    #[arg(long)]
    pub json: bool,
}

/// Which queue.
#[derive(Args, Debug, Clone, Default)]
pub struct QueueFolder {
    /// Folder of the queue [default: that of [mail] in host.toml, or the user's own]
    #[arg(long, value_name = "FOLDER")]
    pub queue: Option<PathBuf>,
    /// Configuration file [default: host.toml in the current folder, if there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Arguments of `inhost mail send`.
#[derive(Args, Debug)]
pub struct MailSend {
    /// Who gets it
    #[arg(value_name = "ADDRESS")]
    pub to: Vec<String>,
    /// The sender, with a name or without [default: $EMAIL, else USER@HOST]
    #[arg(long, short, value_name = "ADDRESS")]
    pub from: Option<String>,
    /// What it is about
    #[arg(long, short, value_name = "TEXT", default_value = "")]
    pub subject: String,
    /// A file to go with it; may be given several times
    #[arg(long, short, value_name = "FILE", conflicts_with = "raw")]
    pub attach: Vec<PathBuf>,
    /// Standard input is a whole message with its header, as sendmail takes it
    #[arg(long)]
    pub raw: bool,
    /// Take recipients from the header too; implies --raw
    #[arg(short = 't')]
    pub from_header: bool,
    /// Ignored: a point on a line never ends the input
    #[arg(short = 'i', hide = true)]
    pub ignore_points: bool,
    /// Ignored options of sendmail
    #[arg(short = 'o', value_name = "OPTION", hide = true)]
    pub sendmail: Vec<String>,
    /// Wait until it is sent, or say why not and exit with 1; where no host sends from the queue, send it from here
    #[arg(long, conflicts_with = "server")]
    pub now: bool,
    /// Give it to this server instead of the queue: smtp://[USER@]HOST[:PORT], smtps:// or lmtp://
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// File with the password for USER at that server
    #[arg(long, value_name = "FILE", requires = "server")]
    pub password_file: Option<PathBuf>,
    /// TLS with that server: never, if-offered or required
    #[arg(long, value_name = "WHEN", default_value = "if-offered", value_parser = ["never", "if-offered", "required"])]
    pub tls: String,
    /// Authorities in PEM that are believed besides the system's
    #[arg(long, value_name = "FILE")]
    pub authorities: Option<PathBuf>,
    /// The link of the private host that sends at once [default: user]
    #[arg(long, value_name = "SPEC")]
    pub link: Option<String>,
    /// Show the dialogue on standard error
    #[arg(long, short)]
    pub verbose: bool,
    #[command(flatten)]
    pub folder: QueueFolder,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `inhost mail read`.
#[derive(Args, Debug)]
pub struct MailRead {
    /// The Maildir [default: $MAILDIR, else your mailbox of [mail] in host.toml, else ~/Maildir]
    pub maildir: Option<PathBuf>,
    /// Print this message as text, and mark nothing: its number in the list
    #[arg(long, value_name = "NUMBER")]
    pub print: Option<usize>,
    /// Your address in answers [default: $EMAIL, else USER@HOST]
    #[arg(long, short, value_name = "ADDRESS")]
    pub from: Option<String>,
    #[command(flatten)]
    pub folder: QueueFolder,
    /// Print the list as one JSON array
    #[arg(long, conflicts_with = "print")]
    pub json: bool,
}

/// Arguments of `inhost mail write`.
#[derive(Args, Debug)]
pub struct MailWrite {
    /// Who gets it
    #[arg(value_name = "ADDRESS")]
    pub to: Vec<String>,
    /// What it is about
    #[arg(long, short, value_name = "TEXT", default_value = "")]
    pub subject: String,
    /// Your address, with a name or without [default: $EMAIL, else USER@HOST]
    #[arg(long, short, value_name = "ADDRESS")]
    pub from: Option<String>,
    #[command(flatten)]
    pub folder: QueueFolder,
}

/// Arguments of `inhost mail queue`.
#[derive(Args, Debug)]
pub struct Look {
    /// Only these: a message such as m12, a destination such as example.net, or a sender's address
    pub which: Option<String>,
    /// Most messages to show
    #[arg(long, short, value_name = "COUNT", default_value_t = 20)]
    pub limit: usize,
    #[command(flatten)]
    pub folder: QueueFolder,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Which messages.
#[derive(Args, Debug)]
pub struct Which {
    /// A message such as m12, a destination such as example.net, a sender's address, or all
    pub which: String,
    #[command(flatten)]
    pub folder: QueueFolder,
}

const READ_EXAMPLES: &str = "\
Examples:
  inhost mail read
      ? shows the commands: a number reads, n the next unread one, r answers, d deletes, q leaves
  inhost mail read ~/Maildir --json
  inhost mail read --print 3";
const WRITE_EXAMPLES: &str = "\
Examples:
  inhost mail write ada@example.net --subject Lunch
      $VISUAL or $EDITOR is your editor; what you wrote is sent when you say so";
const QUEUE_EXAMPLES: &str = "\
Examples:
  inhost mail queue
  inhost mail queue example.net --limit 100
  inhost mail queue --json";
const WHY_EXAMPLES: &str = "\
Examples:
  inhost mail why m12
  inhost mail why example.net --dialogue";
const RETRY_EXAMPLES: &str = "\
Examples:
  inhost mail retry m12
  inhost mail retry all";
const HOLD_EXAMPLES: &str = "\
Examples:
  inhost mail hold ada@example.net
      what she has sent and still waits";
const DROP_EXAMPLES: &str = "\
Examples:
  inhost mail drop m12";
const CATCH_EXAMPLES: &str = "\
Examples:
  inhost mail catch
  inhost mail catch --rule 'recipient=*@full.example reply=\"452 4.2.2 Mailbox full\" first=3'
      the first three recipients there are refused
  inhost mail catch --rule 'stage=data delay=10s rate=0.2' --seed 7 --json";
const KEY_EXAMPLES: &str = "\
Examples:
  inhost mail key example.net mail /etc/inhost/dkim.pem
  inhost mail key example.net mail2 dkim2.pem --ed25519";

pub const MAIL_EXAMPLES: &str = "\
Examples:
  echo 'Lunch?' | inhost mail send --subject Today ada@example.net
  inhost mail queue
  inhost mail why m12
  inhost mail retry example.net";

pub const SEND_EXAMPLES: &str = "\
Examples:
  inhost mail send --subject Minutes --attach minutes.pdf ada@example.net bob@example.org < text
  echo hello | inhost mail send --now -v ada@example.net
      from here, without a running host; -v shows what is said
  echo hello | inhost mail send --server smtp://127.0.0.1:1025 ada@example.net
      to this server, without a queue
mutt: set sendmail=\"inhost mail send --raw\"";
