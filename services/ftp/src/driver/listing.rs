//! Directory listings as text: LIST, NLST, MLSD.

use std::collections::VecDeque;

use crate::codec::{Facts, Kind, UnixTime, facts_line, list_time};
use crate::server::FACT_NAMES;
use crate::server::ListStyle;
use inhost_common::Pattern;
use inhost_common::storage::{LIST_BATCH, Listing, Names, Storage, StorageError, StorageResult, VirtualPath};

/// The first names of a directory, or the one name of a file.
pub(super) struct FirstNames {
    /// In order, unless there are more.
    pub(super) names: Names,
    /// The rest of a directory that has more than so many.
    pub(super) more: Option<Box<dyn Listing>>,
}

/// Reads the names of a directory; with more than `limit` of them, the rest stays unread.
pub(super) async fn first_names(
    storage: &dyn Storage,
    path: &VirtualPath,
    limit: usize,
) -> StorageResult<FirstNames> {
    let mut listing = match storage.list(path).await {
        Err(StorageError::NotDirectory) => {
            let facts = storage.facts(path).await?;
            let names = vec![(path.name().unwrap_or("/").to_owned(), facts)];
            return Ok(FirstNames { names, more: None });
        }
        other => other?,
    };
    let mut names = Vec::new();
    loop {
        let (rest, batch) = listing.next().await;
        let batch = batch?;
        if batch.is_empty() {
            break;
        }
        names.extend(batch);
        if names.len() > limit {
            return Ok(FirstNames { names, more: Some(rest) });
        }
        listing = rest;
    }
    // Comparing as many takes longer than anybody's turn may.
    let sort = move || {
        names.sort_by(|(one, _): &(String, Facts), (other, _)| one.cmp(other));
        names
    };
    Ok(FirstNames { names: blocking::unblock(sort).await, more: None })
}

/// A listing on its way: the text of so many names at a time, so that others have their turn between.
pub(super) struct Lines {
    names: VecDeque<(String, Facts)>,
    more: Option<Box<dyn Listing>>,
    own: Option<Facts>,
    pattern: Option<Filter>,
    style: ListStyle,
    now: UnixTime,
}

/// Which names a listing shows.
struct Filter {
    pattern: Pattern,
    /// Whether hidden files are shown.
    dots: bool,
}

impl Filter {
    /// A pattern of LIST and NLST, in which `*` and `?` alone have a meaning.
    fn new(pattern: &str) -> Filter {
        Filter { pattern: Pattern::new(&pattern.replace('[', "[[]")), dots: pattern.starts_with('.') }
    }
    fn shows(&self, name: &str) -> bool {
        (self.dots || !name.starts_with('.')) && self.pattern.matches(name)
    }
}

impl Lines {
    pub(super) fn new(
        first: FirstNames,
        own: Option<Facts>,
        pattern: Option<String>,
        style: ListStyle,
        now: UnixTime,
    ) -> Lines {
        let pattern = pattern.as_deref().map(Filter::new);
        Lines { names: first.names.into(), more: first.more, own, pattern, style, now }
    }
    /// The next lines; none of the names may be wanted.
    pub(super) async fn next(&mut self) -> StorageResult<Option<String>> {
        if let Some(own) = self.own.take() {
            return Ok(Some(line(".", &own, self.style, self.now)));
        }
        if self.names.is_empty()
            && let Some(more) = self.more.take()
        {
            let (rest, batch) = more.next().await;
            let batch: Names = batch?;
            self.more = (!batch.is_empty()).then_some(rest);
            self.names = batch.into();
        }
        if self.names.is_empty() {
            return Ok(None);
        }
        let count = self.names.len().min(LIST_BATCH);
        let batch: Names = self.names.drain(..count).collect();
        let wanted = batch.iter().filter(|(name, _)| self.wants(name));
        Ok(Some(wanted.map(|(name, facts)| line(name, facts, self.style, self.now)).collect()))
    }
    fn wants(&self, name: &str) -> bool {
        let shows_dots = matches!(self.style, ListStyle::Facts(_) | ListStyle::Long { all: true });
        match &self.pattern {
            Some(filter) => filter.shows(name),
            None => shows_dots || !name.starts_with('.'),
        }
    }
}

/// A line of a listing with a line feed at its end. A name shows as it is, so that it can be asked for; where it holds a
/// line end or a NUL, it shows `?`, for a line feed in it would make another name of what follows.
pub(super) fn line(name: &str, facts: &Facts, style: ListStyle, now: UnixTime) -> String {
    let name = name.replace(['\r', '\n', '\0'], "?");
    match style {
        ListStyle::Names => format!("{name}\n"),
        ListStyle::Facts(bits) => {
            let wanted = |fact: &str| {
                FACT_NAMES.iter().enumerate().any(|(bit, known)| *known == fact && bits & 1 << bit != 0)
            };
            format!("{}\n", facts_line(facts, &name, &wanted))
        }
        ListStyle::Long { .. } => {
            let kind = match facts.kind {
                Kind::Directory | Kind::This | Kind::Parent => 'd',
                _ => '-',
            };
            let time = list_time(facts.modified.unwrap_or_default(), now);
            let mode = mode_text(facts.mode.unwrap_or(0o644));
            format!("{kind}{mode} 1 ftp ftp {:>12} {time} {name}\n", facts.size_bytes)
        }
    }
}

fn mode_text(mode: u32) -> String {
    (0..9).map(|bit| if mode & (0o400 >> bit) != 0 { ['r', 'w', 'x'][bit % 3] } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, wanted) in [
            ("*", "", true),
            ("*.txt", "a.txt", true),
            ("*.txt", "a.txt.gz", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b*", "xxaxxbxx", true),
            ("a", "b", false),
            ("é?", "éé", true),
        ] {
            assert_eq!(Filter::new(pattern).shows(name), wanted, "{pattern} {name}");
        }
        assert!(!Filter::new(&"*a".repeat(40)).shows(&"a".repeat(30)));
    }

    #[test]
    fn lines_as_clients_read_them() {
        let mut facts =
            crate::codec::parse_facts("type=file;size=5;modify=20261121075253;UNIX.mode=0750; x").unwrap().0;
        let now = UnixTime { seconds: 1_795_300_000, nanoseconds: 0 };
        let long = ListStyle::Long { all: false };
        assert_eq!(line("a\nb", &facts, long, now), "-rwxr-x--- 1 ftp ftp            5 Nov 21 07:52 a?b\n");
        facts.kind = Kind::Directory;
        assert_eq!(line("d", &facts, ListStyle::Names, now), "d\n");
        assert!(line("d", &facts, ListStyle::Facts(1), now).starts_with("type=dir; d"));
    }
}
