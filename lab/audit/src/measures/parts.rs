//! Functions of `core/stack` that are given more than three parts of the stack.
//!
//! The parts are the types of the fields of `Parts`, but for those that Rust copies (the time, a flag). A function holds
//! each part that its `self`, its parameters and its bounds reach by the rules of [`super::reach`], a part within another
//! not counted: `&mut Parts` gives all, a struct that borrows four gives four, and `&mut Sockets` gives one. What a
//! connection holds is its own.

use super::reach::{Graph, Types};
use super::source::Tree;
use super::{Behind, Measure};
use std::collections::BTreeMap;

const CRATE: &str = "core/stack";
/// The struct whose fields are the parts.
const PARTS: &str = "Parts";
/// The type of a field that is a value and not a part.
const VALUE: &str = "inhost_base::time::Instant";
/// The crate and the name of a type that has a configuration and random numbers of its own, which are not the stack's.
const OWNER: (&str, &str) = ("core/tcp", "Connection");
/// Parts that a function may hold.
const MOST: usize = 3;

pub fn measures(tree: &Tree, graph: &Graph<'_>) -> Result<Vec<Measure>, String> {
    let fields = graph.fields(CRATE, PARTS)?;
    let parts = fields.into_iter().filter_map(|(field, types)| {
        let of = types.into_iter().find(|name| name != VALUE)?;
        Some((field, of))
    });
    let parts: BTreeMap<String, String> = parts.collect();
    let ends: Types = parts.values().cloned().chain([graph.find(OWNER.0, OWNER.1)?]).collect();
    let reaching: Vec<(&String, Types)> =
        parts.iter().map(|(field, of)| (field, graph.reaching_outside(of, &ends))).collect();
    let mut found = Vec::new();
    for function in tree.functions(CRATE) {
        let given = graph.given_to(&function);
        let held = reaching.iter().filter(|(_, reaching)| !given.is_disjoint(reaching));
        let held: Vec<&str> = held.map(|(field, _)| &field[..]).collect();
        if held.len() > MOST {
            let names = if held.len() == parts.len() { "all".to_owned() } else { held.join(" ") };
            found.push((held.len(), Behind::function(tree, &function).with(&names)));
        }
    }
    found.sort_by_key(|&(held, _)| std::cmp::Reverse(held));
    let behind = found.into_iter().map(|(_, behind)| behind).collect();
    Ok(vec![Measure::of("parts", "functions that hold more than three".to_owned(), behind).with_goal(30)])
}

#[cfg(test)]
mod tests {
    use super::super::source::{add_crate, tree_of};
    use super::*;

    #[test]
    fn a_view_of_some_parts_gives_these_and_the_whole_gives_all() {
        let text = "use inhost_tcp::{C, Connection}; struct A; struct B; struct D; struct E(A);
            struct Parts { a: A, b: B, c: C, d: D, on: bool }
            struct Three<'a> { a: &'a A, b: &'a mut B, c: &'a C }
            fn whole(of: &Parts) {} fn view(of: Three<'_>) {} fn view_and_one(of: Three<'_>, d: &D) {}
            fn tuple((a, b): (&A, &B), c: &C, d: Option<&D>) {} fn makes() -> Parts {}
            fn twice(a: &A, e: &E, b: &B, c: &C) {} fn its_own(of: &Connection, a: &A, b: &B, d: &D) {}";
        let mut tree = tree_of(CRATE, &[("", text)]);
        add_crate(&mut tree, OWNER.0, &[("", "pub struct C; pub struct Connection { c: C }")]);
        let found = measures(&tree, &Graph::of(&tree)).unwrap();
        let names: Vec<&str> = found[0].behind.iter().map(|behind| &behind.what[..]).collect();
        assert_eq!(names, ["whole: all", "view_and_one: all", "tuple: all"]);
    }
}
