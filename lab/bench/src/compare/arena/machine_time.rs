//! Time that cores were busy: on the whole machine, because what the kernel does for a packet is charged to the process
//! that runs at that moment; and for one process, to see how much else was going on.

/// Readings of both.
pub struct MachineTime {
    /// All cores, in seconds.
    pub machine_s: f64,
    /// One process, in seconds.
    pub process_s: f64,
}

/// Of the kernel's counters in /proc, on every platform that Linux has today.
const TICKS_A_SECOND: f64 = 100.0;

impl MachineTime {
    /// As of now.
    pub fn now(process: u32) -> Result<MachineTime, String> {
        let read = |path: String| std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"));
        let machine = busy_ticks(&read("/proc/stat".into())?).ok_or("/proc/stat is not understood")?;
        let process =
            process_ticks(&read(format!("/proc/{process}/stat"))?).ok_or("/proc/N/stat is not understood")?;
        Ok(MachineTime {
            machine_s: machine as f64 / TICKS_A_SECOND,
            process_s: process as f64 / TICKS_A_SECOND,
        })
    }
    /// What has been spent since an earlier reading.
    pub fn since(&self, earlier: &MachineTime) -> MachineTime {
        MachineTime {
            machine_s: self.machine_s - earlier.machine_s,
            process_s: self.process_s - earlier.process_s,
        }
    }
}

/// user, nice, system, idle, iowait, irq, softirq: all but the two in which nothing was done.
fn busy_ticks(text: &str) -> Option<u64> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    Some(fields.get(..3)?.iter().sum::<u64>() + fields.get(5..7)?.iter().sum::<u64>())
}

/// utime and stime, the 14th and 15th field; the second is a name in parentheses with anything in it.
fn process_ticks(text: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_all_but_idle_and_waiting() {
        assert_eq!(busy_ticks("cpu  1 2 4 1000 2000 8 16 0 0 0\ncpu0 9 9 9"), Some(31));
        assert_eq!(busy_ticks("cpu  1 2"), None);
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 40 2 0 0 20 0";
        assert_eq!(process_ticks(stat), Some(42));
    }
}
