//! What is measured, of whom, and what the goal is: the table of goals as data.

/// Which program is run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Program {
    /// Ours, and the kernel's sockets: `inhost-subject`.
    Ours,
    /// Ours with the allocator that counts: `inhost-bench memory`.
    Counting,
    /// Ours without link-time optimization.
    OursWithoutLto,
    /// smoltcp, built as Cargo does by default.
    Smoltcp,
    /// smoltcp, built for processors with AVX2.
    SmoltcpAvx2,
    /// Ours by the sockets that are `Send`, from tasks of tokio.
    Net,
    /// netstack-smoltcp, by the same program.
    Netstack,
    /// gVisor's netstack.
    Gvisor,
    /// lwIP.
    Lwip,
    /// Frames of a TCP flow written to the device without any stack.
    Bare,
}

/// Where a subject works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In its own process. A word with a colon is a link, whose other end is the kernel's, and a load.
    Alone,
    /// Like `Alone`, once for each size of segments; the word is what follows the size.
    Sizes,
    /// Under callgrind, for so many segments and not seconds.
    Counted,
}

/// One stack under one measurement.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// What it is called in the table.
    pub stack: &'static str,
    /// What is run.
    pub program: Program,
    /// The word that tells the program what to do.
    pub word: &'static str,
}

impl Subject {
    /// Whether it is ours, rather than a peer.
    pub fn is_ours(&self) -> bool {
        self.stack.starts_with(INHOST) || self.stack == MEMORY
    }
}

/// What a figure of ours is to reach.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Goal {
    /// At least so many times the figure of a stack in the same run: `(1.3, "smoltcp")`.
    TimesOf(f64, &'static str),
    /// At most so many times the figure of a stack in the same run.
    AtMostTimesOf(f64, &'static str),
    /// The ratio to a stack, by pairs of runs, is so high with 95 % confidence.
    SurelyTimesOf(f64, &'static str),
    /// At least a figure.
    AtLeast(f64),
    /// At most a figure.
    AtMost(f64),
}

/// One figure of a trial: a block of rows in the table.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// What it is called in the answers of the programs.
    pub key: &'static str,
    /// What it is called in the table, with its conditions.
    pub measurement: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Which stacks have which goals.
    pub goals: &'static [(&'static str, Goal)],
}

/// Runs that give one or several figures at once.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Its name for `--only`.
    pub name: &'static str,
    /// The conditions, in a line.
    pub conditions: &'static str,
    /// Where.
    pub place: Place,
    /// Who.
    pub subjects: &'static [Subject],
    /// What.
    pub figures: &'static [Figure],
}

/// Ours.
const INHOST: &str = "inhost";
/// No stack: what the memory allows.
const MEMORY: &str = "memory";
/// The kernel's, over veth where it is not said otherwise.
const LINUX: &str = "Linux";

const fn of(stack: &'static str, program: Program, word: &'static str) -> Subject {
    Subject { stack, program, word }
}

const fn rate(measurement: &'static str, goals: &'static [(&'static str, Goal)]) -> Figure {
    Figure { key: "rate", measurement, unit: "Gbit/s", goals }
}

const fn cpu(measurement: &'static str, goals: &'static [(&'static str, Goal)]) -> Figure {
    Figure { key: "cpu", measurement, unit: "s/GB", goals }
}

const fn count(
    key: &'static str,
    measurement: &'static str,
    goals: &'static [(&'static str, Goal)],
) -> Figure {
    Figure { key, measurement, unit: "instr.", goals }
}

const fn goodput(
    key: &'static str,
    measurement: &'static str,
    goals: &'static [(&'static str, Goal)],
) -> Figure {
    Figure { key, measurement, unit: "%", goals }
}

/// What is worked off under overload stays what it is without.
const FLAT: &[(&str, Goal)] = &[(INHOST, Goal::AtLeast(95.0))];
/// What the faces for other threads have beside a task on the host.
const FACES: &[(&str, Goal)] = &[
    ("inhost net", Goal::TimesOf(0.8, "inhost tasks")),
    ("inhost within", Goal::TimesOf(0.95, "inhost tasks")),
];
const SURELY_AS_LINUX: &[(&str, Goal)] = &[(INHOST, Goal::SurelyTimesOf(1.0, LINUX))];
const CHEAP_AS_LINUX: &[(&str, Goal)] = &[(INHOST, Goal::AtMostTimesOf(1.0, LINUX))];

