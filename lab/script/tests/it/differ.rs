//! A slice of the differential judge; `make differ` plays the long run.

use inhost_script::differ::{self, Classes, Plan};
use inhost_script::language::{Presence, Step, line_of, parse_text};
use inhost_script::suite;
use std::path::Path;
use std::time::Duration;

/// Exchanges of this slice, and the time that it may take.
const SEEDS: u64 = 60;
const TIME: Duration = Duration::from_secs(20);
/// Exchanges at a time: few, for other tests run beside.
const JOBS: usize = 16;
/// Fewer than this in the time prove nothing.
const LEAST: u64 = 20;

#[test]
fn the_kernel_and_the_linux_profile_differ_in_known_classes_only() {
    if !inhost_interop::own_network() {
        return;
    }
    let plan = Plan {
        first: 0,
        count: SEEDS,
        every: 1,
        jobs: JOBS,
        time: Some(TIME),
        without: None,
        as_drawn: false,
    };
    let report = differ::judge(&Classes::committed().unwrap(), plan).unwrap();
    assert!(report.is_clean(), "\n{}", report.text());
    assert!(report.played >= LEAST, "too slow to prove anything: {}", report.summary());
}

/// What the judge prints can be read again: each step of every script is written as it was read.
#[test]
fn steps_are_written_as_they_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut steps = 0;
    for file in suite::find(&[folder]).unwrap() {
        for line in suite::read(&file).unwrap().lines {
            // Their times stand before them, and are not part of the step.
            if line.text.starts_with("wait") || line.text.starts_with("skip") {
                continue;
            }
            let text = line_of(&line.step);
            let again = parse_text("t.script", &format!("# p\n{text}")).unwrap();
            assert_eq!(again.lines.len(), 1, "{text}");
            assert_eq!(again.lines[0].step, line.step, "{} became {text}", line.text);
            steps += 1;
        }
    }
    assert!(steps > 1000, "{steps}");
}

/// A class names the script or the test that shows it, and there is such a one.
#[test]
fn what_a_class_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for class in Classes::committed().unwrap().all() {
        for shown in class.shown.split(", ").filter(|shown| !shown.is_empty()) {
            let is_there = match shown.split_once(' ') {
                None => root.join("lab/script/scripts").join(shown).with_extension("script").is_file(),
                Some((krate, test)) => {
                    let function = format!("fn {}(", test.rsplit("::").next().unwrap());
                    let folder = krate.trim_start_matches("inhost-");
                    ["core", "host", "lab"].iter().any(|part| names(&root.join(part).join(folder), &function))
                }
            };
            assert!(is_there, "`{}` is shown by `{shown}`, which is not there", class.name);
        }
    }
}
/// Whether a source file below `folder` has this text.
fn names(folder: &Path, text: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.map(|entry| entry.unwrap().path()).any(|path| match path.is_dir() {
        true => names(&path, text),
        false => {
            path.extension().is_some_and(|extension| extension == "rs")
                && std::fs::read_to_string(&path).unwrap().contains(text)
        }
    })
}

/// Linux takes the socket's own size of segments for what the peer does not say (RFC 9293 MUST-15): that is not drawn, nor
/// in an answer that comes ahead of the proper one.
#[test]
fn no_syn_leaves_out_its_size_where_the_socket_has_one_of_its_own() {
    let exchange = differ::draw(3_019_010).unwrap().unwrap();
    assert!(exchange.steps.iter().any(|timed| timed.step.sets("mss")), "another seed is needed");
    let sizes = exchange.steps.iter().filter_map(|timed| match &timed.step {
        Step::In(segment) if segment.flags.syn() => Some(&segment.options.mss),
        _ => None,
    });
    let sizes: Vec<_> = sizes.collect();
    assert!(sizes.len() > 1 && !sizes.contains(&&Presence::Unsaid), "{sizes:?}");
}
