//! A short inline list with a limit.

use core::fmt;
use core::ops::Deref;

/// At most `N` items (`N` up to 255), without allocation. Reads as a slice.
#[derive(Clone, Copy)]
pub struct Bounded<T, const N: usize> {
    items: [T; N],
    length: u8,
}

impl<T: Copy, const N: usize> Bounded<T, N> {
    /// A list of nothing; `filler` is never seen. For constants, where [`Bounded::new`] cannot be called.
    pub const fn filled_with(filler: T) -> Self {
        Bounded { items: [filler; N], length: 0 }
    }
}

impl<T: Copy + Default, const N: usize> Bounded<T, N> {
    /// A list of nothing.
    pub fn new() -> Self {
        Bounded { items: [T::default(); N], length: 0 }
    }
    /// The items of `slice`; `None` when there are more than `N`.
    pub fn from_slice(slice: &[T]) -> Option<Self> {
        let mut list = Self::new();
        list.items.get_mut(..slice.len())?.copy_from_slice(slice);
        list.length = u8::try_from(slice.len()).ok()?;
        Some(list)
    }
    /// Adds `item` at the end; false, and no change, when the list is full.
    pub fn push(&mut self, item: T) -> bool {
        match self.items.get_mut(usize::from(self.length)) {
            Some(place) if self.length < u8::MAX => {
                *place = item;
                self.length += 1;
                true
            }
            _ => false,
        }
    }
    /// Takes all items out.
    #[inline]
    pub fn clear(&mut self) {
        self.length = 0;
    }
    /// Whether there are no items.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
    /// The items, in order.
    pub fn as_slice(&self) -> &[T] {
        self.items.get(..usize::from(self.length)).unwrap_or(&[])
    }
    /// Forgets all items but the first `length`.
    pub fn truncate(&mut self, length: usize) {
        if length < usize::from(self.length) {
            self.length = length as u8;
        }
    }
}

impl<T: Copy + Default, const N: usize> Default for Bounded<T, N> {
    fn default() -> Self {
        Self::new()
    }
}
impl<T: Copy + Default, const N: usize> FromIterator<T> for Bounded<T, N> {
    /// The first `N` items.
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list = Self::new();
        items.into_iter().take(N).for_each(|item| _ = list.push(item));
        list
    }
}
impl<T: Copy + Default, const N: usize> Deref for Bounded<T, N> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}
impl<T: Copy + Default + PartialEq, const N: usize> PartialEq for Bounded<T, N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}
impl<T: Copy + Default + Eq, const N: usize> Eq for Bounded<T, N> {}
impl<T: Copy + Default + fmt::Debug, const N: usize> fmt::Debug for Bounded<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

#[cfg(feature = "freeze")]
impl<T: Copy + Default + serde::Serialize, const N: usize> serde::Serialize for Bounded<T, N> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_slice().serialize(serializer)
    }
}
#[cfg(feature = "freeze")]
impl<'de, T: Copy + Default + serde::Deserialize<'de>, const N: usize> serde::Deserialize<'de>
    for Bounded<T, N>
{
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = alloc::vec::Vec::<T>::deserialize(deserializer)?;
        Bounded::from_slice(&items)
            .ok_or_else(|| serde::de::Error::invalid_length(items.len(), &"fewer items"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds() {
        let mut list = Bounded::<u8, 2>::new();
        assert!(list.push(1) && list.push(2) && !list.push(3));
        assert_eq!(list.as_slice(), [1, 2]);
        assert_eq!(Bounded::from_slice(&[1, 2]), Some(list));
        assert_eq!(Bounded::<u8, 2>::from_slice(&[1, 2, 3]), None);
        list.truncate(1);
        assert_eq!(&*list, [1]);
    }
}
