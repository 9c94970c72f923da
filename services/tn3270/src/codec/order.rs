//! Orders of a write command.

use super::address::decode_address;
use super::attribute::{AttributePair, FieldAttribute};
use super::error::DataError;

/// Program Tab.
pub(super) const PT: u8 = 0x05;
/// Graphic Escape.
pub(super) const GE: u8 = 0x08;
/// Set Buffer Address.
pub(super) const SBA: u8 = 0x11;
/// Erase Unprotected to Address.
pub(super) const EUA: u8 = 0x12;
/// Insert Cursor.
pub(super) const IC: u8 = 0x13;
/// Start Field.
pub(super) const SF: u8 = 0x1d;
/// Set Attribute.
pub(super) const SA: u8 = 0x28;
/// Start Field Extended.
pub(super) const SFE: u8 = 0x29;
/// Modify Field.
pub(super) const MF: u8 = 0x2c;
/// Repeat to Address.
pub(super) const RA: u8 = 0x3c;

/// The format control orders (GA23-0059, "Format Control Orders") that have a place on the screen: SUB, DUP, FM, FF, CR,
/// NL, EM, LF, SO, SI and EO.
const CONTROLS: [u8; 11] = [0x3f, 0x1c, 0x1e, 0x0c, 0x0d, 0x15, 0x19, 0x25, 0x0e, 0x0f, 0xff];

/// An order, or the characters between orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Order<'a> {
    /// SF: a field begins.
    StartField(FieldAttribute),
    /// SFE: a field begins; pairs of a type and a value.
    StartFieldExtended(Pairs<'a>),
    /// SBA: where the next characters go.
    SetAddress(u16),
    /// SA: an attribute of the characters that follow.
    SetAttribute(AttributePair),
    /// MF: changes the attributes of the field at the current address.
    ModifyField(Pairs<'a>),
    /// IC: the cursor goes to the current address.
    InsertCursor,
    /// PT: on to the next input field.
    ProgramTab,
    /// RA: the same character up to an address, which it does not include.
    Repeat {
        /// The address.
        to: u16,
        /// The character.
        character: u8,
        /// Whether it is of the set of Graphic Escape.
        graphic: bool,
    },
    /// EUA: nulls in input fields up to an address, which it does not include.
    EraseUnprotected {
        /// The address.
        to: u16,
    },
    /// GE: a character of the alternate set.
    Graphic(u8),
    /// Characters, nulls among them.
    Text(&'a [u8]),
    /// A format control order, which takes one position as a character does.
    Control(u8),
    /// An octet below X'40' that is not an order. Terminals pass over it.
    Unknown(u8),
}

/// Pairs of a type and a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pairs<'a>(&'a [u8]);

impl<'a> Pairs<'a> {
    /// The pairs, in their order.
    pub fn iter(self) -> impl Iterator<Item = AttributePair> + 'a {
        self.0.chunks_exact(2).filter_map(|pair| match *pair {
            [kind, value] => Some(AttributePair { kind, value }),
            _ => None,
        })
    }
}

/// The orders of the data behind a write control character, or behind the AID and cursor of what a terminal sends.
/// After an error it ends.
#[derive(Clone, Debug)]
pub struct Orders<'a> {
    rest: &'a [u8],
}

impl<'a> Orders<'a> {
    /// The orders of `data`.
    pub fn new(data: &'a [u8]) -> Orders<'a> {
        Orders { rest: data }
    }
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DataError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(DataError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }
    fn address(&mut self) -> Result<u16, DataError> {
        Ok(decode_address(self.take()?))
    }
    fn pairs(&mut self) -> Result<Pairs<'a>, DataError> {
        let [count] = self.take()?;
        let (pairs, rest) = self.rest.split_at_checked(2 * usize::from(count)).ok_or(DataError::Truncated)?;
        self.rest = rest;
        Ok(Pairs(pairs))
    }
    fn text(&mut self) -> Order<'a> {
        let is_text = |&octet: &u8| octet == 0 || (0x40..0xff).contains(&octet);
        let end = self.rest.iter().position(|octet| !is_text(octet)).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        Order::Text(text)
    }
    fn order(&mut self, octet: u8) -> Result<Order<'a>, DataError> {
        if octet == 0 || (0x40..0xff).contains(&octet) {
            return Ok(self.text());
        }
        let [_] = self.take()?;
        Ok(match octet {
            SF => Order::StartField(FieldAttribute::from_octet(self.take::<1>()?[0])),
            SFE => Order::StartFieldExtended(self.pairs()?),
            SBA => Order::SetAddress(self.address()?),
            SA => {
                let [kind, value] = self.take()?;
                Order::SetAttribute(AttributePair { kind, value })
            }
            MF => Order::ModifyField(self.pairs()?),
            IC => Order::InsertCursor,
            PT => Order::ProgramTab,
            RA => {
                let to = self.address()?;
                match self.take()? {
                    [GE] => Order::Repeat { to, character: self.take::<1>()?[0], graphic: true },
                    [character] => Order::Repeat { to, character, graphic: false },
                }
            }
            EUA => Order::EraseUnprotected { to: self.address()? },
            GE => Order::Graphic(self.take::<1>()?[0]),
            _ if CONTROLS.contains(&octet) => Order::Control(octet),
            _ => Order::Unknown(octet),
        })
    }
}

impl<'a> Iterator for Orders<'a> {
    type Item = Result<Order<'a>, DataError>;
    fn next(&mut self) -> Option<Self::Item> {
        let &octet = self.rest.first()?;
        let order = self.order(octet);
        if order.is_err() {
            self.rest = &[];
        }
        Some(order)
    }
}
