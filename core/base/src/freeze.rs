//! Freezing: how values that serde's derives do not cover are written, and the error of a value that does not fit.
//!
//! A frozen stack is read from bytes that anyone may have changed. Reading never allocates more than a small multiple of
//! the input: a list is as long as its elements in the input, and spare room in it is written out.

use alloc::collections::VecDeque;
use core::fmt;

/// Why a thawed value cannot be one that a stack has: what is wrong with which part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Invalid(pub &'static str);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
impl core::error::Error for Invalid {}

/// An error with `what` unless `holds`.
#[inline]
pub fn require(holds: bool, what: &'static str) -> Result<(), Invalid> {
    if holds { Ok(()) } else { Err(Invalid(what)) }
}

/// For `#[serde(with)]`: an array of any length, which serde has up to 32 elements only.
pub mod array {
    use core::fmt;
    use core::marker::PhantomData;
    use serde::de::{Error, SeqAccess, Visitor};
    use serde::ser::SerializeTuple;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the elements, and no length.
    pub fn serialize<T: Serialize, S: Serializer, const N: usize>(
        array: &[T; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(N)?;
        for element in array {
            tuple.serialize_element(element)?;
        }
        tuple.end()
    }
    /// Reads exactly `N` elements.
    pub fn deserialize<'de, T: Deserialize<'de> + Copy + Default, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[T; N], D::Error> {
        struct Elements<T, const N: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Copy + Default, const N: usize> Visitor<'de> for Elements<T, N> {
            type Value = [T; N];
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{N} elements")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<[T; N], A::Error> {
                let mut array = [T::default(); N];
                for (index, place) in array.iter_mut().enumerate() {
                    *place = elements.next_element()?.ok_or_else(|| Error::invalid_length(index, &self))?;
                }
                Ok(array)
            }
        }
        deserializer.deserialize_tuple(N, Elements(PhantomData))
    }
}

/// For `#[serde(with)]`: a list with its spare room, where that counts as memory held. Each spare place is one byte of the
/// input, so that the input bounds the allocation.
pub mod with_capacity {
    use super::VecDeque;
    use alloc::vec;
    use alloc::vec::Vec;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the elements and a byte for each spare place.
    pub fn serialize<T: Serialize, S: Serializer>(
        list: &VecDeque<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        (list, vec![0_u8; list.capacity() - list.len()]).serialize(serializer)
    }
    /// Reads a list whose capacity is what it was.
    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<VecDeque<T>, D::Error> {
        let (elements, spare): (Vec<T>, Vec<u8>) = Deserialize::deserialize(deserializer)?;
        let mut list = VecDeque::with_capacity(elements.len() + spare.len());
        list.extend(elements);
        Ok(list)
    }
}
