//! A file is fetched by FTP.

use inhost_ftp::service::Ftp;
use inhost_socket::Host;

use crate::Failed;
use crate::dialogue::Dialogue;
use crate::place::{FILE, Place};

const PORT: u16 = 21;

pub(crate) fn start(place: &Place) -> Result<Ftp, Failed> {
    let folder = place.folder().display().to_string();
    let mut section = toml::Table::new();
    section.insert("enabled".to_owned(), true.into());
    section.insert("anonymous".to_owned(), folder.into());
    place.start(section)
}

pub(crate) struct Client {
    host: Host,
    control: Dialogue,
}

impl Client {
    pub(crate) async fn open(host: &Host) -> Result<Client, Failed> {
        let mut control = Dialogue::open(host, PORT).await?;
        control.reply('2').await?;
        control.command("USER anonymous", '3').await?;
        control.command("PASS lab@localhost", '2').await?;
        control.command("TYPE I", '2').await?;
        Ok(Client { host: host.clone(), control })
    }
}

impl crate::Client for Client {
    async fn transact(&mut self, bytes: u32) -> Result<(), Failed> {
        let reply = self.control.command("EPSV", '2').await?;
        let port = reply.split('|').nth(3).and_then(|port| port.parse().ok());
        let port = port.ok_or_else(|| Failed::of("EPSV names no port", &reply))?;
        let data = Dialogue::open(&self.host, port).await?;
        self.control.command(&format!("RETR {FILE}"), '1').await?;
        let count = data.count_to_end().await?;
        self.control.reply('2').await?;
        match count == bytes as usize {
            true => Ok(()),
            false => Err(Failed(format!("{count} bytes came instead of {bytes}"))),
        }
    }
}
