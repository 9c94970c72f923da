//! A picture of the records over time: how many connections ended, and by which causes the time of their sending sides went.

use inhost_event::SendCause;
use inhost_explain::draw::of_send_cause;
use jiff::Timestamp;
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::{Span, Sums};

const WIDTH: u32 = 1000;
const HEIGHTS: [u32; 2] = [200, 300];
const LEGEND_ROW: u32 = 18;
const LEGEND_COLUMNS: u32 = 4;
const TEXT: RGBColor = RGBColor(0x22, 0x22, 0x22);
const ENDED: RGBColor = RGBColor(0x56, 0x8e, 0xb8);
const FAILED: RGBColor = RGBColor(0xd5, 0x30, 0x00);
/// Steps of an axis of time, in minutes.
const STEPS: [u64; 10] = [1, 5, 15, 30, 60, 180, 360, 720, 1440, 10_080];
/// Labels of the axis at most.
const LABELS: u64 = 10;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Draws `spans`, from `since_ms` to `until_ms`, as SVG. Times are UTC.
pub fn draw(spans: &[Span], since_ms: u64, until_ms: u64) -> String {
    let causes = waits(spans);
    let rows = (causes.len() as u32).div_ceil(LEGEND_COLUMNS);
    let height = HEIGHTS[0] + HEIGHTS[1] + rows * LEGEND_ROW + 10;
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        let over = Over { spans, since_ms, until_ms: until_ms.max(since_ms + 60_000) };
        // A string takes everything.
        let _ = over.draw(&area, &causes).and_then(|()| area.present());
    }
    text
}

/// What was waited for, the most first: idle and closed sides wait for nothing.
fn waits(spans: &[Span]) -> Vec<SendCause> {
    let time = |cause: SendCause| spans.iter().map(|span| of(&span.sums, cause)).sum::<f64>();
    let aside = [SendCause::ApplicationIdle, SendCause::Closed];
    let all = SendCause::ALL.iter().copied().filter(|cause| !aside.contains(cause));
    let mut causes: Vec<(SendCause, f64)> =
        all.map(|cause| (cause, time(cause))).filter(|(_, time)| *time > 0.0).collect();
    causes.sort_by(|one, other| other.1.total_cmp(&one.1));
    causes.into_iter().map(|(cause, _)| cause).collect()
}

fn of(sums: &Sums, cause: SendCause) -> f64 {
    sums.send_ns[cause as usize] as f64
}

fn colour(cause: SendCause) -> RGBColor {
    let [red, green, blue] = of_send_cause(cause);
    RGBColor(red, green, blue)
}

struct Over<'a> {
    spans: &'a [Span],
    since_ms: u64,
    until_ms: u64,
}

impl Over<'_> {
    fn draw(&self, area: &Area<'_>, causes: &[SendCause]) -> Drawn {
        area.fill(&WHITE)?;
        let (top, rest) = area.split_vertically(HEIGHTS[0]);
        let (middle, legend) = rest.split_vertically(HEIGHTS[1]);
        self.panel(&top, "connections that ended (red: with an error)", |span| {
            let Sums { connections, failed, .. } = span.sums;
            vec![(failed as f64, FAILED), (connections.saturating_sub(failed) as f64, ENDED)]
        })?;
        let waited = |span: &Span| {
            let seconds = |cause: &SendCause| (of(&span.sums, *cause) / 1e9, colour(*cause));
            causes.iter().map(seconds).collect()
        };
        self.panel(&middle, "what they waited for, in seconds of all of them", waited)?;
        let font = ("sans-serif", 13).into_font().color(&TEXT);
        for (place, cause) in causes.iter().enumerate() {
            let column = place as i32 % LEGEND_COLUMNS as i32;
            let (x, y) = (66 + column * 230, place as i32 / LEGEND_COLUMNS as i32 * LEGEND_ROW as i32);
            legend.draw(&Rectangle::new([(x, y + 2), (x + 12, y + 14)], colour(*cause).filled()))?;
            legend.draw(&Text::new(cause.text(), (x + 18, y + 1), font.clone()))?;
        }
        Ok(())
    }
    /// A bar for each span, of parts that stand on each other.
    fn panel(&self, area: &Area<'_>, title: &str, parts: impl Fn(&Span) -> Vec<(f64, RGBColor)>) -> Drawn {
        let height = |span: &Span| parts(span).iter().map(|(part, _)| part).sum::<f64>();
        let most = self.spans.iter().map(height).fold(0.0, f64::max).max(1.0);
        let (from, to) = (self.since_ms as f64, self.until_ms as f64);
        let mut chart = ChartBuilder::on(area)
            .caption(title, ("sans-serif", 14).into_font().color(&TEXT))
            .margin_right(16)
            .margin_top(4)
            .x_label_area_size(24)
            .y_label_area_size(66)
            .build_cartesian_2d(from..to, 0.0..most * 1.05)?;
        let label = |value: &f64| clock(*value as u64, self.until_ms - self.since_ms);
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .x_labels(LABELS as usize)
            .x_label_formatter(&label)
            .y_label_formatter(&|value: &f64| format!("{value}"))
            .label_style(("sans-serif", 12).into_font().color(&TEXT))
            .draw()?;
        for span in self.spans {
            let start = span.from_unix_ms.max(self.since_ms);
            let end = (span.from_unix_ms + span.length_ms).min(self.until_ms);
            let mut below = 0.0;
            for (part, colour) in parts(span).into_iter().filter(|(part, _)| *part > 0.0) {
                let corners = [(start as f64, below), (end as f64, below + part)];
                chart.draw_series([Rectangle::new(corners, colour.filled())])?;
                below += part;
            }
        }
        Ok(())
    }
}

/// A length for spans of so much time: some eighty bars.
pub fn span_length_ms(length_ms: u64) -> u64 {
    let minutes = length_ms / 60_000 / 80;
    STEPS.iter().copied().find(|step| *step >= minutes).unwrap_or(STEPS[STEPS.len() - 1]) * 60_000
}

/// A time of day, with the day where the picture has several.
fn clock(unix_ms: u64, length_ms: u64) -> String {
    let format = if length_ms <= 24 * 3_600_000 { "%H:%M" } else { "%m-%d %H:%M" };
    let time = i64::try_from(unix_ms).ok().and_then(|unix_ms| Timestamp::from_millisecond(unix_ms).ok());
    time.map_or_else(String::new, |time| time.strftime(format).to_string())
}
