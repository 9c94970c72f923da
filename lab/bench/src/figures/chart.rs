//! Pictures as SVG, all drawn in one way.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width of a picture.
const WIDTH: u32 = 960;
/// Height of one panel.
const PANEL_HEIGHT: u32 = 300;
/// Height of the title and of the legend, which may have two rows.
const HEAD_HEIGHT: u32 = 84;
/// Colours that can be told apart by most eyes (Okabe and Ito).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0x00, 0x00, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
];
const GOAL: RGBColor = RGBColor(0xcc, 0x33, 0x33);
const GREY: RGBColor = RGBColor(0x77, 0x77, 0x77);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// A value of a category.
pub struct Mark {
    /// Where on the axis.
    pub group: String,
    /// Which colour.
    pub series: String,
    /// The value.
    pub value: f64,
    /// The lower end of its whisker.
    pub lower: Option<f64>,
}

/// Marks over one axis.
pub struct Panel {
    /// Above it.
    pub title: String,
    /// What is in it.
    pub marks: Vec<Mark>,
}

/// Marks by category, a panel below the other; dashed lines stand at the `goals`.
pub fn categories(path: &str, title: &str, panels: &[Panel], goals: &[f64]) -> Result<(), String> {
    let height = HEAD_HEIGHT + PANEL_HEIGHT * panels.len() as u32;
    draw(path, height, |area| {
        let series = distinct(panels.iter().flat_map(|p| &p.marks).map(|mark| &mark.series));
        let below = head(area, title, &series)?;
        let parts = below.split_evenly((panels.len().max(1), 1));
        parts.iter().zip(panels).try_for_each(|(part, panel)| category_panel(part, panel, &series, goals))
    })
}

fn category_panel(area: &Area<'_>, panel: &Panel, series: &[String], goals: &[f64]) -> Drawn {
    let groups = distinct(panel.marks.iter().map(|mark| &mark.group));
    let top =
        panel.marks.iter().map(|mark| mark.value).chain(goals.iter().copied()).fold(1.3, f64::max) * 1.05;
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .margin_right(24)
        .x_label_area_size(28)
        .y_label_area_size(48)
        .caption(&panel.title, ("sans-serif", 15))
        .build_cartesian_2d(0.0..groups.len() as f64, 0.0..top)?;
    let name = |x: &f64| groups.get(*x as usize).filter(|_| x.fract() == 0.0).cloned().unwrap_or_default();
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_labels(0)
        .x_label_formatter(&name)
        .y_label_formatter(&|y| format!("{y:.1}"))
        .draw()?;
    for (number, group) in groups.iter().enumerate() {
        let place = chart.backend_coord(&(number as f64 + 0.5, 0.0));
        let style = ("sans-serif", 14).into_font().color(&BLACK).pos(Pos::new(HPos::Center, VPos::Top));
        area.draw(&Text::new(group.clone(), relative(area, (place.0, place.1 + 8)), style))?;
    }
    for goal in goals {
        let ends = [(0.0, *goal), (groups.len() as f64, *goal)];
        chart.draw_series(DashedLineSeries::new(ends, 6, 4, GOAL.stroke_width(1)))?;
    }
    let whole = [(0.0, 1.0), (groups.len() as f64, 1.0)];
    chart.draw_series(LineSeries::new(whole, GREY.stroke_width(1)))?;
    for mark in &panel.marks {
        let at = |names: &[String], name: &String| names.iter().position(|n| n == name).unwrap_or(0);
        let number = at(series, &mark.series);
        let x = at(&groups, &mark.group) as f64 + (number as f64 + 1.0) / (series.len() as f64 + 1.0);
        let colour = COLOURS[number % COLOURS.len()];
        if let Some(lower) = mark.lower {
            let whisker = [(x, lower), (x, mark.value)];
            chart.draw_series(LineSeries::new(whisker, colour.stroke_width(2)))?;
        }
        chart.draw_series([Circle::new((x, mark.value), 4, colour.filled())])?;
    }
    Ok(())
}

/// One line of a diagram.
pub struct Line {
    /// In the legend.
    pub name: String,
    /// Its points, by x.
    pub points: Vec<(f64, f64)>,
    /// Whether the points are shown, rather than a line through them.
    pub dots: bool,
}

/// An axis of a diagram.
pub struct Axis {
    /// What it measures, with the unit.
    pub name: String,
    /// From where to where.
    pub range: (f64, f64),
    /// Whether its scale is logarithmic.
    pub logarithmic: bool,
}

