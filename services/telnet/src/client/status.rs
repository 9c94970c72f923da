//! Output of `status` for a connection.

use crate::codec::{Side, StatusEntry, TelnetOption};

use crate::machine::Telnet;

/// Options in force, and asked for, in columns.
pub(super) fn option_lines(telnet: &Telnet) -> Vec<String> {
    let entries = telnet.options();
    if entries.is_empty() {
        return vec!["options      none".to_owned()];
    }
    let line = |entry: &StatusEntry| {
        let asked = if entry.active { "" } else { " (asked, not answered)" };
        format!("  {:<8} {}{asked}", side(entry.side), name(entry.code))
    };
    ["options".to_owned()].into_iter().chain(entries.iter().map(line)).collect()
}

/// The server's own report, turned to our point of view.
pub(super) fn report_lines(entries: &[StatusEntry]) -> Vec<String> {
    let line = |entry: &StatusEntry| {
        let state = if entry.active { "on" } else { "off" };
        format!("  {:<8} {} {state}", side(entry.side), name(entry.code))
    };
    ["the server says".to_owned()].into_iter().chain(entries.iter().map(line)).collect()
}

/// One change, for `toggle options`.
pub(super) fn change_line(who: Side, option: TelnetOption, active: bool) -> String {
    format!("[{} {} {}]", side(who), option.name(), if active { "on" } else { "off" })
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Local => "client",
        Side::Remote => "server",
    }
}

fn name(code: u8) -> String {
    TelnetOption::from_code(code).map_or_else(|| format!("option {code}"), |option| option.name().to_owned())
}
