//! Pictures as SVG: bars by segment size (VPI's figures 14 and 15), a flame graph, and the time-line (figure 13).

use crate::report::{Report, TransitionSeen};
use inhost_event::Layer;
use std::fmt::Write;

/// Width of a picture.
const WIDTH: f64 = 960.0;
/// Room on the left for labels.
const LEFT: f64 = 110.0;
/// Room on the right.
const RIGHT: f64 = 20.0;
/// Height of a row of a time-line, and of a level of a flame graph.
const ROW: f64 = 22.0;
/// Height of the bars.
const BARS: f64 = 300.0;
/// Columns of a legend.
const LEGEND_COLUMNS: usize = 5;
/// A flame narrower than this has no text, in pixels for a letter.
const LETTER: f64 = 7.0;
/// The least width of what is drawn in a time-line and in a flame graph.
const LEAST_WIDTH: f64 = 0.2;

/// A stack of parts over one label.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Below it.
    pub label: String,
    /// Its parts from the bottom up, in nanoseconds.
    pub parts: Vec<(Layer, f64)>,
}

/// The transitions of one host.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Above it.
    pub title: &'a str,
    /// Its transitions, the oldest first.
    pub transitions: &'a [TransitionSeen],
}

/// The states of a time-line, from the bottom up as VPI has them, each with its layers.
const STATES: [(&str, &[Layer]); 9] = [
    ("idle", &[Layer::Idle]),
    ("loop", &[Layer::Loop, Layer::Instrument]),
    ("link", &[Layer::Link]),
    ("recorder", &[Layer::Recorder]),
    ("IP", &[Layer::Ip]),
    ("TCP, UDP", &[Layer::Tcp, Layer::Udp, Layer::Timers]),
    ("copy, checksum", &[Layer::Write, Layer::WriteAndSum, Layer::Read, Layer::Checksum]),
    ("sockets", &[Layer::Sockets]),
    ("application", &[Layer::Application]),
];

/// A layer's colour.
fn colour(layer: Layer) -> &'static str {
    match layer {
        Layer::Link => "#0072b2",
        Layer::Ip => "#56b4e9",
        Layer::Tcp => "#009e73",
        Layer::Udp => "#7fcdbb",
        Layer::Checksum => "#e69f00",
        Layer::Write => "#d55e00",
        Layer::WriteAndSum => "#b2450a",
        Layer::Read => "#f4a582",
        Layer::Timers => "#cc79a7",
        Layer::Sockets => "#8073ac",
        Layer::Application => "#f0e442",
        Layer::Recorder => "#b3a06a",
        Layer::Loop => "#999999",
        Layer::Idle => "#dddddd",
        Layer::Instrument => "#555555",
    }
}

/// An SVG document that is written.
struct Picture(String);

impl Picture {
    fn new(height: f64, title: &str) -> Picture {
        let mut picture = Picture(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\"><rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        ));
        let _ = writeln!(
            picture.0,
            "<text x=\"{}\" y=\"24\" font-size=\"16\" text-anchor=\"middle\">{}</text>",
            WIDTH / 2.0,
            escaped(title)
        );
        picture
    }
    fn rectangle(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str, hint: &str) {
        let hint = if hint.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(hint)) };
        let _ = writeln!(
            self.0,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{fill}\">{hint}</rect>"
        );
    }
    fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escaped(text)
        );
    }
    fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), stroke: &str) {
        let _ = writeln!(
            self.0,
            "<line x1=\"{x1:.2}\" y1=\"{y1:.2}\" x2=\"{x2:.2}\" y2=\"{y2:.2}\" stroke=\"{stroke}\"/>"
        );
    }
    fn legend(&mut self, layers: &[Layer], top: f64) {
        let width = (WIDTH - LEFT - RIGHT) / LEGEND_COLUMNS as f64;
        for (number, layer) in layers.iter().enumerate() {
            let x = LEFT + (number % LEGEND_COLUMNS) as f64 * width;
            let y = top + (number / LEGEND_COLUMNS) as f64 * 18.0;
            self.rectangle((x, y), (12.0, 12.0), colour(*layer), "");
            self.text((x + 17.0, y + 10.5), "start", layer.text());
        }
    }
    fn end(mut self) -> String {
        self.0 += "</svg>\n";
        self.0
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn legend_height(layers: usize) -> f64 {
    layers.div_ceil(LEGEND_COLUMNS) as f64 * 18.0
}

/// A step of an axis that has at most eight of them up to `most`: 1, 2 or 5 with zeros.
fn step(most: f64) -> f64 {
    let rough = (most / 8.0).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
    steps.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power)
}

