//! The screen.

use inhost_common::Cleaner;
use inhost_explain::figures;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Sparkline, Wrap};
use serde_json::Value;

use super::model::{Model, Open, Rates, Sample};
use crate::args::Sort;
use crate::causes::{legend, mark, strip};
use crate::views::Row;

/// Cells of the strip of causes in the list.
const STRIP: usize = 16;
const KEYS: &str = " Enter open   / filter   < > sort   r reverse   space pause   ? help   q quit";
const KEYS_OF_CONNECTION: &str = " Esc back   space pause   ? what letters mean   Ctrl-C quit";

/// A column of the list.
struct Column {
    title: &'static str,
    width: usize,
    is_right: bool,
    sort: Sort,
}

const fn column(title: &'static str, width: usize, is_right: bool, sort: Sort) -> Column {
    Column { title, width, is_right, sort }
}

const COLUMNS: [Column; 9] = [
    column("Local", 14, false, Sort::Local),
    column("Remote", 14, false, Sort::Remote),
    column("State", 11, false, Sort::State),
    column("Age", 6, true, Sort::Age),
    column("Send/s", 8, true, Sort::SendRate),
    column("Recv/s", 8, true, Sort::ReceiveRate),
    column("RTT", 7, true, Sort::Rtt),
    column("Resent", 6, true, Sort::Retransmitted),
    column("Waits for", STRIP, false, Sort::Cause),
];
/// What a narrow screen leaves out, first what is missed least.
const LEFT_OUT: [Sort; 6] =
    [Sort::State, Sort::Age, Sort::Local, Sort::Rtt, Sort::ReceiveRate, Sort::Retransmitted];
/// Cells of a cause in words.
const WORDS: usize = 29;

/// The width of each column, 0 for one that is left out, and what is left for words. The two ends are as wide as the longest.
fn widths(area: usize, rows: &[Row]) -> ([usize; COLUMNS.len()], usize) {
    let longest = |end: fn(&Row) -> &String, least| {
        rows.iter().map(|row| end(row).chars().count()).max().unwrap_or(0).max(least)
    };
    let mut widths = COLUMNS.map(|of| of.width);
    widths[0] = longest(|row| &row.local, widths[0]);
    widths[1] = longest(|row| &row.remote, widths[1]);
    let taken = |widths: &[usize]| {
        widths.iter().filter(|&&width| width > 0).map(|width| width + 1).sum::<usize>() + 1
    };
    for sort in LEFT_OUT {
        if taken(&widths) + WORDS > area {
            let at = COLUMNS.iter().position(|of| of.sort == sort);
            at.into_iter().for_each(|at| widths[at] = 0);
        }
    }
    // At the narrowest the peer is cut.
    widths[1] -= (taken(&widths) + WORDS).saturating_sub(area).min(widths[1] - COLUMNS[1].width);
    (widths, area.saturating_sub(taken(&widths)))
}

/// How the screen is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub is_coloured: bool,
}

impl Look {
    fn of(self, colour: Color) -> Style {
        if self.is_coloured { Style::new().fg(colour) } else { Style::new() }
    }
    /// A cell of a cause.
    fn cell(self, colour: Color) -> Style {
        if self.is_coloured { Style::new().fg(Color::White).bg(colour) } else { Style::new() }
    }
    fn letters(self, cells: Vec<(char, Color)>) -> Vec<Span<'static>> {
        cells
            .into_iter()
            .map(|(letter, colour)| Span::styled(letter.to_string(), self.cell(colour)))
            .collect()
    }
}

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Rows of the list on a screen of this height.
pub fn rows_of(height: u16) -> usize {
    usize::from(height.saturating_sub(HEAD + 2))
}

/// Lines above the list.
const HEAD: u16 = 6;
/// Cells of a graph's title, such as ` out 123.4 Mbit/s`, and those between two graphs.
const GRAPH: u16 = 18;
const GAP: u16 = 2;

/// Draws the whole screen.
pub fn draw(frame: &mut Frame<'_>, model: &Model, look: Look) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(HEAD), Constraint::Min(0), Constraint::Length(1)])
            .areas(frame.area());
    head_of(frame, head, model, look);
    match &model.open {
        Some(open) => connection(frame, body, open, look),
        None => list(frame, body, model, look),
    }
    frame.render_widget(foot_of(model), foot);
    if model.has_help {
        help(frame, look);
    }
}

