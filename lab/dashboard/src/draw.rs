//! Histograms as a picture.

use inhost_explain::figures;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde_json::Value;

const WIDTH: u32 = 520;
const HEIGHT: u32 = 210;
const COLUMNS: usize = 2;
/// Margins of a plot: left and right, above, below.
const SIDE: i32 = 14;
const ABOVE: i32 = 62;
const BELOW: i32 = 24;
/// The width of the bar of zeros.
const ZEROS: i32 = 30;
/// Pixels between two labels of the axis at least.
const APART: i32 = 64;
const TEXT: RGBColor = RGBColor(0x22, 0x22, 0x22);
const MUTED: RGBColor = RGBColor(0x66, 0x66, 0x66);
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
const BAR: RGBColor = RGBColor(0x56, 0x8e, 0xb8);
const PERCENTILE: RGBColor = RGBColor(0xd5, 0x30, 0x00);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Draws histograms, as [`Views`](crate::Views) has them at `histograms`, as SVG. Both scales are logarithmic.
pub fn draw_histograms(of: &Value) -> String {
    let all = of["histograms"].as_array().map_or(&[][..], Vec::as_slice);
    let rows = all.len().div_ceil(COLUMNS).max(1);
    let mut text = String::new();
    {
        let size = (WIDTH * COLUMNS as u32, HEIGHT * rows as u32);
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        // A string takes everything.
        let _ = area.fill(&WHITE).and_then(|()| {
            let panels = area.split_evenly((rows, COLUMNS));
            all.iter().zip(&panels).try_for_each(|(of, panel)| one(panel, of))?;
            area.present()
        });
    }
    text
}

/// Where values stand on the axis.
struct Scale {
    from: f64,
    to: f64,
    left: i32,
    width: i32,
}

impl Scale {
    fn x(&self, value: u64) -> i32 {
        if value == 0 {
            return SIDE;
        }
        let share = (value as f64 / self.from).ln() / (self.to / self.from).ln();
        self.left + (share.clamp(0.0, 1.0) * f64::from(self.width)) as i32
    }
}

fn one(area: &Area<'_>, of: &Value) -> Drawn {
    let words = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let shown = |value: u64| if of["unit"] == "ns" { figures::time(value) } else { figures::bytes(value) };
    let font = |size: u32, colour: RGBColor, h: HPos| {
        ("sans-serif", size).into_font().color(&colour).pos(Pos::new(h, VPos::Bottom))
    };
    let count = number(&of["count"]);
    let title = format!("{}, {count} measured", words(&of["name"]));
    area.draw(&Text::new(title, (SIDE, 20), font(14, TEXT, HPos::Left)))?;
    area.draw(&Text::new(words(&of["about"]), (SIDE, 36), font(11, MUTED, HPos::Left)))?;
    let buckets: Vec<[u64; 3]> = of["buckets"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|of| [0, 1, 2].map(|at| number(&of[at])))
        .collect();
    let foot = HEIGHT as i32 - BELOW;
    let Some([.., most]) = buckets.iter().max_by_key(|[.., count]| *count) else { return Ok(()) };
    let has_zeros = buckets[0][1] <= 1;
    let left = SIDE + if has_zeros { ZEROS } else { 0 };
    let above_zero = || buckets.iter().filter(|[_, to, _]| *to > 1);
    let scale = Scale {
        from: above_zero().map(|[from, ..]| *from).next().unwrap_or(1) as f64,
        to: above_zero().map(|[_, to, _]| *to).next_back().unwrap_or(2) as f64,
        left,
        width: WIDTH as i32 - SIDE - left,
    };
    // Whole steps of the unit: powers of two for bytes, of ten for times.
    let base: f64 = if of["unit"] == "bytes" { 2.0 } else { 10.0 };
    let (mut value, mut free) = (base.powf(scale.from.log(base).ceil()), left);
    while value <= scale.to * 1.001 {
        let x = scale.x(value as u64);
        if x >= free {
            area.draw(&PathElement::new([(x, ABOVE), (x, foot)], GRID))?;
            let at = if x + 30 > WIDTH as i32 { HPos::Right } else { HPos::Center };
            area.draw(&Text::new(shown(value as u64), (x, HEIGHT as i32 - 6), font(10, MUTED, at)))?;
            free = x + APART;
        }
        value *= base;
    }
    // One is seen, too.
    let height =
        |count: u64| ((1.0 + count as f64).ln() / (1.0 + *most as f64).ln() * f64::from(foot - ABOVE)) as i32;
    for [from, to, count] in &buckets {
        let ends = if *to <= 1 { (SIDE, SIDE + ZEROS - 8) } else { (scale.x(*from), scale.x(*to) - 1) };
        area.draw(&Rectangle::new([(ends.0, foot - height(*count)), (ends.1, foot)], BAR.filled()))?;
    }
    if has_zeros {
        area.draw(&Text::new("0", (SIDE + 8, HEIGHT as i32 - 6), font(10, MUTED, HPos::Center)))?;
    }
    let mut free = i32::MIN;
    for of in of["percentiles"].as_array().into_iter().flatten() {
        let (share, value) = (&of[0], number(&of[1]));
        let x = scale.x(value);
        area.draw(&PathElement::new([(x, ABOVE), (x, foot)], PERCENTILE))?;
        // Two that stand together have one label.
        if x >= free {
            let at = if x + 60 > WIDTH as i32 { HPos::Right } else { HPos::Left };
            let share = share.to_string();
            let label = format!("{} %: {}", share.trim_end_matches(".0"), shown(value));
            area.draw(&Text::new(label, (x, ABOVE - 2), font(10, PERCENTILE, at)))?;
            free = x + APART;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_has_its_bars_and_says_what_it_is() {
        let of = json!({"histograms": [
            {"name": "round trip", "about": "to its acknowledgment", "unit": "ns", "count": 30,
                "percentiles": [[50.0, 900], [90.0, 100_000]], "buckets": [[512, 1024, 20], [65_536, 131_072, 10]]},
            {"name": "transmit queue", "about": "what waits", "unit": "bytes", "count": 3, "percentiles": [],
                "buckets": [[0, 1, 3]]},
            {"name": "segment size", "about": "data", "unit": "bytes", "count": 0, "percentiles": [], "buckets": []},
        ]});
        let text = draw_histograms(&of);
        assert_eq!(text.matches("fill=\"#568EB8\"").count(), 3, "{text}");
        for words in [
            "round trip, 30 measured",
            "to its acknowledgment",
            "50 %: 900 ns",
            "90 %: 100 us",
            "segment size, 0",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(draw_histograms(&json!({})).starts_with("<svg"));
    }
}
