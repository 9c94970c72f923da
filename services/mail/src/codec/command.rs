//! Commands of SMTP and their parameters (RFC 5321 §4.1.1; RFC 1870, 3030, 3207, 3461, 4954, 6152, 6531).

use std::fmt;

use super::address::{self, AddressError, Mailbox};
use super::xtext;

/// Longest command line, its end included. RFC 5321 §4.5.3.1.4 asks for 512 and extensions for more.
pub const COMMAND_BYTES: usize = 4096;
/// Longest line of an AUTH dialogue (RFC 4954 §4).
pub const AUTH_BYTES: usize = 12_288;
/// Most octets of ENVID and ORCPT (RFC 3461 §4.2, §4.4).
const XTEXT_BYTES: usize = 500;

/// A command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// HELO or EHLO.
    Hello {
        /// The name that the client gives itself, or an address literal.
        name: String,
        /// Whether it was EHLO.
        is_extended: bool,
    },
    /// MAIL FROM.
    Mail(MailFrom),
    /// RCPT TO.
    Recipient(Recipient),
    /// DATA.
    Data,
    /// BDAT: so many octets follow (RFC 3030).
    Chunk {
        /// Octets.
        size_bytes: u64,
        /// Whether the message ends with them.
        is_last: bool,
    },
    /// RSET.
    Reset,
    /// NOOP.
    Noop,
    /// QUIT.
    Quit,
    /// VRFY, EXPN.
    Verify,
    /// HELP.
    Help,
    /// STARTTLS (RFC 3207).
    StartTls,
    /// AUTH (RFC 4954).
    Auth {
        /// The mechanism, in upper case.
        mechanism: String,
        /// The initial response in base64; `=` is empty.
        initial: Option<String>,
    },
}

/// MAIL FROM with its parameters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct MailFrom {
    /// Who gets reports; `None` is the null path.
    pub sender: Option<Mailbox>,
    /// The size that was declared (RFC 1870).
    pub size_bytes: Option<u64>,
    /// Whether the text may have octets above 127 (RFC 6152).
    pub is_eight_bit: bool,
    /// Whether addresses and header may be UTF-8 (RFC 6531).
    pub is_utf8: bool,
    /// How much of the message a report returns (RFC 3461 §4.3).
    pub returns: Option<Returns>,
    /// The sender's identifier of the message, decoded (RFC 3461 §4.4).
    pub envelope_id: Option<String>,
}

/// How much a report returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returns {
    /// The message.
    Full,
    /// Its header.
    Headers,
}

/// RCPT TO with its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Recipient {
    /// The mailbox.
    pub mailbox: Mailbox,
    /// When the sender wants to be told; `None` leaves it to the server (RFC 3461 §4.1).
    pub notify: Option<Notify>,
    /// The address before it was rewritten, as `rfc822;a@b`, decoded (RFC 3461 §4.2).
    pub original: Option<String>,
}

/// When a sender wants a report. None of them is NEVER.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Notify {
    /// When it was delivered.
    pub success: bool,
    /// When it cannot be.
    pub failure: bool,
    /// When it takes long.
    pub delay: bool,
}

/// Why a line is not a command.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CommandError {
    /// There is no such command.
    Unknown,
    /// The command is right, what follows it is not.
    Arguments(&'static str),
    /// A parameter of MAIL or RCPT that is not known.
    Parameter(String),
    /// The address.
    Address(AddressError),
}

impl From<AddressError> for CommandError {
    fn from(error: AddressError) -> CommandError {
        CommandError::Address(error)
    }
}

impl Recipient {
    /// A mailbox without parameters.
    pub fn new(mailbox: Mailbox) -> Recipient {
        Recipient { mailbox, notify: None, original: None }
    }
}

