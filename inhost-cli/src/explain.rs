//! `inhost explain`: why connections are slow.

mod follow;
mod live;
mod mcp;

use crate::args::Explain;
use crate::failure::Failure;
use crate::output::print;
use inhost_explain::capture::Frame;
use inhost_explain::draw::Trace;
use inhost_explain::{Options, Report, Verdict};
use inhost_peep::filter::{Filter, FilterError};
use inhost_runtime::control::{self, Client};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// Columns of a text: longer lines are hard to read, and in shorter ones hardly a word fits.
const MOST_COLUMNS: usize = 100;
const LEAST_COLUMNS: usize = 40;

/// Runs the command.
pub fn run(arguments: &Explain) -> Result<(), Failure> {
    if arguments.schema {
        return print(&format!("{:#}\n", schemars::schema_for!(Report).as_value()));
    }
    if arguments.mcp {
        return mcp::run(arguments);
    }
    let only = arguments.only.as_deref().or(arguments.live.as_deref()).map(Choice::parse).transpose()?;
    let only = only.unwrap_or_default();
    if arguments.follow {
        return follow::run(arguments, &only);
    }
    if arguments.live.is_some() {
        let (report, _) = live::judge(&mut open(arguments)?, &only, arguments.top as usize)?;
        let verdicts = &report.conversations;
        if arguments.json {
            print(&format!("{}\n", json!(report)))?;
        }
        if verdicts.is_empty() && only != Choice::All {
            return Err(Failure::operation(
                "no such connection is open; inhost netstat lists those that are",
            ));
        }
        return match arguments.json {
            true => Ok(()),
            false if verdicts.is_empty() => print("no connection is open\n"),
            false => {
                let columns = columns();
                print(&verdicts.iter().map(|of| of.text_in(columns) + "\n").collect::<String>())
            }
        };
    }
    if let Some(svg) = &arguments.svg
        && arguments.files.iter().any(|file| same_file::is_same_file(file, svg).unwrap_or(false))
    {
        return Err(Failure::usage(format!("{} is read: draw into another file (--svg)", svg.display())));
    }
    let filter = filter(arguments)?;
    let mut reports = Vec::new();
    for path in &arguments.files {
        let mut report = explain(path, &filter)?;
        report.conversations.retain(|of| only.has(&of.client, &of.server));
        reports.push((path, report));
    }
    if arguments.filter.is_some() && reports.iter().all(|(_, report)| report.tcp_frames == 0) {
        return Err(Failure::operation("--filter chooses no TCP segment; without it all frames count"));
    }
    if let Some(svg) = &arguments.svg {
        draw(&reports, svg)?;
    }
    match &reports[..] {
        [(_, report)] if arguments.json => print(&format!("{}\n", json!(report))),
        _ if arguments.json => {
            let each = |(path, report): &(_, _)| json!({"file": path, "report": report});
            print(&format!("{}\n", json!(reports.iter().map(each).collect::<Vec<_>>())))
        }
        [(_, report)] => print(&text(report, arguments.top as usize)),
        _ => reports.iter().try_for_each(|(path, report)| {
            print(&format!("{}:\n{}", path.display(), text(report, arguments.top as usize)))
        }),
    }?;
    match only != Choice::All && reports.iter().all(|(_, report)| report.conversations.is_empty()) {
        true => Err(Failure::operation("--only chooses no connection; without it all are shown")),
        false => Ok(()),
    }
}

/// The frames that are meant.
fn filter(arguments: &Explain) -> Result<Filter, Failure> {
    let text = arguments.filter.as_deref().unwrap_or_default();
    text.parse().map_err(|why: FilterError| {
        Failure::usage(format!("the filter is not understood\n{}", why.shown(text)))
    })
}

/// Explains a file.
fn explain(path: &Path, filter: &Filter) -> Result<Report, Failure> {
    let fail = |why: String| Failure::operation(format!("{}: {why}", path.display()));
    let source: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(BufReader::with_capacity(1 << 20, File::open(path).map_err(|e| fail(e.to_string()))?)),
    };
    let is_chosen = |frame: &Frame<'_>| filter.has(frame);
    inhost_explain::explain_some(source, &Options::default(), is_chosen)
        .map_err(|why| fail(format!("{why}; is it a capture, such as tcpdump -w writes?")))
}

