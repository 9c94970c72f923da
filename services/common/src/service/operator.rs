//! What an operator asks of a host at the Telnet server, in the manner of UCLA's SYSSTAT (UCLA §2.6.1, §2.7).

use std::fmt;
use std::future::ready;

use crate::LocalFuture;

/// A request of an operator.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Order {
    /// The sessions of all services, and the load.
    System,
    /// Connections, those that a filter in the manner of `ss` means.
    Connections(String),
    /// The latest lines of the log.
    Log(usize),
    /// Reset the connection, or end the session, that is named.
    Drop(String),
    /// Close the listeners of a service.
    Stop {
        /// The service.
        service: String,
        /// Also the service that carries the operator.
        force: bool,
    },
    /// Open them again.
    Start(String),
    /// What runs and what is stopped.
    Services,
    /// The traps that are armed.
    Traps,
    /// Arm a trap.
    Arm(String),
    /// Disarm a trap.
    Disarm(String),
    /// Why a connection is slow.
    Why(String),
    /// Jobs of the queue: of a user, in a state, one by its number, or the latest.
    Jobs(String),
    /// The job, or the array, does not start until it is released.
    Hold(i64),
    /// It may start.
    Release(i64),
    /// It ends, or never starts.
    Cancel(i64),
}

impl fmt::Display for Order {
    /// As it would be typed in full.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::System => f.write_str("SYSSTAT"),
            Order::Connections(filter) if filter.is_empty() => f.write_str("NETSTAT"),
            Order::Connections(filter) => write!(f, "NETSTAT {filter}"),
            Order::Log(lines) => write!(f, "LOG {lines}"),
            Order::Drop(what) => write!(f, "DROP {what}"),
            Order::Stop { service, force: false } => write!(f, "STOP {service}"),
            Order::Stop { service, force: true } => write!(f, "STOP {service} FORCE"),
            Order::Start(service) => write!(f, "START {service}"),
            Order::Services => f.write_str("SERVICES"),
            Order::Traps => f.write_str("TRAPS"),
            Order::Arm(trap) => write!(f, "ARM {trap}"),
            Order::Disarm(trap) => write!(f, "DISARM {trap}"),
            Order::Why(which) => write!(f, "WHY {which}"),
            Order::Jobs(which) if which.is_empty() => f.write_str("JOBS"),
            Order::Jobs(which) => write!(f, "JOBS {which}"),
            Order::Hold(job) => write!(f, "HOLD {job}"),
            Order::Release(job) => write!(f, "RELEASE {job}"),
            Order::Cancel(job) => write!(f, "CANCEL {job}"),
        }
    }
}

/// Lines of the log that are shown unless a number is given, and at most.
const LOG_LINES: usize = 20;
const MOST_LOG_LINES: usize = 200;

/// The commands, each with its help.
const COMMANDS: [(&str, &str, &str); 17] = [
    ("SYSSTAT", "", "sessions of all services, and the load"),
    ("NETSTAT", "[filter]", "connections and what each waits for; a filter as ss has it"),
    ("SERVICES", "", "what runs and what is stopped"),
    ("STOP", "service", "take no more callers; sessions that run go on"),
    ("START", "service", "take callers again"),
    ("DROP", "name", "end a session of SYSSTAT, reset a connection of NETSTAT"),
    ("WHY", "connection", "why a connection is slow, and what to do"),
    ("LOG", "[lines]", "the latest lines of the log"),
    ("TRAPS", "", "the traps that are armed, and how often each sprang"),
    ("ARM", "trap", "record what leads to an event, such as ARM reset port 80"),
    ("DISARM", "trap", "take a trap away"),
    ("JOBS", "[which]", "the queue: of a user, in a state, one by its number"),
    ("HOLD", "job", "a job does not start until it is released"),
    ("RELEASE", "job", "it may start"),
    ("CANCEL", "job", "it ends, or never starts"),
    ("HELP", "", "this list (also ?)"),
    ("QUIT", "", "leave (also LOGOUT, EXIT)"),
];

/// What a line at the operator's prompt means.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Line {
    /// Something for the host.
    Order(Order),
    /// The list of commands.
    Help,
    /// To leave.
    Quit,
    /// Nothing was typed.
    Empty,
    /// It is not understood; what would be right.
    Wrong(String),
}

