//! What the help says.

use super::Arguments;
use clap::{CommandFactory, Parser};

/// The words of a line as a shell has them.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote, mut is_begun) = (vec![String::new()], None, false);
    for letter in line.chars() {
        match (quote, letter) {
            (None, '\'' | '"') => (quote, is_begun) = (Some(letter), true),
            (Some(open), letter) if open == letter => quote = None,
            (None, ' ') if is_begun => {
                words.push(String::new());
                is_begun = false;
            }
            (None, ' ') => {}
            (_, letter) => {
                words.last_mut().unwrap().push(letter);
                is_begun = true;
            }
        }
    }
    assert_eq!(quote, None, "{line}");
    words
}

/// Every command shows examples of itself, and each example is one that the command line takes.
#[test]
fn every_command_shows_examples_that_are_taken() {
    let mut shown = 0;
    let mut left = vec![Arguments::command()];
    while let Some(command) = left.pop() {
        let name = command.get_name().to_owned();
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<_> = help.lines().filter(|line| line.starts_with("  inhost ")).collect();
        // `inhost` itself lists its commands, and `inhost user` shows those of its words.
        let is_leaf = name != "inhost" && !["add", "remove", "list"].contains(&&*name);
        assert!(!is_leaf || !examples.is_empty(), "{name} shows no example");
        for example in examples {
            let words = words(example.trim());
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
