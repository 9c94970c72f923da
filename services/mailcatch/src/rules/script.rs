//! A script: rules that change with time, as TOML.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use super::rule::Rule;
use super::text::RuleError;

/// The longest script.
const SCRIPT_BYTES: usize = 64 << 10;
/// The most steps.
const STEPS: usize = 100;
/// The most rules of a step.
const RULES_PER_STEP: usize = 100;

/// A sequence of steps. Behind the last one there are no rules.
///
/// ```
/// use inhost_mailcatch::rules::Script;
/// let script: Script = "
/// seed = 7                 # for what is left to chance
/// repeat = false           # whether the first step follows the last one
/// [[step]]
/// rules = ['stage=mail reply=\"451 4.7.1 Try again later\"']
/// fires = 2                # over when its rules have fired twice
/// [[step]]
/// seconds = 30             # or after that time from its first event
/// ".parse()?;
/// assert_eq!(script.steps.len(), 2);
/// # Ok::<(), inhost_mailcatch::rules::ScriptError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Script {
    /// Seed of what is left to chance.
    pub seed: Option<u64>,
    /// Whether the first step follows the last one.
    pub repeat: bool,
    /// The steps.
    pub steps: Vec<Step>,
}

/// A step of a script. Without an end it lasts.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The rules in force.
    pub rules: Vec<Rule>,
    /// It ends when they have fired so often.
    pub fires: Option<u64>,
    /// It ends after that time.
    pub seconds: Option<u64>,
}

/// What is wrong with a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScriptError(String);

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for ScriptError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    seed: Option<u64>,
    #[serde(default)]
    repeat: bool,
    #[serde(default)]
    step: Vec<FileStep>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileStep {
    #[serde(default)]
    rules: Vec<String>,
    fires: Option<u64>,
    seconds: Option<u64>,
}

impl FromStr for Script {
    type Err = ScriptError;
    fn from_str(text: &str) -> Result<Script, ScriptError> {
        if text.len() > SCRIPT_BYTES {
            return Err(ScriptError(format!("a script has at most {} KiB", SCRIPT_BYTES >> 10)));
        }
        let file: File = toml::from_str(text).map_err(|error| ScriptError(error.to_string()))?;
        if file.step.is_empty() || file.step.len() > STEPS {
            return Err(ScriptError(format!("a script has 1 to {STEPS} [[step]]")));
        }
        let step = |(at, step): (usize, FileStep)| {
            if step.rules.len() > RULES_PER_STEP {
                return Err(ScriptError(format!("step {}: at most {RULES_PER_STEP} rules", at + 1)));
            }
            let rule = |text: &String| text.parse();
            let rules: Result<Vec<Rule>, RuleError> = step.rules.iter().map(rule).collect();
            let rules = rules.map_err(|error| ScriptError(format!("step {}: {error}", at + 1)))?;
            Ok(Step { rules, fires: step.fires, seconds: step.seconds })
        };
        let steps = file.step.into_iter().enumerate().map(step).collect::<Result<_, _>>()?;
        Ok(Script { seed: file.seed, repeat: file.repeat, steps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_script_says_where() {
        for (text, word) in [
            ("", "[[step]]"),
            ("[[step]]\nrules = ['drop', 'dorp']", "step 1: dorp"),
            ("[[step]]\nruls = []", "ruls"),
            ("[[step]]\nseconds = -1", "seconds"),
        ] {
            let error = text.parse::<Script>().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
