//! Which file may know which: no circle among the files of a crate of the core. A file knows another when it names
//! something that is defined there, by `use` or by a path. What is built for tests only does not count, nor does a
//! child module that names its own type parent's file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, UseTree};

/// The crates whose files are looked at.
const CRATES: &[&str] = &["core/ip", "core/congestion", "core/tcp", "core/stack"];

/// What of one crate's files is in circles.
pub struct Circles {
    /// The crate's folder.
    pub folder: &'static str,
    /// Files of the crate, tests left out.
    pub files: usize,
    /// The files of each circle.
    pub circles: Vec<Vec<String>>,
}

/// The circles of every crate.
pub fn circles() -> Result<Vec<Circles>, String> {
    CRATES.iter().map(|folder| of_crate(folder)).collect()
}

fn of_crate(folder: &'static str) -> Result<Circles, String> {
    let mut modules = BTreeMap::new();
    read(&Path::new(folder).join("src/lib.rs"), &[], &mut modules)?;
    let arrows = arrows(&modules);
    let name = |module: &Names| if module.is_empty() { "lib".to_owned() } else { module.join("::") };
    let circles = components(&arrows)
        .into_iter()
        .filter(|circle| circle.len() > 1)
        .map(|circle| circle.iter().map(name).collect())
        .collect();
    Ok(Circles { folder, files: modules.len(), circles })
}

/// A module's path from its crate's root: each file is a module.
type Names = Vec<String>;

/// What a file says.
#[derive(Default)]
struct Module {
    /// Names defined here.
    defines: BTreeSet<String>,
    /// Modules below.
    children: BTreeSet<String>,
    /// Names that others may use as if they were defined here, and where they are from.
    passes_on: BTreeMap<String, Names>,
    /// Paths that are named, from the crate's root.
    names: BTreeSet<Names>,
}

type Modules = BTreeMap<Names, Module>;

fn read(file: &Path, path: &[String], modules: &mut Modules) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let syntax = syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut reader = Reader { path, module: Module::default() };
    reader.visit_file(&syntax);
    let children = reader.module.children.clone();
    modules.insert(path.to_vec(), reader.module);
    for child in children {
        let below: Names = path.iter().cloned().chain([child.clone()]).collect();
        read(&place_of(file, path.is_empty(), &child)?, &below, modules)?;
    }
    Ok(())
}

/// The file of the module `child` of the one in `file`.
fn place_of(file: &Path, is_root: bool, child: &str) -> Result<PathBuf, String> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let stem = file.file_stem().unwrap_or_default();
    let folder = if is_root || stem == "mod" { folder.to_owned() } else { folder.join(stem) };
    [folder.join(format!("{child}.rs")), folder.join(child).join("mod.rs")]
        .into_iter()
        .find(|place| place.exists())
        .ok_or_else(|| format!("{}: no file of its module {child}", file.display()))
}

struct Reader<'a> {
    path: &'a [String],
    module: Module,
}

impl Reader<'_> {
    /// A path as it is counted from the root, where it is one within the crate.
    fn path_from_root(&self, segments: &[String]) -> Option<Names> {
        let (first, rest) = segments.split_first()?;
        let (mut base, mut rest) = match first.as_str() {
            "crate" => (Vec::new(), rest),
            "self" => (self.path.to_vec(), rest),
            "super" => (self.path.split_last()?.1.to_vec(), rest),
            child if self.module.children.contains(child) => (self.path.to_vec(), segments),
            _ => return None,
        };
        while rest.first().is_some_and(|word| word == "super") {
            base.pop()?;
            rest = &rest[1..];
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }
    fn take_use(&mut self, tree: &UseTree, before: &[String], passes_on: bool) {
        let with = |word: &syn::Ident| before.iter().cloned().chain([word.to_string()]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(path) => self.take_use(&path.tree, &with(&path.ident), passes_on),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.take_use(tree, before, passes_on));
            }
            UseTree::Name(name) => self.take_name(&with(&name.ident), &name.ident.to_string(), passes_on),
            UseTree::Rename(name) => self.take_name(&with(&name.ident), &name.rename.to_string(), passes_on),
            UseTree::Glob(_) => self.take_name(before, "*", passes_on),
        }
    }
    fn take_name(&mut self, path: &[String], as_: &str, passes_on: bool) {
        let path = match path.split_last() {
            Some((last, before)) if last == "self" && !before.is_empty() => before,
            _ => path,
        };
        let Some(path) = self.path_from_root(path) else { return };
        // Children see what their parents use, too.
        self.module.passes_on.insert(as_.to_owned(), path.clone());
        if !passes_on {
            self.module.names.insert(path);
        }
    }
}

/// Whether something is built for tests only.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

