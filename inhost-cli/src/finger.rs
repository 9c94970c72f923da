//! `inhost finger`: who is there, or who somebody is.

use crate::args::Finger;
use crate::asking;
use crate::failure::Failure;
use crate::output::{end_line, show};
use crate::target::{Schemes, Target};
use inhost_finger::client::{PORT, Query};
use inhost_names::check_host;
use serde_json::json;

/// Asks, and shows the answer.
pub fn run(arguments: &Finger) -> Result<(), Failure> {
    let (who, port) = who(&arguments.who)?;
    let port = Target { port, ..Target::default() }.port_or(arguments.port)?.unwrap_or(PORT);
    let query = Query::parse(&who, arguments.long)
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
        Ok(asker.ask(query.host(), port, query.line(), tell).await)
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

/// The query as RFC 1288 has it, `user@host`, and the port that was named. Of `finger://host/ada` the path is the user.
fn who(text: &str) -> Result<(String, Option<u16>), Failure> {
    const SCHEMES: Schemes = Schemes::Of(&["finger"]);
    // With further hosts before it, only the last is called.
    let (front, host) = match text.rsplit_once('@') {
        Some((front, host)) if !text.contains("://") => (front, host),
        _ if text.contains("://") => ("", text),
        // A word alone is somebody, and not a host: the query says so.
        _ => return Ok((text.to_owned(), None)),
    };
    let target = Target::parse(host, SCHEMES)?;
    let named = match (&target.scheme, &target.path) {
        (Some(_), Some(path)) if !path.is_empty() => Some(path),
        (None, Some(_)) => {
            return Err(Failure::usage(format!("{text:?}: give user@host[:port], or finger://host/user")));
        }
        _ => target.user.as_ref(),
    };
    let named = named.map(|name| String::from_utf8_lossy(name).into_owned());
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host };
    Ok((format!("{}@{host}", named.as_deref().unwrap_or(front)), target.port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_asked_for_where() {
        let asked = |text: &str| who(text).map_err(drop);
        let query = |who: &str, port| Ok((who.to_owned(), port));
        assert_eq!(asked("ada@vax"), query("ada@vax", None));
        assert_eq!(asked("@vax:2079"), query("@vax", Some(2079)));
        assert_eq!(asked("ada"), query("ada", None));
        assert_eq!(asked("finger://vax/"), query("@vax", None));
        assert_eq!(asked("ada@one@[fd09::2]:79"), query("ada@one@[fd09::2]", Some(79)));
        assert_eq!(asked("ada lovelace@fd09::2"), query("ada lovelace@[fd09::2]", None));
        assert_eq!(asked("finger://vax/ada"), query("ada@vax", None));
        assert_eq!(asked("finger://ada@vax:2079"), query("ada@vax", Some(2079)));
        assert!(asked("ada@vax/x").is_err() && asked("ada@").is_err() && asked("http://vax/").is_err());
    }
}
