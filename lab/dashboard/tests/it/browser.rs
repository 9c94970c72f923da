//! The page in a browser. Pictures of it lie in the target's `tmp`.

use std::path::Path;

use inhost_dashboard::Section;
use inhost_interop::Page;

use crate::place::Place;

const VIEWS: [&str; 7] = ["", "links", "histograms", "sessions", "packets", "log", "explain"];

/// Whether a program or file of others is there; for root a missing one is a failure.
pub fn peer(name: &str, file: &str) -> bool {
    let peers = std::env::var("INHOST_PEERS").unwrap_or_else(|_| "/opt/inhost-peers".to_owned());
    let is_there = Path::new(&format!("{peers}{file}")).is_file();
    if !is_there && !rustix::process::geteuid().is_root() {
        inhost_interop::left_out(&format!("{name} is missing: lab/interop/peers as root brings it"));
        return false;
    }
    assert!(is_there, "{name} is missing: run lab/interop/peers");
    true
}

fn open(place: &Place) -> Page {
    let mut page = Page::open(&place.url("/"), Path::new(env!("CARGO_TARGET_TMPDIR")));
    page.wait("document.querySelectorAll('.row').length > 5");
    page
}

#[test]
fn each_view_shows_its_own_and_runs_nothing_of_strangers() {
    if !peer("axe-core", "/axe/axe_playwright_python/axe.min.js") {
        return;
    }
    let peers = std::env::var("INHOST_PEERS").unwrap_or_else(|_| "/opt/inhost-peers".to_owned());
    let axe = std::fs::read_to_string(format!("{peers}/axe/axe_playwright_python/axe.min.js")).unwrap();
    let place = Place::new(Section::default(), 10_000);
    let mut page = open(&place);
    // Rows are drawn as needed, and sorted by the host.
    assert!(page.value("document.querySelectorAll('.row').length").as_u64() < Some(100));
    page.wait("document.querySelector('.total').textContent.replace(/[^0-9]/g, '') >= 10000");
    let row = "document.querySelector('.row')";
    page.value("[...document.querySelectorAll('.heads button')].find(b => b.textContent === 'Age').click()");
    page.wait("document.querySelector('[aria-sort=descending]')?.textContent === 'Age'");
    page.value("[...document.querySelectorAll('.heads button')].find(b => b.textContent === 'Sent').click()");
    page.wait("document.querySelector('[aria-sort=descending]')?.textContent === 'Sent'");
    page.wait(&format!("{row}?.textContent.includes(':4000')"));
    page.value("document.querySelector('.row').focus()");
    page.key("Enter");
    page.wait("location.hash.startsWith('#/connection/')");
    page.wait("document.querySelectorAll('canvas').length >= 3");
    page.wait("document.querySelector('main').textContent.includes('Where its time went')");
    page.picture("dashboard-connection");
    let connection = page.value("location.hash.slice(2)");
    let connection = connection.as_str().unwrap();

    page.value(&format!("{axe};1"));
    for (width, height) in [(1200, 760), (400, 800)] {
        page.set_size(width, height);
        for is_dark in [false, true] {
            page.set_dark(is_dark);
            for view in VIEWS.into_iter().chain([connection]) {
                page.value(&format!("location.hash = '#/{view}'"));
                page.wait("document.querySelector('main').textContent.trim().length > 20");
                // What is drawn while it appears has no colours yet.
                page.settled("new Promise(done => setTimeout(done, 400))");
                let found = page.settled(
                    "axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations.filter(of => \
                     ['serious', 'critical'].includes(of.impact)).map(of => of.id + ': ' + of.nodes[0].html))",
                );
                assert_eq!(found, serde_json::json!([]), "{view:?}, {width} wide, dark: {is_dark}");
                let fits = page.value("document.documentElement.scrollWidth <= innerWidth");
                assert_eq!(fits, true, "{view:?} is wider than {width}");
                if width == 1200 && !is_dark {
                    let name = if view.is_empty() { "connections" } else { view.split('/').next().unwrap() };
                    page.picture(&format!("dashboard-{name}"));
                }
            }
        }
    }
    page.value("location.hash = '#/sessions'");
    page.wait("document.querySelector('main').textContent.includes('<img src=x')");
    page.value("location.hash = '#/log'");
    page.wait("document.querySelector('main').textContent.includes('<img src=x')");
    assert_ne!(page.value("document.title"), "RAN");
    assert_eq!(page.value("document.querySelectorAll('main script, main img[src=x]').length"), 0);
    let elsewhere =
        "performance.getEntriesByType('resource').filter(of => !of.name.startsWith(location.origin)).length";
    assert_eq!(page.value(elsewhere), 0);
}

/// A figure: it asserts nothing but that it can be measured.
#[test]
#[ignore = "long run: make dashboard-bench"]
fn frames_a_second_with_10_000_connections() {
    let place = Place::new(Section::default(), 10_000);
    let mut page = open(&place);
    let measure = |page: &mut Page, step: &str| {
        let frames = format!(
            "new Promise(done => {{ const times = [], grid = document.querySelector('.grid'); let last = performance.now(); \
             const end = last + 4000; const frame = now => {{ times.push(now - last); last = now; {step}; \
             if (now < end) requestAnimationFrame(frame); else {{ times.shift(); times.sort((a, b) => a - b); \
             done([1000 * times.length / times.reduce((a, b) => a + b), times[Math.floor(times.length * 0.99)]]); }} }}; \
             requestAnimationFrame(frame); }})"
        );
        page.settled(&frames)
    };
    page.settled("new Promise(done => setTimeout(done, 2000))");
    for (name, step) in [("bars move", ""), ("scrolling 40 pixels a frame", "grid.scrollTop += 40")] {
        let found = measure(&mut page, step);
        let (rate, slowest) = (found[0].as_f64().unwrap(), found[1].as_f64().unwrap());
        println!("{name:<28} {rate:>5.1} frames a second, 99 % within {slowest:.0} ms");
        assert!(rate > 0.0);
    }
}
