//! The rate as a curve on the terminal, while it is measured.

use crate::failure::Failure;
use inhost_inett::driver::Progress;
use inhost_inett::plan::{Kind, Plan};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, LegendPosition};
use ratatui::{Terminal, TerminalOptions, Viewport};
use std::io::{IsTerminal, Stderr, stderr};

/// Lines of the curve.
const LINES: u16 = 14;
/// Points that are kept of a curve.
const POINTS: usize = 600;

/// A curve that grows. Dropped, it stays on the screen, and what follows is below.
pub struct Plot {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    curves: [Curve; 2],
    is_transaction: bool,
    repetition: u32,
}

/// One direction, or transactions.
struct Curve {
    name: &'static str,
    color: Color,
    points: Vec<(f64, f64)>,
}

impl Plot {
    /// An empty one, below the cursor.
    pub fn begin(plan: &Plan) -> Result<Plot, Failure> {
        let failed =
            |e: std::io::Error| Failure::operation(format!("--plot: the terminal cannot be used: {e}"));
        if !stderr().is_terminal() {
            return Err(Failure::usage("--plot draws on a terminal, and standard error is not one"));
        }
        let options = TerminalOptions { viewport: Viewport::Inline(LINES) };
        let terminal = Terminal::with_options(CrosstermBackend::new(stderr()), options).map_err(failed)?;
        let is_transaction = plan.kind != Kind::Stream;
        // Two colours that colour-blind eyes tell apart.
        let curve = |name, color| Curve { name, color, points: Vec::new() };
        let first = if is_transaction { "transactions/s" } else { "sent, Mbit/s" };
        let curves = [curve(first, Color::Blue), curve("received, Mbit/s", Color::Yellow)];
        Ok(Plot { terminal, curves, is_transaction, repetition: 1 })
    }
    /// Adds what was measured.
    pub fn take(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Interval(interval) => {
                let values = match self.is_transaction {
                    true => [interval.transactions_per_second, 0.0],
                    false => [interval.sent_bits_per_second / 1e6, interval.received_bits_per_second / 1e6],
                };
                for (curve, value) in self.curves.iter_mut().zip(values) {
                    if curve.points.len() == POINTS {
                        curve.points.remove(0);
                    }
                    curve.points.push((interval.to_s, value));
                }
                // A terminal that went away is not a reason to end a measurement.
                let (curves, repetition) = (&self.curves, self.repetition);
                let _ =
                    self.terminal.draw(|frame| draw(curves, repetition, frame.area(), frame.buffer_mut()));
            }
            Progress::Repetition(repetition) => {
                self.repetition = repetition.number.saturating_add(1);
                self.curves.iter_mut().for_each(|curve| curve.points.clear());
            }
            _ => {}
        }
    }
}

impl Drop for Plot {
    fn drop(&mut self) {
        let _ = self.terminal.show_cursor();
        eprintln!();
    }
}

fn draw(curves: &[Curve; 2], repetition: u32, area: Rect, buffer: &mut ratatui::buffer::Buffer) {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let most = points().fold(1e-3, |most: f64, point| most.max(point.1)) * 1.1;
    let (begin, end) = points()
        .fold((f64::MAX, 1.0), |(begin, end): (f64, f64), point| (begin.min(point.0), end.max(point.0)));
    let begin = begin.min(end - 1.0).max(0.0);
    // Curves that are always zero are left out.
    let shown = curves.iter().filter(|curve| curve.points.iter().any(|point| point.1 > 0.0));
    let sets = shown.map(|curve| {
        let title = format!("{} {:.1}", curve.name, curve.points.last().map_or(0.0, |point| point.1));
        Dataset::default()
            .name(title)
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(Style::default().fg(curve.color))
            .data(&curve.points)
    });
    let labels = |values: [f64; 3]| values.map(|value| Line::from(format!("{value:.1}"))).to_vec();
    let chart = Chart::new(sets.collect())
        .legend_position(Some(LegendPosition::BottomRight))
        .hidden_legend_constraints((Constraint::Percentage(100), Constraint::Percentage(100)))
        .block(Block::default().title(format!("repetition {repetition}")))
        .x_axis(Axis::default().title("s").bounds([begin, end]).labels(labels([
            begin,
            (begin + end) / 2.0,
            end,
        ])))
        .y_axis(Axis::default().bounds([0.0, most]).labels(labels([0.0, most / 2.0, most])));
    ratatui::widgets::Widget::render(chart, area, buffer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_its_axes_and_its_name() {
        let points = (0..30).map(|at| (f64::from(at), 90.0 + f64::from(at % 3))).collect();
        let curves = [
            Curve { name: "sent, Mbit/s", color: Color::Blue, points },
            Curve { name: "received, Mbit/s", color: Color::Yellow, points: vec![(0.0, 0.0)] },
        ];
        let area = Rect::new(0, 0, 80, LINES);
        let mut buffer = ratatui::buffer::Buffer::empty(area);
        draw(&curves, 2, area, &mut buffer);
        let text: String = buffer.content().iter().map(|cell| cell.symbol()).collect();
        assert!(text.contains("repetition 2") && text.contains("sent, Mbit/s 92.0"), "{text}");
        assert!(text.contains("101.2") && !text.contains("received"), "{text}");
    }
}
