//! The situations, a file a family. Each function makes one from drawn parameters, within ranges in which the truth stays
//! what its name says; the run checks that, and draws again where it does not hold.

mod application;
mod bottleneck;
mod device;
mod handshake;
mod loss;
mod path;
mod slow_start;
mod small;
mod window;

use super::situation::Recipe;

/// Families that are tried in the last run only, unless they are asked for.
pub const LAST: &[&str] = &[];

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
    ];
    families.iter().flat_map(|recipes| recipes()).collect()
}

/// What most situations share: a client that sends, a server that reads.
mod common {
    use crate::explain::path::Plan;
    use crate::explain::script::{Settings, Step, write};
    use crate::explain::situation::{Expected, Side, Situation};
    use inhost_base::Duration;

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
    /// Requests of the client and answers of the server, which thinks before each.
    pub fn talk(times: usize, request: usize, answer: usize, think: Duration) -> [Side; 2] {
        let client = vec![Step::Repeat(times, vec![write(request), Step::Read(answer)])];
        let server = vec![Step::Repeat(times, vec![Step::Read(request), Step::Wait(think), write(answer)])];
        [client, server].map(side)
    }
}
