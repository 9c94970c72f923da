//! Long functions, functions with many parameters, and functions that syntax trees do not show.
//!
//! A function is long with more than 80 lines from its `fn` to its last brace, counted as [`super::lines`] counts. It has
//! many parameters with more than six; `self` does not count, and a tuple counts by its parts, at any depth, behind a
//! reference and behind a type alias.
//!
//! What a macro makes is not seen by the other measures, so that the words `fn`, `struct`, `enum` and `union` in macros
//! are a measure of their own, together with each `include!`.

use super::source::{Function, Module, Tree, words};
use super::{Behind, Measure, lines};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::{FnArg, Item, Type};

/// The folders that are counted, each as a whole.
const FOLDERS: &[&str] = &["core", "host", "services"];
const MOST_LINES: usize = 80;
const MOST_PARAMETERS: usize = 6;

pub fn measures(tree: &Tree) -> Vec<Measure> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let within = format!("{folder}/");
        let (mut long, mut wide, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
        for crate_folder in tree.folders.values().filter(|of| of.starts_with(&within)) {
            let mut code = BTreeMap::new();
            for function in tree.functions(crate_folder) {
                let behind =
                    |count: usize| (count, Behind::function(tree, &function).with(&count.to_string()));
                long.extend(
                    Some(length(tree, &function, &mut code)).filter(|&count| count > MOST_LINES).map(behind),
                );
                wide.extend(
                    Some(parameters(tree, &function)).filter(|&count| count > MOST_PARAMETERS).map(behind),
                );
            }
            for module in tree.modules_of(crate_folder) {
                for item in &module.items {
                    if let Item::Macro(item) = item {
                        let line = item.mac.bang_token.span.start().line;
                        let file = item.mac.path.is_ident("include").then(|| ("include!".to_owned(), line));
                        let names = definitions(item.mac.tokens.clone()).into_iter().chain(file);
                        hidden.extend(
                            names.map(|(name, line)| (0, Behind::new(name, tree.place(module, line)))),
                        );
                    }
                }
            }
        }
        let mut add = |kind, name: &str, mut of: Vec<(usize, Behind)>, goal| {
            of.sort_by_key(|&(count, _)| std::cmp::Reverse(count));
            let behind = of.into_iter().map(|(_, behind)| behind).collect();
            found.push(Measure { goal, ..Measure::of(kind, format!("{name} in {folder}"), behind) });
        };
        add("functions", "over 80 lines", long, None);
        add("functions", "over 6 parameters", wide, None);
        add("functions", "or types made by macros", hidden, None);
    }
    found
}

/// The lines of code of a function; `code` keeps those of each file.
fn length(tree: &Tree, function: &Function<'_>, code: &mut BTreeMap<usize, BTreeSet<usize>>) -> usize {
    let Some(body) = function.body else { return 0 };
    let span = function.line()..=body.brace_token.span.close().end().line;
    if span.clone().count() <= MOST_LINES {
        return 0;
    }
    let file = function.module.file;
    let code = code.entry(file).or_insert_with(|| lines::code(&tree.files[file]));
    code.range(span).count()
}

fn parameters(tree: &Tree, function: &Function<'_>) -> usize {
    let inputs = function.signature.inputs.iter();
    inputs
        .map(|input| match input {
            FnArg::Receiver(_) => 0,
            FnArg::Typed(input) => parts_of(tree, function.module, &input.ty),
        })
        .sum()
}

/// How many values a parameter is: a tuple is its parts.
fn parts_of(tree: &Tree, module: &Module, of: &Type) -> usize {
    match of {
        Type::Tuple(tuple) => tuple.elems.iter().map(|part| parts_of(tree, module, part)).sum(),
        Type::Reference(reference) => parts_of(tree, module, &reference.elem),
        Type::Paren(of) => parts_of(tree, module, &of.elem),
        Type::Path(path) => {
            let alias = tree.resolve(module, &words(&path.path)).and_then(|(at, name, _)| {
                let mut items = at.items.iter();
                items.find_map(|item| match item {
                    Item::Type(item) if item.ident == name => Some(parts_of(tree, at, &item.ty)),
                    _ => None,
                })
            });
            alias.unwrap_or(1)
        }
        _ => 1,
    }
}

/// What the tokens of a macro define, with lines.
pub fn definitions(tokens: TokenStream) -> Vec<(String, usize)> {
    let (mut found, mut keyword) = (Vec::new(), None);
    for token in tokens {
        let before = keyword.take();
        match token {
            TokenTree::Group(group) => found.extend(definitions(group.stream())),
            TokenTree::Ident(word) => match before {
                Some(keyword) => found.push((format!("{keyword} {word}"), word.span().start().line)),
                None => keyword = ["fn", "struct", "enum", "union"].into_iter().find(|known| word == known),
            },
            // `fn $name`
            TokenTree::Punct(mark) if mark.as_char() == '$' => keyword = before,
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::source::tree_of;
    use super::*;

    fn names(source: &str) -> Vec<(String, Vec<String>)> {
        let tree = tree_of("core/some", &[("", source)]);
        let found = measures(&tree).into_iter().filter(|measure| measure.value > 0);
        found.map(|of| (of.name, of.behind.into_iter().map(|behind| behind.what).collect())).collect()
    }

    #[test]
    fn a_long_function_is_found_and_comments_do_not_lengthen_it() {
        let of = |line: &str, count: usize| format!("fn long() {{\n{}}}", line.repeat(count));
        assert_eq!(
            names(&of("call();\n", 79))[..],
            [("over 80 lines in core".to_owned(), vec!["long: 81".to_owned()])]
        );
        assert!(names(&of("call();\n", 78)).is_empty());
        assert!(names(&of("// Nothing.\n\n", 79)).is_empty());
    }
    #[test]
    fn tuples_count_by_their_parts() {
        let wide = |source: &str| names(source).pop().map(|(_, names)| names);
        assert_eq!(
            wide("struct A; impl A { fn f(&self, a: u8, b: u8, c: u8, d: u8, e: u8, g: u8) {} }"),
            None
        );
        assert_eq!(
            wide("fn f((a, b): (u8, (u8, u8)), c: &(u8, u8), d: u8, e: u8) {}"),
            Some(vec!["f: 7".to_owned()])
        );
        assert_eq!(wide("type P = (u8, u8, u8); fn f(a: P, b: &P, c: u8) {}"), Some(vec!["f: 7".to_owned()]));
        assert_eq!(wide("type P = (u8, u8, u8); fn f(a: P, b: &P) {}"), None);
    }
    #[test]
    fn what_a_macro_makes_is_found() {
        let found =
            names("macro_rules! m { ($n:ident) => { struct $n; impl $n { fn f(&self) {} } } } m! { A }");
        assert_eq!(
            found,
            [("or types made by macros in core".to_owned(), vec!["struct n".to_owned(), "fn f".to_owned()])]
        );
    }
}
