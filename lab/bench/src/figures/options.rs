//! The options of the figures' commands: `--name value`, and `--flag`.

/// What was given, and not yet asked for.
pub struct Options(Vec<String>);

impl Options {
    /// Of the words after the command.
    pub fn new(words: &[&str]) -> Options {
        Options(words.iter().map(|word| (*word).to_owned()).collect())
    }
    /// Whether `--name` was given.
    pub fn flag(&mut self, name: &str) -> bool {
        let found = self.0.iter().position(|word| word == name);
        found.map(|place| self.0.remove(place)).is_some()
    }
    /// The value of `--name`, of whatever kind is wanted.
    pub fn value<T: std::str::FromStr>(&mut self, name: &str) -> Result<Option<T>, String> {
        let Some(place) = self.0.iter().position(|word| word == name) else { return Ok(None) };
        if place + 1 >= self.0.len() {
            return Err(format!("{name} needs a value"));
        }
        self.0.remove(place);
        let word = self.0.remove(place);
        word.parse().map(Some).map_err(|_| format!("{name} cannot be {word:?}"))
    }
    /// The values of `--name`, between commas.
    pub fn list(&mut self, name: &str) -> Result<Vec<String>, String> {
        let words: Option<String> = self.value(name)?;
        Ok(words.map(|words| words.split(',').map(str::to_owned).collect()).unwrap_or_default())
    }
    /// Fails when something is left.
    pub fn end(self) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some(word) => Err(format!("{word:?} is not understood here")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_given_is_asked_for() {
        let mut options = Options::new(&["--json", "--pairs", "3", "--cells", "a,b"]);
        assert!(options.flag("--json") && !options.flag("--json"));
        assert_eq!(options.value("--pairs"), Ok(Some(3)));
        assert_eq!(options.list("--cells"), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(options.value::<u32>("--none"), Ok(None));
        assert_eq!(options.end(), Ok(()));
        assert!(Options::new(&["--pairs"]).value::<u32>("--pairs").is_err());
        assert!(Options::new(&["--pairs", "x"]).value::<u32>("--pairs").is_err());
        assert!(Options::new(&["--what"]).end().is_err());
    }
}
