//! The procedures of NFS over a [`Tree`](super::tree::Tree): what a caller may do, and attributes before and after.
#![allow(clippy::result_large_err, reason = "a procedure that failed tells attributes, too")]

mod change;
mod list;
mod names;
mod query;

use std::sync::Arc;

use super::access::Identity;
use super::tree::{FileKey, Known};
use super::{Caller, Export, Refused, Server, arguments, locked};
use crate::codec::nfs::{
    self, Attributes, Failed, Handle, Outcome, PostOp, Procedure, Status, Wcc, WccAttributes,
};
use crate::codec::rpc::CallHeader;
use crate::codec::xdr::{Decoder, Encoder};

/// A file that a caller named by its handle.
struct Named {
    export: Arc<Export>,
    key: FileKey,
    identity: Identity,
}

/// A caller, its credentials and the server: all that the procedures need.
struct Session<'a> {
    server: &'a Server,
    call: &'a CallHeader,
    caller: Caller,
}

/// Result of a change of a file or directory: its attributes around it.
struct Changed<T> {
    wcc: Wcc,
    result: Result<T, Status>,
}

impl Server {
    pub(super) fn files_procedure(
        &self,
        call: &CallHeader,
        caller: Caller,
        from: &mut Decoder<'_>,
        to: &mut Encoder,
    ) -> Result<(), Refused> {
        let session = Session { server: self, call, caller };
        macro_rules! serve {
            ($($procedure:ident => $method:ident,)*) => {
                match call.target.procedure {
                    nfs::Null::NUMBER => {}
                    $(nfs::$procedure::NUMBER => {
                        let asked: <nfs::$procedure as Procedure>::Arguments = arguments(from)?;
                        let result: <nfs::$procedure as Procedure>::Results = session.$method(&asked);
                        to.value(&result);
                    })*
                    _ => return Err(Refused::Procedure),
                }
            };
        }
        serve! {
            GetAttr => attributes,
            SetAttr => set_attributes,
            Lookup => lookup,
            Access => access,
            ReadLink => read_link,
            Read => read,
            Write => write,
            Create => create,
            Mkdir => make_directory,
            Symlink => symlink,
            Mknod => make_node,
            Remove => remove,
            Rmdir => remove_directory,
            Rename => rename,
            Link => link,
            ReadDir => read_directory,
            ReadDirPlus => read_directory_plus,
            FsStat => statistics,
            FsInfo => information,
            PathConf => path_limits,
            Commit => commit,
        }
        Ok(())
    }
}

impl Named {
    fn attributes(&self) -> Result<Attributes, Status> {
        self.export.tree.attributes(&self.key)
    }
    /// Attributes where they can be had.
    fn after(&self) -> PostOp {
        self.attributes().ok()
    }
    fn check_writable(&self) -> Result<(), Status> {
        if self.export.rules.is_writable { Ok(()) } else { Err(Status::ROFS) }
    }
}

impl Session<'_> {
    /// The file of a handle.
    fn named(&self, handle: &Handle) -> Result<Named, Status> {
        let (number, key) = self.server.handles.open(handle).ok_or(Status::BADHANDLE)?;
        let exports = self.server.exports();
        let export = exports.numbered(number).ok_or(Status::STALE)?.clone();
        if !export.admits(self.caller.address, self.caller.port) {
            return Err(Status::ACCES);
        }
        let identity = export.identity(&self.call.credentials);
        Ok(Named { export, key, identity })
    }

    fn handle(&self, export: &Export, known: &Known) -> Handle {
        self.server.handles.seal(export.number, &known.key)
    }

    /// Runs a query, and adds the attributes after it, also when it fails.
    fn telling<T>(
        &self,
        handle: &Handle,
        work: impl FnOnce(&Named, &Attributes) -> Result<T, Status>,
    ) -> Outcome<(T, PostOp), PostOp> {
        let named = self.named(handle).map_err(|status| Failed { status, rest: None })?;
        let attributes = named.attributes().map_err(|status| Failed { status, rest: None })?;
        match work(&named, &attributes) {
            Ok(done) => Ok((done, named.after())),
            Err(status) => Err(Failed { status, rest: named.after() }),
        }
    }

    /// Runs a change of a file or directory under its lock, so that the attributes before and after enclose this change
    /// only. A client decides by them whether its cache is still valid.
    fn changing<T>(
        &self,
        handle: &Handle,
        work: impl FnOnce(&Named, &Attributes) -> Result<T, Status>,
    ) -> Changed<T> {
        let named = match self.named(handle) {
            Ok(named) => named,
            Err(status) => return Changed { wcc: Wcc::default(), result: Err(status) },
        };
        let _alone = locked(&self.server.locks[self.server.lock_of(&named.key)]);
        self.change_alone(&named, work)
    }

    /// The same; the caller keeps others out.
    fn change_alone<T>(
        &self,
        named: &Named,
        work: impl FnOnce(&Named, &Attributes) -> Result<T, Status>,
    ) -> Changed<T> {
        let before = match named.attributes() {
            Ok(before) => before,
            Err(status) => return Changed { wcc: Wcc::default(), result: Err(status) },
        };
        let result = named.check_writable().and_then(|()| work(named, &before));
        let wcc = Wcc { before: Some(WccAttributes::from(before)), after: named.after() };
        Changed { wcc, result }
    }
}

impl<T> Changed<T> {
    /// As most procedures tell it.
    fn outcome<O>(self, done: impl FnOnce(T, Wcc) -> O) -> Outcome<O, Wcc> {
        let wcc = self.wcc;
        match self.result {
            Ok(value) => Ok(done(value, wcc)),
            Err(status) => Err(Failed { status, rest: wcc }),
        }
    }
}
