//! The health of a back end, as a state machine.
//!
//! ```text
//!                      connection failed, or ejected
//!          ┌──────────────────────────────────────────────┐
//!          │                                              ▼     interval over
//!      Available ◀── probe succeeded ── Waking ◀──── Unavailable
//!                                          └── probe failed ──▶
//!      Down: only an operator enters or leaves this state.
//! ```
//!
//! The states are those of Crossroads. Times are in nanoseconds of any monotonic clock.

use std::str::FromStr;

/// The state of a back end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// In use. Crossroads also says `up`.
    #[default]
    Available,
    /// Could not be reached; will be probed.
    Unavailable,
    /// Being probed; not in use.
    Waking,
    /// Taken down by an operator; only an operator can change that.
    Down,
}

impl State {
    /// The name in `tell` and `--status`.
    pub fn word(self) -> &'static str {
        match self {
            State::Available => "available",
            State::Unavailable => "unavailable",
            State::Waking => "waking",
            State::Down => "down",
        }
    }
}

/// Not the name of a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected up, available, unavailable, down or waking, found `{0}`")]
pub struct UnknownState(String);

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(word: &str) -> Result<State, UnknownState> {
        Ok(match word {
            "up" | "available" => State::Available,
            "unavailable" => State::Unavailable,
            "waking" => State::Waking,
            "down" => State::Down,
            other => return Err(UnknownState(::config::units::shown(other))),
        })
    }
}

/// A service's health policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HealthPolicy {
    /// When an unavailable back end is probed, and after each failed probe, ns. 0: never, until an
    /// operator changes its state.
    pub reviving_interval_ns: u64,
    /// How often an available back end is probed, ns. 0: never.
    pub check_interval_ns: u64,
    /// Successful probes in a row before it is used again; 0 counts as 1.
    pub rise: u32,
    /// Failed probes in a row before an available one is taken out; 0 counts as 1.
    pub fall: u32,
    /// Failed responses in a row before it is ejected. 0: never.
    pub eject_after: u32,
    /// Length of an ejection, ns; it is probed before it is used again.
    pub eject_ns: u64,
    /// Ramp from the first use after an outage to the full share, ns.
    pub slow_start_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthEvent {
    ConnectFailed,
    /// No response, or one that reports a server error.
    ResponseFailed,
    ResponseOk,
    ProbeOk,
    ProbeFailed,
    SetByOperator(State),
}

impl HealthEvent {
    /// What changed the state of a back end, for the operator.
    pub fn what(self) -> &'static str {
        match self {
            HealthEvent::ConnectFailed => "a connection to it failed",
            HealthEvent::ResponseFailed => "it failed to answer, or answered with a server error",
            HealthEvent::ProbeFailed => "it failed its probes",
            HealthEvent::SetByOperator(_) => "an operator took it out",
            HealthEvent::ResponseOk | HealthEvent::ProbeOk => "it answers",
        }
    }
}

/// Health of one back end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    state: State,
    failures_in_row: u32,
    /// Probes in a row that contradict the state.
    probes_in_row: u32,
    /// When the next probe is due, ns; `None`: never.
    due_ns: Option<u64>,
    /// A probe is under way.
    probing: bool,
    /// When it became available after an outage, ns.
    available_since_ns: Option<u64>,
}

/// The share at the start of the ramp.
const FIRST_SHARE: f64 = 0.05;

