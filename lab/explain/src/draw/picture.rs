//! A trace as SVG.

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::Trace;
use super::colours::{ACKNOWLEDGED, AGAIN, CONGESTION, GREY, SACKED, SENT, TEXT, WINDOW, of_cause};
use super::trace::{COLUMNS, Columns};
use crate::cause::Cause;
use crate::verdict::figures;

const WIDTH: u32 = 1000;
/// Heights: head with both legends, time and sequence, in flight, times, causes with their legend.
const HEAD: u32 = 84;
const SEQUENCE: u32 = 360;
const FLIGHT: u32 = 200;
const TIMES: u32 = 140;
const STRIP: u32 = 62;
const PANEL_TITLE: u32 = 24;
/// Places of the legend.
const LEGEND: [i32; 6] = [0, 65, 165, 285, 475, 620];
const LEGEND_ROW: u32 = 18;
const LEFT: u32 = 66;
const RIGHT: u32 = 16;
/// Causes of the strip that are named: those with the most time, and at least this part of it.
const NAMED: usize = 9;
const LEAST_PART: f64 = 0.005;
/// A window so many times higher than the picture is told of.
const BEYOND_TIMES: f64 = 1.1;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failed = DrawingAreaErrorKind<std::io::Error>;
type Drawn = Result<(), Failed>;
type Chart<'b, 'a> = ChartContext<'b, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Unit of an axis: a divisor and its name.
fn unit(largest: f64) -> (f64, &'static str) {
    match largest {
        _ if largest >= 2e9 => (1e9, "GB"),
        _ if largest >= 2e6 => (1e6, "MB"),
        _ if largest >= 2e3 => (1e3, "kB"),
        _ => (1.0, "bytes"),
    }
}

