//! Integration tests, one program for all: a program costs more to link than to run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use inhost_lab::EXPERIMENTS;
use inhost_lab::compare::{Verdict, results, shapes};
use inhost_lab::experiment::{Experiment, Kind, Set};
use inhost_lab::fit::NoFit;
use inhost_lab::kinds::measure;
use inhost_lab::report::{Chapter, Made, svg, write};
use inhost_lab::runner::{Progress, RunOptions, Summary, run};
use inhost_lab::store::{PROGRAM, Row, Store};

fn experiments() -> Vec<Experiment> {
    EXPERIMENTS.iter().map(|(name, text)| Experiment::from_toml(name, text).unwrap()).collect()
}

/// A folder that is removed with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("inhost-lab-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn all(experiment: &Experiment, store: &Store) -> Summary {
    run(experiment, store, &RunOptions::default(), &AtomicBool::new(false), &mut |_| {}).unwrap()
}

fn csv(experiment: &Experiment, store: &Store) -> String {
    let mut text = String::new();
    let chapter = Chapter::new(experiment.clone(), store).unwrap();
    chapter.csv(store, &mut |line| text.push_str(line)).unwrap();
    text
}

/// Each plot shows something, and no text of it is cut.
fn has_pictures(chapter: &Chapter) {
    assert_eq!(chapter.strange_names(), [""; 0], "{}", chapter.experiment.name);
    for number in 0..chapter.experiment.plot.len() {
        let picture = svg(chapter, number).unwrap_or_else(|why| panic!("{}: {why}", chapter.experiment.name));
        assert!(!picture.contains('…'), "{}: {picture}", chapter.experiment.name);
    }
}

/// M/M/1/K with `points` loads and `seeds` seeds.
fn queues(points: usize, seeds: usize) -> Experiment {
    let loads: Vec<String> = (1..=points).map(|load| (load as f64 * 0.1).to_string()).collect();
    let text = format!(
        "title = 'queues'\nsource = 'none'\nkind = 'machines'\nseeds = {seeds}\n[setup]\nmachine = {{ kind = 'ideal' }}\n\
         link = {{ kind = 'none' }}\nprogram = {{ kind = 'queue', arrivals_per_s = 1, services_per_s = 1000, places = 6, packets = 20 }}\n\
         [[vary]]\n'program.arrivals_per_s' = [{}]\n",
        loads.join(", ")
    );
    Experiment::from_toml("queues", &text).unwrap()
}

#[test]
fn the_list_has_every_file_of_the_folder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    let listed: BTreeSet<String> = EXPERIMENTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(files, listed, "experiments/list.in");
    assert!(experiments().iter().all(|of| !of.source.is_empty() && !of.about.trim().is_empty()));
}

#[test]
fn every_judged_figure_of_the_papers_holds_and_the_same_seed_gives_the_same_bytes() {
    let (one, other) = (Store::in_memory().unwrap(), Store::in_memory().unwrap());
    let mut judged = 0;
    for experiment in experiments().iter().filter(|of| of.set == Set::Papers) {
        assert_eq!(all(experiment, &one).failed, 0, "{}", experiment.name);
        all(experiment, &other);
        assert_eq!(csv(experiment, &one), csv(experiment, &other), "{}", experiment.name);
        let chapter = Chapter::new(experiment.clone(), &one).unwrap();
        assert_eq!(
            chapter.count(Verdict::Missed) + chapter.count(Verdict::Missing),
            0,
            "{}",
            chapter.compared_text()
        );
        assert_eq!(chapter.unfitted(), 0, "{}", chapter.compared_text());
        has_pictures(&chapter);
        judged += chapter.count(Verdict::Holds);
    }
    assert!(judged > 40, "{judged} figures were judged");
}

#[test]
fn every_classic_result_has_the_shape_that_its_source_gives() {
    let store = Store::in_memory().unwrap();
    for experiment in experiments().iter().filter(|of| matches!(of.set, Set::Classic | Set::Own)) {
        all(experiment, &store);
        let chapter = Chapter::new(experiment.clone(), &store).unwrap();
        assert_eq!(
            chapter.count(Verdict::Missed) + chapter.count(Verdict::Missing),
            0,
            "{}",
            chapter.compared_text()
        );
        has_pictures(&chapter);
    }
}

