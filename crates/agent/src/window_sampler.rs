//! Looks at servers and machine while a load runs on this machine: at both ends of each measured
//! window, which is known when it begins, and five times a second within.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use readings::Probed;

use super::look::{Look, Looker, Peaks};
use super::system_counters::SystemSources;
use super::watch::Watched;

/// The longest time between two looks within a window.
const INTERVAL: Duration = Duration::from_millis(180);
/// Looking at the ends of windows may take so much of a CPU; where it takes more, some windows are
/// left out.
pub(super) const SHARE: f64 = 0.02;
/// What it may take before that is asked.
const FREE: Duration = Duration::from_millis(5);
/// A window that begins so long after the last look is not left out: with its two ends that makes
/// five looks a second.
const SELDOM: Duration = Duration::from_millis(400);
/// For five looks a second so much of a CPU may be taken: 5.4 ms for a look, in which dozens of
/// processes that have run are read, and hundreds are passed by that have not. Where looks take
/// longer there are fewer, and glances in their place.
const MOST: f64 = 0.03;

/// Looks at servers. [`open`](Self::open) and [`close`](Self::close) are called at the ends of
/// windows; [`tick`](Self::tick) runs on a thread of its own until [`end`](Self::end).
pub(super) struct WindowSampler<'a> {
    state: Mutex<State<'a>>,
    wake: Condvar,
}

struct State<'a> {
    looker: Looker<'a>,
    began: Instant,
    spent: Duration,
    /// When the last look began, and what it took of a CPU. Where servers have the CPU it may last
    /// much longer than that.
    last: Instant,
    last_cost: Duration,
    /// As the two above, of a look or a glance.
    glanced: Instant,
    glance_cost: Duration,
    window: Option<Window>,
    /// What was seen, by the number of the reading.
    readings: BTreeMap<usize, Probed>,
    ended: bool,
}

struct Window {
    reading: usize,
    before: Look,
    within: Peaks,
    cost: Duration,
}

impl<'a> WindowSampler<'a> {
    pub(super) fn new(servers: &'a BTreeMap<String, Watched<'a>>, around: SystemSources) -> Self {
        let now = Instant::now();
        let mut state = State {
            looker: Looker::new(servers, around),
            began: now,
            spent: Duration::ZERO,
            last: now,
            last_cost: Duration::ZERO,
            glanced: now,
            glance_cost: Duration::ZERO,
            window: None,
            readings: BTreeMap::new(),
            ended: false,
        };
        // Which processes a server has is noted before the load. All of them are read for that,
        // so it says nothing of what a look costs later.
        state.look();
        (state.spent, state.last_cost) = (Duration::ZERO, Duration::ZERO);
        Self {
            state: Mutex::new(state),
            wake: Condvar::new(),
        }
    }

    /// A window of that reading begins. Returns whether it is looked at.
    pub(super) fn open(&self, reading: usize) -> bool {
        let mut state = self.locked();
        let may = FREE + state.began.elapsed().mul_f64(SHARE);
        let seldom = SELDOM.max(state.last_cost.div_f64(MOST) * 2);
        let due = state.last.elapsed() >= seldom;
        if state.spent > may && !due {
            return false;
        }
        let (before, cost) = state.look();
        state.window = Some(Window {
            reading,
            before,
            within: Peaks::default(),
            cost,
        });
        drop(state);
        self.wake.notify_one();
        true
    }

    /// The window that was opened ends. Returns whether it was looked at.
    pub(super) fn close(&self) -> bool {
        let mut state = self.locked();
        let Some(window) = state.window.take() else {
            return false;
        };
        let (after, cost) = state.look();
        let mut seen = state.looker.between(&window.before, &after, &window.within);
        seen.cpu_s = (window.cost + cost).as_secs_f64();
        state.readings.entry(window.reading).or_default().add(&seen);
        true
    }

    /// Looks while windows are open, until the end.
    pub(super) fn tick(&self) {
        let mut state = self.locked();
        while !state.ended {
            let due = state.glanced + INTERVAL.max(state.glance_cost.div_f64(MOST));
            let now = Instant::now();
            if due <= now
                && let Some(mut window) = state.window.take()
            {
                // Between its ends a window needs no more than what goes up and down. A whole look
                // also knows what threads did that end before the next one.
                window.cost += match state.last + state.last_cost.div_f64(MOST) <= now {
                    true => {
                        let (look, cost) = state.look();
                        window.within.note(&look);
                        cost
                    }
                    false => state.glance(&mut window.within),
                };
                state.window = Some(window);
                continue;
            }
            state = match state.window {
                None => self
                    .wake
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(_) => {
                    let waited = self.wake.wait_timeout(state, due - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Ends [`tick`](Self::tick); what was seen, by the number of the reading.
    pub(super) fn end(&self) -> BTreeMap<usize, Probed> {
        let mut state = self.locked();
        state.ended = true;
        let seen = std::mem::take(&mut state.readings);
        drop(state);
        self.wake.notify_one();
        seen
    }

    fn locked(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State<'_> {
    fn look(&mut self) -> (Look, Duration) {
        self.last = Instant::now();
        let (look, cost) = self.looker.look();
        self.last_cost = cost;
        self.spent += cost;
        self.glanced = self.last;
        (look, cost)
    }

    fn glance(&mut self, peaks: &mut Peaks) -> Duration {
        self.glanced = Instant::now();
        let cost = self.looker.glance(peaks);
        self.glance_cost = cost;
        self.spent += cost;
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_looked_at_at_both_ends_and_five_times_a_second_within() {
        let me = std::process::id() as i32;
        let watched = BTreeMap::from([("me".to_owned(), Watched::Processes(vec![me]))]);
        let sampler = WindowSampler::new(&watched, SystemSources::of(vec!["me".to_owned()], &[]));
        let seen = std::thread::scope(|scope| {
            scope.spawn(|| sampler.tick());
            assert!(sampler.open(3));
            let begin = Instant::now();
            let mut sum = 0_u64;
            while begin.elapsed() < Duration::from_millis(1100) {
                sum = std::hint::black_box(sum + 1);
            }
            assert!(sampler.close());
            assert!(!sampler.close(), "it is closed");
            sampler.end()
        });
        let seen = &seen[&3];
        assert!(seen.looked_s > 1.0);
        // Two ends, and one for each 180 ms but the last; on a busy machine the thread may be late.
        assert!((5..=8).contains(&seen.looks), "{}", seen.looks);
        assert!(seen.cpu_s > 0.0 && seen.cpu_s < seen.looked_s, "{seen:?}");
        let me = &seen.servers["me"];
        assert!(me.user_s + me.system_s > 0.1, "{me:?}");
        assert!(me.threads_max >= 2 && !me.ended && me.rss_bytes_max > 0);
        assert_eq!(seen.networks.len(), 1);
    }

    #[test]
    fn what_looking_may_take_is_bounded() {
        let watched = BTreeMap::new();
        let sampler = WindowSampler::new(&watched, SystemSources::of(Vec::new(), &[]));
        let set = |cost, ago| {
            let mut state = sampler.locked();
            state.spent = Duration::from_secs(3600);
            state.last_cost = cost;
            state.last = Instant::now() - ago;
        };
        let long = INTERVAL.mul_f64(MOST);
        set(long, Duration::ZERO);
        assert!(!sampler.open(0), "an hour was spent already");
        assert!(!sampler.close());
        set(3 * long, SELDOM);
        assert!(!sampler.open(0), "a look takes too long");
        set(long, SELDOM);
        assert!(sampler.open(0), "it is time");
        assert!(sampler.close());
        assert_eq!(sampler.end()[&0].looks, 2);
    }
}
