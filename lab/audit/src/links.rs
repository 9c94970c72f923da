//! Links of the Markdown pages: each relative one points at a file of the tree, and its anchor at a heading there.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The list of the book's pages.
pub const SUMMARY: &str = "docs/SUMMARY.md";

/// A Markdown page.
pub struct Page {
    /// Its path from the root of the workspace.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// A link or a picture in a page.
#[derive(PartialEq, Eq, Debug)]
pub struct Link {
    /// What it points at, as written.
    pub destination: String,
    /// Where it stands in the text.
    pub range: Range<usize>,
}

/// Where a relative link leads.
#[derive(PartialEq, Eq, Debug)]
pub struct Target {
    /// The file, from the root of the workspace.
    pub path: PathBuf,
    /// The heading's anchor, when there is one.
    pub anchor: Option<String>,
}

impl Page {
    /// Reads a page, named from the root of the workspace.
    pub fn read(path: &Path) -> Result<Page, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Page { path: path.to_owned(), text })
    }
    fn events(&self) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
        Parser::new_ext(&self.text, Options::ENABLE_TABLES).into_offset_iter()
    }
    /// Links and pictures, in order.
    pub fn links(&self) -> Vec<Link> {
        self.events()
            .filter_map(|(event, range)| match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    Some(Link { destination: dest_url.into_string(), range })
                }
                _ => None,
            })
            .collect()
    }
    /// The text of each heading.
    fn headings(&self) -> Vec<String> {
        let (mut headings, mut is_in_heading) = (Vec::new(), false);
        for (event, _) in self.events() {
            match event {
                Event::Start(Tag::Heading { .. }) => {
                    is_in_heading = true;
                    headings.push(String::new());
                }
                Event::Text(text) | Event::Code(text) if is_in_heading => {
                    headings.last_mut().into_iter().for_each(|heading| *heading += &text);
                }
                Event::End(TagEnd::Heading(_)) => is_in_heading = false,
                _ => {}
            }
        }
        headings
    }
    /// The text of the first heading.
    pub fn title(&self) -> Option<String> {
        self.headings().into_iter().next()
    }
    /// The anchors of the headings.
    pub fn anchors(&self) -> BTreeSet<String> {
        let mut anchors = BTreeSet::new();
        for heading in self.headings() {
            let anchor = anchor(&heading);
            let repeated = (1..).map(|number| format!("{anchor}-{number}"));
            let mut candidates = std::iter::once(anchor.clone()).chain(repeated);
            anchors.extend(candidates.find(|name| !anchors.contains(name)));
        }
        anchors
    }
    /// Where a link of this page leads, when that is within the tree.
    pub fn target(&self, destination: &str) -> Option<Target> {
        let is_url = destination
            .split_once(':')
            .is_some_and(|(scheme, _)| scheme.chars().all(|letter| letter.is_ascii_alphanumeric()));
        if is_url {
            return None;
        }
        let (path, anchor) = destination.split_once('#').unwrap_or((destination, ""));
        let path = match path {
            "" => self.path.clone(),
            path => normal(&self.path.parent().unwrap_or(Path::new("")).join(path)),
        };
        Some(Target { path, anchor: Some(anchor.to_owned()).filter(|anchor| !anchor.is_empty()) })
    }
}

/// The anchor that a heading gets on GitHub, and from mdBook.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// A path without `.` and `..`, as far as they can be resolved.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if normal.file_name().is_some() => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// The pages: every Markdown file of the tree that git has or would add.
pub fn pages() -> Result<Vec<Page>, String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "*.md"])
        .output()
        .map_err(|error| format!("git ls-files: {error}"))?;
    if !listed.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&listed.stderr).trim()));
    }
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    names.lines().map(Path::new).filter(|path| path.exists()).map(Page::read).collect()
}

