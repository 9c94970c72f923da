//! Open fields: those of structs that more than their own module may name, `pub`, `pub(crate)`, `pub(super)` and
//! `pub(in …)` alike, whether the struct itself is public or not.
//!
//! Three counts for each crate: all open fields; those outside of plain data; and the fields that other files see, which
//! besides the open ones are the private ones of a struct whose module has modules below it in other files (a child sees
//! what is private to its parent). The last keeps a struct from being moved up instead of being closed.
//!
//! A struct is plain data if
//! - all its fields are open,
//! - no method takes it by `&mut self`, be it one of a trait,
//! - no field is a mutable borrow, and
//! - no field holds, even in a container, a type of its own crate with a method that takes `&mut self`.
//!
//! So a struct does not become plain data by turning its methods into functions: what it consists of must be plain as well.

use super::reach::{Graph, Types, path_of};
use super::source::{Module, Tree, is_open};
use super::{Behind, Measure};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{FnArg, Item, ItemStruct, Type};

pub fn measures(tree: &Tree, graph: &Graph<'_>, folders: &[String]) -> Vec<Measure> {
    folders.iter().flat_map(|folder| of_crate(tree, graph, folder)).collect()
}

fn of_crate(tree: &Tree, graph: &Graph<'_>, folder: &str) -> [Measure; 3] {
    let changing = changing(tree, graph, folder);
    let (mut all, mut not_plain, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for module in tree.modules_of(folder) {
        let has_below = has_files_below(tree, module);
        for item in &module.items {
            let Item::Struct(item) = item else { continue };
            let is_plain = is_plain(graph, module, item, &changing);
            for (place, field) in item.fields.iter().enumerate() {
                let name = field.ident.as_ref().map_or_else(|| place.to_string(), ToString::to_string);
                let line = field.ident.as_ref().map_or(field.ty.span(), syn::Ident::span).start().line;
                let behind = || Behind::new(format!("{}.{name}", item.ident), tree.place(module, line));
                let is_open = is_open(&field.vis);
                all.extend(is_open.then(behind));
                not_plain.extend((is_open && !is_plain).then(behind));
                seen.extend((is_open || has_below).then(behind));
            }
        }
    }
    [
        Measure::of("fields", format!("open in {folder}"), all),
        Measure::of("fields", format!("open outside plain data in {folder}"), not_plain).with_goal(0),
        Measure::of("fields", format!("seen by other files of {folder}"), seen),
    ]
}

fn has_files_below(tree: &Tree, module: &Module) -> bool {
    tree.modules
        .range(module.path.clone()..)
        .skip(1)
        .take_while(|(path, _)| path.starts_with(&module.path))
        .any(|(_, below)| below.file != module.file)
}

/// The types of a crate that have a method which takes `&mut self`.
fn changing(tree: &Tree, graph: &Graph<'_>, folder: &str) -> Types {
    let functions = tree.functions(folder);
    let changes = functions.iter().filter(|function| match function.signature.inputs.first() {
        Some(FnArg::Receiver(receiver)) => borrows_mutably(&receiver.ty),
        _ => false,
    });
    changes.flat_map(|function| graph.owner_of(function)).collect()
}

fn borrows_mutably(of: &Type) -> bool {
    struct Borrows(bool);
    impl<'ast> Visit<'ast> for Borrows {
        fn visit_type_reference(&mut self, reference: &'ast syn::TypeReference) {
            self.0 |= reference.mutability.is_some();
            visit::visit_type_reference(self, reference);
        }
    }
    let mut borrows = Borrows(false);
    borrows.visit_type(of);
    borrows.0
}

fn is_plain(graph: &Graph<'_>, module: &Module, item: &ItemStruct, changing: &Types) -> bool {
    let own = path_of(module, &item.ident.to_string());
    let holds = |of: &Type| graph.mentioned(module, of).iter().any(|name| changing.contains(name));
    !changing.contains(&own)
        && item
            .fields
            .iter()
            .all(|field| is_open(&field.vis) && !borrows_mutably(&field.ty) && !holds(&field.ty))
}

#[cfg(test)]
mod tests {
    use super::super::source::tree_of;
    use super::*;

    /// The names behind the three counts.
    fn counts(files: &[(&str, &str)]) -> [String; 3] {
        let tree = tree_of("core/some", files);
        let found = of_crate(&tree, &Graph::of(&tree), "core/some");
        found.map(|of| of.behind.iter().map(|behind| &behind.what[..]).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn every_word_that_opens_a_field_counts() {
        let text = "struct A { pub a: u8, pub(crate) b: u8, pub(super) c: u8, pub(in crate::x) d: u8, pub(self) e: u8, f: u8 }
            struct B(pub u8, u8); #[cfg(test)] struct C { pub a: u8 }";
        assert_eq!(counts(&[("", text)])[0], "A.a A.b A.c A.d B.0");
    }
    #[test]
    fn plain_data_is_open_unchanging_and_made_of_plain_data() {
        let plain = "pub struct Plain { pub a: u8, pub b: Vec<Small> } pub struct Small(pub u8); impl Plain { fn a(&self) {} }";
        assert_eq!(counts(&[("", plain)])[1], "");
        let half = "struct Half { pub a: u8, b: u8 }";
        let method = "struct Method { pub a: u8 } impl Method { fn go(&mut self) {} }";
        let of_trait = "struct Trait { pub a: u8 } impl Go for Trait { fn go(self: &mut Self) {} }";
        let view = "struct View<'a> { pub a: &'a mut u8 }";
        let holder = "struct Holder { pub parts: Option<Box<Part>> } struct Part { a: u8 } impl Part { fn go(&mut self) {} }";
        let text = [half, method, of_trait, view, holder].join(" ");
        assert_eq!(counts(&[("", &text)])[1], "Half.a Method.a Trait.a View.a Holder.parts");
    }
    #[test]
    fn a_child_sees_the_private_fields_of_its_parents_file() {
        let files = [
            ("", "mod a;"),
            ("a", "mod b; mod within {} struct A { x: u8 }"),
            ("a::b", "struct B { x: u8, pub y: u8 }"),
        ];
        assert_eq!(counts(&files)[2], "A.x B.y");
    }
}
