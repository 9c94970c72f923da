//! The classes of differences that are known, each with its verdict: `lab/script/differences.toml`.

use serde::Deserialize;

/// The committed table.
const TABLE: &str = include_str!("../../differences.toml");

/// Verdict on a class of differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Ours was wrong and was mended: such a difference must not come again.
    Mended,
    /// The kernel is odd, and our `linux` profile follows it: such a difference must not come again.
    Followed,
    /// Ours is wrong and is not mended yet: each run says so, and does not fail.
    Open,
    /// The kernel is odd and is not followed: an RFC forbids it, or it is not a business of the profile's.
    NotOurs,
    /// The kernel is odd, no public suite asks for it, and the profile keeps to the RFC: each run counts it.
    NotAsked,
}

/// A class of differences.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// A name for it, in a few words.
    pub name: String,
    /// Pattern of its signatures; `*` matches any text.
    pub signatures: Vec<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// The section that says so.
    #[serde(default)]
    pub rfc: String,
    /// Of an open class, or one that nobody asks for: in how many exchanges of a hundred it may be met at most. What meets
    /// it more often is another mistake, which looks alike.
    #[serde(default)]
    pub most_percent: f64,
    /// The script that shows it, where there is one, or the test.
    #[serde(default)]
    pub shown: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    class: Vec<Class>,
}

/// The known classes.
#[derive(Clone, Debug)]
pub struct Classes(Vec<Class>);

impl Verdict {
    /// Whether a run may meet such a difference.
    pub fn is_allowed(self) -> bool {
        matches!(self, Verdict::Open | Verdict::NotOurs | Verdict::NotAsked)
    }
    /// Whether such a class may be met only so often.
    pub fn has_limit(self) -> bool {
        matches!(self, Verdict::Open | Verdict::NotAsked)
    }
    fn keeps_to_rfc(self) -> bool {
        matches!(self, Verdict::NotOurs | Verdict::NotAsked)
    }
}

impl Classes {
    /// The committed ones.
    pub fn committed() -> Result<Classes, String> {
        Classes::read(TABLE)
    }
    /// Those of a table.
    pub fn read(text: &str) -> Result<Classes, String> {
        let table: Table = toml::from_str(text).map_err(|error| format!("differences.toml: {error}"))?;
        if let Some(class) =
            table.class.iter().find(|class| class.verdict.has_limit() != (class.most_percent > 0.0))
        {
            let name = &class.name;
            return Err(format!(
                "differences.toml: `{name}`: most_percent is for open and not-asked classes"
            ));
        }
        match table.class.iter().find(|class| class.verdict.keeps_to_rfc() && class.rfc.is_empty()) {
            Some(class) => Err(format!("differences.toml: `{}` keeps to an RFC: say which", class.name)),
            None => Ok(Classes(table.class)),
        }
    }
    /// The same without those that have a limit, so that each of their differences is printed.
    #[must_use]
    pub fn without_open(self) -> Classes {
        Classes(self.0.into_iter().filter(|class| !class.verdict.has_limit()).collect())
    }
    /// The class of a difference, if it is known.
    pub fn of(&self, signature: &str) -> Option<&Class> {
        let fits = |class: &&Class| class.signatures.iter().any(|pattern| matches(pattern, signature));
        self.0.iter().find(fits)
    }
    /// All of them.
    pub fn all(&self) -> &[Class] {
        &self.0
    }
}

/// Whether `text` fits `pattern`, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, fits) in [
            ("LISTEN: in SYN: kernel RST", true),
            ("LISTEN: *: kernel RST", true),
            ("*", true),
            ("*in*RST", true),
            ("LISTEN", false),
            ("*SYN", false),
            ("in*RST", false),
            ("*SYN*SYN*", false),
        ] {
            assert_eq!(matches(pattern, "LISTEN: in SYN: kernel RST"), fits, "{pattern}");
        }
    }

    #[test]
    fn few_classes_are_not_ours_and_each_has_its_rfc() {
        let classes = Classes::committed().unwrap();
        let not_ours = classes.all().iter().filter(|class| class.verdict == Verdict::NotOurs).count();
        assert!(not_ours * 10 <= classes.all().len(), "{not_ours} of {}", classes.all().len());
        assert!(
            Classes::read("[[class]]\nname='all'\nsignatures=['*']\nverdict='not-ours'\nreason='so'")
                .is_err()
        );
    }
}
