//! The page in a browser. Pictures of it lie in the target's `tmp`.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// The pages of a process share a profile: one is open at a time.
static PROFILE: Mutex<()> = Mutex::new(());

fn open(place: &Place) -> (MutexGuard<'static, ()>, Page) {
    let profile = PROFILE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut page = Page::open(&place.url("/"), Path::new(env!("CARGO_TARGET_TMPDIR")));
    page.wait("document.querySelectorAll('.row').length > 5");
    (profile, page)
}

#[test]
fn each_view_shows_its_own_and_runs_nothing_of_strangers() {
    if !peer("axe-core", "/axe/axe_playwright_python/axe.min.js") {
        return;
    }
    let peers = std::env::var("INHOST_PEERS").unwrap_or_else(|_| "/opt/inhost-peers".to_owned());
    let axe = std::fs::read_to_string(format!("{peers}/axe/axe_playwright_python/axe.min.js")).unwrap();
    let place = Place::new(Section::default(), 10_000);
    let (_profile, mut page) = open(&place);
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
    assert_eq!(page.settled("import('/assets/format.js').then(of => of.bytes(2 ** 28))"), "256 MiB");
    let elsewhere =
        "performance.getEntriesByType('resource').filter(of => !of.name.startsWith(location.origin)).length";
    assert_eq!(page.value(elsewhere), 0);
}

const BADGE: &str = "document.querySelector('#live').textContent.trim()";

#[test]
fn a_host_that_hangs_is_shown_as_away_until_it_goes_on() {
    let place = Place::new(Section::default(), 20);
    let (_profile, mut page) = open(&place);
    page.wait(&format!("{BADGE} === 'live'"));
    place.hang(true);
    page.wait(&format!("{BADGE} === 'not connected'"));
    assert_eq!(page.value("document.querySelector('#away').hidden"), false);
    // Longer than it takes to ask for the events anew.
    page.settled("new Promise(done => setTimeout(done, 6000))");
    assert_eq!(page.value(BADGE), "not connected");
    place.hang(false);
    page.wait(&format!("{BADGE} === 'live'"));
    assert_eq!(page.value("document.querySelector('#away').hidden"), true);
}

#[test]
fn of_many_sessions_those_on_the_screen_are_drawn() {
    let place = Place::new(Section::default(), 20);
    let (_profile, mut page) = open(&place);
    page.value("location.hash = '#/sessions'");
    page.wait("document.querySelector('.total')?.textContent === '20,000 sessions'");
    let shown = |user: &str| {
        let users = "[...document.querySelectorAll('.row:not(.pending) .user')]";
        format!("{users}.some(of => of.textContent === '{user}' && of.offsetWidth > 0)")
    };
    page.wait(&shown("user 1"));
    page.value("document.querySelector('.grid').scrollTop = 1e9");
    page.wait(&shown("user 19999"));
    assert!(page.value("document.querySelectorAll('*').length").as_u64() < Some(1000));
    page.set_size(400, 800);
    page.value("document.querySelector('.grid').scrollTop = 0");
    page.wait(&shown("user 1"));
}

#[test]
fn a_window_that_becomes_narrow_shows_the_view_and_follows_its_packets() {
    let place = Place::new(Section::default(), 20);
    let (_profile, mut page) = open(&place);
    page.value("location.hash = '#/packets'");
    page.wait("document.querySelectorAll('.tail li').length > 100");
    page.set_size(400, 800);
    page.wait("innerWidth === 400");
    page.settled("new Promise(done => setTimeout(done, 1500))");
    let follows = "document.querySelector('.follow input').checked";
    assert_eq!(page.value(follows), true);
    let lines = "document.querySelector('.tail')";
    page.wait(&format!("{lines}.scrollHeight - {lines}.scrollTop - {lines}.clientHeight < 40"));
    page.value(&format!("{lines}.scrollTop -= 300"));
    page.wait(&format!("!{follows}"));
    let is_in_sight = |page: &mut Page, view: &str| {
        let tab = format!("document.querySelector('nav [data-name=\"{view}\"][aria-current]')");
        page.wait(&format!("!window.isOld && {tab} !== null"));
        let sides = format!("{tab}.getBoundingClientRect()");
        page.value(&format!("{sides}.left >= 0 && {sides}.right <= innerWidth")) == true
    };
    for view in VIEWS {
        page.value(&format!("location.hash = '#/{view}'"));
        assert!(is_in_sight(&mut page, view), "the tab of {view:?}");
    }
    page.value("window.isOld = true; location.reload()");
    assert!(is_in_sight(&mut page, "explain"), "a tab after a reload");
}

#[test]
fn a_filter_of_packets_stays_over_a_reload() {
    let place = Place::new(Section::default(), 20);
    let (_profile, mut page) = open(&place);
    page.value("location.hash = '#/packets'");
    page.wait("document.querySelector('#filter')?.placeholder.includes('tcpdump')");
    page.value(
        "{ const field = document.querySelector('#filter'); field.value = 'tcp port 80'; field.dispatchEvent(new Event('input')) }",
    );
    page.wait("location.hash === '#/packets?filter=tcp+port+80'");
    page.value("window.isOld = true; location.reload()");
    page.wait("!window.isOld && document.querySelector('#filter')?.value === 'tcp port 80'");
}

/// A figure: it asserts nothing but that it can be measured.
#[test]
#[ignore = "long run: make dashboard-bench"]
fn frames_a_second_with_10_000_connections() {
    let place = Place::new(Section::default(), 10_000);
    let (_profile, mut page) = open(&place);
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
