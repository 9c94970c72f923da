//! A grid of plans: a plan and lists of values for any of its keys. Each point is written down as it ends, so that a sweep
//! that was interrupted goes on where it was.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use inhost_base::Random;
use serde::{Deserialize, Serialize};

use crate::plan::{Plan, PlanError};
use crate::result::Outcome;

/// Most points of a sweep.
pub const POINTS_MAX: usize = 10_000;
/// Most bytes of a line of the log of a sweep; longer ones are taken for rubbish.
pub const LINE_MAX_BYTES: u64 = 16 << 20;

/// A sweep as a file says it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    /// What all points share.
    #[serde(default)]
    plan: toml::Table,
    /// Values by key of the plan.
    #[serde(default)]
    values: BTreeMap<String, Vec<toml::Value>>,
    /// Seed of the order; 0 is the order of the file.
    #[serde(default)]
    order_seed: u64,
}

/// One point of the grid.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Its name: the values that make it, as TOML.
    pub name: String,
    /// What is measured there.
    pub plan: Plan,
}

/// A sweep: points in the order in which they are measured.
///
/// ```
/// use inhost_inett::sweep::Sweep;
/// let sweep = Sweep::from_toml("[plan]\ntime_ms = 500\n[values]\nwrite_bytes = [512, 8192]\nload = [0, 1, 2]")?;
/// assert_eq!(sweep.points().len(), 6);
/// assert_eq!(sweep.points()[0].name, "load = 0, write_bytes = 512");
/// # Ok::<(), inhost_inett::sweep::SweepError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Sweep {
    points: Vec<Point>,
}

impl Sweep {
    /// From a file's text: a table `plan`, a table `values` with a list for each key, and `order_seed`. A seed other than
    /// 0 mixes the order, so that a slow change of the network does not look like an effect of a key.
    ///
    /// # Errors
    /// When the text is not a sweep, has too many points, or a point cannot be measured.
    pub fn from_toml(text: &str) -> Result<Sweep, SweepError> {
        let text: Text = toml::from_str(text).map_err(|why| SweepError::Text(why.message().to_owned()))?;
        let count = text.values.values().try_fold(1_usize, |count, list| count.checked_mul(list.len()));
        match count {
            Some(0) => return Err(SweepError::NoValues),
            Some(count) if count <= POINTS_MAX => {}
            _ => return Err(SweepError::TooMany),
        }
        let mut tables = vec![(Vec::new(), text.plan)];
        for (key, list) in &text.values {
            let with = |(names, table): (Vec<String>, toml::Table)| {
                list.iter().map(move |value| {
                    let (mut names, mut table) = (names.clone(), table.clone());
                    names.push(format!("{key} = {value}"));
                    table.insert(key.clone(), value.clone());
                    (names, table)
                })
            };
            tables = tables.into_iter().flat_map(with).collect();
        }
        let point = |(names, table): (Vec<String>, toml::Table)| {
            let name = names.join(", ");
            let plan: Plan = table
                .try_into()
                .map_err(|why: toml::de::Error| SweepError::Point(name.clone(), why.message().to_owned()))?;
            plan.validate().map_err(|why| SweepError::Plan(name.clone(), why))?;
            Ok(Point { name, plan })
        };
        let mut points = tables.into_iter().map(point).collect::<Result<Vec<_>, SweepError>>()?;
        if text.order_seed != 0 {
            let mut random = Random::from_number(text.order_seed);
            for last in (1..points.len()).rev() {
                points.swap(last, random.public_below(last as u32 + 1) as usize);
            }
        }
        Ok(Sweep { points })
    }
    /// Every point, in the order in which they are measured.
    pub fn points(&self) -> &[Point] {
        &self.points
    }
}

/// One line of the log.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The point's name.
    pub point: String,
    /// What was measured; none where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The log of a sweep: JSON lines, each on the disk before the next point begins.
#[derive(Debug)]
pub struct Log {
    file: File,
    /// What was measured, by the point's name.
    done: BTreeMap<String, Record>,
}

impl Log {
    /// Opens or makes the file, and reads which points are done. A last line that was cut off is removed.
    ///
    /// # Errors
    /// When the file cannot be opened, read or written, or is not a regular one: others may never end.
    pub fn open(path: &Path) -> io::Result<Log> {
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            let why = "it is not a regular file; points of a sweep are written to one and read again";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let (mut done, mut whole) = (BTreeMap::new(), 0);
        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let count = reader.by_ref().take(LINE_MAX_BYTES).read_until(b'\n', &mut line)?;
            if count == 0 {
                break;
            }
            if line.last() != Some(&b'\n') && (count as u64) < LINE_MAX_BYTES {
                file.set_len(whole)?;
                break;
            }
            whole += count as u64;
            if let Ok(record) = serde_json::from_slice::<Record>(&line) {
                take(&mut done, record);
            }
        }
        Ok(Log { file, done })
    }
    /// What was measured at a point: under this name and with this plan. The name has only the values that differ, and the
    /// rest of the file may have changed since.
    pub fn measured(&self, point: &Point) -> Option<&Record> {
        let plan = written(&point.plan);
        let is_of = |record: &&Record| record.outcome.as_ref().map(|outcome| &outcome.plan) == plan.as_ref();
        self.done.get(&point.name).filter(is_of)
    }
    /// Whether a point is done.
    pub fn has(&self, point: &Point) -> bool {
        self.measured(point).is_some()
    }
    /// Writes a record, and waits until it is on the disk.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.sync_data()?;
        take(&mut self.done, serde_json::from_slice(&line)?);
        Ok(())
    }
}

/// Takes a record, except of a point that failed, which is to be measured again.
fn take(done: &mut BTreeMap<String, Record>, record: Record) {
    if record.outcome.as_ref().is_some_and(|outcome| outcome.summary.is_some()) {
        done.insert(record.point.clone(), record);
    }
}

/// A plan as it comes back from the log: reading JSON may round a number.
fn written(plan: &Plan) -> Option<Plan> {
    serde_json::from_slice(&serde_json::to_vec(plan).ok()?).ok()
}

/// Why a sweep cannot be.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum SweepError {
    /// The text is not a sweep.
    Text(String),
    /// A point is not a plan.
    Point(String, String),
    /// A point cannot be measured.
    Plan(String, PlanError),
    /// A list of values is empty.
    NoValues,
    /// There are more than [`POINTS_MAX`] points.
    TooMany,
}

impl core::fmt::Display for SweepError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            SweepError::Text(why) => f.write_str(why),
            SweepError::Point(name, why) => write!(f, "the point {name}: {why}"),
            SweepError::Plan(name, why) => write!(f, "the point {name}: {why}"),
            SweepError::NoValues => f.write_str("a key has an empty list of values"),
            SweepError::TooMany => write!(f, "there are more than {POINTS_MAX} points"),
        }
    }
}
impl core::error::Error for SweepError {}