/// All trials, in the order of the table.
pub const TRIALS: &[Trial] = &[
    Trial {
        name: "memory-1500",
        conditions: "two hosts in memory, one thread, MTU 1500, checksums on, copied in and out, 256 KiB windows; \
                     by time of the core",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "memory-bulk-1500"),
            of("inhost, no LTO", Program::OursWithoutLto, "memory-bulk-1500"),
            of("smoltcp", Program::Smoltcp, "memory-bulk-1500"),
            of("smoltcp AVX2", Program::SmoltcpAvx2, "memory-bulk-1500"),
            of("lwIP", Program::Lwip, "memory-bulk-1500"),
            of("gVisor", Program::Gvisor, "memory-bulk-1500"),
        ],
        figures: &[Figure {
            key: "rate",
            measurement: "memory-1500",
            unit: "Gbit/s",
            goals: &[(INHOST, Goal::TimesOf(1.3, "smoltcp"))],
        }],
    },
    Trial {
        name: "memory-64k",
        conditions: "the same with 64 KiB segments and no checksums, data in cache; zero-copy: each end touches each byte once",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "memory-bulk-65535-trusted"),
            of("inhost zero-copy", Program::Ours, "memory-bulk-65535-trusted-lend"),
            of("inhost, no LTO", Program::OursWithoutLto, "memory-bulk-65535-trusted"),
            of("smoltcp", Program::Smoltcp, "memory-bulk-65535-trusted"),
            of("gVisor", Program::Gvisor, "memory-bulk-65535-trusted"),
        ],
        figures: &[Figure {
            key: "rate",
            measurement: "memory-64k",
            unit: "Gbit/s",
            goals: &[
                (INHOST, Goal::TimesOf(1.3, "smoltcp")),
                ("inhost zero-copy", Goal::TimesOf(2.0, INHOST)),
            ],
        }],
    },
    Trial {
        name: "echo-memory",
        conditions: "one byte there and back in memory, one thread for both ends",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "echo-memory"),
            of("inhost tasks", Program::Ours, "echo-memory-async"),
            of("smoltcp", Program::Smoltcp, "echo-memory"),
            of("lwIP", Program::Lwip, "echo-memory"),
            of("gVisor", Program::Gvisor, "echo-memory"),
        ],
        figures: &[
            Figure {
                key: "p50",
                measurement: "echo-memory-p50",
                unit: "us",
                goals: &[(INHOST, Goal::AtMost(0.30)), ("inhost tasks", Goal::AtMost(0.50))],
            },
            Figure { key: "p99", measurement: "echo-memory-p99", unit: "us", goals: &[] },
        ],
    },
    Trial {
        name: "fit",
        conditions: "CPU = A * segments + B * bytes, fitted to runs in memory with MTUs from 576 to 65,535, checksums on, both \
                     ends",
        place: Place::Sizes,
        subjects: &[
            of(INHOST, Program::Ours, ""),
            of("inhost in place", Program::Ours, "-lend"),
            of("smoltcp", Program::Smoltcp, ""),
        ],
        figures: &[
            Figure { key: "A", measurement: "fit-a-segment", unit: "ns", goals: &[] },
            Figure { key: "B", measurement: "fit-b-kilobyte", unit: "ns/kB", goals: &[] },
        ],
    },
    Trial {
        name: "tun-send",
        conditions: "to the kernel over TUN without offload, MTU 1500; the bare writer replays such a flow without a stack",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "tun-plain:send"),
            of("smoltcp", Program::Smoltcp, "tun-plain:send"),
            of("gVisor", Program::Gvisor, "tun-plain:send"),
            of("bare writer", Program::Bare, "tun-plain:send"),
            of(LINUX, Program::Ours, "veth-plain:send"),
        ],
        figures: &[
            rate("tun-send", &[(INHOST, Goal::TimesOf(0.9, "bare writer"))]),
            cpu("tun-send-cpu", &[]),
        ],
    },
    Trial {
        name: "tun-receive",
        conditions: "from the kernel over TUN without offload, MTU 1500",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "tun-plain:receive"),
            of("smoltcp", Program::Smoltcp, "tun-plain:receive"),
            of("gVisor", Program::Gvisor, "tun-plain:receive"),
            of(LINUX, Program::Ours, "veth-plain:receive"),
        ],
        figures: &[
            rate("tun-receive", &[(INHOST, Goal::TimesOf(1.3, "smoltcp"))]),
            cpu("tun-receive-cpu", &[]),
        ],
    },
    Trial {
        name: "tun-send-offload",
        conditions: "to the kernel over TUN with segmentation and checksums left to the device; gVisor by a packet socket on veth",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "tun-offload:send"),
            of("smoltcp", Program::Smoltcp, "tun-offload:send"),
            of("gVisor", Program::Gvisor, "packet-offload:send"),
            of(LINUX, Program::Ours, "veth-offload:send"),
            of("Linux loopback", Program::Ours, "lo-offload:send"),
        ],
        figures: &[rate("tun-send-offload", SURELY_AS_LINUX), cpu("tun-send-offload-cpu", CHEAP_AS_LINUX)],
    },
    Trial {
        name: "tun-receive-offload",
        conditions: "from the kernel over TUN with segmentation and checksums left to the device; gVisor by a packet socket on \
                     veth",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "tun-offload:receive"),
            of("smoltcp", Program::Smoltcp, "tun-offload:receive"),
            of("gVisor", Program::Gvisor, "packet-offload:receive"),
            of(LINUX, Program::Ours, "veth-offload:receive"),
        ],
        figures: &[
            rate("tun-receive-offload", SURELY_AS_LINUX),
            cpu("tun-receive-offload-cpu", CHEAP_AS_LINUX),
        ],
    },
    Trial {
        name: "tap-send",
        conditions: "to the kernel over TAP without offload, MTU 1500",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "tap-plain:send"),
            of("smoltcp", Program::Smoltcp, "tap-plain:send"),
        ],
        figures: &[rate("tap-send", &[])],
    },
    Trial {
        name: "tap-receive",
        conditions: "from the kernel over TAP without offload, MTU 1500",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "tap-plain:receive"),
            of("smoltcp", Program::Smoltcp, "tap-plain:receive"),
        ],
        figures: &[rate("tap-receive", &[])],
    },
    Trial {
        name: "tap-send-offload",
        conditions: "to the kernel over TAP with segmentation and checksums left to the device",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "tap-offload:send"),
            of("smoltcp", Program::Smoltcp, "tap-offload:send"),
            of(LINUX, Program::Ours, "veth-offload:send"),
        ],
        figures: &[rate("tap-send-offload", &[]), cpu("tap-send-offload-cpu", &[])],
    },
    Trial {
        name: "tap-receive-offload",
        conditions: "from the kernel over TAP with segmentation and checksums left to the device",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "tap-offload:receive"),
            of("smoltcp", Program::Smoltcp, "tap-offload:receive"),
            of(LINUX, Program::Ours, "veth-offload:receive"),
        ],
        figures: &[rate("tap-receive-offload", &[]), cpu("tap-receive-offload-cpu", &[])],
    },
    Trial {
        name: "echo-kernel",
        conditions: "one byte to the kernel and back, both ends on one core, each asleep until it is woken",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "tap-plain:echo"),
            of("inhost TUN", Program::Ours, "tun-plain:echo"),
            of("smoltcp", Program::Smoltcp, "tap-plain:echo"),
            of("gVisor", Program::Gvisor, "tun-plain:echo"),
            of(LINUX, Program::Ours, "veth-plain:echo"),
            of("Linux loopback", Program::Ours, "lo-offload:echo"),
        ],
        figures: &[
            Figure {
                key: "p50",
                measurement: "echo-kernel-p50",
                unit: "us",
                goals: &[(INHOST, Goal::AtMost(11.5))],
            },
            Figure { key: "p99", measurement: "echo-kernel-p99", unit: "us", goals: &[] },
        ],
    },
    Trial {
        name: "bodies",
        conditions: "answers of a megabyte, each asked for by a byte from the kernel, over TUN with segmentation and checksums left \
                     to the device, Nagle's algorithm on; written by a thread, by a task on the host, and to the kernel's socket",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "tun-offload:bodies"),
            of("inhost tasks", Program::Ours, "tun-offload:bodies-local"),
            of(LINUX, Program::Ours, "veth-offload:bodies"),
        ],
        figures: &[rate("bodies", &[(INHOST, Goal::TimesOf(0.8, "inhost tasks"))])],
    },
    Trial {
        name: "net-send",
        conditions: "to the kernel over TUN with offload by sockets that are Send, from a task of tokio; by a task on the host; \
                     netstack-smoltcp, which knows no offload, over the same device without",
        place: Place::Alone,
        subjects: &[
            of("inhost net", Program::Net, "tun-offload:send-net"),
            of("inhost within", Program::Net, "tun-offload:send-within"),
            of("inhost tasks", Program::Ours, "tun-offload:send"),
            of("netstack-smoltcp", Program::Netstack, "tun-plain:send-netstack"),
            of(LINUX, Program::Ours, "veth-offload:send"),
        ],
        figures: &[rate("net-send", FACES)],
    },
    Trial {
        name: "net-receive",
        conditions: "from the kernel, in the same ways",
        place: Place::Alone,
        subjects: &[
            of("inhost net", Program::Net, "tun-offload:receive-net"),
            of("inhost within", Program::Net, "tun-offload:receive-within"),
            of("inhost tasks", Program::Ours, "tun-offload:receive"),
            of("netstack-smoltcp", Program::Netstack, "tun-plain:receive-netstack"),
            of(LINUX, Program::Ours, "veth-offload:receive"),
        ],
        figures: &[rate("net-receive", FACES)],
    },
    Trial {
        name: "net-echo",
        conditions: "one byte to the kernel and back in the same ways, all on one core, each asleep until it is woken",
        place: Place::Alone,
        subjects: &[
            of("inhost net", Program::Net, "tun-offload:echo-net"),
            of("inhost within", Program::Net, "tun-offload:echo-within"),
            of("inhost tasks", Program::Ours, "tun-offload:echo"),
            of("netstack-smoltcp", Program::Netstack, "tun-plain:echo-netstack"),
            of(LINUX, Program::Ours, "veth-offload:echo"),
        ],
        figures: &[
            Figure {
                key: "p50",
                measurement: "net-echo-p50",
                unit: "us",
                goals: &[
                    ("inhost net", Goal::AtMostTimesOf(1.3, "inhost tasks")),
                    ("inhost within", Goal::AtMostTimesOf(1.3, "inhost tasks")),
                ],
            },
            Figure { key: "p99", measurement: "net-echo-p99", unit: "us", goals: &[] },
        ],
    },
    Trial {
        name: "net-echo-cores",
        conditions: "the same on all cores, where waking a thread on another one takes most of the time; a host's own thread looks \
                     again for 50 us before it sleeps, all others sleep",
        place: Place::Alone,
        subjects: &[
            of("inhost net", Program::Net, "tun-offload:echo-cores-net"),
            of("inhost within", Program::Net, "tun-offload:echo-cores-within"),
            of("inhost tasks", Program::Ours, "tun-offload:echo-cores"),
            of("netstack-smoltcp", Program::Netstack, "tun-plain:echo-cores-netstack"),
            of(LINUX, Program::Ours, "veth-offload:echo-cores"),
        ],
        figures: &[
            Figure {
                key: "p50",
                measurement: "net-echo-cores-p50",
                unit: "us",
                goals: &[("inhost net", Goal::AtMostTimesOf(1.3, "inhost tasks"))],
            },
            Figure { key: "p99", measurement: "net-echo-cores-p99", unit: "us", goals: &[] },
        ],
    },
    Trial {
        name: "net-open",
        conditions: "10,000 connections that the kernel opens over TUN, one after the other, each with a byte, accepted in the same ways; \
                     memory of the process for each of those that are open in the end",
        place: Place::Alone,
        subjects: &[
            of("inhost net", Program::Net, "tun-offload:open-net"),
            of("inhost within", Program::Net, "tun-offload:open-within"),
            of("netstack-smoltcp", Program::Netstack, "tun-plain:open-netstack"),
        ],
        figures: &[
            Figure {
                key: "rate",
                measurement: "net-open",
                unit: "/s",
                goals: &[
                    ("inhost net", Goal::TimesOf(1.0, "netstack-smoltcp")),
                    ("inhost within", Goal::TimesOf(1.0, "netstack-smoltcp")),
                ],
            },
            Figure {
                key: "bytes",
                measurement: "net-open-memory",
                unit: "bytes",
                goals: &[
                    ("inhost net", Goal::AtMostTimesOf(1.0, "netstack-smoltcp")),
                    ("inhost within", Goal::AtMostTimesOf(1.0, "netstack-smoltcp")),
                ],
            },
        ],
    },
    Trial {
        name: "overload",
        conditions: "datagrams of 200 bytes over TUN to a consumer that takes 20 us for each: what it works off when 1, 2 and 4 \
                     times as many come as it can, in percent of that",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "tun-plain:consume"),
            of("smoltcp", Program::Smoltcp, "tun-plain:consume"),
            of("gVisor", Program::Gvisor, "tun-plain:consume"),
            of(LINUX, Program::Ours, "veth-plain:consume"),
        ],
        figures: &[
            Figure { key: "capacity", measurement: "overload-capacity", unit: "/s", goals: &[] },
            goodput("goodput-1", "overload-1", &[]),
            goodput("goodput-2", "overload-2", FLAT),
            goodput("goodput-4", "overload-4", FLAT),
        ],
    },
    Trial {
        name: "instructions",
        conditions: "instructions for a full segment at MTU 1500 in memory beyond copy and checksum, by callgrind, with its share of \
                     the acknowledgments: one for two segments, or one for a whole pass",
        place: Place::Counted,
        subjects: &[
            of(INHOST, Program::Counting, "path two-send"),
            of("inhost, whole passes", Program::Counting, "path bulk-send"),
            of("smoltcp", Program::Smoltcp, "path-bulk-1500"),
        ],
        figures: &[
            count("sent", "instructions-sent", &[(INHOST, Goal::AtMost(400.0))]),
            count("received", "instructions-received", &[(INHOST, Goal::AtMost(400.0))]),
        ],
    },
    Trial {
        name: "connect",
        conditions: "connections opened and closed in memory, one thread, both ends, by time of the core; keyed ISNs, TIME-WAIT, 64 address pairs, \
                     100,000 others open; gVisor and Linux, which is met over veth, without those",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "connect"),
            of("gVisor", Program::Gvisor, "connect"),
            of(LINUX, Program::Ours, "veth-plain:connect"),
        ],
        figures: &[Figure {
            key: "rate",
            measurement: "connect",
            unit: "/s",
            goals: &[(INHOST, Goal::AtLeast(300_000.0))],
        }],
    },
    Trial {
        name: "connect-bare",
        conditions: "the same as smoltcp does it: one address pair, no TIME-WAIT, nothing else open",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Ours, "connect-bare"),
            of("smoltcp", Program::Smoltcp, "connect-bare"),
        ],
        figures: &[Figure {
            key: "rate",
            measurement: "connect-bare",
            unit: "/s",
            goals: &[(INHOST, Goal::AtLeast(1_000_000.0))],
        }],
    },
    Trial {
        name: "idle-memory",
        conditions: "an idle established connection, all of it: entry, look-up, timer; buffers kept for reuse left out",
        place: Place::Alone,
        subjects: &[
            of(INHOST, Program::Counting, "idle"),
            of("smoltcp", Program::Smoltcp, "memory"),
            of("lwIP", Program::Lwip, "memory"),
            of("gVisor", Program::Gvisor, "memory"),
            of(LINUX, Program::Counting, "idle-kernel"),
        ],
        figures: &[Figure {
            key: "bytes",
            measurement: "idle-memory",
            unit: "bytes",
            goals: &[(INHOST, Goal::AtMost(512.0))],
        }],
    },
    Trial {
        name: "shards",
        conditions: "one listener, mixed flows, two shards beside one: CPU for each segment",
        place: Place::Alone,
        subjects: &[of("inhost 2 shards", Program::Ours, "shards")],
        figures: &[
            Figure {
                key: "cost",
                measurement: "shards",
                unit: "times one",
                goals: &[("inhost 2 shards", Goal::AtMost(1.1))],
            },
            Figure { key: "load", measurement: "shards-load", unit: "times one", goals: &[] },
        ],
    },
    Trial {
        name: "shards-tun",
        conditions: "eight streams from the kernel over a TUN device with a queue for each shard, without offload; the kernel's \
                     ends share the cores",
        place: Place::Alone,
        subjects: &[
            of("inhost 1 shard", Program::Ours, "tun1-plain:receive"),
            of("inhost 2 shards", Program::Ours, "tun2-plain:receive"),
        ],
        figures: &[
            rate("shards-tun", &[]),
            cpu("shards-tun-cpu", &[("inhost 2 shards", Goal::AtMostTimesOf(1.1, "inhost 1 shard"))]),
        ],
    },
    Trial {
        name: "limits",
        conditions: "one thread's memory, without any protocol; also how noisy the machine is",
        place: Place::Alone,
        subjects: &[of(MEMORY, Program::Ours, "limits")],
        figures: LIMITS,
    },
];

