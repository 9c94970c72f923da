//! Filters in tcpdump's words (pcap-filter(7)), with the same choice of frames.
//!
//! ```
//! use inhost_peep::filter::Filter;
//! let filter: Filter = "tcp port 80 or 443 and not host 10.9.0.1".parse()?;
//! let wrong = "prot 80".parse::<Filter>().unwrap_err();
//! assert_eq!(wrong.at, 0);
//! # drop(filter);
//! # Ok::<(), inhost_peep::filter::FilterError>(())
//! ```

mod lex;
mod number;
mod parse;
mod test;

use std::fmt;
use std::str::FromStr;

use inhost_explain::capture::Frame;

use test::{Short, Test};

/// A filter.
#[derive(Clone, Debug)]
pub struct Filter {
    /// None chooses everything.
    root: Option<Test>,
}

impl Filter {
    /// Whether the frame is chosen. As in tcpdump, a frame that is too short for a test that is made is not, even behind
    /// `not`. Tests are made from left to right; tcpdump's optimizer may make them in another order, so that it chooses a
    /// frame that was cut where this does not (`tcpdump -O` agrees).
    pub fn has(&self, frame: &Frame<'_>) -> bool {
        self.root.as_ref().is_none_or(|root| root.holds(frame) == Ok(true))
    }
}

impl FromStr for Filter {
    type Err = FilterError;
    fn from_str(text: &str) -> Result<Filter, FilterError> {
        parse::parse(text).map(|root| Filter { root })
    }
}

/// What is wrong with a filter, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilterError {
    /// Where, in bytes from its beginning.
    pub at: usize,
    /// What is wrong, and what would be right.
    pub text: String,
}

impl FilterError {
    /// The filter with a caret below the place, and the sentence.
    pub fn shown(&self, filter: &str) -> String {
        let before = filter.get(..self.at.min(filter.len())).map_or(0, |before| before.chars().count());
        format!("{filter}\n{}^ {}", " ".repeat(before), self.text)
    }
}
impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}", self.at + 1, self.text)
    }
}
impl std::error::Error for FilterError {}
