//! The situations, a file a family. Each function makes one from drawn parameters, within ranges in which the truth stays
//! what its name says; the run checks that, and draws again where it does not hold.

mod application;
mod backup;
mod bottleneck;
mod device;
mod faults;
mod handshake;
mod loss;
mod mobile;
mod path;
mod shell;
mod slow_start;
mod small;
mod stream;
mod web;
mod window;

use super::situation::Recipe;

/// Families by somebody who had not read the rules of `inhost explain`: they are judged in the last run only.
pub const LAST: &[&str] = &["web", "backup", "shell", "stream", "mobile", "faults"];

/// Every situation, family by family.
pub fn all() -> Vec<Recipe> {
    let families = [
        window::recipes,
        application::recipes,
        slow_start::recipes,
        small::recipes,
        bottleneck::recipes,
        loss::recipes,
        path::recipes,
        device::recipes,
        handshake::recipes,
        web::recipes,
        backup::recipes,
        shell::recipes,
        stream::recipes,
        mobile::recipes,
        faults::recipes,
    ];
    families.iter().flat_map(|recipes| recipes()).collect()
}

/// What most situations share: a client that sends, a server that reads.
mod common {
    use crate::explain::path::Plan;
    use crate::explain::script::{Settings, Step, write};
    use crate::explain::situation::{Expected, Side, Situation};
    use inhost_base::Duration;
    use inhost_explain::Cause;

    /// Why a pause of the application cannot be known at the receiver.
    pub const IDLE_AT_RECEIVER: &str = "at the receiver an idle application looks like a lost last segment upstream (docs/explain-causes.md)";
    /// Why a pause for the retransmission timer cannot be known at the receiver.
    pub const TIMER_AT_RECEIVER: &str = "at the receiver a pause before a retransmission looks like an idle application (docs/explain-causes.md)";
    /// What such a pause looks like.
    pub const LIKE_IDLE: [Cause; 4] =
        [Cause::ApplicationIdle, Cause::AwaitingPeer, Cause::ThinkTime, Cause::AwaitingAcknowledgment];

    /// A client that sends so many bytes to a server that reads.
    pub fn upload(about: String, bytes: usize, path: Plan, expected: Expected) -> Situation {
        Situation {
            about,
            sides: [side(vec![write(bytes)]), side(vec![Step::ReadToEnd])],
            path,
            expected,
            limit: Duration::from_secs(12),
            ours: 0,
        }
    }
    /// A host as it comes, with a program.
    pub fn side(script: Vec<Step>) -> Side {
        Side { script, settings: Settings::default() }
    }
    /// Bytes that a rate in bits carries in so many seconds.
    pub fn bytes_at(rate: u64, seconds: f64) -> usize {
        (rate as f64 * seconds / 8.0) as usize
    }
    /// Bytes that a window carries in so many seconds.
    pub fn bytes_through(window: u64, round_trip: Duration, seconds: f64) -> usize {
        (window as f64 * seconds / round_trip.as_secs_f64()) as usize
    }
    /// Requests of the client and answers of the server, which thinks before each.
    pub fn talk(times: usize, request: usize, answer: usize, think: Duration) -> [Side; 2] {
        let client = vec![Step::Repeat(times, vec![write(request), Step::Read(answer)])];
        let server = vec![Step::Repeat(times, vec![Step::Read(request), Step::Wait(think), write(answer)])];
        [client, server].map(side)
    }
}
