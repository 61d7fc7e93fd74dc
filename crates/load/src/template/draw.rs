//! Random numbers that are a function of a seed, a request's number and a place in it.

/// The step of a sequence of states: odd, and without a pattern in its bits.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// The place of the choice among requests.
const CHOICE: u64 = 1 << 40;
/// The first place of the rows of feeds.
const ROWS: u64 = 1 << 41;

/// Spreads a number over all bits.
#[inline]
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A place in a request: the same for all requests, so that its bits are spread once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u64);

impl Place {
    /// By its number in the request.
    pub(crate) fn new(number: u32) -> Self {
        Self::at(u64::from(number))
    }

    #[inline]
    fn at(number: u64) -> Self {
        Self(mix(number.wrapping_add(STEP)))
    }
}

/// What is drawn for one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Draws(u64);

impl Draws {
    /// Of a request, or of a user.
    #[inline]
    pub(crate) fn of(seed: u64, number: u64) -> Self {
        Self(mix(mix(seed).wrapping_add(number.wrapping_mul(STEP))))
    }

    /// Of one place in it.
    #[inline]
    pub(crate) fn place(self, place: Place) -> Stream {
        Stream(self.0 ^ place.0)
    }

    /// Of the choice among requests.
    #[inline]
    pub(crate) fn choice(self) -> Stream {
        self.place(Place::at(CHOICE))
    }

    /// Of the row of a feed.
    #[inline]
    pub(crate) fn row(self, feed: usize) -> Stream {
        self.place(Place::at(ROWS + feed as u64))
    }
}

/// Random numbers of one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream(u64);

impl Stream {
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Below a number above 0, each with the same probability, to within 2^-64 of it.
    #[inline]
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// From 0 to below 1.
    #[inline]
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_seeds_and_places_have_draws_of_their_own() {
        let mut seen = std::collections::HashSet::new();
        for seed in 0..20 {
            for number in 0..50 {
                let draws = Draws::of(seed, number);
                let places = (0..20).map(|place| draws.place(Place::new(place)).next());
                seen.extend(places);
                seen.extend([
                    draws.choice().next(),
                    draws.row(0).next(),
                    draws.row(1).next(),
                ]);
            }
        }
        assert_eq!(seen.len(), 20 * 50 * 23);
    }

    #[test]
    fn numbers_below_an_end_are_uniform() {
        let mut counts = [0u32; 7];
        for number in 0..70_000 {
            counts[Draws::of(3, number).place(Place::new(1)).below(7) as usize] += 1;
        }
        let chi: f64 = counts
            .iter()
            .map(|count| (f64::from(*count) - 10_000.0).powi(2) / 10_000.0)
            .sum();
        // Six degrees of freedom; exceeded once in 100,000.
        assert!(chi < 33.1, "{counts:?}");
    }
}
