//! The estimate of how long a run still takes.

use std::time::Duration;

use verdict::Looks;

/// The estimate assumes that this share of a group's length went by plan, besides the slices that
/// have ended: so the first few of these hardly change it.
const PLAN_SHARE: f64 = 0.1;

/// Slices that have ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slices {
    /// The sum of their planned lengths, s.
    planned_s: f64,
    /// How long they took, s.
    took_s: f64,
}

impl Slices {
    fn add(&mut self, other: Slices) {
        self.planned_s += other.planned_s;
        self.took_s += other.took_s;
    }

    /// How long slices took, as a multiple of their planned length; 1 if there are none.
    fn stretch(self) -> f64 {
        match self.planned_s > 0.0 && self.took_s > 0.0 {
            true => self.took_s / self.planned_s,
            false => 1.0,
        }
    }
}

/// How long a run still takes. Where it may stop early that is a span: to its next look, and to
/// its end.
pub(super) struct ToGo {
    pub(super) looks: Looks,
    /// Groups that are left, including the current one.
    pub(super) groups: usize,
    pub(super) groups_per_block: usize,
    /// Groups that are done.
    pub(super) made: usize,
    /// When the last of them was done, since the start, s.
    pub(super) made_s: f64,
    pub(super) made_slices: Slices,
    /// The slices of the current group.
    pub(super) slices: Slices,
    /// Duration of one group by the plan, s.
    pub(super) estimated_s: f64,
    /// Duration of what comes after the last group by the plan, s.
    pub(super) after_s: f64,
}

impl Default for ToGo {
    fn default() -> Self {
        Self {
            looks: Looks::of(1),
            groups: 0,
            groups_per_block: 1,
            made: 0,
            made_s: 0.0,
            made_slices: Slices::default(),
            slices: Slices::default(),
            estimated_s: 0.0,
            after_s: 0.0,
        }
    }
}

impl ToGo {
    /// Slices of the current group have ended.
    pub(super) fn slices_end(&mut self, planned_s: f64, took_s: f64) {
        self.slices.add(Slices { planned_s, took_s });
    }

    /// The current group has ended.
    pub(super) fn group_ends(&mut self, elapsed_s: f64) {
        self.groups = self.groups.saturating_sub(1);
        self.made += 1;
        self.made_s = elapsed_s;
        self.made_slices.add(std::mem::take(&mut self.slices));
    }

    /// Estimated duration of a group by those that are done, or by the plan, s.
    fn usual_s(&self) -> f64 {
        match self.made {
            0 => self.estimated_s,
            made => self.made_s / made as f64,
        }
    }

    /// Estimated duration of the current group, s: the usual one, stretched as its slices so far are,
    /// and no less than the time that it has been under way.
    fn current_s(&self, under_way_s: f64) -> f64 {
        let usual_s = self.usual_s();
        let expected_s = self.slices.planned_s * self.made_slices.stretch();
        let by_plan_s = PLAN_SHARE * usual_s;
        let stretch = match by_plan_s > 0.0 {
            true => (self.slices.took_s + by_plan_s) / (expected_s + by_plan_s),
            false => 1.0,
        };
        (usual_s * stretch).max(under_way_s)
    }

    /// Estimated duration of a later group, s. Until one is done, the same as of the current one.
    fn later_s(&self, under_way_s: f64) -> f64 {
        match self.made {
            0 => self.current_s(under_way_s),
            _ => self.usual_s(),
        }
    }

    fn under_way_s(&self, elapsed_s: f64) -> f64 {
        (elapsed_s - self.made_s).max(0.0)
    }

    /// To the end, if nothing settles before, s.
    pub(super) fn most_s(&self, elapsed_s: f64) -> f64 {
        let under_way_s = self.under_way_s(elapsed_s);
        let groups_s = match self.groups {
            0 => -under_way_s,
            groups => {
                let later_s = (groups - 1) as f64 * self.later_s(under_way_s);
                self.current_s(under_way_s) - under_way_s + later_s
            }
        };
        (groups_s + self.after_s).max(0.0)
    }

    /// Blocks to the next look, and to the end.
    fn next_look(&self) -> Option<u32> {
        let per_block = self.groups_per_block.max(1);
        let blocks_left = self.groups.div_ceil(per_block) as u32;
        let done = self.looks.planned().saturating_sub(blocks_left);
        self.looks.next_look(done)
    }

