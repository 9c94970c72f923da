//! `inhost man`: manual pages, from the same arguments that are parsed.

use crate::args::{Arguments, Man};
use crate::failure::Failure;
use clap::{Command, CommandFactory};
use clap_mangen::roff::{Roff, bold, roman};
use std::io;

/// The manual that the pages belong to.
const MANUAL: &str = "Inhost manual";

/// Writes a page for the command and for each of its commands.
pub fn run(arguments: &Man) -> Result<(), Failure> {
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::operation(format!("cannot make the folder {}: {e}", folder.display())))?;
    for (name, page) in pages().map_err(|e| Failure::operation(format!("a page cannot be made: {e}")))? {
        let path = folder.join(name);
        std::fs::write(&path, page)
            .map_err(|e| Failure::operation(format!("cannot write {}: {e}", path.display())))?;
    }
    Ok(())
}

/// Every page by its file name.
pub fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut command = Arguments::command();
    command.build();
    let mut pages = Vec::new();
    // What is left to do, each with the name of the page above it.
    let mut left = vec![(command, None::<String>)];
    while let Some((command, above)) = left.pop() {
        let name = page_name(&command);
        pages.push((format!("{name}.1"), page(&command, above.as_deref())?));
        left.extend(command.get_subcommands().map(|below| (below.clone(), Some(name.clone()))));
    }
    Ok(pages)
}

/// `inhost-ftp-get`: the words of the command, joined.
fn page_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn page(command: &Command, above: Option<&str>) -> io::Result<Vec<u8>> {
    let source = format!("inhost {}", env!("CARGO_PKG_VERSION"));
    let man = clap_mangen::Man::new(command.clone())
        .title(page_name(command).to_uppercase())
        .source(source)
        .manual(MANUAL);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().next().is_some() {
        man.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut rest = examples_section(&examples);
    if above.is_none() {
        exit_status_section(&mut rest);
        files_section(&mut rest);
    }
    see_also_section(&mut rest, command, above);
    rest.to_writer(&mut page)?;
    Ok(page)
}

/// The examples line for line, and behind them what else the help says, as running text.
fn examples_section(help: &str) -> Roff {
    let mut roff = Roff::new();
    let (examples, notes): (Vec<&str>, Vec<&str>) =
        help.lines().filter(|line| *line != "Examples:").partition(|line| line.starts_with(' '));
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in examples {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
    }
    let notes = notes.join("\n");
    if !notes.trim().is_empty() {
        roff.control("SH", ["NOTES"]);
        for note in notes.trim().lines() {
            roff.text([roman(note)]);
        }
    }
    roff
}

fn exit_status_section(roff: &mut Roff) {
    roff.control("SH", ["EXIT STATUS"]);
    for (status, meaning) in [
        ("0", "Done."),
        ("1", "The operation failed; a line on standard error says what, where, and what to try."),
        ("2", "The command line or the configuration is wrong."),
    ] {
        roff.control("TP", []).text([bold(status)]).text([roman(meaning)]);
    }
}

fn files_section(roff: &mut Roff) {
    roff.control("SH", ["FILES"]);
    for (file, meaning) in [
        ("host.toml", "Configuration of inhost serve: the one of the current folder, or that of --config."),
        ("$XDG_CONFIG_HOME/inhost/users", "Users and password hashes; ~/.config/inhost/users by default."),
        ("$XDG_RUNTIME_DIR/inhost.sock", "Control socket of the running host."),
    ] {
        roff.control("TP", []).text([bold(file)]).text([roman(meaning)]);
    }
}

/// The page above, and those below.
fn see_also_section(roff: &mut Roff, command: &Command, above: Option<&str>) {
    let mut names: Vec<String> = above.map(ToOwned::to_owned).into_iter().collect();
    names.extend(command.get_subcommands().map(page_name));
    if names.is_empty() {
        return;
    }
    roff.control("SH", ["SEE ALSO"]);
    let last = names.len() - 1;
    for (index, name) in names.iter().enumerate() {
        roff.text([bold(name.as_str()), roman(if index == last { "(1)" } else { "(1)," })]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options_and_examples() {
        let pages = pages().unwrap();
        let mut left = vec![Arguments::command()];
        left[0].build();
        let mut seen = 0;
        while let Some(command) = left.pop() {
            let name = page_name(&command);
            let (_, page) = pages.iter().find(|(page, _)| *page == format!("{name}.1")).expect(&name);
            let text = String::from_utf8(page.clone()).unwrap().replace("\\-", "-");
            assert!(text.contains(&name) && text.contains(".SH SYNOPSIS"), "{name}");
            for long in command.get_arguments().filter_map(clap::Arg::get_long) {
                assert!(text.contains(&format!("--{long}")), "{name}: --{long}");
            }
            for example in command.get_after_help().map(ToString::to_string).unwrap_or_default().lines() {
                let shown = text.replace("\\aq", "'").replace("\\*(Aq", "'").replace("\\(aq", "'");
                assert!(example == "Examples:" || shown.contains(example.trim()), "{name}: {example}");
            }
            left.extend(command.get_subcommands().cloned());
            seen += 1;
        }
        assert_eq!(seen, pages.len());
        assert!(seen > 20, "{seen} pages");
    }

    #[test]
    fn the_pages_go_into_a_folder_that_is_made() {
        let folder = std::env::temp_dir().join(format!("inhost-man-{}", std::process::id()));
        run(&Man { folder: folder.join("man1") }).unwrap();
        assert!(pages().unwrap().iter().all(|(name, _)| folder.join("man1").join(name).is_file()));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
