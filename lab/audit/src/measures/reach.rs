//! Which functions reach which types. This works from syntax trees alone; no types are inferred.
//!
//! A type reaches another that
//! - stands in one of its fields, by value, by reference, or within generic arguments, tuples, slices and trait objects,
//! - one of its methods lends: the method takes `self`, and what it returns is a reference or has a lifetime,
//! - it stands for, as a type alias or as an associated type of one of its implementations (`Deref::Target`),
//! - implements it, if it is a trait of the type's own crate: a function that holds the trait may hold each of these types.
//!
//! A function reaches what its `self`, its parameters, its bounds and its return type reach, and besides these what its
//! body creates or calls for: the types of literals (`Pass { … }`), of `let`, of the parameters of closures, of `static`s
//! that it names, and the return types of functions that it calls by a path. A closure belongs to the function around it.
//!
//! The approximation errs both ways. A value behind `dyn Any`, a key or a pointer cast is not seen, nor is a trait of
//! another crate followed to the types that implement it. And who reaches a type need not use it: the measure is what a
//! reader must expect of a function.

use super::source::{Function, Module, Owner, Tree, paths_in, thread_locals, words};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Generics, ImplItem, Item, ReturnType, Type};

/// Types by their whole paths, `inhost_tcp::connection::Connection`.
pub type Types = BTreeSet<String>;

/// What each type, and each function by what it returns, reaches in one step.
pub struct Graph<'t> {
    tree: &'t Tree,
    types: BTreeMap<String, Types>,
    /// The same the other way round.
    holders: BTreeMap<String, Types>,
    /// Types that have a lifetime.
    borrowers: Types,
    /// What functions return, and of what type statics are.
    results: BTreeMap<String, Types>,
}

