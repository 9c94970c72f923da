//! Requirements of RFCs against the tags in the code: `spec: RFC9293 MUST-13` at the branch that meets it and at the
//! test that proves it.
//!
//! Each RFC has a list in `docs/spec`, a requirement a line: `id | what it asks | reason, where no branch meets it`.
//! Where an RFC numbers its requirements, as RFC 9293 does, the ids are its own. Else an id is the section and a number
//! of ours, in the order of the text: `5.1-2` is the second requirement of section 5.1. A tag may name several, of several
//! RFCs: `spec: RFC1122 3.2.1.8-1, 3.2.2.6-4; RFC9293 MUST-53`. A tag of an RFC without a list is a reference, no more.
//!
//! A list whose header says `# open: why` is printed with what it lacks and fails nothing but unknown ids.

mod list;
mod tags;

use list::{List, Requirement};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use tags::{Places, Tags};

/// Folders whose sources carry tags.
const SOURCES: &[&str] = &["core", "host", "services", "lab/sim", "lab/script"];

/// How a requirement stands.
enum Standing<'a> {
    Met { branch: &'a str, test: &'a str },
    Excused { reason: &'a str },
    Lacking { branch: Option<&'a str>, test: Option<&'a str> },
}

/// How many of a list stand how.
#[derive(Default)]
struct Totals {
    met: usize,
    excused: usize,
    lacking: usize,
}

/// Prints each requirement of `docs/spec/*.txt` with its branch and its test when `prints_all`, and the totals. Fails
/// when one has neither them nor a reason, when one has both, or when a tag names a requirement that its list has not.
pub fn check(prints_all: bool) -> Result<String, String> {
    let tags = tags::collect(SOURCES.iter().map(Path::new))?;
    let lists = list::read_all(Path::new("docs/spec"))?;
    let mut report = String::new();
    let mut summary = String::new();
    let mut wrong = Vec::new();
    for list in &lists {
        let totals = check_list(list, &tags, &mut report, &mut wrong);
        let Totals { met, excused, lacking } = totals;
        let total = list.requirements.len();
        let _ = write!(summary, "{}: {total} requirements, {met} with branch and test, ", list.rfc);
        let _ = write!(summary, "{excused} with a reason");
        if let Some(why) = &list.open {
            let _ = write!(summary, "; OPEN, {lacking} with neither: {why}");
        }
        summary.push('\n');
    }
    wrong.extend(unknown_ids(&lists, &tags));
    if prints_all {
        print!("{report}");
    }
    let summary = summary.trim_end().to_owned();
    if wrong.is_empty() { Ok(summary) } else { Err(format!("{}\n{summary}", wrong.join("\n"))) }
}

fn check_list(list: &List, tags: &Tags, report: &mut String, wrong: &mut Vec<String>) -> Totals {
    let mut totals = Totals::default();
    let rfc = &list.rfc;
    for requirement in &list.requirements {
        let Requirement { id, what, reason } = requirement;
        let places = tags.get(&(rfc.clone(), id.clone()));
        let _ = writeln!(report, "{rfc} {id:10} {what}");
        match standing(requirement, places) {
            Standing::Met { branch, test } => {
                totals.met += 1;
                let _ = writeln!(report, "{:19} branch {branch}, test {test}", "");
                if reason.is_some() {
                    wrong.push(format!("{rfc} {id}: it has branch and test, and a reason as well"));
                }
            }
            Standing::Excused { reason } => {
                totals.excused += 1;
                let _ = writeln!(report, "{:19} reason: {reason}", "");
            }
            Standing::Lacking { branch, test } => {
                totals.lacking += 1;
                let line =
                    format!("branch {}, test {}", branch.unwrap_or("missing"), test.unwrap_or("missing"));
                let _ = writeln!(report, "{:19} OPEN: {line}", "");
                if list.open.is_none() {
                    wrong.push(format!("{rfc} {id} ({what}): {line}"));
                }
            }
        }
    }
    totals
}

fn standing<'a>(requirement: &'a Requirement, places: Option<&'a Places>) -> Standing<'a> {
    let first = |places: &'a [String]| places.first().map(String::as_str);
    let branch = places.and_then(|places| first(&places.branches));
    let test = places.and_then(|places| first(&places.tests));
    match (branch, test, &requirement.reason) {
        (Some(branch), Some(test), _) => Standing::Met { branch, test },
        (_, _, Some(reason)) => Standing::Excused { reason },
        (branch, test, None) => Standing::Lacking { branch, test },
    }
}

/// Tags of listed RFCs that name what their list has not.
fn unknown_ids(lists: &[List], tags: &Tags) -> Vec<String> {
    let known: BTreeMap<&str, &List> = lists.iter().map(|list| (list.rfc.as_str(), list)).collect();
    let is_unknown = |(rfc, id): &(String, String)| {
        known.get(rfc.as_str()).is_some_and(|list| !list.requirements.iter().any(|r| r.id == *id))
    };
    tags.iter()
        .filter(|(tag, _)| is_unknown(tag))
        .flat_map(|((rfc, id), places)| {
            let places = places.branches.iter().chain(&places.tests);
            places.map(move |place| format!("{place}: {rfc} has no requirement {id}"))
        })
        .collect()
}
