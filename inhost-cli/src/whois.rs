//! `inhost whois`: to whom a name or a number belongs, from server to server.

use crate::args::Whois;
use crate::asking::{self, Asker};
use crate::failure::Failure;
use crate::output::{end_line, show};
use crate::target::{Schemes, Target};
use inhost_whois::{PORT, ROOT, Search, Server};
use serde_json::{Value, json};

/// An answer, and whose it is.
struct Answer {
    server: Server,
    text: String,
    /// Why there is no more of it.
    error: Option<String>,
}

/// Asks, follows, and shows.
pub fn run(arguments: &Whois) -> Result<(), Failure> {
    let (query, server) = question(arguments)?;
    let search =
        Search::new(&query, server, !arguments.no_referral).map_err(|why| Failure::usage(why.to_string()))?;
    let answers = asking::run(&arguments.common, async |asker| Ok(follow(search, &asker).await))?;
    match arguments.common.json {
        true => show(&format!("{}\n", report(&query, &answers))),
        false => tell(&answers),
    }
    match answers.last() {
        Some(Answer { error: Some(why), .. }) => Err(Failure::operation(why.clone())),
        _ => Ok(()),
    }
}

/// What is asked, and the server to begin with: of a URL both.
fn question(arguments: &Whois) -> Result<(String, Server), Failure> {
    const SCHEMES: Schemes = Schemes::Of(&["whois"]);
    let (query, server) = match arguments.query.starts_with("whois://") {
        true => {
            let target = Target::parse(&arguments.query, SCHEMES)?;
            let query = target.path.as_deref().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
            (query, target)
        }
        false => {
            let server = Target::parse(&arguments.server, SCHEMES)?;
            server.without_path("whois")?;
            (arguments.query.clone(), server)
        }
    };
    let port = server.port_or(arguments.port)?.unwrap_or(PORT);
    Ok((query, Server { host: server.host, port }))
}

async fn follow(mut search: Search, asker: &Asker) -> Vec<Answer> {
    let mut answers = Vec::new();
    while let Some((server, line)) = search.question() {
        let (text, error) = asker.ask(&server.host, server.port, &line, |_| ()).await;
        match error {
            None => search.answered(&text),
            Some(_) => search.failed(),
        }
        answers.push(Answer { server, text, error });
    }
    answers
}

/// Every answer under its server's name; of the root's, which says only whom to ask, no more than that when it was
/// followed by others.
fn tell(answers: &[Answer]) {
    let many = answers.len() > 1;
    for Answer { server, text, error } in answers {
        if text.is_empty() && error.is_some() {
            continue;
        }
        if many {
            show(&format!("# {}\n", server.host));
        }
        if !(many && server.host == ROOT) {
            show(text);
            end_line(text);
        }
    }
}

fn report(query: &str, answers: &[Answer]) -> Value {
    let answers = answers.iter().map(|Answer { server, text, error }| {
        json!({ "server": server.host, "port": server.port, "text": text, "error": error })
    });
    json!({ "query": query, "answers": answers.collect::<Vec<_>>() })
}
