//! How many functions reach the types that a host is made of, by the rules of [`super::reach`]; and how many methods these
//! types have of their own: all that stand in an `impl` of theirs, those of traits and those without `self` as well.
//!
//! On the code of issue 33 (25803389) and without `freeze.rs` this gives the figures: 58 methods of `Connection`,
//! 37 of `Stack`, 227 functions that reach `Parts`.

use super::reach::{Graph, Types};
use super::source::{Function, Tree};
use super::{Behind, Measure};
use std::collections::{BTreeMap, BTreeSet};

/// The types, each with its crate and the crates whose functions are counted.
const ROOTS: &[(&str, &str, &[&str])] = &[
    ("Connection", "core/tcp", &["core/tcp", "core/stack"]),
    ("Sender", "core/tcp", &["core/tcp"]),
    ("Receiver", "core/tcp", &["core/tcp"]),
    ("Stack", "core/stack", &["core/stack"]),
    ("Parts", "core/stack", &["core/stack"]),
    ("Ip", "core/ip", &["core/ip", "core/stack"]),
    ("Host", "host/socket", &["host/socket"]),
];

pub fn measures(tree: &Tree, graph: &Graph<'_>) -> Result<Vec<Measure>, String> {
    let folders = ROOTS.iter().flat_map(|(_, _, folders)| folders.iter().copied());
    let folders: BTreeSet<&str> = folders.collect();
    let functions: BTreeMap<&str, Vec<(Function<'_>, Types)>> =
        folders.into_iter().map(|folder| (folder, with_names(tree, graph, folder))).collect();
    let mut found = Vec::new();
    for (name, home, folders) in ROOTS {
        let root = graph.find(home, name)?;
        let reaching = graph.reaching(&root);
        for folder in *folders {
            let reach = functions[folder].iter().filter(|(_, named)| !named.is_disjoint(&reaching));
            let behind = reach.map(|(function, _)| Behind::function(tree, function)).collect();
            found.push(Measure::of("reach", format!("{name} in {folder}"), behind));
        }
        let methods = functions[home].iter().filter(|(function, _)| graph.owner_of(function).contains(&root));
        let behind = methods.map(|(function, _)| Behind::function(tree, function)).collect();
        found.push(Measure::of("methods", (*name).to_owned(), behind));
    }
    Ok(found)
}

/// A crate's functions, each with the types that it names.
fn with_names<'t>(tree: &'t Tree, graph: &Graph<'_>, folder: &str) -> Vec<(Function<'t>, Types)> {
    tree.functions(folder)
        .into_iter()
        .map(|function| {
            let named = graph.named_by(&function);
            (function, named)
        })
        .collect()
}
