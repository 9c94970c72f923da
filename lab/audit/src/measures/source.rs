//! Crates as syntax trees: modules without what is built for tests only, what a path names, and every function.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Generics, Item, Meta, Signature, Type, UseTree, Visibility};

/// The path of a module or of an item: the crate's name, as code writes it, then the names of modules.
pub type Names = Vec<String>;

/// A source file.
pub struct File {
    /// Its path from the root of the workspace.
    pub path: String,
    pub text: String,
    pub tokens: TokenStream,
    /// Lines of items that are built for tests only: first and last.
    pub tests: Vec<(usize, usize)>,
}

/// A module, in a file of its own or in a block.
pub struct Module {
    pub path: Names,
    /// Its file, by its place among [`Tree::files`].
    pub file: usize,
    /// Its items. Modules within it are modules of their own.
    pub items: Vec<Item>,
    children: BTreeSet<String>,
    defines: BTreeSet<String>,
    /// Names that a `use` brings in, and the paths that they stand for.
    uses: BTreeMap<String, Names>,
    globs: Vec<Names>,
}

/// All modules of some crates.
#[derive(Default)]
pub struct Tree {
    pub files: Vec<File>,
    pub modules: BTreeMap<Names, Module>,
    /// The folder of each crate, by the crate's name in code.
    pub folders: BTreeMap<String, String>,
}

/// A function, a method, or a method of a trait.
pub struct Function<'t> {
    pub module: &'t Module,
    /// The type or trait that it belongs to.
    pub owner: Option<Owner<'t>>,
    pub signature: &'t Signature,
    pub body: Option<&'t Block>,
}

/// What a method belongs to.
#[derive(Clone, Copy)]
pub enum Owner<'t> {
    /// `impl TYPE` and `impl TRAIT for TYPE`.
    Type(&'t Type, &'t Generics),
    Trait(&'t syn::ItemTrait),
}

impl Owner<'_> {
    fn name(self) -> String {
        match self {
            Owner::Type(of, _) => last_name(of).unwrap_or_else(|| "_".to_owned()),
            Owner::Trait(of) => of.ident.to_string(),
        }
    }
}

/// The last word of a type's path, without references.
pub fn last_name(of: &Type) -> Option<String> {
    match of {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        Type::Reference(reference) => last_name(&reference.elem),
        _ => None,
    }
}

impl Function<'_> {
    /// `Type::method`, or the function's name.
    pub fn name(&self) -> String {
        let name = &self.signature.ident;
        self.owner.map_or_else(|| name.to_string(), |owner| format!("{}::{name}", owner.name()))
    }
    /// The line of its `fn`.
    pub fn line(&self) -> usize {
        self.signature.fn_token.span.start().line
    }
}

/// Whether something is built for tests only: `cfg(test)`, or `cfg(all(…))` with `test` among what it asks for.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    fn asks_for_test(condition: &Meta) -> bool {
        match condition {
            Meta::Path(path) => path.is_ident("test") || path.is_ident("doctest"),
            Meta::List(list) if list.path.is_ident("all") => list
                .parse_args_with(syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated)
                .is_ok_and(|conditions| conditions.iter().any(asks_for_test)),
            _ => false,
        }
    }
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<Meta>().is_ok_and(|condition| asks_for_test(&condition))
    })
}

/// An item's own attributes.
fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name that an item defines.
fn defined(item: &Item) -> Option<&syn::Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}

/// The words of a path.
pub fn words(path: &syn::Path) -> Names {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// Names in the tokens of a macro: each chain of words with `::` between them.
pub fn paths_in(tokens: TokenStream) -> Vec<Names> {
    let (mut found, mut path, mut colons) = (Vec::new(), Names::new(), 0);
    for token in tokens {
        match token {
            TokenTree::Ident(word) if colons == 2 || path.is_empty() => path.push(word.to_string()),
            TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() => {
                colons += 1;
                continue;
            }
            other => {
                found.extend((!path.is_empty()).then(|| std::mem::take(&mut path)));
                match other {
                    TokenTree::Group(group) => found.extend(paths_in(group.stream())),
                    TokenTree::Ident(word) => path.push(word.to_string()),
                    _ => {}
                }
            }
        }
        colons = 0;
    }
    found.extend((!path.is_empty()).then_some(path));
    found
}

/// The thread-local statics that `thread_local!` makes, and the tokens of their types.
pub fn thread_locals(of: &syn::Macro) -> Vec<(String, TokenStream)> {
    let (mut found, mut tokens) = (Vec::new(), of.tokens.clone().into_iter());
    while of.path.is_ident("thread_local")
        && let Some(token) = tokens.next()
    {
        if matches!(&token, TokenTree::Ident(word) if word == "static")
            && let Some(TokenTree::Ident(name)) = tokens.next()
        {
            let is_end = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == '=');
            found.push((name.to_string(), tokens.by_ref().take_while(|token| !is_end(token)).collect()));
        }
    }
    found
}

