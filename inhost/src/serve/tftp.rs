//! The TFTP server of a running host: its folder and its log.

use crate::config::Tftp;
use crate::failure::Failure;
use inhost_common::storage::Folder;
use inhost_common::{Callers, Cleaner};
use inhost_socket::Host;
use inhost_tftp::driver::{Server, ServerEvent, serve};
use std::rc::Rc;
use tracing::{error, info};

/// Starts it.
pub fn start(host: &Host, tftp: &Tftp, callers: &Callers) -> Result<Server, Failure> {
    let port = tftp.port;
    serve(host, port, Rc::new(folder(tftp)?), tftp.server()?, callers.clone(), log)
        .map_err(|why| Failure::operation(format!("cannot serve TFTP at port {port}: {why}")))
}

/// Takes over what can change for new transfers; what cannot be read leaves all as it was.
pub fn reload(server: &Server, tftp: &Tftp, folder: Result<Folder, Failure>) {
    match folder.and_then(|folder| Ok((folder, tftp.server()?))) {
        Ok((folder, config)) => server.change(Rc::new(folder), config),
        Err(failure) => error!(target: "tftp", "stays as it was: {failure}"),
    }
}

/// Opens the folder that is served; it waits for the disk.
pub fn folder(tftp: &Tftp) -> Result<Folder, Failure> {
    let root = tftp.root.as_deref().ok_or_else(|| Failure::usage("tftp.root: name a folder"))?;
    Folder::open(root)
        .map_err(|e| Failure::operation(format!("tftp: cannot open the folder {}: {e}", root.display())))
}

/// One line of the log for each event.
fn log(event: ServerEvent<'_>) {
    match event {
        ServerEvent::Refused { peer, why } => info!(target: "tftp", %peer, "refused: {why}"),
        ServerEvent::Ended { peer, request, outcome } => {
            let what = if request.is_write { "write" } else { "read" };
            let name = Cleaner::line(request.name.as_bytes());
            match outcome {
                Ok(summary) => {
                    info!(target: "tftp", %peer, name, bytes = summary.file_bytes, "{what}")
                }
                Err(why) => info!(target: "tftp", %peer, name, "{what} failed: {why}"),
            }
        }
    }
}
