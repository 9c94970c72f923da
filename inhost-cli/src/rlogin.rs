//! `inhost rlogin`: this terminal on another host.

use crate::args::Rlogin;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::reserved::{self, local_user};
use crate::target::{Schemes, Target};
use inhost_rcommands::rlogin::{End, Opening, PORT, run as session};
use inhost_telnet::driver::TerminalUi;
use inhost_telnet::terminal::Terminal;

/// What terminals have said of their speed ever since it meant nothing.
const SPEED_BITS_PER_SECOND: u32 = 38_400;

/// Runs the session until it ends.
pub fn run(arguments: &Rlogin) -> Result<(), Failure> {
    let common = &arguments.common;
    let escape = match arguments.escape.as_str() {
        "none" => None,
        text => Some(crate::telnet::key(text).ok_or_else(|| {
            Failure::usage(format!("--escape {text}: give a character, ^ and a letter such as ^], or none"))
        })?),
    };
    let local_user = local_user(common)?;
    let target = Target::parse(&arguments.host, Schemes::Of(&["rlogin"]))?;
    target.without_path("rlogin")?;
    let port = target.port_or(common.port)?.unwrap_or(PORT);
    let remote_user = arguments.user.clone().or(target.user_name()?).unwrap_or_else(|| local_user.clone());
    let end = reserved::run(common, async |caller| {
        let mut called = caller.call(&target.host, port).await?;
        let failed = |e: std::io::Error| Failure::operation(format!("the terminal cannot be used: {e}"));
        let mut terminal = Terminal::enter().map_err(failed)?;
        let opening = Opening {
            local_user,
            remote_user,
            terminal: std::env::var("TERM").unwrap_or_else(|_| "network".into()),
            speed: SPEED_BITS_PER_SECOND,
            window: terminal.window(),
            escape,
            has_urgent: matches!(called.stream, Connection::Private(_)),
        };
        session(&mut terminal, &mut called.stream, &opening).await.map_err(failed)
    })?;
    match end {
        End::Done => Ok(()),
        End::Refused(why) => Err(Failure::operation(format!("{} refuses: {why}", target.host))),
        End::Broken(why) => Err(Failure::operation(format!("{}: {why}", target.host))),
    }
}
