//! A host of a program's own, watched as the running program is: by its control socket, and by captures.
#![cfg(all(feature = "control", feature = "tokio"))]

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use inhost::control::Client;
use inhost::link::memory;
use inhost::{BuildError, Host};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::in_time;

/// A path for one test.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("inhost-{name}-{}", std::process::id()))
}

/// The block types of a pcapng file.
fn block_types(mut file: &[u8]) -> Vec<u32> {
    let mut types = Vec::new();
    while let Some((head, _)) = file.split_first_chunk::<8>() {
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        types.push(number(0));
        file = file.get(number(4) as usize..).expect("a block is whole");
    }
    assert!(file.is_empty(), "a rest of {} bytes", file.len());
    types
}

const ENHANCED_PACKET: u32 = 6;

#[tokio::test]
async fn clients_of_the_control_socket_see_a_host_and_the_files_have_its_frames() {
    let (socket, file) = (path("control"), path("record"));
    let config = memory::Config { doorbell: true, ..memory::Config::default() };
    let (near, far) = memory::pair(&config).unwrap();
    let near = Host::builder()
        .name("near")
        .driver(near, |link| link.with_address("10.9.0.1/24".parse().unwrap()))
        .control(&socket)
        .record(&file)
        .start()
        .unwrap();
    let far = Host::builder()
        .driver(far, |link| link.with_address("10.9.0.2/24".parse().unwrap()))
        .start()
        .unwrap();
    let listener = near.listen("10.9.0.1:80").await.unwrap();
    let (call, accepted) =
        in_time(async { tokio::join!(far.connect("10.9.0.1:80"), listener.accept()) }).await;
    let (mut call, (mut stream, _)) = (call.unwrap(), accepted.unwrap());
    call.write_all(b"hello").await.unwrap();
    in_time(stream.read_exact(&mut [0; 5])).await.unwrap();

    // The client blocks, as the command does.
    let at = socket.clone();
    let asked =
        tokio::task::spawn_blocking(move || -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            let mut client = Client::open(&at)?;
            let state = client.netstat()?;
            let sockets = state["sockets"].as_array().ok_or("no sockets")?;
            let kinds: Vec<_> = sockets.iter().map(|socket| &socket["kind"]).collect();
            assert_eq!(kinds, ["listener", "connection"]);
            assert_eq!(sockets[1]["local"], "10.9.0.1:80");
            let driver = state["interfaces"].as_array().ok_or("no interfaces")?.iter();
            assert!(
                driver.clone().any(|link| link["driver"]["received_frames"].as_u64() > Some(0)),
                "{state}"
            );
            // What `inhost top` and `inhost netstat` show.
            let host: Value = serde_json::from_slice(&client.view("host")?)?;
            assert_eq!((&host["name"], &host["sockets"]["connections"]), (&json!("near"), &json!(1)));
            let rows: Value = serde_json::from_slice(&client.view("connections")?)?;
            assert_eq!(rows["rows"][0]["local"], "10.9.0.1:80");
            // What `inhost peep` and `inhost record` ask for.
            let (_, stream) = client.request(&json!({"op": "watch", "past": true}))?;
            let mut begin = [0; 4];
            File::from(stream.ok_or("no stream")?).read_exact(&mut begin)?;
            assert_eq!(begin, [0x0a, 0x0d, 0x0d, 0x0a]);
            let (_, recorded) = client.request(&json!({"op": "record"}))?;
            let mut bytes = Vec::new();
            File::from(recorded.ok_or("no file")?).read_to_end(&mut bytes)?;
            assert!(block_types(&bytes).iter().filter(|&&kind| kind == ENHANCED_PACKET).count() > 3);
            Ok(())
        });
    in_time(asked).await.unwrap().unwrap();
    let held = block_types(&near.recorded().await.unwrap());
    in_time(near.shutdown()).await;
    // The host's thread has ended with the last handle.
    drop((near, listener, stream));
    let written = block_types(&std::fs::read(&file).unwrap());
    let frames = |types: &[u32]| types.iter().filter(|&&kind| kind == ENHANCED_PACKET).count();
    assert!(frames(&held) > 3 && frames(&written) >= frames(&held), "{held:?} {written:?}");
    assert!(!socket.exists(), "the socket goes with its host");
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn a_host_goes_down_when_a_client_asks_for_it() {
    let socket = path("shutdown");
    let host = Host::builder().control(&socket).start().unwrap();
    let listener = host.listen("127.0.0.1:80").await.unwrap();
    let at = socket.clone();
    tokio::task::spawn_blocking(move || Client::open(&at).unwrap().shutdown().unwrap()).await.unwrap();
    let refused = in_time(listener.accept()).await.map(drop).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::NetworkDown);
}

#[test]
fn a_socket_or_a_file_that_cannot_be_made_is_named() {
    let socket = path("taken");
    let _first = Host::builder().control(&socket).start().unwrap();
    let taken = Host::builder().control(&socket).start().unwrap_err();
    assert!(
        matches!(taken, BuildError::Control { .. }) && taken.to_string().contains("running there already"),
        "{taken}"
    );
    let nowhere = Host::builder().record("/nowhere/at/all.pcapng").start().unwrap_err();
    assert!(nowhere.to_string().contains("/nowhere/at/all.pcapng"), "{nowhere}");
    assert_eq!(io::Error::from(nowhere).kind(), io::ErrorKind::NotFound);
}
