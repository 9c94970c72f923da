//! Rules as JSON: the keys of the text are the fields.

use serde_json::{Map, Value};

use super::rule::Rule;
use super::text::{RuleError, words};

/// Keys whose values are numbers in JSON.
const NUMBERS: [&str; 5] = ["after", "first", "every", "rate", "sessions-over"];

/// A rule as JSON: `{"recipient": "*@full.example", "reply": "452 4.2.2 Mailbox full", "first": 3}`.
impl TryFrom<&Map<String, Value>> for Rule {
    type Error = RuleError;
    fn try_from(fields: &Map<String, Value>) -> Result<Rule, RuleError> {
        let word = |(key, value): (&String, &Value)| match value {
            Value::Bool(false) | Value::Null => Ok(String::new()),
            Value::Bool(true) => Ok(key.clone()),
            Value::Number(number) => Ok(format!("{key}={number}")),
            Value::String(text) => {
                Ok(format!("{key}=\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
            }
            _ => Err(RuleError::new(format!("{key}: give a text, a number or true"))),
        };
        if let Some(key) = fields.keys().find(|key| key.contains(|c: char| c == '=' || c.is_whitespace())) {
            return Err(RuleError::new(format!("{key}: not a key of a rule")));
        }
        fields.iter().map(word).collect::<Result<Vec<_>, _>>()?.join(" ").parse()
    }
}

/// The JSON of a rule.
impl From<&Rule> for Map<String, Value> {
    fn from(rule: &Rule) -> Map<String, Value> {
        let field = |(key, value): (String, Option<String>)| {
            let value = match value {
                None => Value::Bool(true),
                Some(text) if NUMBERS.contains(&&*key) => serde_json::from_str(&text).unwrap_or(Value::Null),
                Some(text) => Value::String(text),
            };
            (key, value)
        };
        words(&rule.to_string()).unwrap_or_default().into_iter().map(field).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_text_are_the_same_rule() {
        let rule: Rule = r#"recipient=*@full.example reply="452 4.2.2 Mailbox \"full\"" first=3 rate=0.5 drop"#.parse().unwrap();
        let json: Map<String, Value> = (&rule).into();
        let expected = r#"{"drop":true,"first":3,"rate":0.5,"recipient":"*@full.example","reply":"452 4.2.2 Mailbox \"full\"","stage":"recipient"}"#;
        assert_eq!(serde_json::to_string(&json).unwrap(), expected);
        assert_eq!(Rule::try_from(&json), Ok(rule));
        for wrong in
            [r#"{"drop":[]}"#, r#"{"drop =x":true}"#, r#"{"first":-1,"drop":true}"#, r#"{"drop":false}"#]
        {
            let json: Map<String, Value> = serde_json::from_str(wrong).unwrap();
            assert!(Rule::try_from(&json).is_err(), "{wrong}");
        }
    }
}
