//! A process that was forked from that of a host.
#![allow(unsafe_code)] // There is no safe fork.

use std::io;

use inhost::Host;
use inhost_interop::until;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

#[test]
fn a_forked_process_is_told_that_the_host_is_not_there() -> io::Result<()> {
    let host = Host::builder().start()?;
    // SAFETY: the child touches nothing of the test's other threads, and ends by itself.
    let child = match unsafe { fork() }? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let calls = [
                host.block_on(host.connect("127.0.0.1:7")).err(),
                host.block_on(host.listen("127.0.0.1:7")).err(),
                host.block_on(host.udp("127.0.0.1:7")).err(),
                {
                    let _entered = host.enter();
                    inhost::net::TcpSocket::new_v4().and_then(|socket| socket.listen(8)).err()
                },
            ];
            let told =
                calls.iter().flatten().filter(|error| error.kind() == io::ErrorKind::NetworkDown).count();
            drop(host);
            // Without the destructors of the test's program.
            // SAFETY: it ends this process and nothing else.
            unsafe { nix::libc::_exit(told as i32) }
        }
    };
    let ended = inhost_interop::within(std::time::Duration::from_secs(20), || {
        match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => None,
            ended => Some(ended),
        }
    });
    if ended.is_none() {
        kill(child, Signal::SIGKILL)?;
        until("the end of the child", || waitpid(child, None).ok());
    }
    assert_eq!(ended, Some(Ok(WaitStatus::Exited(child, 4))));
    // The host lives on.
    let listener = host.block_on(host.listen("127.0.0.1:7"))?;
    assert!(host.block_on(host.connect(listener.local_addr()?)).is_ok());
    Ok(())
}
