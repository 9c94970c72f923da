//! What the tasks of a host wait for, for a debugger.

use inhost_stack::SocketId;

use crate::Host;

/// What the tasks of a host wait for; from [`Host::task_waits`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskWaits {
    /// A task is runnable now.
    pub is_runnable: bool,
    /// Timers that tasks have set.
    pub timers: usize,
    /// When the soonest is due, on the host's clock.
    pub timer_ns: Option<u64>,
    /// Sockets for which a task waits, in the order of the table.
    pub sockets: Vec<SocketWaits>,
}

/// Tasks that wait for a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketWaits {
    /// Which.
    pub socket: SocketId,
    /// For data, the end of the stream, or a caller.
    pub reading: usize,
    /// For room to send, or the end of the handshake.
    pub writing: usize,
    /// For urgent data.
    pub urgent: usize,
}

impl Host {
    /// What the tasks wait for. It takes time in proportion to the number of sockets.
    ///
    /// ```
    /// use inhost_base::{Duration, Instant};
    /// use inhost_socket::Host;
    /// use inhost_stack::{Stack, StackConfig};
    ///
    /// let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
    /// let sleeper = host.clone();
    /// host.spawn(async move { sleeper.sleep(Duration::from_secs(5)).await }).detach();
    /// assert!(host.task_waits().is_runnable);
    /// host.run(Instant::ZERO, 10);
    /// let waits = host.task_waits();
    /// assert_eq!((waits.is_runnable, waits.timers, waits.timer_ns), (false, 1, Some(5_000_000_000)));
    /// host.stop();
    /// ```
    pub fn task_waits(&self) -> TaskWaits {
        let (timers, waiters) = (self.timers().borrow(), self.waiters().borrow());
        TaskWaits {
            is_runnable: self.has_runnable(),
            timers: timers.len(),
            timer_ns: timers.deadline().map(|at| at.as_nanos()),
            sockets: waiters
                .counts()
                .map(|(socket, [reading, writing, urgent])| SocketWaits { socket, reading, writing, urgent })
                .collect(),
        }
    }
}
