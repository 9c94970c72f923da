//! Tests of the help texts.

use super::Arguments;
use clap::{CommandFactory, Parser};

/// Every command shows examples of itself, and each example is one that the command line takes.
#[test]
fn every_command_shows_examples_that_are_taken() {
    let mut shown = 0;
    let mut left = vec![Arguments::command()];
    while let Some(command) = left.pop() {
        let name = command.get_name().to_owned();
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<_> = help.lines().filter(|line| line.starts_with("  inhost ")).collect();
        // `inhost` itself lists its commands, and `inhost user` and `inhost config` show those of their words.
        let is_leaf = name != "inhost" && !["add", "remove", "list", "check", "schema"].contains(&&*name);
        assert!(!is_leaf || !examples.is_empty(), "{name} shows no example");
        for example in examples {
            let words = shell_words::split(example.trim()).unwrap();
            assert!(words.contains(&name), "{name} shows {example:?}");
            let taken = Arguments::try_parse_from(words);
            assert!(taken.is_ok(), "{example}\n{}", taken.unwrap_err());
            shown += 1;
        }
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{name}: {} is not explained", argument.get_id());
        }
        left.extend(command.get_subcommands().cloned());
    }
    assert!(shown > 40, "{shown} examples");
}
