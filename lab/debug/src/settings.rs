//! What may be set: how connections behave that are opened from now on, and the link between the hosts.

use inhost_base::Duration;
use inhost_sim::{LinkConfig, Loss, QueueConfig, QueueLimit};
use inhost_stack::{CongestionChoice, EcnMode, KeepAlive, TcpConfig};

use crate::command::End;
use crate::words::{parse_bytes, parse_rate, parse_share, parse_time, rate, time, wrapped};

/// Delay of the link at the beginning: a round trip is 20 ms.
const DELAY: Duration = Duration::from_millis(10);

/// With a shorter time a session would do nothing but wait for its end.
const LEAST_TIMEOUT: Duration = Duration::from_millis(1);

/// What stands for a figure among the values of a setting, and how that is typed.
const FIGURES: &[(&str, &str)] = &[
    ("TIME", "a time is such as 200ms or 1.5s, and a timeout is 1ms or more"),
    ("RATE", "a rate is such as 9600bit or 10Mbit"),
    ("FRAMES", "from 1 to 100000"),
    ("SHARE", "a share is such as 0.5%"),
    (
        "BYTES",
        "a size is such as 1460 or 64K: a window and a buffer from 256 to 256M, a segment from 64 to 65495",
    ),
    ("SEGMENTS", "from 1 to 100"),
];

/// The settings of a session.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How connections of each end behave.
    pub tcp: [TcpConfig; 2],
    /// How the link carries what each end sends.
    pub link: [LinkConfig; 2],
}

impl Default for Settings {
    fn default() -> Self {
        let link = LinkConfig { delay: DELAY, ..LinkConfig::default() };
        Settings { tcp: [TcpConfig::default(), TcpConfig::default()], link: [link.clone(), link] }
    }
}

/// Which part of the settings one is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Of {
    /// Connections that are opened from now on.
    Connections,
    /// The link, at once.
    Link,
}

/// Reads a value; false when it is not one.
type Change<T> = fn(&mut T, &str) -> bool;

enum Access {
    Tcp(fn(&TcpConfig) -> String, Change<TcpConfig>),
    Link(fn(&LinkConfig) -> String, Change<LinkConfig>),
}

struct Setting {
    name: &'static str,
    /// The values, or what they are.
    takes: &'static str,
    what: &'static str,
    access: Access,
}

macro_rules! switch {
    ($name:literal, $field:ident, $what:literal) => {
        Setting {
            name: $name,
            takes: "on | off",
            what: $what,
            access: Access::Tcp(|tcp| on_off(tcp.$field), |tcp, text| put(&mut tcp.$field, switched(text))),
        }
    };
}
macro_rules! timed {
    ($name:literal, $field:ident, $least:expr, $what:literal) => {
        Setting {
            name: $name,
            takes: "TIME",
            what: $what,
            access: Access::Tcp(
                |tcp| typed_time(tcp.$field),
                |tcp, text| put(&mut tcp.$field, parse_time(text).filter(|time| *time >= $least)),
            ),
        }
    };
}

