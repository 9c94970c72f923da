//! Cycles and instructions of this process, by the processor's performance counters.

use std::fs::read_dir;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use nix::errno::Errno;
use perf_event::events::{Event, Hardware};
use perf_event::{Builder, Counter};

use super::Counts;

/// One event, with a counter for each thread that there was; threads that one of them begins later are counted with it.
struct Counted(Vec<Counter>);

struct Counters {
    cycles: Counted,
    instructions: Counted,
    is_user_only: bool,
}

/// So far, since this was first called; none where the system has no such counter for us, as in most virtual machines.
pub(super) fn of_process() -> Option<Counts> {
    static COUNTERS: OnceLock<Option<Mutex<Counters>>> = OnceLock::new();
    let counters = COUNTERS.get_or_init(|| {
        // Without privilege a process may count itself, and not what the kernel does for it.
        [false, true].into_iter().find_map(|is_user_only| Counters::open(is_user_only).ok()).map(Mutex::new)
    });
    counters.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).read()
}

impl Counters {
    fn open(is_user_only: bool) -> io::Result<Counters> {
        let cycles = Counted::open(Hardware::CPU_CYCLES, is_user_only)?;
        Ok(Counters {
            cycles,
            instructions: Counted::open(Hardware::INSTRUCTIONS, is_user_only)?,
            is_user_only,
        })
    }
    fn read(&mut self) -> Option<Counts> {
        let (cycles, instructions) = (self.cycles.read()?, self.instructions.read()?);
        Some(Counts { cycles, instructions, is_user_only: self.is_user_only })
    }
}

impl Counted {
    fn open(event: impl Event + Clone, is_user_only: bool) -> io::Result<Counted> {
        let mut counters = Vec::new();
        for thread in read_dir("/proc/self/task")? {
            let Some(thread) = thread?.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let mut builder = Builder::new(event.clone());
            builder.observe_pid(thread).inherit(true).enabled(true).exclude_kernel(is_user_only);
            match builder.build() {
                Ok(counter) => counters.push(counter),
                // It has ended meanwhile.
                Err(why) if why.raw_os_error() == Some(Errno::ESRCH as i32) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(Counted(counters))
    }
    /// The sum. A counter that had to share its place in the processor is scaled to the time that it should have run.
    fn read(&mut self) -> Option<u64> {
        let mut sum = 0;
        for counter in &mut self.0 {
            let of = counter.read_count_and_time().ok()?;
            match of.time_running {
                0 if of.time_enabled > 0 => return None,
                running if running == of.time_enabled => sum += of.count,
                running => sum += (of.count as f64 * of.time_enabled as f64 / running as f64) as u64,
            }
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perf_event::events::Software;

    /// Where the processor has no counter, the kernel still counts the time of threads in the same way.
    #[test]
    fn threads_that_begin_later_are_counted() {
        let mut clock = match Counted::open(Software::TASK_CLOCK, true) {
            Ok(clock) => clock,
            Err(why) => {
                assert_eq!(of_process(), None, "{why}");
                return;
            }
        };
        let before_ns = clock.read().unwrap();
        let spins = || {
            let used_ns = || getrusage_ns();
            let began_ns = used_ns();
            while used_ns() - began_ns < 20_000_000 {
                std::hint::spin_loop();
            }
        };
        std::thread::spawn(spins).join().unwrap();
        let counted_ns = clock.read().unwrap() - before_ns;
        assert!(counted_ns >= 15_000_000, "{counted_ns}");
    }

    /// The processor time of this thread.
    fn getrusage_ns() -> i64 {
        use nix::sys::resource::{UsageWho, getrusage};
        use nix::sys::time::TimeValLike;
        let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
        1000 * (usage.user_time().num_microseconds() + usage.system_time().num_microseconds())
    }
}
