//! The part of a load's text that is about users.

use readings::text::{counted, grouped};
use readings::{Histogram, LoadReading};

/// The row of the times of rounds.
pub(crate) fn row(reading: &LoadReading) -> Option<(&'static str, &Histogram)> {
    let users = reading.users.as_deref()?;
    (users.round.count() > 0).then_some(("Round, with pauses", &users.round))
}

pub(crate) fn lines(reading: &LoadReading) -> String {
    let Some(users) = reading.users.as_deref() else {
        return String::new();
    };
    let mut out = format!(
        "  {} arrived; {} completed, {} under way at the end\n",
        counted(users.arrived as usize, "user"),
        counted(users.rounds as usize, "round"),
        grouped(users.under_way)
    );
    let given_up: Vec<String> = users
        .given_up
        .iter()
        .filter(|one| one.rounds > 0)
        .map(|one| format!("{} at {}", grouped(one.rounds), one.step))
        .collect();
    if !given_up.is_empty() {
        out.push_str(&format!("  Rounds given up: {}\n", given_up.join(", ")));
    }
    out
}

#[cfg(test)]
mod tests {
    use readings::{Pacing, UsersReading};
    use testing::Text as _;
    use verdict::JudgedLoad;

    use super::*;
    use crate::load_terminal;

    #[test]
    fn users_are_told_with_their_rounds() {
        let mut users = UsersReading::of_steps(["login", "cart"]);
        (users.arrived, users.rounds, users.under_way) = (1_000, 1, 12);
        users.round.record_ns(2_500_000_000);
        let mut reading = LoadReading {
            connections: 1,
            connections_open_min: 1,
            duration_s: 20.0,
            users: Some(Box::new(users)),
            ..LoadReading::empty(Pacing::Open { rate_per_s: 50.0 })
        };
        let told =
            |reading: &LoadReading| load_terminal(&JudgedLoad::of(reading), "http://a/", &[]);
        let text = told(&reading);
        text.has_all([
            "open loop at 50.0 users/s",
            "  Round, with pauses ",
            " 2.50s ",
            "  1,000 users arrived; 1 round completed, 12 under way at the end\n",
        ]);
        text.lacks("given up");
        reading.users.as_mut().unwrap().given_up[1].rounds = 7;
        let text = told(&reading);
        text.has("  Rounds given up: 7 at cart\n");
    }
}