fn foot_of(model: &Model) -> Line<'static> {
    let bad = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
    if let Some(why) = &model.silent {
        return Line::styled(format!(" the host does not answer: {}", clean(why)), bad);
    }
    if let Some(typed) = &model.typed {
        let mut spans =
            vec![Span::styled(" filter: ", BOLD), Span::raw(clean(typed)), Span::styled(" ", REVERSED)];
        spans.extend(model.wrong.iter().map(|why| Span::styled(format!("  {}", clean(why)), bad)));
        return Line::from(spans);
    }
    if let Some(why) = &model.wrong {
        return Line::styled(format!(" {}", clean(why)), bad);
    }
    let keys = if model.open.is_some() { KEYS_OF_CONNECTION } else { KEYS };
    Line::styled(keys, DIM)
}

fn clean(text: &str) -> String {
    Cleaner::line(text.as_bytes())
}

/// The host: name, age, memory, and its rates over time.
fn head_of(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let of = &model.overview;
    let mut words = vec![
        Span::styled(format!(" {}", clean(&of.name)), BOLD),
        Span::raw(format!(
            "  up {}   {} connections, {} listeners, {} sessions   memory {} of {}",
            age(of.uptime_ns),
            of.sockets.connections,
            of.sockets.listeners,
            of.sessions,
            figures::bytes(of.memory.used_bytes),
            figures::bytes(of.memory.limit_bytes),
        )),
    ];
    if model.is_paused {
        words.push(Span::styled("  paused", REVERSED));
    }
    let [top, graphs] = Layout::vertical([Constraint::Length(1), Constraint::Length(4)]).areas(area);
    frame.render_widget(Line::from(words), top);
    // A narrow screen has the first ones alone, so that none is without its unit.
    let room = usize::from(graphs.width.saturating_sub(GAP) / (GRAPH + GAP)).clamp(1, 4);
    let places = Layout::horizontal(vec![Constraint::Fill(1); room]).spacing(GAP).split(graphs);
    let rate = |bytes: f64| figures::rate(bytes as u64);
    let count = |value: f64| format!("{value:.0}/s");
    type Graph<'a> = (&'a str, fn(&Rates) -> f64, &'a dyn Fn(f64) -> String, Color);
    let all: [Graph<'_>; 4] = [
        ("in", |of| of.received, &rate, Color::Indexed(72)),
        ("out", |of| of.sent, &rate, Color::Indexed(32)),
        ("sent again", |of| of.retransmitted, &count, Color::Indexed(160)),
        ("dropped", |of| of.dropped, &count, Color::Indexed(160)),
    ];
    for ((name, value, shown, colour), &area) in all.into_iter().zip(places.iter()) {
        let values: Vec<f64> = model.rates.iter().map(value).collect();
        graph(frame, area, name, &values, shown, look.of(colour));
    }
}

/// A title with the latest value and the largest, and the values over time, the latest at the right.
fn graph(
    frame: &mut Frame<'_>,
    area: Rect,
    name: &str,
    values: &[f64],
    shown: &dyn Fn(f64) -> String,
    style: Style,
) {
    let [title, picture] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let in_sight = &values[values.len().saturating_sub(usize::from(picture.width))..];
    let largest = in_sight.iter().copied().fold(0.0, f64::max);
    let latest = match values.last() {
        Some(&latest) => format!(" {name} {}", shown(latest)),
        None => format!(" {name}: measuring"),
    };
    let most = format!(", at most {}", shown(largest));
    let has_room = latest.len() + most.len() <= usize::from(title.width);
    frame.render_widget(
        Line::raw(if has_room && !values.is_empty() { latest + &most } else { latest }),
        title,
    );
    let scale = if largest > 0.0 { 1000.0 / largest } else { 0.0 };
    let missing = usize::from(picture.width).saturating_sub(in_sight.len());
    let data: Vec<u64> =
        std::iter::repeat_n(0, missing).chain(in_sight.iter().map(|value| (value * scale) as u64)).collect();
    frame.render_widget(Sparkline::default().data(data).max(1000).style(style), picture);
}