impl Trace {
    /// The picture.
    pub fn svg(&self) -> String {
        let ranked = self.ranked_causes();
        let rows = ranked.len().div_ceil(3) as u32;
        let height = HEAD + SEQUENCE + FLIGHT + TIMES + STRIP + rows * LEGEND_ROW + 10;
        let mut text = String::new();
        {
            let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
            // A string takes everything.
            let _ = self.draw(&area, &ranked).and_then(|()| area.present());
        }
        text
    }
    fn draw(&self, area: &Area<'_>, ranked: &[(Cause, f64)]) -> Drawn {
        area.fill(&WHITE)?;
        let (head, rest) = area.split_vertically(HEAD);
        self.head(&head)?;
        let (sequence, rest) = rest.split_vertically(SEQUENCE);
        self.sequence(&sequence)?;
        let (flight, rest) = rest.split_vertically(FLIGHT);
        self.flight(&flight)?;
        let (times, strip) = rest.split_vertically(TIMES);
        self.times(&times)?;
        self.strip(&strip, ranked)
    }
    fn head(&self, area: &Area<'_>) -> Drawn {
        let big = ("sans-serif", 17).into_font().color(&TEXT);
        area.draw_text(&self.title, &big, (LEFT as i32, 8))?;
        let mut said = self.diagnosis.clone();
        if said.chars().count() > 150 {
            said = said.chars().take(147).chain("...".chars()).collect();
        }
        area.draw_text(&said, &("sans-serif", 13).into_font().color(&TEXT), (LEFT as i32, 34))?;
        let entries = [
            (SENT, "sent"),
            (AGAIN, "sent again"),
            (ACKNOWLEDGED, "acknowledged"),
            (SACKED, "selectively acknowledged"),
            (WINDOW, "receiver's window"),
            (CONGESTION, "congestion window, where it limits"),
        ];
        for (place, (colour, name)) in entries.into_iter().enumerate() {
            let x = LEFT as i32 + LEGEND[place];
            area.draw(&Rectangle::new([(x, 62), (x + 14, 72)], colour.filled()))?;
            area.draw_text(name, &("sans-serif", 12).into_font().color(&TEXT), (x + 19, 60))?;
        }
        Ok(())
    }
    fn time(&self, column: usize) -> f64 {
        (column as f64 + 0.5) * self.seconds / COLUMNS as f64
    }
    /// Every range as an upright line.
    fn bars(&self, of: &Columns, divisor: f64, colour: RGBColor, width: u32) -> Vec<PathElement<(f64, f64)>> {
        let bar = |(column, range): (usize, &Option<super::trace::Range>)| {
            let range = (*range)?;
            let (x, bottom, top) = (self.time(column), range.least / divisor, range.largest / divisor);
            Some(PathElement::new(vec![(x, bottom), (x, top)], colour.stroke_width(width)))
        };
        of.0.iter().enumerate().filter_map(bar).collect()
    }
    /// The last value of each column, as steps.
    fn steps(&self, of: &Columns, divisor: f64, most: f64) -> Vec<(f64, f64)> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (column, range) in of.0.iter().enumerate() {
            let Some(range) = range else { continue };
            let (x, y) = (self.time(column), (range.largest / divisor).min(most));
            if let Some(&(_, before)) = points.last() {
                points.push((x, before));
            }
            points.push((x, y));
        }
        points.extend(points.last().map(|&(_, y)| (self.seconds, y)));
        points
    }
    /// What a panel shows, above it.
    fn panel<'a>(&self, area: &Area<'a>, text: &str) -> Result<Area<'a>, Failed> {
        let (title, rest) = area.split_vertically(PANEL_TITLE);
        title.draw_text(text, &("sans-serif", 12).into_font().color(&TEXT), (LEFT as i32, 6))?;
        Ok(rest)
    }
    /// The axes of a panel: time to the right, up to `top` upward.
    fn axes<'b, 'a>(&self, area: &'b Area<'a>, top: f64, labels: usize) -> Result<Chart<'b, 'a>, Failed> {
        let mut chart = ChartBuilder::on(area)
            .margin_right(RIGHT)
            .x_label_area_size(20)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(0.0..self.seconds, 0.0..top)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(GREY.mix(0.25))
            .x_label_formatter(&|x| format!("{}s", number(*x)))
            .y_labels(labels)
            .draw()?;
        Ok(chart)
    }
    fn sequence(&self, area: &Area<'_>) -> Drawn {
        let sent = largest(&self.sent).max(largest(&self.again)).max(1.0);
        // A window far above what is sent would flatten it.
        let top = largest(&self.edge).min(sent * 1.25).max(sent * 1.03);
        let (divisor, name) = unit(top);
        let most = top / divisor;
        let title = format!(
            "Place in the stream ({name}): sent, acknowledged, and allowed by the receiver{}",
            beyond(&self.edge, top)
        );
        let area = self.panel(area, &title)?;
        let mut chart = self.axes(&area, most, 11)?;
        chart.draw_series(LineSeries::new(self.steps(&self.edge, divisor, most), WINDOW.stroke_width(1)))?;
        chart.draw_series(self.bars(&self.sent, divisor, SENT, 2))?;
        chart.draw_series(self.bars(&self.sacked, divisor, SACKED, 1))?;
        chart.draw_series(LineSeries::new(
            self.steps(&self.acknowledged, divisor, most),
            ACKNOWLEDGED.stroke_width(1),
        ))?;
        // Few, and what people look for.
        let again = self.again.0.iter().enumerate().filter_map(|(column, range)| {
            let range = (*range)?;
            let middle = (range.least + range.largest) / 2.0 / divisor;
            Some(TriangleMarker::new((self.time(column), middle), 5, AGAIN.filled()))
        });
        chart.draw_series(again)?;
        Ok(())
    }
    fn flight(&self, area: &Area<'_>) -> Drawn {
        let flight = largest(&self.flight).max(1.0);
        let top = largest(&self.window).min(flight * 1.6).max(flight * 1.1);
        let (divisor, name) = unit(top);
        let most = top / divisor;
        let title = format!(
            "In flight: sent and not acknowledged ({name}), against both windows{}",
            beyond(&self.window, top)
        );
        let area = self.panel(area, &title)?;
        let mut chart = self.axes(&area, most, 5)?;
        chart.draw_series(LineSeries::new(self.steps(&self.flight, divisor, most), SENT.stroke_width(1)))?;
        chart
            .draw_series(LineSeries::new(self.steps(&self.window, divisor, most), WINDOW.stroke_width(1)))?;
        let limits = |at: f64| {
            let place = self.causes.partition_point(|&(_, to, _)| to < at);
            self.causes.get(place).is_some_and(|&(from, _, cause)| from <= at && is_congestion(cause))
        };
        let points = self.flight.0.iter().enumerate().filter_map(|(column, range)| {
            let x = self.time(column);
            limits(x).then_some((x, range.as_ref()?.largest / divisor))
        });
        chart.draw_series(points.map(|point| Circle::new(point, 2, CONGESTION.filled())))?;
        Ok(())
    }
    fn times(&self, area: &Area<'_>) -> Drawn {
        let top = largest(&self.times).max(0.001) * 1.1;
        let area = self.panel(
            area,
            "Time until a segment was acknowledged (ms), seen from where the capture was taken",
        )?;
        let mut chart = self.axes(&area, top, 4)?;
        chart.draw_series(self.bars(&self.times, 1.0, SENT, 1))?;
        let dots = self.times.0.iter().enumerate().filter_map(|(column, range)| {
            Some(Circle::new((self.time(column), range.as_ref()?.least), 1, SENT.filled()))
        });
        chart.draw_series(dots)?;
        Ok(())
    }
    /// Causes with their seconds, the largest first.
    fn ranked_causes(&self) -> Vec<(Cause, f64)> {
        let mut ranked: Vec<(Cause, f64)> = Vec::new();
        for &(from, to, cause) in &self.causes {
            match ranked.iter_mut().find(|(known, _)| *known == cause) {
                Some((_, seconds)) => *seconds += to - from,
                None => ranked.push((cause, to - from)),
            }
        }
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked.retain(|(_, seconds)| *seconds >= self.seconds * LEAST_PART);
        ranked.truncate(NAMED);
        ranked
    }
    fn strip(&self, area: &Area<'_>, ranked: &[(Cause, f64)]) -> Drawn {
        let small = ("sans-serif", 12).into_font().color(&TEXT);
        area.draw_text("What the sender waited for:", &small, (LEFT as i32, 6))?;
        let (left, width) = (f64::from(LEFT), f64::from(WIDTH - LEFT - RIGHT));
        let x = |seconds: f64| (left + (seconds / self.seconds).clamp(0.0, 1.0) * width) as i32;
        // A pixel shows what held for most of it.
        let mut held = vec![[0.0; NAMED + 1]; (WIDTH - LEFT - RIGHT) as usize];
        for &(from, to, cause) in &self.causes {
            let place = ranked.iter().position(|(known, _)| *known == cause).unwrap_or(NAMED);
            let (first, last) = (from / self.seconds * width, to / self.seconds * width);
            for pixel in first as usize..=(last as usize).min(held.len().saturating_sub(1)) {
                let part = (last.min(pixel as f64 + 1.0) - first.max(pixel as f64)).max(0.0);
                if let Some(of) = held.get_mut(pixel) {
                    of[place] += part;
                }
            }
        }
        let most = |of: &[f64; NAMED + 1]| {
            let best = of.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
            best.filter(|(_, part)| **part > 0.0).map(|(place, _)| place)
        };
        let mut pixel = 0;
        while pixel < held.len() {
            let place = most(&held[pixel]);
            let run = held[pixel..].iter().take_while(|of| most(of) == place).count();
            if let Some(place) = place {
                let colour = ranked.get(place).map_or(GREY, |(cause, _)| of_cause(*cause));
                let from = LEFT as i32 + pixel as i32;
                area.draw(&Rectangle::new([(from, 24), (from + run as i32, 46)], colour.filled()))?;
            }
            pixel += run;
        }
        area.draw(&Rectangle::new([(x(0.0), 24), (x(self.seconds), 46)], GREY.stroke_width(1)))?;
        let total = self.seconds.max(1e-9);
        for (place, (cause, seconds)) in ranked.iter().enumerate() {
            let column = (WIDTH - LEFT - RIGHT) as i32 / 3;
            let at = (LEFT as i32 + (place % 3) as i32 * column, 54 + (place / 3) as i32 * LEGEND_ROW as i32);
            area.draw(&Rectangle::new([at, (at.0 + 14, at.1 + 10)], of_cause(*cause).filled()))?;
            let text = format!("{:.0} % {}", seconds * 100.0 / total, cause.text());
            area.draw_text(&text, &small, (at.0 + 19, at.1 - 2))?;
        }
        Ok(())
    }
}

/// Whether the congestion window limits.
fn is_congestion(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::SlowStart | Cause::SlowStartRestart | Cause::CongestionWindow | Cause::BottleneckRate
    )
}

/// Words where a window is far larger than the picture.
fn beyond(of: &Columns, top: f64) -> String {
    let most = largest(of);
    match most > top * BEYOND_TIMES {
        true => {
            format!("; the receiver's window reaches {}, beyond the picture", figures::bytes(most as u64))
        }
        false => String::new(),
    }
}

fn largest(of: &Columns) -> f64 {
    of.0.iter().flatten().map(|range| range.largest).fold(0.0, f64::max)
}

/// A number without needless digits.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    format!("{short} ")
}
