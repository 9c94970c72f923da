//! What the file of an experiment says.

mod checks;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::kinds;
use crate::tables::{self, NoFigure};

/// Most points of an experiment.
pub const POINTS_MAX: usize = 100_000;
/// Most seeds of a point.
pub const SEEDS_MAX: u64 = 1000;
/// Most runs of an experiment: points times seeds.
pub const RUNS_MAX: usize = 1_000_000;

/// To which set an experiment belongs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Set {
    /// What the four papers measured.
    Papers,
    /// The same on this machine.
    Today,
    /// Results of the field that are taught.
    Classic,
    /// A user's own.
    #[default]
    Own,
}

impl Set {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Set::Papers => "papers",
            Set::Today => "today",
            Set::Classic => "classic",
            Set::Own => "own",
        }
    }
}

/// On what a setup is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The machines of then, in virtual time.
    Machines,
    /// This machine, by inett.
    Inett,
    /// Results of the field, in virtual time.
    Classic,
    /// This machine, by transactions of user-level protocols.
    Protocol,
    /// This program: how long its code is.
    Code,
}

/// A list of values for a key: in the file, or in the papers' tables.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
enum Values {
    List(Vec<toml::Value>),
    Path(String),
}

/// Figures of a source: in the papers' tables, or as they stand here.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Figures {
    /// A path in the tables.
    Path(String),
    /// One.
    One(f64),
    /// Several.
    Several(Vec<f64>),
}

impl Figures {
    /// The numbers.
    ///
    /// # Errors
    /// The tables have none at the path, or the list is empty.
    pub fn numbers(&self) -> Result<Vec<f64>, NoFigure> {
        match self {
            Figures::Path(path) => tables::numbers(path),
            Figures::One(number) => Ok(vec![*number]),
            Figures::Several(list) if list.is_empty() => Err(NoFigure::empty()),
            Figures::Several(list) => Ok(list.clone()),
        }
    }
}

/// Which points: for each key its value, or a list of which it has one.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct At(BTreeMap<String, toml::Value>);

impl At {
    /// Whether a point is one of them.
    pub fn has(&self, point: &Point) -> bool {
        self.0.iter().all(|(key, wanted)| point.values.get(key).is_some_and(|value| is_one_of(value, wanted)))
    }
    /// The keys with what is wanted of them, as text.
    pub fn text(&self) -> String {
        let one = |(key, wanted): (&String, &toml::Value)| format!("{key} = {wanted}");
        self.0.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// Whether a value is the one that is wanted, or in the list of those.
fn is_one_of(value: &toml::Value, wanted: &toml::Value) -> bool {
    let is = |wanted: &toml::Value| {
        value == wanted || number(value).is_some_and(|value| number(wanted) == Some(value))
    };
    is(wanted) || wanted.as_array().is_some_and(|list| list.iter().any(is))
}

/// The text of an experiment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    title: String,
    source: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    set: Set,
    kind: Kind,
    #[serde(default = "one")]
    seeds: u64,
    setup: toml::Table,
    #[serde(default)]
    vary: Vec<BTreeMap<String, Values>>,
    #[serde(default)]
    compare: Vec<Compare>,
    #[serde(default)]
    shape: Vec<Shape>,
    #[serde(default)]
    fit: Vec<Fit>,
    #[serde(default)]
    plot: Vec<Plot>,
    #[serde(default)]
    show: Vec<String>,
}

fn one() -> u64 {
    1
}
fn unit() -> f64 {
    1.0
}

/// What the source prints for a measure.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// The measure, by its name.
    pub measure: String,
    /// The source's values: a path in the papers' tables, or numbers; one for each point, or for each value of `along`.
    paper: Option<Figures>,
    /// Another word for `paper`; a file has one of them.
    value: Option<Figures>,
    /// The values of what varies first to which `paper` belongs. Default: all, in their order.
    pub along: Option<Figures>,
    /// What the source's values are multiplied by, so that they have our unit.
    #[serde(default = "unit")]
    pub scale: f64,
    /// Only at points with these values.
    #[serde(default)]
    pub at: At,
    /// Shown, and not judged, at points with one of these values.
    #[serde(default)]
    pub shown_at: BTreeMap<String, Vec<toml::Value>>,
    /// How far ours may be from the paper's, in percent of it. Without it, the figure is shown and not judged.
    pub tolerance_percent: Option<f64>,
    /// How far it may be, in the measure's own unit; for shares and differences.
    pub tolerance: Option<f64>,
    /// What it is, such as "measured" or "predicted".
    #[serde(default)]
    pub what: String,
    /// Why it is missed, or not judged.
    #[serde(default)]
    pub note: String,
}

impl Compare {
    /// The source's values.
    ///
    /// # Errors
    /// The tables have none, or the list is empty.
    pub fn numbers(&self) -> Result<Vec<f64>, NoFigure> {
        self.paper.as_ref().or(self.value.as_ref()).map_or_else(|| Err(NoFigure::empty()), Figures::numbers)
    }
}

