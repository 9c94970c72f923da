//! The names of terminals and printers, and the way of prints from one to the other.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use inhost_base::IpAddr;

use crate::codec::{DeviceReason, Resource};

/// Prints that wait for one printer.
pub const JOBS: usize = 16;
/// Lines of one print.
pub const JOB_LINES: usize = 5_000;

/// Why something is not printed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum PrintError {
    /// No printer is associated with the terminal.
    NoPrinter,
    /// The printer has [`JOBS`] prints to do.
    Busy,
    /// It has more than [`JOB_LINES`].
    TooLong,
}

impl fmt::Display for PrintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrintError::NoPrinter => f.write_str("No printer is associated with this terminal"),
            PrintError::Busy => f.write_str("The printer has too much to print"),
            PrintError::TooLong => write!(f, "A print has at most {JOB_LINES} lines"),
        }
    }
}
impl std::error::Error for PrintError {}

/// Where a client comes from. A printer is associated with a terminal only if both come from one place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Origin {
    /// The outer caller's address.
    pub address: IpAddr,
    /// Whether the connection is encrypted. What a terminal with TLS prints goes only to a printer with TLS.
    pub is_tls: bool,
}

impl Origin {
    /// A client without TLS.
    pub fn clear(address: IpAddr) -> Origin {
        Origin { address, is_tls: false }
    }
}

struct Entry {
    is_printer: bool,
    origin: Origin,
    /// The other one of a terminal and its printer.
    partner: Option<String>,
    jobs: VecDeque<Vec<String>>,
    waker: Option<Waker>,
}

struct State {
    most: usize,
    entries: BTreeMap<String, Entry>,
}

/// The devices of a server. A clone is the same.
///
/// Terminals are named LU001, LU002 …, and printers PR001, PR002 …; a client may ask for one of these names that is free.
///
/// ```
/// use inhost_tn3270::codec::Resource;
/// use inhost_tn3270::server::{Devices, Origin};
/// let devices = Devices::new(8);
/// let origin = Origin::clear([10, 9, 0, 2].into());
/// let terminal = devices.request("IBM-3278-2-E", None, origin).unwrap();
/// let associate = Resource::Associate(terminal.name().to_owned());
/// let printer = devices.request("IBM-3287-1", Some(&associate), origin).unwrap();
/// assert_eq!((terminal.name(), printer.name()), ("LU001", "PR001"));
/// assert!(devices.print("LU001", vec!["hello".into()]).is_ok());
/// ```
#[derive(Clone)]
pub struct Devices(Rc<RefCell<State>>);

/// A device in use. Dropped, it is free.
pub struct Device {
    devices: Devices,
    name: String,
    is_printer: bool,
}

/// Whether a type is that of a printer.
pub(super) fn is_printer(device_type: &str) -> bool {
    device_type.starts_with("IBM-3287") || device_type.starts_with("IBM-3286")
}
/// Whether a type is that of a terminal.
fn is_terminal(device_type: &str) -> bool {
    ["IBM-3277", "IBM-3278", "IBM-3279", "IBM-DYNAMIC"].iter().any(|head| device_type.starts_with(head))
}

