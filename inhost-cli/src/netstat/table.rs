//! Columns for people: aligned, and never wider than a terminal of [`WIDTH`].

/// Width of a line.
pub const WIDTH: usize = 100;

/// A column's title, its width, and on which side its cells are flush.
#[derive(Clone, Copy)]
pub enum Column {
    /// Words begin where the column begins.
    Left(&'static str, usize),
    /// Figures end where the column ends.
    Right(&'static str, usize),
}

/// The titles and the rows. A row with a cell that is longer than its column goes on in the next line, under the
/// titles that are still to come.
pub fn table<const N: usize>(columns: [Column; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let titles = columns.map(|column| match column {
        Column::Left(title, _) | Column::Right(title, _) => title.to_owned(),
    });
    let mut out = String::new();
    std::iter::once(titles).chain(rows).for_each(|row| line(&columns, &row, &mut out));
    out
}

fn line(columns: &[Column], cells: &[String], out: &mut String) {
    let (mut written, mut column_at) = (String::new(), 0);
    for (column, cell) in columns.iter().zip(cells) {
        if column_at > 0 && written.chars().count() >= column_at {
            end_line(&mut written, out);
        }
        let gap = column_at - written.chars().count();
        let (text, width) = match *column {
            Column::Left(_, width) => (cell.clone(), width),
            Column::Right(_, width) => (format!("{cell:>width$}"), width),
        };
        written.extend(std::iter::repeat_n(' ', gap));
        written += &text;
        column_at += width + 1;
    }
    end_line(&mut written, out);
}

fn end_line(written: &mut String, out: &mut String) {
    out.push_str(written.trim_end());
    out.push('\n');
    written.clear();
}

/// Words between commas, as many a line as fit behind an indentation.
pub fn wrapped(indentation: usize, words: impl IntoIterator<Item = String>) -> String {
    let mut out = String::new();
    let mut written = String::new();
    for word in words {
        if !written.is_empty() && indentation + written.chars().count() + 2 + word.chars().count() >= WIDTH {
            out += &format!("{:indentation$}{written},\n", "");
            written.clear();
        }
        if !written.is_empty() {
            written += ", ";
        }
        written += &word;
    }
    if !written.is_empty() {
        out += &format!("{:indentation$}{written}\n", "");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_cell_sends_the_rest_to_the_next_line() {
        let columns = [Column::Left("Name", 6), Column::Right("Count", 5), Column::Left("Why", 3)];
        let row = |name: &str, count: &str, why: &str| [name, count, why].map(str::to_owned);
        let text = table(columns, [row("a", "1", "x"), row("abcdefgh", "23", "")]);
        assert_eq!(text, "Name   Count Why\na          1 x\nabcdefgh\n          23\n");
    }

    #[test]
    fn words_stay_within_the_width() {
        let text = wrapped(4, (0..40).map(|n| format!("word{n}")));
        assert!(text.lines().all(|line| line.starts_with("    w") && line.len() <= WIDTH), "{text}");
        assert_eq!(text.matches("word").count(), 40);
        assert_eq!(wrapped(4, []), "");
    }
}
