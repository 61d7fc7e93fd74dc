//! How long a run takes, before anything of it is known but the experiment.
//!
//! The constants are coarse, and a run replaces them by what its first condition took. On a machine
//! with two CPUs, busy with other work, they gave 70 s for `proxy-cost --quick`, which took 60 s, and
//! 77 s for `background-download --quick`, which took 72 s.

use std::time::Duration;

use readings::Condition;

use crate::spec::{Apart, CurveSpec, Experiment};

/// Starts one server: writes its files, starts it, sees it answer.
const START: Duration = Duration::from_millis(500);
/// Stops one server.
const STOP: Duration = Duration::from_millis(300);
/// What a load takes beside its slices: reference answers, threads, the last answers. A block of
/// `proxy-cost --quick`, with three loads, took 0.8 s beside its slices, of which built-in servers
/// take little.
const LOAD: Duration = Duration::from_millis(150);
/// The same, where loads begin at a time that was agreed on before: 0.7 s later or more.
const LOAD_TOGETHER: Duration = Duration::from_millis(1_000);
/// Duration of a load as a multiple of its measured time: the edges of slices are not measured.
const EDGES: f64 = 1.15;
/// The same, where loads wait for each other's last answers between slices: 50 ms or more after
/// slices of 100 to 200 ms. Answers that take long make it more.
const EDGES_TOGETHER: f64 = 1.5;
/// The load on one subject in which instructions are counted, and the time without load around it.
const COUNTING: Duration = Duration::from_millis(400);
/// One search for a bottleneck.
pub const SEARCH: Duration = Duration::from_secs(15);

impl Experiment {
    /// Whether several loads, or several hosts, make load at the same time. The time between their
    /// slices depends on how long answers take, so the estimate is a lower limit.
    pub(crate) fn has_loads_together(&self) -> bool {
        !self.loads.is_empty() || !self.load.more_hosts.is_empty()
    }

    /// A check whether servers are warm, which only the first block has.
    pub(crate) fn looks_time(&self) -> Duration {
        let design = &self.design;
        let by_engine = self.drivers().iter().all(crate::spec::Choice::is_engine);
        let is_single = self.loads.is_empty() && !self.is_in_one_piece() && by_engine;
        let has_look = is_single && design.warmup < design.warmup_max;
        let trials = (self.subjects.len() + 1) * self.conditions().len();
        match has_look && !design.warmup.is_zero() {
            true => design
                .warmup
                .saturating_mul(u32::try_from(trials).unwrap_or(u32::MAX)),
            false => Duration::ZERO,
        }
    }

    /// The load on one subject in one group: warm-up, closed loop, open loop, curve.
    fn loads_time(&self) -> Duration {
        let design = &self.design;
        let points = self.load.curve.as_ref().map_or(0, CurveSpec::points);
        let curve = design.curve_window.saturating_mul(points as u32);
        let edges = match self.has_loads_together() {
            true => EDGES_TOGETHER,
            false => EDGES,
        };
        let counting = match self.has_counting() {
            true => COUNTING,
            false => Duration::ZERO,
        };
        design.warmup + (design.window + design.latency_window + curve).mul_f64(edges) + counting
    }

    /// Whether a load is made in which instructions are counted: only where a single load is made
    /// by the engine, and nothing happens to servers.
    fn has_counting(&self) -> bool {
        self.counts_instructions
            && self.loads.is_empty()
            && !self.is_in_one_piece()
            && self.drivers().iter().all(crate::spec::Choice::is_engine)
    }

    pub(crate) fn block_time(&self) -> Duration {
        let conditions = self.conditions();
        conditions.iter().map(|one| self.group_time(one)).sum()
    }

    /// The servers that a block starts under a condition, copies included.
    fn servers_started(&self, condition: &Condition) -> usize {
        let design = &self.design;
        let resolved = self.under(condition);
        match design.apart == Apart::Always {
            // Each trial starts its own.
            true => {
                let subjects = resolved.subjects.iter();
                let copy = subjects.clone().filter(|one| one.name == design.baseline);
                subjects.chain(copy).map(|one| one.through.len()).sum()
            }
            false => {
                let names = resolved.subjects.iter().map(|one| one.name.as_str());
                let others: Vec<&str> = names.filter(|name| *name != design.baseline).collect();
                let copies = resolved.servers_of_copy(&design.baseline, &others);
                resolved.servers.len() + copies.len()
            }
        }
    }

    /// About how long a block starts servers.
    pub fn starts_time(&self) -> Duration {
        let conditions = self.conditions();
        let servers: usize = conditions.iter().map(|one| self.servers_started(one)).sum();
        START.saturating_mul(u32::try_from(servers).unwrap_or(u32::MAX))
    }

