//! Runs setups from the command line: `cargo run -p inhost-classic --example run -- 'kind = "nagle"' 'nagle = false' [SEED]`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let (seeds, lines): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|text| text.parse::<u64>().is_ok());
    let seed = seeds.last().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let setup: inhost_classic::Setup = match toml::from_str(&lines.join("\n")) {
        Ok(setup) => setup,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match inhost_classic::run(&setup, seed) {
        Ok(measured) => {
            for (name, value) in measured {
                println!("{name:28} {value:.3}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