impl Health {
    /// The initial health.
    pub fn new(state: State, now_ns: u64, policy: &HealthPolicy) -> Health {
        let mut health = Health {
            state,
            ..Health::default()
        };
        health.schedule(now_ns, policy);
        health
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// Whether clients are sent to it.
    pub fn usable(&self) -> bool {
        self.state == State::Available
    }

    /// When to call [`Health::probe_due`] next, ns; `None`: after the next event.
    pub fn due_ns(&self) -> Option<u64> {
        self.due_ns.filter(|_| !self.probing)
    }

    /// Applies an event. Returns whether it became usable or unusable.
    pub fn note(&mut self, event: HealthEvent, now_ns: u64, policy: &HealthPolicy) -> bool {
        let before = self.state;
        match event {
            HealthEvent::ConnectFailed if self.state == State::Available => {
                self.set_state(State::Unavailable, now_ns, policy);
            }
            HealthEvent::ResponseFailed if self.state == State::Available => {
                self.failures_in_row = self.failures_in_row.saturating_add(1);
                if policy.eject_after > 0 && self.failures_in_row >= policy.eject_after {
                    self.set_state(State::Unavailable, now_ns, policy);
                    self.due_ns = Some(now_ns.saturating_add(policy.eject_ns));
                }
            }
            HealthEvent::ResponseOk => self.failures_in_row = 0,
            HealthEvent::ProbeOk | HealthEvent::ProbeFailed => {
                self.probed(event == HealthEvent::ProbeOk, now_ns, policy);
            }
            HealthEvent::SetByOperator(state) => self.set_state(state, now_ns, policy),
            HealthEvent::ConnectFailed | HealthEvent::ResponseFailed => {}
        }
        (before == State::Available) != (self.state == State::Available)
    }

    /// Whether a probe is due. Returns true once; the caller then reports [`HealthEvent::ProbeOk`]
    /// or [`HealthEvent::ProbeFailed`], and cancels the probe if the state changes.
    pub fn probe_due(&mut self, now_ns: u64) -> bool {
        if self.due_ns().is_none_or(|due_ns| now_ns < due_ns) {
            return false;
        }
        self.probing = true;
        self.due_ns = None;
        if self.state == State::Unavailable {
            self.state = State::Waking;
        }
        true
    }

    /// The probe under way was lost: it is due again.
    pub fn probe_lost(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.probing) {
            self.due_ns = Some(now_ns);
        }
    }

    /// The share of its weight in effect: 1, or less during slow start.
    pub fn share(&self, now_ns: u64, policy: &HealthPolicy) -> f64 {
        let Some(since_ns) = self.available_since_ns else {
            return 1.0;
        };
        let passed_ns = now_ns.saturating_sub(since_ns);
        if passed_ns >= policy.slow_start_ns {
            return 1.0;
        }
        (passed_ns as f64 / policy.slow_start_ns as f64).max(FIRST_SHARE)
    }

    fn probed(&mut self, well: bool, now_ns: u64, policy: &HealthPolicy) {
        // A stale result.
        if !std::mem::take(&mut self.probing) {
            return;
        }
        let used = self.state == State::Available;
        if self.state == State::Down {
            return;
        }
        if used == well {
            // The probe confirms the state.
            self.probes_in_row = 0;
            match used {
                true => self.schedule(now_ns, policy),
                false => self.set_state(State::Unavailable, now_ns, policy),
            }
            return;
        }
        self.probes_in_row = self.probes_in_row.saturating_add(1);
        let (enough, next) = match well {
            true => (policy.rise, State::Available),
            false => (policy.fall, State::Unavailable),
        };
        if self.probes_in_row >= enough {
            return self.set_state(next, now_ns, policy);
        }
        /// Between probes if no interval is configured, ns.
        const AGAIN_NS: u64 = 1_000_000_000;
        let intervals = [policy.check_interval_ns, policy.reviving_interval_ns];
        let again_ns = intervals.into_iter().filter(|ns| *ns > 0).min();
        self.due_ns = Some(now_ns.saturating_add(again_ns.unwrap_or(AGAIN_NS)));
    }

    fn set_state(&mut self, state: State, now_ns: u64, policy: &HealthPolicy) {
        if state == State::Available && self.state != State::Available {
            self.available_since_ns = Some(now_ns);
        }
        self.state = state;
        self.failures_in_row = 0;
        self.probes_in_row = 0;
        // A probe under way is stale.
        self.probing = false;
        self.schedule(now_ns, policy);
    }