impl<'t> Graph<'t> {
    pub fn of(tree: &'t Tree) -> Graph<'t> {
        let (types, holders, results) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut graph = Graph { tree, types, holders, borrowers: Types::new(), results };
        for module in tree.modules.values() {
            module.items.iter().for_each(|item| graph.add_type(module, item));
        }
        // Methods come after all types: whether a type has a lifetime is known by then.
        for folder in tree.folders.values() {
            tree.functions(folder).iter().for_each(|function| graph.add_function(function));
        }
        for (holder, held) in &graph.types {
            for name in held {
                graph.holders.entry(name.clone()).or_default().insert(holder.clone());
            }
        }
        graph
    }
    fn add_type(&mut self, module: &Module, item: &Item) {
        let add = |graph: &mut Self, name: &syn::Ident, generics: &Generics, found: Types| {
            let name = path_of(module, &name.to_string());
            if generics.lifetimes().next().is_some() {
                graph.borrowers.insert(name.clone());
            }
            graph.types.entry(name).or_default().extend(found);
        };
        let fields = |visit: &dyn Fn(&mut Mentions)| {
            let mut mentions = Mentions { gives_arguments: true, ..Mentions::new(self.tree, module, None) };
            visit(&mut mentions);
            mentions.found
        };
        match item {
            Item::Struct(item) => {
                let found = fields(&|mentions| mentions.visit_item_struct(item));
                add(self, &item.ident, &item.generics, found);
            }
            Item::Enum(item) => {
                let found = fields(&|mentions| mentions.visit_item_enum(item));
                add(self, &item.ident, &item.generics, found);
            }
            Item::Union(item) => {
                let found = fields(&|mentions| mentions.visit_item_union(item));
                add(self, &item.ident, &item.generics, found);
            }
            Item::Type(item) => {
                let found = fields(&|mentions| mentions.visit_type(&item.ty));
                add(self, &item.ident, &item.generics, found);
            }
            Item::Impl(item) => {
                let own = fields(&|mentions| mentions.visit_type(&item.self_ty));
                for of in &item.items {
                    if let ImplItem::Type(of) = of {
                        let found = fields(&|mentions| mentions.visit_type(&of.ty));
                        own.iter()
                            .for_each(|own| self.types.entry(own.clone()).or_default().extend(found.clone()));
                    }
                }
                let Some((_, name, _)) = &item.trait_ else { return };
                if let Some((at, name, _)) = self.tree.resolve(module, &words(name))
                    && at.path[0] == module.path[0]
                {
                    self.types.entry(path_of(at, &name)).or_default().extend(own);
                }
            }
            Item::Static(item) => {
                let found = fields(&|mentions| mentions.visit_type(&item.ty));
                self.results.insert(path_of(module, &item.ident.to_string()), found);
            }
            Item::Macro(item) => {
                for (name, of) in thread_locals(&item.mac) {
                    let named = paths_in(of).into_iter().filter_map(|path| self.tree.resolve(module, &path));
                    let found = named.map(|(at, name, _)| path_of(at, &name)).collect();
                    self.results.insert(path_of(module, &name), found);
                }
            }
            _ => {}
        }
    }
    fn add_function(&mut self, function: &Function<'t>) {
        let ReturnType::Type(_, returned) = &function.signature.output else { return };
        let mut mentions = Mentions::new(self.tree, function.module, function.owner);
        mentions.visit_type(returned);
        let (found, mut lends) = (mentions.found, mentions.lends);
        lends |= found.iter().any(|name| self.borrowers.contains(name));
        let owners = function.owner.map_or_else(Types::new, |owner| self.owner(function.module, owner));
        let name = function.signature.ident.to_string();
        if owners.is_empty() {
            self.results.entry(path_of(function.module, &name)).or_default().extend(found.clone());
        }
        for owner in owners {
            self.results.entry(format!("{owner}::{name}")).or_default().extend(found.clone());
            if lends && function.signature.receiver().is_some() {
                self.types.entry(owner).or_default().extend(found.clone());
            }
        }
    }
    /// The type or trait that a method belongs to; several where the type is a tuple.
    fn owner(&self, module: &Module, owner: Owner<'_>) -> Types {
        match owner {
            Owner::Type(of, _) => {
                let mut mentions = Mentions::new(self.tree, module, None);
                mentions.visit_type(of);
                mentions.found
            }
            Owner::Trait(of) => Types::from([path_of(module, &of.ident.to_string())]),
        }
    }

    /// What a function names itself: by `self`, parameters, bounds and its return type, and by its body.
    pub fn named_by(&self, function: &Function<'_>) -> Types {
        let mut types = self.given_to(function);
        let mut mentions = Mentions::new(self.tree, function.module, function.owner);
        mentions.visit_return_type(&function.signature.output);
        types.extend(mentions.found);
        if let Some(body) = function.body {
            let mut uses = Uses { graph: self, function, found: Types::new() };
            uses.visit_block(body);
            types.extend(uses.found);
        }
        types
    }
    /// What a function is given: by `self`, parameters and bounds.
    pub fn given_to(&self, function: &Function<'_>) -> Types {
        let mut mentions = Mentions::new(self.tree, function.module, function.owner);
        mentions.visit_generics(&function.signature.generics);
        for input in &function.signature.inputs {
            mentions.visit_fn_arg(input);
        }
        let mut types = mentions.found;
        if let (Some(owner), Some(_)) = (function.owner, function.signature.receiver()) {
            types.extend(self.owner(function.module, owner));
            if let Owner::Type(_, generics) = owner {
                let mut mentions = Mentions::new(self.tree, function.module, None);
                mentions.visit_generics(generics);
                types.extend(mentions.found);
            }
        }
        types
    }
    /// The type or trait that a function is a method of.
    pub fn owner_of(&self, function: &Function<'_>) -> Types {
        function.owner.map_or_else(Types::new, |owner| self.owner(function.module, owner))
    }
    /// The types that stand in `of`.
    pub fn mentioned(&self, module: &Module, of: &Type) -> Types {
        let mut mentions = Mentions::new(self.tree, module, None);
        mentions.visit_type(of);
        mentions.found
    }
    /// All types that `root` reaches, itself included.
    pub fn reached(&self, root: &str) -> Types {
        let (mut reached, mut next) = (Types::new(), vec![root]);
        while let Some(name) = next.pop() {
            if reached.insert(name.to_owned()) {
                next.extend(self.types.get(name).into_iter().flatten().map(String::as_str));
            }
        }
        reached
    }
    /// All types that reach `root`, itself included.
    pub fn reaching(&self, root: &str) -> Types {
        self.reaching_outside(root, &Types::new())
    }
    /// All types that reach `root` without passing through one of `ends`.
    pub fn reaching_outside(&self, root: &str, ends: &Types) -> Types {
        let (mut reaching, mut next) = (Types::new(), vec![root]);
        while let Some(name) = next.pop() {
            if (name == root || !ends.contains(name)) && reaching.insert(name.to_owned()) {
                next.extend(self.holders.get(name).into_iter().flatten().map(String::as_str));
            }
        }
        reaching
    }
    /// The whole path of the type `name` of the crate in `folder`.
    pub fn find(&self, folder: &str, name: &str) -> Result<String, String> {
        let found = self.tree.modules_of(folder).map(|module| path_of(module, name));
        let mut found = found.filter(|path| self.types.contains_key(path));
        found.next().ok_or_else(|| {
            format!("{folder}: no type {name}; say in lab/audit/src/measures what it is called now")
        })
    }
    /// The types of a struct's fields, by the fields' names.
    pub fn fields(&self, folder: &str, name: &str) -> Result<BTreeMap<String, Types>, String> {
        for module in self.tree.modules_of(folder) {
            for item in &module.items {
                if let Item::Struct(item) = item
                    && item.ident == name
                {
                    let of = |field: &syn::Field| {
                        let mut mentions = Mentions::new(self.tree, module, None);
                        mentions.visit_type(&field.ty);
                        (field.ident.as_ref().map(ToString::to_string).unwrap_or_default(), mentions.found)
                    };
                    return Ok(item.fields.iter().map(of).collect());
                }
            }
        }
        Err(format!("{folder}: no struct {name}; say in lab/audit/src/measures what it is called now"))
    }
}

pub fn path_of(module: &Module, name: &str) -> String {
    format!("{}::{name}", module.path.join("::"))
}

/// The types that a piece of syntax names.
struct Mentions<'a> {
    tree: &'a Tree,
    module: &'a Module,
    owner: Option<Owner<'a>>,
    found: Types,
    /// Whether there was a reference or a lifetime.
    lends: bool,
    /// What a callback takes is given to it: a field with one reaches nothing by that.
    gives_arguments: bool,
}

