//! The shape of the core in figures: how many methods its widest types have, and how many of its fields are open to the
//! whole crate. Tests do not count.

use crate::files::is_for_tests;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{FnArg, Item, Type, Visibility};

/// The folders that are counted.
const FOLDERS: &[&str] = &["core/ip/src", "core/congestion/src", "core/tcp/src", "core/stack/src"];
/// Types that are shown: those with the most methods.
const SHOWN: usize = 12;

/// What is counted of one crate.
#[derive(Default)]
struct Shape {
    lines: usize,
    files: usize,
    /// Of each type its methods, those of traits and functions that take it by `&mut` included.
    methods: BTreeMap<String, usize>,
    open_fields: usize,
}

/// A table of figures.
pub fn table() -> Result<String, String> {
    let mut text =
        String::from("| crate | files | lines | fields open to the crate | methods of its widest types |\n");
    text.push_str("|---|---|---|---|---|\n");
    for folder in FOLDERS {
        let mut shape = Shape::default();
        let mut files = Vec::new();
        walk(Path::new(folder), &mut files)?;
        for file in files {
            let source = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            let syntax = syn::parse_file(&source).map_err(|error| format!("{}: {error}", file.display()))?;
            shape.files += 1;
            shape.lines += source.lines().count();
            shape.visit_file(&syntax);
        }
        let mut widest: Vec<(&String, &usize)> = shape.methods.iter().collect();
        widest.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
        let widest: Vec<String> =
            widest.iter().take(SHOWN).map(|(name, count)| format!("{name} {count}")).collect();
        let Shape { files, lines, open_fields, .. } = shape;
        let _ = writeln!(text, "| {folder} | {files} | {lines} | {open_fields} | {} |", widest.join(", "));
    }
    Ok(text)
}

/// The sources of a folder, those of tests left out.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if path.is_dir() {
            walk(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The last word of a type's path.
fn name_of(kind: &Type) -> Option<String> {
    match kind {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        Type::Reference(reference) if reference.mutability.is_some() => name_of(&reference.elem),
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Shape {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs[..],
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let methods = item.items.iter().filter(|item| matches!(item, syn::ImplItem::Fn(_))).count();
        if let Some(name) = name_of(&item.self_ty) {
            *self.methods.entry(name).or_default() += methods;
        }
        visit::visit_item_impl(self, item);
    }
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        for argument in &item.sig.inputs {
            if let FnArg::Typed(argument) = argument
                && let Type::Reference(reference) = &*argument.ty
                && reference.mutability.is_some()
                && let Some(name) = name_of(&reference.elem)
            {
                *self.methods.entry(name).or_default() += 1;
            }
        }
        visit::visit_item_fn(self, item);
    }
    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.open_fields += usize::from(matches!(field.vis, Visibility::Restricted(_)));
        visit::visit_field(self, field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_traits_and_functions_that_change_a_type_count() {
        let text = "struct Wide { pub(crate) a: u8, pub b: u8 } impl Wide { fn one(&self) {} }
            impl Clone for Wide { fn clone(&self) -> Wide { loop {} } } fn grow(wide: &mut Wide) {}
            #[cfg(test)] mod tests { impl Wide { fn two(&self) {} } } fn looks(wide: &Wide) {}";
        let mut shape = Shape::default();
        shape.visit_file(&syn::parse_file(text).unwrap());
        assert_eq!((shape.methods["Wide"], shape.open_fields), (3, 1));
    }
}