/// What a curve has to be like, where a law or a source gives its shape.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// The measure.
    pub measure: String,
    /// How it goes along the points, in their order.
    pub is: Going,
    /// Only at points with these values.
    #[serde(default)]
    pub at: At,
    /// What the numbers are for "between": the least and the most.
    #[serde(default)]
    pub range: Vec<f64>,
    /// What may go the other way from point to point, in percent.
    #[serde(default)]
    pub slack_percent: f64,
    /// Who says so.
    #[serde(default)]
    pub law: String,
}

/// A sum to which a measure is fitted.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// The measure.
    pub measure: String,
    /// Keys that vary and have a fit for each of their values.
    #[serde(default)]
    pub by: Keys,
    /// The terms, up to [`TERMS_MAX`](crate::fit::TERMS_MAX).
    pub term: Vec<Term>,
}

/// A factor times a sum of measures and keys.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// The factor's name, which ends with its unit.
    pub name: String,
    /// What it is multiplied by: measures, and keys that vary, which are added. None: it is a constant.
    #[serde(default)]
    pub of: Vec<String>,
    /// What the factor is multiplied by to have its unit.
    #[serde(default = "unit")]
    pub scale: f64,
    /// What the source prints: a path in the papers' tables, or a number.
    paper: Option<Figures>,
    /// Another word for `paper`.
    value: Option<Figures>,
    /// What the source's value is multiplied by.
    #[serde(default = "unit")]
    pub paper_scale: f64,
    /// How far ours may be, in percent.
    pub tolerance_percent: Option<f64>,
}

impl Term {
    /// What the source prints.
    pub fn printed(&self) -> Option<f64> {
        let figures = self.paper.as_ref().or(self.value.as_ref())?;
        figures.numbers().ok()?.first().copied()
    }
}

/// How a measure goes along the points.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Going {
    /// It grows.
    Rises,
    /// It shrinks.
    Falls,
    /// It stays within `range` everywhere.
    Between,
}

/// A curve.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// What goes to the right: a key that varies, or a measure.
    pub x: String,
    /// What goes up: measures.
    pub y: Vec<String>,
    /// What the horizontal axis says, with its unit.
    pub x_label: String,
    /// What the vertical axis says, with its unit.
    pub y_label: String,
    /// Keys that vary and have a curve for each of their values.
    #[serde(default)]
    pub by: Keys,
    /// Only points with these values.
    #[serde(default)]
    pub at: At,
    /// Whether the horizontal axis is logarithmic.
    #[serde(default)]
    pub log_x: bool,
    /// Whether the vertical axis is logarithmic.
    #[serde(default)]
    pub log_y: bool,
}

/// One key, or several.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Keys {
    /// One.
    One(String),
    /// Several, or none.
    Several(Vec<String>),
}

impl Default for Keys {
    fn default() -> Self {
        Keys::Several(Vec::new())
    }
}

impl Keys {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let keys = match self {
            Keys::One(key) => std::slice::from_ref(key),
            Keys::Several(keys) => keys,
        };
        keys.iter().map(String::as_str)
    }
}

/// An experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// In a line.
    pub title: String,
    /// Who published it, and where.
    pub source: String,
    /// The method, and where its constants are from.
    pub about: String,
    /// To which set it belongs.
    pub set: Set,
    /// On what it runs.
    pub kind: Kind,
    /// How many seeds each point has, from 1.
    pub seeds: u64,
    /// Which measures its table shows; all if there are none.
    pub show: Vec<String>,
    /// What the source prints.
    pub compare: Vec<Compare>,
    /// What curves have to be like.
    pub shape: Vec<Shape>,
    /// Sums to which measures are fitted.
    pub fit: Vec<Fit>,
    /// What is drawn.
    pub plot: Vec<Plot>,
    setup: toml::Table,
    vary: Vec<Axis>,
}

/// Keys whose values go together: the first of each, the second of each, and so on.
#[derive(Clone, PartialEq, Debug)]
struct Axis {
    keys: Vec<(String, Vec<toml::Value>)>,
    length: usize,
}

/// A point: a setup with the values that are its own.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Its number, from 0.
    pub number: usize,
    /// The values that make it, for people: the last part of each key, and its value.
    pub label: String,
    /// The values by key.
    pub values: BTreeMap<String, toml::Value>,
    /// The whole setup.
    pub setup: toml::Table,
}

