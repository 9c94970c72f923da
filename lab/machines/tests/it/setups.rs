//! Setups as TOML, their errors, and that runs repeat.

use inhost_machines::{Setup, SetupError, run};

use super::measure;

const ECHO: &str = r#"
machine = { kind = "ibm-pc" }
link = { kind = "llp", bits_per_second = 9600 }
program = { kind = "echo", count = 5 }
"#;

fn parse(text: &str) -> Result<Setup, toml::de::Error> {
    toml::from_str(text)
}

#[test]
fn a_setup_is_written_as_it_was_read() {
    for text in [
        ECHO.to_owned(),
        ECHO.replace("echo\", count = 5", "bulk\", write_bytes = 512, total_bytes = 40960, sessions = 2"),
        ECHO.replace("llp\", bits_per_second = 9600", "fddi\", full_duplex = true"),
        ECHO.replace("ibm-pc", "ibm-3033-loopback-without-checksum"),
        format!("{ECHO}\n[parameters]\npeer = {{ kind = \"dell-310\" }}\nwindow_bytes = 2048\n"),
    ] {
        let setup = parse(&text).unwrap();
        let written = toml::to_string(&setup).unwrap();
        assert_eq!(parse(&written).unwrap(), setup, "{written}");
    }
}

#[test]
fn unknown_fields_and_kinds_are_errors_everywhere() {
    for (right, wrong) in [
        ("kind = \"ibm-pc\"", "kind = \"ibm-pc\", turbo = true"),
        ("kind = \"ibm-pc\"", "kind = \"ibm-pcjr\""),
        ("bits_per_second = 9600", "bits_per_second = 9600, parity = \"even\""),
        ("count = 5", "count = 5, loops = 5"),
        ("count = 5", "count = -5"),
        ("program =", "programme = 1\nprogram ="),
        ("program =", "parameters = { windows = 1 }\nprogram ="),
    ] {
        assert!(ECHO.contains(right));
        assert!(parse(&ECHO.replace(right, wrong)).is_err(), "{wrong}");
    }
    assert!(parse(ECHO).is_ok());
}

#[test]
fn what_does_not_fit_together_or_its_range_is_said() {
    let why = |right: &str, wrong: &str| run(&parse(&ECHO.replace(right, wrong)).unwrap(), 1).unwrap_err();
    let slow = why("bits_per_second = 9600", "bits_per_second = 50");
    assert_eq!(slow.to_string(), "bits_per_second is out of range: 300 to 1000000");
    assert!(matches!(why("count = 5", "count = 0"), SetupError::OutOfRange { name: "count", .. }));
    let no_end = why("echo\", count = 5", "bulk\", write_bytes = 1");
    assert_eq!(no_end.to_string(), "a bulk transfer has either total_bytes or duration_s");
    let too_fast = why("bits_per_second = 9600", "bits_per_second = 50000");
    assert!(too_fast.to_string().ends_with("for an octet loses them at 50000 bit/s"), "{too_fast}");
    let no_link = why("llp\", bits_per_second = 9600", "none\"");
    assert_eq!(no_link.to_string(), "the program needs a link");
}

#[test]
fn the_same_seed_gives_the_same_numbers_and_another_one_others() {
    let lossy = r#"
        machine = { kind = "ibm-pc" }
        link = { kind = "concentrator", bits_per_second = 19200, lost_percent = 50 }
        program = { kind = "screenful" }
        parameters = { peer = { kind = "csr" }, segment_bytes = 250 }
        "#;
    let runs: Vec<_> = (0..8).map(|seed| measure(lossy, seed)).collect();
    for (seed, first) in runs.iter().enumerate() {
        assert_eq!(*first, measure(lossy, seed as u64));
    }
    assert!(runs.iter().any(|run| *run != runs[0]), "{runs:?}");
}
