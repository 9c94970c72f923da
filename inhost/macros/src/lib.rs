//! `#[inhost::sim_test]`: a test that runs under many seeds of the simulator. Use it by the crate `inhost`.
#![forbid(unsafe_code)]

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// Seeds of a test that does not say how many.
const SEEDS: u64 = 10;

/// Makes a test of a function that builds a simulation: `fn name(simulation: &mut Simulation)`. It runs once for each of
/// `seeds` seeds, 10 where that is left out; a failure names the seed and the command that repeats it.
#[proc_macro_attribute]
pub fn sim_test(arguments: TokenStream, function: TokenStream) -> TokenStream {
    match expand(arguments, function) {
        Ok(test) => test,
        Err(why) => error(why),
    }
}

fn expand(arguments: TokenStream, function: TokenStream) -> Result<TokenStream, &'static str> {
    let seeds = seeds(arguments)?;
    let mut attributes = TokenStream::new();
    let mut inner = TokenStream::new();
    let mut tokens = function.into_iter().peekable();
    // `#[ignore]` and its kind belong to the test.
    while let Some(TokenTree::Punct(hash)) = tokens.peek()
        && hash.as_char() == '#'
    {
        attributes.extend(tokens.by_ref().take(2));
    }
    let mut name = None;
    let mut follows_fn = false;
    for token in tokens {
        if let TokenTree::Ident(ident) = &token {
            if follows_fn {
                name.get_or_insert(ident.clone());
            }
            if ident.to_string() == "async" && name.is_none() {
                return Err("sim_test takes a function that is not async: its programs are");
            }
            follows_fn = ident.to_string() == "fn";
        }
        inner.extend([token]);
    }
    let name = name.ok_or("sim_test takes a function: fn name(simulation: &mut Simulation) { … }")?;
    // { <the function> ::inhost::sim::explore(0..SEEDS, name) }
    let mut body = inner;
    body.extend(path(&["inhost", "sim", "explore"]));
    let mut call = TokenStream::new();
    call.extend([
        TokenTree::from(Literal::u64_suffixed(0)),
        Punct::new('.', Spacing::Joint).into(),
        Punct::new('.', Spacing::Alone).into(),
        Literal::u64_suffixed(seeds).into(),
        Punct::new(',', Spacing::Alone).into(),
        name.clone().into(),
    ]);
    body.extend([TokenTree::from(Group::new(Delimiter::Parenthesis, call))]);
    body.extend([TokenTree::from(Punct::new(';', Spacing::Alone))]);
    let mut test = attributes;
    let mut word = TokenStream::new();
    word.extend([TokenTree::from(ident("test"))]);
    test.extend([
        TokenTree::from(Punct::new('#', Spacing::Alone)),
        Group::new(Delimiter::Bracket, word).into(),
        ident("fn").into(),
        name.into(),
        Group::new(Delimiter::Parenthesis, TokenStream::new()).into(),
        Group::new(Delimiter::Brace, body).into(),
    ]);
    Ok(test)
}

/// The number in `seeds = 100`.
fn seeds(arguments: TokenStream) -> Result<u64, &'static str> {
    const USAGE: &str = "write #[sim_test(seeds = 100)]";
    let tokens: Vec<TokenTree> = arguments.into_iter().collect();
    match tokens.as_slice() {
        [] => Ok(SEEDS),
        [TokenTree::Ident(word), TokenTree::Punct(equals), TokenTree::Literal(number)]
            if word.to_string() == "seeds" && equals.as_char() == '=' =>
        {
            number.to_string().replace('_', "").parse().map_err(|_| USAGE)
        }
        _ => Err(USAGE),
    }
}

fn ident(word: &str) -> Ident {
    Ident::new(word, Span::call_site())
}

/// `::a::b`
fn path(words: &[&str]) -> TokenStream {
    let colons = || [Punct::new(':', Spacing::Joint), Punct::new(':', Spacing::Alone)].map(TokenTree::from);
    words.iter().flat_map(|word| colons().into_iter().chain([ident(word).into()])).collect()
}

/// `::core::compile_error!("why");`
fn error(why: &str) -> TokenStream {
    let mut text = TokenStream::new();
    text.extend([TokenTree::from(Literal::string(why))]);
    let mut stream = path(&["core", "compile_error"]);
    stream.extend([
        TokenTree::from(Punct::new('!', Spacing::Alone)),
        Group::new(Delimiter::Parenthesis, text).into(),
        Punct::new(';', Spacing::Alone).into(),
    ]);
    stream
}
