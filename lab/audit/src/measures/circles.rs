//! Circles among the files of a crate, and among its folders.
//!
//! A file knows another if it names something that is defined there: by `use`, by a path, by a name that a glob brings in,
//! or in a macro. The name is followed through re-exports to its definition, and a re-export itself names what it passes
//! on. What is reached by a method call alone is not seen.
//!
//! **By file** nothing is exempt. A `mod.rs` that uses its child, or re-exports from it, is in a circle with the child if
//! the child names something that the `mod.rs` defines.
//!
//! **By folder** each folder is looked at with what lies directly in it: files, and folders with all that is below. Its own
//! `mod.rs` (or `lib.rs`) stands for the folder itself; it is neither above nor beside its children, and so is in no circle
//! with them. Two folders that know each other are a circle whichever of their files do.
//!
//! On the code of issue 33 (25803389) this gives its 13 files in `host/socket`, 9 in `core/ip` and 11 modules in
//! `core/stack`; of `host/packetdrill` it gives 10 files for the 9, since `calls/mod.rs`
//! and its children count.
//!
//! The floor that [`crate::arrows`] asks of the core is lower ([`Exempt::Family`]): there a `pub use` names nothing, and a
//! file may name what its parents define, which every method of a type in a file of its own does.

use super::source::{Module, Names, Tree, paths_in, words};
use super::{Behind, Measure};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{UseTree, Visibility};

/// Which files know which, by the paths of their modules.
type Arrows = BTreeMap<Names, BTreeSet<Names>>;

/// What is not an arrow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Exempt {
    Nothing,
    /// Re-exports, and what a file's parents define.
    Family,
}

pub fn measures(tree: &Tree, folders: &[String]) -> Vec<Measure> {
    folders.iter().flat_map(|folder| of_crate(tree, folder)).collect()
}

fn of_crate(tree: &Tree, folder: &str) -> [Measure; 4] {
    let arrows = arrows(tree, folder, Exempt::Nothing);
    let (by_file, by_folder) = (circles(&arrows), folder_circles(&arrows));
    let of = |circles: Vec<Arrows>, by: &str| {
        let largest = circles.iter().map(Arrows::len).max().unwrap_or(0);
        let mut behind = Vec::new();
        for (number, circle) in circles.iter().enumerate() {
            let place = format!("{folder}: circle {} of {}", number + 1, circles.len());
            for (name, known) in circle {
                let known: Vec<String> = known.iter().map(|name| name_of(name)).collect();
                behind
                    .push(Behind::new(format!("{} knows {}", name_of(name), known.join(" ")), place.clone()));
            }
        }
        let all = Measure::of("circles", format!("by {by}, all of {folder}"), behind);
        let most = Measure::of("circles", format!("by {by}, largest of {folder}"), Vec::new());
        [all, Measure { value: largest, ..most }]
    };
    let ([files, most_files], [folders, most_folders]) = (of(by_file, "file"), of(by_folder, "folder"));
    [files, most_files, folders.with_goal(0), most_folders.with_goal(0)]
}

/// The number of a crate's files, and its circles among them.
pub fn of_files(tree: &Tree, folder: &str, exempt: Exempt) -> (usize, Vec<Vec<String>>) {
    let arrows = arrows(tree, folder, exempt);
    let circles = circles(&arrows);
    (arrows.len(), circles.iter().map(|circle| circle.keys().map(|name| name_of(name)).collect()).collect())
}

/// A module's path within its crate.
fn name_of(module: &[String]) -> String {
    if module.len() == 1 { "lib".to_owned() } else { module[1..].join("::") }
}