    fn schedule(&mut self, now_ns: u64, policy: &HealthPolicy) {
        let after =
            |interval_ns: u64| (interval_ns > 0).then(|| now_ns.saturating_add(interval_ns));
        self.due_ns = match self.state {
            State::Available => after(policy.check_interval_ns),
            State::Unavailable => after(policy.reviving_interval_ns),
            State::Waking => Some(now_ns),
            State::Down => None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn policy() -> HealthPolicy {
        HealthPolicy {
            reviving_interval_ns: 5 * SECOND,
            eject_after: 3,
            eject_ns: 30 * SECOND,
            slow_start_ns: 10 * SECOND,
            ..HealthPolicy::default()
        }
    }

    #[test]
    fn one_that_cannot_be_reached_is_probed_after_the_reviving_interval() {
        let policy = policy();
        let mut health = Health::new(State::Available, 0, &policy);
        assert!(health.usable());
        assert!(health.note(HealthEvent::ConnectFailed, SECOND, &policy));
        assert_eq!(health.state(), State::Unavailable);
        assert!(!health.probe_due(6 * SECOND - 1));
        assert!(health.probe_due(6 * SECOND));
        assert_eq!(health.state(), State::Waking);
        assert!(!health.probe_due(60 * SECOND), "one probe at a time");
        assert!(!health.note(HealthEvent::ProbeFailed, 7 * SECOND, &policy));
        assert_eq!(health.due_ns(), Some(12 * SECOND));
        assert!(health.probe_due(12 * SECOND));
        assert!(health.note(HealthEvent::ProbeOk, 13 * SECOND, &policy));
        assert!(health.usable());
    }

    #[test]
    fn without_a_reviving_interval_it_stays_unavailable_until_an_operator_says_so() {
        let policy = HealthPolicy {
            reviving_interval_ns: 0,
            ..policy()
        };
        let mut health = Health::new(State::Available, 0, &policy);
        health.note(HealthEvent::ConnectFailed, 0, &policy);
        assert!(!health.probe_due(u64::MAX));
        assert!(health.note(
            HealthEvent::SetByOperator(State::Available),
            SECOND,
            &policy
        ));
        assert!(health.usable());
    }

    #[test]
    fn what_an_operator_took_down_is_never_revived() {
        let policy = policy();
        let mut health = Health::new(State::Available, 0, &policy);
        health.note(HealthEvent::ConnectFailed, 0, &policy);
        assert!(health.probe_due(5 * SECOND));
        assert!(!health.note(HealthEvent::SetByOperator(State::Down), 6 * SECOND, &policy));
        // The result of a stale probe.
        assert!(!health.note(HealthEvent::ProbeOk, 7 * SECOND, &policy));
        assert_eq!(health.state(), State::Down);
        assert!(!health.probe_due(u64::MAX));
        assert!(!health.note(
            HealthEvent::SetByOperator(State::Waking),
            8 * SECOND,
            &policy
        ));
        assert!(health.probe_due(8 * SECOND), "waking is probed at once");
    }

    #[test]
    fn failed_answers_in_a_row_eject_it_for_a_while() {
        let policy = policy();
        let mut health = Health::new(State::Available, 0, &policy);
        for event in [
            HealthEvent::ResponseFailed,
            HealthEvent::ResponseFailed,
            HealthEvent::ResponseOk,
            HealthEvent::ResponseFailed,
            HealthEvent::ResponseFailed,
        ] {
            assert!(!health.note(event, 0, &policy));
        }
        assert!(health.note(HealthEvent::ResponseFailed, SECOND, &policy));
        assert_eq!(health.due_ns(), Some(31 * SECOND));
    }

    #[test]
    fn it_starts_slowly_after_a_pause_and_not_at_first() {
        let policy = policy();
        let mut health = Health::new(State::Available, 0, &policy);
        assert_eq!(health.share(0, &policy), 1.0);
        health.note(HealthEvent::ConnectFailed, 0, &policy);
        health.note(
            HealthEvent::SetByOperator(State::Available),
            100 * SECOND,
            &policy,
        );
        assert_eq!(health.share(100 * SECOND, &policy), FIRST_SHARE);
        assert_eq!(health.share(105 * SECOND, &policy), 0.5);
        assert_eq!(health.share(110 * SECOND, &policy), 1.0);
    }

    #[test]
    fn active_checks_take_an_available_one_out() {
        let policy = HealthPolicy {
            check_interval_ns: SECOND,
            ..policy()
        };
        let mut health = Health::new(State::Available, 0, &policy);
        assert!(health.probe_due(SECOND));
        assert!(health.usable(), "still used while it is checked");
        assert!(!health.note(HealthEvent::ProbeOk, SECOND + 1, &policy));
        assert!(health.probe_due(2 * SECOND + 1));
        assert!(health.note(HealthEvent::ProbeFailed, 2 * SECOND + 2, &policy));
        assert_eq!(health.state(), State::Unavailable);
    }

    #[test]
    fn several_probes_in_a_row_may_be_asked_for() {
        let policy = HealthPolicy {
            check_interval_ns: SECOND,
            rise: 2,
            fall: 3,
            ..policy()
        };
        let mut health = Health::new(State::Available, 0, &policy);
        let mut now = 0;
        let mut probe = |health: &mut Health, event| {
            now += SECOND;
            assert!(health.probe_due(now));
            health.note(event, now, &policy)
        };
        use HealthEvent::{ProbeFailed, ProbeOk};
        // The one that went well in between begins the row anew.
        for event in [ProbeFailed, ProbeFailed, ProbeOk, ProbeFailed, ProbeFailed] {
            assert!(!probe(&mut health, event));
        }
        assert!(probe(&mut health, ProbeFailed));
        assert!(!health.probe_due(now + 4 * SECOND), "the reviving interval");
        now += 4 * SECOND;
        let mut probe = |health: &mut Health, event| {
            now += SECOND;
            assert!(health.probe_due(now));
            health.note(event, now, &policy)
        };
        assert!(!probe(&mut health, ProbeOk));
        assert!(!health.usable());
        assert!(probe(&mut health, ProbeOk));
        assert!(health.usable());
    }

    #[test]
    fn a_probe_that_got_lost_is_made_again() {
        let policy = policy();
        let mut health = Health::new(State::Waking, 0, &policy);
        assert!(health.probe_due(1));
        assert!(!health.probe_due(SECOND));
        health.probe_lost(SECOND);
        assert!(health.probe_due(SECOND));
    }

    #[test]
    fn the_words_of_tell_are_those_of_crossroads() {
        for (word, state) in [
            ("up", State::Available),
            ("available", State::Available),
            ("unavailable", State::Unavailable),
            ("down", State::Down),
            ("waking", State::Waking),
        ] {
            assert_eq!(word.parse(), Ok(state));
            assert_eq!(state.word().parse(), Ok(state));
        }
        assert!("dawn".parse::<State>().is_err());
    }

    fn events() -> impl Strategy<Value = Vec<(Option<HealthEvent>, u64)>> {
        let states = prop_oneof![
            Just(State::Available),
            Just(State::Unavailable),
            Just(State::Waking),
            Just(State::Down)
        ];
        let event = prop_oneof![
            Just(None),
            Just(Some(HealthEvent::ConnectFailed)),
            Just(Some(HealthEvent::ResponseFailed)),
            Just(Some(HealthEvent::ResponseOk)),
            Just(Some(HealthEvent::ProbeOk)),
            Just(Some(HealthEvent::ProbeFailed)),
            states.prop_map(|state| Some(HealthEvent::SetByOperator(state))),
        ];
        proptest::collection::vec((event, 0..20u64), 0..60)
    }

    proptest! {
        #[test]
        fn whatever_happens(steps in events(), reviving in 0..8u64, checking in 0..8u64,
                eject_after in 0..4u32, slow_start in 0..8u64, rise in 0..4u32, fall in 0..4u32) {
            let policy = HealthPolicy {
                rise,
                fall,
                reviving_interval_ns: reviving,
                check_interval_ns: checking,
                eject_after,
                eject_ns: 3,
                slow_start_ns: slow_start,
            };
            let mut now = 0;
            let mut health = Health::new(State::Available, now, &policy);
            let mut asked = 0u32;
            for (event, passes) in steps {
                now += passes;
                let before = health;
                match event {
                    None => {
                        if health.probe_due(now) {
                            asked += 1;
                            prop_assert_eq!(asked, 1, "one probe at a time");
                            prop_assert!(before.due_ns().is_some_and(|due| due <= now));
                        }
                    }
                    Some(event) => {
                        let changed = health.note(event, now, &policy);
                        prop_assert_eq!(changed, before.usable() != health.usable());
                        if changed || matches!(event, HealthEvent::ProbeOk | HealthEvent::ProbeFailed
                            | HealthEvent::SetByOperator(_)) {
                            asked = 0;
                        }
                        // Nothing but a probe or an operator makes it usable.
                        if health.usable() && !before.usable() {
                            prop_assert!(matches!(event, HealthEvent::ProbeOk
                                | HealthEvent::SetByOperator(State::Available)));
                        }
                        if let HealthEvent::SetByOperator(state) = event {
                            prop_assert_eq!(health.state(), state);
                        } else if before.state() == State::Down {
                            prop_assert_eq!(health.state(), State::Down);
                        }
                    }
                }
                prop_assert!(health.state() != State::Down || health.due_ns().is_none());
                let share = health.share(now, &policy);
                prop_assert!(share > 0.0 && share <= 1.0);
                // Revival is scheduled unless it is disabled.
                let forgotten = health.state() == State::Unavailable && health.due_ns().is_none();
                prop_assert!(!forgotten || reviving == 0);
            }
        }
    }
}
