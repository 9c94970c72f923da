//! The programs of the papers, over the host's own sockets.

mod blast;
mod bulk;
mod echo;
mod full_screen;
mod queue;
mod screenful;

use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_socket::Stream;
use inhost_stack::ListenOptions;

use crate::measured::Measured;
use crate::setup::{Program, Setup};
use crate::world::{Node, PORT};
use inhost_sim::setup::{SetupError, within};

/// Every run is over by then.
const LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Runs the program of a setup.
pub(crate) fn run(setup: &Setup, seed: u64) -> Result<Measured, SetupError> {
    match setup.program {
        Program::Echo { count, bytes, prints, scrolls } => {
            echo::run(setup, seed, echo::Echo { count, bytes, prints, scrolls })
        }
        Program::Blast { message_bytes, duration_ms, total_bytes } => {
            blast::run(setup, seed, blast::Blast { message_bytes, duration_ms, total_bytes })
        }
        Program::Screenful {} => screenful::run(setup, seed),
        Program::Bulk { write_bytes, total_bytes, duration_s, prints, sessions } => {
            let bulk = bulk::Bulk { write_bytes, total_bytes, duration_s, prints, sessions };
            bulk::run(setup, seed, &bulk)
        }
        Program::Queue { arrivals_per_s, services_per_s, places, packets } => {
            queue::run(seed, &queue::Queue { arrivals_per_s, services_per_s, places, packets })
        }
        Program::FullScreen { interactions, interval_ms, in_bytes, out_bytes, write_bytes } => {
            let screen =
                full_screen::FullScreen { interactions, interval_ms, in_bytes, out_bytes, write_bytes };
            full_screen::run(setup, seed, &screen)
        }
    }
}

/// Listens, and gives the first connection.
async fn serve(node: &Node) -> Result<Stream, String> {
    let at = Endpoint::new(Ipv4Addr::UNSPECIFIED, PORT);
    let listener = node.host.listen(at, ListenOptions::default()).map_err(wrong)?;
    listener.accept().await.map_err(wrong)
}

/// An error of a socket as text.
fn wrong(why: impl core::fmt::Display) -> String {
    why.to_string()
}