fn list(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let [heads, rows] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let (widths, words) = widths(usize::from(area.width), &model.list.rows);
    let mut titles = vec![Span::raw(" ")];
    for (of, width) in COLUMNS.iter().zip(widths).filter(|&(_, width)| width > 0) {
        let is_sorted = of.sort == model.sort;
        let mark = match is_sorted {
            true if model.is_descending => "▼",
            true => "▲",
            false => "",
        };
        let style = if is_sorted { BOLD.add_modifier(Modifier::REVERSED) } else { REVERSED };
        titles.push(Span::styled(fitted(&format!("{}{mark}", of.title), width, of.is_right) + " ", style));
    }
    let filter = match model.filter.as_str() {
        "" => format!("{} in all", model.list.total),
        filter => format!("{} of {}: {}", model.list.matched, model.list.total, clean(filter)),
    };
    titles.push(Span::styled(fitted(&filter, words, false), REVERSED));
    frame.render_widget(Line::from(titles), heads);
    if model.list.rows.is_empty() {
        let words = if model.filter.is_empty() {
            "no connections"
        } else {
            "no connection is like that; Esc shows all"
        };
        frame.render_widget(Line::styled(format!("  {words}"), DIM), rows);
        return;
    }
    let lines = model
        .list
        .rows
        .iter()
        .enumerate()
        .take(usize::from(rows.height))
        .map(|(at, row)| row_of(row, &widths, look, model.offset + at == model.chosen));
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), rows);
}

fn row_of(row: &Row, widths: &[usize; COLUMNS.len()], look: Look, is_chosen: bool) -> Line<'static> {
    let cells = [
        clean(&row.local),
        clean(&row.remote),
        row.state.clone(),
        age(row.age_ns),
        rate(row.send_rate),
        rate(row.receive_rate),
        row.rtt_ns.map_or_else(|| "-".to_owned(), figures::time),
        row.retransmitted_segments.to_string(),
    ];
    let mut spans = vec![Span::raw(if is_chosen { "▶" } else { " " })];
    for ((cell, of), &width) in cells.iter().zip(&COLUMNS).zip(widths).filter(|(_, width)| **width > 0) {
        let is_bad = of.sort == Sort::Retransmitted && row.retransmitted_segments > 0;
        let style = if is_bad { look.of(Color::Indexed(160)) } else { Style::new() };
        // The strip keeps its colours.
        let style = if is_chosen { style.patch(REVERSED) } else { style };
        spans.push(Span::styled(fitted(cell, width, of.is_right) + " ", style));
    }
    spans.extend(look.letters(strip(&row.causes, STRIP)));
    spans.push(Span::raw(format!(" {}", row.waits_for())));
    Line::from(spans)
}

/// A text in so many cells.
fn fitted(text: &str, width: usize, is_right: bool) -> String {
    let count = text.chars().count();
    if count > width {
        return text.chars().take(width.saturating_sub(1)).chain(['…']).collect();
    }
    if is_right { format!("{text:>width$}") } else { format!("{text:<width$}") }
}

/// Bytes a second in bits, short.
fn rate(bytes: f64) -> String {
    match bytes * 8.0 {
        bits if bits < 0.5 => "-".to_owned(),
        bits if bits < 1e3 => format!("{bits:.0} b"),
        bits if bits < 1e6 => format!("{:.1} kb", bits / 1e3),
        bits if bits < 1e9 => format!("{:.1} Mb", bits / 1e6),
        bits => format!("{:.2} Gb", bits / 1e9),
    }
}

/// An age, short.
fn age(ns: u64) -> String {
    match ns / 1_000_000_000 {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        seconds @ ..86_400 => format!("{}h{:02}", seconds / 3600, seconds / 60 % 60),
        seconds => format!("{} d", seconds / 86_400),
    }
}

