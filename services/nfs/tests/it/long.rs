//! Runs that take long: many files and a large one, with our client and with libnfs.

use std::process::Command;
use std::time::{Duration, Instant};

use inhost_interop::{output_within, own_network};

use super::place::{HERE, Place, client, get, pattern, put};

const GIGABYTE: usize = 1 << 30;
const MANY: usize = 10_000;

/// Writes a large file without holding it.
fn large(place: &Place, name: &str) {
    use std::io::Write;
    let mut file = std::fs::File::create(place.0.join(name)).unwrap();
    let piece = pattern(1 << 20);
    for number in 0..GIGABYTE >> 20 {
        file.write_all(&piece[number..]).unwrap();
        file.write_all(&piece[..number]).unwrap();
    }
}

fn same(place: &Place, one: &str, other: &str) {
    let compared = Command::new("cmp").arg(place.0.join(one)).arg(place.0.join(other)).status().unwrap();
    assert!(compared.success(), "{one} and {other} differ");
}

#[allow(clippy::disallowed_methods, reason = "what it takes is shown")]
fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = work();
    println!("{what}: {:.1} s", began.elapsed().as_secs_f64());
    done
}

#[test]
#[ignore = "long run: make test-nfs"]
fn a_gigabyte_each_way() {
    let place = Place::new("gigabyte");
    large(&place, "client/own");
    let (_server, port) = place.server(0, &[]);
    client(port, true, "/files", async |files| {
        let runs = async |what: &str, is_put: bool| {
            #[allow(clippy::disallowed_methods, reason = "what it takes is shown")]
            let began = Instant::now();
            let moved = match is_put {
                true => put(&files, &place, "own", "/stored").await,
                false => get(&files, &place, "/stored", "fetched").await,
            };
            assert_eq!(moved, Ok(GIGABYTE as u64));
            println!("{what}: {:.1} s", began.elapsed().as_secs_f64());
        };
        runs("our client stores a gigabyte", true).await;
        runs("our client fetches a gigabyte", false).await;
    });
    same(&place, "client/own", "server/stored");
    same(&place, "client/own", "client/fetched");
}

#[test]
#[ignore = "long run: make test-nfs"]
fn a_gigabyte_each_way_by_libnfs() {
    if !own_network() {
        return;
    }
    let place = Place::new("gigabyte-libnfs");
    large(&place, "client/own");
    let (_server, _) = place.server(2049, &["111"]);
    let url = format!("nfs://{HERE}/files/stored");
    let copy = |from: &str, to: &str| {
        let copied = output_within(Duration::from_secs(300), Command::new("nfs-cp").args([from, to]));
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    };
    let (own, fetched) = (place.0.join("client/own"), place.0.join("client/fetched"));
    timed("nfs-cp stores a gigabyte", || copy(&own.display().to_string(), &url));
    timed("nfs-cp fetches a gigabyte", || copy(&url, &fetched.display().to_string()));
    same(&place, "client/own", "server/stored");
    same(&place, "client/own", "client/fetched");
}

fn many(words: &[&str]) {
    let place = Place::new("many");
    let (_server, port) = place.server(0, words);
    place.write("client/own", b"a small file\n");
    client(port, true, "/files", async |files| {
        #[allow(clippy::disallowed_methods, reason = "what it takes is shown")]
        let began = Instant::now();
        let shown = |what: &str| println!("{words:?} {what}: {:.1} s", began.elapsed().as_secs_f64());
        files.make_directory("/many", 0o755).await.unwrap();
        for number in 0..MANY {
            put(&files, &place, "own", &format!("/many/file-{number}")).await.unwrap();
        }
        shown("stored");
        let listed = files.list("/many").await.unwrap();
        let sizes = listed.iter().filter(|file| file.attributes.is_some_and(|known| known.size_bytes == 13));
        assert_eq!((listed.len(), sizes.count()), (MANY, MANY));
        shown("listed");
        for number in 0..MANY {
            get(&files, &place, &format!("/many/file-{number}"), "fetched").await.unwrap();
        }
        shown("fetched");
        for number in 0..MANY {
            files.remove(&format!("/many/file-{number}")).await.unwrap();
        }
        files.remove_directory("/many").await.unwrap();
        shown("removed");
    });
}

#[test]
#[ignore = "long run: make test-nfs"]
fn ten_thousand_files_on_the_disk() {
    many(&[]);
}

#[test]
#[ignore = "long run: make test-nfs"]
fn ten_thousand_files_on_the_disk_later() {
    many(&["later"]);
}
