//! Curves: ours with the interval of the mean, the source's as marks.

use std::fmt;
use std::ops::Range;

use plotters::coord::combinators::{BindKeyPoints, IntoLogRange, LogCoord, WithKeyPoints};
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

use super::{Chapter, figure};
use crate::compare::Results;
use crate::experiment::Plot;

/// Pixels of a picture. It is higher where the list of its curves is.
const SIZE: (u32, u32) = (860, 420);
/// Pixels of the list of curves, at the right.
const LIST: u32 = 230;
/// Pixels of it above the first curve, of a line, and between two curves.
const FIRST: i32 = 18;
const LINE: i32 = 16;
const BETWEEN: i32 = 8;
/// Characters of the title.
const TITLE: usize = 78;
/// Characters of a line in it.
const NAME: usize = 31;
/// Colours that colour-blind eyes tell apart (Okabe and Ito). Curves beyond them have them again, with open marks.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];
/// The font of all text. A viewer that does not have it takes its own.
const FONT: &str = "DejaVu Sans";

/// Why a curve cannot be drawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CurveError(String);

impl fmt::Display for CurveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for CurveError {}

/// A point, and half of its interval.
type Mark = (f64, f64, f64);

/// A curve: its name, and its points with half of their intervals.
struct Curve {
    name: String,
    points: Vec<Mark>,
    is_paper: bool,
}

/// A plot of an experiment as SVG.
///
/// # Errors
/// There is nothing to draw.
pub fn svg(chapter: &Chapter, number: usize) -> Result<String, CurveError> {
    let plot =
        chapter.experiment.plot.get(number).ok_or_else(|| CurveError("there is no such plot".to_owned()))?;
    let mut texts: Vec<&str> = Vec::new();
    let points = chapter.results.iter().map(|of| &of.point).filter(|point| plot.at.has(point));
    for text in points.filter_map(|point| point.text_of(&plot.x)) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let curves = curves(chapter, plot, &texts);
    let points = || curves.iter().flat_map(|curve| &curve.points);
    if points().next().is_none() {
        return Err(CurveError(format!("no point has {} and {}", plot.x, plot.y.join(" or "))));
    }
    let range = |is_log: bool, of: fn(&Mark) -> [f64; 2]| {
        let values = || points().flat_map(of).filter(|value| !is_log || *value > 0.0);
        let (least, most) =
            values().fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
        match is_log {
            true => least / 1.3..most * 1.3,
            false if least >= 0.0 => 0.0..(most * 1.08).max(1e-9),
            false => least * 1.08..most.max(0.0) * 1.08 + 1e-9,
        }
    };
    let x = match texts.len() {
        0 => range(plot.log_x, |point| [point.0, point.0]),
        many => -0.5..many as f64 - 0.5,
    };
    let y = range(plot.log_y, |point| [point.1 - point.2, point.1 + point.2]);
    let mut picture = String::new();
    let drawing = Drawing { title: &chapter.experiment.title, plot, texts: &texts, curves: &curves };
    let done = match (drawing.has_log_x(), plot.log_y) {
        (false, false) => drawing.draw(&mut picture, x, y),
        (true, false) => drawing.draw(&mut picture, logarithmic(x), y),
        (false, true) => drawing.draw(&mut picture, x, logarithmic(y)),
        (true, true) => drawing.draw(&mut picture, logarithmic(x), logarithmic(y)),
    };
    done.map_err(|e| CurveError(e.to_string()))?;
    Ok(picture)
}

/// A logarithmic axis with numbers at 1, 2 and 5 of each decade, or at 1 alone where there are many decades.
fn logarithmic(range: Range<f64>) -> WithKeyPoints<LogCoord<f64>> {
    let (first, last) = (range.start.log10().floor() as i32, range.end.log10().ceil() as i32);
    let steps: &[f64] = if last - first > 4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let decades = (first..=last).map(|power| 10f64.powi(power));
    let points = decades.flat_map(|decade| steps.iter().map(move |step| step * decade));
    let points = points.filter(|point| range.contains(point)).collect::<Vec<_>>();
    range.log_scale().with_key_points(points)
}