impl Point {
    /// What it is called by `keys`: their values, for people.
    pub fn named(&self, keys: &Keys) -> Option<String> {
        let one = |key| Some(label(key, self.values.get(key)?));
        let names: Vec<String> = keys.iter().filter_map(one).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
    /// A value that varies, as a number.
    pub fn number_of(&self, key: &str) -> Option<f64> {
        self.values.get(key).and_then(number)
    }
    /// A value that varies, where it is a text.
    pub fn text_of(&self, key: &str) -> Option<&str> {
        self.values.get(key).and_then(toml::Value::as_str)
    }
}

/// A value that varies, for people.
fn label(key: &str, value: &toml::Value) -> String {
    let mut parts = key.rsplit('.');
    let name = match (parts.next().unwrap_or(key), parts.next()) {
        // The kind of what?
        ("kind", Some(of)) => of,
        (last, _) => last,
    };
    let name = name.replace('_', " ");
    match value {
        toml::Value::Boolean(true) => name,
        toml::Value::Boolean(false) => format!("no {name}"),
        toml::Value::String(value) => format!("{name} {value}"),
        value => format!("{name} {value}"),
    }
}

/// A value as a number.
pub(crate) fn number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

impl Experiment {
    /// From a file's text. `name` is what it is called.
    ///
    /// # Errors
    /// When the text is not an experiment.
    pub fn from_toml(name: &str, text: &str) -> Result<Experiment, ExperimentError> {
        let wrong = |why: String| ExperimentError(format!("{name}: {why}"));
        let text: Text = toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(0, |span| text[..span.start].lines().count().max(1));
            wrong(format!("line {line}: {}", e.message()))
        })?;
        for (key, value) in [("title", &text.title), ("source", &text.source)] {
            if value.contains(char::is_control) {
                return Err(wrong(format!("{key} has control characters: {value:?}")));
            }
        }
        let vary = text.vary.into_iter().map(|keys| axis(&text.setup, keys).map_err(wrong));
        let vary = vary.collect::<Result<Vec<_>, _>>()?;
        let points = vary.iter().try_fold(1_usize, |points, axis| points.checked_mul(axis.length));
        if points.is_none_or(|points| points == 0 || points > POINTS_MAX) {
            return Err(wrong(format!("it has no points, or more than {POINTS_MAX}")));
        }
        if !(1..=SEEDS_MAX).contains(&text.seeds) {
            return Err(wrong(format!("seeds = {}: give 1 to {SEEDS_MAX}", text.seeds)));
        }
        if points.unwrap_or(0) * text.seeds as usize > RUNS_MAX {
            return Err(wrong(format!("points times seeds are more than {RUNS_MAX} runs")));
        }
        let experiment = Experiment {
            name: name.to_owned(),
            title: text.title,
            source: text.source,
            about: text.about,
            set: text.set,
            kind: text.kind,
            seeds: text.seeds,
            show: text.show,
            compare: text.compare,
            shape: text.shape,
            fit: text.fit,
            plot: text.plot,
            setup: text.setup,
            vary,
        };
        experiment.check().map_err(wrong)?;
        kinds::check(experiment.kind, &experiment.point(0).setup).map_err(|e| wrong(e.to_string()))?;
        Ok(experiment)
    }
    /// How many points it has.
    pub fn points(&self) -> usize {
        self.vary.iter().map(|axis| axis.length).product()
    }
    /// The keys that vary, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.vary.iter().flat_map(|axis| axis.keys.iter().map(|(key, _)| key.as_str()))
    }
    /// A point by its number. The last of what varies changes first.
    pub fn point(&self, number: usize) -> Point {
        let (mut setup, mut values, mut rest) = (self.setup.clone(), BTreeMap::new(), number);
        let mut labels = Vec::new();
        for axis in self.vary.iter().rev() {
            let at = rest % axis.length;
            rest /= axis.length;
            for (key, list) in axis.keys.iter().rev() {
                labels.push(label(key, &list[at]));
                set(&mut setup, key, list[at].clone());
                values.insert(key.clone(), list[at].clone());
            }
        }
        labels.reverse();
        Point { number, label: labels.join(", "), values, setup }
    }
}

fn axis(setup: &toml::Table, keys: BTreeMap<String, Values>) -> Result<Axis, String> {
    let mut found = Vec::new();
    for (key, values) in keys {
        let list = match values {
            Values::List(list) => list,
            // Whole numbers of the tables are whole numbers of a setup.
            Values::Path(path) => {
                let numbers = tables::numbers(&path).map_err(|e| e.to_string())?;
                let whole = |number: f64| match number.fract() == 0.0 {
                    true => toml::Value::Integer(number as i64),
                    false => toml::Value::Float(number),
                };
                numbers.into_iter().map(whole).collect()
            }
        };
        if !has_place(setup, &key) {
            return Err(format!("vary {key}: the setup has no table for it"));
        }
        found.push((key, list));
    }
    let length = found.first().map_or(0, |(_, list)| list.len());
    if found.iter().any(|(_, list)| list.len() != length) {
        return Err("the lists of one [[vary]] go together, and have the same length".to_owned());
    }
    Ok(Axis { keys: found, length })
}

/// Whether the tables above a key are there.
fn has_place(setup: &toml::Table, key: &str) -> bool {
    match key.split_once('.') {
        None => true,
        Some((first, rest)) => {
            setup.get(first).and_then(toml::Value::as_table).is_some_and(|table| has_place(table, rest))
        }
    }
}

fn set(table: &mut toml::Table, key: &str, value: toml::Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
        }
        Some((first, rest)) => {
            if let Some(inner) = table.get_mut(first).and_then(toml::Value::as_table_mut) {
                set(inner, rest, value);
            }
        }
    }
}

/// What is wrong with an experiment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExperimentError(String);

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for ExperimentError {}