fn connection(frame: &mut Frame<'_>, area: Rect, open: &Open, look: Look) {
    let words = |value: &Value| clean(value.as_str().unwrap_or("…"));
    let of = &open.figures;
    let title = format!(
        " {} <-> {}  {}{} ",
        words(&of["local"]),
        words(&of["remote"]),
        words(&of["state"]),
        if open.is_over { ", over" } else { "" }
    );
    let block = Block::new().borders(Borders::TOP).title(Span::styled(title, BOLD));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let causes = ledger(&of["causes"]["send"], look);
    let receiving = ledger(&of["causes"]["receive"], look);
    let ledgers = (causes.len().max(receiving.len()) as u16 + 1).min(7);
    let [facts, verdict, ledger_area, strip_area, graphs] = Layout::vertical([
        Constraint::Length(4),
        Constraint::Length(4),
        Constraint::Length(ledgers),
        Constraint::Length(5),
        Constraint::Max(8),
    ])
    .areas(inner);
    frame.render_widget(Paragraph::new(facts_of(of)), facts);
    frame.render_widget(Paragraph::new(verdict_of(&open.verdict)).wrap(Wrap { trim: false }), verdict);
    let [send, receive] = Layout::horizontal([Constraint::Fill(1); 2]).spacing(2).areas(ledger_area);
    let under = |title: &'static str, mut lines: Vec<Line<'static>>| {
        lines.insert(0, Line::styled(title, BOLD));
        Paragraph::new(lines)
    };
    frame.render_widget(under(" What sending waited for, since it began", causes), send);
    frame.render_widget(under(" What receiving waited for", receiving), receive);
    over_time(frame, strip_area, open, look);
    let [rates, flight, trips] = Layout::horizontal([Constraint::Fill(1); 3]).spacing(2).areas(graphs);
    let values = |of: &dyn Fn(&Sample) -> f64| -> Vec<f64> { open.samples.iter().map(of).collect() };
    let (acknowledged, received) =
        (per_second(open, |of| of.acknowledged), per_second(open, |of| of.received));
    let is_sender = acknowledged.iter().sum::<f64>() >= received.iter().sum::<f64>();
    let (name, data) = if is_sender { ("acknowledged", acknowledged) } else { ("received", received) };
    graph(frame, rates, name, &data, &|bytes| figures::rate(bytes as u64), look.of(Color::Indexed(32)));
    let bytes = |value: f64| figures::bytes(value as u64);
    graph(
        frame,
        flight,
        "in flight",
        &values(&|of| f64::from(of.in_flight)),
        &bytes,
        look.of(Color::Indexed(97)),
    );
    let trip = values(&|of| of.rtt_ns.unwrap_or(0) as f64);
    graph(frame, trips, "round trip", &trip, &|ns| figures::time(ns as u64), look.of(Color::Indexed(72)));
}

/// Bytes a second between samples.
fn per_second(open: &Open, of: fn(&Sample) -> u64) -> Vec<f64> {
    let pairs = open.samples.iter().zip(open.samples.iter().skip(1));
    pairs
        .map(|(one, next)| {
            let seconds = next.at_ns.saturating_sub(one.at_ns) as f64 / 1e9;
            of(next).saturating_sub(of(one)) as f64 / seconds.max(1e-3)
        })
        .collect()
}

fn facts_of(of: &Value) -> Vec<Line<'static>> {
    let tcp = &of["tcp"];
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let bytes = |value: &Value| figures::bytes(number(value));
    let time = |value: &Value| value.as_u64().map_or_else(|| "-".to_owned(), figures::time);
    vec![
        Line::raw(format!(
            " {} old; sent {}, received {}; {} segments sent again, {} time-outs",
            age(number(&of["age_ns"])),
            bytes(&tcp["send"]["bytes"]),
            bytes(&tcp["receive"]["bytes"]),
            number(&tcp["retransmitted_segments"]),
            number(&tcp["timeouts"]),
        )),
        Line::raw(format!(
            " round trip {} (least {}), time-out {}",
            time(&tcp["smoothed_round_trip_ns"]),
            time(&tcp["min_round_trip_ns"]),
            time(&tcp["retransmission_timeout_ns"]),
        )),
        Line::raw(format!(
            " in flight {}, peer's window {}, congestion window {}",
            bytes(&tcp["send"]["in_flight_bytes"]),
            bytes(&tcp["send"]["window_bytes"]),
            bytes(&tcp["congestion_window_bytes"]),
        )),
    ]
}