const SETTINGS: &[Setting] = &[
    Setting {
        name: "delay",
        takes: "TIME",
        what: "from the end of sending to arrival",
        access: Access::Link(
            |link| typed_time(link.delay),
            |link, text| put(&mut link.delay, parse_time(text)),
        ),
    },
    Setting {
        name: "rate",
        takes: "RATE | none",
        what: "of the line",
        access: Access::Link(
            |link| link.rate_bits_per_second.map_or("none".to_owned(), rate),
            |link, text| match text {
                "none" => put(&mut link.rate_bits_per_second, Some(None)),
                _ => put(&mut link.rate_bits_per_second, parse_rate(text).map(Some)),
            },
        ),
    },
    Setting {
        name: "queue",
        takes: "FRAMES",
        what: "that wait for the line, where it has a rate",
        access: Access::Link(
            |link| match link.queue.limit {
                QueueLimit::Packets(packets) => packets.to_string(),
                _ => "as it is".to_owned(),
            },
            |link, text| match text.parse() {
                Ok(packets @ 1..=100_000) => {
                    link.queue = QueueConfig { limit: QueueLimit::Packets(packets), ..link.queue };
                    true
                }
                _ => false,
            },
        ),
    },
    Setting {
        name: "loss",
        takes: "SHARE",
        what: "of the frames, by chance",
        access: Access::Link(
            |link| match link.loss {
                Loss::Random { per_million } => format!("{}%", f64::from(per_million) / 10_000.0),
                _ => "0%".to_owned(),
            },
            |link, text| {
                let loss = parse_share(text).map(|per_million| match per_million {
                    0 => Loss::None,
                    _ => Loss::Random { per_million },
                });
                put(&mut link.loss, loss)
            },
        ),
    },
    Setting {
        name: "profile",
        takes: "rfc | linux",
        what: "all that follows",
        access: Access::Tcp(
            |tcp| if tcp.policy == TcpConfig::linux().policy { "linux" } else { "rfc" }.to_owned(),
            |tcp, text| {
                put(
                    tcp,
                    match text {
                        "rfc" => Some(TcpConfig::rfc()),
                        "linux" => Some(TcpConfig::linux()),
                        _ => None,
                    },
                )
            },
        ),
    },
    Setting {
        name: "mss",
        takes: "BYTES",
        what: "the largest segment",
        access: Access::Tcp(
            |tcp| tcp.mss_limit_bytes.to_string(),
            |tcp, text| put(&mut tcp.mss_limit_bytes, number(text, 64, 65_495)),
        ),
    },
    Setting {
        name: "window",
        takes: "BYTES",
        what: "the largest that is offered",
        access: Access::Tcp(
            |tcp| (tcp.receive_buffer_limit_bytes / 2).to_string(),
            |tcp, text| {
                let bytes = parse_bytes(text).filter(|bytes| (256..=1 << 28).contains(bytes));
                let bytes = bytes.map(|bytes| bytes as usize * 2);
                put(&mut tcp.receive_buffer_limit_bytes, bytes)
                    && put(&mut tcp.receive_buffer_initial_bytes, bytes)
            },
        ),
    },
    Setting {
        name: "send-buffer",
        takes: "BYTES",
        what: "the largest send queue",
        access: Access::Tcp(
            |tcp| tcp.send_buffer_limit_bytes.to_string(),
            |tcp, text| {
                let bytes = parse_bytes(text).filter(|bytes| (256..=1 << 28).contains(bytes));
                let bytes = bytes.map(|bytes| bytes as usize);
                let initial = bytes.map(|bytes| bytes.min(tcp.send_buffer_initial_bytes));
                put(&mut tcp.send_buffer_limit_bytes, bytes)
                    && put(&mut tcp.send_buffer_initial_bytes, initial)
            },
        ),
    },
    Setting {
        name: "congestion",
        takes: "cubic | linux-cubic | newreno",
        what: "congestion control",
        access: Access::Tcp(
            |tcp| congestion(&tcp.congestion).to_owned(),
            |tcp, text| {
                put(
                    &mut tcp.congestion,
                    match text {
                        "cubic" => Some(CongestionChoice::Cubic),
                        "linux-cubic" => Some(CongestionChoice::CubicInSegments),
                        "newreno" => Some(CongestionChoice::NewReno),
                        _ => None,
                    },
                )
            },
        ),
    },
    Setting {
        name: "initial-window",
        takes: "SEGMENTS",
        what: "the first congestion window",
        access: Access::Tcp(
            |tcp| tcp.initial_window_segments.to_string(),
            |tcp, text| put(&mut tcp.initial_window_segments, number(text, 1, 100)),
        ),
    },
    timed!("ack-delay", acknowledgment_delay, Duration::ZERO, "of delayed acknowledgments"),
    timed!("min-rto", min_retransmission_timeout, Duration::ZERO, "the least margin of the RTO"),
    timed!("initial-rto", initial_retransmission_timeout, LEAST_TIMEOUT, "before a round trip is measured"),
    timed!("user-timeout", user_timeout, LEAST_TIMEOUT, "how long data may stay unacknowledged"),
    timed!("time-wait", time_wait, Duration::ZERO, "how long TIME-WAIT lasts"),
    Setting {
        name: "keep-alive",
        takes: "TIME | off",
        what: "idle time before a probe",
        access: Access::Tcp(
            |tcp| tcp.keep_alive.map_or("off".to_owned(), |keep| typed_time(keep.idle)),
            |tcp, text| match text {
                "off" => put(&mut tcp.keep_alive, Some(None)),
                _ => {
                    let keep = parse_time(text).map(|idle| KeepAlive { idle, ..KeepAlive::default() });
                    put(&mut tcp.keep_alive, keep.map(Some))
                }
            },
        ),
    },
    Setting {
        name: "ecn",
        takes: "off | accept | request",
        what: "congestion marks",
        access: Access::Tcp(
            |tcp| match tcp.ecn {
                EcnMode::Off => "off".to_owned(),
                EcnMode::Request => "request".to_owned(),
                _ => "accept".to_owned(),
            },
            |tcp, text| {
                put(
                    &mut tcp.ecn,
                    match text {
                        "off" => Some(EcnMode::Off),
                        "accept" => Some(EcnMode::Accept),
                        "request" => Some(EcnMode::Request),
                        _ => None,
                    },
                )
            },
        ),
    },
    switch!("nagle", nagle, "small segments wait for an acknowledgment"),
    switch!("sack", sack, "selective acknowledgments"),
    switch!("timestamps", timestamps, "the timestamps option"),
    switch!("scaling", window_scaling, "windows of more than 64 KiB"),
    switch!("pacing", pacing, "segments are spread over the round trip"),
    switch!("rack", rack, "losses are found by time"),
    switch!("tlp", tail_loss_probe, "tail loss probes"),
    switch!("f-rto", forward_rto, "spurious timeouts are found"),
    switch!("prr", proportional_rate_reduction, "a reduction is spread over a round trip"),
    switch!("restart-after-idle", restart_after_idle, "a small window after a pause"),
];