/// Lines over two axes, with a dashed line at `goal`.
pub fn lines(
    path: &str,
    title: &str,
    [x, y]: [Axis; 2],
    lines: &[Line],
    goal: Option<f64>,
) -> Result<(), String> {
    draw(path, HEAD_HEIGHT + 420, |area| {
        let names: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
        let below = head(area, title, &distinct(names.iter()))?;
        // A logarithmic axis is drawn as a linear one of logarithms: one kind of chart serves all.
        let scale = |axis: &Axis, value: f64| if axis.logarithmic { value.log10() } else { value };
        let range = |axis: &Axis| scale(axis, axis.range.0)..scale(axis, axis.range.1);
        let mut chart = ChartBuilder::on(&below)
            .margin(10)
            .margin_right(24)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(range(&x), range(&y))?;
        let label = |axis: &Axis, value: f64| {
            if axis.logarithmic {
                if is_whole(value) { power(value) } else { String::new() }
            } else {
                plain(value)
            }
        };
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc(&x.name)
            .y_desc(&y.name)
            .axis_desc_style(("sans-serif", 14))
            .x_label_formatter(&|value| label(&x, *value))
            .y_label_formatter(&|value| label(&y, *value))
            .draw()?;
        if let Some(goal) = goal {
            let ends = [(scale(&x, x.range.0), scale(&y, goal)), (scale(&x, x.range.1), scale(&y, goal))];
            chart.draw_series(DashedLineSeries::new(ends, 6, 4, GOAL.stroke_width(1)))?;
        }
        let names = distinct(names.iter());
        for (place, line) in lines.iter().enumerate() {
            let number = names.iter().position(|name| *name == line.name).unwrap_or(0);
            let colour = COLOURS[number % COLOURS.len()];
            let points = line.points.iter().map(|point| (scale(&x, point.0), scale(&y, point.1)));
            if line.dots {
                chart.draw_series(points.map(|point| Circle::new(point, 4, colour.filled())))?;
            } else {
                // The first are the widest, so that those below others are seen.
                let width = 2 + 2 * (lines.len() - 1 - place).min(3) as u32;
                chart.draw_series(LineSeries::new(points, colour.stroke_width(width)))?;
            }
        }
        Ok(())
    })
}

fn is_whole(value: f64) -> bool {
    (value - value.round()).abs() < 1e-6
}

fn power(value: f64) -> String {
    plain(10f64.powi(value.round() as i32))
}

fn plain(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-3 {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" { "0".into() } else { text.into() }
}

/// Makes the file, and the folder where it lies.
fn draw(path: &str, height: u32, body: impl FnOnce(&Area<'_>) -> Drawn) -> Result<(), String> {
    let folder = std::path::Path::new(path).parent().ok_or("a picture lies in a folder")?;
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let area = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    area.fill(&WHITE)
        .and_then(|()| body(&area))
        .and_then(|()| area.present())
        .map_err(|e| format!("{path}: {e}"))
}

/// Title and legend; the area below them.
fn head<'a>(
    area: &Area<'a>,
    title: &str,
    series: &[String],
) -> Result<Area<'a>, DrawingAreaErrorKind<std::io::Error>> {
    let (top, below) = area.split_vertically(HEAD_HEIGHT);
    let style = ("sans-serif", 18).into_font().color(&BLACK).pos(Pos::new(HPos::Center, VPos::Top));
    top.draw(&Text::new(title.to_owned(), (WIDTH as i32 / 2, 10), style))?;
    let (mut x, mut y) = (60, 48);
    for (number, name) in series.iter().enumerate() {
        // Roughly what the words take.
        let width = 40 + 7 * name.chars().count() as i32;
        if x + width > WIDTH as i32 {
            (x, y) = (60, y + 20);
        }
        let colour = COLOURS[number % COLOURS.len()];
        top.draw(&Circle::new((x, y), 5, colour.filled()))?;
        let style = ("sans-serif", 14).into_font().color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
        top.draw(&Text::new(name.clone(), (x + 10, y), style))?;
        x += width;
    }
    Ok(below)
}

/// A place of the picture as a place of `area`.
fn relative(area: &Area<'_>, (x, y): (i32, i32)) -> (i32, i32) {
    let (across, down) = area.get_pixel_range();
    (x - across.start, y - down.start)
}

fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    names.for_each(|name| {
        if !distinct.contains(name) {
            distinct.push(name.clone());
        }
    });
    distinct
}
