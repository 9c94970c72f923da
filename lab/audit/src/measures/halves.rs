//! The halves of a connection: which functions of `core/tcp` can touch both, and which of the connection's touch one only.
//!
//! A function reaches a half if it reaches, by the rules of [`super::reach`], `Sender` (or `Receiver`) or a part of its
//! state that is defined beside it, as `RoundTrip` is beside `Sender`: lending the parts one by one is not a way around. It
//! reaches both with a `Connection`, a view of one, a struct or trait that gives both, or both as parameters.
//!
//! A function touches a half if its body names the half: a field `sender`, a method `sender()`, a variable of that name.
//! What the functions that it calls touch does not count. Of the functions that reach both, and of all in the folder of
//! `Connection`, those that name exactly one are listed: they belong to that half.
//!
//! Issue 33 gives figures without saying how it counted. Its other figures fit the code of 25803389. On that code this
//! gives 194 functions that reach both where the issue says 201, 3.5 % fewer; and 95 that touch one only, as the issue says.

use super::reach::{Graph, Types};
use super::source::{Function, Tree, paths_in};
use super::{Behind, Measure};
use std::collections::BTreeSet;
use syn::visit::{self, Visit};

const CRATE: &str = "core/tcp";
const CONNECTION: &str = "Connection";
const SENDER: &str = "Sender";
const RECEIVER: &str = "Receiver";
/// What the halves are called where they stand beside each other.
const NAMES: [&str; 2] = ["sender", "receiver"];

pub fn measures(tree: &Tree, graph: &Graph<'_>) -> Result<Vec<Measure>, String> {
    let (sender, receiver) = (side(graph, SENDER)?, side(graph, RECEIVER)?);
    let connection = graph.find(CRATE, CONNECTION)?;
    let mut folder: Vec<String> = connection.split("::").map(str::to_owned).collect();
    folder.pop();
    let (mut both, mut one) = (Vec::new(), Vec::new());
    for function in tree.functions(CRATE) {
        let named = graph.named_by(&function);
        let reaches_both = !named.is_disjoint(&sender) && !named.is_disjoint(&receiver);
        let touched = touched(&function);
        if reaches_both {
            both.push(Behind::function(tree, &function));
        }
        if touched.len() == 1 && (reaches_both || function.module.path.starts_with(&folder)) {
            one.push(Behind::function(tree, &function).with(touched.first().expect("it is one")));
        }
    }
    Ok(vec![
        Measure::of("halves", "functions that reach both".to_owned(), both).with_goal(70),
        Measure::of("halves", "functions of a connection that touch one".to_owned(), one),
    ])
}

/// All types that reach a half or a part of its state.
fn side(graph: &Graph<'_>, half: &str) -> Result<Types, String> {
    let half = graph.find(CRATE, half)?;
    let own = half.rsplit_once("::").map_or("", |(module, _)| module);
    let parts = graph.reached(&half).into_iter().filter(|part| part.starts_with(own));
    Ok(parts.flat_map(|part| graph.reaching(&part)).collect())
}

/// The halves that a function's body names.
fn touched(function: &Function<'_>) -> BTreeSet<&'static str> {
    let mut touches = Touches(BTreeSet::new());
    function.body.into_iter().for_each(|body| touches.visit_block(body));
    touches.0
}

struct Touches(BTreeSet<&'static str>);

impl<'ast> Visit<'ast> for Touches {
    fn visit_ident(&mut self, word: &'ast syn::Ident) {
        self.0.extend(NAMES.iter().find(|name| word == *name));
    }
    fn visit_macro(&mut self, of: &'ast syn::Macro) {
        let words = paths_in(of.tokens.clone()).into_iter().flatten();
        words.for_each(|word| self.0.extend(NAMES.iter().find(|name| word == **name)));
        visit::visit_macro(self, of);
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::tree_of;
    use super::*;

    /// What is behind both measures; the connection is in a module of its own.
    fn names(source: &str) -> [Vec<String>; 2] {
        let halves = "mod connection; mod sender; pub struct Receiver { buffer: u8 }";
        let sender =
            "pub struct Sender { timer: Timer } pub struct Timer { at: u8 } pub enum Next { Nothing }";
        let connection =
            "use crate::{Receiver, sender::*}; struct Connection { sender: Sender, receiver: Receiver }";
        let files = [("", halves), ("sender", sender), ("connection", &format!("{connection} {source}")[..])];
        let tree = tree_of(CRATE, &files);
        let found = measures(&tree, &Graph::of(&tree)).unwrap();
        [0, 1].map(|at: usize| found[at].behind.iter().map(|behind| behind.what.clone()).collect())
    }

    #[test]
    fn both_halves_are_reached_together_or_one_by_one() {
        let [both, _] = names(
            "fn whole(of: &Connection) {} fn each(a: &Sender, b: &Receiver) {} fn one(a: &Sender) {}
             struct View<'a> { a: &'a Sender, b: &'a Receiver } impl View<'_> { fn look(&self) {} fn none() {} }
             impl Receiver { fn part(&self, of: &Timer) {} fn no_part(&self, of: Next) {} }",
        );
        assert_eq!(both, ["whole", "each", "View::look", "Receiver::part"]);
    }
    #[test]
    fn a_function_that_touches_one_half_is_told_from_one_that_touches_both() {
        let [_, one] = names(
            "fn one(of: &mut Connection) { of.sender.go(); } fn neither(of: &mut Connection) { one(of); }
             fn both(of: &mut Connection) { of.sender.go(of.receiver()); }
             fn by_pattern(of: &mut Connection) { let Connection { receiver, .. } = of; }
             fn in_macro(of: &mut Connection) { assert!(of.receiver.x == of.sender.x); }
             struct View<'a> { sender: &'a Sender } impl View<'_> { fn look(&self) { self.sender.look(); } }",
        );
        assert_eq!(one, ["one: sender", "by_pattern: receiver", "View::look: sender"]);
    }
}
