//! The page on the causes has each of them.

use inhost_event::{ReceiveCause, SendCause};

/// The first column of a table.
fn first_column(page: &str) -> Vec<String> {
    let rows = page.lines().filter_map(|row| row.strip_prefix("| ")?.split(" |").next());
    rows.skip(1).map(str::to_owned).collect()
}

#[test]
fn each_cause_is_explained() {
    let (_, page) = include_str!("../../../docs/causes.md").split_once("## Sending").unwrap();
    let (sending, receiving) = page.split_once("## Receiving").unwrap();
    assert_eq!(first_column(sending), SendCause::ALL.iter().map(SendCause::to_string).collect::<Vec<_>>());
    assert_eq!(
        first_column(receiving),
        ReceiveCause::ALL.iter().map(ReceiveCause::to_string).collect::<Vec<_>>()
    );
}
