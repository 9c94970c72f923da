//! Panels: what is shown, and what can be entered.

use std::collections::BTreeMap;

use crate::codec::{Aid, Color, Highlight};

/// Input fields of a panel; more are left out.
pub const INPUTS: usize = 64;
/// Lines of a panel that is text; more are left out.
pub const BODY_LINES: usize = 20_000;
/// The name of the input field of the command line.
pub const COMMAND: &str = "command";

/// How text looks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Style {
    /// Its colour, on terminals that have some.
    pub color: Color,
    /// Its highlighting, on terminals that have it.
    pub highlight: Highlight,
    /// Whether it is of high intensity.
    pub is_intense: bool,
}

impl Style {
    /// Ordinary text.
    pub const TEXT: Style = Style { color: Color::GREEN, highlight: Highlight::DEFAULT, is_intense: false };
    /// What stands before an input field.
    pub const LABEL: Style =
        Style { color: Color::TURQUOISE, highlight: Highlight::DEFAULT, is_intense: false };
    /// A title.
    pub const TITLE: Style = Style { color: Color::NEUTRAL, highlight: Highlight::DEFAULT, is_intense: true };
    /// A message of what went well.
    pub const NOTE: Style = Style { color: Color::YELLOW, highlight: Highlight::DEFAULT, is_intense: true };
    /// A message of what did not.
    pub const ERROR: Style = Style { color: Color::RED, highlight: Highlight::DEFAULT, is_intense: true };
    /// The names of keys.
    pub const KEYS: Style = Style { color: Color::BLUE, highlight: Highlight::DEFAULT, is_intense: false };
}

/// What an input field takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum InputKind {
    /// Characters.
    #[default]
    Text,
    /// Numbers; terminals with that feature refuse letters.
    Number,
    /// Characters that are not shown.
    Password,
}

/// What has to be true of a field's value when Enter is pressed. An empty value needs only to obey [`Rule::Required`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Rule {
    /// Something is entered.
    Required,
    /// A number within these, both included.
    Number(u64, u64),
    /// One of these, in any case of letters.
    OneOf(Vec<String>),
}

impl Rule {
    fn check(&self, label: &str, value: &str) -> Result<(), String> {
        match self {
            Rule::Required if value.is_empty() => Err(format!("Enter {label}")),
            _ if value.is_empty() => Ok(()),
            Rule::Required => Ok(()),
            Rule::Number(least, most) => match value.parse::<u64>() {
                Ok(number) if (*least..=*most).contains(&number) => Ok(()),
                _ => Err(format!("{label}: enter a number from {least} to {most}")),
            },
            Rule::OneOf(all) if all.iter().any(|one| one.eq_ignore_ascii_case(value)) => Ok(()),
            Rule::OneOf(all) => Err(format!("{label}: enter one of {}", all.join(", "))),
        }
    }
}

/// An input field.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Input {
    /// Its name, by which the value is found.
    pub name: String,
    /// What messages call it.
    pub label: String,
    /// Its row in the body, from 1.
    pub row: u16,
    /// The column of its first character, from 2: the attribute stands before it.
    pub column: u16,
    /// Its length; a field ends at the end of its row.
    pub length: u16,
    /// What stands in it at first.
    pub value: String,
    /// What it takes.
    pub kind: InputKind,
    /// What has to be true of it.
    pub rules: Vec<Rule>,
}

impl Input {
    /// An empty field for characters.
    pub fn new(name: &str, row: u16, column: u16, length: u16) -> Input {
        Input {
            name: name.to_owned(),
            label: name.to_owned(),
            row,
            column,
            length,
            value: String::new(),
            kind: InputKind::Text,
            rules: Vec::new(),
        }
    }
    /// The same, with what messages call it.
    #[must_use]
    pub fn called(mut self, label: &str) -> Input {
        self.label = label.to_owned();
        self
    }
    /// The same, with a value.
    #[must_use]
    pub fn holding(mut self, value: &str) -> Input {
        self.value = value.to_owned();
        self
    }
    /// The same, of another kind.
    #[must_use]
    pub fn of_kind(mut self, kind: InputKind) -> Input {
        self.kind = kind;
        self
    }
    /// The same, with another rule.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Input {
        self.rules.push(rule);
        self
    }
    /// The same; something has to be entered.
    #[must_use]
    pub fn required(self) -> Input {
        self.rule(Rule::Required)
    }
}

/// A part of a form.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Element {
    /// Text.
    Text {
        /// Its row in the body, from 1.
        row: u16,
        /// The column of its first character, from 2: an attribute stands before it.
        column: u16,
        /// The text; it ends at the end of its row.
        text: String,
        /// How it looks.
        style: Style,
    },
    /// An input field.
    Input(Input),
}