const fn limit(key: &'static str) -> Figure {
    Figure { key, measurement: key, unit: "GB/s", goals: &[] }
}

const LIMITS: &[Figure] = &[
    limit("copy-64KiB-1460"),
    limit("copy-64KiB-32KiB"),
    limit("copy-64MiB-64KiB"),
    limit("checksum-64KiB-1460"),
    limit("checksum-64KiB-32KiB"),
    limit("checksum-64MiB-64KiB"),
    limit("both-64KiB-1460"),
    limit("both-64KiB-32KiB"),
    limit("both-64MiB-64KiB"),
];

impl Goal {
    /// In words: `≥ 1.3 x smoltcp`.
    pub fn words(self) -> String {
        match self {
            Goal::TimesOf(factor, stack) => format!("≥ {factor} × {stack}"),
            Goal::AtMostTimesOf(factor, stack) => format!("≤ {factor} × {stack}"),
            Goal::SurelyTimesOf(factor, stack) => format!("≥ {factor} × {stack}, 95 %"),
            Goal::AtLeast(value) => format!("≥ {value}"),
            Goal::AtMost(value) => format!("≤ {value}"),
        }
    }
    /// The stack with which it compares.
    pub fn reference(self) -> Option<&'static str> {
        match self {
            Goal::TimesOf(_, stack) | Goal::AtMostTimesOf(_, stack) | Goal::SurelyTimesOf(_, stack) => {
                Some(stack)
            }
            Goal::AtLeast(_) | Goal::AtMost(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_goal_belongs_to_a_stack_that_is_measured_and_names_one() {
        for trial in TRIALS {
            let is_there = |stack: &str| trial.subjects.iter().any(|subject| subject.stack == stack);
            for (stack, goal) in trial.figures.iter().flat_map(|figure| figure.goals) {
                assert!(is_there(stack), "{}: {stack}", trial.name);
                assert!(goal.reference().is_none_or(is_there), "{}: {}", trial.name, goal.words());
            }
        }
    }

    #[test]
    fn no_name_stands_for_two_things() {
        let mut names: Vec<&str> = TRIALS.iter().map(|trial| trial.name).collect();
        let mut measurements: Vec<&str> =
            TRIALS.iter().flat_map(|trial| trial.figures).map(|figure| figure.measurement).collect();
        for list in [&mut names, &mut measurements] {
            list.sort_unstable();
            assert!(list.windows(2).all(|two| two[0] != two[1]), "{list:?}");
        }
    }
}