impl Tree {
    /// The crates in `folders`, which are counted from `root`.
    pub fn read(root: &Path, folders: &[String]) -> Result<Tree, String> {
        let mut tree = Tree::default();
        for folder in folders {
            let place = root.join(folder);
            let manifest = read(&place.join("Cargo.toml"))?;
            let manifest: toml::Table =
                toml::from_str(&manifest).map_err(|error| format!("{folder}: {error}"))?;
            let name = manifest["package"]["name"].as_str().unwrap_or_default().replace('-', "_");
            tree.folders.insert(name.clone(), folder.clone());
            tree.read_file(root, &place.join("src/lib.rs"), vec![name], true)?;
        }
        Ok(tree)
    }
    fn read_file(&mut self, root: &Path, file: &Path, path: Names, owns_folder: bool) -> Result<(), String> {
        let text = read(file)?;
        let name = file.strip_prefix(root).unwrap_or(file).display().to_string();
        let is_root = owns_folder || file.file_stem().is_some_and(|stem| stem == "mod");
        let folder = file.parent().unwrap_or(root);
        let folder = if is_root { folder.to_owned() } else { file.with_extension("") };
        let depth = path.len();
        for (path, place) in self.add(path, &name, text)? {
            let child = path.last().expect("a module has a name");
            let place = match place {
                Some(place) => file.parent().unwrap_or(root).join(place),
                // Modules in blocks are folders on the way to those in files.
                None => {
                    let blocks: PathBuf = path[depth..path.len() - 1].iter().collect();
                    let folder = folder.join(blocks);
                    [folder.join(format!("{child}.rs")), folder.join(child).join("mod.rs")]
                        .into_iter()
                        .find(|place| place.exists())
                        .ok_or_else(|| format!("{name}: no file of its module {child}"))?
                }
            };
            self.read_file(root, &place, path, false)?;
        }
        Ok(())
    }
    /// Adds a file's module and those in its blocks; gives the modules in other files, with what `#[path]` says.
    fn add(&mut self, path: Names, file: &str, text: String) -> Result<Vec<(Names, Option<String>)>, String> {
        let tokens: TokenStream = text.parse().map_err(|error| format!("{file}: {error}"))?;
        let syntax: syn::File = syn::parse2(tokens.clone()).map_err(|error| format!("{file}: {error}"))?;
        self.files.push(File { path: file.to_owned(), text, tokens, tests: Vec::new() });
        let mut outside = Vec::new();
        self.add_module(path, syntax.items, &mut outside);
        Ok(outside)
    }
    fn add_module(&mut self, path: Names, mut items: Vec<Item>, outside: &mut Vec<(Names, Option<String>)>) {
        let file = self.files.len() - 1;
        drop_tests(&mut items, &mut self.files[file].tests);
        let mut module = Module {
            path,
            file,
            items: Vec::new(),
            children: BTreeSet::new(),
            defines: items.iter().filter_map(defined).map(ToString::to_string).collect(),
            uses: BTreeMap::new(),
            globs: Vec::new(),
        };
        for item in &mut items {
            match item {
                Item::Macro(item) => {
                    module.defines.extend(thread_locals(&item.mac).into_iter().map(|(name, _)| name))
                }
                Item::Mod(inner) => {
                    let below: Names = module.path.iter().cloned().chain([inner.ident.to_string()]).collect();
                    module.children.insert(inner.ident.to_string());
                    match inner.content.take() {
                        Some((_, items)) => self.add_module(below, items, outside),
                        None => outside.push((below, place_in(&inner.attrs))),
                    }
                }
                item => Uses(&mut module).visit_item(item),
            }
        }
        module.items = items;
        self.modules.insert(module.path.clone(), module);
    }