fn verdict_of(verdict: &Value) -> Vec<Line<'static>> {
    let line = |name: &'static str, text: &Value| {
        let text = text.as_str()?;
        Some(Line::from(vec![Span::styled(name, BOLD), Span::raw(clean(text))]))
    };
    let lines: Vec<Line<'static>> =
        [line(" Why: ", &verdict["diagnosis"]), line(" Do:  ", &verdict["remedy"])]
            .into_iter()
            .flatten()
            .collect();
    if lines.is_empty() { vec![Line::styled(" Why: looking", DIM)] } else { lines }
}

/// A line for each cause with its part, the largest first.
fn ledger(causes: &Value, look: Look) -> Vec<Line<'static>> {
    let causes = causes.as_array().map_or(&[][..], Vec::as_slice);
    let shares = causes.iter().filter_map(|of| Some((of[0].as_str()?, of[1].as_f64()?)));
    let line = |(name, share): (&str, f64)| {
        let (letter, colour) = mark(name);
        let bar = "█".repeat((share / 5.0).round() as usize);
        Line::from(vec![
            Span::raw(" "),
            Span::styled(letter.to_string(), look.cell(colour)),
            Span::raw(format!(" {share:>5.1} % ")),
            Span::styled(format!("{bar:<20}"), look.of(colour)),
            Span::raw(format!(" {name}")),
        ])
    };
    shares.filter(|(_, share)| *share >= 0.05).map(line).collect()
}

/// What sending waited for, moment by moment, all that was seen in one line.
fn over_time(frame: &mut Frame<'_>, area: Rect, open: &Open, look: Look) {
    let width = usize::from(area.width.saturating_sub(2));
    let samples: Vec<&Sample> = open.samples.iter().collect();
    let each = samples.len().div_ceil(width.max(1)).max(1);
    let cells = samples.chunks(each).map(|of| mark(most_frequent(of)));
    let seconds = match (samples.first(), samples.last()) {
        (Some(first), Some(last)) => last.at_ns.saturating_sub(first.at_ns) as f64 / 1e9,
        _ => 0.0,
    };
    let mut line = vec![Span::raw(" ")];
    line.extend(look.letters(cells.collect()));
    let lines = vec![
        Line::raw(""),
        Line::styled(" What sending waited for, while you watch", BOLD),
        Line::from(line),
        Line::styled(
            format!(" {seconds:.0} s, the latest at the right; each letter is {:.1} s", each as f64 / 10.0),
            DIM,
        ),
    ];
    frame.render_widget(Paragraph::new(lines), area);
}

fn most_frequent<'a>(samples: &[&'a Sample]) -> &'a str {
    let count = |name: &str| samples.iter().filter(|of| of.cause == name).count();
    samples.iter().map(|of| of.cause.as_str()).max_by_key(|name| count(name)).unwrap_or_default()
}

fn help(frame: &mut Frame<'_>, look: Look) {
    let mut lines = vec![
        Line::styled("What sending waits for", BOLD),
        Line::raw("Capital letters are what slows a transfer; small ones are usual."),
        Line::raw(""),
    ];
    let all: Vec<_> = legend().collect();
    for pair in all.chunks(2) {
        let mut spans = Vec::new();
        for (letter, colour, name) in pair {
            spans.push(Span::styled(letter.to_string(), look.cell(*colour)));
            spans.push(Span::raw(format!(" {name:<26}")));
        }
        lines.push(Line::from(spans));
    }
    lines.push(Line::raw(""));
    for (key, what) in [
        ("Up Down PgUp PgDn Home End", "choose a connection; Enter opens it, Esc goes back"),
        ("< >, r", "sort by another column, the other way round"),
        ("/", "filter: state established, dport = :443, dst 10.0.0.0/8,"),
        ("", "cause = receivers-window; joined by and, or, not, ( )"),
        ("Esc", "all connections again"),
        ("space, q", "pause, quit"),
    ] {
        lines.push(Line::from(vec![Span::styled(format!("{key:<27}"), BOLD), Span::raw(what)]));
    }
    let area = frame.area();
    let (width, height) = (area.width.min(88), area.height.min(lines.len() as u16 + 2));
    let at = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, at);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" any key closes this ")), at);
}

#[cfg(test)]
mod tests {
    use super::super::model::{News, Samples};
    use super::*;
    use crate::views::{Memory, Overview, Rows, Sockets};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use serde_json::json;

