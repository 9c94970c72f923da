//! A server that is killed while a file is stored: what was committed is there, and the client sends the rest again.

use std::cell::{Cell, RefCell};
use std::os::unix::fs::FileExt;

use inhost_interop::Running;
use inhost_nfs::client::COMMIT_BYTES;
use rustix::process::{Pid, Signal, kill_process};

use super::place::{Place, client, get, pattern, put_watched};

/// Octets of the file: more than are committed at a time.
const FILE_BYTES: usize = (COMMIT_BYTES + COMMIT_BYTES / 2) as usize;

/// Kills the server and starts another at its port.
pub fn restart(place: &Place, server: &RefCell<Option<Running>>, port: u16, between: impl FnOnce()) {
    let Some(mut running) = server.take() else { return };
    let pid = Pid::from_raw(running.id().cast_signed()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    running.wait();
    between();
    server.replace(Some(place.server(port, &[]).0));
}

#[test]
fn a_client_goes_on_where_a_killed_server_has_forgotten() {
    let place = Place::new("killed");
    let (running, port) = place.server(0, &[]);
    let server = RefCell::new(Some(running));
    let octets = pattern(FILE_BYTES);
    place.write("client/own", &octets);
    let (kills, committed) = (Cell::new(0), COMMIT_BYTES);
    client(port, true, "/files", async |files| {
        let progress = |moved: u64| {
            if kills.get() > 0 || moved < committed + committed / 4 {
                return;
            }
            kills.set(1);
            restart(&place, &server, port, || {
                let stored = place.0.join("server/stored");
                let file = std::fs::OpenOptions::new().read(true).write(true).open(stored).unwrap();
                let mut there = vec![0; committed as usize];
                file.read_exact_at(&mut there, 0).unwrap();
                assert!(there == octets[..committed as usize], "what was committed is there");
                // A machine that lost its power has nothing of what was not committed.
                let length = file.metadata().unwrap().len();
                assert!(length > committed);
                file.write_all_at(&vec![0; (length - committed) as usize], committed).unwrap();
            });
        };
        let stored = put_watched(&files, &place, "own", "/stored", &progress).await;
        assert_eq!(stored, Ok(FILE_BYTES as u64));
        // The handles of before are those of now.
        assert_eq!(get(&files, &place, "/stored", "fetched").await, Ok(FILE_BYTES as u64));
    });
    assert_eq!(kills.get(), 1);
    assert!(place.read("server/stored") == octets && place.read("client/fetched") == octets);
}

/// While there is no server, calls wait for it; a server that was never there is told at once.
#[test]
fn a_server_that_is_not_there_is_told() {
    use super::place::credentials;
    use super::sockets::{KernelClock, KernelConnect};
    use inhost_nfs::client::{CallError, CallSettings, ClientError, Rpc, mount};
    use inhost_nfs::driver::{carry_stream, drive};
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let failed = runtime.block_on(async {
        let rpc = Rpc::new(KernelClock::start(), credentials(), CallSettings::connection(), 1);
        drive(carry_stream(&rpc, &KernelConnect(free)), mount(&rpc, "/files")).await
    });
    assert!(matches!(failed, Err(ClientError::Call(CallError::Unreachable(_)))), "{failed:?}");
}