impl Devices {
    /// Room for so many terminals, and as many printers.
    pub fn new(most: usize) -> Devices {
        Devices(Rc::new(RefCell::new(State { most, entries: BTreeMap::new() })))
    }
    /// Changes how many there may be. Those in use stay.
    pub fn set_most(&self, most: usize) {
        self.0.borrow_mut().most = most;
    }
    /// Gives a device to a client from `origin`.
    ///
    /// # Errors
    ///
    /// The reason to tell the client (RFC 2355 §7.1.6). A terminal of another origin cannot be associated with: its prints
    /// are its own.
    pub fn request(
        &self,
        device_type: &str,
        resource: Option<&Resource>,
        origin: Origin,
    ) -> Result<Device, DeviceReason> {
        let is_printer = is_printer(device_type);
        if !is_printer && !is_terminal(device_type) {
            return Err(DeviceReason::InvalidDeviceType);
        }
        let mut state = self.0.borrow_mut();
        let (name, partner) = match resource {
            None => (state.free(is_printer)?, None),
            Some(Resource::Connect(name)) => {
                state.check_name(name, is_printer)?;
                (name.clone(), None)
            }
            Some(Resource::Associate(_)) if !is_printer => return Err(DeviceReason::InvalidAssociate),
            Some(Resource::Associate(terminal)) => match state.entries.get(terminal) {
                None => return Err(DeviceReason::ConnectPartner),
                Some(entry) if entry.is_printer || entry.origin != origin => {
                    return Err(DeviceReason::InvalidAssociate);
                }
                Some(entry) if entry.partner.is_some() => return Err(DeviceReason::DeviceInUse),
                Some(_) => (state.free(true)?, Some(terminal.clone())),
            },
        };
        if let Some(entry) = partner.as_ref().and_then(|terminal| state.entries.get_mut(terminal)) {
            entry.partner = Some(name.clone());
        }
        state
            .entries
            .insert(name.clone(), Entry { is_printer, origin, partner, jobs: VecDeque::new(), waker: None });
        Ok(Device { devices: self.clone(), name, is_printer })
    }
    /// Prints lines on the printer of a terminal.
    pub fn print(&self, terminal: &str, lines: Vec<String>) -> Result<(), PrintError> {
        if lines.len() > JOB_LINES {
            return Err(PrintError::TooLong);
        }
        let waker = {
            let mut state = self.0.borrow_mut();
            let partner = state.entries.get(terminal).and_then(|entry| entry.partner.clone());
            let printer =
                partner.and_then(|name| state.entries.get_mut(&name)).ok_or(PrintError::NoPrinter)?;
            if printer.jobs.len() >= JOBS {
                return Err(PrintError::Busy);
            }
            printer.jobs.push_back(lines);
            printer.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
        Ok(())
    }
}

impl State {
    fn free(&self, is_printer: bool) -> Result<String, DeviceReason> {
        let head = if is_printer { "PR" } else { "LU" };
        (1..=self.most)
            .map(|number| format!("{head}{number:03}"))
            .find(|name| !self.entries.contains_key(name))
            .ok_or(DeviceReason::DeviceInUse)
    }
    /// Whether a name is one of ours, of the right kind, and free.
    fn check_name(&self, name: &str, is_printer: bool) -> Result<(), DeviceReason> {
        let number = |head: &str| name.strip_prefix(head).and_then(|digits| digits.parse::<usize>().ok());
        let (number, kind) = match (number("LU"), number("PR")) {
            (Some(number), _) => (number, false),
            (_, Some(number)) => (number, true),
            _ => return Err(DeviceReason::InvalidName),
        };
        let head = if kind { "PR" } else { "LU" };
        if !(1..=self.most).contains(&number) || name != format!("{head}{number:03}") {
            return Err(DeviceReason::InvalidName);
        }
        match (kind == is_printer, self.entries.contains_key(name)) {
            (false, _) => Err(DeviceReason::TypeNameError),
            (_, true) => Err(DeviceReason::DeviceInUse),
            _ => Ok(()),
        }
    }
}

impl Device {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Whether it is a printer.
    pub fn is_printer(&self) -> bool {
        self.is_printer
    }
    /// The next print for this printer.
    pub fn poll_job(&self, cx: &mut Context<'_>) -> Poll<Vec<String>> {
        let mut state = self.devices.0.borrow_mut();
        let Some(entry) = state.entries.get_mut(&self.name) else { return Poll::Pending };
        match entry.jobs.pop_front() {
            Some(job) => Poll::Ready(job),
            None => {
                entry.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let mut state = self.devices.0.borrow_mut();
        let Some(entry) = state.entries.remove(&self.name) else { return };
        if let Some(partner) = entry.partner.and_then(|name| state.entries.get_mut(&name)) {
            partner.partner = None;
        }
    }
}