fn arrows(tree: &Tree, folder: &str, exempt: Exempt) -> Arrows {
    // The module that a file is: the first of those in it, since the others are below.
    let mut module_of: BTreeMap<usize, &Names> = BTreeMap::new();
    for module in tree.modules_of(folder) {
        module_of.entry(module.file).or_insert(&module.path);
    }
    let mut arrows = Arrows::new();
    for module in tree.modules_of(folder) {
        let from = module_of[&module.file];
        let mut named = Named { exempt, found: BTreeSet::new() };
        module.items.iter().for_each(|item| named.visit_item(item));
        let to = named.found.iter().filter_map(|path| tree.resolve(module, path));
        let to = to.filter_map(|(at, _, _): (&Module, _, _)| module_of.get(&at.file).copied());
        let is_exempt = |to: &Names| to == from || exempt == Exempt::Family && from.starts_with(to);
        arrows.entry(from.clone()).or_default().extend(to.filter(|to| !is_exempt(to)).cloned());
    }
    arrows
}

/// The circles among what lies beside each other in each folder.
fn folder_circles(arrows: &Arrows) -> Vec<Arrows> {
    let folders: BTreeSet<&[String]> =
        arrows.keys().filter_map(|file| file.split_last()).map(|(_, folder)| folder).collect();
    let mut found = Vec::new();
    for folder in folders {
        let child = |file: &Names| {
            (file.len() > folder.len() && file.starts_with(folder)).then(|| file[..=folder.len()].to_vec())
        };
        let mut beside = Arrows::new();
        for (from, to) in arrows {
            let Some(from) = child(from) else { continue };
            let to: BTreeSet<Names> = to.iter().filter_map(child).filter(|to| *to != from).collect();
            beside.entry(from).or_default().extend(to);
        }
        found.extend(circles(&beside));
    }
    found
}

/// The strongly connected components of more than one, each with the arrows within it.
fn circles(arrows: &Arrows) -> Vec<Arrows> {
    let names: Vec<&Names> = arrows.keys().collect();
    let numbers: BTreeMap<&Names, usize> = names.iter().copied().zip(0..).collect();
    let mut graph = petgraph::graphmap::DiGraphMap::<usize, ()>::new();
    for (from, to) in arrows {
        for to in to {
            graph.add_edge(numbers[from], numbers[to], ());
        }
    }
    let found = petgraph::algo::tarjan_scc(&graph).into_iter().filter(|circle| circle.len() > 1);
    let mut circles: Vec<Arrows> = found
        .map(|circle| {
            let circle: BTreeSet<&Names> = circle.into_iter().map(|number| names[number]).collect();
            let within = |to: &BTreeSet<Names>| to.iter().filter(|to| circle.contains(to)).cloned().collect();
            circle.iter().map(|&name| (name.clone(), within(&arrows[name]))).collect()
        })
        .collect();
    circles.sort();
    circles
}

/// The paths that a piece of syntax names.
struct Named {
    exempt: Exempt,
    found: BTreeSet<Names>,
}

impl Named {
    fn take_use(&mut self, tree: &UseTree, before: &[String]) {
        let with = |word: &syn::Ident| before.iter().cloned().chain([word.to_string()]).collect::<Names>();
        match tree {
            UseTree::Path(path) => self.take_use(&path.tree, &with(&path.ident)),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.take_use(tree, before)),
            UseTree::Name(name) => drop(self.found.insert(with(&name.ident))),
            UseTree::Rename(name) => drop(self.found.insert(with(&name.ident))),
            // What of it is used is found where it is used.
            UseTree::Glob(_) => {}
        }
    }
    fn take(&mut self, path: &syn::Path) {
        self.found.insert(words(path));
    }
}

impl<'ast> Visit<'ast> for Named {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if self.exempt == Exempt::Nothing || matches!(item.vis, Visibility::Inherited) {
            self.take_use(&item.tree, &[]);
        }
    }
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.take(path);
        visit::visit_path(self, path);
    }
    fn visit_macro(&mut self, of: &'ast syn::Macro) {
        self.take(&of.path);
        self.found.extend(paths_in(of.tokens.clone()));
    }
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

