//! `inhost doctor`: what works on this machine, and what to do about the rest.

mod network;
mod system;

use crate::args::Doctor;
use crate::failure::Failure;
use crate::style::Style;
use inhost_base::Duration;
use serde_json::{Value, json};

/// How far something works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// It works.
    Works,
    /// Something is missing that only some uses need.
    Limited,
    /// Something that every user needs does not work.
    Fails,
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Finding {
    subject: &'static str,
    state: State,
    /// The finding, in one line.
    text: String,
    /// How to mend it, for what does not work.
    advice: Option<String>,
}

impl Finding {
    fn works(subject: &'static str, text: impl Into<String>) -> Finding {
        Finding { subject, state: State::Works, text: text.into(), advice: None }
    }
    fn limited(subject: &'static str, text: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { subject, state: State::Limited, text: text.into(), advice: Some(advice.into()) }
    }
    fn fails(subject: &'static str, text: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { subject, state: State::Fails, text: text.into(), advice: Some(advice.into()) }
    }
    fn json(&self) -> Value {
        json!({
            "subject": self.subject, "state": self.state.word(), "finding": self.text, "advice": self.advice,
        })
    }
    fn shown(&self, style: Style) -> String {
        let word = format!("{:<8}", self.state.word());
        let word = match self.state {
            State::Works => style.good(&word),
            State::Limited => style.warning(&word),
            State::Fails => style.bad(&word),
        };
        let advice =
            self.advice.as_ref().map(|advice| format!("{:29}try: {advice}\n", "")).unwrap_or_default();
        format!("{word} {:<19} {}\n{advice}", self.subject, self.text)
    }
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Works => "ok",
            State::Limited => "limited",
            State::Fails => "fails",
        }
    }
}

/// Looks at everything, and says what was found.
pub fn run(arguments: &Doctor) -> Result<(), Failure> {
    let wait = Duration::from_secs(arguments.timeout.into());
    let mut findings = vec![
        system::privileges(),
        system::tunnel_device(),
        system::ping(),
        system::descriptors(),
        system::runtime_folder(),
        system::control_socket(),
    ];
    findings.extend(network::look(wait));
    let failed: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.state == State::Fails)
        .map(|finding| finding.subject)
        .collect();
    let out = std::io::stdout();
    let text = if arguments.json {
        let findings: Vec<Value> = findings.iter().map(Finding::json).collect();
        format!("{}\n", json!({ "ok": failed.is_empty(), "findings": findings }))
    } else {
        let style = Style::of(&out);
        findings.iter().map(|finding| finding.shown(style)).collect()
    };
    crate::output::show(&text);
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::operation(format!("these do not work here: {}", failed.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_its_state_and_what_to_do() {
        let fine = Finding::works("descriptors", "1024 open at once");
        assert_eq!(fine.shown(Style::PLAIN), "ok       descriptors         1024 open at once\n");
        let wrong = Finding::fails("resolver", "nobody answers", "name another");
        assert!(wrong.shown(Style::PLAIN).lines().nth(1).unwrap().trim().starts_with("try: name another"));
        assert_eq!(wrong.json()["state"], "fails");
        assert_eq!(wrong.json()["advice"], "name another");
    }
}
