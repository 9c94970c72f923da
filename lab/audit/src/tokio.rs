//! tokio's sockets beside ours: each public method has the same signature here, or stands among the differences with a reason.
//!
//! tokio's source is that of the lock file, in Cargo's registry. What is not for Linux is left out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use quote::ToTokens;
use syn::{FnArg, ImplItem, Item, Visibility};

/// The types, with tokio's file and ours.
const TYPES: [(&str, &str, &str); 10] = [
    ("Interest", "../io/interest.rs", "ready.rs"),
    ("Ready", "../io/ready.rs", "ready.rs"),
    ("TcpStream", "tcp/stream.rs", "tcp_stream.rs"),
    ("TcpListener", "tcp/listener.rs", "tcp_listener.rs"),
    ("TcpSocket", "tcp/socket.rs", "tcp_socket.rs"),
    ("UdpSocket", "udp.rs", "udp_socket.rs"),
    ("ReadHalf", "tcp/split.rs", "split.rs"),
    ("WriteHalf", "tcp/split.rs", "split.rs"),
    ("OwnedReadHalf", "tcp/split_owned.rs", "split.rs"),
    ("OwnedWriteHalf", "tcp/split_owned.rs", "split.rs"),
];
/// Why something differs, by its name.
const REASONS: &str = "inhost/src/net/differences.toml";
/// The page with the table.
const PAGE: &str = "docs/tokio.md";
/// What stands before and behind the table in it.
const MARKS: [&str; 2] = ["<!-- differences -->", "<!-- end of differences -->"];

/// Names of methods and traits, each with its signature.
type Face = BTreeMap<String, String>;

