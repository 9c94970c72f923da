//! The help of a command-line program: every command explains itself, and its examples work as they stand.

use clap::Command;

/// Checks the help of `program` and of all commands below it: every command without commands of its own shows examples of
/// itself, each example is one that it takes, and every argument is explained.
///
/// An example is a line that begins with two spaces and the program's name; a `>` or `|` ends it.
///
/// # Panics
/// When one of these does not hold.
pub fn check(program: &Command) {
    let name = program.get_name().to_owned();
    let mut left = vec![program.clone()];
    while let Some(command) = left.pop() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<_> = help.lines().filter_map(|line| line.strip_prefix("  ")).collect();
        let examples: Vec<_> = examples.iter().filter(|line| line.starts_with(&format!("{name} "))).collect();
        let of = command.get_name();
        assert!(!examples.is_empty() || command.has_subcommands(), "{of} shows no example");
        for example in examples {
            let command_alone = example.split(['>', '|']).next().unwrap_or(example);
            let words =
                shell_words::split(command_alone).unwrap_or_else(|error| panic!("{example}: {error}"));
            assert!(words.iter().any(|word| word == of), "{of} shows {example:?}");
            if let Err(error) = program.clone().try_get_matches_from(words) {
                panic!("{example}\n{error}");
            }
        }
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{of}: {} is not explained", argument.get_id());
        }
        left.extend(command.get_subcommands().cloned());
    }
}