/// Draws the first connection.
fn draw(reports: &[(&PathBuf, Report)], svg: &Path) -> Result<(), Failure> {
    let found = reports.iter().find_map(|(path, report)| Some((path, report.conversations.first()?)));
    let (path, verdict) = found.ok_or_else(|| Failure::operation("there is no connection to draw"))?;
    if path.to_str() == Some("-") {
        return Err(Failure::usage("standard input is read once; give a file to draw"));
    }
    let read = || {
        Trace::read(BufReader::new(File::open(path).map_err(|e| e.to_string())?), verdict)
            .map_err(|e| e.to_string())
    };
    let trace = read().map_err(|why| Failure::operation(format!("{}: {why}", path.display())))?;
    std::fs::write(svg, trace.svg()).map_err(|e| Failure::operation(format!("{}: {e}", svg.display())))
}

/// How wide a text may be.
fn columns() -> usize {
    crate::output::columns()
        .map_or(MOST_COLUMNS, |width| usize::from(width).clamp(LEAST_COLUMNS, MOST_COLUMNS))
}

fn text(report: &Report, top: usize) -> String {
    let columns = columns();
    let mut text = String::new();
    for warning in &report.warnings {
        text.push_str(&format!("note: {} ({})\n", warning.text, warning.count));
    }
    for verdict in report.conversations.iter().take(top) {
        text.push_str(&verdict.text_in(columns));
        text.push('\n');
    }
    match report.conversations.len() {
        0 if report.tcp_frames == 0 => {
            text.push_str(&format!("none of the {} frames is a TCP segment\n", report.frames));
        }
        0 => text.push_str("no such connection is in it\n"),
        many if many > top => {
            text.push_str(&format!(
                "and {} connections that lost less; --top {many} prints all\n",
                many - top
            ));
        }
        _ => {}
    }
    text
}

/// Opens the control socket of the running host.
fn open(arguments: &Explain) -> Result<Client, Failure> {
    let path = arguments.via.clone().unwrap_or_else(control::default_path);
    crate::through::open_host(&path)
}

/// Which connections are meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Choice {
    #[default]
    All,
    End(SocketAddr),
    Address(IpAddr),
    Port(u16),
}

impl Choice {
    /// Reads one, or all of them where the text is empty.
    pub fn parse(text: &str) -> Result<Choice, Failure> {
        let port = text.strip_prefix(':').unwrap_or(text);
        if text.is_empty() {
            Ok(Choice::All)
        } else if let Ok(end) = text.parse() {
            Ok(Choice::End(end))
        } else if let Ok(address) = text.parse() {
            Ok(Choice::Address(address))
        } else if let Ok(port) = port.parse() {
            Ok(Choice::Port(port))
        } else {
            Err(Failure::usage(format!(
                "{text:?} is not a connection's end; give address and port (10.9.0.2:80), an address or a port (:80)"
            )))
        }
    }
    /// Whether the connection between these ends is meant.
    pub fn has(self, one: &str, other: &str) -> bool {
        let has = |end: &str| match (self, end.parse::<SocketAddr>()) {
            (Choice::All, _) => true,
            (Choice::End(wanted), Ok(end)) => end == wanted,
            (Choice::Address(wanted), Ok(end)) => end.ip() == wanted,
            (Choice::Port(wanted), Ok(end)) => end.port() == wanted,
            _ => false,
        };
        has(one) || has(other)
    }
}

/// One line on a connection: ends, rate, the largest cause, why.
fn line(verdict: &Verdict) -> String {
    let of = &verdict.directions[verdict.direction];
    let shares: Vec<String> = of
        .shares
        .iter()
        .take(3)
        .filter(|share| share.per_cent >= 1.0)
        .map(|share| format!("{:.0} % {}", share.per_cent, share.cause.text()))
        .collect();
    format!("{} - {}: {}\n    {}\n", verdict.client, verdict.server, shares.join(", "), verdict.diagnosis)
}