fn put<T>(place: &mut T, value: Option<T>) -> bool {
    value.map(|value| *place = value).is_some()
}
fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}
fn switched(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}
/// As it may be typed.
fn typed_time(duration: Duration) -> String {
    time(duration.as_nanos()).replace(' ', "")
}
fn number<T: TryFrom<u64>>(text: &str, least: u64, most: u64) -> Option<T> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number))?;
    T::try_from(number).ok()
}
fn congestion(choice: &CongestionChoice) -> &'static str {
    match choice {
        CongestionChoice::NewReno => "newreno",
        CongestionChoice::CubicInSegments => "linux-cubic",
        _ => "cubic",
    }
}

/// The names of the settings.
pub fn names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|setting| setting.name)
}

/// The words that a setting takes; none where it takes a figure.
pub fn values(name: &str) -> impl Iterator<Item = &'static str> + use<> {
    let takes = SETTINGS.iter().find(|setting| setting.name == name).map_or("", |setting| setting.takes);
    takes.split(" | ").filter(|word| word.starts_with(|first: char| first.is_ascii_lowercase()))
}

impl Settings {
    /// Changes one, of one end or both; says of what.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what to try.
    pub fn set(&mut self, end: Option<End>, name: &str, value: &str) -> Result<Of, String> {
        let setting = SETTINGS.iter().find(|setting| setting.name == name).ok_or_else(|| {
            format!("{name:?} is not a setting; they are {}", names().collect::<Vec<_>>().join(", "))
        })?;
        let wrong = || {
            let figure = FIGURES.iter().find(|(figure, _)| setting.takes.contains(figure));
            let typed = figure.map_or_else(String::new, |(_, typed)| format!("; {typed}"));
            format!("{name} takes {}, not {value:?}{typed}", setting.takes)
        };
        let mut changed = self.clone();
        for one in End::BOTH.into_iter().filter(|one| end.is_none_or(|end| end == *one)) {
            let done = match setting.access {
                Access::Tcp(_, set) => set(&mut changed.tcp[one.number()], value),
                Access::Link(_, set) => set(&mut changed.link[one.number()], value),
            };
            done.then_some(()).ok_or_else(wrong)?;
        }
        *self = changed;
        Ok(match setting.access {
            Access::Tcp(..) => Of::Connections,
            Access::Link(..) => Of::Link,
        })
    }
    /// A setting's value at an end.
    fn value(&self, setting: &Setting, end: End) -> String {
        match setting.access {
            Access::Tcp(get, _) => get(&self.tcp[end.number()]),
            Access::Link(get, _) => get(&self.link[end.number()]),
        }
    }
    /// All of them with their values: name, the client's and the server's.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, [String; 2])> + '_ {
        SETTINGS.iter().map(|setting| (setting.name, End::BOTH.map(|end| self.value(setting, end))))
    }
    /// All of them as a table.
    pub fn text(&self) -> String {
        let mut text = format!("{:<20}{:<12}server\n", "setting", "client");
        for (name, [client, server]) in self.all() {
            let mut line = format!("{name:<20}{client:<12}{server:<12}").trim_end().to_owned();
            line.push('\n');
            text += &line;
        }
        text
    }
}

/// Every setting with its values and what it is.
pub fn help() -> String {
    let line = |setting: &Setting| {
        wrapped(&format!("  {:<19} {:<31} ", setting.name, setting.takes), &[setting.what.to_owned()])
    };
    SETTINGS.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_shows_a_value_that_may_be_set() {
        let mut settings = Settings::default();
        let shown: Vec<(&str, [String; 2])> = settings.all().collect();
        for (name, [client, _]) in shown {
            let of = settings.set(Some(End::Client), name, &client);
            assert!(of.is_ok(), "{name} {client}: {of:?}");
            assert!(settings.set(None, name, "blue").unwrap_err().contains("takes"), "{name}");
        }
        // Each would loop, or is short of a unit; what is right is said.
        for (name, value, right) in [
            ("initial-rto", "0ms", "1ms or more"),
            ("user-timeout", "0s", "1ms or more"),
            ("rate", "9600", "9600bit"),
            ("window", "0", "from 256"),
        ] {
            assert!(settings.set(None, name, value).unwrap_err().contains(right), "{name} {value}");
        }
        assert_eq!(settings.set(None, "delay", "50ms"), Ok(Of::Link));
        assert_eq!(settings.set(Some(End::Server), "window", "8K"), Ok(Of::Connections));
        assert_eq!(settings.tcp[1].receive_buffer_limit_bytes, 16_384);
        assert!(settings.set(None, "speed", "1").unwrap_err().contains("congestion"));
        assert_eq!(values("congestion").collect::<Vec<_>>(), ["cubic", "linux-cubic", "newreno"]);
        assert!(settings.text().lines().chain(help().lines()).all(|line| line.len() <= 100));
    }
}
