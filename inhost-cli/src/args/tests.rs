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

/// The commands in the code blocks of a page, without prompt, explanation and what the shell takes.
fn commands(page: &str) -> Vec<String> {
    let (mut commands, mut is_code) = (Vec::new(), false);
    for line in page.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let line = line.strip_prefix("$ ").unwrap_or(line);
        let line = line.strip_prefix("sudo ").unwrap_or(line);
        let line = line.strip_prefix("-u inhost ").unwrap_or(line);
        let line = line.strip_prefix("target/release/").unwrap_or(line);
        if is_code && line.starts_with("inhost ") {
            let ends = ["  ", " #", " >", " 2>", " |", " &"];
            let end = ends.iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
            commands.push(line[..end].to_owned());
        }
    }
    commands
}

/// Every command of the pages is one that the command line takes. What they do, tutorials and the tests of services try.
#[test]
fn commands_of_the_pages_are_taken() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut pages = vec![root.join("README.md")];
    for folder in ["docs", "docs/tutorials"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    let mut shown = 0;
    for page in pages {
        for command in commands(&std::fs::read_to_string(&page).unwrap()) {
            let words = shell_words::split(&command).unwrap();
            let taken = Arguments::try_parse_from(words);
            assert!(taken.is_ok(), "{}: {command}\n{}", page.display(), taken.unwrap_err());
            shown += 1;
        }
    }
    assert!(shown > 60, "{shown} commands");
}
