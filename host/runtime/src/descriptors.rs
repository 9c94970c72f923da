//! The descriptor limit of the process, and the errors at that limit.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many descriptors the process may have open, before and after [`raise_descriptor_limit`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DescriptorLimit {
    /// The original limit, which child processes should get: some iterate over all numbers below it.
    pub before: Option<u64>,
    /// As it is now; none is no limit.
    pub now: Option<u64>,
}

/// Raises the process's limit of open descriptors as far as it may without privilege, which is for the whole process:
/// for programs that serve many, at their start.
pub fn raise_descriptor_limit() -> io::Result<DescriptorLimit> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(DescriptorLimit { before: current, now: maximum })
}

/// Whether `error` says that this process or the system has no descriptor or no memory to spare, and nothing about the
/// other end: neither a refusal nor a reset. It passes when others are closed. No readiness reports that; a caller in
/// the backlog still waits, so accept again after a pause.
pub fn is_shortage(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
        || error.kind() == io::ErrorKind::QuotaExceeded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_it_may_be() {
        let hard = getrlimit(Resource::Nofile).maximum;
        let low = Some(hard.unwrap_or(1 << 20).min(512));
        setrlimit(Resource::Nofile, Rlimit { current: low, maximum: hard }).unwrap();
        assert_eq!(raise_descriptor_limit().unwrap(), DescriptorLimit { before: low, now: hard });
        assert_eq!(getrlimit(Resource::Nofile).current, hard);
    }

    #[test]
    fn a_shortage_is_no_refusal() {
        for (errno, is) in [
            (Errno::MFILE, true),
            (Errno::NFILE, true),
            (Errno::CONNREFUSED, false),
            (Errno::CONNABORTED, false),
        ] {
            assert_eq!(is_shortage(&io::Error::from(errno)), is, "{errno:?}");
        }
        assert!(is_shortage(&io::Error::new(
            io::ErrorKind::QuotaExceeded,
            "too many descriptors are watched"
        )));
    }
}