impl Command {
    /// Parses a line without its end.
    ///
    /// ```
    /// use inhost_mail::codec::Command;
    /// let Ok(Command::Mail(mail)) = Command::parse("mail from:<ada@example.net> SIZE=1000 BODY=8BITMIME") else { panic!() };
    /// assert_eq!((mail.size_bytes, mail.is_eight_bit), (Some(1000), true));
    /// ```
    pub fn parse(line: &str) -> Result<Command, CommandError> {
        let line = line.trim_end_matches(' ');
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let alone = |command| match rest.trim().is_empty() {
            true => Ok(command),
            false => Err(CommandError::Arguments("this command has no arguments")),
        };
        match verb.to_ascii_uppercase().as_str() {
            "HELO" => hello(rest, false),
            "EHLO" => hello(rest, true),
            "MAIL" => mail(after(rest, "FROM:")?).map(Command::Mail),
            "RCPT" => recipient(after(rest, "TO:")?).map(Command::Recipient),
            "DATA" => alone(Command::Data),
            "BDAT" => chunk(rest),
            "RSET" => alone(Command::Reset),
            "NOOP" => Ok(Command::Noop),
            "QUIT" => alone(Command::Quit),
            "VRFY" | "EXPN" => Ok(Command::Verify),
            "HELP" => Ok(Command::Help),
            "STARTTLS" => alone(Command::StartTls),
            "AUTH" => auth(rest),
            _ => Err(CommandError::Unknown),
        }
    }
}

fn hello(rest: &str, is_extended: bool) -> Result<Command, CommandError> {
    let name = rest.trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '[' | ']' | ':');
    match !name.is_empty() && name.len() <= address::DOMAIN_BYTES && name.chars().all(is_name) {
        true => Ok(Command::Hello { name: name.to_owned(), is_extended }),
        false => Err(CommandError::Arguments("give your host's name")),
    }
}

/// What follows `word`, which is in any case and may have a space behind it.
fn after<'a>(rest: &'a str, word: &'static str) -> Result<&'a str, CommandError> {
    let rest = rest.trim_start();
    match rest.get(..word.len()) {
        Some(start) if start.eq_ignore_ascii_case(word) => Ok(rest[word.len()..].trim_start()),
        _ => Err(CommandError::Arguments(match word {
            "FROM:" => "write MAIL FROM:<address>",
            _ => "write RCPT TO:<address>",
        })),
    }
}

/// Parameters, each with its key in upper case.
fn parameters(text: &str) -> impl Iterator<Item = (String, Option<&str>)> {
    text.split(' ').filter(|word| !word.is_empty()).map(|word| match word.split_once('=') {
        Some((key, value)) => (key.to_ascii_uppercase(), Some(value)),
        None => (word.to_ascii_uppercase(), None),
    })
}

fn mail(text: &str) -> Result<MailFrom, CommandError> {
    let (sender, rest) = address::path(text)?;
    if !rest.is_empty() && !rest.starts_with(' ') {
        return Err(CommandError::Address(AddressError::Character));
    }
    let mut mail = MailFrom { sender, ..MailFrom::default() };
    for (key, value) in parameters(rest) {
        match (key.as_str(), value) {
            ("SIZE", Some(value)) => {
                let size =
                    value.parse().map_err(|_| CommandError::Arguments("SIZE is a number of octets"))?;
                mail.size_bytes = Some(size);
            }
            ("BODY", Some(value)) => match value.to_ascii_uppercase().as_str() {
                "7BIT" => mail.is_eight_bit = false,
                "8BITMIME" => mail.is_eight_bit = true,
                _ => return Err(CommandError::Arguments("BODY is 7BIT or 8BITMIME")),
            },
            ("SMTPUTF8", None) => mail.is_utf8 = true,
            ("RET", Some(value)) => {
                mail.returns = Some(match value.to_ascii_uppercase().as_str() {
                    "FULL" => Returns::Full,
                    "HDRS" => Returns::Headers,
                    _ => return Err(CommandError::Arguments("RET is FULL or HDRS")),
                });
            }
            ("ENVID", Some(value)) => mail.envelope_id = Some(decode(value, "ENVID is xtext")?),
            // RFC 4954 §5: who is trusted to say it is nobody, so that it counts as <>.
            ("AUTH", Some(_)) => {}
            _ => return Err(CommandError::Parameter(key)),
        }
    }
    Ok(mail)
}

fn recipient(text: &str) -> Result<Recipient, CommandError> {
    let (mailbox, rest) = address::path(text)?;
    let mailbox = mailbox.ok_or(CommandError::Address(AddressError::Incomplete))?;
    if !rest.is_empty() && !rest.starts_with(' ') {
        return Err(CommandError::Address(AddressError::Character));
    }
    let mut recipient = Recipient::new(mailbox);
    for (key, value) in parameters(rest) {
        match (key.as_str(), value) {
            ("NOTIFY", Some(value)) => recipient.notify = Some(notify(value)?),
            ("ORCPT", Some(value)) => recipient.original = Some(decode(value, "ORCPT is type;xtext")?),
            _ => return Err(CommandError::Parameter(key)),
        }
    }
    Ok(recipient)
}