fn curves(chapter: &Chapter, plot: &Plot, texts: &[&str]) -> Vec<Curve> {
    let x = |of: &Results| match of.point.text_of(&plot.x) {
        Some(text) => texts.iter().position(|known| *known == text).map(|place| place as f64),
        None => of.point.number_of(&plot.x).or_else(|| of.measures.get(&plot.x).map(|x| x.mean)),
    };
    // In the order of the points, the source's behind ours.
    let mut curves: Vec<Curve> = Vec::new();
    let mut add = |name: String, is_paper: bool, point: Mark| match curves
        .iter_mut()
        .find(|curve| curve.name == name && curve.is_paper == is_paper)
    {
        Some(curve) => curve.points.push(point),
        None => curves.push(Curve { name, points: vec![point], is_paper }),
    };
    for of in chapter.results.iter().filter(|of| plot.at.has(&of.point)) {
        for measure in &plot.y {
            let (Some(x), Some(y)) = (x(of), of.measures.get(measure)) else { continue };
            let name = match (of.point.named(&plot.by), plot.y.len()) {
                (Some(family), 1) => family,
                (Some(family), _) => format!("{measure}, {family}"),
                (None, _) => measure.clone(),
            };
            add(name, false, (x, y.mean, y.half_width.unwrap_or(0.0)));
        }
    }
    for compared in &chapter.compared {
        if !plot.y.contains(&compared.measure) {
            continue;
        }
        let Some(of) = chapter.results.get(compared.point).filter(|of| plot.at.has(&of.point)) else {
            continue;
        };
        let Some(x) = x(of) else { continue };
        let what = if compared.what.is_empty() { String::new() } else { format!(", {}", compared.what) };
        let name = match plot.y.len() {
            1 => format!("the paper{what}"),
            _ => format!("the paper{what}: {}", compared.measure),
        };
        add(name, true, (x, compared.paper, 0.0));
    }
    curves.iter_mut().for_each(|curve| curve.points.sort_by(|one, other| one.0.total_cmp(&other.0)));
    curves
}

/// What is drawn. An axis of texts has the first at 0, the second at 1.
struct Drawing<'a> {
    title: &'a str,
    plot: &'a Plot,
    texts: &'a [&'a str],
    curves: &'a [Curve],
}

impl Drawing<'_> {
    fn has_log_x(&self) -> bool {
        self.plot.log_x && self.texts.is_empty()
    }
    fn draw<X, Y>(&self, picture: &mut String, x: X, y: Y) -> Result<(), Box<dyn std::error::Error>>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let rows =
            self.curves.iter().map(|curve| LINE * lines(&curve.name).len() as i32 + BETWEEN).sum::<i32>();
        let size = (SIZE.0, SIZE.1.max((FIRST + rows) as u32));
        let whole = SVGBackend::with_string(picture, size).into_drawing_area();
        whole.fill(&WHITE)?;
        let (area, list) = whole.split_horizontally(SIZE.0 - LIST);
        let font = (FONT, 15).into_font();
        let mut chart = ChartBuilder::on(&area)
            .margin(14)
            .caption(shortened(self.title, TITLE), (FONT, 16).into_font())
            .x_label_area_size(48)
            .y_label_area_size(76)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(225, 225, 225))
            .x_desc(&self.plot.x_label)
            .y_desc(&self.plot.y_label)
            .x_labels(self.texts.len().max(7))
            .y_labels(6)
            .axis_desc_style(font.clone())
            .label_style((FONT, 13).into_font())
            .x_label_formatter(&|value| self.label(*value))
            .y_label_formatter(&|value| figure(*value))
            .draw()?;
        let mut down = FIRST;
        for (number, curve) in self.curves.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            // A logarithmic axis has no zero.
            let has_place =
                |point: &&Mark| (!self.has_log_x() || point.0 > 0.0) && (!self.plot.log_y || point.1 > 0.0);
            let placed = || curve.points.iter().filter(has_place);
            let line: Vec<(f64, f64)> = placed().map(|point| (point.0, point.1)).collect();
            let at = (8, down + 8);
            for line in lines(&curve.name) {
                list.draw(&Text::new(line, (at.0 + 26, down), (FONT, 13).into_font()))?;
                down += LINE;
            }
            down += BETWEEN;
            if curve.is_paper {
                chart
                    .draw_series(line.iter().map(|&at| TriangleMarker::new(at, 7, colour.stroke_width(2))))?;
                list.draw(&TriangleMarker::new((at.0 + 9, at.1), 6, colour.stroke_width(2)))?;
                continue;
            }
            let key = at.0 + 9;
            chart.draw_series(LineSeries::new(line.iter().copied(), colour.stroke_width(2)))?;
            chart.draw_series(line.iter().map(|&at| Circle::new(at, 4, colour.filled())))?;
            list.draw(&PathElement::new([at, (at.0 + 18, at.1)], colour.stroke_width(2)))?;
            list.draw(&Circle::new((key, at.1), 4, colour.filled()))?;
            if number >= COLOURS.len() {
                chart.draw_series(line.iter().map(|&at| Circle::new(at, 2, WHITE.filled())))?;
                list.draw(&Circle::new((key, at.1), 2, WHITE.filled()))?;
            }
            let bars = placed().filter(|point| point.2 > 0.0);
            chart.draw_series(bars.map(|&(x, y, half)| {
                PathElement::new([(x, y - half), (x, y + half)], colour.stroke_width(1))
            }))?;
        }
        whole.present()?;
        Ok(())
    }
    /// The number at a place of the horizontal axis, or the text.
    fn label(&self, x: f64) -> String {
        match self.texts {
            [] => figure(x),
            texts => (0_u32..)
                .zip(texts)
                .find(|(place, _)| f64::from(*place) == x)
                .map_or_else(String::new, |(_, text)| (*text).to_owned()),
        }
    }
}

