//! `[instruments]` of `host.toml`.

use crate::failure::Failure;
use inhost_layers::{Mode, ONE_ROUND_IN};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Instruments that measure the host itself.
#[derive(Deserialize, Serialize, JsonSchema, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct Instruments {
    /// Rounds of which the time is measured layer by layer, for `inhost layers`: "off", "sampled" or "full". Default "off".
    pub layers: Mode,
    /// With "sampled", one round in so many. Default 64.
    pub layers_one_in: u32,
}

impl Instruments {
    /// Whether its values have a meaning.
    pub fn check(&self) -> Result<(), Failure> {
        match self.layers_one_in {
            1..=1_000_000 => Ok(()),
            rounds => {
                Err(Failure::setting("instruments.layers_one_in", rounds, "give rounds from 1 to 1000000"))
            }
        }
    }
}

impl Default for Instruments {
    fn default() -> Instruments {
        Instruments { layers: Mode::Off, layers_one_in: ONE_ROUND_IN }
    }
}
