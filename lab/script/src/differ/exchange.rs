//! Exchange played on both sides: settings, and timed steps.

use crate::language::{About, HostSetting, KernelNote, Place, Profile, Script, Step, line_of};
use inhost_base::Duration;
use std::fmt::Write;

/// What holds in every exchange: a kernel that asks its memory what to do would be no subject for comparison.
const ALWAYS: [(&str, &str); 1] = [("receive-memory", "ample")];

/// A short exchange between a peer, an application, and the host under test.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// The seed that it was drawn from.
    pub seed: u64,
    /// Whether packets are IPv6.
    pub is_ipv6: bool,
    /// Settings of the whole host.
    pub host: Vec<(&'static str, &'static str)>,
    /// Steps: arrivals, calls, and readiness checks.
    pub steps: Vec<Timed>,
    /// Observation time after the last step.
    pub tail: Duration,
}

/// A step and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// Counted from the step before.
    pub after: Duration,
    /// The step.
    pub step: Step,
}

impl Exchange {
    /// The headings as in a script, for the constructor of a side.
    pub fn script(&self) -> Script {
        let file = format!("seed {}", self.seed);
        let place = Place { file: file.as_str().into(), line: 0 };
        let setting = |&(name, value): &(&str, &str)| HostSetting {
            place: place.clone(),
            name: name.to_owned(),
            value: value.to_owned(),
        };
        Script {
            purpose: file.clone(),
            file,
            profile: Profile::Linux,
            is_ipv6: self.is_ipv6,
            host: ALWAYS.iter().chain(&self.host).map(setting).collect(),
            kernel: KernelNote::Same,
            lines: Vec::new(),
        }
    }
    /// The same for the kernel, which is not sent what quotes a datagram that never was: it believes that without having
    /// sent anything (RFC 8201 §4 and RFC 4443 §5.2 say not to), and ours must do as if it had not come.
    pub fn without_blind_messages(&self) -> Exchange {
        let mut exchange = self.clone();
        for timed in &mut exchange.steps {
            if matches!(&timed.step, Step::InIcmp(icmp) if matches!(icmp.about, About::Datagram(_))) {
                timed.step = Step::Wait;
            }
        }
        exchange
    }
    /// When each step happens and the watching ends, counted from the beginning, where nothing is late.
    pub fn times(&self) -> Vec<Duration> {
        let mut clock = Duration::ZERO;
        let gaps = self.steps.iter().map(|timed| timed.after).chain([self.tail]);
        gaps.map(|gap| {
            clock += gap;
            clock
        })
        .collect()
    }
    /// The headings as they are written.
    pub fn headings(&self) -> String {
        let mut text = "profile linux\n".to_owned();
        if self.is_ipv6 {
            text.push_str("network ipv6\n");
        }
        for (name, value) in ALWAYS.iter().chain(&self.host) {
            let _ = writeln!(text, "host {name} {value}");
        }
        text
    }
}

impl Timed {
    /// As a line of a script.
    pub fn line(&self) -> String {
        match self.after {
            Duration::ZERO => line_of(&self.step),
            after => format!("after {}ms {}", after.as_millis(), line_of(&self.step)),
        }
    }
}