impl<'a> Mentions<'a> {
    fn new(tree: &'a Tree, module: &'a Module, owner: Option<Owner<'a>>) -> Self {
        Mentions { tree, module, owner, found: Types::new(), lends: false, gives_arguments: false }
    }
    fn take_owner(&mut self) {
        match self.owner.take() {
            Some(Owner::Type(of, _)) => self.visit_type(of),
            Some(Owner::Trait(of)) => {
                self.found.insert(path_of(self.module, &of.ident.to_string()));
            }
            None => {}
        }
    }
}

impl<'ast> Visit<'ast> for Mentions<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.first().is_some_and(|first| first.ident == "Self") {
            let owner = self.owner;
            self.take_owner();
            self.owner = owner;
        } else if let Some((at, name, _)) = self.tree.resolve(self.module, &words(path)) {
            self.found.insert(path_of(at, &name));
        }
        visit::visit_path(self, path);
    }
    fn visit_lifetime(&mut self, lifetime: &'ast syn::Lifetime) {
        self.lends |= lifetime.ident != "static";
    }
    fn visit_type_reference(&mut self, reference: &'ast syn::TypeReference) {
        self.lends = true;
        visit::visit_type_reference(self, reference);
    }
    fn visit_type_bare_fn(&mut self, function: &'ast syn::TypeBareFn) {
        if !self.gives_arguments {
            function.inputs.iter().for_each(|input| self.visit_bare_fn_arg(input));
        }
        self.visit_return_type(&function.output);
    }
    fn visit_parenthesized_generic_arguments(&mut self, arguments: &'ast syn::ParenthesizedGenericArguments) {
        if !self.gives_arguments {
            arguments.inputs.iter().for_each(|input| self.visit_type(input));
        }
        self.visit_return_type(&arguments.output);
    }
    // Conditions and derives are not types.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
    fn visit_expr(&mut self, _: &'ast syn::Expr) {}
}

