//! What a load of users measured, besides their requests.

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::sums::add_count;

/// Users and their rounds through the steps of a session, in the measured windows.
///
/// In a closed loop that ends by time a round belongs to the window in which it ends, otherwise to the
/// one in which it was due.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsersReading {
    pub arrived: u64,
    pub rounds: u64,
    /// Rounds that ended with a step that failed; one entry for each step, in order.
    pub given_up: Vec<GivenUp>,
    /// Rounds under way at the ends of the windows, in a pause or before a step that was not due
    /// any more.
    pub under_way: u64,
    /// From when a round was due to its last answer, pauses included, ns; of [`Self::rounds`].
    pub round: Histogram,
}

/// Rounds that ended with a step that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenUp {
    /// The step's name, as in [`super::RequestReading::name`].
    pub step: String,
    pub rounds: u64,
}

impl UsersReading {
    /// Nothing yet, for steps of these names.
    pub fn of_steps<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let step = |name: &str| GivenUp {
            step: name.to_owned(),
            rounds: 0,
        };
        Self {
            given_up: names.into_iter().map(step).collect(),
            ..Self::default()
        }
    }

    /// All rounds that ended with a step that failed.
    pub fn all_given_up(&self) -> u64 {
        self.given_up.iter().map(|one| one.rounds).sum()
    }

    /// Adds what another thread or host measured.
    pub fn add(&mut self, part: &UsersReading) {
        add_count(&mut self.arrived, part.arrived);
        add_count(&mut self.rounds, part.rounds);
        for (sum, part) in self.given_up.iter_mut().zip(&part.given_up) {
            add_count(&mut sum.rounds, part.rounds);
        }
        add_count(&mut self.under_way, part.under_way);
        self.round.merge(&part.round);
    }
}