/// Fails on a link that leads nowhere, and on a page of `docs` that the book would not have.
pub fn check() -> Result<String, String> {
    let pages = pages()?;
    let anchors: BTreeMap<&Path, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.as_path(), page.anchors())).collect();
    let (mut count, mut broken) = (0, Vec::new());
    for page in &pages {
        for link in page.links() {
            let Some(target) = page.target(&link.destination) else { continue };
            count += 1;
            let line = page.text[..link.range.start].matches('\n').count() + 1;
            let place = format!("{}:{line}: {}", page.path.display(), link.destination);
            if !target.path.exists() {
                broken.push(format!("{place}: there is no {}", target.path.display()));
            } else if let Some(anchor) = target.anchor
                && !anchors.get(target.path.as_path()).is_some_and(|anchors| anchors.contains(&anchor))
            {
                broken.push(format!("{place}: there is no such heading in {}", target.path.display()));
            }
        }
    }
    broken.extend(not_in_book(&pages));
    if count == 0 {
        return Err("no page has a relative link: the check sees nothing".to_owned());
    }
    match broken.is_empty() {
        true => Ok(format!("{count} links in {} pages lead to files and headings that exist", pages.len())),
        false => Err(broken.join("\n")),
    }
}

/// The pages of `docs` that its list lacks.
fn not_in_book(pages: &[Page]) -> Vec<String> {
    let list = pages.iter().find(|page| page.path == Path::new(SUMMARY));
    let named: BTreeSet<PathBuf> = list
        .iter()
        .flat_map(|list| list.links().into_iter().filter_map(|link| list.target(&link.destination)))
        .map(|target| target.path)
        .collect();
    let docs = pages.iter().map(|page| &page.path).filter(|path| path.starts_with("docs"));
    docs.filter(|path| *path != Path::new(SUMMARY) && !named.contains(*path))
        .map(|path| format!("{SUMMARY}: {} has no line", path.display()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        Page { path: PathBuf::from("docs/here.md"), text: text.to_owned() }
    }

    #[test]
    fn links_are_found_and_code_is_left_alone() {
        let page =
            page("See [a](b.md#c) and ![p](d.svg).\n\n`[no](x)`\n\n```\n[no](y)\n```\n\n|[t](u)|\n|-|\n");
        let found: Vec<String> = page.links().into_iter().map(|link| link.destination).collect();
        assert_eq!(found, ["b.md#c", "d.svg", "u"]);
    }

    #[test]
    fn targets_are_counted_from_the_root() {
        let target = |path: &str, anchor: Option<&str>| {
            Some(Target { path: PathBuf::from(path), anchor: anchor.map(str::to_owned) })
        };
        let page = page("");
        assert_eq!(page.target("serve.md#log"), target("docs/serve.md", Some("log")));
        assert_eq!(page.target("../README.md"), target("README.md", None));
        assert_eq!(page.target("#log"), target("docs/here.md", Some("log")));
        assert_eq!(page.target("../../outside"), target("../outside", None));
        assert_eq!(page.target("https://example.org/x.md"), None);
        assert_eq!(page.target("mailto:someone@example.org"), None);
    }

    #[test]
    fn pages_that_the_book_lacks_are_named() {
        let page = |path: &str, text: &str| Page { path: PathBuf::from(path), text: text.to_owned() };
        let pages = [
            page(SUMMARY, "- [a](a.md)\n"),
            page("docs/a.md", ""),
            page("docs/b/c.md", ""),
            page("d.md", ""),
        ];
        assert_eq!(not_in_book(&pages), ["docs/SUMMARY.md: docs/b/c.md has no line"]);
    }

    #[test]
    fn headings_have_the_anchors_of_github() {
        let page = page("# Why: a `Stack`, twice?\n\n## Log\n\n## Log\n\nMore\n====\n");
        let anchors: Vec<String> = page.anchors().into_iter().collect();
        assert_eq!(anchors, ["log", "log-1", "more", "why-a-stack-twice"]);
    }
}
