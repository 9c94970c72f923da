//! `inhost top`: a running host's connections as they go, and what each waits for.

mod draw;
mod host;
mod model;

use crate::args::Top;
use crate::failure::Failure;
use crate::style::Style;
use draw::{Look, draw, rows_of};
use host::Asker;
use model::{Model, News};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// The width of `--once` on what is not a terminal.
const COLUMNS: u16 = 132;
/// Connections of `--once`.
const ROWS_ONCE: u16 = 20;

/// What the screen waits for.
enum Message {
    Key(KeyEvent),
    /// Its size changed.
    Resized,
    News(News),
    /// The process is to end, or the terminal is gone.
    End,
}

/// Shows the host until `q`.
pub fn run(arguments: &Top) -> Result<(), Failure> {
    crate::views::step_back();
    let every = match arguments.every {
        seconds if (0.1..=3600.0).contains(&seconds) => Duration::from_secs_f64(seconds),
        seconds => return Err(Failure::usage(format!("--every {seconds}: give 0.1 to 3600 seconds"))),
    };
    let filter = arguments.filter.join(" ");
    let model =
        Model::new(arguments.sort, filter).map_err(|why| Failure::usage(format!("the filter: {why}")))?;
    let asker = Asker::open(arguments.via.as_deref(), every)?;
    if arguments.once {
        return once(model, asker);
    }
    let output = io::stdout();
    if !output.is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage("inhost top needs a terminal; --once prints the screen as text"));
    }
    let look = Look { is_coloured: Style::of(&output).is_coloured() };
    let failed = |e: io::Error| Failure::operation(format!("the terminal: {e}"));
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let done = watch(&mut terminal, model, look, asker).map_err(failed);
    ratatui::restore();
    done
}

fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    mut model: Model,
    look: Look,
    asker: Asker,
) -> io::Result<()> {
    let (tell, told) = mpsc::channel();
    let mut signals = Signals::new([SIGTERM, SIGHUP])?;
    let ending = tell.clone();
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = ending.send(Message::End);
        }
    });
    let keys = tell.clone();
    std::thread::spawn(move || read_keys(&keys));
    model.set_height(rows_of(terminal.size()?.height));
    let want = asker.start(model.wanted(), move |news| tell.send(Message::News(news)).is_ok());
    let mut wanted = model.wanted();
    while !model.has_ended {
        terminal.draw(|frame| draw(frame, &model, look))?;
        let Ok(first) = told.recv() else { break };
        // What came meanwhile is drawn at once.
        for message in std::iter::once(first).chain(told.try_iter()) {
            match message {
                Message::Key(key) => model.key(key),
                Message::Resized => model.set_height(rows_of(terminal.size()?.height)),
                Message::News(news) => model.take(news),
                Message::End => return Ok(()),
            }
        }
        if model.wanted() != wanted {
            wanted = model.wanted();
            want(wanted.clone());
        }
    }
    Ok(())
}

/// Reads keys for ever; the thread ends with the process.
fn read_keys(to: &Sender<Message>) {
    loop {
        let message = match event::read() {
            Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => Message::Key(key),
            Ok(Event::Resize(..)) => Message::Resized,
            Ok(_) => continue,
            Err(_) => Message::End,
        };
        if to.send(message).is_err() {
            return;
        }
    }
}

/// Prints the screen as text: rates need two looks.
fn once(mut model: Model, mut asker: Asker) -> Result<(), Failure> {
    let width = crate::output::columns().unwrap_or(COLUMNS);
    let mut terminal = Terminal::new(TestBackend::new(width.max(80), ROWS_ONCE + 8))
        .map_err(|e| Failure::operation(e.to_string()))?;
    model.set_height(rows_of(ROWS_ONCE + 8));
    let wanted = model.wanted();
    for _ in 0..2 {
        for news in asker.ask(&wanted) {
            match news {
                News::Silent(why) | News::Refused(why) => return Err(Failure::operation(why)),
                news => model.take(news),
            }
        }
        asker.pause();
    }
    terminal
        .draw(|frame| draw(frame, &model, Look { is_coloured: false }))
        .map_err(|e| Failure::operation(e.to_string()))?;
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for row in buffer.content().chunks(usize::from(buffer.area.width)) {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        text += line.trim_end();
        text.push('\n');
    }
    // The last line lists keys.
    let keys = text.trim_end().rfind('\n').unwrap_or(0);
    text.truncate(keys);
    crate::output::print(&format!("{}\n", text.trim_end()))
}
