//! The page in a browser, with a message that tries to escape. Pictures of it lie in the target's `tmp`.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;

use inhost_interop::Page;
use inhost_mailcatch::service::Section;

use crate::place::Place;

#[test]
fn a_hostile_message_is_shown_and_does_nothing() {
    let place = Place::new(Section::default());
    // What loads something calls here.
    let canary = TcpListener::bind("127.0.0.1:0").unwrap();
    canary.set_nonblocking(true).unwrap();
    let evil = format!("http://{}", canary.local_addr().unwrap());
    let mut page = Page::open(&place.url("/"), Path::new(env!("CARGO_TARGET_TMPDIR")));
    page.wait("document.querySelector('#live.good') !== null");

    let html = format!(
        "<script>top.document.title='RAN';fetch('{evil}/a')</script><h2>You have won</h2><img src={evil}/b onerror=\"top.document.title='RAN'\">\
         <svg onload=\"top.document.title='RAN'\"></svg><p style=\"background:url({evil}/c)\">x</p><style>h2{{background:url({evil}/d)}}</style>\
         <iframe src={evil}/e></iframe><object data={evil}/f></object><link rel=stylesheet href={evil}/g><meta http-equiv=refresh content=\"0;url={evil}/h\">\
         <form action={evil}/i><input autofocus onfocus=\"top.document.title='RAN'\"></form><base href={evil}/><a href=j>x</a>"
    );
    let message = format!(
        "From: \"<img src={evil}/k onerror=document.title=1>\" <x@evil.example>\nSubject: <script>document.title='RAN'</script>\n\
         MIME-Version: 1.0\nContent-Type: text/html\n\n{html}\n"
    );
    let (status, said) = place.send("x@evil.example", &["ada@example.org"], &message, &[]);
    assert_eq!(status, 0, "{said}");
    // It appears at once, is opened by a key, and is no longer unread.
    page.wait("document.querySelectorAll('#list li.unread').length === 1");
    page.key("j");
    page.wait(
        "document.querySelector('#view h1')?.textContent === \"<script>document.title='RAN'</script>\"",
    );
    page.wait("document.querySelectorAll('#list li.unread').length === 0");
    page.wait("document.querySelector('#view iframe') !== null");
    let loaded = "performance.getEntriesByType('resource').some(entry => entry.name.endsWith('/html') && entry.responseEnd > 0)";
    page.wait(loaded);
    page.picture("mailcatch-html");
    // The title shows unread messages, and that is all.
    page.wait("document.title === 'Mail catcher'");
    assert_eq!(page.value("document.querySelectorAll('main script, main img, main svg').length"), 0);
    for tab in ["text", "headers", "source", "parts", "dialogue"] {
        page.value(&format!("document.getElementById('tab-{tab}').click()"));
        page.wait("document.getElementById('tab-panel').textContent.length > 0");
    }
    page.key("r");
    page.wait("document.getElementById('dialog').open");
    page.picture("mailcatch-rules");
    page.key("Escape");
    page.set_dark(true);
    page.set_size(400, 800);
    page.picture("mailcatch-narrow");
    assert_eq!(
        page.value("document.documentElement.scrollWidth <= 400"),
        true,
        "nothing is wider than the screen"
    );
    page.value("document.activeElement.blur()");
    page.key("d");
    page.wait("document.querySelectorAll('#list li').length === 0");
    assert_eq!(page.value("document.title"), "Mail catcher");
    let called = canary.accept().map(|(_, from)| from);
    assert!(
        matches!(&called, Err(error) if error.kind() == ErrorKind::WouldBlock),
        "something was loaded: {called:?}"
    );
}