/// A curve's name in lines of [`NAME`] characters at most, which end behind a comma or a blank where there is one.
fn lines(name: &str) -> Vec<String> {
    let letters = |text: &str| text.chars().count();
    let mut lines: Vec<String> = Vec::new();
    for part in name.replace('_', " ").split(", ") {
        let mut line = String::new();
        for piece in part.split_inclusive([',', ' ']) {
            if letters(&line) + letters(piece) > NAME && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            line.push_str(piece);
            while letters(&line) > NAME {
                let rest = line.chars().skip(NAME).collect();
                lines.push(line.chars().take(NAME).collect());
                line = rest;
            }
        }
        lines.push(line);
    }
    lines
}

/// A text of so many characters at most.
fn shortened(text: &str, most: usize) -> String {
    let mut short: String = text.chars().take(most).collect();
    if text.chars().count() > most {
        short.push('…');
    }
    short
}

/// A picture as PNG, twice as large. Its text needs a font of the system.
///
/// # Errors
/// It cannot be drawn, or the system has no font.
pub fn png(picture: &str) -> Result<Vec<u8>, CurveError> {
    let wrong = |why: String| CurveError(format!("no PNG: {why}"));
    let mut options = resvg::usvg::Options::default();
    options.fontdb_mut().load_system_fonts();
    if options.fontdb.is_empty() {
        return Err(wrong("the system has no font; try the package fonts-dejavu-core".to_owned()));
    }
    let tree = resvg::usvg::Tree::from_str(picture, &options).map_err(|e| wrong(e.to_string()))?;
    let size = tree.size().to_int_size();
    let mut pixels = resvg::tiny_skia::Pixmap::new(2 * size.width(), 2 * size.height())
        .ok_or_else(|| wrong("no memory".to_owned()))?;
    resvg::render(&tree, resvg::tiny_skia::Transform::from_scale(2.0, 2.0), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| wrong(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_told_whole() {
        assert_eq!(lines("face local, link user"), ["face local", "link user"]);
        let link = "link tun:inett0,address=10.97.0.1/24,mtu=9000";
        assert_eq!(lines(link), ["link tun:inett0,", "address=10.97.0.1/24,mtu=9000"]);
        assert_eq!(lines(link).concat(), link);
        let word = "x".repeat(2 * NAME + 1);
        assert_eq!(lines(&word).iter().map(String::len).collect::<Vec<_>>(), [NAME, NAME, 1]);
    }
}
