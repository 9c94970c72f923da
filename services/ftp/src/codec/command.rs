//! Commands: a verb and its argument.

use std::fmt;

use inhost_common::storage::name_text;

/// When a verb may be said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// At any time.
    Nothing,
    /// After logging in.
    Login,
    /// After logging in, by somebody who may change files.
    Write,
}

/// The argument of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// Nothing; what is there is ignored, as most servers do.
    None,
    /// Something, or nothing.
    Optional,
    /// Something.
    Required,
}

macro_rules! verbs {
    ($($verb:ident $name:literal $needs:ident $argument:ident $source:literal,)*) => {
        /// The verbs that are understood.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Verb {
            $(#[doc = $source] $verb,)*
        }
        impl Verb {
            /// All of them.
            pub const ALL: &[Verb] = &[$(Verb::$verb,)*];
            /// As it is written.
            pub fn name(self) -> &'static str {
                match self { $(Verb::$verb => $name,)* }
            }
            /// When it may be said.
            pub fn needs(self) -> Needs {
                match self { $(Verb::$verb => Needs::$needs,)* }
            }
            /// Its argument.
            pub fn argument(self) -> Argument {
                match self { $(Verb::$verb => Argument::$argument,)* }
            }
            /// The one that is written so, in capitals; also by its name of RFC 775 (RFC 1123 §4.1.3.1).
            pub fn parse(name: &str) -> Option<Verb> {
                let plain = match name {
                    "XCWD" => "CWD",
                    "XCUP" => "CDUP",
                    "XPWD" => "PWD",
                    "XMKD" => "MKD",
                    "XRMD" => "RMD",
                    other => other,
                };
                match plain { $($name => Some(Verb::$verb),)* _ => None }
            }
        }
    };
}

verbs! {
    User "USER" Nothing Required "RFC 959.",
    Pass "PASS" Nothing Optional "RFC 959.",
    Acct "ACCT" Nothing Required "RFC 959.",
    Cwd "CWD" Login Required "RFC 959.",
    Cdup "CDUP" Login None "RFC 959.",
    Smnt "SMNT" Login Required "RFC 959.",
    Quit "QUIT" Nothing None "RFC 959.",
    Rein "REIN" Nothing None "RFC 959.",
    Port "PORT" Login Required "RFC 959.",
    Pasv "PASV" Login None "RFC 959.",
    Type "TYPE" Login Required "RFC 959.",
    Stru "STRU" Login Required "RFC 959.",
    Mode "MODE" Login Required "RFC 959.",
    Retr "RETR" Login Required "RFC 959.",
    Stor "STOR" Write Required "RFC 959.",
    Stou "STOU" Write Optional "RFC 959.",
    Appe "APPE" Write Required "RFC 959.",
    Allo "ALLO" Login Required "RFC 959.",
    Rest "REST" Login Required "RFC 959, RFC 3659.",
    Rnfr "RNFR" Write Required "RFC 959.",
    Rnto "RNTO" Write Required "RFC 959.",
    Abor "ABOR" Login None "RFC 959.",
    Dele "DELE" Write Required "RFC 959.",
    Rmd "RMD" Write Required "RFC 959.",
    Mkd "MKD" Write Required "RFC 959.",
    Pwd "PWD" Login None "RFC 959.",
    List "LIST" Login Optional "RFC 959.",
    Nlst "NLST" Login Optional "RFC 959.",
    Site "SITE" Login Required "RFC 959.",
    Syst "SYST" Nothing None "RFC 959.",
    Stat "STAT" Nothing Optional "RFC 959.",
    Help "HELP" Nothing Optional "RFC 959.",
    Noop "NOOP" Nothing None "RFC 959.",
    Auth "AUTH" Nothing Required "RFC 2228, RFC 4217.",
    Pbsz "PBSZ" Nothing Required "RFC 2228, RFC 4217.",
    Prot "PROT" Nothing Required "RFC 2228, RFC 4217.",
    Ccc "CCC" Nothing None "RFC 2228, RFC 4217.",
    Feat "FEAT" Nothing None "RFC 2389.",
    Opts "OPTS" Nothing Required "RFC 2389.",
    Eprt "EPRT" Login Required "RFC 2428.",
    Epsv "EPSV" Login Optional "RFC 2428.",
    Lprt "LPRT" Login Required "RFC 1639.",
    Mdtm "MDTM" Login Required "RFC 3659.",
    Size "SIZE" Login Required "RFC 3659.",
    Mlst "MLST" Login Optional "RFC 3659.",
    Mlsd "MLSD" Login Optional "RFC 3659.",
    Mfmt "MFMT" Write Required "draft-somers-ftp-mfxx.",
    Hash "HASH" Login Required "draft-bryan-ftpext-hash.",
}