#[cfg(test)]
mod tests {
    use super::super::source::tree_of;
    use super::*;

    fn by_file(files: &[(&str, &str)], exempt: Exempt) -> Vec<Vec<String>> {
        of_files(&tree_of("core/some", files), "core/some", exempt).1
    }
    fn by_folder(files: &[(&str, &str)]) -> Vec<String> {
        let circles = folder_circles(&arrows(&tree_of("core/some", files), "core/some", Exempt::Nothing));
        circles
            .iter()
            .map(|circle| circle.keys().map(|name| name_of(name)).collect::<Vec<_>>().join(" "))
            .collect()
    }
    const ROOT: (&str, &str) = ("", "mod a; mod b; pub use b::Thing;");

    #[test]
    fn a_circle_is_found_through_names_that_the_root_passes_on() {
        let there = ("a", "use crate::Thing; pub struct Part;");
        let files = [ROOT, there, ("b", "pub struct Thing(crate::a::Part);")];
        assert_eq!(by_file(&files, Exempt::Family), [["a", "b"]]);
        assert_eq!(by_folder(&files), ["a b"]);
        assert!(by_file(&[ROOT, there, ("b", "pub struct Thing;")], Exempt::Nothing).is_empty());
    }
    #[test]
    fn globs_macros_and_tests() {
        let there = |text| [ROOT, ("a", "use crate::Thing; pub struct Part; pub fn part() {}"), ("b", text)];
        let found = |text| !by_file(&there(text), Exempt::Family).is_empty();
        assert!(found("use crate::a::*; pub struct Thing(Part);"));
        assert!(found("pub struct Thing; fn f() { assert!(crate::a::part()); }"));
        assert!(found("pub struct Thing; fn f() { use crate::a::part; }"));
        assert!(!found("use crate::a::*; pub struct Thing;"));
        assert!(!found("pub struct Thing; #[cfg(test)] mod tests { use crate::a::Part; }"));
    }
    #[test]
    fn a_parent_and_a_child_are_a_circle_by_file_only() {
        let child =
            |text| [("", "mod a;"), ("a", "mod b; use b::Part; pub struct Whole(Part);"), ("a::b", text)];
        let method = child("use super::Whole; pub struct Part; impl Whole { fn grow(&self) {} }");
        assert!(by_file(&method, Exempt::Family).is_empty());
        assert_eq!(by_file(&method, Exempt::Nothing), [["a", "a::b"]]);
        assert!(by_folder(&method).is_empty());
        assert!(by_file(&child("pub struct Part;"), Exempt::Nothing).is_empty());
        // A re-export is a use like others.
        let passes_on =
            [("", "mod a; pub use a::Part; pub struct Whole;"), ("a", "use crate::Whole; pub struct Part;")];
        assert_eq!(by_file(&passes_on, Exempt::Nothing), [["lib", "a"]]);
    }
    #[test]
    fn folders_are_a_circle_though_their_files_are_none() {
        let files = [
            ("", "mod a; mod b;"),
            ("a", "pub mod x; pub mod y;"),
            ("a::x", "pub struct X(crate::b::z::Z);"),
            ("a::y", "pub struct Y;"),
            ("b", "pub mod z; pub mod w;"),
            ("b::z", "pub struct Z;"),
            ("b::w", "pub struct W(crate::a::y::Y);"),
        ];
        assert!(by_file(&files, Exempt::Nothing).is_empty());
        assert_eq!(by_folder(&files), ["a b"]);
    }
    #[test]
    fn a_circle_within_a_folder_is_found_at_its_own_level() {
        let files = [
            ("", "mod a;"),
            ("a", "mod x; mod y;"),
            ("a::x", "pub struct X(super::y::Y);"),
            ("a::y", "pub struct Y; fn f(x: super::x::X) {}"),
        ];
        assert_eq!(by_folder(&files), ["a::x a::y"]);
    }
}
