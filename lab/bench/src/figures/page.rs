//! The page of figures, docs/figures.md: each command puts its table between its own marks.

use super::machine;

/// The page.
const PAGE: &str = "docs/figures.md";

/// Puts a table, with machine, date and commit, where the page of figures has the marks of `name`.
pub fn put(name: &str, table: &str) -> Result<(), String> {
    put_on(PAGE, name, table)
}

/// The same on another page.
pub fn put_on(page: &str, name: &str, table: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(page).map_err(|e| format!("{page}: {e}; run from the root"))?;
    let with = format!(
        "```\n{table}```\n\n*{}; {}; commit {}.*\n",
        machine::describe(),
        machine::today(),
        machine::commit()
    );
    let text = between(&text, name, &with).ok_or_else(|| format!("{page} has no marks for {name}"))?;
    std::fs::write(page, text).map_err(|e| format!("{page}: {e}"))
}

/// The text with `inner` between the marks of `name`.
fn between(text: &str, name: &str, inner: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (head, rest) = text.split_once(&begin)?;
    let (_, tail) = rest.split_once(&end)?;
    Some(format!("{head}{begin}{inner}{end}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let text = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n";
        let new = between(text, "x", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- x -->\nnew\n<!-- end of x -->\nb\n");
        assert_eq!(between(&new, "x", "new\n").as_ref(), Some(&new));
        assert_eq!(between(text, "y", ""), None);
    }

    #[test]
    fn the_page_has_the_marks_of_every_figure() {
        let page = include_str!("../../../../docs/figures.md");
        for name in ["kernel", "capacity", "response", "fairness", "flood", "speed", "files"] {
            assert!(between(page, name, "").is_some(), "{name}");
        }
    }
}
