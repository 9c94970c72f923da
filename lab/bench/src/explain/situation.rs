//! A situation: two programs, two hosts and a path, and what a reader of the definitions expects to be said of them.

use super::path::Plan;
use super::script::{Settings, Step};
use inhost_base::{Duration, Random};
use inhost_explain::{Cause, Sign};

/// How a situation is made: one line of a family's list.
pub struct Recipe {
    /// Its name on the command line and in the table.
    pub name: &'static str,
    /// The family, which is the name of its file.
    pub family: &'static str,
    /// Makes it, with parameters from the seed.
    pub make: fn(&mut Draw) -> Situation,
}

/// One of the two hosts, and its program.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// What the program does once the connection is open.
    pub script: Vec<Step>,
    /// How the host and its socket are set, for both stacks alike.
    pub settings: Settings,
}

/// A situation with its parameters drawn.
#[derive(Clone, Debug)]
pub struct Situation {
    /// What happens, with its figures.
    pub about: String,
    /// The client and the server.
    pub sides: [Side; 2],
    /// What lies between them.
    pub path: Plan,
    /// What is true.
    pub expected: Expected,
    /// The run ends at the latest after this time.
    pub limit: Duration,
    /// Which side our stack takes where the kernel takes the other. It is the one that the situation is about.
    pub ours: usize,
}

impl Situation {
    /// With as many connections before the one under test as fill the server's queue, which holds `more` than it is told.
    pub fn with_fillers(&self, more: usize) -> Situation {
        let mut filled = self.clone();
        filled.sides[0].settings.fillers =
            filled.sides[1].settings.backlog.map_or(0, |backlog| backlog + more);
        filled
    }
}

/// The truth by construction. What follows from the run, such as shares, is measured.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Whose data the situation is about: 0 the client's, 1 the server's.
    pub direction: usize,
    /// The other direction is as good: both have the same cause with the same share.
    pub either: bool,
    /// The main cause. Several only where the definitions allow several names for one thing; `names_reason` says why.
    pub main: Vec<Cause>,
    /// Why `main` has several names.
    pub names_reason: &'static str,
    /// The second cause, where there are two.
    pub second: Vec<Cause>,
    /// A finding that says the second cause as well as a share does.
    pub second_sign: Option<Sign>,
    /// Findings that the definitions ask for.
    pub signs: Vec<Sign>,
    /// What a vantage cannot know.
    pub blind: Vec<Blind>,
}

/// What cannot be known from a vantage, marked in advance.
#[derive(Clone, Debug)]
pub struct Blind {
    /// From where.
    pub at: Vantage,
    /// What the main cause looks like from there. A guess at one of these with less than 0.8 of confidence is right, and so is
    /// `Unknown`. Empty when the main cause can be known.
    pub looks_like: Vec<Cause>,
    /// Findings that cannot be made there.
    pub signs: Vec<Sign>,
    /// Whether the second cause cannot be known there.
    pub second: bool,
    /// Why.
    pub reason: &'static str,
}

/// From where a verdict is given.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Vantage {
    /// A capture at the sender of the data that the situation is about.
    Sender,
    /// A capture on the way.
    Middle,
    /// A capture at the receiver.
    Receiver,
    /// Our own host, from its ledgers and its frames.
    Live,
}

impl Vantage {
    /// All, in the order of the table.
    pub const ALL: [Vantage; 4] = [Vantage::Sender, Vantage::Middle, Vantage::Receiver, Vantage::Live];
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Vantage::Sender => "sender",
            Vantage::Middle => "middle",
            Vantage::Receiver => "receiver",
            Vantage::Live => "live",
        }
    }
}

impl Expected {
    /// One main cause of a direction, and nothing else.
    pub fn of(direction: usize, main: Cause) -> Expected {
        Expected {
            direction,
            either: false,
            main: vec![main],
            names_reason: "",
            second: Vec::new(),
            second_sign: None,
            signs: Vec::new(),
            blind: Vec::new(),
        }
    }
    /// With either direction: both have the same cause with the same share.
    pub fn either(mut self) -> Expected {
        self.either = true;
        self
    }
    /// With another name for the same thing, and why the definitions allow it.
    pub fn or(mut self, name: Cause, reason: &'static str) -> Expected {
        self.main.push(name);
        self.names_reason = reason;
        self
    }
    /// With a second cause.
    pub fn second(mut self, cause: Cause) -> Expected {
        self.second.push(cause);
        self
    }
    /// With a second cause that a finding may say.
    pub fn second_sign(mut self, sign: Sign) -> Expected {
        self.second_sign = Some(sign);
        self
    }
    /// With a finding.
    pub fn sign(mut self, sign: Sign) -> Expected {
        self.signs.push(sign);
        self
    }
    /// With a main cause that cannot be known at a vantage, and what it looks like there.
    pub fn unknown_at(mut self, at: Vantage, looks_like: &[Cause], reason: &'static str) -> Expected {
        let looks_like = looks_like.to_vec();
        self.blind.push(Blind { at, looks_like, signs: Vec::new(), second: false, reason });
        self
    }
    /// With a second cause that cannot be known at a vantage.
    pub fn second_unknown_at(mut self, at: Vantage, reason: &'static str) -> Expected {
        let (looks_like, signs) = (Vec::new(), Vec::new());
        self.blind.push(Blind { at, looks_like, signs, second: true, reason });
        self
    }
    /// With findings that cannot be made at a vantage.
    pub fn unseen_at(mut self, at: Vantage, signs: &[Sign], reason: &'static str) -> Expected {
        let signs = signs.to_vec();
        self.blind.push(Blind { at, looks_like: Vec::new(), signs, second: false, reason });
        self
    }
}

/// Parameters from the seed.
pub struct Draw(Random);

impl Draw {
    /// Those of one situation in one run.
    pub fn new(seed: u64, name: &str) -> Draw {
        let key = inhost_base::SipKey::from_halves(seed, 0x6578_706c);
        Draw(Random::from_number(key.hash(name.as_bytes())))
    }
    /// A number from `least` to `most`, both included.
    pub fn number(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.public_u64() % (most.saturating_sub(least) + 1)
    }
    /// A time in milliseconds.
    pub fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_micros(self.number(least * 1000, most * 1000))
    }
    /// A number between two others.
    pub fn real(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * (self.0.public_u64() >> 11) as f64 / 2f64.powi(53)
    }
}
