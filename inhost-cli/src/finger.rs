//! `inhost finger`: who is there, or who somebody is.

use crate::args::Finger;
use crate::asking::{self, end_line, show};
use crate::failure::Failure;
use inhost_finger::client::Query;
use inhost_names::check_host;
use serde_json::json;

/// Asks, and shows the answer.
pub fn run(arguments: &Finger) -> Result<(), Failure> {
    let query = Query::parse(&arguments.who, arguments.long)
        .map_err(|why| Failure::usage(format!("{}: {why}", arguments.who.escape_default())))?;
    check_host(query.host()).map_err(|why| Failure::usage(why.to_string()))?;
    let as_json = arguments.common.json;
    let host = query.host().to_owned();
    let text = asking::run(&arguments.common, async |asker| {
        let tell = |piece: &str| {
            if !as_json {
                show(piece);
            }
        };
        Ok(asker.ask(query.host(), arguments.port, query.line(), tell).await)
    })?;
    let (text, error) = text;
    match as_json {
        true => show(&format!(
            "{}\n",
            json!({ "who": arguments.who, "host": host, "text": text, "error": error })
        )),
        false => end_line(&text),
    }
    error.map_or(Ok(()), |why| Err(Failure::operation(why)))
}