    /// The module in which what `path` names from within `from` is defined, with its name there and what follows it
    /// (variants, methods). Nothing for a module, for what is defined within a function, and for other people's crates.
    pub fn resolve<'t>(&'t self, from: &Module, path: &[String]) -> Option<(&'t Module, String, Names)> {
        self.resolve_within(from, path, 0)
    }
    fn resolve_within<'t>(
        &'t self,
        from: &Module,
        path: &[String],
        depth: usize,
    ) -> Option<(&'t Module, String, Names)> {
        let (first, rest) = path.split_first()?;
        let up = |levels| from.path.len().checked_sub(levels).map(|end| &from.path[..end]);
        let (at, rest) = match first.as_str() {
            "crate" | "$crate" => (&from.path[..1], rest),
            "self" => (&from.path[..], rest),
            "super" => {
                let supers = path.iter().take_while(|word| *word == "super").count();
                (up(supers)?, &path[supers..])
            }
            _ => match self.step(self.modules.get(&from.path)?, path, depth) {
                Some(found) => return Some(found),
                None if self.modules.contains_key(std::slice::from_ref(first)) => {
                    (std::slice::from_ref(first), rest)
                }
                None => return None,
            },
        };
        self.step(self.modules.get(at)?, rest, depth)
    }
    /// What `path` names, counted from `at`.
    fn step<'t>(
        &'t self,
        at: &'t Module,
        path: &[String],
        depth: usize,
    ) -> Option<(&'t Module, String, Names)> {
        let (name, rest) = path.split_first()?;
        if depth > 12 {
            return None;
        }
        if at.defines.contains(name) {
            return Some((at, name.clone(), rest.to_vec()));
        }
        if at.children.contains(name) {
            let below: Names = at.path.iter().cloned().chain([name.clone()]).collect();
            return self.step(self.modules.get(&below)?, rest, depth + 1);
        }
        if let Some(target) = at.uses.get(name) {
            let target: Names = target.iter().chain(rest).cloned().collect();
            // `use x::x` of a name that only a foreign crate has would look for itself.
            return (target != path).then(|| self.resolve_within(at, &target, depth + 1)).flatten();
        }
        at.globs.iter().find_map(|glob| {
            let target: Names = glob.iter().chain(path).cloned().collect();
            self.resolve_within(at, &target, depth + 1)
        })
    }

    /// Every function of a crate, those within functions included.
    pub fn functions<'t>(&'t self, folder: &str) -> Vec<Function<'t>> {
        let mut found = Vec::new();
        for module in self.modules_of(folder) {
            let mut finder = Finder { module, owner: None, found: &mut found };
            module.items.iter().for_each(|item| finder.visit_item(item));
        }
        found
    }
    pub fn modules_of<'t>(&'t self, folder: &str) -> impl Iterator<Item = &'t Module> {
        let name = self.folders.iter().find(|(_, of)| *of == folder).map(|(name, _)| name.clone());
        self.modules.values().filter(move |module| module.path.first() == name.as_ref())
    }
    /// `file:line`.
    pub fn place(&self, module: &Module, line: usize) -> String {
        format!("{}:{line}", self.files[module.file].path)
    }
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// What `#[path = "…"]` says.
fn place_in(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// Removes what is built for tests only, and notes its lines.
fn drop_tests(items: &mut Vec<Item>, lines: &mut Vec<(usize, usize)>) {
    let mut note = |is_for_tests: bool, span: proc_macro2::Span| {
        if is_for_tests {
            lines.push((span.start().line, span.end().line));
        }
        !is_for_tests
    };
    items.retain(|item| !is_for_tests(attributes(item)) || note(true, item.span()));
    for item in items {
        match item {
            Item::Impl(item) => item.items.retain(|item| {
                let attributes = match item {
                    syn::ImplItem::Fn(item) => &item.attrs[..],
                    syn::ImplItem::Const(item) => &item.attrs,
                    _ => &[],
                };
                !is_for_tests(attributes) || note(true, item.span())
            }),
            Item::Struct(syn::ItemStruct { fields: syn::Fields::Named(fields), .. }) => {
                let kept = fields
                    .named
                    .iter()
                    .filter(|field| !is_for_tests(&field.attrs) || note(true, field.span()));
                fields.named = kept.cloned().collect();
            }
            _ => {}
        }
    }
}

fn take_use(tree: &UseTree, before: &[String], module: &mut Module) {
    let with = |word: &syn::Ident| before.iter().cloned().chain([word.to_string()]).collect::<Names>();
    let mut take = |mut path: Names, name: &syn::Ident| {
        let mut name = name.to_string();
        if path.len() > 1 && path.last().is_some_and(|word| word == "self") {
            path.pop();
            name = if name == "self" { path.last().cloned().unwrap_or_default() } else { name };
        }
        module.uses.insert(name, path);
    };
    match tree {
        UseTree::Path(path) => take_use(&path.tree, &with(&path.ident), module),
        UseTree::Group(group) => group.items.iter().for_each(|tree| take_use(tree, before, module)),
        UseTree::Name(name) => take(with(&name.ident), &name.ident),
        UseTree::Rename(name) => take(with(&name.ident), &name.rename),
        UseTree::Glob(_) => module.globs.push(before.to_vec()),
    }
}

/// Takes in every `use`, those within functions as well.
struct Uses<'a>(&'a mut Module);

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        take_use(&item.tree, &[], self.0);
    }
}

/// Whether others than the module itself may name something.
pub fn is_open(visibility: &Visibility) -> bool {
    match visibility {
        Visibility::Inherited => false,
        // `pub(self)` is private.
        Visibility::Restricted(within) => !within.path.is_ident("self"),
        Visibility::Public(_) => true,
    }
}