/// What a body creates, and what it calls for by a path.
struct Uses<'a, 't> {
    graph: &'a Graph<'t>,
    function: &'a Function<'a>,
    found: Types,
}

impl Uses<'_, '_> {
    fn take(&mut self, path: &[String]) {
        let (tree, module) = (self.graph.tree, self.function.module);
        let owners = match (path.first(), self.function.owner) {
            (Some(first), Some(owner)) if first == "Self" => self.graph.owner(module, owner),
            _ => match tree.resolve(module, path) {
                Some((at, name, rest)) => {
                    let name = path_of(at, &name);
                    let owner = Types::from([name.clone()]);
                    if rest.is_empty() {
                        self.found.extend(self.graph.results.get(&name).into_iter().flatten().cloned());
                        self.found.extend(self.graph.types.contains_key(&name).then_some(name));
                        return;
                    }
                    owner
                }
                None => return,
            },
        };
        let Some(last) = path.last() else { return };
        for owner in owners {
            let results = self.graph.results.get(&format!("{owner}::{last}"));
            self.found.extend(results.into_iter().flatten().cloned());
            if path.len() == 1 {
                self.found.insert(owner);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Uses<'_, '_> {
    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        self.take(&words(&path.path));
        visit::visit_expr_path(self, path);
    }
    fn visit_expr_struct(&mut self, literal: &'ast syn::ExprStruct) {
        self.take(&words(&literal.path));
        visit::visit_expr_struct(self, literal);
    }
    fn visit_type(&mut self, of: &'ast Type) {
        let mut mentions = Mentions::new(self.graph.tree, self.function.module, self.function.owner);
        mentions.visit_type(of);
        self.found.extend(mentions.found);
    }
    fn visit_macro(&mut self, of: &'ast syn::Macro) {
        paths_in(of.tokens.clone()).iter().for_each(|path| self.take(path));
    }
    // A function within is a function of its own.
    fn visit_item_fn(&mut self, _: &'ast syn::ItemFn) {}
    fn visit_item_impl(&mut self, _: &'ast syn::ItemImpl) {}
}

#[cfg(test)]
mod tests {
    use super::super::source::{add_crate, tree_of};
    use super::*;

    /// The functions of `source` that reach its type `Root`.
    fn reach(source: &str) -> Vec<String> {
        reach_in(&tree_of("core/some", &[("", &format!("struct Root; {source}"))]), "core/some")
    }
    fn reach_in(tree: &Tree, folder: &str) -> Vec<String> {
        let graph = Graph::of(tree);
        let reaching = graph.reaching(&graph.find("core/some", "Root").unwrap());
        let functions = tree.functions(folder);
        let reach = functions.iter().filter(|function| !graph.named_by(function).is_disjoint(&reaching));
        reach.map(Function::name).collect()
    }

    #[test]
    fn by_self_parameters_and_return_types() {
        let found = reach(
            "impl Root { fn method(&self) {} fn consume(self) {} fn new() -> Self { loop {} } fn constant() -> u8 { 0 } }
             impl Clone for Root { fn clone(&self) -> Root { Root } }
             fn given(a: u8, root: Root) {} fn lent(root: &mut Root) {} fn gives() -> Root { loop {} } fn other(a: u8) {}
             fn boxed(root: Box<Root>) {} fn maybe(root: Option<&mut Root>) {} fn tuple(of: (u8, &Root)) {}
             fn slice(of: &[Root]) {} fn callback(f: impl FnOnce(&mut Root)) {} fn bound<F>(f: F) where F: Fn(&Root) {}",
        );
        let all = "Root::method Root::consume Root::new Root::clone given lent gives boxed maybe tuple slice callback bound";
        assert_eq!(found.join(" "), all);
    }
    #[test]
    fn by_views_and_views_of_views() {
        let found = reach(
            "struct View<'a> { root: &'a mut Root } struct Outer<'a>(u8, View<'a>); enum Either<'a> { No, Yes { of: Outer<'a> } }
             impl View<'_> { fn a(&self) {} } impl<'a> Outer<'a> { fn b(self) {} } fn c(of: &Either<'_>) {}
             type Alias<'a> = Option<Outer<'a>>; fn d(of: Alias<'_>) {} struct Else { f: fn(&Root) } fn none(of: &Else) {}",
        );
        assert_eq!(found.join(" "), "View::a Outer::b c d");
    }
    #[test]
    fn by_getters_that_lend_it_and_not_by_those_that_make_it() {
        let found = reach(
            "struct Table { rows: Vec<u8> } impl Table { fn get(&mut self) -> Option<&mut Root> { None } }
             struct Maker; impl Maker { fn make(&self) -> Root { Root } fn rest(&self) {} }
             struct Guard; impl Deref for Guard { type Target = Root; fn deref(&self) -> &Self::Target { loop {} } }
             struct View<'a>(&'a Root); struct Far; impl Far { fn view(&self) -> View { loop {} } }
             fn a(of: &Table) {} fn b(of: &Guard) {} fn c(of: &Far) {} fn d(of: &Maker) {}",
        );
        assert_eq!(found.join(" "), "Table::get Maker::make Guard::deref Far::view a b c");
    }
    #[test]
    fn by_traits_of_the_same_crate() {
        let found = reach(
            "trait Both { fn half(&self) {} } impl Both for Root {} trait Lends { fn lend(&self) -> &Root; } impl Clone for Root {}
             fn a(of: &mut dyn Both) {} fn b<T: Both>(of: &T) {} fn c(of: impl Lends) {} fn d(of: impl Clone) {}
             struct Generic<T: Both>(T); impl<T: Both> Generic<T> { fn e(&self) {} }",
        );
        assert_eq!(found.join(" "), "Both::half Lends::lend a b c Generic::e");
    }
    #[test]
    fn by_what_a_body_creates_or_calls_for() {
        let found = reach(
            "struct View<'a> { root: &'a Root } thread_local! { static HERE: Option<Root> = const { None }; } static THERE: Root = Root;
             impl Root { fn current() -> Root { Root } } fn make() -> Root { Root }
             fn a() { let made = make(); } fn b() { Root::current().go(); } fn c() { View { root }.go(); }
             fn d() { with(|root: &mut Root| root.go()); } fn e() { assert!(make().is_fine()); } fn f() { HERE.with(go); }
             fn g() { go(&THERE); } fn h() { let made: Option<Root> = go(); } fn i() { go(); }
             fn j() { fn inner(root: &Root) {} }",
        );
        assert_eq!(found.join(" "), "Root::current make a b c d e f g h inner");
    }
    #[test]
    fn through_other_crates_and_by_the_right_one_of_two_names() {
        let mut tree =
            tree_of("core/some", &[("", "mod a; pub use a::Root as Trunk;"), ("a", "pub struct Root;")]);
        let text = "use inhost_some::Trunk; struct Root; mod m; fn a(of: &Trunk) {} fn b(of: &Root) {} fn c(of: m::Holder) {}";
        add_crate(
            &mut tree,
            "core/upper",
            &[("", text), ("m", "pub struct Holder(super::Trunk); pub struct Not(super::Root);")],
        );
        assert_eq!(reach_in(&tree, "core/upper"), ["a", "c"]);
    }
    #[test]
    fn a_root_that_is_gone_is_an_error() {
        let tree = tree_of("core/some", &[("", "struct Root;")]);
        assert!(Graph::of(&tree).find("core/some", "Stem").unwrap_err().contains("no type Stem"));
    }
}
