//! What carries a request of the control socket out, and what it answers.

use std::fs;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;

use inhost_socket::Host;
use inhost_socket::errno::Errno;
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::{Map, Value};

/// The reply to a request.
#[derive(Debug, Default)]
pub struct Reply {
    /// The members of the reply, beside `"ok"`.
    pub members: Map<String, Value>,
    /// A descriptor that goes with it.
    pub descriptor: Option<OwnedFd>,
}

impl From<Value> for Reply {
    /// The members of an object; any other value becomes the member `"value"`.
    fn from(value: Value) -> Self {
        let members = match value {
            Value::Object(members) => members,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        Reply { members, descriptor: None }
    }
}

impl Reply {
    /// A reply with a descriptor from which `bytes` are read: those that are too many for a line. It copies them, so that
    /// many are better copied on another thread.
    ///
    /// # Errors
    /// When there is no descriptor or no memory left.
    pub fn holding(bytes: &[u8]) -> io::Result<Reply> {
        let mut file = memory_file()?;
        file.write_all(bytes)?;
        file.rewind()?;
        Ok(Reply { members: Map::new(), descriptor: Some(file.into()) })
    }
}

/// A file in memory without a name.
pub(super) fn memory_file() -> io::Result<fs::File> {
    Ok(memfd_create("inhost", MemfdFlags::CLOEXEC)?.into())
}

/// Why a request was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// A sentence.
    pub text: String,
    /// The system's number for it, where there is one.
    pub errno: Option<i32>,
}

impl Failure {
    /// A failure without a number.
    pub fn new(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), errno: None }
    }
}
impl<E: Errno> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure { text: error.to_string(), errno: Some(error.errno()) }
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Reply, Failure>>>>;

/// Carries one kind of request out; it is given the whole request.
pub type Handler = Rc<dyn Fn(Host, Value) -> Answer>;

/// A request that `handler` carries out.
pub(super) fn by<F>(handler: impl Fn(Host, Value) -> F + 'static) -> Handler
where
    F: Future<Output = Result<Reply, Failure>> + 'static,
{
    Rc::new(move |host, request| Box::pin(handler(host, request)))
}
