//! `inhost mail queue`, `why`, `retry`, `hold`, `drop`.

use super::{not_sent, selection, view};
use crate::args::{Look, Which};
use crate::failure::Failure;
use crate::ftp::show::size;
use crate::netstat::table::{Column, table};
use crate::output::{counted, show};
use crate::time::{now_s, relative};
use inhost_common::Cleaner;
use inhost_mail::queue::{DestinationView, MessageView, Selection, StoreError, View};
use serde_json::json;
use std::fmt::Write;

/// Destinations that are shown.
const DESTINATIONS: usize = 20;
/// Messages that `why` explains.
const EXPLAINED: usize = 20;

fn failed(error: StoreError) -> Failure {
    Failure::operation(error.to_string())
}

/// Shows what waits.
pub fn look(arguments: &Look) -> Result<(), Failure> {
    let (view, now) = (view(&arguments.folder)?, now_s());
    let selection = arguments.which.as_deref().map_or(Selection::All, selection);
    let summary = view.summary().map_err(failed)?;
    let destinations = view.destinations(DESTINATIONS).map_err(failed)?;
    let messages = view.messages(&selection, arguments.limit, now).map_err(failed)?;
    if arguments.json {
        let all = json!({ "summary": summary, "destinations": destinations, "messages": messages });
        show(&format!("{all}\n"));
        return Ok(());
    }
    if summary.messages == 0 {
        show("Nothing waits.\n");
        return Ok(());
    }
    let mut text = format!(
        "{} for {} at {}, {}{}\n",
        counted(summary.messages, "message"),
        counted(summary.recipients, "recipient"),
        counted(summary.destinations, "destination"),
        size(summary.bytes),
        if summary.is_served { "" } else { "; no host sends from this queue" },
    );
    if selection == Selection::All {
        text.push('\n');
        text += &destinations_shown(&destinations, now);
    }
    text.push('\n');
    text += &messages_shown(&messages, now);
    if messages.len() == arguments.limit {
        let _ = writeln!(text, "the first {}; --limit shows more", arguments.limit);
    }
    show(&text);
    Ok(())
}

fn destinations_shown(destinations: &[DestinationView], now: u64) -> String {
    let columns = [
        Column::Left("Destination", 30),
        Column::Right("Waiting", 7),
        Column::Right("Sending", 7),
        Column::Right("Failed", 6),
        Column::Left("Next", 12),
    ];
    let rows = destinations.iter().map(|one| {
        [
            clean(&one.domain),
            one.recipients.to_string(),
            one.under_way.to_string(),
            one.failures.to_string(),
            one.due_s.map_or("-".into(), |due| relative(due, now)),
        ]
    });
    table(columns, rows)
}

fn messages_shown(messages: &[MessageView], now: u64) -> String {
    let mut text = String::new();
    for message in messages {
        let sender = if message.sender.is_empty() { "(a report)" } else { &message.sender };
        let size = size(message.size_bytes);
        let _ = writeln!(
            text,
            "{:<8} {:>9}  {:<13} {}",
            message.name,
            size,
            relative(message.arrived_s, now),
            clean(sender)
        );
        for recipient in &message.recipients {
            let _ = writeln!(text, "    {}: {}", clean(&recipient.address), clean(&recipient.why));
        }
    }
    text
}

/// Says why messages wait.
pub fn why(which: &Which, dialogue: bool, json: bool) -> Result<(), Failure> {
    let (view, now) = (view(&which.folder)?, now_s());
    let messages = view.messages(&selection(&which.which), EXPLAINED, now).map_err(failed)?;
    if messages.is_empty() {
        return Err(Failure::operation(gone(&view, &which.which)?));
    }
    let mut domains: Vec<_> =
        messages.iter().flat_map(|one| &one.recipients).map(|one| one.domain.clone()).collect();
    domains.sort();
    domains.dedup();
    let dialogues = |domain: &String| view.dialogues(domain).map(|all| (domain.clone(), all));
    let dialogues: Vec<_> = match dialogue || json {
        true => domains.iter().map(dialogues).collect::<Result<_, _>>().map_err(failed)?,
        false => Vec::new(),
    };
    if json {
        let dialogues: serde_json::Map<_, _> = dialogues
            .into_iter()
            .map(|(domain, all)| {
                let all = all.iter().map(|(at_s, text)| json!({ "at_s": at_s, "text": text }));
                (domain, all.collect())
            })
            .collect();
        show(&format!("{}\n", json!({ "messages": messages, "dialogues": dialogues })));
        return Ok(());
    }
    let mut text = String::new();
    for message in &messages {
        explain(message, now, &mut text);
    }
    for (domain, all) in dialogues {
        for (at, dialogue) in all {
            let _ = writeln!(text, "\nWith {}, {}:", clean(&domain), relative(at, now));
            dialogue.lines().for_each(|line| {
                let _ = writeln!(text, "  {}", clean(line));
            });
        }
    }
    show(&text);
    Ok(())
}

/// What is known of messages that do not wait.
fn gone(view: &View, which: &str) -> Result<String, Failure> {
    let failed = match selection(which) {
        Selection::Message(id) => view.failures(id).map_err(failed)?,
        _ => Vec::new(),
    };
    if failed.is_empty() {
        return Ok(format!("{which:?} does not wait: it was delivered, or never was here"));
    }
    let failed: Vec<_> = failed.iter().map(not_sent).collect();
    Ok(format!("{which} does not wait: {}", failed.join("\n")))
}

fn explain(message: &MessageView, now: u64, text: &mut String) {
    let sender = if message.sender.is_empty() { "a report of this host" } else { &message.sender };
    let _ = writeln!(
        text,
        "{} from {}, {}, came {} from {}; it is given up {}",
        message.name,
        clean(sender),
        size(message.size_bytes),
        relative(message.arrived_s, now),
        clean(&message.origin),
        relative(message.expires_s, now),
    );
    for one in &message.recipients {
        let next = match one.state {
            "waiting" => format!("; next {}", relative(one.due_s, now)),
            state => format!("; {state}"),
        };
        let attempts = counted(one.attempts, "attempt");
        let _ = writeln!(text, "  {}: {attempts}{next}", clean(&one.address));
        let _ = writeln!(text, "    why     {}", clean(&one.why));
        if !one.remedy.is_empty() {
            let _ = writeln!(text, "    remedy  {}", clean(&one.remedy));
        }
    }
}

/// Does something to messages, and says to how many recipients.
pub fn change(
    which: &Which,
    done: &str,
    work: impl FnOnce(&mut View, &Selection) -> Result<usize, StoreError>,
) -> Result<(), Failure> {
    let count = work(&mut view(&which.folder)?, &selection(&which.which)).map_err(failed)?;
    if count == 0 {
        return Err(Failure::operation(format!("{:?}: nothing that waits is meant by that", which.which)));
    }
    show(&format!("{} {done}\n", counted(count as u64, "recipient")));
    Ok(())
}

/// A text of strangers as a part of one line.
fn clean(text: &str) -> String {
    Cleaner::line(text.as_bytes())
}
