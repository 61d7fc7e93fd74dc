//! An experiment whose truth is known.

/// An experiment whose truth is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The true speed of each subject over the baseline's: 1.06 answers 6% more requests per
    /// second, and each 6% sooner. The same under all conditions.
    pub speeds: Vec<f64>,
    /// Conditions that each subject is measured under.
    pub conditions: u32,
    /// Whether the median latency of an open loop is measured beside the throughput.
    pub latency: bool,
    pub blocks: u32,
    /// The smallest difference that matters, as a fraction.
    pub matters: f64,
    /// What changes from one figure to the next.
    pub noise: Noise,
    /// How many times the noise between blocks each subject has; once beyond its end.
    pub loudness: Vec<f64>,
    /// How the machine changes during the run, for all subjects alike.
    pub drift: Drift,
    /// Trials that went much slower than the others.
    pub outliers: Option<Outliers>,
    /// Starts of the subjects that fail and are repeated.
    pub bad_starts: Option<BadStarts>,
    /// The most requests per second that the client can make, over what the baseline answers; beyond
    /// it the client is saturated.
    pub client: Option<f64>,
    /// Whether all pairs of subjects are judged at the end, and not only those with the baseline.
    pub pairs: bool,
    /// The step to which latencies are rounded, over the baseline's median.
    pub latency_step: Option<f64>,
}

/// Noise, as standard deviations of the logarithm of a rate: 0.03 is about 3%.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Between blocks: what starting a subject afresh changes.
    pub between: f64,
    /// Between slices of one subject in one block.
    pub within: f64,
    /// Slices per subject and block. With one slice, subjects are measured one after the other.
    pub slices: u32,
    /// How much of a subject's deviation in one block is carried into its next, 0 to 1. Anything
    /// but 0 breaks the assumption that blocks are independent.
    pub carried: f64,
    /// How the deviations between blocks are distributed.
    pub shape: Shape,
}

/// The distribution of the deviations between blocks; the mean is zero, so that the truth is what
/// the scenario says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    Normal,
    /// Of the subjects only, exponential: a start is seldom much faster than the others.
    Exponential,
    /// Of the subjects only, lognormal with a shape of 0.8.
    Lognormal,
    /// Of all, Student's t with three degrees of freedom.
    HeavyTails,
}

/// A change of the machine, in standard deviations of [`Noise::between`]. Its sign is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Drift {
    /// None.
    Steady,
    /// A straight line, so much from the first block to the last one planned.
    Linear(f64),
    /// One step of so much, at a moment that is drawn.
    Step(f64),
    /// Each block is quicker or slower by so much, but only every second subject feels it.
    HalfOfSubjects(f64),
}

/// Trials that went wrong without failing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outliers {
    /// The share of trials, 0 to 1.
    pub share: f64,
    /// What is left of their speed, such as 0.7.
    pub speed: f64,
    /// Whether only the subjects have them, so that they do not cancel.
    pub one_sided: bool,
}

/// Starts of the subjects that go wrong: part of the speed is lost and part of the requests fail. The
/// trial is invalid and repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BadStarts {
    /// The share of starts, 0 to 1.
    pub share: f64,
    pub speed: f64,
    /// The share of their requests that fail.
    pub failed: f64,
}

impl Scenario {
    /// A baseline and one subject of the given speed under one condition: throughput only, noise
    /// of 3% between blocks, up to 30 blocks, and 3% is the margin.
    pub fn of(speed: f64) -> Self {
        Self {
            speeds: vec![speed],
            conditions: 1,
            latency: false,
            blocks: 30,
            matters: 0.03,
            noise: Noise {
                between: 0.03,
                within: 0.05,
                slices: 20,
                carried: 0.0,
                shape: Shape::Normal,
            },
            loudness: Vec::new(),
            drift: Drift::Steady,
            outliers: None,
            bad_starts: None,
            client: None,
            pairs: false,
            latency_step: None,
        }
    }
}