fn defined(item: &Item) -> Option<(&syn::Ident, &[Attribute])> {
    match item {
        Item::Const(item) => Some((&item.ident, &item.attrs)),
        Item::Enum(item) => Some((&item.ident, &item.attrs)),
        Item::Fn(item) => Some((&item.sig.ident, &item.attrs)),
        Item::Static(item) => Some((&item.ident, &item.attrs)),
        Item::Struct(item) => Some((&item.ident, &item.attrs)),
        Item::Trait(item) => Some((&item.ident, &item.attrs)),
        Item::Type(item) => Some((&item.ident, &item.attrs)),
        Item::Macro(item) => item.ident.as_ref().map(|ident| (ident, &item.attrs[..])),
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_file(&mut self, file: &'ast syn::File) {
        // Modules first: their names begin paths.
        for item in &file.items {
            match item {
                Item::Mod(module) if module.content.is_none() && !is_for_tests(&module.attrs) => {
                    self.module.children.insert(module.ident.to_string());
                }
                item => self.module.defines.extend(defined(item).map(|(name, _)| name.to_string())),
            }
        }
        visit::visit_file(self, file);
    }
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Impl(item) => &item.attrs[..],
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            item => defined(item).map_or(&[][..], |(_, attributes)| attributes),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let passes_on = !matches!(item.vis, syn::Visibility::Inherited);
        self.take_use(&item.tree, &[], passes_on);
    }
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if segments.len() > 1
            && let Some(path) = self.path_from_root(&segments)
        {
            self.module.names.insert(path);
        }
        visit::visit_path(self, path);
    }
}

/// The file in which what `path` names is defined, and its name there; nothing where it is only a module's name.
fn definition(modules: &Modules, path: &[String], depth: usize) -> Option<(Names, String)> {
    // The longest front that is a module.
    let end = (0..=path.len()).rev().find(|&end| modules.contains_key(&path[..end]))?;
    let (module, rest) = path.split_at(end);
    let name = rest.first()?;
    let here = &modules[module];
    if let Some(from) = here.passes_on.get(name).filter(|_| depth < 8 && !here.defines.contains(name)) {
        let from: Names = from.iter().chain(&rest[1..]).cloned().collect();
        return definition(modules, &from, depth + 1);
    }
    Some((module.to_vec(), name.clone()))
}

fn arrows(modules: &Modules) -> BTreeMap<Names, BTreeSet<Names>> {
    let mut arrows = BTreeMap::new();
    for (from, module) in modules {
        let mut to = BTreeSet::new();
        for path in &module.names {
            let Some((file, name)) = definition(modules, path, 0) else { continue };
            let is_own_parent = from.starts_with(&file) && modules[&file].defines.contains(&name);
            if file != *from && !is_own_parent {
                to.insert(file);
            }
        }
        arrows.insert(from.clone(), to);
    }
    arrows
}

/// The strongly connected components (Tarjan).
fn components(arrows: &BTreeMap<Names, BTreeSet<Names>>) -> Vec<BTreeSet<Names>> {
    let mut graph = petgraph::graphmap::DiGraphMap::<usize, ()>::new();
    let numbers: BTreeMap<&Names, usize> = arrows.keys().zip(0..).collect();
    let names: Vec<&Names> = arrows.keys().collect();
    for (from, to) in arrows {
        graph.add_node(numbers[from]);
        for to in to {
            graph.add_edge(numbers[from], numbers[to], ());
        }
    }
    petgraph::algo::tarjan_scc(&graph)
        .into_iter()
        .map(|circle| circle.into_iter().map(|number| names[number].clone()).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circles among `files`, each its module's path and its text.
    fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let mut modules = Modules::new();
        for (path, text) in files {
            let path: Names = path.split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect();
            let mut reader = Reader { path: &path, module: Module::default() };
            reader.visit_file(&syn::parse_file(text).unwrap());
            let module = reader.module;
            modules.insert(path, module);
        }
        let circles = components(&arrows(&modules)).into_iter().filter(|circle| circle.len() > 1);
        circles.map(|circle| circle.iter().map(|names| names.join("::")).collect()).collect()
    }

    #[test]
    fn a_circle_is_found_through_names_that_the_root_passes_on() {
        let root = "mod a; mod b; pub use b::Thing;";
        let there = ("a", "use crate::Thing; pub struct Part;");
        assert_eq!(
            circles_of(&[("", root), there, ("b", "pub struct Thing(crate::a::Part);")]),
            [["a", "b"]]
        );
        assert!(circles_of(&[("", root), there, ("b", "pub struct Thing;")]).is_empty());
    }

    #[test]
    fn tests_do_not_count_nor_does_a_type_of_ones_parent() {
        let root = "mod a;";
        let tests = "#[cfg(test)] mod tests { use super::*; use crate::a::b::Part; }";
        let parent = format!("mod b; use b::Part; pub struct Whole(Part); {tests}");
        assert!(circles_of(&[("", root), ("a", &parent), ("a::b", "pub struct Part;")]).is_empty());
        let child = "use super::Whole; pub struct Part; impl Whole { fn grow(&self) {} }";
        assert!(circles_of(&[("", root), ("a", &parent), ("a::b", child)]).is_empty());
    }

    #[test]
    fn the_core_is_read_whole() {
        std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
        let found = circles().unwrap();
        assert_eq!(found.len(), CRATES.len());
        assert!(found.iter().all(|found| found.files > 10), "files are missed");
    }
}
