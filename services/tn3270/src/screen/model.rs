//! Models of terminals.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::codec::CodePage;

/// The model of a 3278 or 3279, which says how large its alternate screen is. The default screen has 24 rows of 80
/// columns for all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum Model {
    /// 24 rows of 80 columns.
    #[default]
    Two,
    /// 32 rows of 80 columns.
    Three,
    /// 43 rows of 80 columns.
    Four,
    /// 27 rows of 132 columns.
    Five,
}

impl Model {
    /// Every model.
    pub const ALL: [Model; 4] = [Model::Two, Model::Three, Model::Four, Model::Five];

    /// Its number, 2 to 5.
    pub fn number(self) -> u8 {
        match self {
            Model::Two => 2,
            Model::Three => 3,
            Model::Four => 4,
            Model::Five => 5,
        }
    }
    /// Rows and columns of the alternate size.
    pub fn alternate(self) -> (u16, u16) {
        match self {
            Model::Two => (24, 80),
            Model::Three => (32, 80),
            Model::Four => (43, 80),
            Model::Five => (27, 132),
        }
    }
    /// The model of a terminal type: IBM-3278-4-E, IBM-3279-2 … `None` where it names none.
    pub fn of_terminal_type(name: &str) -> Option<Model> {
        let upper = name.to_ascii_uppercase();
        let rest =
            ["IBM-3277-", "IBM-3278-", "IBM-3279-"].iter().find_map(|head| upper.strip_prefix(head))?;
        let digit = rest.split(['-', '@']).next()?;
        digit.parse::<u8>().ok()?.try_into().ok()
    }
}

impl From<Model> for u8 {
    fn from(model: Model) -> u8 {
        model.number()
    }
}

/// A number that is not that of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownModel;

impl fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a model is a number from 2 to 5")
    }
}
impl core::error::Error for UnknownModel {}

impl TryFrom<u8> for Model {
    type Error = UnknownModel;
    fn try_from(number: u8) -> Result<Model, UnknownModel> {
        Model::ALL.into_iter().find(|model| model.number() == number).ok_or(UnknownModel)
    }
}

impl FromStr for Model {
    type Err = UnknownModel;
    fn from_str(text: &str) -> Result<Model, UnknownModel> {
        text.parse::<u8>().map_err(|_| UnknownModel)?.try_into()
    }
}

/// What a terminal is.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ScreenConfig {
    /// Its model. Default 2.
    pub model: Model,
    /// Its code page. Default 037.
    pub code_page: CodePage,
    /// Whether it has colours (3279). Default true.
    pub has_color: bool,
    /// Whether it has extended attributes and structured fields (`-E`). Default true.
    pub is_extended: bool,
    /// Whether fields that are numeric refuse letters. Default false: it is an optional feature of the terminals.
    pub has_numeric_lock: bool,
    /// The most octets of a structured field of a file transfer, either way. Default 4096.
    pub transfer_bytes: u16,
}

impl Default for ScreenConfig {
    fn default() -> Self {
        ScreenConfig {
            model: Model::default(),
            code_page: CodePage::default(),
            has_color: true,
            is_extended: true,
            has_numeric_lock: false,
            transfer_bytes: 4096,
        }
    }
}

impl ScreenConfig {
    /// Of a model, in other respects the default.
    pub fn new(model: Model) -> ScreenConfig {
        ScreenConfig { model, ..ScreenConfig::default() }
    }
    /// The name for TERMINAL-TYPE: IBM-3279-2-E. TN3270E has no 3279, and takes the second (RFC 2355 §7.1).
    pub fn terminal_type(&self, is_tn3270e: bool) -> String {
        let family = if self.has_color && !is_tn3270e { 3279 } else { 3278 };
        let extended = if self.is_extended { "-E" } else { "" };
        format!("IBM-{family}-{}{extended}", self.model.number())
    }
}
