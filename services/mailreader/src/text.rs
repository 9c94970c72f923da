//! Text of strangers as lines of a terminal: cleaned, wrapped, cut.

use inhost_common::Cleaner;
use unicode_width::UnicodeWidthChar;

/// Columns between tab stops.
const TAB_COLUMNS: usize = 8;
/// Most characters without a width on one that has one.
const MARKS: usize = 4;

/// A text of several lines: cleaned, without tabs, and with few combining marks on a character.
pub fn clean(text: &str) -> String {
    let (mut cleaned, mut cleaner) = (String::with_capacity(text.len()), Cleaner::default());
    cleaner.take(text.as_bytes(), &mut cleaned);
    cleaner.end(&mut cleaned);
    let (mut plain, mut column, mut marks) = (String::with_capacity(cleaned.len()), 0, 0);
    for character in cleaned.chars() {
        match character {
            '\n' => {
                column = 0;
                plain.push('\n');
            }
            '\t' => {
                let spaces = TAB_COLUMNS - column % TAB_COLUMNS;
                column += spaces;
                plain.extend(core::iter::repeat_n(' ', spaces));
            }
            _ if width(character) == 0 => {
                marks += 1;
                if marks <= MARKS {
                    plain.push(character);
                }
                continue;
            }
            _ => {
                column += width(character);
                plain.push(character);
            }
        }
        marks = 0;
    }
    plain
}

/// A text as a part of one line, of `limit` characters at most.
pub fn clean_line(text: &str, limit: usize) -> String {
    let words = text.split(['\r', '\n', '\t', ' ']).filter(|word| !word.is_empty());
    let (mut line, mut count) = (String::new(), 0);
    for word in words {
        if count > limit {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        count += 1 + word.chars().count();
        line.push_str(word);
    }
    let mut line = clean(&Cleaner::line(line.as_bytes()));
    if let Some((end, _)) = line.char_indices().nth(limit) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// Columns of a character.
pub fn width(character: char) -> usize {
    character.width().unwrap_or(0)
}

/// Columns of a text.
pub fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// A text in exactly `columns` columns: cut, or filled with spaces.
pub fn fit(text: &str, columns: usize) -> String {
    let (mut fitted, mut used) = (String::new(), 0);
    for character in text.chars() {
        if used + width(character) > columns {
            break;
        }
        used += width(character);
        fitted.push(character);
    }
    fitted.extend(core::iter::repeat_n(' ', columns - used));
    fitted
}

/// Breaks a line into pieces of `columns` columns at most, after spaces where it has some.
pub fn wrap(line: &str, columns: usize) -> Vec<&str> {
    let columns = columns.max(2);
    let (mut pieces, mut start, mut used, mut space) = (Vec::new(), 0, 0, None);
    for (at, character) in line.char_indices() {
        if used + width(character) > columns {
            let end = space.filter(|end| *end > start).unwrap_or(at);
            pieces.push(line[start..end].trim_end());
            start = end;
            space = None;
            used = self::columns(&line[start..at]);
        }
        used += width(character);
        if character == ' ' {
            space = Some(at + 1);
        }
    }
    if start < line.len() || pieces.is_empty() {
        pieces.push(line[start..].trim_end());
    }
    pieces
}

/// Joins the lines of `format=flowed` (RFC 3676 §4): a line that ends in a space goes on in the next of the same
/// quote depth. `delete_space` is `delsp=yes`.
pub fn unflow(text: &str, delete_space: bool) -> String {
    let (mut joined, mut open): (String, Option<usize>) = (String::with_capacity(text.len()), None);
    for line in text.lines() {
        let depth = line.bytes().take_while(|octet| *octet == b'>').count();
        let content = &line[depth..];
        let content = content.strip_prefix(' ').unwrap_or(content);
        let is_signature = content == "-- ";
        if open.is_some_and(|before| before != depth || is_signature) {
            joined.push('\n');
            open = None;
        }
        if open.is_none() && depth > 0 {
            joined.extend(core::iter::repeat_n('>', depth));
            joined.push(' ');
        }
        let is_soft = content.ends_with(' ') && !is_signature;
        joined.push_str(if is_soft && delete_space { &content[..content.len() - 1] } else { content });
        open = is_soft.then_some(depth);
        if !is_soft {
            joined.push('\n');
        }
    }
    if open.is_some() {
        joined.push('\n');
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_strangers_moves_the_cursor() {
        assert_eq!(clean("a\tb\x1b[2J\r\nc"), "a       b\u{fffd}[2J\nc");
        assert_eq!(clean(&format!("e{}", "\u{301}".repeat(1000))).chars().count(), 1 + MARKS);
        assert_eq!(clean_line("a\r\n\tb \x07", 80), "a b \u{fffd}");
        assert_eq!(clean_line(&"x".repeat(1 << 20), 3), "xxx…");
    }

    #[test]
    fn lines_break_after_words_and_inside_long_ones() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("東京東京", 5), ["東京", "東京"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!((fit("東京", 3).as_str(), fit("ab", 3).as_str()), ("東 ", "ab "));
    }

    /// spec: RFC3676 §4
    #[test]
    fn flowed_lines_are_joined() {
        let text = "One \ntwo.\n> a \n> b\n>> c\n-- \nAda\n From here\n";
        assert_eq!(unflow(text, false), "One two.\n> a b\n>> c\n-- \nAda\nFrom here\n");
        assert_eq!(unflow("One \ntwo \n", true), "Onetwo\n");
    }
}
