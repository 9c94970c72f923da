//! The rows as a picture: for each measurement where each stack stands beside ours, on a logarithmic scale.

use super::result::Row;
use std::fmt::Write;

const WIDTH: f64 = 960.0;
/// Where the scale begins and ends.
const SCALE: (f64, f64) = (300.0, 920.0);
const ROW_HEIGHT: f64 = 26.0;
const HEAD_HEIGHT: f64 = 104.0;
/// Of a line of the legend.
const LEGEND_HEIGHT: f64 = 20.0;
/// The least and the largest factor on the scale; beyond stands at the edge.
const FACTORS: (f64, f64) = (1.0 / 32.0, 8.0);
/// Colours that can be told apart by most eyes (Okabe and Ito).
const COLOURS: [&str; 8] =
    ["#000000", "#0072b2", "#56b4e9", "#e69f00", "#d55e00", "#009e73", "#cc79a7", "#999999"];

/// The picture as SVG. Times are turned round, so that better is always further right.
pub fn draw(rows: &[Row], title: &str) -> String {
    let measurements = distinct(rows.iter().map(|row| row.measurement.as_str()));
    let drawn: Vec<&str> = measurements.into_iter().filter(|name| dots(rows, name).len() > 1).collect();
    let stacks = distinct(drawn.iter().flat_map(|name| dots(rows, name)).map(|(stack, _)| stack));
    let height = HEAD_HEIGHT + ROW_HEIGHT * drawn.len() as f64 + 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    text(&mut svg, WIDTH / 2.0, 24.0, "middle", 17, title);
    let (mut place, mut y) = (20.0, 50.0);
    for (number, stack) in stacks.iter().enumerate() {
        let width = 34.0 + 7.2 * stack.len() as f64;
        if place + width > WIDTH {
            (place, y) = (20.0, y + LEGEND_HEIGHT);
        }
        dot(&mut svg, place, y, number);
        text(&mut svg, place + 10.0, y + 4.0, "start", 13, stack);
        place += width;
    }
    grid(&mut svg, height);
    for (line, name) in drawn.iter().enumerate() {
        let y = HEAD_HEIGHT + ROW_HEIGHT * (line as f64 + 0.5);
        text(&mut svg, SCALE.0 - 12.0, y + 4.0, "end", 13, name);
        for (stack, factor) in dots(rows, name) {
            let number = stacks.iter().position(|other| *other == stack).unwrap_or(0);
            dot(&mut svg, across(factor), y, number);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Each stack's figure beside that of the first, more than one where it is better.
fn dots<'a>(rows: &'a [Row], measurement: &str) -> Vec<(&'a str, f64)> {
    let of: Vec<&'a Row> = rows.iter().filter(|row| row.measurement == measurement).collect();
    let Some(first) = of.first().and_then(|row| row.median).filter(|median| *median > 0.0) else {
        return Vec::new();
    };
    let factor = |row: &&'a Row| {
        let median = row.median.filter(|median| *median > 0.0)?;
        let factor = if less_is_better(&row.unit) { first / median } else { median / first };
        Some((row.stack.as_str(), factor))
    };
    of.iter().filter_map(factor).collect()
}

/// Whether a figure in this unit is a cost.
fn less_is_better(unit: &str) -> bool {
    ["us", "ns", "s/GB", "bytes", "instr."].iter().any(|cost| unit.starts_with(cost))
}

fn grid(svg: &mut String, height: f64) {
    let mut factor = FACTORS.0;
    while factor <= FACTORS.1 {
        let x = across(factor);
        let (colour, name) = if factor == 1.0 {
            ("#777777", "inhost".to_owned())
        } else if factor < 1.0 {
            ("#dddddd", format!("1/{:.0}", 1.0 / factor))
        } else {
            ("#dddddd", format!("{factor:.0} ×"))
        };
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"{colour}\"/>",
            HEAD_HEIGHT - 4.0,
            height - 24.0
        );
        text(svg, x, height - 8.0, "middle", 12, &name);
        factor *= 2.0;
    }
}

fn across(factor: f64) -> f64 {
    let whole = (FACTORS.1 / FACTORS.0).log2();
    let share = (factor.clamp(FACTORS.0, FACTORS.1) / FACTORS.0).log2() / whole;
    SCALE.0 + share * (SCALE.1 - SCALE.0)
}

/// The mark of a stack: in its colour, and hollow where the colours have been used once.
fn dot(svg: &mut String, x: f64, y: f64, number: usize) {
    let colour = COLOURS[number % COLOURS.len()];
    let inside = if number < COLOURS.len() { colour } else { "white" };
    let _ = writeln!(
        svg,
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{inside}\" stroke=\"{colour}\" stroke-width=\"2\"/>"
    );
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, size: u32, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{words}</text>"
    );
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    names.for_each(|name| {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    });
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_is_further_right_whatever_the_unit() {
        let row = |measurement: &str, stack: &str, unit: &str, median| Row {
            measurement: measurement.into(),
            stack: stack.into(),
            unit: unit.into(),
            median,
            ..Row::default()
        };
        let rows = [
            row("rate", "inhost", "Gbit/s", Some(40.0)),
            row("rate", "smoltcp", "Gbit/s", Some(20.0)),
            row("rate", "lwIP", "Gbit/s", None),
            row("echo", "inhost", "us", Some(2.0)),
            row("echo", "smoltcp", "us", Some(1.0)),
            row("alone", "inhost", "us", Some(1.0)),
        ];
        assert_eq!(dots(&rows, "rate"), [("inhost", 1.0), ("smoltcp", 0.5)]);
        assert_eq!(dots(&rows, "echo"), [("inhost", 1.0), ("smoltcp", 2.0)]);
        assert!(across(0.5) < across(1.0) && across(1000.0) <= SCALE.1);
        let svg = draw(&rows, "<beside>");
        assert!(svg.contains("&lt;beside>") && !svg.contains(">alone<"));
        assert_eq!(svg.matches("<circle").count(), 2 + 4);
    }
}
