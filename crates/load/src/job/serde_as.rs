//! How a job's values are written: bytes as text, durations as whole nanoseconds.

/// Bytes as a string in which each character is one byte (ISO 8859-1).
pub(crate) mod bytes {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        bytes: &impl AsRef<[u8]>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        out.collect_str(
            &bytes
                .as_ref()
                .iter()
                .map(|b| *b as char)
                .collect::<String>(),
        )
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, B: From<Vec<u8>>>(
        input: D,
    ) -> Result<B, D::Error> {
        let text = String::deserialize(input)?;
        let bytes: Result<Vec<u8>, _> = text.chars().map(|c| u8::try_from(u32::from(c))).collect();
        bytes.map(B::from).map_err(D::Error::custom)
    }
}

/// A duration in whole nanoseconds.
pub(crate) mod ns {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &Duration, out: S) -> Result<S::Ok, S::Error> {
        crate::ns(*time).serialize(out)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
        u64::deserialize(input).map(Duration::from_nanos)
    }
}

/// A duration in whole nanoseconds, or none.
pub(crate) mod option_ns {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(crate::ns).serialize(out)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(input)?.map(Duration::from_nanos))
    }
}

/// Bytes as [`bytes`] writes them, or none.
pub(crate) mod option_bytes {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Bytes(#[serde(with = "super::bytes")] Arc<[u8]>);

    pub(crate) fn serialize<S: Serializer>(
        bytes: &Option<Arc<[u8]>>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        bytes.clone().map(Bytes).serialize(out)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<Option<Arc<[u8]>>, D::Error> {
        Ok(Option::<Bytes>::deserialize(input)?.map(|bytes| bytes.0))
    }
}

/// What is shared, as if it were not.
pub(crate) mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        shared: &Arc<T>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        shared.as_ref().serialize(out)
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        input: D,
    ) -> Result<Arc<T>, D::Error> {
        T::deserialize(input).map(Arc::new)
    }
}