/// What is between the title and the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Body {
    /// Texts and input fields at their places.
    Form(Vec<Element>),
    /// Lines, through which PF7 and PF8 go.
    Lines(Vec<String>),
}

/// A message below the body.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Message {
    /// Something went well.
    Note(String),
    /// Something did not; the alarm sounds.
    Error(String),
}

/// What a terminal shows: a title, a body, a message, a command line, and the names of keys.
///
/// Text that the terminal's code page does not have is shown as question marks, control characters included.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Panel {
    /// Its name, at the left of the first row.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What is between title and command line.
    pub body: Body,
    /// Whether it has a command line.
    pub has_command: bool,
    /// Keys besides Enter that it takes, with what they do.
    pub keys: Vec<(Aid, String)>,
    /// The message.
    pub message: Option<Message>,
    /// The input field with the cursor; else it is in the first one.
    pub focus: Option<String>,
}

impl Panel {
    /// A form without elements.
    pub fn new(name: &str, title: &str) -> Panel {
        Panel {
            name: name.to_owned(),
            title: title.to_owned(),
            body: Body::Form(Vec::new()),
            has_command: false,
            keys: Vec::new(),
            message: None,
            focus: None,
        }
    }
    /// Lines of text, with a command line, and keys to go through them and to leave.
    pub fn lines(name: &str, title: &str, text: &str) -> Panel {
        let lines = text.lines().take(BODY_LINES).map(str::to_owned).collect();
        Panel { body: Body::Lines(lines), ..Panel::new(name, title) }
            .with_command()
            .key(Aid::Pf(3), "End")
            .key(Aid::Pf(7), "Up")
            .key(Aid::Pf(8), "Down")
    }
    /// The same form with a text.
    #[must_use]
    pub fn text(self, row: u16, column: u16, text: &str) -> Panel {
        self.styled(row, column, text, Style::LABEL)
    }
    /// The same form with a text of this look.
    #[must_use]
    pub fn styled(self, row: u16, column: u16, text: &str, style: Style) -> Panel {
        self.element(Element::Text { row, column, text: text.to_owned(), style })
    }
    /// The same form with an input field.
    #[must_use]
    pub fn input(self, input: Input) -> Panel {
        self.element(Element::Input(input))
    }
    fn element(mut self, element: Element) -> Panel {
        if let Body::Form(elements) = &mut self.body {
            elements.push(element);
        }
        self
    }
    /// The same with a command line.
    #[must_use]
    pub fn with_command(mut self) -> Panel {
        self.has_command = true;
        self
    }
    /// The same with a key and what it does.
    #[must_use]
    pub fn key(mut self, aid: Aid, purpose: &str) -> Panel {
        self.keys.push((aid, purpose.to_owned()));
        self
    }
    /// The same with a message of what went well.
    #[must_use]
    pub fn note(mut self, text: &str) -> Panel {
        self.message = Some(Message::Note(text.to_owned()));
        self
    }
    /// The same with a message of what did not go well.
    #[must_use]
    pub fn error(mut self, text: &str) -> Panel {
        self.message = Some(Message::Error(text.to_owned()));
        self
    }

    /// The input fields of the form.
    pub fn inputs(&self) -> impl Iterator<Item = &Input> {
        let elements = match &self.body {
            Body::Form(elements) => &elements[..],
            Body::Lines(_) => &[],
        };
        elements.iter().filter_map(|element| match element {
            Element::Input(input) => Some(input),
            Element::Text { .. } => None,
        })
    }
    /// Keeps what was entered, so that the panel shows it when it is shown again. Passwords are not kept.
    pub fn keep(&mut self, values: &BTreeMap<String, String>) {
        let Body::Form(elements) = &mut self.body else { return };
        for element in elements {
            if let Element::Input(input) = element
                && input.kind != InputKind::Password
                && let Some(value) = values.get(&input.name)
            {
                input.value.clone_from(value);
            }
        }
    }
    /// Whether the values obey the rules of their fields.
    ///
    /// # Errors
    ///
    /// The name of the first field whose value does not, and what to say.
    pub fn check(&self, values: &BTreeMap<String, String>) -> Result<(), (String, String)> {
        for input in self.inputs() {
            let value = values.get(&input.name).map_or("", String::as_str);
            for rule in &input.rules {
                rule.check(&input.label, value).map_err(|why| (input.name.clone(), why))?;
            }
        }
        Ok(())
    }
}
