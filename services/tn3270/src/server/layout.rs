//! Panels on screens.

use std::collections::BTreeMap;

use super::panel::{Body, COMMAND, Element, INPUTS, Input, InputKind, Message, Panel, Style};
use crate::codec::{
    Aid, Attributes, CodePage, Command, Display, FieldAttribute, Highlight, ModifiedField, StreamWriter,
    WriteControl,
};

/// Rows besides the body: title, a blank one, the message, the command line, and the keys.
const FRAME_ROWS: u16 = 5;
/// The row of the body's first line, from 0.
const BODY_ROW: u16 = 2;
const PROMPT: &str = "Command ===>";
/// The first column behind the prompt, from 0.
const COMMAND_COLUMN: u16 = 14;

/// What is known of a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Layout {
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub columns: u16,
    /// Whether this is the alternate size.
    pub is_alternate: bool,
    /// Whether extended attributes can be sent.
    pub is_extended: bool,
    /// The code page.
    pub code_page: CodePage,
}

impl Default for Layout {
    fn default() -> Self {
        Layout {
            rows: 24,
            columns: 80,
            is_alternate: false,
            is_extended: true,
            code_page: CodePage::default(),
        }
    }
}

/// Where a field is.
struct Placed<'a> {
    name: &'a str,
    address: u16,
    length: u16,
}

impl Layout {
    /// Rows of a panel's body.
    pub fn body_rows(&self) -> u16 {
        self.rows.saturating_sub(FRAME_ROWS)
    }
    fn positions(&self) -> u16 {
        self.rows.saturating_mul(self.columns)
    }
    /// Octets for `text`; a question mark for each character that the page does not have, or that is not graphic.
    fn encode(&self, text: &str, most: u16) -> Vec<u8> {
        let question_mark = self.code_page.octet('?').unwrap_or(0x6f);
        let octet = |character| {
            let octet = self.code_page.octet(character).filter(|octet| (0x40..0xff).contains(octet));
            octet.unwrap_or(question_mark)
        };
        text.chars().take(usize::from(most)).map(octet).collect()
    }
    /// Where an input field is; `None` where it has no room.
    fn place<'a>(&self, input: &'a Input) -> Option<Placed<'a>> {
        let (row, column) = (input.row.checked_sub(1)?, input.column.checked_sub(1)?);
        let room = self.columns.checked_sub(column)?;
        let length = input.length.min(room);
        let has_room = row < self.body_rows() && column > 0 && length > 0;
        let address = (row + BODY_ROW).checked_mul(self.columns)?.checked_add(column)?;
        has_room.then_some(Placed { name: &input.name, address, length })
    }
    fn command(&self) -> Placed<'static> {
        let address = self.rows.saturating_sub(2) * self.columns + COMMAND_COLUMN;
        Placed { name: COMMAND, address, length: self.columns.saturating_sub(COMMAND_COLUMN + 1) }
    }
}

struct Renderer<'a> {
    layout: &'a Layout,
    writer: StreamWriter,
}

impl Renderer<'_> {
    fn attributes(&self, style: Style) -> Attributes {
        match self.layout.is_extended {
            true => {
                Attributes { foreground: style.color, highlight: style.highlight, ..Attributes::default() }
            }
            false => Attributes::default(),
        }
    }
    /// Text at a row and a column from 0, with its attribute before it.
    fn text(&mut self, row: u16, column: u16, text: &str, style: Style) {
        let (layout, column) = (self.layout, column.max(1));
        let Some(room) = layout.columns.checked_sub(column).filter(|_| row < layout.rows) else { return };
        let attribute = match style.is_intense {
            true => FieldAttribute::SKIP.display(Display::Intensified),
            false => FieldAttribute::SKIP,
        };
        self.writer.set_address(row * layout.columns + column - 1);
        self.writer.start_field_with(attribute, self.attributes(style));
        self.writer.text(&layout.encode(text, room));
    }
    fn input(&mut self, placed: &Placed<'_>, value: &str, kind: InputKind) {
        let attribute = match kind {
            InputKind::Text => FieldAttribute::UNPROTECTED,
            InputKind::Number => FieldAttribute::UNPROTECTED.numeric(),
            InputKind::Password => FieldAttribute::UNPROTECTED.display(Display::Hidden),
        };
        let style = Style { highlight: Highlight::UNDERSCORE, ..Style::TEXT };
        self.writer.set_address(placed.address - 1);
        self.writer.start_field_with(attribute, self.attributes(style));
        if kind != InputKind::Password {
            self.writer.text(&self.layout.encode(value, placed.length));
        }
        // The field ends with its length, or with its row: the next row then begins with an attribute as well.
        self.writer.set_address((placed.address + placed.length) % self.layout.positions());
        self.writer.start_field(FieldAttribute::SKIP);
    }
}

