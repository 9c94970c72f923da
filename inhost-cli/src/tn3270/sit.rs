//! Somebody sits at the terminal: keys and the mouse in, the screen out.

use super::Stream;
use super::draw::draw;
use super::keys::{KeyMap, Meaning};
use crate::failure::Failure;
use crate::style::Style;
use async_channel::Sender;
use futures_lite::future::or;
use inhost_base::Instant;
use inhost_socket::Host;
use inhost_tn3270::driver::Connection;
use inhost_tn3270::screen::Key;
use ratatui::crossterm::event::{
    self, DisableMouseCapture, EnableMouseCapture, Event, KeyEvent, KeyEventKind, MouseButton, MouseEventKind,
};
use ratatui::crossterm::execute;
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, IsTerminal};

/// Events of the terminal that wait.
const EVENTS: usize = 256;

/// Fails where there is no terminal.
pub fn needs_terminal() -> Result<(), Failure> {
    if io::stdout().is_terminal() && io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Failure::usage(
        "inhost tn3270 needs a terminal; --once prints a screen as text, --script does what a file says",
    ))
}

enum Happened {
    Key(KeyEvent),
    Click {
        row: u16,
        column: u16,
    },
    Resized,
    /// The process is to end, or the terminal is gone.
    End,
}

/// Runs until the user or the host ends it.
pub async fn sit(
    connection: &mut Connection<'_, Stream, Host>,
    host: &Host,
    keys: &KeyMap,
    name: &str,
) -> Result<(), Failure> {
    let failed = |e: io::Error| Failure::operation(format!("the terminal: {e}"));
    let is_coloured = Style::of(&io::stdout()).is_coloured();
    let mut screen = ratatui::try_init().map_err(failed)?;
    let _ = execute!(io::stdout(), EnableMouseCapture);
    let sat = until_the_end(connection, host, keys, (&mut screen, name, is_coloured)).await;
    let _ = execute!(io::stdout(), DisableMouseCapture);
    ratatui::restore();
    match sat.map_err(failed)? {
        None => Ok(()),
        Some(why) => Err(Failure::operation(format!("tn3270: {why}"))),
    }
}

/// Why it ended, where that was not what the user wanted.
async fn until_the_end(
    connection: &mut Connection<'_, Stream, Host>,
    host: &Host,
    keys: &KeyMap,
    (screen, name, is_coloured): (&mut ratatui::DefaultTerminal, &str, bool),
) -> io::Result<Option<String>> {
    let (tell, told) = async_channel::bounded(EVENTS);
    let mut signals = Signals::new([SIGTERM, SIGHUP])?;
    let ending = tell.clone();
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = ending.send_blocking(Happened::End);
        }
    });
    std::thread::spawn(move || read_events(&tell));
    let mut note = String::new();
    let mut alarms = connection.terminal.screen().alarms();
    loop {
        screen.draw(|frame| draw(frame, &connection.terminal, name, &note, is_coloured))?;
        if connection.terminal.screen().alarms() != alarms {
            alarms = connection.terminal.screen().alarms();
            io::Write::write_all(&mut io::stdout(), b"\x07")?;
        }
        if connection.terminal.is_closed() {
            let said = connection.terminal.nvt_text().trim();
            let said = if said.is_empty() { String::new() } else { format!("; it said: {said}") };
            return Ok(Some(format!("the host closed the connection{said}")));
        }
        if let Some(why) = connection.terminal.violation() {
            return Ok(Some(format!("the host breaks the protocol: {why}")));
        }
        if let Some(why) = connection.terminal.device_rejected() {
            return Ok(Some(format!("the host refuses the device: {why}")));
        }
        let never = Instant::FAR_FUTURE;
        let happened = or(async { Ok(told.recv().await.unwrap_or(Happened::End)) }, async {
            connection.exchange(never).await.map(|_| Happened::Resized)
        });
        let happened = match happened.await {
            Ok(happened) => happened,
            Err(why) => return Ok(Some(why.to_string())),
        };
        match happened {
            Happened::End => return Ok(None),
            Happened::Resized => {}
            Happened::Click { row, column } => {
                let address = connection.terminal.screen().address_of(row + 1, column + 1);
                if let Some(address) = address {
                    let _ = connection.terminal.press(Key::Cursor(address));
                }
            }
            Happened::Key(key) => {
                note.clear();
                match keys.meaning(key) {
                    Some(Meaning::Quit) => return Ok(None),
                    Some(Meaning::Attn) => connection.terminal.attention(),
                    Some(Meaning::SysReq) if !connection.terminal.sys_req() => {
                        note = "the host has no SysReq".to_owned();
                    }
                    Some(Meaning::Key(key)) => {
                        if let Err(why) = connection.terminal.press(key) {
                            note = why.to_string();
                        }
                    }
                    Some(Meaning::SysReq) | None => {}
                }
                // What was typed leaves at once.
                if let Err(why) = connection.flush(host.now() + inhost_base::Duration::from_secs(1)).await {
                    return Ok(Some(why.to_string()));
                }
            }
        }
    }
}

/// Reads events for ever; the thread ends with the process.
fn read_events(to: &Sender<Happened>) {
    loop {
        let happened = match event::read() {
            Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => Happened::Key(key),
            Ok(Event::Mouse(mouse)) if mouse.kind == MouseEventKind::Down(MouseButton::Left) => {
                Happened::Click { row: mouse.row, column: mouse.column }
            }
            Ok(Event::Resize(..)) => Happened::Resized,
            Ok(_) => continue,
            Err(_) => Happened::End,
        };
        if to.send_blocking(happened).is_err() {
            return;
        }
    }
}