/// Stacked bars: nanoseconds by layer.
pub fn bars(title: &str, unit: &str, bars: &[Bar]) -> String {
    let used =
        |layer: &Layer| bars.iter().flat_map(|bar| &bar.parts).any(|part| part.0 == *layer && part.1 > 0.0);
    let layers: Vec<Layer> = Layer::ALL.into_iter().filter(used).collect();
    let (top, foot) = (40.0 + legend_height(layers.len()) + 14.0, 46.0);
    let mut picture = Picture::new(top + BARS + foot, title);
    picture.legend(&layers, 38.0);
    let total = |bar: &Bar| bar.parts.iter().map(|(_, ns)| ns).sum::<f64>();
    let step = step(bars.iter().map(total).fold(1.0, f64::max));
    let most = (bars.iter().map(total).fold(1.0, f64::max) / step).ceil() * step;
    let y_of = |ns: f64| top + BARS - ns / most * BARS;
    let mut mark = 0.0;
    while mark <= most + step / 2.0 {
        picture.line((LEFT, y_of(mark)), (WIDTH - RIGHT, y_of(mark)), "#e5e5e5");
        picture.text((LEFT - 8.0, y_of(mark) + 4.0), "end", &format!("{mark:.0}"));
        mark += step;
    }
    picture.text((LEFT - 8.0, top - 10.0), "end", unit);
    let room = (WIDTH - LEFT - RIGHT) / bars.len().max(1) as f64;
    for (number, bar) in bars.iter().enumerate() {
        let (x, width) = (LEFT + (number as f64 + 0.2) * room, room * 0.6);
        let mut below = 0.0;
        for layer in &layers {
            let ns: f64 = bar.parts.iter().filter(|part| part.0 == *layer).map(|part| part.1).sum();
            let hint = format!("{}: {ns:.0} ns, {:.0} %", layer.text(), 100.0 * ns / total(bar).max(1.0));
            let height = ns / most * BARS;
            picture.rectangle((x, y_of(below) - height), (width, height), colour(*layer), &hint);
            below += ns;
        }
        picture.text((x + width / 2.0, y_of(below) - 5.0), "middle", &format!("{below:.0}"));
        picture.text((x + width / 2.0, top + BARS + 18.0), "middle", &bar.label);
    }
    picture.line((LEFT, top + BARS), (WIDTH - RIGHT, top + BARS), "#222222");
    picture.end()
}

/// The bars of a report: nanoseconds a segment by layer, for each direction and size. The host's sleep is left out.
pub fn segments(title: &str, report: &Report) -> String {
    let bar = |row: &crate::SegmentTime| {
        let part = |layer: Layer| {
            let ns = row.layers.get(layer.text()).copied().unwrap_or(0);
            (layer, ns as f64 / row.segments.max(1) as f64)
        };
        let shown = Layer::ALL.into_iter().filter(|layer| *layer != Layer::Instrument);
        Bar { label: format!("{} {}", row.direction, row.size), parts: shown.map(part).collect() }
    };
    let all: Vec<Bar> = report.segments.iter().map(bar).collect();
    bars(title, "ns a segment", &all)
}

/// A node of a flame graph.
struct Flame<'a> {
    word: &'a str,
    own_ns: u64,
    inner: Vec<Flame<'a>>,
}

