//! What the tests of every crate share: programs that end with their test, waits with a deadline, commands of a README,
//! network namespaces, a page in a browser, and how a test says that it cannot run here.
//!
//! No wait is without end. A test that waits in another way, on a socket say, sets a timeout of [`DEADLINE`] there. The
//! runner of the tests ends a test later than that, so a test can still say itself what did not happen.
//!
//! ```
//! use inhost_interop::{Running, output};
//! use std::process::Command;
//!
//! assert_eq!(output(Command::new("echo").arg("hello")).stdout, b"hello\n");
//! let mut shell = Running::start(Command::new("sh").args(["-c", "echo ready; sleep 1000"]));
//! shell.wait_for("ready"); // Whatever happens now, the shell and its sleep end with the test.
//! ```

mod browser;
#[cfg(feature = "help")]
pub mod help;
mod left_out;
mod namespace;
mod peer;
mod program;
pub mod readme;
pub mod slurm;
mod waiting;

pub use browser::Page;
pub use left_out::left_out;
pub use namespace::own_network;
pub use peer::peer;
pub use program::{Running, lines, output, output_within, run};
pub use waiting::{DEADLINE, join, pause, receive, until, within};