#[test]
fn a_sweep_that_was_interrupted_goes_on_and_ends_the_same() {
    let folder = Folder::new("resume");
    let (experiment, whole) = (queues(40, 5), Store::in_memory().unwrap());
    assert_eq!(all(&experiment, &whole), Summary { runs: 200, failed: 0, is_stopped: false });
    let path = folder.0.join("lab.sqlite");
    let (stop, over) = (AtomicBool::new(false), AtomicUsize::new(0));
    let store = Store::open(&path).unwrap();
    let first = run(&experiment, &store, &RunOptions::default(), &stop, &mut |progress| {
        if let Progress::Done(..) = progress
            && over.fetch_add(1, Ordering::Relaxed) == 20
        {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let first = first.unwrap();
    assert!(first.is_stopped && first.runs < 200, "{first:?}");
    drop(store);
    let store = Store::open(&path).unwrap();
    let mut done_before = 0;
    let second = run(&experiment, &store, &RunOptions::default(), &AtomicBool::new(false), &mut |progress| {
        if let Progress::Begins { done, .. } = progress {
            done_before = done;
        }
    });
    assert_eq!((done_before, second.unwrap().runs), (first.runs, 200 - first.runs));
    assert_eq!(csv(&experiment, &store), csv(&experiment, &whole));
}

#[test]
fn parts_of_a_sweep_are_gathered() {
    let folder = Folder::new("parts");
    let (experiment, whole) = (queues(10, 3), Store::in_memory().unwrap());
    all(&experiment, &whole);
    let gathered = Store::open(&folder.0.join("all.sqlite")).unwrap();
    for part in 0..4 {
        let path = folder.0.join(format!("{part}.sqlite"));
        let store = Store::open(&path).unwrap();
        let mut options = RunOptions::default();
        options.shard = (part, 4);
        let summary = run(&experiment, &store, &options, &AtomicBool::new(false), &mut |_| {}).unwrap();
        assert!((7..=8).contains(&summary.runs));
        drop(store);
        gathered.gather(&path).unwrap();
    }
    assert_eq!(csv(&experiment, &gathered), csv(&experiment, &whole));
}

#[test]
fn ten_thousand_points_use_all_workers() {
    let (experiment, store) = (queues(10_000, 1), Store::in_memory().unwrap());
    let mut options = RunOptions::default();
    options.workers = 2;
    let summary = run(&experiment, &store, &options, &AtomicBool::new(false), &mut |_| {}).unwrap();
    assert_eq!((summary.runs, summary.failed), (10_000, 0));
    assert_eq!(csv(&experiment, &store).lines().count(), 10_001);
}

#[test]
fn a_report_has_pages_and_curves() {
    let folder = Folder::new("report");
    let store = Store::in_memory().unwrap();
    let chapters: Vec<Chapter> = ["mit-6-4", "vpi-figure-16", "dec-table-1"]
        .iter()
        .map(|name| {
            let experiment = experiments().into_iter().find(|of| of.name == *name).unwrap();
            all(&experiment, &store);
            Chapter::new(experiment, &store).unwrap()
        })
        .collect();
    let trouble = write(&folder.0, &chapters, &Made::here("2026-11-26".into())).unwrap();
    // Without a font there are no PNGs, and that is said.
    assert!(trouble.iter().all(|why| why.contains("font")), "{trouble:?}");
    let page = std::fs::read_to_string(folder.0.join("report.html")).unwrap();
    assert!(page.contains("A character echoed between two PCs") && page.contains("<svg"), "{page}");
    assert!(page.contains(">holds</td>") && page.contains("Linux"), "{page}");
    let text = std::fs::read_to_string(folder.0.join("report.md")).unwrap();
    assert!(text.contains("![A character echoed between two PCs](mit-6-4-1.svg)"), "{text}");
    let picture = svg(&chapters[0], 0).unwrap();
    assert!(picture.contains("echo, ms") && picture.contains("the paper"), "{picture}");
}

#[test]
fn what_is_not_an_experiment_is_refused_with_its_place() {
    let whole = EXPERIMENTS.iter().find(|(name, _)| *name == "mit-6-4").unwrap().1;
    let wrong = [
        (whole.replace("kind = \"machines\"", "kind = \"magic\""), "magic"),
        (whole.replace("[[vary]]", "[[vray]]"), "vray"),
        (
            whole.replace("\"link.bits_per_second\" = \"mit.table_6_4.line_bps\"", "\"line.speed\" = [1]"),
            "line.speed",
        ),
        (
            whole.replace("\"link.bits_per_second\" = \"mit.table_6_4.line_bps\"", "a = [1]\nb = [1, 2]"),
            "same length",
        ),
        (whole.replace("mit.table_6_4.line_bps", "mit.table_6_4.lines"), "mit.table_6_4.lines"),
        (whole.replace("mit.table_6_4.measured_bps", "mit.table_6_4.line_bps"), "along"),
        ("seeds = 0\n".to_owned() + whole, "seeds"),
        (whole.replace("A character", "\\u001b[31mA character"), "title has control characters"),
        (whole.replace("title", "seeds = [\ntitle"), "line"),
    ];
    for (text, why) in wrong {
        let error = Experiment::from_toml("wrong", &text).unwrap_err().to_string();
        assert!(error.starts_with("wrong: ") && error.contains(why), "{why}: {error}");
    }
    // Any beginning of a file is an experiment or an error.
    for end in (0..whole.len()).filter(|&end| whole.is_char_boundary(end)) {
        let _ = Experiment::from_toml("cut", &whole[..end]);
    }
}

#[test]
fn the_code_of_a_crate_is_part_of_the_whole() {
    let length = |module: &str| {
        let setup = format!(
            "module = '{module}'\nmodules = {{ tcp = ['inhost_tcp'], both = ['inhost_tcp', 'inhost_ip'], none = ['x'] }}"
        );
        measure(Kind::Code, &setup.parse().unwrap(), 1)
    };
    let [all, tcp, both] = ["all", "tcp", "both"].map(|module| length(module).unwrap()["code_bytes"]);
    assert!(0.0 < tcp && tcp < both && both < all, "{tcp} {both} {all}");
    for missing in ["none", "other"] {
        assert!(length(missing).unwrap_err().to_string().contains("none of the crates"), "{missing}");
    }
}

/// An experiment on the queue with more of a file below.
fn with(more: &str) -> Result<Experiment, String> {
    let text = format!(
        "title = 't'\nsource = 's'\nkind = 'machines'\n[setup]\nmachine = {{ kind = 'ideal' }}\nlink = {{ kind = 'none' }}\n\
         program = {{ kind = 'queue', arrivals_per_s = 1, services_per_s = 10, places = 6, packets = 2000 }}\n\
         [[vary]]\n'program.arrivals_per_s' = [2, 4, 6, 8]\n{more}"
    );
    Experiment::from_toml("own", &text).map_err(|e| e.to_string())
}

#[test]
fn a_key_or_a_value_that_is_never_there_is_refused() {
    for (more, why) in [
        (
            "[[shape]]\nmeasure = 'x'\nis = 'rises'\nat = { 'program.arrivals' = 2 }",
            "program.arrivals does not vary",
        ),
        ("[[shape]]\nmeasure = 'x'\nis = 'rises'\nat = { 'program.arrivals_per_s' = [2, 3] }", "is never 3"),
        (
            "[[compare]]\nmeasure = 'x'\nvalue = 1\nshown_at = { 'program.arrivals_per_s' = [5] }",
            "is never 5",
        ),
        ("[[compare]]\nmeasure = 'x'\nvalue = []", "empty"),
        ("[[compare]]\nmeasure = 'x'\nvalue = [1, 2]", "2 values, one for each point, and 4 points"),
        ("[[compare]]\nmeasure = 'x'\nvalue = [1, 2]\nalong = [1, 3]", "is never one of the values of along"),
        ("[[compare]]\nmeasure = 'x'\npaper = 'mit.nothing'", "value = NUMBER"),
        ("[[plot]]\nx = 'a'\ny = ['b']\nby = 'load'\nx_label = ''\ny_label = ''", "load does not vary"),
        ("[[compare]]\nmeasure = 'x'", "compare x: give paper = \"PATH\" or value = NUMBER"),
        (
            "[[compare]]\nmeasure = 'x'\nvalue = 1\npaper = 'a'",
            "compare x: give paper or value, and not both",
        ),
        ("[[compare]]\nmeasure = 'x'\nvalue = nan", "compare x: value is NaN; give a finite number"),
        ("[[compare]]\nmeasure = 'x'\nvalue = inf", "value is inf"),
        ("[[compare]]\nmeasure = 'x'\nvalue = 1\ntolerance = -5", "tolerance = -5: give a number from 0 on"),
        ("[[compare]]\nmeasure = 'x'\nvalue = 1\ntolerance_percent = nan", "tolerance_percent = NaN"),
        (
            "[[compare]]\nmeasure = 'x'\nvalue = 1\ntolerance = 5\ntolerance_percent = 5",
            "tolerance or tolerance_percent, and not both",
        ),
        ("[[shape]]\nmeasure = 'x'\nis = 'between'", "shape x: is = \"between\" needs range = [LEAST, MOST]"),
        ("[[shape]]\nmeasure = 'x'\nis = 'between'\nrange = [1, 2, 3]", "give two numbers"),
        ("[[shape]]\nmeasure = 'x'\nis = 'between'\nrange = [5000, 1]", "the least and the most"),
        ("[[shape]]\nmeasure = 'x'\nis = 'rises'\nrange = [1, 2]", "range belongs to is = \"between\""),
        ("[[shape]]\nmeasure = 'x'\nis = 'rises'\nslack_percent = -1", "slack_percent = -1"),
        (
            "[[shape]]\nmeasure = 'x'\nis = 'rises'\nat = { 'program.arrivals_per_s' = 2 }",
            "need at least 2 points, and it has 1",
        ),
        ("[[fit]]\nmeasure = 'x'\nterm = []", "fit x: give 1 to 4 [[fit.term]]"),
        (
            "[[fit]]\nmeasure = 'x'\n[[fit.term]]\nname = 'A'\nvalue = 1\npaper = 'a'",
            "fit x: A: give paper or value, and not both",
        ),
    ] {
        let error = with(more).unwrap_err();
        assert!(error.contains(why), "{why}: {error}");
    }
}

#[test]
fn figures_of_ones_own_are_judged_at_some_points_and_unknown_measures_are_told() {
    let experiment = with(
        "[[shape]]\nmeasure = 'delay_mean_closed_form_ms'\nis = 'rises'\nat = { 'program.arrivals_per_s' = [4, 6.0] }\n\
         [[compare]]\nmeasure = 'places_for_1_percent'\nvalue = [3, 5]\nat = { 'program.arrivals_per_s' = [2, 4] }\ntolerance = 3\n\
         [[shape]]\nmeasure = 'dleay_ms'\nis = 'rises'",
    )
    .unwrap();
    let store = Store::in_memory().unwrap();
    assert_eq!(Chapter::new(experiment.clone(), &store).unwrap().shaped[1].verdict, Verdict::Missing);
    all(&experiment, &store);
    // While a point is still to be measured, no name is wrong.
    let mut part = results(&experiment, &store).unwrap();
    part[2].measures.clear();
    assert_eq!(shapes(&experiment, &part)[0].verdict, Verdict::Missing);
    let chapter = Chapter::new(experiment, &store).unwrap();
    assert_eq!(chapter.shaped[0].values.len(), 2);
    assert_eq!(
        chapter.shaped.iter().map(|of| of.verdict).collect::<Vec<_>>(),
        [Verdict::Holds, Verdict::Unknown]
    );
    assert_eq!(chapter.count(Verdict::Holds), 3, "{}", chapter.compared_text());
}

#[test]
fn a_sum_that_cannot_be_fitted_says_so() {
    let term = |name: &str, of: &str| format!("[[fit.term]]\nname = '{name}'\nof = ['{of}']\n");
    let key = "program.arrivals_per_s";
    let experiment = with(&format!(
        "[[fit]]\nmeasure = 'delay_mean_ms'\n{}{}[[fit]]\nmeasure = 'delay_mean_ms'\n{}[[fit]]\nmeasure = 'dleay'\n{}",
        term("A", key),
        term("B", key),
        term("C", key),
        term("D", key)
    ))
    .unwrap();
    let store = Store::in_memory().unwrap();
    let unmeasured = Chapter::new(experiment.clone(), &store).unwrap();
    assert_eq!((unmeasured.unfitted(), unmeasured.fitted[0].trouble), (0, Some(NoFit::Unmeasured)));
    all(&experiment, &store);
    let chapter = Chapter::new(experiment, &store).unwrap();
    let troubles: Vec<_> = chapter.fitted.iter().map(|of| of.trouble).collect();
    assert_eq!(troubles, [Some(NoFit::Undetermined), None, Some(NoFit::Unknown)]);
    assert_eq!(chapter.unfitted(), 2);
    let folder = Folder::new("unfitted");
    write(&folder.0, &[chapter], &Made::default()).unwrap();
    for page in ["report.html", "report.md"] {
        let text = std::fs::read_to_string(folder.0.join(page)).unwrap();
        assert!(text.contains("its terms cannot be told apart"), "{text}");
    }
}

#[test]
fn what_cannot_be_measured_here_is_told_and_is_not_a_failure() {
    let (experiment, store) = (with("").unwrap(), Store::in_memory().unwrap());
    all(&experiment, &store);
    let point = experiment.point(1);
    let why = "not measurable here: this program has no symbols";
    let result = Err(why.to_owned());
    let row = Row { point: 1, seed: 1, result, took_ms: 0, version: PROGRAM.to_owned() };
    store.write(&experiment, &point, &row).unwrap();
    let chapter = Chapter::new(experiment, &store).unwrap();
    assert_eq!(chapter.not_here().into_iter().collect::<Vec<_>>(), [why]);
    assert!(chapter.compared_text().contains(why) && chapter.text().contains(why));
    assert!(!chapter.text().contains("failed"), "{}", chapter.text());
    let folder = Folder::new("not-here");
    write(&folder.0, &[chapter], &Made::default()).unwrap();
    for page in ["report.html", "report.md"] {
        assert!(std::fs::read_to_string(folder.0.join(page)).unwrap().contains(why), "{page}");
    }
}

#[test]
fn results_are_read_without_a_file_beside_them() {
    let folder = Folder::new("read-only");
    let path = folder.0.join("lab.sqlite");
    assert!(Store::open_to_read(&path).is_err(), "it makes none");
    let experiment = with("").unwrap();
    let store = Store::open(&path).unwrap();
    all(&experiment, &store);
    // While it is written, and after it.
    assert_eq!(csv(&experiment, &Store::open_to_read(&path).unwrap()).lines().count(), 5);
    drop(store);
    let store = Store::open_to_read(&path).unwrap();
    assert_eq!(csv(&experiment, &store).lines().count(), 5);
    assert!(store.keep("name", "text").is_err());
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
    std::fs::write(folder.0.join("empty"), "").unwrap();
    let why = Store::open_to_read(&folder.0.join("empty")).err().unwrap().to_string();
    assert!(why.contains("not a file of results"), "{why}");
}

#[test]
fn names_that_cannot_be_shown_are_told_with_their_place() {
    let plot = "x_label = ''\ny_label = ''";
    let experiment = with(&format!(
        "[[plot]]\nx = 'program.arrivals_per_s'\ny = ['delay_mean_ms', 'dleay']\n{plot}\n[[plot]]\nx = 'arrivals'\ny = ['delay_mean_ms']\n{plot}"
    ))
    .unwrap();
    let store = Store::in_memory().unwrap();
    assert_eq!(Chapter::new(experiment.clone(), &store).unwrap().strange_names(), [""; 0]);
    all(&experiment, &store);
    let chapter = Chapter::new(experiment, &store).unwrap();
    let strange = chapter.strange_names();
    assert_eq!(strange.len(), 2, "{strange:?}");
    assert!(strange[0].starts_with("plot 1, y: dleay is not among the measures: "), "{strange:?}");
    assert!(
        strange[1].starts_with("plot 2, x: arrivals is neither among what varies (program.arrivals_per_s)"),
        "{strange:?}"
    );
    assert!(svg(&chapter, 0).is_ok());
    assert_eq!(svg(&chapter, 1).unwrap_err().to_string(), "no point has arrivals and delay_mean_ms");
}