    const HOSTILE: &str = "evil\u{1b}[31m\u{202e}name";

    fn screen(model: &Model, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, model, Look { is_coloured: true })).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let rows = buffer.content().chunks(usize::from(width));
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect()
    }

    fn model() -> Model {
        let mut model = Model::new(Sort::SendRate, String::new()).unwrap();
        let overview = Overview {
            name: HOSTILE.to_owned(),
            uptime_ns: 90_000_000_000,
            memory: Memory { used_bytes: 2_000_000, limit_bytes: 268_000_000 },
            sockets: Sockets { connections: 2, listeners: 1 },
            ..Overview::default()
        };
        model.take(News::Overview(overview));
        let row = |number: u32, causes: &[(&str, f64)]| Row {
            id: number.to_string(),
            local: "[fd00:1111:2222:3333:4444:5555:6666:7777]:65535".to_owned(),
            remote: format!("192.0.2.{number}:443"),
            state: "ESTABLISHED".to_owned(),
            age_ns: 3_700_000_000_000,
            send_rate: 1.5e8,
            receive_rate: 0.0,
            rtt_ns: Some(1_234_567),
            retransmitted_segments: number,
            send_queue: 0,
            receive_queue: 0,
            causes: causes.iter().map(|&(name, share)| (name.to_owned(), share)).collect(),
        };
        let rows = vec![
            row(1, &[("receiver's window", 75.0), ("loss recovery", 25.0)]),
            row(2, &[("opening", 0.2), ("application idle", 99.8)]),
        ];
        model.take(News::Rows(Rows { total: 2, matched: 2, rows }));
        model
    }

    #[test]
    fn a_connection_is_a_line_with_its_causes_at_each_width() {
        for (width, height) in [(80, 24), (100, 30), (140, 40), (220, 60), (40, 10), (10, 3), (1, 1)] {
            let text = screen(&model(), width, height);
            assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
            if width >= 80 {
                assert!(text.contains("WWWWWWWWWWWWRRRR 75 % receiver's window"), "{text}");
                assert!(text.contains("iiiiiiiiiiiiiiii idle"), "{text}");
                assert!(text.contains("192.0.2.1:443") && text.contains("Send/s▼"), "{text}");
            }
            assert_eq!(
                text.contains("[fd00:1111:2222:3333:4444:5555:6666:7777]:65535"),
                width >= 220,
                "{text}"
            );
        }
    }

    #[test]
    fn a_connection_that_is_open_says_why() {
        let mut model = model();
        model.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
        let sample = |at: u64| {
            json!({"at_ns": at * 100_000_000, "acknowledged": at * 1000, "received": 0, "in_flight": 1, "rtt_ns": null,
                "retransmitted": 0, "cause": if at < 100 { "receiver's window" } else { "loss recovery" }})
        };
        let samples = (1..200).map(|at| serde_json::from_value(sample(at)).unwrap()).collect();
        let figures = json!({"local": "10.0.0.1:80", "remote": "10.0.0.2:4000", "state": "ESTABLISHED",
            "causes": {"send": [["receiver's window", 75.0, 3], ["loss recovery", 25.0, 1]], "receive": []}});
        let verdict = json!({"diagnosis": HOSTILE, "remedy": "raise it"});
        model.take(News::Connection("1".to_owned(), figures, Samples { samples }, Some(verdict)));
        let text = screen(&model, 100, 34);
        assert!(text.contains(" W  75.0 % ███████████████"), "{text}");
        assert!(
            text.contains("WWWRRR") && text.contains(" Do:  raise it") && !text.contains('\u{1b}'),
            "{text}"
        );
        assert!(text.contains("20 s, the latest at the right; each letter is 0.3 s"), "{text}");
        model.take(News::Ended("1".to_owned()));
        assert!(screen(&model, 100, 34).contains("ESTABLISHED, over"));
        model.key(KeyEvent::new(KeyCode::Char('?'), KeyModifiers::NONE));
        assert!(screen(&model, 100, 34).contains("Z closed window"));
        for (width, height) in [(20, 5), (3, 3)] {
            screen(&model, width, height);
        }
    }
}
