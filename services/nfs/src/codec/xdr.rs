//! External data representation (RFC 4506): values as octets, in units of four.

/// Octets that are not what the protocol asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Malformed {
    /// The message ends before the value does.
    Short,
    /// A length is beyond the limit of its kind.
    Long,
    /// A number is not one of those that its kind has.
    Value,
    /// Octets follow the last value.
    Trailing,
}

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Malformed::Short => "a message is cut off",
            Malformed::Long => "a length is beyond its limit",
            Malformed::Value => "a number has no meaning",
            Malformed::Trailing => "octets follow a message",
        })
    }
}
impl std::error::Error for Malformed {}

/// A value with a representation.
pub trait Xdr: Sized {
    /// Writes it.
    fn encode(&self, to: &mut Encoder);
    /// Reads it.
    fn decode(from: &mut Decoder<'_>) -> Result<Self, Malformed>;
}

/// Reads values from octets.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// All of `octets`.
    pub fn new(octets: &'a [u8]) -> Decoder<'a> {
        Decoder { rest: octets }
    }
    /// Octets that were not read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
    /// The next `count` octets and the padding behind them, which is not looked at.
    pub fn fixed(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let padded = count.checked_next_multiple_of(4).ok_or(Malformed::Long)?;
        let (taken, rest) = self.rest.split_at_checked(padded).ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(&taken[..count])
    }
    /// An array of octets.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(self.fixed(N)?);
        Ok(array)
    }
    /// Octets behind their length, at most `limit`.
    pub fn opaque(&mut self, limit: usize) -> Result<&'a [u8], Malformed> {
        let length = self.u32()? as usize;
        if length > limit { Err(Malformed::Long) } else { self.fixed(length) }
    }
    /// An unsigned number.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }
    /// A value of this type.
    pub fn value<T: Xdr>(&mut self) -> Result<T, Malformed> {
        T::decode(self)
    }
    /// A list in which a flag stands before each value (RFC 4506 §4.19), at most `limit` long.
    pub fn list<T: Xdr>(&mut self, limit: usize) -> Result<Vec<T>, Malformed> {
        let mut list = Vec::new();
        while self.value::<bool>()? {
            if list.len() >= limit {
                return Err(Malformed::Long);
            }
            list.push(self.value()?);
        }
        Ok(list)
    }
    /// Nothing more may be there.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed::Trailing) }
    }
}

/// One value and nothing behind it.
pub fn from_octets<T: Xdr>(octets: &[u8]) -> Result<T, Malformed> {
    let mut decoder = Decoder::new(octets);
    let value = decoder.value()?;
    decoder.end().map(|()| value)
}

/// The octets of one value.
pub fn to_octets<T: Xdr>(value: &T) -> Vec<u8> {
    let mut encoder = Encoder::default();
    value.encode(&mut encoder);
    encoder.into_octets()
}

/// Writes values as octets.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    octets: Vec<u8>,
}

impl Encoder {
    /// Octets go behind those of `octets`.
    pub fn behind(octets: Vec<u8>) -> Encoder {
        Encoder { octets }
    }
    /// What was written.
    pub fn into_octets(self) -> Vec<u8> {
        self.octets
    }
    /// Octets so far.
    pub fn len(&self) -> usize {
        self.octets.len()
    }
    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }
    /// Octets and their padding.
    pub fn fixed(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
        let padding = octets.len().wrapping_neg() % 4;
        self.octets.extend_from_slice(&[0; 3][..padding]);
    }
    /// The length of octets, the octets, and their padding. They are at most 4 GiB.
    pub fn opaque(&mut self, octets: &[u8]) {
        self.u32(u32::try_from(octets.len()).unwrap_or(u32::MAX));
        self.fixed(octets);
    }
    /// An unsigned number.
    pub fn u32(&mut self, number: u32) {
        self.octets.extend_from_slice(&number.to_be_bytes());
    }
    /// A value.
    pub fn value(&mut self, value: &impl Xdr) {
        value.encode(self);
    }
    /// A list with a flag before each value and behind the last.
    pub fn list<T: Xdr>(&mut self, list: &[T]) {
        for value in list {
            self.u32(1);
            value.encode(self);
        }
        self.u32(0);
    }
}

impl Xdr for () {
    fn encode(&self, _: &mut Encoder) {}
    fn decode(_: &mut Decoder<'_>) -> Result<(), Malformed> {
        Ok(())
    }
}

impl Xdr for u32 {
    fn encode(&self, to: &mut Encoder) {
        to.u32(*self);
    }
    fn decode(from: &mut Decoder<'_>) -> Result<u32, Malformed> {
        from.u32()
    }
}

impl Xdr for u64 {
    fn encode(&self, to: &mut Encoder) {
        to.fixed(&self.to_be_bytes());
    }
    fn decode(from: &mut Decoder<'_>) -> Result<u64, Malformed> {
        from.array().map(u64::from_be_bytes)
    }
}

