//! Arithmetic over the bytes of a frame, in 32 bits without a sign.

use super::Short;
use super::test::{Layer, View};

/// A number.
#[derive(Clone, Debug)]
pub(super) enum Number {
    Constant(u32),
    /// Bytes of the frame on the wire.
    Length,
    /// So many bytes of a layer, from an offset.
    Load {
        layer: Layer,
        at: Box<Number>,
        bytes: usize,
    },
    Negative(Box<Number>),
    Two(Operator, Box<Number>, Box<Number>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
    And,
    Or,
    ExclusiveOr,
    Left,
    Right,
}

/// How two numbers are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Relation {
    Equal,
    Unequal,
    Less,
    Greater,
    AtMost,
    AtLeast,
}

impl Relation {
    pub(super) fn holds(self, one: u32, other: u32) -> bool {
        match self {
            Relation::Equal => one == other,
            Relation::Unequal => one != other,
            Relation::Less => one < other,
            Relation::Greater => one > other,
            Relation::AtMost => one <= other,
            Relation::AtLeast => one >= other,
        }
    }
}

impl Number {
    /// Its value; none where the frame does not have the layer.
    pub(super) fn value(&self, view: &View<'_>) -> Result<Option<u32>, Short> {
        Ok(match self {
            Number::Constant(value) => Some(*value),
            Number::Length => Some(view.original_bytes()),
            Number::Load { layer, at, bytes } => {
                let Some(at) = at.value(view)? else { return Ok(None) };
                let Some(start) = view.start(*layer)? else { return Ok(None) };
                Some(view.number(start + at as usize, *bytes)?)
            }
            Number::Negative(of) => of.value(view)?.map(u32::wrapping_neg),
            Number::Two(operator, one, other) => {
                let (Some(one), Some(other)) = (one.value(view)?, other.value(view)?) else {
                    return Ok(None);
                };
                Some(operator.apply(one, other).ok_or(Short)?)
            }
        })
    }
    /// Its value, where it does not depend on a frame.
    pub(super) fn constant(&self) -> Option<u32> {
        match self {
            Number::Constant(value) => Some(*value),
            Number::Negative(of) => of.constant().map(u32::wrapping_neg),
            Number::Two(operator, one, other) => operator.apply(one.constant()?, other.constant()?),
            _ => None,
        }
    }
}

impl Operator {
    /// None for a division by zero, which ends the filter as a short frame does.
    fn apply(self, one: u32, other: u32) -> Option<u32> {
        Some(match self {
            Operator::Plus => one.wrapping_add(other),
            Operator::Minus => one.wrapping_sub(other),
            Operator::Times => one.wrapping_mul(other),
            Operator::Over => one.checked_div(other)?,
            Operator::Modulo => one.checked_rem(other)?,
            Operator::And => one & other,
            Operator::Or => one | other,
            Operator::ExclusiveOr => one ^ other,
            Operator::Left => one.checked_shl(other).unwrap_or(0),
            Operator::Right => one.checked_shr(other).unwrap_or(0),
        })
    }
}
