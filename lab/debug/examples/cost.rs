//! What a step and a step back cost, printed: the median of nine, with the least and the most.

use inhost_debug::Session;
use std::time::Instant;

fn main() -> Result<(), String> {
    let mut steps_us: Vec<f64> = Vec::new();
    let (mut short_ms, mut long_ms) = (Vec::new(), Vec::new());
    for _ in 0..9 {
        let mut session = Session::new()?;
        for line in ["connect", "step 3", "read all", "send 20M"] {
            session.line(line);
        }
        session.line("step 100");
        short_ms.push(timed(|| session.line("undo")) * 1e3);
        steps_us.push(timed(|| session.line("step 2000")) * 1e6 / 2000.0);
        long_ms.push(timed(|| session.line("undo")) * 1e3);
    }
    show("a step", "us", &mut steps_us);
    show("a step back from step 100", "ms", &mut short_ms);
    show("a step back from step 2100", "ms", &mut long_ms);
    Ok(())
}

/// Seconds that it takes.
#[allow(clippy::disallowed_methods)] // A measurement.
fn timed<T>(act: impl FnOnce() -> T) -> f64 {
    let began = Instant::now();
    act();
    began.elapsed().as_secs_f64()
}

fn show(what: &str, unit: &str, figures: &mut [f64]) {
    figures.sort_by(f64::total_cmp);
    let (least, middle, most) = (figures[0], figures[figures.len() / 2], figures[figures.len() - 1]);
    println!("{what}: {middle:.1} {unit} ({least:.1} to {most:.1})");
}
