//! The screen of a 3270 on a terminal of today.

use inhost_tn3270::client::Terminal;
use inhost_tn3270::codec::{Color as Color3270, Display, FieldAttribute, Highlight};
use inhost_tn3270::screen::{Keyboard, Screen};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// Draws the screen and, below it, the operator's line. `note` is what is said besides.
pub fn draw(frame: &mut Frame<'_>, terminal: &Terminal, host: &str, note: &str, is_coloured: bool) {
    let screen = terminal.screen();
    let area = frame.area();
    let rows = screen.rows().min(area.height.saturating_sub(1));
    let columns = usize::from(screen.columns().min(area.width));
    let mut attribute = screen.attribute_at(0);
    let mut extended = field_cell(screen, 0);
    for row in 0..rows {
        let text = screen.line(row);
        let mut spans: Vec<Span<'_>> = Vec::new();
        for (column, character) in text.chars().enumerate() {
            let cell = screen.cell(row * screen.columns() + column as u16);
            if let Some(begins) = cell.field {
                (attribute, extended) = (begins, cell.attributes);
            }
            if column >= columns {
                continue;
            }
            let style = match (is_coloured, cell.field.is_some()) {
                (_, true) => Style::new(),
                (true, false) => coloured(attribute, &extended, &cell.attributes),
                (false, false) => plain(attribute, &extended, &cell.attributes),
            };
            match spans.last_mut() {
                Some(last) if last.style == style => last.content.to_mut().push(character),
                _ => spans.push(Span::styled(character.to_string(), style)),
            }
        }
        frame.render_widget(Line::from(spans), Rect::new(0, row, area.width, 1));
    }
    if area.height > 0 {
        let line = status(terminal, host, note, area.width);
        frame.render_widget(line, Rect::new(0, area.height - 1, area.width, 1));
    }
    let (row, column) =
        (screen.cursor() / screen.columns().max(1), screen.cursor() % screen.columns().max(1));
    if row < rows && usize::from(column) < columns {
        frame.set_cursor_position(Position::new(column, row));
    }
}

/// The extended attributes of the field to which an address belongs.
fn field_cell(screen: &Screen, address: u16) -> inhost_tn3270::codec::Attributes {
    screen.field_start(address).map_or_else(Default::default, |start| screen.cell(start).attributes)
}

fn colour(of: Color3270) -> Option<Color> {
    Some(match of {
        Color3270::BLUE => Color::LightBlue,
        Color3270::RED => Color::LightRed,
        Color3270::PINK => Color::LightMagenta,
        Color3270::GREEN => Color::LightGreen,
        Color3270::TURQUOISE => Color::LightCyan,
        Color3270::YELLOW => Color::LightYellow,
        Color3270::NEUTRAL => Color::White,
        _ => return None,
    })
}

/// A character's own attributes precede the field's; without either the colour follows protection and intensity, as on a
/// 3279 without extended attributes.
fn coloured(
    field: FieldAttribute,
    extended: &inhost_tn3270::codec::Attributes,
    own: &inhost_tn3270::codec::Attributes,
) -> Style {
    let base = match (field.is_protected(), field.displayed() == Display::Intensified) {
        (true, true) => Color::White,
        (true, false) => Color::LightBlue,
        (false, true) => Color::LightRed,
        (false, false) => Color::LightGreen,
    };
    let foreground = colour(own.foreground).or_else(|| colour(extended.foreground)).unwrap_or(base);
    let mut style = plain(field, extended, own).fg(foreground);
    if let Some(background) = colour(own.background).or_else(|| colour(extended.background)) {
        style = style.bg(background);
    }
    style
}

fn plain(
    field: FieldAttribute,
    extended: &inhost_tn3270::codec::Attributes,
    own: &inhost_tn3270::codec::Attributes,
) -> Style {
    let highlight = if own.highlight == Highlight::DEFAULT { extended.highlight } else { own.highlight };
    let mut style = Style::new();
    if field.displayed() == Display::Intensified {
        style = style.add_modifier(Modifier::BOLD);
    }
    style.add_modifier(match highlight {
        Highlight::BLINK => Modifier::SLOW_BLINK,
        Highlight::REVERSE => Modifier::REVERSED,
        Highlight::UNDERSCORE => Modifier::UNDERLINED,
        Highlight::INTENSIFY => Modifier::BOLD,
        // An input field shows where it is.
        _ if !field.is_protected() && field.displayed() != Display::Hidden => Modifier::UNDERLINED,
        _ => Modifier::empty(),
    })
}

/// The operator's line: connection, keyboard, mode, and where the cursor is.
fn status(terminal: &Terminal, host: &str, note: &str, width: u16) -> Line<'static> {
    let screen = terminal.screen();
    let keyboard = match screen.keyboard() {
        _ if !terminal.is_ready() => "not connected".to_owned(),
        _ if terminal.is_transferring() => "transfer".to_owned(),
        Keyboard::Unlocked => String::new(),
        Keyboard::System => "X system".to_owned(),
        Keyboard::Error(error) => format!("X {error} (Ctrl-R)"),
    };
    let mode = if screen.is_inserting() { "insert" } else { "" };
    let device = terminal.device().unwrap_or_default();
    let (row, column) = (screen.cursor() / screen.columns() + 1, screen.cursor() % screen.columns() + 1);
    let left = format!("{host} {device}  {keyboard}  {mode}  {note}");
    let right = format!("{row:03}/{column:03}  Ctrl-Q ends");
    let room = usize::from(width).saturating_sub(right.len() + 1);
    let left: String = left.chars().take(room).collect();
    Line::styled(format!("{left:<room$} {right}"), Style::new().add_modifier(Modifier::REVERSED))
}
