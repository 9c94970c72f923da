//! The server: what a person meets before and after logging in.
//!
//! [`Session`] is pure: octets, time, verdicts and shell output in; octets and [`Action`]s out.
//! [`crate::driver::serve_session`] carries them.

mod applications;
mod config;
mod environment;
mod line_mode;
mod login;
mod pace;
mod session;

pub use applications::{Application, Applications, Target};
pub use config::ServerConfig;
pub use environment::{language, terminal};
pub use login::{LoginHandler, Purpose, Said};
pub use session::{Action, Closing, Session, ShellRequest};

#[cfg(test)]
mod application_tests;
#[cfg(test)]
mod operator_tests;
#[cfg(test)]
mod tests;