/// Holds the table against both sources; with `is_written`, writes it.
pub fn check(is_written: bool) -> Result<String, String> {
    let (version, theirs) = source()?;
    let reasons: BTreeMap<String, String> =
        toml::from_str(&read(Path::new(REASONS))?).map_err(|e| format!("{REASONS}: {e}"))?;
    let (mut rows, mut wrong, mut same, mut used) = (Vec::new(), Vec::new(), 0, Vec::new());
    for (name, tokio, own) in TYPES {
        let tokio = face(&theirs.join(tokio), name)?;
        let own = face(&Path::new("inhost/src/net").join(own), name)?;
        for (method, wanted) in tokio {
            let (key, found) = (format!("{name}::{method}"), own.get(&method));
            if found == Some(&wanted) {
                same += 1;
                continue;
            }
            let Some(reason) = reasons.get(&key) else {
                wrong.push(format!(
                    "{key}: tokio has {wanted}, ours {}",
                    found.map_or("is missing", |own| own)
                ));
                continue;
            };
            used.push(key.clone());
            let ours = if found.is_some() { "other signature" } else { "missing" };
            rows.push(format!("| `{key}` | {ours} | {reason} |"));
        }
    }
    wrong.extend(
        reasons
            .keys()
            .filter(|key| !used.contains(key))
            .map(|key| format!("{REASONS}: {key} does not differ")),
    );
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    let mut table = format!(
        "\nOf tokio {version}'s {} methods and traits of these types, {same} are here with the same signature.\n\n\
         | in tokio | here | why |\n|---|---|---|\n",
        same + rows.len()
    );
    for row in &rows {
        let _ = writeln!(table, "{row}");
    }
    let page = read(Path::new(PAGE))?;
    let bounds = page.find(MARKS[0]).map(|at| at + MARKS[0].len()).zip(page.find(MARKS[1]));
    let (from, to) = bounds.ok_or_else(|| format!("{PAGE}: no {} and {}", MARKS[0], MARKS[1]))?;
    let whole = format!("{}{table}{}", &page[..from], &page[to..]);
    match (whole == page, is_written) {
        (true, _) => Ok(format!("tokio {version}: {same} the same, {} with a reason", rows.len())),
        (false, true) => {
            std::fs::write(PAGE, whole).map(|()| format!("{PAGE}: written")).map_err(|e| e.to_string())
        }
        (false, false) => {
            Err(format!("{PAGE} is not what the sources say: cargo run -p inhost-audit -- tokio --write"))
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{} cannot be read: {e}", path.display()))
}

/// tokio's version in the lock file, and its folder of sockets.
fn source() -> Result<(String, PathBuf), String> {
    let listed = Command::new("cargo").args(["metadata", "--format-version", "1", "--locked"]).output();
    let listed = listed.map_err(|e| format!("cargo did not start: {e}"))?;
    let all: serde_json::Value =
        serde_json::from_slice(&listed.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = all["packages"].as_array().ok_or("cargo metadata has no packages")?;
    let tokio =
        packages.iter().find(|package| package["name"] == "tokio").ok_or("the lock file has no tokio")?;
    let manifest = Path::new(tokio["manifest_path"].as_str().unwrap_or_default());
    Ok((tokio["version"].as_str().unwrap_or_default().to_owned(), manifest.with_file_name("src").join("net")))
}

/// What a type can do, as a file of source says.
fn face(path: &Path, name: &str) -> Result<Face, String> {
    let file = syn::parse_file(&read(path)?).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut face = Face::new();
    add(&mut face, file.items, name);
    match face.is_empty() {
        true => Err(format!("{}: no {name}", path.display())),
        false => Ok(face),
    }
}

fn add(face: &mut Face, items: Vec<Item>, name: &str) {
    // Macros of one argument, by their names: what they give.
    let mut macros: BTreeMap<String, String> = BTreeMap::new();
    for item in items {
        match item {
            Item::Macro(item) => {
                let (called, tokens) = (quote(&item.mac.path), item.mac.tokens);
                let inner = match (&item.ident, macros.get(&called)) {
                    (Some(defined), _) => {
                        macros.extend(body(tokens).map(|body| (defined.to_string(), body)));
                        continue;
                    }
                    // reads!(ReadHalf<'_>)
                    (None, Some(body)) => {
                        syn::parse_str::<syn::File>(&body.replace("$ half", &tokens.to_string()))
                    }
                    (None, None) if called.contains("windows") => continue,
                    // tokio's features: cfg_net! { items }
                    (None, None) => syn::parse2(tokens),
                };
                if let Ok(inner) = inner {
                    add(face, inner.items, name);
                }
            }
            Item::Struct(item) if item.ident == name && is_debug(&item.attrs) => {
                face.insert("impl Debug".to_owned(), "Debug".to_owned());
            }
            Item::Mod(item) if is_for_linux(&item.attrs) => {
                add(face, item.content.map(|(_, items)| items).unwrap_or_default(), name);
            }
            Item::Impl(item) if is_for_linux(&item.attrs) => {
                let syn::Type::Path(of) = &*item.self_ty else { continue };
                if of.path.segments.last().is_none_or(|last| last.ident != name) {
                    continue;
                }
                match &item.trait_ {
                    Some((_, path, _)) => {
                        let of = plain(&quote(&path.segments.last()));
                        // An operator with its own type, which is what it has by default.
                        let is_operator = of.starts_with("Bit") || of.starts_with("Sub");
                        let of = if is_operator { of.replace(&format!("<{name}>"), "") } else { of };
                        face.insert(format!("impl {of}"), of);
                    }
                    None => item.items.iter().for_each(|item| add_method(face, item)),
                }
            }
            _ => {}
        }
    }
}

/// What a macro with one rule gives.
fn body(rules: proc_macro2::TokenStream) -> Option<String> {
    let groups = rules.into_iter().filter_map(|token| match token {
        proc_macro2::TokenTree::Group(group) if group.delimiter() == proc_macro2::Delimiter::Brace => {
            Some(group)
        }
        _ => None,
    });
    groups.last().map(|group| group.stream().to_string())
}

fn is_debug(attributes: &[syn::Attribute]) -> bool {
    attributes
        .iter()
        .any(|attribute| attribute.path().is_ident("derive") && quote(attribute).contains("Debug"))
}

fn add_method(face: &mut Face, item: &ImplItem) {
    match item {
        ImplItem::Fn(method)
            if matches!(method.vis, Visibility::Public(_)) && is_for_linux(&method.attrs) =>
        {
            let signature = &method.sig;
            let types = signature.inputs.iter().map(|input| match input {
                FnArg::Receiver(own) => quote(own),
                FnArg::Typed(argument) => quote(&argument.ty),
            });
            let types = types.collect::<Vec<_>>().join(", ");
            let awaited = if signature.asyncness.is_some() { "async " } else { "" };
            let (generics, bounds) = (quote(&signature.generics), quote(&signature.generics.where_clause));
            let text = format!("{awaited}fn{generics}({types}){} {bounds}", quote(&signature.output));
            face.insert(signature.ident.to_string(), plain(&text));
        }
        // cfg_…! { pub fn … }
        ImplItem::Macro(item) => {
            let whole = format!("impl X {{ {} }}", item.mac.tokens);
            if let Ok(Item::Impl(inner)) = syn::parse_str(&whole) {
                inner.items.iter().for_each(|item| add_method(face, item));
            }
        }
        _ => {}
    }
}

fn quote(tokens: &impl ToTokens) -> String {
    tokens.to_token_stream().to_string()
}

/// A signature without what is the same in other words: spaces, lifetimes' names, paths of modules.
fn plain(text: &str) -> String {
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut words: Vec<String> = Vec::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '\'')) {
        let (word, behind) = rest.split_at(at);
        words.push(word.to_owned());
        words.push(behind[..behind.chars().next().map_or(0, char::len_utf8)].to_owned());
        rest = &behind[words.last().map_or(0, String::len)..];
    }
    words.push(rest.to_owned());
    words.retain(|word| !word.trim().is_empty());
    // Modules before a name.
    while let Some(at) = words.windows(3).position(|of| of[1] == ":" && of[2] == ":") {
        words.drain(at..at + 3);
    }
    // A space between two words alone.
    let mut plain = String::new();
    for word in words {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
        if plain.chars().last().is_some_and(is_word) && word.starts_with(is_word) {
            plain.push(' ');
        }
        plain += &word;
    }
    plain.replace(",)", ")").replace(",>", ">").trim().to_owned()
}

/// Whether an item is there on Linux with all of tokio's features.
fn is_for_linux(attributes: &[syn::Attribute]) -> bool {
    let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions
        .filter_map(|attribute| attribute.parse_args::<syn::Meta>().ok())
        .all(|meta| holds(&meta).unwrap_or(true))
}

/// Whether a condition holds on Linux; none where it is about something else.
fn holds(meta: &syn::Meta) -> Option<bool> {
    match meta {
        syn::Meta::Path(path) if path.is_ident("unix") => Some(true),
        syn::Meta::Path(path) if path.is_ident("windows") || path.is_ident("test") => Some(false),
        syn::Meta::NameValue(pair) if pair.path.is_ident("target_os") => {
            Some(quote(&pair.value) == "\"linux\"")
        }
        syn::Meta::List(list) => {
            let parts = list
                .parse_args_with(syn::punctuated::Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated);
            let parts: Vec<Option<bool>> = parts.ok()?.iter().map(holds).collect();
            match list.path.get_ident()?.to_string().as_str() {
                "not" => parts.first().copied()?.map(|is| !is),
                "any" if parts.contains(&Some(true)) => Some(true),
                "any" if parts.iter().all(|part| *part == Some(false)) => Some(false),
                "all" if parts.contains(&Some(false)) => Some(false),
                "all" if parts.iter().all(|part| *part == Some(true)) => Some(true),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_compared_without_names_of_parameters_and_modules() {
        let text = "cfg_net! { impl TcpStream { pub async fn a<A: ToSocketAddrs>(addr: A) -> io::Result<TcpStream> {} \
                    #[cfg(windows)] pub fn b(&self) {} pub(crate) fn c(&self) {} \
                    cfg_os! { pub fn d(&self, cx: &mut task::Context<'_>) -> std::io::Result<()> {} } } \
                    #[cfg(any(unix, target_os = \"wasi\"))] mod sys { impl AsRawFd for TcpStream {} } \
                    #[cfg(not(unix))] mod sys { impl AsRawSocket for TcpStream {} } }";
        let mut face = Face::new();
        add(&mut face, syn::parse_file(text).unwrap().items, "TcpStream");
        let own = "impl TcpStream { pub async fn a<A: ToSocketAddrs>(other: A) -> Result<TcpStream> {} \
                   pub fn d(&self, context: &mut Context<'_>) -> io::Result<()> {} } impl std::os::fd::AsRawFd for TcpStream {}";
        let mut same = Face::new();
        add(&mut same, syn::parse_file(own).unwrap().items, "TcpStream");
        assert_eq!(face, same);
        assert_eq!(face.keys().collect::<Vec<_>>(), ["a", "d", "impl AsRawFd"]);
    }
}