struct Finder<'a, 't> {
    module: &'t Module,
    owner: Option<Owner<'t>>,
    found: &'a mut Vec<Function<'t>>,
}

impl<'t> Finder<'_, 't> {
    fn take(&mut self, signature: &'t Signature, body: Option<&'t Block>) {
        self.found.push(Function { module: self.module, owner: self.owner, signature, body });
        let owner = self.owner.take();
        body.into_iter().for_each(|body| self.visit_block(body));
        self.owner = owner;
    }
}

impl<'t> Visit<'t> for Finder<'_, 't> {
    fn visit_item_fn(&mut self, item: &'t syn::ItemFn) {
        self.take(&item.sig, Some(&item.block));
    }
    fn visit_impl_item_fn(&mut self, item: &'t syn::ImplItemFn) {
        self.take(&item.sig, Some(&item.block));
    }
    fn visit_trait_item_fn(&mut self, item: &'t syn::TraitItemFn) {
        self.take(&item.sig, item.default.as_ref());
    }
    fn visit_item_impl(&mut self, item: &'t syn::ItemImpl) {
        let before = self.owner.replace(Owner::Type(&item.self_ty, &item.generics));
        visit::visit_item_impl(self, item);
        self.owner = before;
    }
    fn visit_item_trait(&mut self, item: &'t syn::ItemTrait) {
        let before = self.owner.replace(Owner::Trait(item));
        visit::visit_item_trait(self, item);
        self.owner = before;
    }
}

/// A crate of `files`, each a module's path from the crate's root and its text.
#[cfg(test)]
pub fn tree_of(folder: &str, files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::default();
    add_crate(&mut tree, folder, files);
    tree
}

#[cfg(test)]
pub fn add_crate(tree: &mut Tree, folder: &str, files: &[(&str, &str)]) {
    let name = folder.replace("core/", "inhost_").replace("host/", "inhost_");
    tree.folders.insert(name.clone(), folder.to_owned());
    for (path, text) in files {
        let words = path.split("::").filter(|word| !word.is_empty()).map(str::to_owned);
        let path: Names = [name.clone()].into_iter().chain(words).collect();
        let file = format!("{folder}/src/{}.rs", path[1..].join("/"));
        tree.add(path, &file, (*text).to_owned()).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn defined_in(tree: &Tree, from: &[&str], path: &str) -> Option<String> {
        let words = |path: &[&str]| path.iter().map(|word| (*word).to_owned()).collect::<Names>();
        let path = words(&path.split("::").collect::<Vec<_>>());
        let (at, name, rest) = tree.resolve(&tree.modules[&words(from)], &path)?;
        Some([at.path.join("::"), name].into_iter().chain(rest).collect::<Vec<_>>().join("::"))
    }

    #[test]
    fn a_name_is_followed_to_its_definition() {
        let mut tree = tree_of(
            "core/low",
            &[
                ("", "mod a; pub use a::{Thing as Other, inner::*};"),
                ("a", "pub struct Thing; pub mod inner { pub fn deep() {} }"),
            ],
        );
        let high = "use inhost_low::Other; use super::*; fn f() { use inhost_low as low; }";
        add_crate(&mut tree, "core/high", &[("", "mod b; enum Kind { One }"), ("b", high)]);
        let from_b = |path| defined_in(&tree, &["inhost_high", "b"], path);
        assert_eq!(from_b("Other").unwrap(), "inhost_low::a::Thing");
        assert_eq!(from_b("Kind::One").unwrap(), "inhost_high::Kind::One");
        assert_eq!(from_b("crate::b::f").unwrap(), "inhost_high::b::f");
        assert_eq!(from_b("low::deep").unwrap(), "inhost_low::a::inner::deep");
        assert_eq!(from_b("std::fmt::Debug"), None);
        assert_eq!(from_b("b"), None);
    }
    #[test]
    fn what_is_built_for_tests_is_left_out() {
        let text = "#[cfg(all(test, unix))]\nmod a {}\nstruct S {\n #[cfg(test)]\n x: u8,\n y: u8 }
impl S {\n #[cfg(test)]\n fn f() {}\n #[cfg(any(test, unix))]\n fn g() {} }";
        let tree = tree_of("core/some", &[("", text)]);
        let names: Vec<String> = tree.functions("core/some").iter().map(Function::name).collect();
        assert_eq!(names, ["S::g"]);
        assert_eq!(tree.files[0].tests, [(1, 2), (4, 5), (8, 9)]);
        assert_eq!(tree.modules.len(), 1);
    }
    #[test]
    fn words_in_macros_are_paths() {
        let tokens = "a::b(&mut c.d, E::<F> { g: 1 })".parse().unwrap();
        assert_eq!(
            paths_in(tokens).iter().map(|path| path.join("::")).collect::<Vec<_>>().join(" "),
            "a::b mut c d E F g"
        );
    }
}