impl<'a> Flame<'a> {
    fn add(&mut self, words: &[&'a str], ns: u64) {
        let Some((word, rest)) = words.split_first() else {
            self.own_ns += ns;
            return;
        };
        let place = self.inner.iter().position(|flame| flame.word == *word).unwrap_or_else(|| {
            self.inner.push(Flame { word, own_ns: 0, inner: Vec::new() });
            self.inner.len() - 1
        });
        self.inner[place].add(rest, ns);
    }
    fn ns(&self) -> u64 {
        self.own_ns + self.inner.iter().map(Flame::ns).sum::<u64>()
    }
    fn depth(&self) -> usize {
        1 + self.inner.iter().map(Flame::depth).max().unwrap_or(0)
    }
}

/// A flame graph: each layer as wide as its time, upon that around it. The host's sleep is left out.
pub fn flame(title: &str, report: &Report) -> String {
    let mut root = Flame { word: "busy", own_ns: 0, inner: Vec::new() };
    for stack in &report.stacks {
        let words: Vec<&str> = stack.stack.split(';').collect();
        if !words.contains(&Layer::Idle.text()) {
            root.add(&words, stack.ns);
        }
    }
    let depth = root.depth();
    let mut picture = Picture::new(44.0 + depth as f64 * ROW + 10.0, title);
    let scale = (WIDTH - 2.0 * RIGHT) / root.ns().max(1) as f64;
    draw_flame(&mut picture, &root, RIGHT, 0, (depth, scale, root.ns().max(1)));
    picture.end()
}

fn draw_flame(picture: &mut Picture, flame: &Flame<'_>, x: f64, level: usize, of: (usize, f64, u64)) {
    let (depth, scale, all_ns) = of;
    let width = flame.ns() as f64 * scale;
    if width < LEAST_WIDTH {
        return;
    }
    let y = 44.0 + (depth - 1 - level) as f64 * ROW;
    let layer = Layer::ALL.into_iter().find(|layer| layer.text() == flame.word);
    let share = 100.0 * flame.ns() as f64 / all_ns as f64;
    let hint = format!("{}: {} ns, {share:.1} %", flame.word, flame.ns());
    picture.rectangle(
        (x, y),
        ((width - 0.5).max(LEAST_WIDTH), ROW - 1.0),
        layer.map_or("#c9c9c9", colour),
        &hint,
    );
    let label = format!("{} {share:.0} %", flame.word);
    if label.len() as f64 * LETTER < width {
        picture.text((x + 5.0, y + 15.0), "start", &label);
    }
    let mut inner_x = x;
    for inner in &flame.inner {
        draw_flame(picture, inner, inner_x, level + 1, of);
        inner_x += inner.ns() as f64 * scale;
    }
}

/// A time-line: states down, time across, a host below the other. Triangles are segments: those that came in point up, and
/// those that left point down. Only what lies between the two instants is drawn.
pub fn time_line(title: &str, lines: &[Line<'_>], from_ns: u64, to_ns: u64) -> String {
    let span = to_ns.saturating_sub(from_ns).max(1) as f64;
    let x_of = |at: u64| LEFT + (at.saturating_sub(from_ns)) as f64 / span * (WIDTH - LEFT - RIGHT);
    let panel = 26.0 + STATES.len() as f64 * ROW + 22.0;
    let mut picture = Picture::new(40.0 + lines.len() as f64 * panel + 34.0, title);
    for (number, line) in lines.iter().enumerate() {
        let top = 40.0 + number as f64 * panel + 20.0;
        picture.text((LEFT, top - 4.0), "start", line.title);
        let y_of = |state: usize| top + (STATES.len() - 1 - state) as f64 * ROW;
        for (state, (name, _)) in STATES.iter().enumerate() {
            picture.line((LEFT, y_of(state) + ROW), (WIDTH - RIGHT, y_of(state) + ROW), "#eeeeee");
            picture.text((LEFT - 8.0, y_of(state) + 15.0), "end", name);
        }
        let mut layers = line
            .transitions
            .iter()
            .filter_map(|seen| {
                let layer = seen.layer.as_deref()?;
                Some((seen.at_ns, Layer::ALL.into_iter().find(|known| known.text() == layer)?))
            })
            .peekable();
        while let Some((at, layer)) = layers.next() {
            // How long the last one stayed in force is not known.
            let until = layers.peek().map_or(at, |next| next.0);
            if until <= from_ns || at >= to_ns || until <= at {
                continue;
            }
            let Some(state) = STATES.iter().position(|(_, of)| of.contains(&layer)) else { continue };
            let (x, end) = (x_of(at.max(from_ns)), x_of(until.min(to_ns)));
            let hint = format!("{}: {} ns", layer.text(), until - at);
            let size = ((end - x).max(LEAST_WIDTH), ROW - 4.0);
            picture.rectangle((x, y_of(state) + 2.0), size, colour(layer), &hint);
        }
        for seen in line.transitions.iter().filter(|seen| (from_ns..=to_ns).contains(&seen.at_ns)) {
            let (Some(direction), Some(bytes)) = (&seen.segment, seen.payload_bytes) else { continue };
            let (x, y) = (x_of(seen.at_ns), top + STATES.len() as f64 * ROW);
            let (tip, foot) = if direction == "sent" { (y + 12.0, y + 2.0) } else { (y + 2.0, y + 12.0) };
            let fill = if bytes > 0 { "#222222" } else { "#aaaaaa" };
            let _ = writeln!(
                picture.0,
                "<path d=\"M{:.2} {foot:.2} L{:.2} {foot:.2} L{x:.2} {tip:.2} Z\" fill=\"{fill}\"><title>{direction}: {bytes} \
                 bytes</title></path>",
                x - 4.0,
                x + 4.0
            );
        }
    }
    let bottom = 40.0 + lines.len() as f64 * panel + 4.0;
    picture.line((LEFT, bottom), (WIDTH - RIGHT, bottom), "#222222");
    let step = step(span / 1e3);
    let mut mark = 0.0;
    while mark <= span / 1e3 {
        let x = LEFT + mark * 1e3 / span * (WIDTH - LEFT - RIGHT);
        picture.line((x, bottom), (x, bottom + 4.0), "#222222");
        picture.text((x, bottom + 18.0), "middle", &format!("{}", (mark * 1e3).round() / 1e3));
        mark += step;
    }
    picture.text((LEFT - 8.0, bottom + 18.0), "end", "microseconds");
    picture.end()
}
