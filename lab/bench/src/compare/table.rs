//! The rows as a table for a person.

use super::result::Row;
use std::fmt::Write;

/// Width of the column of names.
const NAME: usize = 18;

/// Columns of a person's terminal.
const WIDTH: usize = 100;

/// A block for each measurement, under its conditions; with `settings`, each stack's own below it.
pub fn render(rows: &[Row], settings: bool) -> String {
    let mut text = format!(
        "{:<NAME$} {:>9} {:>9} {:>9}  {:<8} {:>6} {:>6}  {:<21} met\n",
        "", "median", "least", "most", "unit", "noise", "ratio", "goal"
    );
    let mut conditions = "";
    let mut measurement = "";
    for row in rows {
        if row.conditions != conditions {
            text.push('\n');
            wrap(&mut text, "", &row.conditions);
        }
        if row.measurement != measurement {
            let _ = writeln!(text, "{}", row.measurement);
        }
        (conditions, measurement) = (&row.conditions, &row.measurement);
        line(&mut text, row);
        if settings && !row.settings.is_empty() && row.median.is_some() {
            wrap(&mut text, "      ", &row.settings);
        }
    }
    text
}

/// Adds words in lines of at most [`WIDTH`] characters.
fn wrap(text: &mut String, indent: &str, words: &str) {
    let mut width = 0;
    for word in words.split_whitespace() {
        let count = word.chars().count();
        if width > 0 && width + 1 + count > WIDTH {
            text.push('\n');
            width = 0;
        }
        let before = if width == 0 { indent } else { " " };
        text.push_str(before);
        text.push_str(word);
        width += before.len() + count;
    }
    text.push('\n');
}

fn line(text: &mut String, row: &Row) {
    let stack = format!("  {}", row.stack);
    let Some(median) = row.median else {
        let goal = row.goal.as_deref().unwrap_or_default();
        let _ = writeln!(text, "{stack:<NAME$} {:>9} {:<45}  {goal}", "-", row.settings);
        return;
    };
    let _ = write!(
        text,
        "{stack:<NAME$} {:>9} {:>9} {:>9}  {:<8} {:>6} {:>6}",
        number(median),
        row.min.map(number).unwrap_or_default(),
        row.max.map(number).unwrap_or_default(),
        row.unit,
        row.spread.map(|spread| format!("{:.0} %", 100.0 * spread)).unwrap_or_default(),
        row.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
    );
    match (&row.goal, row.met) {
        (Some(goal), met) => {
            let met = met.map_or("-", |met| if met { "yes" } else { "NO" });
            let _ = writeln!(text, "  {goal:<21} {met}");
        }
        (None, _) => text.push('\n'),
    }
}

/// Three digits that count, or all before the point.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        x if x >= 99.95 => {
            let digits = format!("{value:.0}");
            let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |rest| ("-", rest));
            let mut grouped = String::new();
            for (place, digit) in digits.chars().enumerate() {
                if place > 0 && (digits.len() - place) % 3 == 0 && digits.len() > 4 {
                    grouped.push(',');
                }
                grouped.push(digit);
            }
            format!("{sign}{grouped}")
        }
        x if x >= 9.995 => format!("{value:.1}"),
        x if x >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(stack: &str, median: Option<f64>) -> Row {
        Row {
            measurement: "memory-1500".into(),
            stack: stack.into(),
            unit: "Gbit/s".into(),
            median,
            min: median.map(|m| m - 1.0),
            max: median.map(|m| m + 1.0),
            spread: median.map(|m| 2.0 / m),
            conditions: "two hosts".into(),
            settings: "as shipped".into(),
            ..Row::default()
        }
    }

    #[test]
    fn every_row_says_what_there_is_to_say() {
        let ours = Row {
            ratio: Some(1.234),
            goal: Some("≥ 1.3 × smoltcp".into()),
            met: Some(false),
            ..row("inhost", Some(44.4))
        };
        let gone = Row { settings: "left out by --without".into(), ..row("lwIP", None) };
        let table = render(&[ours, row("smoltcp", Some(36.0)), gone], false);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[2..4], ["two hosts", "memory-1500"]);
        for words in ["inhost", "44.4", "43.4", "45.4", "Gbit/s", "5 %", "1.23", "≥ 1.3 × smoltcp", "NO"] {
            assert!(lines[4].contains(words), "{words}: {}", lines[4]);
        }
        assert!(lines[5].contains("36.0") && !lines[5].contains("yes"));
        assert!(lines[6].contains("lwIP") && lines[6].contains("left out by --without"));
        assert_eq!(lines.len(), 7);
        assert!(render(&[row("inhost", Some(1.0))], true).contains("      as shipped"));
        assert!(table.lines().all(|line| line.chars().count() <= WIDTH), "{table}");
        let mut wrapped = String::new();
        wrap(&mut wrapped, "  ", &"word ".repeat(50));
        assert_eq!(wrapped.lines().map(str::len).collect::<Vec<_>>(), [96, 96, 61]);
    }

    #[test]
    fn numbers_keep_three_digits() {
        let all = [0.0, 0.001234, 0.1234, 1.2345, 12.345, 123.45, 1234.5, 12345.6, 1234567.8, -54321.0];
        let words = ["0", "0.0012", "0.12", "1.23", "12.3", "123", "1234", "12,346", "1,234,568", "-54,321"];
        assert_eq!(all.map(number), words);
    }
}
