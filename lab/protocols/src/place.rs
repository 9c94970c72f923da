//! A host with a service, and the folder of its files.

use std::path::Path;
use std::rc::Rc;

use inhost_common::service::{HostFiles, NoOperator, Service, ServiceContext, Sessions};
use inhost_common::{Callers, Denials};
use inhost_runtime::{Runtime, entropy};
use inhost_socket::Host;
use inhost_stack::StackConfig;
use tempfile::TempDir;

use crate::Failed;

/// The file that is fetched, and the text that is printed.
pub(crate) const FILE: &str = "text.txt";
/// How it ends.
pub(crate) const MARK: &[u8] = b"The end.\r\n";

pub(crate) struct Place {
    runtime: Runtime,
    folder: TempDir,
}

impl Place {
    /// With a file of so many bytes.
    pub(crate) fn new(bytes: u32) -> Result<Place, Failed> {
        let runtime = Runtime::new(StackConfig::default()).map_err(|e| Failed::of("the host", e))?;
        let folder = tempfile::tempdir().map_err(|e| Failed::of("a temporary folder", e))?;
        let path = folder.path().join(FILE);
        std::fs::write(&path, text(bytes)).map_err(|e| Failed::of(FILE, e))?;
        Ok(Place { runtime, folder })
    }
    pub(crate) fn host(&self) -> &Host {
        self.runtime.host()
    }
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
    /// Starts a service with a section of host.toml.
    pub(crate) fn start<S: Service>(&self, section: toml::Table) -> Result<S, Failed> {
        let failed = |e: &dyn std::fmt::Display| Failed::of(S::NAME, e);
        let section: S::Section = section.try_into().map_err(|e: toml::de::Error| failed(&e))?;
        let context = self.context();
        S::check(&section).map_err(|e| failed(&e))?;
        let prepared = S::prepare(&section, &context.files).map_err(|e| failed(&e))?;
        S::start(&section, prepared, &context).map_err(|e| failed(&e))
    }
    /// Runs the host until `done` is.
    pub(crate) fn run<T>(&mut self, done: impl Future<Output = T>) -> Result<T, Failed> {
        self.runtime.run(done).map_err(|e| Failed::of("the host", e))
    }
    fn context(&self) -> ServiceContext {
        ServiceContext {
            host: self.runtime.host().clone(),
            reactor: self.runtime.handle().clone(),
            callers: Callers::default(),
            denials: Denials::default(),
            sessions: Sessions::default(),
            files: HostFiles {
                are_users_named: false,
                users: Some(self.folder.path().join("users")),
                hosts: "/dev/null".into(),
            },
            resolvers: Default::default(),
            program: "inhost".into(),
            descriptor_limit: None,
            netstat: Rc::new(String::new),
            operator: Rc::new(NoOperator),
            unix_time: || std::time::UNIX_EPOCH.elapsed().unwrap_or_default(),
            entropy,
        }
    }
}

/// A text of so many octets in lines of at most 72, which ends with the mark.
pub(crate) fn text(bytes: u32) -> Vec<u8> {
    let line = [&[b'a'; 70][..], b"\r\n"].concat();
    let before = (bytes as usize).saturating_sub(MARK.len());
    let mut text: Vec<u8> = line.iter().copied().cycle().take(before).collect();
    // No line is cut in its end.
    for octet in text.iter_mut().skip(before / line.len() * line.len()) {
        *octet = b'b';
    }
    text.extend_from_slice(MARK);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_its_length_and_whole_lines() {
        for bytes in [32, 72, 81, 82, 83, 154, 1000] {
            let text = text(bytes);
            assert_eq!(text.len(), bytes as usize);
            assert!(text.ends_with(MARK));
            let returns = text.iter().filter(|&&octet| octet == b'\r').count();
            assert_eq!(returns, text.windows(2).filter(|pair| pair == b"\r\n").count());
        }
    }
}
