//! What guards the `linux` profile: every script on which the kernel does the same holds in it, and for each of its
//! choices there is a script that does not hold without it.

use inhost_script::Offloads;
use inhost_script::choices::{ALL, OF_CONFIG, OF_POLICY};
use inhost_script::language::{HostSetting, KernelNote, Place, Profile, Script};
use inhost_script::suite::{self, Verdict};
use inhost_tcp::{Config, Policy};
use std::path::Path;

/// Timers of the profile are two milliseconds coarser, which these scripts see and a kernel's tolerance hides.
const COARSE: &str = "recovery/tail-loss-probe";
/// Scripts on which the kernel agrees and the profile does not yet, and why.
const OPEN: &[(&str, &str)] = &[];
/// What no script shows, and what guards it in its place.
const NOT_SHOWN: &[(&str, &str)] = &[
    ("send_buffer_limit_bytes", "a limit that megabytes on their way come to; the figure is tcp_wmem's"),
    ("congestion_window_grows_on_sack", "inhost-tcp tests::linux: it takes a path known to reorder"),
    ("congestion_window_is_blamed_first", "inhost-tcp tests::ledger: a script sees no ledger"),
    ("recovery_timer_slack", "inhost-tcp tests::linux: two milliseconds"),
    ("errors_have_precedence", "inhost-ip tests/icmp.rs: a script sees no services of an ICMP error"),
];

/// Every script on which the kernel agrees, in the `linux` profile.
fn scripts() -> Vec<Script> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let files = suite::find(&[folder]).unwrap();
    let read = |file: &std::path::PathBuf| suite::read(file).unwrap_or_else(|verdict| panic!("{verdict:?}"));
    files
        .iter()
        .filter(|file| !file.display().to_string().contains(COARSE))
        .map(read)
        .filter(|script| match script.kernel {
            KernelNote::Same => true,
            // It would take too long.
            KernelNote::CannotRun(_) => script.profile == Profile::Linux,
            KernelNote::Differs(_) => false,
        })
        .map(|script| Script { profile: Profile::Linux, ..script })
        .collect()
}

fn is_open(script: &Script) -> bool {
    let file = script.file.trim_end_matches(".script");
    OPEN.iter().any(|(name, _)| file.ends_with(name))
}

#[test]
fn every_script_on_which_the_kernel_agrees_holds_in_the_linux_profile() {
    let mut failures = String::new();
    for script in scripts() {
        let verdict = suite::on_ours_with(&script, Offloads::default());
        let is_open = is_open(&script);
        match verdict {
            Verdict::Failed(failed) if !is_open => failures.push_str(&suite::report(&failed)),
            Verdict::Passed if is_open => failures.push_str(&format!("{} holds and is open\n", script.file)),
            _ => {}
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn each_choice_of_the_linux_profile_has_a_script_that_fails_without_it() {
    let scripts = scripts();
    let mut unguarded = Vec::new();
    for choice in ALL {
        let fails = |script: &&Script| {
            let mut script = (*script).clone();
            let place = Place { file: "choices".into(), line: 0 };
            script.host.push(HostSetting { place, name: "without".into(), value: choice.name.into() });
            !suite::on_ours(&script).passed()
        };
        let guards: Vec<&Script> = scripts.iter().filter(|script| !is_open(script)).filter(fails).collect();
        let names = guards.iter().map(|script| {
            let path = Path::new(&script.file);
            let folder = path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
            format!("{folder}/{}", path.file_stem().unwrap().to_string_lossy())
        });
        println!("{}: {} ({})", choice.name, guards.len(), names.take(4).collect::<Vec<_>>().join(", "));
        if guards.is_empty() && !NOT_SHOWN.iter().any(|(name, _)| *name == choice.name) {
            unguarded.push(choice.name);
        }
    }
    assert!(unguarded.is_empty(), "no script fails without {unguarded:?}");
}

/// The table of choices is whole: it names just the fields in which the two profiles differ.
#[test]
fn every_choice_of_tcp_is_listed() {
    let fields = |text: String| {
        let mut fields = Vec::new();
        for line in text.lines() {
            match line.strip_prefix("    ").filter(|line| !line.starts_with(' ')) {
                Some(line) if line.contains(": ") => fields.push(line.to_owned()),
                _ => {
                    if let Some(last) = fields.last_mut() {
                        last.push_str(line);
                    }
                }
            }
        }
        fields
    };
    let different = |rfc: String, linux: String| {
        let name = |field: String| field.split(':').next().unwrap().to_owned();
        let pairs = fields(rfc).into_iter().zip(fields(linux));
        let mut different: Vec<String> =
            pairs.filter(|(rfc, linux)| rfc != linux).map(|(field, _)| name(field)).collect();
        different.sort();
        different
    };
    let listed = |names: &[&str]| {
        let mut listed: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        listed.sort();
        listed
    };
    let of_policy = different(format!("{:#?}", Policy::rfc()), format!("{:#?}", Policy::linux()));
    assert_eq!(of_policy, listed(OF_POLICY));
    let (mut rfc, mut linux) = (Config::rfc(), Config::linux());
    rfc.policy = Policy::rfc();
    linux.policy = Policy::rfc();
    assert_eq!(different(format!("{rfc:#?}"), format!("{linux:#?}")), listed(OF_CONFIG));
}
