//! netstack-smoltcp on a TUN device, as its examples do it: a task for each direction between the device and the stack.

use futures_util::{SinkExt, StreamExt};
use netstack_smoltcp::{StackBuilder, TcpListener, TcpStream};
use std::fs::File;
use std::io::{Error, Read, Write};
use std::os::fd::AsRawFd;
use tokio::io::unix::AsyncFd;

/// Bytes of each buffer of the connection.
const BUFFER_BYTES: u32 = 512 << 10;
/// Of the device.
const MTU_BYTES: usize = 1500;

/// The connections that somebody behind the device opens.
pub async fn listen(device: &str) -> Result<TcpListener, String> {
    let builder = StackBuilder::default()
        .enable_tcp(true)
        .mtu(MTU_BYTES)
        .tcp_recv_buffer_size(BUFFER_BYTES)
        .tcp_send_buffer_size(BUFFER_BYTES);
    let (stack, runner, _, listener) = builder.build().map_err(|e| e.to_string())?;
    let device = std::sync::Arc::new(AsyncFd::new(open(device)?).map_err(|e| e.to_string())?);
    let (mut sink, mut packets) = stack.split();
    tokio::spawn(runner.ok_or("no runner")?);
    let to = device.clone();
    tokio::spawn(async move {
        while let Some(Ok(packet)) = packets.next().await {
            while let Ok(mut ready) = to.writable().await {
                if let Ok(written) = ready.try_io(|device| device.get_ref().write(&packet)) {
                    // A packet that the device refuses is lost.
                    let _ = written;
                    break;
                }
            }
        }
    });
    tokio::spawn(async move {
        let mut place = vec![0; 65_536];
        while let Ok(mut ready) = device.readable().await {
            if let Ok(Ok(count)) = ready.try_io(|device| device.get_ref().read(&mut place))
                && sink.send(place[..count].to_vec()).await.is_err()
            {
                return;
            }
        }
    });
    listener.ok_or("no listener".into())
}

/// The next of them.
pub async fn accept(listener: &mut TcpListener) -> Result<TcpStream, String> {
    let (stream, _, _) = listener.next().await.ok_or("no connection")?;
    Ok(stream)
}

fn open(name: &str) -> Result<File, String> {
    let path = "/dev/net/tun";
    let file = File::options().read(true).write(true).open(path).map_err(|e| format!("{path}: {e}"))?;
    // SAFETY: all zeros are a value of this plain structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as libc::c_char);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the structure that the request reads and writes outlives the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request) }, name)?;
    // SAFETY: the descriptor is open.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) }, name)?;
    Ok(file)
}

fn check(result: i32, name: &str) -> Result<(), String> {
    if result < 0 { Err(format!("{name}: {}", Error::last_os_error())) } else { Ok(()) }
}