impl Panel {
    /// The write command that shows this panel. Of lines, `first_line` is the first that is shown, from 0.
    pub fn render(&self, layout: &Layout, first_line: usize) -> Vec<u8> {
        let command = if layout.is_alternate { Command::EraseWriteAlternate } else { Command::EraseWrite };
        let mut control = WriteControl::RESET | WriteControl::RESTORE_KEYBOARD | WriteControl::RESET_MODIFIED;
        if matches!(self.message, Some(Message::Error(_))) {
            control = control | WriteControl::ALARM;
        }
        let writer = StreamWriter::new(command, control, usize::from(layout.positions()));
        let mut renderer = Renderer { layout, writer };
        renderer.text(0, 1, &self.name, Style::LABEL);
        let title_length = u16::try_from(self.title.chars().count()).unwrap_or(u16::MAX);
        let middle = layout.columns.saturating_sub(title_length) / 2;
        // The name has room for eight characters, and the attribute of the title follows it.
        renderer.text(0, middle.max(11), &self.title, Style::TITLE);
        let focus = self.body(&mut renderer, first_line);
        match &self.message {
            Some(Message::Note(text)) => renderer.text(layout.rows.saturating_sub(3), 1, text, Style::NOTE),
            Some(Message::Error(text)) => renderer.text(layout.rows.saturating_sub(3), 1, text, Style::ERROR),
            None => {}
        }
        let placed = layout.command();
        if self.has_command {
            renderer.text(layout.rows.saturating_sub(2), 1, PROMPT, Style::LABEL);
            renderer.input(&placed, "", InputKind::Text);
        }
        renderer.text(layout.rows.saturating_sub(1), 1, &self.key_names(), Style::KEYS);
        let cursor = focus.or(self.has_command.then_some(placed.address)).unwrap_or(0);
        renderer.writer.set_address(cursor);
        renderer.writer.insert_cursor();
        renderer.writer.finish()
    }

    /// Shows the body; gives the address for the cursor.
    fn body(&self, renderer: &mut Renderer<'_>, first_line: usize) -> Option<u16> {
        let layout = renderer.layout;
        match &self.body {
            Body::Lines(lines) => {
                let shown = lines.iter().skip(first_line).take(usize::from(layout.body_rows()));
                for (row, line) in (BODY_ROW..).zip(shown) {
                    renderer.text(row, 1, line, Style::TEXT);
                }
                let last = lines.len().min(first_line + usize::from(layout.body_rows()));
                let place = format!("Lines {} to {last} of {}", (first_line + 1).min(last), lines.len());
                let length = u16::try_from(place.len()).unwrap_or(u16::MAX);
                renderer.text(1, layout.columns.saturating_sub(length + 1), &place, Style::LABEL);
                None
            }
            Body::Form(elements) => {
                let (mut first, mut focus) = (None, None);
                for element in elements.iter().take(4 * INPUTS) {
                    match element {
                        Element::Text { row, column, text, style } if *row <= layout.body_rows() => {
                            renderer.text(
                                (row + BODY_ROW).saturating_sub(1),
                                column.saturating_sub(1),
                                text,
                                *style,
                            );
                        }
                        Element::Text { .. } => {}
                        Element::Input(input) => {
                            let Some(placed) = layout.place(input) else { continue };
                            renderer.input(&placed, &input.value, input.kind);
                            first = first.or(Some(placed.address));
                            if self.focus.as_deref() == Some(&*input.name) {
                                focus = Some(placed.address);
                            }
                        }
                    }
                }
                focus.or(first)
            }
        }
    }

    fn key_names(&self) -> String {
        let name = |aid: &Aid| match aid {
            Aid::Pf(number) => format!("F{number}"),
            Aid::Pa(number) => format!("PA{number}"),
            other => format!("{other:?}"),
        };
        let names: Vec<String> =
            self.keys.iter().map(|(aid, purpose)| format!("{}={purpose}", name(aid))).collect();
        names.join("  ")
    }

    /// The values of the fields: those that the terminal sends, and the panel's for the others. Fields that the panel does
    /// not have are passed over, and what is longer than its field is cut off.
    pub fn read(&self, layout: &Layout, fields: &[ModifiedField]) -> BTreeMap<String, String> {
        let mut values: BTreeMap<String, String> =
            self.inputs().map(|input| (input.name.clone(), input.value.clone())).collect();
        let placed: Vec<Placed<'_>> = self
            .inputs()
            .take(INPUTS)
            .filter_map(|input| layout.place(input))
            .chain(self.has_command.then(|| layout.command()))
            .collect();
        for field in fields {
            let Some(place) = placed.iter().find(|place| field.address == Some(place.address)) else {
                continue;
            };
            let graphic = field.text.iter().filter(|octet| (0x40..0xff).contains(*octet));
            let text: String = graphic
                .take(usize::from(place.length))
                .map(|&octet| layout.code_page.character(octet))
                .collect();
            values.insert(place.name.to_owned(), text.trim().to_owned());
        }
        values
    }
}
