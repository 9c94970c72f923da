//! Field attributes, extended attributes and character attributes.

use serde::Serialize;

use super::address::six_bit;

/// How a field is displayed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Display {
    /// Normal intensity.
    Normal,
    /// Normal intensity, and the light pen can select it.
    Selectable,
    /// High intensity, and the light pen can select it.
    Intensified,
    /// Not displayed.
    Hidden,
}

/// The attribute of a field, of which five bits are used. It takes one position of the screen, before the field.
///
/// ```
/// use inhost_tn3270::codec::{Display, FieldAttribute};
/// let attribute = FieldAttribute::UNPROTECTED.numeric().display(Display::Hidden);
/// assert_eq!(attribute.octet(), 0x5c);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FieldAttribute(u8);

impl FieldAttribute {
    /// Of an input field.
    pub const UNPROTECTED: FieldAttribute = FieldAttribute(0);
    /// Of text that cannot be changed.
    pub const PROTECTED: FieldAttribute = FieldAttribute(0x20);
    /// Of text that cannot be changed and that the cursor passes over.
    pub const SKIP: FieldAttribute = FieldAttribute(0x30);

    /// From an octet of a data stream; its upper two bits and the reserved one do not count.
    pub fn from_octet(octet: u8) -> FieldAttribute {
        FieldAttribute(octet & 0x3d)
    }
    /// As a graphic octet for a data stream.
    pub fn octet(self) -> u8 {
        six_bit(self.0)
    }
    /// The bits.
    pub fn bits(self) -> u8 {
        self.0
    }
    /// The same, numeric.
    #[must_use]
    pub fn numeric(self) -> FieldAttribute {
        FieldAttribute(self.0 | 0x10)
    }
    /// The same, with another display.
    #[must_use]
    pub fn display(self, display: Display) -> FieldAttribute {
        let bits = match display {
            Display::Normal => 0,
            Display::Selectable => 0x04,
            Display::Intensified => 0x08,
            Display::Hidden => 0x0c,
        };
        FieldAttribute(self.0 & !0x0c | bits)
    }
    /// The same, with the modified data tag set or reset.
    #[must_use]
    pub fn modified(self, is_modified: bool) -> FieldAttribute {
        FieldAttribute(self.0 & !1 | u8::from(is_modified))
    }
    /// Whether the keyboard cannot change it.
    pub fn is_protected(self) -> bool {
        self.0 & 0x20 != 0
    }
    /// Whether it takes numbers only.
    pub fn is_numeric(self) -> bool {
        self.0 & 0x10 != 0
    }
    /// Whether the cursor passes over it: protected and numeric.
    pub fn is_skip(self) -> bool {
        self.0 & 0x30 == 0x30
    }
    /// Its modified data tag (MDT).
    pub fn is_modified(self) -> bool {
        self.0 & 1 != 0
    }
    /// How it is displayed.
    pub fn displayed(self) -> Display {
        match self.0 & 0x0c {
            0 => Display::Normal,
            0x04 => Display::Selectable,
            0x08 => Display::Intensified,
            _ => Display::Hidden,
        }
    }
}

/// A colour. [`Color::DEFAULT`] is the field's, or for a field that of its intensity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Color(pub u8);

impl Color {
    /// The default.
    pub const DEFAULT: Color = Color(0);
    /// Blue.
    pub const BLUE: Color = Color(0xf1);
    /// Red.
    pub const RED: Color = Color(0xf2);
    /// Pink.
    pub const PINK: Color = Color(0xf3);
    /// Green.
    pub const GREEN: Color = Color(0xf4);
    /// Turquoise.
    pub const TURQUOISE: Color = Color(0xf5);
    /// Yellow.
    pub const YELLOW: Color = Color(0xf6);
    /// White on a display, black on a printer.
    pub const NEUTRAL: Color = Color(0xf7);

    /// Its name, in lower case; `None` for the default and for values that have none.
    pub fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 16] = [
            "background",
            "blue",
            "red",
            "pink",
            "green",
            "turquoise",
            "yellow",
            "neutral",
            "black",
            "deep blue",
            "orange",
            "purple",
            "pale green",
            "pale turquoise",
            "grey",
            "white",
        ];
        NAMES.get(usize::from(self.0.checked_sub(0xf0)?)).copied()
    }
}

/// Highlighting. [`Highlight::DEFAULT`] is the field's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Highlight(pub u8);

