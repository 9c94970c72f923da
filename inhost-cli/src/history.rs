//! `inhost history`: questions to the records of closed connections.

use crate::args::{By, Causes, History as Arguments, Rate};
use crate::failure::Failure;
use crate::netstat::table::{Column, table};
use crate::output::print;
use inhost_event::{ReceiveCause, SendCause};
use inhost_explain::figures;
use inhost_history::{Answer, History, HistoryError, Order, Question, Record, Sums, draw, span_length_ms};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::path::Path;

/// Causes that a line names: those with this part of the time, in per cent.
const NAMED_PER_CENT: f64 = 1.0;

/// Answers.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = arguments.folder.clone().unwrap_or_else(|| inhost_common::state_folder("history"));
    let failed = |why| failure(&folder, &why);
    let history = History::open(&folder).map_err(failed)?;
    if let Some(to) = &arguments.svg {
        let covered = history.covers().map_err(failed)?;
        let covered = covered.ok_or_else(|| Failure::operation("no connection has ended yet"))?;
        let ms = |time: Timestamp| u64::try_from(time.as_millisecond()).unwrap_or(0);
        let since = arguments.since.map_or(covered.0, ms);
        let until = arguments.until.map_or(covered.1 + 1, ms);
        let spans =
            history.spans(since, until, span_length_ms(until.saturating_sub(since))).map_err(failed)?;
        let picture = draw(&spans, since, until);
        if to.as_os_str() == "-" {
            return print(&picture);
        }
        return std::fs::write(to, picture).map_err(|e| Failure::operation(format!("{}: {e}", to.display())));
    }
    let answer = history.ask(&question(arguments)).map_err(failed)?;
    match arguments.json {
        true => {
            let json = serde_json::to_string(&answer).map_err(|e| Failure::operation(e.to_string()))?;
            print(&format!("{json}\n"))
        }
        false => print(&text(&answer)),
    }
}

fn failure(folder: &Path, why: &HistoryError) -> Failure {
    let hint = match why {
        HistoryError::Missing(_) => {
            "; set enabled = true in [history] of host.toml, or name another with --folder"
        }
        _ => "",
    };
    Failure::operation(format!("the records in {}: {why}{hint}", folder.display()))
}

fn question(arguments: &Arguments) -> Question {
    let mut question = Question::default();
    let ms = |time: &Timestamp| u64::try_from(time.as_millisecond()).unwrap_or(0);
    question.since_ms = arguments.since.as_ref().map_or(question.since_ms, ms);
    question.until_ms = arguments.until.as_ref().map_or(question.until_ms, ms);
    (question.peer, question.port) = (arguments.peer, arguments.port);
    question.limits = arguments.cause.clone().map_or_else(Vec::new, |Causes(limits)| limits);
    question.failed = arguments.failed.then_some(true);
    question.most_rate =
        arguments.slower_than.map_or(question.most_rate, |Rate(rate)| rate.saturating_sub(1));
    question.least_rate =
        arguments.faster_than.map_or(question.least_rate, |Rate(rate)| rate.saturating_add(1));
    question.order = match arguments.by {
        By::Latest => Order::Latest,
        By::Slowest => Order::Slowest,
        By::Longest => Order::Longest,
        By::Largest => Order::Largest,
        By::Resent => Order::MostRetransmitted,
    };
    question.count = arguments.count;
    question
}

fn text(answer: &Answer) -> String {
    let Sums { connections, failed, sent_bytes, received_bytes, retransmitted_segments, .. } = answer.sums;
    if connections == 0 {
        return "no connection that ended is like that\n".to_owned();
    }
    let partial = if answer.is_partial { " (of those that match; there are more)" } else { "" };
    let mut out = format!(
        "{connections} connections{partial}, {failed} with an error; {} sent, {} received, {retransmitted_segments} segments \
         sent again\n",
        figures::bytes(sent_bytes),
        figures::bytes(received_bytes)
    );
    let sending = SendCause::ALL.iter().map(|cause| cause.text()).zip(answer.sums.send_ns);
    let receiving = ReceiveCause::ALL.iter().map(|cause| cause.text()).zip(answer.sums.receive_ns);
    out += &format!("sending    {}\n", shares(sending));
    out += &format!("receiving  {}\n\n", shares(receiving));
    let columns = [
        Column::Left("Ended", 14),
        Column::Left("Peer", 21),
        Column::Right("Lived", 8),
        Column::Right("Sent", 8),
        Column::Right("Received", 8),
        Column::Right("Resent", 6),
        Column::Left("Limited by, or error", 28),
    ];
    out + &table(columns, answer.records.iter().map(row))
}

/// The causes with their shares, the largest first.
fn shares<'a>(times: impl Iterator<Item = (&'a str, u64)>) -> String {
    let mut times: Vec<(&str, u64)> = times.collect();
    times.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let all = times.iter().map(|(_, ns)| *ns as f64).sum::<f64>().max(1.0);
    let share = |(cause, ns): (&str, u64)| {
        let per_cent = 100.0 * ns as f64 / all;
        (per_cent >= NAMED_PER_CENT).then(|| format!("{cause} {per_cent:.0} %"))
    };
    times.into_iter().filter_map(share).collect::<Vec<_>>().join(", ")
}

fn row(record: &Record) -> [String; 7] {
    let ended = i64::try_from(record.ended_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let ended =
        ended.map(|time| time.to_zoned_datetime(TimeZone::system()).strftime("%m-%d %H:%M:%S").to_string());
    [
        ended.unwrap_or_default(),
        record.remote.to_string(),
        figures::time(record.age_ns),
        short(record.sent_bytes),
        short(record.received_bytes),
        record.retransmitted_segments.to_string(),
        record.error.clone().unwrap_or_else(|| record.limit().text().to_owned()),
    ]
}

/// Bytes in a few places.
fn short(bytes: u64) -> String {
    figures::bytes(bytes).replace(" bytes", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_history::Limit;

    #[test]
    fn a_record_is_a_line() {
        let mut record = Record {
            ended_ms: 1_790_000_000_000,
            local: "10.9.0.1:80".parse().unwrap(),
            remote: "[fd00:1111:2222:3333:4444:5555:6666:7777]:65535".parse().unwrap(),
            called: false,
            age_ns: 12_345_678_900,
            sent_bytes: 123_456_789_000,
            received_bytes: 512,
            retransmitted_segments: 123_456,
            retransmitted_bytes: 0,
            timeouts: 0,
            round_trip_ns: None,
            error: None,
            send_ns: [0; SendCause::COUNT],
            receive_ns: [0; ReceiveCause::COUNT],
        };
        record.send_ns[SendCause::ReceiverWindow as usize] = 12_345_678_900;
        assert_eq!(record.limit(), Limit::Sending(SendCause::ReceiverWindow));
        let sums = Sums {
            connections: 1,
            failed: 0,
            sent_bytes: record.sent_bytes,
            received_bytes: 512,
            retransmitted_segments: 0,
            send_ns: record.send_ns,
            receive_ns: record.receive_ns,
        };
        let none =
            Answer { records: Vec::new(), sums: Sums { connections: 0, ..sums.clone() }, is_partial: false };
        let shown = text(&Answer { records: vec![record], sums, is_partial: false });
        assert!(shown.contains("sending    receiver's window 100 %\n"), "{shown}");
        assert!(shown.lines().all(|line| line.len() <= 100), "{shown}");
        assert_eq!(text(&none), "no connection that ended is like that\n");
    }
}
