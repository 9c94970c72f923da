//! The buffer as a printer prints it.

use super::buffer::Screen;
use crate::codec::{Display, WriteControl};

/// Lines of one print, at most.
pub const PRINT_LINES: usize = 512;

/// New line, carriage return, form feed and end of message.
const NL: u8 = 0x15;
const CR: u8 = 0x0d;
const FF: u8 = 0x0c;
const EM: u8 = 0x19;

/// The lines that a printer makes of the buffer (GA23-0059, "Printer Operations"). With a line length in the write control
/// character, lines break there and all that is null is left out where a line has nothing else. Without one, NL, CR and FF
/// break lines and EM ends the print.
pub fn printed(screen: &Screen, control: WriteControl) -> Vec<String> {
    let columns = control.line_columns();
    let mut lines = vec![String::new()];
    let mut is_hidden = screen.attribute_at(0).displayed() == Display::Hidden;
    let mut at = 0;
    for cell in screen.cells() {
        if let Some(attribute) = cell.field {
            is_hidden = attribute.displayed() == Display::Hidden;
        }
        if lines.len() > PRINT_LINES {
            break;
        }
        let is_break = cell.field.is_none() && columns == 0;
        match cell.character {
            EM if is_break => break,
            NL | CR | FF if is_break => {
                lines.push(String::new());
                at = 0;
                continue;
            }
            _ => {}
        }
        let shown = match (cell.field, is_hidden) {
            (Some(_), _) | (_, true) => ' ',
            _ if cell.graphic => crate::codec::graphic_character(cell.character),
            _ => screen.config().code_page.shown(cell.character),
        };
        if let Some(line) = lines.last_mut() {
            line.push(shown);
        }
        at += 1;
        if at == if columns == 0 { 132 } else { columns } {
            lines.push(String::new());
            at = 0;
        }
    }
    lines.truncate(PRINT_LINES);
    lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}
