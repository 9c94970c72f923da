//! The commands of the README, as they stand there.

use inhost_interop::readme;
#[test]
fn each_program_prints_what_the_readme_says() {
    let steps = readme::steps(include_str!("../README.md"));
    assert_eq!(steps.len(), 2);
    steps.iter().for_each(readme::prints_what_it_says);
}