impl Line {
    /// Any unambiguous beginning of a command will do, in any case of letters.
    ///
    /// ```
    /// use inhost_common::service::{Line, Order};
    /// assert_eq!(Line::parse("sys"), Line::Order(Order::System));
    /// assert_eq!(Line::parse("net port 80"), Line::Order(Order::Connections("port 80".into())));
    /// ```
    pub fn parse(line: &str) -> Line {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let (word, rest) = (word.to_ascii_uppercase(), rest.trim().to_owned());
        let command = match &*word {
            "" => return Line::Empty,
            "?" => "HELP",
            "LOGOUT" | "EXIT" => "QUIT",
            word => {
                let begun: Vec<_> =
                    COMMANDS.iter().map(|(name, ..)| *name).filter(|name| name.starts_with(word)).collect();
                match begun[..] {
                    [] => return Line::Wrong("Unknown; HELP lists the commands.".into()),
                    [one] => one,
                    _ => return Line::Wrong(format!("Ambiguous: {}.", begun.join(", "))),
                }
            }
        };
        let wanted = |example: &str| Line::Wrong(format!("{command} what? For example: {command} {example}"));
        Line::Order(match command {
            "HELP" => return Line::Help,
            "QUIT" => return Line::Quit,
            "SYSSTAT" => Order::System,
            "NETSTAT" => Order::Connections(rest),
            "SERVICES" => Order::Services,
            "TRAPS" => Order::Traps,
            "LOG" if rest.is_empty() => Order::Log(LOG_LINES),
            "LOG" => match rest.parse::<usize>() {
                Ok(lines @ 1..) => Order::Log(lines.min(MOST_LOG_LINES)),
                _ => return wanted("50"),
            },
            "START" if rest.is_empty() => return wanted("little"),
            "STOP" if rest.is_empty() => return wanted("little"),
            "DROP" if rest.is_empty() => return wanted("telnet.3"),
            "WHY" if rest.is_empty() => return wanted("10.0.2.15:23-10.0.2.2:40001"),
            "ARM" | "DISARM" if rest.is_empty() => return wanted("reset port 80"),
            "START" => Order::Start(rest),
            "STOP" => {
                let mut words = rest.split_whitespace();
                let (service, force, more) = (words.next(), words.next(), words.next());
                let force = force.map(|word| word.eq_ignore_ascii_case("force"));
                let (Some(service), None | Some(true), None) = (service, force, more) else {
                    return Line::Wrong("STOP takes one service, and FORCE behind it.".into());
                };
                Order::Stop { service: service.to_owned(), force: force.is_some() }
            }
            "DROP" => Order::Drop(rest),
            "WHY" => Order::Why(rest),
            "ARM" => Order::Arm(rest),
            "JOBS" => Order::Jobs(rest),
            "HOLD" | "RELEASE" | "CANCEL" => match (command, rest.parse::<i64>()) {
                (_, Err(_) | Ok(..1)) => return wanted("17"),
                ("HOLD", Ok(job)) => Order::Hold(job),
                ("RELEASE", Ok(job)) => Order::Release(job),
                (_, Ok(job)) => Order::Cancel(job),
            },
            _ => Order::Disarm(rest),
        })
    }

    /// The list of commands, a line each.
    pub fn help() -> String {
        let line = |(name, arguments, purpose): &(&str, &str, &str)| {
            let usage = format!("{name} {arguments}");
            format!("{:<17} {purpose}\n", usage.trim_end())
        };
        let mut text: String = COMMANDS.iter().map(line).collect();
        text.push_str("Any unambiguous beginning will do.\n");
        text
    }
}

/// The host, as its operators and visitors of the Telnet server see it.
pub trait Operator {
    /// SYSSTAT for a visitor, who learns numbers only: neither names nor addresses.
    fn figures(&self) -> String;
    /// Carries out what the operator `user` orders, and says what was done. It may take its time. The text is bounded.
    fn carry_out(&self, user: &str, order: Order) -> LocalFuture<String>;
}

/// A host without an operator's commands.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOperator;

impl Operator for NoOperator {
    fn figures(&self) -> String {
        "This host tells nothing of itself.".into()
    }
    fn carry_out(&self, _: &str, _: Order) -> LocalFuture<String> {
        Box::pin(ready("This host has no commands for operators.".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_what_they_mean() {
        let stop = |force| Order::Stop { service: "telnet".into(), force };
        let orders = [
            ("SYSSTAT", Order::System),
            (" sy ", Order::System),
            ("n", Order::Connections(String::new())),
            ("Net  state established ", Order::Connections("state established".into())),
            ("log", Order::Log(20)),
            ("l 5", Order::Log(5)),
            ("l 999999", Order::Log(200)),
            ("drop telnet.3", Order::Drop("telnet.3".into())),
            ("stop telnet", stop(false)),
            ("stop telnet force", stop(true)),
            ("sta little", Order::Start("little".into())),
            ("se", Order::Services),
            ("t", Order::Traps),
            ("arm reset port 80", Order::Arm("reset port 80".into())),
            ("dis reset", Order::Disarm("reset".into())),
            ("j", Order::Jobs(String::new())),
            ("jobs ada", Order::Jobs("ada".into())),
            ("ho 17", Order::Hold(17)),
            ("r 17", Order::Release(17)),
            ("can 17", Order::Cancel(17)),
            ("w 10.0.0.1:1-10.0.0.2:2", Order::Why("10.0.0.1:1-10.0.0.2:2".into())),
        ];
        for (line, order) in orders {
            assert_eq!(Line::parse(line), Line::Order(order.clone()), "{line}");
            assert_eq!(Line::parse(&order.to_string()), Line::Order(order), "{line}, in full");
        }
        assert_eq!([Line::parse("?"), Line::parse("he")], [Line::Help, Line::Help]);
        assert_eq!(["q", "exit", "LOGOUT"].map(Line::parse), [Line::Quit, Line::Quit, Line::Quit]);
        assert_eq!(Line::parse("  "), Line::Empty);
        let wrong = [
            ("s", "Ambiguous: SYSSTAT, SERVICES, STOP, START."),
            ("st", "Ambiguous: STOP, START."),
            ("d", "Ambiguous: DROP, DISARM."),
            ("h", "Ambiguous: HOLD, HELP."),
            ("hold all", "HOLD what? For example: HOLD 17"),
            ("cancel 0", "CANCEL what? For example: CANCEL 17"),
            ("news", "Unknown; HELP lists the commands."),
            ("drop", "DROP what? For example: DROP telnet.3"),
            ("log none", "LOG what? For example: LOG 50"),
            ("stop telnet now", "STOP takes one service, and FORCE behind it."),
        ];
        for (line, text) in wrong {
            assert_eq!(Line::parse(line), Line::Wrong(text.into()), "{line}");
        }
    }

    #[test]
    fn the_help_has_a_line_for_each_command_and_fits_a_terminal() {
        let help = Line::help();
        assert_eq!(help.lines().count(), COMMANDS.len() + 1);
        assert!(help.lines().all(|line| line.len() < 80), "{help}");
    }
}