    pub(super) fn words(&self, elapsed_s: f64) -> String {
        let most_s = self.most_s(elapsed_s);
        let after = self.next_look().unwrap_or(self.looks.planned());
        let beyond = (self.looks.planned() - after) as usize * self.groups_per_block;
        let later_s = self.later_s(self.under_way_s(elapsed_s));
        let least_s = (most_s - beyond as f64 * later_s).max(0.0);
        if beyond == 0 || self.groups == 0 {
            return time(most_s);
        }
        format!(
            "{} (look after block {after}) to {}",
            time(least_s),
            time(most_s)
        )
    }
}

/// A rough time for people.
fn time(seconds: f64) -> String {
    let duration = Duration::from_secs_f64(seconds.clamp(0.0, 1e7));
    match duration.as_secs() {
        s @ 0..90 => format!("{s} s"),
        s @ 90..5_400 => format!("{} min", (s + 30) / 60),
        s => format!("{:.1} h", s as f64 / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_go_is_that_to_the_next_look_and_to_the_end() {
        let mut to_go = ToGo {
            looks: Looks::of(30),
            groups: 60,
            groups_per_block: 2,
            estimated_s: 6.0,
            ..ToGo::default()
        };
        assert_eq!(to_go.words(0.0), "2 min (look after block 10) to 6 min");
        // Each group took twice as long as planned: 18 blocks are done.
        (to_go.groups, to_go.made, to_go.made_s) = (24, 36, 432.0);
        assert_eq!(to_go.words(432.0), "48 s (look after block 20) to 5 min");
        (to_go.groups, to_go.made, to_go.made_s) = (4, 56, 672.0);
        assert_eq!(to_go.words(672.0), "48 s");
        assert_eq!(
            to_go.words(676.0),
            "44 s",
            "4 s of the current one are over"
        );
        to_go.looks = Looks::of(5);
        (to_go.groups, to_go.groups_per_block) = (5, 1);
        (to_go.made, to_go.made_s) = (0, 0.0);
        assert_eq!(to_go.words(0.0), "30 s");
        to_go.after_s = 15.0;
        assert_eq!(to_go.words(0.0), "45 s", "with a search for a bottleneck");
    }

    #[test]
    fn a_run_whose_slices_take_longer_than_planned_corrects_its_estimate_in_the_first_block() {
        let mut to_go = ToGo {
            looks: Looks::of(3),
            groups: 3,
            estimated_s: 3.0,
            ..ToGo::default()
        };
        assert_eq!(to_go.words(0.0), "9 s");
        // One slice of 0.1 s that took 1 s says little.
        to_go.slices_end(0.1, 1.0);
        let early_s = to_go.most_s(1.0);
        assert!((12.0..30.0).contains(&early_s), "{early_s}");
        // A group takes ten times as long as planned: 27 of 30 s are left of it after 3 s.
        let mut elapsed_s = 1.0;
        for _ in 1..25 {
            to_go.slices_end(0.1, 1.0);
            elapsed_s += 1.0;
            let truly_s = 90.0 - elapsed_s;
            let most_s = to_go.most_s(elapsed_s);
            assert!(most_s < truly_s, "{elapsed_s}: {most_s}");
            assert!(
                elapsed_s < 5.0 || most_s > 0.55 * truly_s,
                "{elapsed_s}: {most_s}"
            );
        }
        to_go.group_ends(30.0);
        assert_eq!(to_go.words(30.0), "60 s");
        // The next is as slow, and 10 s of it are over.
        to_go.slices_end(1.0, 10.0);
        assert_eq!(to_go.words(40.0), "50 s");
        // One that is quicker.
        to_go.slices_end(1.0, 1.0);
        assert!(to_go.most_s(41.0) < 45.0);
    }

    #[test]
    fn a_group_without_slices_that_takes_longer_than_planned_is_a_measure_for_the_others() {
        let mut to_go = ToGo {
            looks: Looks::of(3),
            groups: 3,
            estimated_s: 3.0,
            after_s: 2.0,
            ..ToGo::default()
        };
        assert_eq!(to_go.words(20.0), "42 s");
        for at_s in [20.0, 40.0, 60.0] {
            to_go.group_ends(at_s);
        }
        assert_eq!(to_go.words(61.0), "1 s");
        assert_eq!(to_go.words(70.0), "0 s");
    }
}
