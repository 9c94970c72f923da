//! Parser of LIST output in the format of `ls -l`, for servers without MLSD.

use crate::codec::{Kind, UnixTime, parse_facts};
use jiff::fmt::strtime;

/// One name of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The name.
    pub name: String,
    /// A file, a directory or something else.
    pub kind: Kind,
    /// Octets, of a file.
    pub size_bytes: u64,
    /// When it was changed, where the listing tells it to the second.
    pub modified: Option<UnixTime>,
    /// Identity of the directory (`unique`), the same under every name, if the server gives it.
    pub unique: Option<String>,
}

/// A directory's entries.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// Its names.
    pub listed: Vec<Listed>,
    /// Names that would lead out of the directory.
    pub refused: Vec<String>,
    /// Identity of the directory (`unique`), the same under every name, if the server gives it.
    pub unique: Option<String>,
}

/// The names of a listing: of MLSD with `facts`, else of LIST.
pub fn parse_listing(text: &str, facts: bool) -> Listing {
    let parse = |line: &str| if facts { parse_machine(line) } else { parse_long(line) };
    let (listed, refused) = text.lines().filter_map(parse).partition(|listed: &Listed| is_name(&listed.name));
    let refused: Vec<Listed> = refused;
    let unique = if facts { own_unique(text) } else { None };
    Listing { listed, refused: refused.into_iter().map(|listed| listed.name).collect(), unique }
}

/// The `unique` fact of the directory itself: equal for all its names.
fn own_unique(text: &str) -> Option<String> {
    let own = text.lines().filter_map(parse_facts).find(|(facts, _)| facts.kind == Kind::This);
    own.and_then(|(facts, _)| facts.unique)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

fn parse_machine(line: &str) -> Option<Listed> {
    let (facts, name) = parse_facts(line)?;
    let is_own = matches!(facts.kind, Kind::This | Kind::Parent);
    (!is_own).then(|| Listed {
        name: name.to_owned(),
        kind: facts.kind,
        size_bytes: facts.size_bytes,
        modified: facts.modified,
        unique: facts.unique,
    })
}

/// `drwxr-xr-x 2 user group 4096 Nov 21 07:52 name`.
fn parse_long(line: &str) -> Option<Listed> {
    let kind = match line.as_bytes().first()? {
        b'-' => Kind::File,
        b'd' => Kind::Directory,
        b'l' => Kind::Other,
        _ => return None,
    };
    let mut rest = line;
    let mut words = Vec::new();
    // Mode, links, user, group, size, month, day, time; a server that leaves the group out has one less.
    while words.len() < 8 {
        let trimmed = rest.trim_start();
        let (word, after) = trimmed.split_once(' ')?;
        words.push(word);
        rest = after;
        // `Nov`, but not a group of that name.
        if words.len() >= 5 && strtime::parse("%b", word).is_ok() {
            break;
        }
    }
    let size_bytes = words.get(words.len().checked_sub(2)?)?.parse().ok()?;
    let (_, after) = rest.trim_start().split_once(' ')?;
    let (_, name) = after.trim_start().split_once(' ')?;
    let name = if kind == Kind::Other { name.split(" -> ").next()? } else { name };
    Some(Listed { name: name.to_owned(), kind, size_bytes, modified: None, unique: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_of_all_servers() {
        let text = "total 12\r\n\
            drwxr-xr-x    2 0        0            4096 Nov 21 07:52 a dir\r\n\
            -rw-r--r--   1 root     root      5000000 Jan  1  2020 name with  spaces\r\n\
            -rw-r--r--   1 ftp 12 Nov 21 07:52 no-group\r\n\
            lrwxrwxrwx 1 0 0 4 Nov 21 07:52 link -> file\r\n\
            -rw-r--r-- 1 0 0 4 Nov 21 07:52 ../evil\r\n";
        let Listing { listed: found, refused, .. } = parse_listing(text, false);
        assert_eq!(refused, ["../evil"]);
        let names: Vec<_> = found.iter().map(|l| (&*l.name, l.kind, l.size_bytes)).collect();
        assert_eq!(
            names,
            [
                ("a dir", Kind::Directory, 4096),
                ("name with  spaces", Kind::File, 5_000_000),
                ("no-group", Kind::File, 12),
                ("link", Kind::Other, 4),
            ]
        );
        let machine = "type=cdir;unique=7; .\r\ntype=file;size=3;modify=20261121075253; x y\r\ntype=file;size=1; ../evil\r\n";
        let Listing { listed: found, refused, unique } = parse_listing(machine, true);
        assert_eq!((refused.len(), unique.as_deref()), (1, Some("7")));
        assert_eq!((found.len(), &*found[0].name, found[0].size_bytes), (1, "x y", 3));
    }
}
