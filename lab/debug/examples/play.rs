//! Plays a script from standard input.

use std::io::Read;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut script = String::new();
    std::io::stdin().read_to_string(&mut script)?;
    let mut session = inhost_debug::Session::new()?;
    session.play::<std::convert::Infallible>(&script, |line, outcome| {
        println!("> {line}\n{}", outcome.text.trim_end());
        Ok(())
    })?;
    Ok(())
}
