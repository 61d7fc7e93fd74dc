//! How a line belongs to a tool's output.

/// How a line belongs to a tool's output.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    /// Its place in the output, from 1; 0 for lines that may stand anywhere.
    pub rank: u8,
    /// Whether an output may begin with it.
    pub opens: bool,
    /// The key, below 64, of a line that stands once in an output.
    pub once: Option<u8>,
    /// Begins a part in which lines of a higher rank than this come again.
    pub repeats_from: Option<u8>,
}

impl Mark {
    /// A line that may begin an output and stands in it once.
    pub fn opens(rank: u8) -> Option<Self> {
        Some(Self {
            rank,
            opens: true,
            once: Some(rank),
            repeats_from: None,
        })
    }

    /// A line that stands once in an output that has begun.
    pub fn once(rank: u8) -> Option<Self> {
        Some(Self {
            opens: false,
            ..Self::opens(rank)?
        })
    }

    /// A line that stands any number of times in an output that has begun.
    pub fn many(rank: u8) -> Option<Self> {
        Some(Self {
            once: None,
            ..Self::once(rank)?
        })
    }

    /// A line that may begin an output and stands any number of times in it.
    pub fn opens_many(rank: u8) -> Option<Self> {
        Some(Self {
            once: None,
            ..Self::opens(rank)?
        })
    }

    /// A line that may stand anywhere in an output that has begun.
    pub fn anywhere() -> Option<Self> {
        Self::many(0)
    }

    /// Makes the line one of several that stand at the same place in any order, each once.
    pub fn with_key(self, key: u8) -> Option<Self> {
        Some(Self {
            once: Some(key),
            ..self
        })
    }

    /// Begins a part in which lines of a higher rank than `rank` come again.
    pub fn part(rank: u8) -> Option<Self> {
        Some(Self {
            repeats_from: Some(rank),
            ..Self::anywhere()?
        })
    }
}