impl Xdr for bool {
    fn encode(&self, to: &mut Encoder) {
        to.u32(u32::from(*self));
    }
    fn decode(from: &mut Decoder<'_>) -> Result<bool, Malformed> {
        match from.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed::Value),
        }
    }
}

impl Xdr for [u8; 8] {
    fn encode(&self, to: &mut Encoder) {
        to.fixed(self);
    }
    fn decode(from: &mut Decoder<'_>) -> Result<[u8; 8], Malformed> {
        from.array()
    }
}

impl<T: Xdr> Xdr for Option<T> {
    fn encode(&self, to: &mut Encoder) {
        self.is_some().encode(to);
        if let Some(value) = self {
            value.encode(to);
        }
    }
    fn decode(from: &mut Decoder<'_>) -> Result<Option<T>, Malformed> {
        Ok(if from.value()? { Some(from.value()?) } else { None })
    }
}

/// A structure whose fields stand one behind the other.
macro_rules! xdr_struct {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$outer])*
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        pub struct $name { $($(#[$inner])* pub $field: $type,)* }
        impl $crate::codec::xdr::Xdr for $name {
            fn encode(&self, to: &mut $crate::codec::xdr::Encoder) {
                $(self.$field.encode(to);)*
                let _ = to;
            }
            fn decode(
                from: &mut $crate::codec::xdr::Decoder<'_>,
            ) -> Result<$name, $crate::codec::xdr::Malformed> {
                let _ = &from;
                Ok($name { $($field: <$type as $crate::codec::xdr::Xdr>::decode(from)?,)* })
            }
        }
    };
}

/// An enumeration by numbers.
macro_rules! xdr_enum {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
        pub enum $name { $($(#[$inner])* $variant = $number,)* }
        impl $crate::codec::xdr::Xdr for $name {
            fn encode(&self, to: &mut $crate::codec::xdr::Encoder) {
                to.u32(*self as u32);
            }
            fn decode(
                from: &mut $crate::codec::xdr::Decoder<'_>,
            ) -> Result<$name, $crate::codec::xdr::Malformed> {
                match from.u32()? {
                    $($number => Ok($name::$variant),)*
                    _ => Err($crate::codec::xdr::Malformed::Value),
                }
            }
        }
    };
}

/// Octets with a limit, as a type of their own.
macro_rules! xdr_octets {
    ($(#[$outer:meta])* $name:ident, $limit:expr) => {
        $(#[$outer])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub Vec<u8>);
        impl $crate::codec::xdr::Xdr for $name {
            fn encode(&self, to: &mut $crate::codec::xdr::Encoder) {
                to.opaque(&self.0);
            }
            fn decode(
                from: &mut $crate::codec::xdr::Decoder<'_>,
            ) -> Result<$name, $crate::codec::xdr::Malformed> {
                from.opaque($limit).map(|octets| $name(octets.to_vec()))
            }
        }
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{}({} octets)", stringify!($name), self.0.len())
            }
        }
        impl From<&[u8]> for $name {
            fn from(octets: &[u8]) -> $name {
                $name(octets.to_vec())
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> $name {
                $name(text.as_bytes().to_vec())
            }
        }
    };
}

pub(crate) use {xdr_enum, xdr_octets, xdr_struct};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_padded_to_four_and_lengths_have_limits() {
        let mut encoder = Encoder::default();
        encoder.opaque(b"abcde");
        encoder.value(&7u64);
        encoder.value(&Some(true));
        let octets = encoder.into_octets();
        assert_eq!(octets, b"\0\0\0\x05abcde\0\0\0\0\0\0\0\0\0\0\x07\0\0\0\x01\0\0\0\x01");
        let mut decoder = Decoder::new(&octets);
        assert_eq!(decoder.clone().opaque(4), Err(Malformed::Long));
        assert_eq!(decoder.opaque(5).unwrap(), b"abcde");
        assert_eq!((decoder.value::<u64>(), decoder.value::<Option<bool>>()), (Ok(7), Ok(Some(true))));
        assert_eq!(decoder.end(), Ok(()));
        assert_eq!(decoder.u32(), Err(Malformed::Short));
        assert_eq!(from_octets::<bool>(&[0, 0, 0, 2]), Err(Malformed::Value));
        assert_eq!(from_octets::<u32>(&[0; 8]), Err(Malformed::Trailing));
        assert_eq!(Decoder::new(&[0xff; 8]).opaque(usize::MAX), Err(Malformed::Short));
    }

    #[test]
    fn a_list_has_a_limit() {
        let mut encoder = Encoder::default();
        encoder.list(&[1u32, 2, 3]);
        let octets = encoder.into_octets();
        assert_eq!(Decoder::new(&octets).list::<u32>(3), Ok(vec![1, 2, 3]));
        assert_eq!(Decoder::new(&octets).list::<u32>(2), Err(Malformed::Long));
    }
}
