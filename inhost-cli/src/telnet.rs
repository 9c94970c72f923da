//! `inhost telnet`: the client on this terminal.

use crate::args::Telnet;
use crate::client::ClientHost;
use crate::connection::{Connector, Family};
use crate::failure::Failure;
use crate::through::HostChoice;
use inhost_names::check_host;
use inhost_telnet::client::{Emulation, Settings, Start, Transmit};
use inhost_telnet::driver::{ClientEnd, TerminalUi, run_client};
use inhost_telnet::machine::Config;
use inhost_telnet::terminal::Terminal;

/// Runs the client until its end.
pub fn run(arguments: &Telnet) -> Result<(), Failure> {
    let settings = settings(arguments)?;
    if let Some(host) = &arguments.host {
        check_host(host).map_err(|why| Failure::usage(why.to_string()))?;
    }
    let failed = |what: &str, e: std::io::Error| Failure::operation(format!("{what}: {e}"));
    let mut client = ClientHost::start(HostChoice::find(&arguments.through)?)?;
    let connector =
        Connector { maker: client.maker.clone(), family: Family::of(arguments.ipv4, arguments.ipv6) };
    let mut terminal = Terminal::enter().map_err(|e| failed("the terminal cannot be used", e))?;
    let start = Start {
        open: arguments.host.clone().map(|host| (host, arguments.port)),
        config: Config::client(&terminal_type(settings.emulation)),
        settings,
        window: terminal.window(),
    };
    let clock = client.runtime.host().clone();
    let end = client
        .runtime
        .run(run_client(&mut terminal, &connector, &clock, start))
        .map_err(|e| failed("the client cannot wait", e))?
        .map_err(|e| failed("the terminal failed", e))?;
    drop(terminal);
    client.end()?;
    match end {
        ClientEnd::Failed(why) => Err(Failure::operation(why)),
        ClientEnd::Done => Ok(()),
    }
}

fn settings(arguments: &Telnet) -> Result<Settings, Failure> {
    let escape = match arguments.escape.as_str() {
        "none" => None,
        text => Some(key(text).ok_or_else(|| {
            Failure::usage(format!("--escape {text}: give a character, ^ and a letter such as ^], or none"))
        })?),
    };
    let mut settings = Settings::default();
    settings.escape = escape;
    settings.transmit = if arguments.line { Transmit::Return } else { Transmit::Character };
    settings.emulation = match arguments.emulate.as_deref() {
        Some("h19") => Emulation::Heath19,
        _ => Emulation::None,
    };
    settings.is_terminal = Terminal::is_terminal();
    Ok(settings)
}

/// `^]` or its own character.
pub fn key(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [b'^', b'?'] => Some(0x7f),
        [b'^', letter @ b'@'..=b'_'] => Some(letter & 0x1f),
        [b'^', letter @ b'a'..=b'z'] => Some(letter & 0x1f),
        [single] => Some(*single),
        _ => None,
    }
}

fn terminal_type(emulation: Emulation) -> String {
    match emulation {
        Emulation::Heath19 => "heath-19".into(),
        Emulation::None => std::env::var("TERM").unwrap_or_else(|_| "unknown".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_characters_as_people_write_them() {
        assert_eq!(
            [key("^]"), key("^a"), key("~"), key("^?")],
            [Some(0x1d), Some(1), Some(b'~'), Some(0x7f)]
        );
        assert_eq!([key(""), key("ab"), key("^]]")], [None; 3]);
    }
}