impl Highlight {
    /// The default.
    pub const DEFAULT: Highlight = Highlight(0);
    /// None, whatever the field has.
    pub const NORMAL: Highlight = Highlight(0xf0);
    /// Blinking.
    pub const BLINK: Highlight = Highlight(0xf1);
    /// Reverse video.
    pub const REVERSE: Highlight = Highlight(0xf2);
    /// Underscored.
    pub const UNDERSCORE: Highlight = Highlight(0xf4);
    /// Intensified.
    pub const INTENSIFY: Highlight = Highlight(0xf8);

    /// Its name, in lower case; `None` for the default and for values that have none.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Highlight::NORMAL => "normal",
            Highlight::BLINK => "blink",
            Highlight::REVERSE => "reverse",
            Highlight::UNDERSCORE => "underscore",
            Highlight::INTENSIFY => "intensify",
            _ => return None,
        })
    }
}

/// The type octet of an attribute in SFE, MF, SA and Set Reply Mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum AttributeType {
    /// All character attributes back to their defaults (SA only).
    All = 0x00,
    /// The field attribute itself.
    Field = 0xc0,
    /// Field validation.
    Validation = 0xc1,
    /// Field outlining.
    Outlining = 0xc2,
    /// Highlighting.
    Highlight = 0x41,
    /// Foreground colour.
    Foreground = 0x42,
    /// Character set.
    CharacterSet = 0x43,
    /// Background colour.
    Background = 0x45,
    /// Transparency.
    Transparency = 0x46,
}

impl AttributeType {
    /// The type of this octet, if it is one.
    pub fn from_octet(octet: u8) -> Option<AttributeType> {
        use AttributeType::*;
        [All, Field, Validation, Outlining, Highlight, Foreground, CharacterSet, Background, Transparency]
            .into_iter()
            .find(|&kind| kind as u8 == octet)
    }
}

/// A type and a value, as they stand in an order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AttributePair {
    /// The octet of an [`AttributeType`], known here or not.
    pub kind: u8,
    /// Its value.
    pub value: u8,
}

impl AttributePair {
    /// A pair of a known type.
    pub fn new(kind: AttributeType, value: u8) -> AttributePair {
        AttributePair { kind: kind as u8, value }
    }
}

/// Extended attributes of a field, or the attributes of a character. Zero is the default everywhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Attributes {
    /// Highlighting.
    pub highlight: Highlight,
    /// Foreground colour.
    pub foreground: Color,
    /// Background colour.
    pub background: Color,
    /// The local identifier of a character set: 0 is the base set, X'F1' APL and line drawing.
    pub character_set: u8,
    /// Transparency.
    pub transparency: u8,
    /// Validation of a field: X'04' mandatory fill, X'02' mandatory entry, X'01' trigger.
    pub validation: u8,
    /// Outlining of a field: X'01' under, X'02' right, X'04' over, X'08' left.
    pub outlining: u8,
}

impl Attributes {
    /// Sets what `pair` says. Types that are not known, and the field attribute, change nothing.
    pub fn set(&mut self, pair: AttributePair) {
        match AttributeType::from_octet(pair.kind) {
            Some(AttributeType::All) => *self = Attributes::default(),
            Some(AttributeType::Highlight) => self.highlight = Highlight(pair.value),
            Some(AttributeType::Foreground) => self.foreground = Color(pair.value),
            Some(AttributeType::Background) => self.background = Color(pair.value),
            Some(AttributeType::CharacterSet) => self.character_set = pair.value,
            Some(AttributeType::Transparency) => self.transparency = pair.value,
            Some(AttributeType::Validation) => self.validation = pair.value,
            Some(AttributeType::Outlining) => self.outlining = pair.value,
            Some(AttributeType::Field) | None => {}
        }
    }
    /// The value of a type; 0 where it is not one of these.
    pub fn value(self, kind: AttributeType) -> u8 {
        match kind {
            AttributeType::Highlight => self.highlight.0,
            AttributeType::Foreground => self.foreground.0,
            AttributeType::Background => self.background.0,
            AttributeType::CharacterSet => self.character_set,
            AttributeType::Transparency => self.transparency,
            AttributeType::Validation => self.validation,
            AttributeType::Outlining => self.outlining,
            AttributeType::All | AttributeType::Field => 0,
        }
    }
    /// Those that are not the default, in the order in which terminals send them.
    pub fn pairs(self) -> impl Iterator<Item = AttributePair> {
        use AttributeType::*;
        [Foreground, Background, Highlight, CharacterSet, Transparency, Validation, Outlining]
            .into_iter()
            .map(move |kind| AttributePair::new(kind, self.value(kind)))
            .filter(|pair| pair.value != 0)
    }
}
