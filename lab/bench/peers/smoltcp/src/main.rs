//! smoltcp under the measurements of `make bench`: one measurement a process, one line of JSON as its answer. The words
//! are those of `inhost-subject`.

mod bulk;
mod connect;
mod consume;
mod echo;
mod link;
mod memory;
mod tun;
mod two;

use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
usage: inhost-bench-smoltcp MEASUREMENT SECONDS
measurements: memory-bulk-MTU[-trusted]  echo-memory  connect-bare  memory
  path-bulk-1500, for so many segments and not seconds
  LINK:LOAD of tun-plain tun-offload tap-plain tap-offload and send receive echo consume";

/// Figures by name, and the settings under which they came about.
pub struct Answer {
    settings: String,
    figures: Vec<(&'static str, f64)>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [measurement, seconds] = &arguments[..] else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let Some(length) = seconds.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok()) else {
        eprintln!("{seconds:?} is not a number of seconds\n{USAGE}");
        return ExitCode::from(2);
    };
    match measure(measurement, length) {
        Ok(Answer { settings, figures }) => {
            let figures: Vec<String> =
                figures.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            println!("{{\"figures\":{{{}}},\"settings\":\"smoltcp 0.14; {settings}\"}}", figures.join(","));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("inhost-bench-smoltcp {measurement}: {why}");
            ExitCode::FAILURE
        }
    }
}

fn measure(measurement: &str, length: Duration) -> Result<Answer, String> {
    if let Some(words) = measurement.strip_prefix("memory-bulk-") {
        return bulk::memory(words, length);
    }
    if measurement == "path-bulk-1500" {
        return bulk::path(length.as_secs() as usize);
    }
    if let Some((link, load)) = measurement.split_once(':') {
        return link::measure(link, load, length);
    }
    match measurement {
        "echo-memory" => echo::memory(length),
        "connect-bare" => connect::bare(length),
        "memory" => Ok(memory::socket()),
        _ => Err(format!("no such measurement\n{USAGE}")),
    }
}

/// Time that a core has spent on this process, in seconds.
pub fn core_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is what the call fills in.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
