//! Types of a crate: structs, enums, unions and traits, public or not, those within functions too, and those that a
//! `macro_rules!` of the crate makes, once for each call. Type aliases and implementations do not count, nor does what is
//! built for tests only. On the code of issue 33 (25803389) this gives its 93 types of `core/tcp`.

use super::functions::definitions;
use super::source::{Module, Tree, words};
use super::{Behind, Measure};
use syn::Item;
use syn::visit::{self, Visit};

/// The crates that are counted, with the goals.
const CRATES: &[(&str, Option<usize>)] = &[
    ("core/congestion", None),
    ("core/datagram", None),
    ("core/ip", None),
    ("core/stack", None),
    ("core/tcp", Some(60)),
    ("host/socket", None),
];

pub fn measures(tree: &Tree) -> Vec<Measure> {
    CRATES
        .iter()
        .map(|&(folder, goal)| Measure { goal, ..Measure::of("types", folder.to_owned(), of(tree, folder)) })
        .collect()
}

fn of(tree: &Tree, folder: &str) -> Vec<Behind> {
    let mut found = Vec::new();
    for module in tree.modules_of(folder) {
        let mut finder = Finder { tree, module, found: &mut found };
        module.items.iter().for_each(|item| finder.visit_item(item));
    }
    found
}

struct Finder<'a> {
    tree: &'a Tree,
    module: &'a Module,
    found: &'a mut Vec<Behind>,
}

impl Finder<'_> {
    fn take(&mut self, name: &syn::Ident) {
        let place = self.tree.place(self.module, name.span().start().line);
        self.found.push(Behind::new(name.to_string(), place));
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.take(&item.ident);
    }
    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.take(&item.ident);
    }
    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.take(&item.ident);
    }
    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.take(&item.ident);
        visit::visit_item_trait(self, item);
    }
    fn visit_item_macro(&mut self, call: &'ast syn::ItemMacro) {
        let Some((at, name, _)) = self.tree.resolve(self.module, &words(&call.mac.path)) else { return };
        let called = at.items.iter().find_map(|item| match item {
            Item::Macro(item) if item.ident.as_ref().is_some_and(|ident| *ident == name) => {
                Some(&item.mac.tokens)
            }
            _ => None,
        });
        let made = called.map_or_else(Vec::new, |tokens| definitions(tokens.clone()));
        let made = made.into_iter().filter(|(name, _)| !name.starts_with("fn "));
        let place = self.tree.place(self.module, call.mac.bang_token.span.start().line);
        self.found.extend(made.map(|(made, _)| Behind::new(format!("{name}! {made}"), place.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::tree_of;
    use super::*;

    #[test]
    fn types_count_wherever_they_stand_but_in_tests() {
        let tree = tree_of(
            "core/tcp",
            &[("", "struct A; enum B {} type C = A; fn f() { struct D; } mod m { trait E {} } #[cfg(test)] mod tests { struct F; }
               macro_rules! make { ($n:ident) => { struct $n; impl $n { fn f() {} } } } make! { G } make! { H }")],
        );
        let names: Vec<String> = of(&tree, "core/tcp").into_iter().map(|behind| behind.what).collect();
        assert_eq!(names, ["A", "B", "D", "make! struct n", "make! struct n", "E"]);
    }
}