    /// One condition in one block: servers, loads, and what is around them.
    fn group_time(&self, condition: &Condition) -> Duration {
        let design = &self.design;
        let resolved = self.under(condition);
        let trials = resolved.subjects.len() + 1;
        let is_apart = design.apart == Apart::Always;
        let servers = self.servers_started(condition);
        let points = self.load.curve.as_ref().map_or(0, CurveSpec::points);
        let windows = [design.warmup, design.window, design.latency_window];
        let loads = points
            + windows.iter().filter(|window| !window.is_zero()).count()
            + usize::from(self.has_counting());
        let around = match self.has_loads_together() {
            true => LOAD_TOGETHER,
            false => LOAD,
        };
        let loads = if is_apart { loads * trials } else { loads };
        let times = |time: Duration, count: usize| {
            time.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
        };
        times(START + STOP, servers)
            .saturating_add(times(around, loads))
            .saturating_add(times(self.loads_time(), trials))
    }

    /// The subjects whose load the engine makes, under each condition: of these, bottlenecks can be
    /// searched for and profiles taken. None with several loads, where it is not known which of them
    /// a bottleneck limits.
    pub fn engine_subjects(&self) -> Vec<(Condition, String)> {
        let mut all = Vec::new();
        if !self.loads.is_empty() {
            return all;
        }
        for condition in self.conditions() {
            for subject in self.under(&condition).subjects {
                if subject.driver.is_engine() {
                    all.push((condition.clone(), subject.name));
                }
            }
        }
        all
    }

    /// The searches for bottlenecks after the last block.
    pub(crate) fn searches_time(&self) -> Duration {
        if !self.design.bottleneck {
            return Duration::ZERO;
        }
        SEARCH.saturating_mul(u32::try_from(self.engine_subjects().len()).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipes::Recipes;

    const SERVERS: &str = "title = \"t\"\n[servers.back]\nrecipe = \"origin\"\n[servers.front]\n\
         recipe = \"balance\"\nupstreams = [\"back\"]\n[subjects]\ndirect = \"http://back/\"\n\
         through = \"http://front/\"\n";

    /// The time of a block, with these tables added.
    fn block(more: &str) -> Duration {
        let recipes = Recipes::embedded().unwrap();
        let text = format!("{SERVERS}{more}");
        let experiment = Experiment::parse("x.toml", &text, &[], false, &recipes).unwrap();
        experiment.block_time()
    }

    fn design(more: &str) -> String {
        let windows = "warmup = \"1s\"\nwindow = \"2s\"\nlatency_window = \"0s\"\n";
        format!("[design]\n{windows}{more}")
    }

    #[test]
    fn servers_loads_and_what_is_around_them_are_counted() {
        let trials = (Duration::from_secs(1) + Duration::from_secs(2).mul_f64(EDGES)) * 3;
        // The baseline's copy has a back end of its own.
        assert_eq!(block(&design("")), trials + (START + STOP) * 3 + LOAD * 2);
        // Of the three trials, one starts both servers; each has its own loads.
        let apart = block(&design("apart = \"always\"\n"));
        assert_eq!(apart, trials + (START + STOP) * 4 + LOAD * 6);
        let port = SERVERS.replace("recipe = \"origin\"", "recipe = \"origin\"\nport = 8123");
        let recipes = Recipes::embedded().unwrap();
        let text = format!("{port}{}", design(""));
        let fixed = Experiment::parse("x.toml", &text, &[], false, &recipes).unwrap();
        assert_eq!(fixed.block_time(), trials + (START + STOP) * 2 + LOAD * 2);
    }

    #[test]
    fn counting_instructions_takes_a_load_more() {
        let recipes = Recipes::embedded().unwrap();
        let text = format!("{SERVERS}{}", design(""));
        let mut counting = Experiment::parse("x.toml", &text, &[], false, &recipes).unwrap();
        counting.counts_instructions = true;
        assert_eq!(
            counting.block_time(),
            block(&design("")) + COUNTING * 3 + LOAD
        );
        let loads = "[loads.page]\nconnections = 2\n[loads.download]\nrole = \"background\"\n\
                     rate = \"5/s\"\n";
        let text = format!("{SERVERS}{loads}{}", design(""));
        let mut several = Experiment::parse("x.toml", &text, &[], false, &recipes).unwrap();
        let before = several.block_time();
        several.counts_instructions = true;
        assert_eq!(several.block_time(), before);
    }

    #[test]
    fn several_loads_take_longer() {
        let loads = "[loads.page]\nconnections = 2\n[loads.download]\nrole = \"background\"\n\
                     rate = \"5/s\"\n";
        let several = block(&format!("{loads}{}", design("")));
        assert!(
            several > block(&design("")) + Duration::from_secs(2),
            "{several:?}"
        );
    }

    #[test]
    fn each_search_for_a_bottleneck_is_counted() {
        let recipes = Recipes::embedded().unwrap();
        let of = |more: &str| {
            let text = format!("{SERVERS}{more}");
            let experiment = Experiment::parse("x.toml", &text, &[], false, &recipes).unwrap();
            experiment.searches_time()
        };
        assert_eq!(of("[factors]\nconnections = [1, 2]\n"), SEARCH * 4);
        assert_eq!(of("[design]\nbottleneck = false\n"), Duration::ZERO);
    }
}
