//! What serde's typed decoding does not check: no duplicate keys at any level, bounded depth, no array for an object.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::MAX_DEPTH;

/// Checks that `text` is one JSON text without duplicate keys, nested at most [`MAX_DEPTH`] deep, with finite numbers.
pub fn check(text: &str) -> Result<(), serde_json::Error> {
    let mut decoder = serde_json::Deserializer::from_str(text);
    Level(0).deserialize(&mut decoder)?;
    decoder.end()
}

/// Decodes a struct from an object alone: serde's derived reading takes its members as an array too.
pub(crate) struct OnlyObject<D>(pub D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for OnlyObject<D> {
    type Error = D::Error;
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }
    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[derive(Clone, Copy)]
struct Level(usize);

impl Level {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.0 >= MAX_DEPTH {
            return Err(E::custom(format!("nested deeper than {MAX_DEPTH}")));
        }
        Ok(Self(self.0 + 1))
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        while items.next_element_seed(inner)?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        let mut seen = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(A::Error::custom(format!("duplicate key `{key}`")));
            }
            seen.insert(key);
            entries.next_value_seed(inner)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn texts() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        for good in ["1", r#"{"a":{"a":1},"b":[{"a":1},{"a":2}]}"#, r#""\u0000""#, &deep(64)] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", "1 2", r#"{"a":1,"a":2}"#, r#"[{"x":{"a":1,"\u0061":2}}]"#, "1e400", &deep(65), &deep(100_000)]
        {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
