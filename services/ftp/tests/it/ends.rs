//! Our two ends with each other: every mode, TLS, restarts, and what is broken off.

use std::future::poll_fn;

use crate::place::{Client, HERE, Place, pattern, world};
use inhost_base::{Duration, Endpoint};
use inhost_common::storage::{Storage, Store, VirtualPath};
use inhost_ftp::client::{ClientError, DataVia, Operation, Transfer};
use inhost_ftp::codec::{Mode, Parameters, Representation, Structure};
use inhost_ftp::driver::{
    Accept, Flow, GetOptions, HostNetwork, MirrorPlan, Network, copy, get, mirror, put,
};
use inhost_ftp::server::{ServerConfig, TlsPolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn path(name: &str) -> VirtualPath {
    VirtualPath::root().join(name)
}

async fn retrieve(
    client: &mut Client,
    place: &Place,
    name: &str,
    parameters: Parameters,
    restart: Option<u64>,
) -> Result<(), ClientError> {
    let how = restart.map_or(Store::Replace, Store::At);
    let storing = place.folder("client").store(&path(name), how, 0o022).await.unwrap();
    let request = Transfer {
        command: format!("RETR {name}"),
        parameters,
        restart,
        size_bytes: None,
        via: DataVia::Passive,
    };
    let flowed = client.transfer(request, Flow::Down(storing)).await?;
    let (storing, end) = flowed.stored.unwrap();
    storing.sink.commit(end).await.unwrap();
    Ok(())
}

async fn store(
    client: &mut Client,
    place: &Place,
    name: &str,
    parameters: Parameters,
) -> Result<(), ClientError> {
    let source = place.folder("client").retrieve(&path("file")).await.unwrap();
    let request = Transfer {
        command: format!("STOR {name}"),
        parameters,
        restart: None,
        size_bytes: None,
        via: DataVia::Active,
    };
    client.transfer(request, Flow::Up(source, 0)).await.map(|_| ())
}

/// Every TYPE, STRU and MODE, both ways, passive and active, with a file that has everything in it.
#[test]
fn every_mode_between_our_ends() {
    let place = Place::new("modes");
    let mut data: Vec<u8> = pattern(300_000);
    data.extend_from_slice(b"lines\nof text  \xff\r\n\n\0\0\0\0\0end");
    place.write("server/file", &data);
    let mut lines = data.clone();
    while let Some(at) = lines.windows(2).position(|pair| pair == b"\r\n") {
        lines.remove(at);
    }
    world(&place, ServerConfig::default(), async |world| {
        let mut client = world.client("ada", false).await.unwrap();
        for representation in ["A", "E", "I", "L 8"] {
            for structure in [Structure::File, Structure::Record] {
                for mode in [Mode::Stream, Mode::Block, Mode::Compressed] {
                    let representation = Representation::parse(representation).unwrap();
                    let parameters = Parameters { representation, structure, mode };
                    // As text, a line's end is one, whichever the file has.
                    let is_text = structure == Structure::File && representation.argument() == "A";
                    let expected = if is_text { &lines } else { &data };
                    retrieve(&mut client, &place, "file", parameters, None).await.unwrap();
                    assert!(place.read("client/file").unwrap() == *expected, "{parameters:?}");
                    place.write("client/file", &data);
                    store(&mut client, &place, "sent", parameters).await.unwrap();
                    assert!(place.read("server/sent").unwrap() == *expected, "{parameters:?}");
                }
            }
        }
    });
}

#[test]
fn tls_with_resumption_for_forty_transfers() {
    let place = Place::new("tls");
    let data = pattern(1_000_000);
    place.write("client/file", &data);
    let mut config = ServerConfig::default();
    config.tls = TlsPolicy::Required;
    world(&place, config, async |world| {
        assert!(matches!(world.client("ada", false).await, Err(ClientError::Refused(..))), "no clear text");
        let mut client = world.client("ada", true).await.unwrap();
        let (here, options) = (place.folder("client"), GetOptions::default());
        // More uploads than there were tickets at first: each brings another.
        for number in 0..40 {
            let moved = put(&mut client, &here, &path("file"), &format!("f{number}"), options).await.unwrap();
            assert!(moved.hashed && moved.size_bytes == data.len() as u64);
        }
        get(&mut client, "f39", &here, &path("back"), options).await.unwrap();
        assert!(place.read("client/back").unwrap() == data);
        // CCC is refused where TLS is required.
        let refused = client.command("CCC").await;
        assert!(matches!(refused, Err(ClientError::Refused(_, reply)) if reply.code == 534));
    });
}

/// Clients with several control connections keep the tickets of all in one place, and use any of them.
#[test]
fn a_session_of_the_same_user_is_resumed_and_nobody_elses() {
    let place = Place::new("same-user");
    let mut config = ServerConfig::default();
    config.tls = TlsPolicy::Required;
    world(&place, config, async |world| {
        for (other, wanted) in [("ada", true), ("slow", false)] {
            let tls = world.tls_client();
            let mut client = world.client_with("ada", Some(tls.clone())).await.unwrap();
            // Its tickets are the newest.
            let _other = world.client_with(other, Some(tls)).await.unwrap();
            let listed = inhost_ftp::driver::list(&mut client, "/", DataVia::Passive).await;
            assert_eq!(listed.is_ok(), wanted, "{other}: {listed:?}");
        }
    });
}

/// A data connection of TLS that is not the control connection's session is somebody else's.
#[test]
fn tls_without_resumption_is_refused_where_it_is_required() {
    let place = Place::new("resumption");
    for (required, wanted) in [(true, false), (false, true)] {
        let mut config = ServerConfig::default();
        config.tls = TlsPolicy::Offered;
        config.resumption_required = required;
        world(&place, config, async |world| {
            let mut client = world.client("ada", true).await.unwrap();
            // The tickets of this session are thrown away by beginning one of another name.
            client.forget_tickets();
            let listed = inhost_ftp::driver::list(&mut client, "/", DataVia::Passive).await;
            assert_eq!(listed.is_ok(), wanted, "{listed:?}");
            if let Err(error) = listed {
                // The line that takes this client is named.
                assert!(error.to_string().contains("522 "), "{error}");
                assert!(error.to_string().contains("\"resumption = false\" under [ftp]"), "{error}");
            }
        });
    }
}

#[test]
fn a_restart_in_stream_and_in_block_mode() {
    let place = Place::new("restart");
    let data = pattern(3 << 20);
    place.write("server/file", &data);
    world(&place, ServerConfig::default(), async |world| {
        let mut client = world.client("ada", false).await.unwrap();
        let block = Parameters { mode: Mode::Block, ..Parameters::IMAGE };
        for (parameters, at) in
            [(Parameters::IMAGE, 1_234_567), (block, 2 << 20), (Parameters::IMAGE, data.len())]
        {
            // What is there of it is right; its second half would be wrong if it were not asked for.
            place.write("client/.file.inhost-part", &data[..at]);
            retrieve(&mut client, &place, "file", parameters, Some(at as u64)).await.unwrap();
            assert!(place.read("client/file").unwrap() == data, "{at}");
        }
        let beyond = retrieve(&mut client, &place, "other", Parameters::IMAGE, Some(0)).await;
        assert!(beyond.is_err());
        // Text counts what was sent of it.
        place.write("server/text", b"one\ntwo\n");
        let mut raw = world.raw_user().await;
        raw.says("REST 5").await;
        assert!(raw.says("PORT 127,0,0,1,0,9").await.starts_with("504 "));
    });
}

#[test]
fn a_transfer_is_aborted_at_once_and_told_of_meanwhile() {
    let place = Place::new("abort");
    place.write("server/big", &vec![7; 50_000_000]);
    world(&place, ServerConfig::default(), async |world| {
        let mut raw = world.raw().await;
        raw.says("USER slow").await;
        raw.says("PASS engine").await;
        raw.says("TYPE I").await;
        let reply = raw.says("EPSV").await;
        let port: u16 = reply.split('|').nth(3).unwrap().parse().unwrap();
        let mut data = world.host.connect(Endpoint::new(HERE, port)).await.unwrap();
        assert!(raw.says("RETR big").await.starts_with("150 "));
        let mut some = vec![0; 100_000];
        data.read_exact(&mut some).await.unwrap();
        let status = raw.says("STAT").await;
        assert!(status.starts_with("213 /big: ") && status.contains("of 50000000 bytes"), "{status}");
        raw.stream.send_urgent(b"\xff\xf4\xff\xf2").await.unwrap();
        let began = world.host.now();
        assert!(raw.says("ABOR").await.starts_with("426 "));
        assert!(raw.line().await.starts_with("226 "));
        assert!(world.host.now().since(began) < Duration::from_secs(1));
        assert!(raw.says("PWD").await.starts_with("257 "));
    });
}

#[test]
fn what_is_broken_off_has_no_name_and_is_gone_on_with() {
    let place = Place::new("broken");
    let data = pattern(2_000_000);
    place.write("client/file", &data);
    world(&place, ServerConfig::default(), async |world| {
        // A client that vanishes in the middle: both connections end like those of one that is done.
        let mut raw = world.raw_user().await;
        raw.says("TYPE I").await;
        let reply = raw.says("EPSV").await;
        let port: u16 = reply.split('|').nth(3).unwrap().parse().unwrap();
        let mut half = world.host.connect(Endpoint::new(HERE, port)).await.unwrap();
        assert!(raw.says("STOR file.part").await.starts_with("150 "));
        half.write_all(&data[..700_000]).await.unwrap();
        world.host.sleep(Duration::from_millis(200)).await;
        drop((raw, half));
        world.host.sleep(Duration::from_millis(500)).await;
        assert!(place.read("server/file.part").is_none(), "half a file has a name");
        let mut client = world.client("ada", false).await.unwrap();
        let here = place.folder("client");
        let moved = put(&mut client, &here, &path("file"), "file", GetOptions::default()).await.unwrap();
        assert_eq!((moved.resumed_bytes, moved.hashed), (700_000, true));
        assert!(place.read("server/file").unwrap() == data);
        // What ALLO announced and did not come is not a file either.
        let mut raw = world.raw_user().await;
        raw.says("TYPE I").await;
        raw.says("ALLO 100").await;
        let reply = raw.says("EPSV").await;
        let port: u16 = reply.split('|').nth(3).unwrap().parse().unwrap();
        let mut short = world.host.connect(Endpoint::new(HERE, port)).await.unwrap();
        assert!(raw.says("STOR short").await.starts_with("150 "));
        short.write_all(b"ten octets").await.unwrap();
        drop(short);
        assert!(raw.line().await.starts_with("426 Less came"));
        assert!(place.read("server/short").is_none());
        assert_eq!(place.read("server/.short.inhost-part").unwrap(), b"ten octets");
        // A download of which another beginning is there is found out by its hash, and fetched anew.
        place.write("client/.back.inhost-part", &[0; 1000]);
        let got = get(&mut client, "file", &here, &path("back"), GetOptions::default()).await.unwrap();
        assert_eq!((got.resumed_bytes, got.hashed), (0, true));
        assert!(place.read("client/back").unwrap() == data);
    });
}

/// What was broken off can be seen, asked for, deleted and gone on with, and its folder says that it is there.
#[test]
fn the_owner_of_an_unfinished_upload_sees_it_and_can_delete_it() {
    let place = Place::new("owner");
    std::fs::create_dir(place.0.join("server/sub")).unwrap();
    world(&place, ServerConfig::default(), async |world| {
        let mut raw = world.raw_user().await;
        raw.says("TYPE I").await;
        for (delete, folder) in [("DELE sub/.file.inhost-part", "sub"), ("DELE sub/file", "/sub/")] {
            raw.says("ALLO 100").await;
            let mut half = raw.transfer(&world.host, "STOR sub/file").await;
            half.write_all(b"ten octets").await.unwrap();
            drop(half);
            assert!(raw.line().await.starts_with("426 Less came"));
            for listing in ["MLSD sub", "LIST -a sub", "NLST sub/.*"] {
                let mut listed = String::new();
                let mut data = raw.transfer(&world.host, listing).await;
                data.read_to_string(&mut listed).await.unwrap();
                assert!(raw.line().await.starts_with("226 "));
                assert!(listed.contains(".file.inhost-part\r\n"), "{listing}: {listed}");
            }
            assert_eq!(raw.says("SIZE sub/file").await, "213 10");
            let refused = raw.says(&format!("RMD {folder}")).await;
            let why = "The directory is not empty: .file.inhost-part (an unfinished upload)";
            assert_eq!(refused, format!("550 {why}."));
            let refused = raw.says("RNFR sub/.file.inhost-part").await;
            assert!(refused.starts_with("350 ") && raw.says("RNTO sub/file").await.starts_with("553 An unf"));
            assert_eq!(raw.says(delete).await, "250 Done.");
            assert_eq!(raw.says("SIZE sub/file").await, "550 No such file or directory.");
        }
        assert_eq!(raw.says("RMD sub").await, "250 Done.");
    });
}

/// A mirror fetches and sends no unfinished file, and says so.
#[test]
fn a_mirror_leaves_unfinished_files_out() {
    let place = Place::new("unfinished");
    for side in ["server", "client"] {
        std::fs::create_dir(place.0.join(side).join("tree")).unwrap();
        place.write(&format!("{side}/tree/whole"), b"whole");
        place.write(&format!("{side}/tree/.half.inhost-part"), b"half");
    }
    world(&place, ServerConfig::default(), async |world| {
        let mut client = world.client("ada", false).await.unwrap();
        for (folder, there, upload) in [("client", "/tree", false), ("client/tree", "/sent", true)] {
            let plan = MirrorPlan::new(place.folder(folder), there, upload, GetOptions::default());
            mirror(&mut client, &world.host, &plan).await.unwrap();
            assert_eq!((plan.files.get(), plan.failures.borrow().len()), (1, 0), "{there}");
            let left_out = plan.left_out.borrow();
            assert!(left_out.iter().all(|one| one.ends_with(".half.inhost-part is an unfinished transfer")));
            assert_eq!(left_out.len(), 1, "{left_out:?}");
        }
    });
}

/// Neither end makes a name that is longer than a file system takes.
#[test]
fn names_of_255_octets_are_sent_and_fetched() {
    let place = Place::new("long");
    let data = pattern(100_000);
    world(&place, ServerConfig::default(), async |world| {
        let mut client = world.client("ada", false).await.unwrap();
        let (here, options) = (place.folder("client"), GetOptions::default());
        for bytes in [242, 243, 250, 251, 255] {
            let name = "n".repeat(bytes);
            place.write(&format!("client/{name}"), &data);
            put(&mut client, &here, &path(&name), &name, options).await.unwrap();
            assert!(place.read(&format!("server/{name}")).unwrap() == data, "{bytes}");
            std::fs::remove_file(place.0.join("client").join(&name)).unwrap();
            get(&mut client, &name, &here, &path(&name), options).await.unwrap();
            assert!(place.read(&format!("client/{name}")).unwrap() == data, "{bytes}");
        }
    });
}

/// A client that looks at the replies only once it has sent everything learns why it was not stored.
#[test]
fn the_rest_of_an_upload_that_is_refused_is_taken() {
    let place = Place::new("refused");
    world(&place, ServerConfig::default(), async |world| {
        let mut raw = world.raw_user().await;
        raw.says("TYPE I").await;
        raw.says("MODE B").await;
        for _ in 0..2 {
            let mut data = raw.transfer(&world.host, "STOR file").await;
            // No block has this descriptor.
            for _ in 0..100 {
                data.write_all(&[0xff; 65_536]).await.unwrap();
            }
            data.shutdown();
            let mut answer = Vec::new();
            assert_eq!(data.read_to_end(&mut answer).await.unwrap_or(1), 0);
            assert!(raw.line().await.starts_with("451 Data not understood"));
        }
        // It is taken to the next transfer, or to the end of the session, and no longer.
        let mut data = raw.transfer(&world.host, "STOR file").await;
        data.write_all(&[0xff; 65_536]).await.unwrap();
        assert!(raw.line().await.starts_with("451 "));
        raw.says("QUIT").await;
        assert_eq!(data.read(&mut [0]).await.unwrap_or(0), 0);
    });
}

#[test]
fn a_tree_and_a_third_party() {
    let place = Place::new("tree");
    for number in 0..50 {
        let folder = format!("client/tree/{}", number % 4);
        std::fs::create_dir_all(place.0.join(&folder)).unwrap();
        place.write(&format!("{folder}/file {number}"), &pattern(number * 31));
    }
    let mut config = ServerConfig::default();
    config.third_party = true;
    world(&place, config, async |world| {
        let mut one = world.client("ada", false).await.unwrap();
        let mut two = world.client("ada", false).await.unwrap();
        let options = GetOptions::default();
        let up = MirrorPlan::new(place.folder("client/tree"), "/there", true, options);
        let (a, b) =
            inhost_socket::both(mirror(&mut one, &world.host, &up), mirror(&mut two, &world.host, &up)).await;
        a.and(b).unwrap();
        assert_eq!((up.files.get(), up.failures.borrow().len()), (50, 0), "{:?}", up.failures.borrow());
        std::fs::create_dir(place.0.join("client/back")).unwrap();
        for (moved, kept) in [(50, 0), (0, 50)] {
            let down = MirrorPlan::new(place.folder("client/back"), "/there", false, options);
            mirror(&mut one, &world.host, &down).await.unwrap();
            assert_eq!((down.files.get(), down.kept.get()), (moved, kept), "{:?}", down.failures.borrow());
        }
        assert_eq!(place.read("client/back/1/file 33"), Some(pattern(33 * 31)));
        // 127.0.0.1 is the client's own address here, so that each server calls the other.
        place.write("server/big", &pattern(1_000_000));
        let moved = copy(&mut one, "/big", &mut two, "/copied", options).await.unwrap();
        assert!(moved.hashed && place.read("server/copied") == place.read("server/big"));
        one.perform(Operation::Command("QUIT".into())).await.unwrap();
    });
}

/// What a data connection holds that was not stored yet does not grow with the file: its sender is held back.
#[test]
fn what_waits_to_be_stored_is_limited() {
    const LIMIT_BYTES: usize = 1 << 20;
    let place = Place::new("waiting");
    world(&place, ServerConfig::default(), |world| async move {
        let network = HostNetwork::new(&world.host).with_received_limit(LIMIT_BYTES);
        let listener = network.listen(Endpoint::new(HERE, 0)).unwrap();
        let sender = world.host.connect(Accept::local(&listener)).await.unwrap();
        let (receiver, _) = poll_fn(|cx| Accept::poll_accept(&listener, cx)).await.unwrap();
        let mut taken = vec![0; 128 * 1024];
        // The reader is as slow as a disk may be, but drains what is there now and then.
        for _ in 0..40 {
            while world.host.timeout(Duration::from_millis(5), (&sender).write(&taken)).await.is_ok() {}
            let waiting = receiver.queued().unwrap().readable_bytes;
            assert!(waiting <= LIMIT_BYTES, "{waiting} bytes wait");
            while receiver.queued().unwrap().readable_bytes > 0 {
                receiver.receive(&mut taken).await.unwrap();
            }
        }
    });
}

/// A folder with a link to itself, or to one that it lies in, has an end; both ways.
#[test]
fn a_mirror_follows_no_folder_into_itself() {
    let place = Place::new("links");
    for side in ["client", "server"] {
        std::fs::create_dir_all(place.0.join(side).join("tree/inner")).unwrap();
        place.write(&format!("{side}/tree/inner/file"), b"x");
        for (to, link) in [(".", "tree/self"), ("..", "tree/inner/up"), ("../inner", "tree/inner/again")] {
            std::os::unix::fs::symlink(to, place.0.join(side).join(link)).unwrap();
        }
    }
    world(&place, ServerConfig::default(), async |world| {
        let mut client = world.client("ada", false).await.unwrap();
        let options = GetOptions::default();
        for (folder, there, upload) in [("client/tree", "/sent", true), ("client", "/tree", false)] {
            let plan = MirrorPlan::new(place.folder(folder), there, upload, options);
            mirror(&mut client, &world.host, &plan).await.unwrap();
            assert_eq!((plan.files.get(), plan.failures.borrow().len()), (1, 0), "{there}");
            assert_eq!(plan.left_out.borrow().len(), 3, "{:?}", plan.left_out.borrow());
        }
    });
    assert!(place.0.join("server/sent/inner/file").exists() && place.0.join("client/inner/file").exists());
    assert!(!place.0.join("server/sent/self").exists() && !place.0.join("client/self").exists());
}

/// Names in Latin-1, with tabs and with escapes are fetched as they are listed; a name that cannot be kept is a failure.
#[test]
fn names_are_octets() {
    use std::os::unix::ffi::OsStrExt;
    let names: [&[u8]; 5] =
        [b"M\xfcller", b"tab\there", b"\x1b[2Jclear", "Mädchen".as_bytes(), b"back\\slash"];
    let place = Place::new("octets");
    std::fs::create_dir(place.0.join("server/tree")).unwrap();
    for name in names {
        std::fs::write(place.0.join("server/tree").join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    std::fs::write(place.0.join("server/tree/two\nlines"), b"").unwrap();
    world(&place, ServerConfig::default(), async |world| {
        let mut client = world.client("ada", false).await.unwrap();
        let plan = MirrorPlan::new(place.folder("client"), "/tree", false, GetOptions::default());
        mirror(&mut client, &world.host, &plan).await.unwrap();
        assert_eq!(plan.files.get(), names.len() as u64, "{:?}", plan.failures.borrow());
        assert_eq!(
            plan.failures.borrow().len(),
            1,
            "a line end is in no listing: {:?}",
            plan.failures.borrow()
        );
        let plan = MirrorPlan::new(place.folder("client"), "/again", true, GetOptions::default());
        mirror(&mut client, &world.host, &plan).await.unwrap();
        assert_eq!((plan.files.get(), plan.failures.borrow().len()), (names.len() as u64, 0));
    });
    for name in names {
        for folder in ["client", "server/again"] {
            let file = place.0.join(folder).join(std::ffi::OsStr::from_bytes(name));
            assert_eq!(std::fs::read(file).unwrap(), name);
        }
    }
}

/// Listing a great many names takes memory for some of them, and nobody waits for it.
#[test]
fn many_names_are_listed_in_pieces() {
    const NAMES: usize = 40_000;
    let place = Place::new("names");
    std::fs::create_dir(place.0.join("server/many")).unwrap();
    for number in 0..NAMES {
        place.write(&format!("server/many/{number}"), b"");
    }
    world(&place, ServerConfig::default(), async |world| {
        let mut client = world.client("ada", false).await.unwrap();
        let listing = async {
            let listed = inhost_ftp::driver::list(&mut client, "many", DataVia::Passive).await.unwrap();
            let names: std::collections::BTreeSet<_> = listed.iter().map(|one| one.name.clone()).collect();
            assert_eq!((names.len(), listed.len()), (NAMES, NAMES));
        };
        let polls = std::cell::Cell::new(0);
        let mut listing = std::pin::pin!(listing);
        poll_fn(|cx| {
            polls.set(polls.get() + 1);
            listing.as_mut().poll(cx)
        })
        .await;
        assert!(polls.get() > NAMES / 10_000, "it came in {} pieces", polls.get());
    });
}