/// A line that was understood.
///
/// ```
/// use inhost_ftp::codec::{Command, Verb};
/// let command = Command::parse(b"retr notes.txt").unwrap();
/// assert_eq!((command.verb, command.argument.as_str()), (Verb::Retr, "notes.txt"));
/// assert_eq!(Command::parse(b"JUMP").unwrap_err().to_string(), "JUMP not understood");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Its verb.
    pub verb: Verb,
    /// Its argument; empty when absent.
    pub argument: String,
}

/// Why a line is not a command.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ParseError {
    /// A verb that is not known: reply 500.
    Unknown(String),
    /// A verb of RFC 2228 that needs a mechanism that we do not have: reply 502.
    NotImplemented(String),
    /// No argument where there must be one: reply 501.
    NoArgument(Verb),
    /// The argument has an octet in it that cannot be listed: reply 501.
    Text,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::Unknown(verb) => write!(f, "{verb} not understood"),
            ParseError::NotImplemented(verb) => write!(f, "{verb} not implemented"),
            ParseError::NoArgument(verb) => write!(f, "{} needs an argument", verb.name()),
            ParseError::Text => f.write_str("An argument has no line end and no NUL"),
        }
    }
}
impl std::error::Error for ParseError {}

/// Letters of an unknown verb repeated in the reply.
const SHOWN_CHARACTERS: usize = 16;

impl Command {
    /// Reads a line. Verbs are taken in any case; the argument is everything behind one space, for names may begin and
    /// end with spaces.
    pub fn parse(line: &[u8]) -> Result<Command, ParseError> {
        let line = name_text(line);
        let (name, argument) = line.split_once(' ').unwrap_or((&line, ""));
        let name = name.to_ascii_uppercase();
        let Some(verb) = Verb::parse(&name) else {
            let shown: String = name.chars().filter(char::is_ascii_graphic).take(SHOWN_CHARACTERS).collect();
            return Err(match &*name {
                "ADAT" | "MIC" | "CONF" | "ENC" | "MACB" | "LANG" | "HOST" | "LPSV" | "CLNT" => {
                    ParseError::NotImplemented(shown)
                }
                _ => ParseError::Unknown(shown),
            });
        };
        if argument.contains(['\r', '\n', '\0']) {
            return Err(ParseError::Text);
        }
        if verb.argument() == Argument::Required && argument.is_empty() {
            return Err(ParseError::NoArgument(verb));
        }
        Ok(Command { verb, argument: argument.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::name_octets;

    #[test]
    fn lines_are_commands_or_say_why_not() {
        let command = |verb, argument: &str| Ok(Command { verb, argument: argument.into() });
        assert_eq!(Command::parse(b"retr  a b "), command(Verb::Retr, " a b "));
        assert_eq!(Command::parse(b"xpwd"), command(Verb::Pwd, ""));
        assert_eq!(Command::parse("CWD é".as_bytes()), command(Verb::Cwd, "é"));
        assert_eq!(Command::parse(b"RETR"), Err(ParseError::NoArgument(Verb::Retr)));
        assert_eq!(Command::parse(b"GET / HTTP/1.1"), Err(ParseError::Unknown("GET".into())));
        assert_eq!(Command::parse(b""), Err(ParseError::Unknown(String::new())));
        assert_eq!(Command::parse(b"ENC x"), Err(ParseError::NotImplemented("ENC".into())));
        let latin = Command::parse(b"RETR M\xfcller\t\x1b").unwrap();
        assert_eq!(*name_octets(&latin.argument), *b"M\xfcller\t\x1b");
        for wrong in [&b"RETR a\rb"[..], b"RETR a\0"] {
            assert_eq!(Command::parse(wrong), Err(ParseError::Text));
        }
    }
}
