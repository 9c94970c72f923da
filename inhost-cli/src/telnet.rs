//! `inhost telnet`: the client on this terminal.

use crate::args::Telnet;
use crate::client::ClientHost;
use crate::connection::Connector;
use crate::failure::Failure;
use crate::target::{Schemes, Target};
use crate::through::HostChoice;
use inhost_telnet::client::{Emulation, Settings, Start, Transmit};
use inhost_telnet::codec::{Variable, VariableKind};
use inhost_telnet::driver::{ClientEnd, TerminalUi, run_client};
use inhost_telnet::machine::Config;
use inhost_telnet::terminal::Terminal;

/// The port by default.
const PORT: u16 = 23;

/// Runs the client until its end.
pub fn run(arguments: &Telnet) -> Result<(), Failure> {
    let settings = settings(arguments)?;
    let target = target(arguments)?;
    let failed = |what: &str, e: std::io::Error| Failure::operation(format!("{what}: {e}"));
    let mut client = ClientHost::start(HostChoice::find(&arguments.reach)?)?;
    let clock = client.runtime.host().clone();
    let connector = Connector {
        maker: client.maker.clone(),
        common: arguments.reach.common.clone(),
        clock: clock.clone(),
    };
    let mut terminal = Terminal::enter().map_err(|e| failed("the terminal cannot be used", e))?;
    let mut config = Config::client(&terminal_type(settings.emulation));
    config.environment = target.user.iter().map(|user| user_variable(user)).collect();
    let start = Start { open: target.open, config, settings, window: terminal.window() };
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

/// Where to connect, and as whom.
struct To {
    open: Option<(String, u16)>,
    user: Option<String>,
}

fn target(arguments: &Telnet) -> Result<To, Failure> {
    let user = arguments.user.clone();
    let Some(host) = &arguments.host else { return Ok(To { open: None, user }) };
    let target = Target::parse(host, Schemes::Of(&["telnet"]))?;
    target.without_path("telnet")?;
    let port = target.port_or(arguments.port)?.unwrap_or(PORT);
    let user = user.or(target.user_name()?);
    Ok(To { open: Some((target.host, port)), user })
}

/// The variable by which a server may learn the user's name (RFC 1572 §2).
fn user_variable(user: &str) -> Variable {
    Variable { kind: VariableKind::WellKnown, name: b"USER".to_vec(), value: Some(user.into()) }
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
