//! The source of the book: the pages that `docs/SUMMARY.md` names and the files that they link to, in `target/book-src`.
//!
//! mdBook takes one folder and knows nothing outside. `docs` becomes the root of the book, and a page of elsewhere, such as
//! `core/stack/README.md`, lies in `tree/`; links are changed to fit. A file that is not a page of the book is copied, so that
//! no link of the book leads nowhere.

use crate::links::{Page, SUMMARY};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the book is made of.
const SOURCE: &str = "target/book-src";

/// Where a file of the tree lies in the book. mdBook would rename a README.md, and not the links to it.
fn place(path: &Path) -> PathBuf {
    let place = path.strip_prefix("docs").map_or_else(|_| Path::new("tree").join(path), Path::to_owned);
    match place.ends_with("README.md") {
        true => place.with_file_name("index.md"),
        false => place,
    }
}

/// The way from a file of the book to another.
fn way(from: &Path, to: &Path) -> String {
    let up = from.components().count() - 1;
    format!("{}{}", "../".repeat(up), to.display())
}

/// A page as the book has it, and the files that it links to.
fn rewrite(page: &Page) -> Result<(String, BTreeSet<PathBuf>), String> {
    let (mut text, mut linked) = (page.text.clone(), BTreeSet::new());
    // From the end, so that earlier places stay where they are. A picture may stand within a link, which ends later.
    let mut links = page.links();
    links.sort_by_key(|link| link.range.end);
    for link in links.iter().rev() {
        let Some(mut target) = page.target(&link.destination) else { continue };
        if target.path.is_dir() {
            target.path.push("README.md");
        }
        let anchor = target.anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
        let destination = format!("{}{anchor}", way(&place(&page.path), &place(&target.path)));
        let written = format!("]({}", link.destination);
        let at = text[link.range.clone()].rfind(&written).ok_or_else(|| {
            format!("{}: {}: write the link as [text](path)", page.path.display(), link.destination)
        })?;
        let at = link.range.start + at + 2;
        text.replace_range(at..at + link.destination.len(), &destination);
        linked.insert(target.path);
    }
    Ok((text, linked))
}

/// Writes the source of the book. A page that others link to and the list lacks is added at its end.
pub fn assemble() -> Result<String, String> {
    let summary = Page::read(Path::new(SUMMARY))?;
    let (mut list, named) = rewrite(&summary)?;
    let (mut files, mut others) = (BTreeMap::new(), BTreeSet::new());
    let mut waiting: Vec<PathBuf> = named.iter().cloned().collect();
    let mut more = String::new();
    while let Some(path) = waiting.pop() {
        if files.contains_key(&place(&path)) {
            continue;
        }
        let page = Page::read(&path)?;
        if !named.contains(&path) {
            let title = page.title().unwrap_or_else(|| path.display().to_string());
            more += &format!("- [{title}]({})\n", place(&path).display());
        }
        let (text, linked) = rewrite(&page)?;
        files.insert(place(&path), text.into_bytes());
        for path in linked {
            match path.extension().is_some_and(|end| end == "md") {
                true => waiting.push(path),
                false => drop(others.insert(path)),
            }
        }
    }
    if !more.is_empty() {
        list += &format!("\n# More\n\n{more}");
    }
    let summary = format!("{} pages and {} other files in {SOURCE}", files.len(), others.len());
    files.insert(place(Path::new(SUMMARY)), list.into_bytes());
    for path in others {
        let content = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        files.insert(place(&path), content);
    }
    // No page of an earlier book stays.
    let _ = fs::remove_dir_all(SOURCE);
    for (path, content) in &files {
        let path = Path::new(SOURCE).join(path);
        let written = fs::create_dir_all(path.parent().unwrap_or(Path::new(SOURCE)))
            .and_then(|()| fs::write(&path, content));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_fit_the_places_of_the_book() {
        let page = |path: &str, text: &str| Page { path: PathBuf::from(path), text: text.to_owned() };
        let here =
            page("docs/tutorials/a.md", "[s](../serve.md#log), [r](../../README.md), [u](https://x.org)");
        let (text, linked) = rewrite(&here).unwrap();
        assert_eq!(text, "[s](../serve.md#log), [r](../tree/index.md), [u](https://x.org)");
        assert_eq!(linked, [PathBuf::from("README.md"), PathBuf::from("docs/serve.md")].into());
        let there = page("core/stack/README.md", "[![p](p.svg)](../../docs/serve.md)");
        assert_eq!(rewrite(&there).unwrap().0, "[![p](../../../tree/core/stack/p.svg)](../../../serve.md)");
    }

    #[test]
    fn a_link_that_cannot_be_changed_is_an_error() {
        let page = Page { path: PathBuf::from("docs/a.md"), text: "[b][c]\n\n[c]: d.md\n".to_owned() };
        assert!(rewrite(&page).unwrap_err().contains("write the link as"));
    }
}
