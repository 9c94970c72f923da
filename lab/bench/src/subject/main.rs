//! inhost, and the kernel's own sockets, under the measurements of `make bench`: one measurement a process, one line of
//! JSON as its answer. The peers' harnesses in `lab/bench/peers` understand the same words and answer in the same form.
#![forbid(unsafe_code)]

mod answer;
mod bodies;
mod bulk;
mod connect;
mod consume;
mod echo;
mod host;
mod kernel;
mod limits;
mod link;
mod shards;
mod wire;

use answer::Answer;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
usage: inhost-subject MEASUREMENT SECONDS
measurements: memory-bulk-MTU[-trusted][-lend]  echo-memory  echo-memory-async  connect  connect-bare  shards
  limits
  LINK:LOAD of tun-plain tun-offload tap-plain tap-offload veth-plain veth-offload lo-offload and send receive echo
  consume connect bodies, and bodies-local of tun and tap";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [measurement, seconds] = words[..] else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let Some(length) = seconds.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok()) else {
        eprintln!("{seconds:?} is not a number of seconds\n{USAGE}");
        return ExitCode::from(2);
    };
    match measure(measurement, length) {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("inhost-subject {measurement}: {why}");
            ExitCode::FAILURE
        }
    }
}

fn measure(measurement: &str, length: Duration) -> Result<Answer, String> {
    if let Some(words) = measurement.strip_prefix("memory-bulk-") {
        return bulk::memory(words, length);
    }
    if let Some((link, load)) = measurement.split_once(':') {
        let measure =
            if link.starts_with("veth") || link.starts_with("lo") { kernel::measure } else { link::measure };
        return measure(link, load, length);
    }
    match measurement {
        "echo-memory" => echo::raw(length),
        "echo-memory-async" => echo::by_tasks(length),
        "connect" => connect::full(length),
        "connect-bare" => connect::bare(length),
        "limits" => Ok(limits::measure(length)),
        "shards" => shards::measure(length),
        _ => Err(format!("no such measurement\n{USAGE}")),
    }
}
