//! A file is fetched by TFTP.

use inhost_base::{Endpoint, Ipv4Addr};
use inhost_socket::{Host, UdpSocket};
use inhost_stack::UdpOptions;
use inhost_tftp::service::Tftp;
use inhost_tftp::{Mode, Options, Packet, Request};

use crate::Failed;
use crate::place::{FILE, Place};

const PORT: u16 = 69;
/// What a frame of an Ethernet carries behind the headers.
const BLOCK_BYTES: u16 = 1428;

pub(crate) fn start(place: &Place) -> Result<Tftp, Failed> {
    let mut section = toml::Table::new();
    section.insert("enabled".to_owned(), true.into());
    section.insert("root".to_owned(), place.folder().display().to_string().into());
    place.start(section)
}

pub(crate) struct Client(Host);

impl Client {
    pub(crate) async fn open(host: &Host) -> Result<Client, Failed> {
        Ok(Client(host.clone()))
    }
}

impl crate::Client for Client {
    async fn transact(&mut self, bytes: u32) -> Result<(), Failed> {
        let any = Endpoint::new(Ipv4Addr::LOCALHOST, 0);
        let socket = self.0.udp(any, UdpOptions::default()).map_err(|e| Failed::of("a UDP socket", e))?;
        let mut options = Options::default();
        options.block_size = Some(BLOCK_BYTES);
        let request = Request { is_write: false, name: FILE.into(), mode: Mode::Octet, options };
        send(&socket, &Packet::Request(request), Endpoint::new(Ipv4Addr::LOCALHOST, PORT)).await?;
        let (mut count, mut place) = (0, [0; 2048]);
        loop {
            let received = socket.receive_from(&mut place).await.map_err(|e| Failed::of("receive", e))?;
            let datagram = &place[..received.length_bytes];
            let (block, data) = match Packet::parse(datagram) {
                Ok(Packet::Data(block, data)) => (block, Some(data.len())),
                Ok(Packet::OptionAck(_)) => (0, None),
                other => return Err(Failed(format!("the server sent {other:?}"))),
            };
            send(&socket, &Packet::Ack(block), received.from).await?;
            count += data.unwrap_or(0);
            if data.is_some_and(|length| length < usize::from(BLOCK_BYTES)) {
                break;
            }
        }
        match count == bytes as usize {
            true => Ok(()),
            false => Err(Failed(format!("{count} bytes came instead of {bytes}"))),
        }
    }
}

async fn send(socket: &UdpSocket, packet: &Packet<'_>, to: Endpoint) -> Result<(), Failed> {
    socket.send_to(&packet.bytes(), to).await.map_err(|e| Failed::of("send", e))
}
