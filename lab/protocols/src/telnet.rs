//! A command of a Telnet session prints a text.

use inhost_socket::Host;
use inhost_telnet::service::Telnet;

use crate::Failed;
use crate::dialogue::Dialogue;
use crate::place::{FILE, MARK, Place};

const PORT: u16 = 23;
/// The host greets with more than this, and prints a prompt before each command.
const PROMPT: &[u8] = b"> ";

pub(crate) fn start(place: &Place) -> Result<Telnet, Failed> {
    let news = place.folder().join(FILE).display().to_string();
    let mut section = toml::Table::new();
    section.insert("enabled".to_owned(), true.into());
    section.insert("news".to_owned(), news.into());
    place.start(section)
}

pub(crate) struct Client(Dialogue);

impl Client {
    pub(crate) async fn open(host: &Host) -> Result<Client, Failed> {
        let mut dialogue = Dialogue::open(host, PORT).await?;
        dialogue.until(PROMPT).await?;
        Ok(Client(dialogue))
    }
}

impl crate::Client for Client {
    async fn transact(&mut self, bytes: u32) -> Result<(), Failed> {
        self.0.send(b"news\r\n").await?;
        let printed = self.0.until(MARK).await?.len();
        self.0.until(PROMPT).await?;
        match printed >= bytes as usize {
            true => Ok(()),
            false => Err(Failed(format!("{printed} bytes were printed instead of {bytes}"))),
        }
    }
}
