//! Command-line arguments of `inhost-audit`.

use clap::{Args, Parser, Subcommand};

/// Check the house itself; run from the root of the workspace
#[derive(Parser, Debug)]
#[command(name = "inhost-audit", max_term_width = 100, disable_help_subcommand = true)]
pub struct Arguments {
    /// What to check.
    #[command(subcommand)]
    pub command: Command,
}

/// The checks.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Dependencies run downward only, and no files of the core know each other in a circle
    #[command(after_help = ARROWS_EXAMPLES)]
    Arrows,
    /// Put together what mdBook makes a book of
    #[command(after_help = BOOK_EXAMPLES)]
    Book,
    /// Run one test so that it ends, with all that it started
    #[command(after_help = CONFINE_EXAMPLES)]
    Confine {
        /// The test's program and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
        words: Vec<String>,
    },
    /// Tests that misbehave are ended and named
    #[command(after_help = LIMITS_EXAMPLES)]
    Limits,
    /// Links of the pages point at files and headings that exist
    #[command(after_help = LINKS_EXAMPLES)]
    Links,
    /// How wide, open, tangled and long the code is; each measure may only fall
    #[command(after_help = MEASURES_EXAMPLES)]
    Measures(Measures),
    /// Each crate that a registry would get packs, and builds from its package alone
    #[command(after_help = PACKAGE_EXAMPLES)]
    Package,
    /// Print the order in which a registry would get the crates
    #[command(after_help = ORDER_EXAMPLES)]
    PublishOrder,
    /// Each requirement of an RFC has its branch and its test, or a reason
    #[command(after_help = SPEC_EXAMPLES)]
    Spec {
        /// Do not list the requirements
        #[arg(long)]
        quiet: bool,
    },
    /// Run every test, and list with the reason what did not run
    #[command(after_help = TESTS_EXAMPLES)]
    Tests {
        /// Only tests whose names hold one of these
        #[arg(value_name = "NAME", allow_hyphen_values = true)]
        names: Vec<String>,
    },
    /// Items of inhost's sockets beside tokio's
    #[command(after_help = TOKIO_EXAMPLES)]
    Tokio {
        /// Write the page
        #[arg(long)]
        write: bool,
    },
}

/// Arguments of `inhost-audit measures`.
#[derive(Args, Debug)]
pub struct Measures {
    /// Print what differs only
    #[arg(long, conflicts_with_all = ["write", "list"])]
    pub quiet: bool,
    /// Write down what fell
    #[arg(long, conflicts_with = "list")]
    pub write: bool,
    /// List what is behind the measures whose names hold these words
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub list: Vec<String>,
}

const ARROWS_EXAMPLES: &str = "Examples:\n  inhost-audit arrows";
const BOOK_EXAMPLES: &str = "Examples:\n  inhost-audit book";
const CONFINE_EXAMPLES: &str = "Examples:\n  inhost-audit confine target/debug/deps/it-0123 --exact name";
const LIMITS_EXAMPLES: &str = "Examples:\n  inhost-audit limits";
const LINKS_EXAMPLES: &str = "Examples:\n  inhost-audit links";
const MEASURES_EXAMPLES: &str = "\
Examples:
  inhost-audit measures
      the table: recorded, now, goal
  inhost-audit measures --list halves
      the functions behind the measures with this name
  inhost-audit measures --list by folder, all of core/stack
  inhost-audit measures --write";
const PACKAGE_EXAMPLES: &str = "Examples:\n  inhost-audit package";
const ORDER_EXAMPLES: &str = "Examples:\n  inhost-audit publish-order";
const SPEC_EXAMPLES: &str = "Examples:\n  inhost-audit spec\n  inhost-audit spec --quiet";
const TESTS_EXAMPLES: &str = "Examples:\n  inhost-audit tests\n  inhost-audit tests ftp names";
const TOKIO_EXAMPLES: &str = "Examples:\n  inhost-audit tokio\n  inhost-audit tokio --write";

#[cfg(test)]
mod tests {
    use super::{Arguments, Command};
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_help_shows_what_works() {
        inhost_interop::help::check(&Arguments::command());
    }

    #[test]
    fn a_confined_program_keeps_its_arguments() {
        let words = ["inhost-audit", "confine", "it", "--exact", "--help", "--", "-h"];
        let Command::Confine { words: taken } = Arguments::parse_from(words).command else { panic!() };
        assert_eq!(taken, words[2..]);
    }
}