fn decode(value: &str, expected: &'static str) -> Result<String, CommandError> {
    let text = xtext::decode(value).filter(|_| value.len() <= XTEXT_BYTES);
    text.ok_or(CommandError::Arguments(expected))
}

fn notify(value: &str) -> Result<Notify, CommandError> {
    let wrong = CommandError::Arguments("NOTIFY is NEVER, or some of SUCCESS,FAILURE,DELAY");
    let mut notify = Notify::default();
    if value.eq_ignore_ascii_case("NEVER") {
        return Ok(notify);
    }
    for word in value.split(',') {
        match word.to_ascii_uppercase().as_str() {
            "SUCCESS" => notify.success = true,
            "FAILURE" => notify.failure = true,
            "DELAY" => notify.delay = true,
            _ => return Err(wrong),
        }
    }
    Ok(notify)
}

impl fmt::Display for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [(self.success, "SUCCESS"), (self.failure, "FAILURE"), (self.delay, "DELAY")];
        let words: Vec<_> = words.iter().filter(|(is_set, _)| *is_set).map(|(_, word)| *word).collect();
        f.write_str(if words.is_empty() { "NEVER".to_owned() } else { words.join(",") }.as_str())
    }
}

fn chunk(rest: &str) -> Result<Command, CommandError> {
    let wrong = CommandError::Arguments("write BDAT octets [LAST]");
    let mut words = rest.split_ascii_whitespace();
    let size = words.next().filter(|word| word.bytes().all(|b| b.is_ascii_digit()));
    let size_bytes = size.and_then(|size| size.parse().ok()).ok_or(wrong.clone())?;
    match (words.next(), words.next()) {
        (None, _) => Ok(Command::Chunk { size_bytes, is_last: false }),
        (Some(last), None) if last.eq_ignore_ascii_case("LAST") => {
            Ok(Command::Chunk { size_bytes, is_last: true })
        }
        _ => Err(wrong),
    }
}

fn auth(rest: &str) -> Result<Command, CommandError> {
    let mut words = rest.split_ascii_whitespace();
    let Some(mechanism) = words.next() else {
        return Err(CommandError::Arguments("write AUTH mechanism"));
    };
    let initial = words.next().map(str::to_owned);
    match words.next() {
        None => Ok(Command::Auth { mechanism: mechanism.to_ascii_uppercase(), initial }),
        Some(_) => Err(CommandError::Arguments("write AUTH mechanism [initial-response]")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec: RFC5321 §4.1.1, RFC3461 §4, RFC3030 §2, RFC4954 §4
    #[test]
    fn commands_and_their_parameters() {
        let parse = |line| Command::parse(line);
        assert_eq!(parse("QUIT "), Ok(Command::Quit));
        assert_eq!(parse("bdat 86 last"), Ok(Command::Chunk { size_bytes: 86, is_last: true }));
        let Ok(Command::Mail(mail)) =
            parse("MAIL FROM: <a@b.example> RET=HDRS ENVID=QQ+2B7 SMTPUTF8 AUTH=<>")
        else {
            panic!()
        };
        assert_eq!((mail.returns, mail.envelope_id.as_deref()), (Some(Returns::Headers), Some("QQ+7")));
        assert!(mail.is_utf8);
        let Ok(Command::Recipient(to)) = parse("RCPT TO:<a@b.example> NOTIFY=FAILURE,DELAY ORCPT=rfc822;x@y")
        else {
            panic!()
        };
        assert_eq!(to.notify.unwrap().to_string(), "FAILURE,DELAY");
        assert_eq!(to.original.as_deref(), Some("rfc822;x@y"));
        for wrong in [
            "MAIL <a@b>",
            "MAIL FROM:<a@b>X",
            "MAIL FROM:<a@b> SIZE=x",
            "MAIL FROM:<a@b> BODY=BINARYMIME",
            "RCPT TO:<>",
            "RCPT TO:<a@b> NOTIFY=NEVER,DELAY",
            "BDAT",
            "BDAT -1",
            "BDAT 1 2",
            "EHLO",
            "EHLO a b",
            "AUTH",
            "DATA now",
            "HTTP/1.1",
            "GET /",
            "MAIL FROM:<a@b> XYZ=1",
            "RCPT TO:<a@b> ORCPT=a+0",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
