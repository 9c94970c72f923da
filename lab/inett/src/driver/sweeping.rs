//! The points of a sweep, one after another.

use std::io;

use inhost_base::Endpoint;

use super::{RunError, Stop, run};
use crate::face::Face;
use crate::sweep::{Log, Point, Record, Sweep};

/// Points that may fail one after another before a sweep is given up.
const FAILURES_MAX: u32 = 3;

/// What the caller of a sweep is told.
#[derive(Debug)]
#[non_exhaustive]
pub enum Swept<'a> {
    /// A point begins.
    #[allow(missing_docs)]
    Begins { number: usize, of: usize, point: &'a Point },
    /// A point was measured before.
    WasDone(&'a Record),
    /// A point is over and written down.
    Done(&'a Record),
}

/// Measures every point that the log does not have, and writes each down as it ends. A point that failed is written down
/// with its reason; several in a row end the sweep, and another call goes on there. A point that the user stopped is not
/// written down.
///
/// # Errors
/// When the log cannot be written, or the server seems to be gone.
pub async fn run_sweep<F: Face>(
    face: &F,
    server: Endpoint,
    sweep: &Sweep,
    log: &mut Log,
    stop: &Stop,
    told: &mut dyn FnMut(Swept<'_>),
) -> Result<(), SweepRunError> {
    let mut failures = 0;
    for (index, point) in sweep.points().iter().enumerate() {
        if let Some(record) = log.measured(point) {
            told(Swept::WasDone(record));
            continue;
        }
        told(Swept::Begins { number: index + 1, of: sweep.points().len(), point });
        let result = run(face, server, &point.plan, stop, &mut |_| {}).await;
        if stop.is_stopped() {
            return Ok(());
        }
        let (outcome, failed) = match result {
            Ok(outcome) => (Some(outcome), None),
            Err(why) => (None, Some(why)),
        };
        let error = failed.as_ref().map(ToString::to_string);
        let record = Record { point: point.name.clone(), outcome, error };
        log.write(&record).map_err(SweepRunError::Log)?;
        told(Swept::Done(&record));
        match failed {
            None => failures = 0,
            Some(why) => {
                failures += 1;
                if failures >= FAILURES_MAX {
                    return Err(SweepRunError::Run(why));
                }
            }
        }
    }
    Ok(())
}

/// Why a sweep ended early.
#[derive(Debug)]
#[non_exhaustive]
pub enum SweepRunError {
    /// The log cannot be written.
    Log(io::Error),
    /// Several points in a row failed; the last one for this reason.
    Run(RunError),
}

impl core::fmt::Display for SweepRunError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            SweepRunError::Log(why) => write!(f, "the log cannot be written: {why}"),
            SweepRunError::Run(why) => {
                write!(f, "{FAILURES_MAX} points in a row failed, the last one: {why}")
            }
        }
    }
}
impl core::error::Error for SweepRunError {}
